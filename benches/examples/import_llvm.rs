//! Imports LLVM IR that clang has made at -O0 into the text format of graphs, which the benchmark `ssa`
//! reads:
//!
//! ```text
//! clang-19 -O0 -Xclang -disable-O0-optnone -S -emit-llvm sqlite3.c -o sqlite3.ll
//! cargo run --release -p slotvm-benches --example import_llvm -- sqlite3.ll > sqlite3.graph
//! ```

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use slotvm_benches::{graph_text, llvm_ir};

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: import_llvm FILE.ll...");
        return ExitCode::from(2);
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let imported = files.iter().try_for_each(|file| import(file, &mut out));
    let written = imported.and_then(|()| out.flush().map_err(|error| error.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn import(file: &str, out: &mut impl Write) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    for function in llvm_ir::functions(&text) {
        let function = function.map_err(|error| format!("{file}: {error}"))?;
        let text = graph_text::write(&function.graph);
        out.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
