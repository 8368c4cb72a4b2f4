use slotvm::SlotMode;

use super::{ModeInfo, ModeReport, ProgramReport, Report, mean_ratios, stage_names, table};

/// A report of a program whose time in each mode, in the order of [`SlotMode::ALL`], is this.
fn program(name: &str, run_ns: [u64; 5]) -> ProgramReport {
    let mode = |(mode, run_ns): (SlotMode, u64)| ModeReport {
        mode: mode.name(),
        run_ns,
        stages_ns: vec![1_000_000; stage_names().len()],
        code_bytes: 100,
        frame_bytes: 32,
        slot_bytes: 16,
        phis: 3,
        with_less_work: Vec::new(),
    };
    let modes = SlotMode::ALL.into_iter().zip(run_ns).map(mode).collect();
    ProgramReport::new(name.to_owned(), Some(7), 42, modes)
}

fn report(programs: Vec<ProgramReport>) -> Report {
    Report {
        cranelift: "1.2.3".to_owned(),
        target: "a-target".to_owned(),
        rounds: 4,
        passes: "all".to_owned(),
        modes: ModeInfo::all(),
        mean_ratios: mean_ratios(&programs),
        programs,
    }
}

/// The cells of the rows of a name.
fn rows<'a>(text: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
    let rows = text.lines().map(|line| cells(line).collect::<Vec<_>>());
    rows.filter(|cells| cells.first() == Some(&name)).collect()
}

#[test]
fn modes_are_marked_that_ssa_is_more_than_3_percent_slower_than() {
    let program = program("p", [970_000, 971_000, 980_000, 1_000_000, 1_000_000]);
    assert_eq!(program.faster_than_ssa, ["memory"]);
    let text = table::render(&report(vec![program]));
    assert_eq!(rows(&text, "p")[0], ["p", "7", "1.00", "! 0.97x", "0.97x", "0.98x", "1.00x"]);
}

#[test]
fn programs_that_take_no_time_have_ratios_too() {
    let report = report(vec![program("p", [0, 0, 3, 0, 0]), program("q", [1, 1, 3, 1, 0])]);
    let means: Vec<f64> = report.mean_ratios.iter().map(|mean| mean.ratio).collect();
    for (mean, expected) in means.iter().zip([1.0, 1.0, 3.0, 1.0]) {
        assert!((mean - expected).abs() < 1e-9, "{means:?}");
    }
    assert!(super::chart::render(&report).unwrap().contains("<svg"));
}

#[test]
fn ratios_have_geometric_means() {
    let report = report(vec![
        program("p", [8_000, 4_000, 2_000, 1_000, 1_000]),
        program("q", [2_000, 4_000, 2_000, 4_000, 1_000]),
    ]);
    let means: Vec<f64> = report.mean_ratios.iter().map(|mean| mean.ratio).collect();
    for (mean, expected) in means.iter().zip([4.0, 4.0, 2.0, 2.0]) {
        assert!((mean - expected).abs() < 1e-9, "{means:?}");
    }
    let text = table::render(&report);
    assert_eq!(rows(&text, "geometric mean")[0][1..], ["4.00x", "4.00x", "2.00x", "2.00x"]);
}

#[test]
fn sizes_and_stages_are_summed() {
    let report = report(vec![program("p", [1; 5]), program("q", [1; 5])]);
    let text = table::render(&report);
    let sums = rows(&text, "sum");
    assert_eq!(sums[0], ["sum", "200", "200", "200", "64", "64", "64", "6"]);
    let mut stages = vec!["sum", "84"];
    stages.extend(vec!["2000"; stage_names().len()]);
    let all = (2_000 * stage_names().len()).to_string();
    stages.extend([all.as_str(); 3]);
    assert_eq!(sums[1], stages);
}

#[test]
fn the_text_says_what_was_measured() {
    let mut program = program("p", [1; 5]);
    program.modes[4].with_less_work = vec!["f".to_owned(), "g".to_owned()];
    let text = table::render(&report(vec![program]));
    let first = "Cranelift 1.2.3, a-target; programs: 1; least times of rounds: 4; passes: all\n";
    assert!(text.starts_with(first), "{text}");
    for mode in ModeInfo::all() {
        assert!(text.contains(mode.meaning) && mode.meaning.contains("opt level"), "{text}");
    }
    let last = text.lines().last().expect("there are lines");
    assert!(last.starts_with("p in mode ssa: ") && last.ends_with("f, g"), "{last}");
}

#[test]
fn stages_have_their_names_in_json() {
    let json = serde_json::to_value(report(vec![program("p", [1; 5])])).expect("it is plain data");
    let stages = json["programs"][0]["modes"][0]["stages_ns"].as_object().expect("it is a map");
    assert_eq!(stages.len(), stage_names().len());
    for name in stage_names() {
        assert_eq!(stages[name], 1_000_000, "{name}");
    }
}
