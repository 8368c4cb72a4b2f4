//! `vmrun explain`: shows a function in every stage.

use std::path::Path;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::Printable;

use super::dump::find_func;
use crate::cli::ExplainArgs;
use crate::error::CliError;
use crate::load::{self, STANDARD};
use crate::output::{print, write_text};
use crate::profile::{BlockProfile, FunctionProfile, Profile, SCHEMA, SCHEMA_VERSION};
use slotvm_views::explain::{self, Request, page, text};

pub(super) fn explain(args: &ExplainArgs) -> Result<(), CliError> {
    let module = Arc::new(load::load(&args.program)?.module);
    let func = match &args.func.name {
        Some(name) => find_func(&module, name)?,
        None => default_func(&module)?,
    };
    let is_text = args.program.extension().is_some_and(|extension| extension == "vasm");
    let source = if is_text { Some(load::read(&args.program)?) } else { None };
    let source = source.as_deref().map(String::from_utf8_lossy);
    let profile = args.profile.as_deref().map(|path| counts(path, &module, func)).transpose()?;
    let profile = profile.unwrap_or_default();
    let document = explain::explain(&Request {
        module: &module,
        func,
        passes: args.passes.set,
        compare: &args.compare,
        program: &args.program,
        profile,
        source: source.as_deref(),
    })?;
    let is_page = !(args.json || args.text || args.at.is_some());
    let written = match args.at {
        Some(offset) => text::at(&document, offset)?,
        None if args.text => text::text(&document),
        None if args.json => document.json() + "\n",
        None => page::page(&document),
    };
    let path = match &args.output.path {
        Some(path) => path.clone(),
        None if is_page && !load::is_standard(&args.program) => {
            let name = args.program.file_name().unwrap_or("explain".as_ref());
            Path::new(name).with_extension("html")
        }
        None => STANDARD.into(),
    };
    load::check_output(&path, &args.program)?;
    write_text(&path, &written)?;
    if load::is_standard(&path) {
        return Ok(());
    }
    match args.output.path {
        None => print(&format!("{}\n", path.display())),
        Some(_) => Ok(()),
    }
}

/// The function that most of the program is about: the largest one that the module defines.
fn default_func(module: &VerifiedModule) -> Result<u32, CliError> {
    let defined = module.n_imported_funcs()..module.n_funcs();
    let size = |&func: &u32| module.func(func).map_or(0, |func| func.code.len());
    // The first one of the largest.
    defined
        .rev()
        .max_by_key(size)
        .ok_or_else(|| CliError::Usage("the program defines no function".into()))
}

/// The counts of a function in a profile: pairs of the code offset of a block and the number of its executions.
///
/// # Errors
/// Fails if the file is no profile, or that of another program: no block starts at one of its offsets.
fn counts(path: &Path, module: &VerifiedModule, func: u32) -> Result<Vec<(u32, u64)>, CliError> {
    let refused = |reason: String| {
        CliError::Failed(format!(
            "{}: expected what `vmrun profile --json` writes: {reason}",
            path.display()
        ))
    };
    let text = load::read_text(path)?;
    let profile: Profile =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    if (&*profile.schema, profile.version) != (SCHEMA, SCHEMA_VERSION) {
        return Err(refused(format!("found {} {}", profile.schema, profile.version)));
    }
    let mut of_func = profile.functions.iter().filter(|function| function.func == func);
    let is_named_so = |function: &FunctionProfile| {
        function.func < module.n_funcs() && function.name == module.func_name(function.func)
    };
    if let Some(other) = profile.functions.iter().find(|function| !is_named_so(function)) {
        let name = Printable(&other.name).to_string();
        return Err(refused(format!("function {} is no `{name}` in this program", other.func)));
    }
    let blocks = of_func.next().map_or(&[][..], |function| &function.blocks);
    let body = module.body(func).expect("the module defines the function");
    let is_start = |offset| body.blocks.binary_search_by_key(&offset, |block| block.start).is_ok();
    match blocks.iter().find(|block| !is_start(block.offset)) {
        Some(BlockProfile { offset, .. }) => {
            let reason = "is a profile of another program";
            let block = format!("no block of function {func} starts at @{offset:04x}");
            Err(CliError::Failed(format!("{} {reason}: {block}", path.display())))
        }
        None => Ok(blocks.iter().map(|block| (block.offset, block.count)).collect()),
    }
}
