//! SSA construction: all constructions of ours, the `Variable`s of cranelift-frontend and LLVM's
//! `mem2reg` on the same functions, in turns: a report.
//!
//! The functions are those of the [families], from 1,000 to 1,000,000 blocks and 10 to 5,000 slots, and
//! those of files. The least CPU time of several rounds counts. The figures are nanoseconds for each read
//! or write of a slot; that of `promote` is our IR rewritten to the end. Where no `opt` of LLVM 19 or
//! later is found, its column is empty, as it is in the largest cells, and as those of contenders with a
//! limit that a function exceeds are.
//! Times are those of this machine at this time: hold them against each other.
//!
//! * `--quick` measures small cells with less care.
//! * `--functions=FILE` measures the functions of a file in the format of [graph_text]; it may be given
//!   again. Then cells are only measured if a filter selects them.
//! * `--out=FOLDER` sets where the report goes as JSON, and a plot of each family, instead of the folder
//!   `tmp/ssa` of the target folder.
//!
//! `cargo bench` runs this in the folder `benches`, which relative paths start from. A filter selects
//! cells by names such as `nest_1000_10`. The memory that promotion needs is measured in the first cell of
//! 100,000 blocks or more.
//!
//! [families]: slotvm_benches::families
//! [graph_text]: slotvm_benches::graph_text

mod cells;
mod goals;
mod measure;
mod plot;
mod tables;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use slotvm_benches::contenders::Contender;
use slotvm_benches::contenders::cranelift::Variables;
use slotvm_benches::contenders::llvm::MEM2REG;
use slotvm_benches::contenders::ours::{Constructed, OnTheFly, Promotion};
use slotvm_benches::{Args, graph_text};
use slotvm_filetests::opt::Opt;

use self::measure::{Care, Field, Row};

const CARE: Care = Care { rounds: 7, patience: Duration::from_millis(500) };
const CARE_QUICK: Care = Care { rounds: 3, patience: Duration::from_millis(100) };
const CARE_TEST: Care = Care { rounds: 1, patience: Duration::MAX };

/// Contents of the JSON file.
#[derive(Serialize)]
struct Report<'r> {
    llvm_version: Option<u32>,
    cranelift_version: &'static str,
    rows: &'r [Row],
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::from_env();
    let care = match (args.is_test, args.is_quick) {
        (true, _) => CARE_TEST,
        (false, true) => CARE_QUICK,
        (false, false) => CARE,
    };
    let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(Promotion::default())];
    contenders.extend(Constructed::all().into_iter().map(|c| Box::new(c) as Box<dyn Contender>));
    contenders.extend(OnTheFly::all().into_iter().map(|c| Box::new(c) as Box<dyn Contender>));
    contenders.push(Box::new(Variables::default()));
    let mut names: Vec<String> = contenders.iter().map(|c| c.name().to_owned()).collect();
    let opt =
        Opt::find().inspect_err(|reason| eprintln!("LLVM's column is missing: {reason}")).ok();
    let mut field = Field { contenders, opt, care, is_peak_measured: false };
    names.push(MEM2REG.to_owned());

    let mut rows = Vec::new();
    let files: Vec<&str> = args.values("--functions").collect();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let graphs = graph_text::parse(&text).map_err(|error| format!("{file}: {error}"))?;
        let row = field.row((*file).to_owned(), graphs)?;
        eprintln!("{file}, {} functions: {}", row.n_functions, tables::in_short(&row));
        rows.push(row);
    }
    if files.is_empty() || args.has_filters() {
        for plan in cells::cells(args.is_quick, args.is_test) {
            let name = format!("{}_{}_{}", plan.family.name(), plan.n_blocks, plan.n_slots);
            if args.selects(&name) {
                let row = field.cell(plan)?;
                eprintln!("{name}, density {}: {}", plan.density, tables::in_short(&row));
                rows.push(row);
            }
        }
    }
    let plots = plot::render(&rows, &names)?;
    let report = Report {
        llvm_version: field.opt.as_ref().map(|opt| opt.version),
        cranelift_version: cranelift_codegen::VERSION,
        rows: &rows,
    };
    let json = serde_json::to_string_pretty(&report)?;
    println!("{}", tables::render(&rows, &names));
    if args.is_test {
        let agree = |row: &Row| goals::phis(row).is_none_or(|(ours, theirs)| ours == theirs);
        assert!(rows.iter().all(agree), "promotion and LLVM place the same phis");
    } else {
        let folder =
            args.values("--out").last().unwrap_or(concat!(env!("CARGO_TARGET_TMPDIR"), "/ssa"));
        write_files(Path::new(folder), &json, &plots)
            .map_err(|error| format!("{folder}: {error}"))?;
        println!("written to {folder}");
    }
    Ok(())
}

fn write_files(folder: &Path, json: &str, plots: &[(&str, String)]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("report.json"), json)?;
    for (family, svg) in plots {
        fs::write(folder.join(format!("{family}.svg")), svg)?;
    }
    Ok(())
}
