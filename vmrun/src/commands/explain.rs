//! `vmrun explain`: shows a function in every stage.

use std::path::Path;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;

use super::dump::find_func;
use crate::cli::ExplainArgs;
use crate::error::CliError;
use crate::load::{self, STANDARD};
use crate::output::{print, write_text};
use crate::profile::reading;
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
    let executions = args.profile.as_deref().map(|path| reading::executions(path, &module));
    let executions = executions.transpose()?;
    let document = explain::explain(&Request {
        module: &module,
        func,
        passes: args.passes.set,
        compare: &args.compare,
        program: &args.program,
        executions: executions.as_ref(),
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
