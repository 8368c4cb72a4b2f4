//! `vmrun explain`: shows a function in every stage.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;

use super::dump::find_func;
use super::print;
use crate::cli::ExplainArgs;
use crate::error::CliError;
use crate::explain::{self, Request, page, text};
use crate::load::{self, STANDARD};

pub(super) fn explain(args: &ExplainArgs) -> Result<(), CliError> {
    let module = Arc::new(load::load(&args.program)?.module);
    let func = match &args.func {
        Some(name) => find_func(&module, name)?,
        None => default_func(&module)?,
    };
    let is_text = args.program.extension().is_some_and(|extension| extension == "vasm");
    let source = if is_text { Some(load::read(&args.program)?) } else { None };
    let source = source.as_deref().map(String::from_utf8_lossy);
    let mut passes = args.passes;
    // An engine that has guard pages, as by default, does without these.
    for name in ["version", "bounds"] {
        passes.switch(name, false).expect("the table has the pass");
    }
    let document = explain::explain(&Request {
        module: &module,
        func,
        passes,
        compare: &args.compare,
        program: &args.program,
        source: source.as_deref(),
    })?;
    let is_page = !(args.json || args.text || args.at.is_some());
    let written = match args.at {
        Some(offset) => text::at(&document, offset)?,
        None if args.text => text::text(&document),
        None if args.json => {
            serde_json::to_string(&document).expect("the document has string keys only") + "\n"
        }
        None => page::page(&document),
    };
    let path = match &args.output {
        Some(path) => path.clone(),
        None if is_page && !load::is_standard(&args.program) => {
            let name = args.program.file_name().unwrap_or("explain".as_ref());
            Path::new(name).with_extension("html")
        }
        None => STANDARD.into(),
    };
    if load::is_standard(&path) {
        return print(&written);
    }
    fs::write(&path, written).map_err(CliError::file(&path))?;
    match args.output {
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
