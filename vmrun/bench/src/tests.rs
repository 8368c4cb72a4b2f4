use slotvm::SlotMode;

use super::statistics::Estimate;
use super::{
    ModeInfo, ModeReport, ProgramReport, Report, SCHEMA, SCHEMA_VERSION, html, markdown,
    mean_ratios, stage_names, table,
};

/// A report of a program whose time in each mode, in the order of [`SlotMode::ALL`], is this.
fn program(name: &str, run_ns: [u64; 5]) -> ProgramReport {
    program_of_modes(name, run_ns.map(|ns| vec![ns]))
}

/// A report of a program that takes these times in the rounds of each mode.
pub(super) fn program_of_rounds(name: &str, rounds_ns: &[u64]) -> ProgramReport {
    program_of_modes(name, [(); 5].map(|()| rounds_ns.to_vec()))
}

fn program_of_modes(name: &str, rounds_ns: [Vec<u64>; 5]) -> ProgramReport {
    let mode = |(mode, rounds_ns): (SlotMode, Vec<u64>)| {
        let mut report = ModeReport {
            compile_rounds_ns: vec![1_000; rounds_ns.len()],
            rounds_ns,
            stages_ns: vec![1_000_000; stage_names().len()],
            code_bytes: 100,
            frame_bytes: 32,
            slot_bytes: 16,
            spill_bytes: 16,
            phis: 3,
            ..ModeReport::unmeasured(mode)
        };
        report.set_run_time();
        report
    };
    let modes = SlotMode::ALL.into_iter().zip(rounds_ns).map(mode).collect();
    ProgramReport::new(name.to_owned(), Some(7), 42, modes)
}

pub(super) fn report(programs: Vec<ProgramReport>) -> Report {
    Report {
        schema: SCHEMA,
        version: SCHEMA_VERSION,
        cranelift: "1.2.3".to_owned(),
        target: "a-target".to_owned(),
        rounds: 4,
        run_ns_min: 1,
        partial: false,
        passes: "all".to_owned(),
        modes: ModeInfo::all(),
        mean_ratios: mean_ratios(&programs),
        programs,
        diff: None,
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
    assert_eq!(
        rows(&text, "p")[0],
        ["p", "7", "1.00", "! 0.97x", "0.97x", "0.98x", "1.00x", "never"]
    );
}

#[test]
fn programs_that_take_no_time_have_ratios_too() {
    let report = report(vec![program("p", [0, 0, 3, 0, 0]), program("q", [1, 1, 3, 1, 0])]);
    let means: Vec<f64> = report.mean_ratios.iter().map(|mean| mean.ratio.value).collect();
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
    let means: Vec<f64> = report.mean_ratios.iter().map(|mean| mean.ratio.value).collect();
    for (mean, expected) in means.iter().zip([4.0, 4.0, 2.0, 2.0]) {
        assert!((mean - expected).abs() < 1e-9, "{means:?}");
    }
    let text = table::render(&report);
    assert_eq!(rows(&text, "geometric mean")[0][1..], ["4.00x", "4.00x", "2.00x", "2.00x"]);
}

#[test]
fn sizes_and_stages_are_summed() {
    let mut report = report(vec![program("p", [1; 5]), program("q", [1; 5])]);
    for program in &mut report.programs {
        (program.modes[0].slot_reads, program.modes[0].slot_writes) = (Some(7), Some(2));
    }
    let text = table::render(&report);
    let sums = rows(&text, "sum");
    assert_eq!(sums[0][1..], ["14", "0", "0", "0", "4", "0", "0", "0"]);
    assert_eq!(sums[1], ["sum", "200", "200", "200", "64", "64", "64", "32", "32", "32", "6"]);
    let mut stages = vec!["sum", "84"];
    stages.extend(vec!["2000"; stage_names().len()]);
    let all = (2_000 * stage_names().len()).to_string();
    stages.extend([all.as_str(); 3]);
    assert_eq!(sums[2], stages);
}

#[test]
fn the_text_says_what_was_measured() {
    let mut program = program("p", [1; 5]);
    program.modes[4].with_less_work = vec!["f".to_owned(), "g".to_owned()];
    let text = table::render(&report(vec![program]));
    let first = "Cranelift 1.2.3, a-target; programs: 1; paired rounds: 4; passes: all\n";
    assert!(text.starts_with(first), "{text}");
    for mode in ModeInfo::all() {
        assert!(text.contains(mode.meaning) && mode.meaning.contains("opt level"), "{text}");
    }
    let last = text.lines().last().expect("there are lines");
    assert!(last.starts_with("* p in mode ssa: ") && last.ends_with("f, g"), "{last}");
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

#[test]
fn paired_rounds_cancel_the_speed_of_the_machine() {
    // The machine is up to four times as slow in some rounds; memory always takes about twice the time of ssa.
    let ssa = vec![1_000, 4_000, 2_000, 1_500, 3_000];
    let memory = vec![2_010, 7_960, 4_000, 3_010, 6_000];
    let modes = [memory, ssa.clone(), ssa.clone(), ssa.clone(), ssa];
    let program = program_of_modes("p", modes);
    let Estimate { value, interval } = program.ratio(SlotMode::Memory);
    let [low, high] = interval.expect("there are five rounds");
    assert!((low..=high).contains(&2.0) && high / low < 1.02, "{low} {value} {high}");
    assert_eq!(
        program.mode(SlotMode::Ssa).ratio,
        Estimate { value: 1.0, interval: Some([1.0; 2]) }
    );
    let [low, high] = program.mode(SlotMode::Ssa).run_interval_ns.expect("there are five rounds");
    assert!(high > 2 * low, "the time itself is uncertain");
    assert!(rows(&table::render(&report(vec![program])), "p")[0][3].starts_with("2.00x ±"));
}

#[test]
fn a_mode_within_noise_is_not_faster() {
    let ssa = vec![1_000, 1_000, 1_000, 1_000];
    let noisy = vec![1_300, 600, 1_300, 600];
    let clear = vec![900, 910, 890, 900];
    let program = program_of_modes("p", [noisy, clear, ssa.clone(), ssa.clone(), ssa]);
    assert!(program.ratio(SlotMode::Memory).value < 0.95);
    assert_eq!(program.faster_than_ssa, ["memory-opt"]);
}

#[test]
fn register_code_pays_after_the_runs_that_save_what_it_costs() {
    let mut program = program("p", [1_500, 1_000, 1_000, 1_000, 1_000]);
    assert_eq!(program.pays_after_runs, Some(0), "compile times are equal");
    program.modes[4].stages_ns[0] += 1_001;
    assert_eq!(program.pays_after_runs(), Some(3));
    let never = super::tests::program("p", [900, 1_000, 1_000, 1_000, 1_000]);
    assert_eq!(never.pays_after_runs, None);
}

/// The reason for which ssa is slower than memory, and maybe others, in a program with these figures.
fn reason(run_ns: [u64; 5], change: fn(&mut ModeReport)) -> String {
    let mut program = program("p", run_ns);
    change(&mut program.modes[4]);
    super::losses::losses(&program)[0].reason.clone()
}

#[test]
fn losses_have_reasons() {
    let slower = [600, 700, 1_000, 1_000, 1_000];
    let spilled = reason(slower, |ssa| (ssa.phis, ssa.spill_bytes) = (201, 1_600));
    assert!(spilled.starts_with("more is spilled: 201 phis and 1600 bytes"), "{spilled}");
    let kept = reason(slower, |ssa| ssa.slots_kept = 1);
    assert!(kept.starts_with("1 slot stays in memory"), "{kept}");
    let less = reason(slower, |ssa| ssa.with_less_work = vec!["f".into(), "g".into()]);
    assert!(less.starts_with("2 functions were compiled at a lower effort level"), "{less}");
    let unpromoted = reason(slower, |ssa| ssa.slots_unpromoted = 5);
    assert!(unpromoted.starts_with("5 slots stay in memory, because promotion"), "{unpromoted}");
    assert!(reason(slower, |_| ()).contains("show no cause"));
    let optimised = reason([600, 1_000, 1_000, 1_000, 1_000], |_| ());
    assert!(optimised.starts_with("Cranelift's optimiser"), "{optimised}");
    let variables = reason([1_000, 1_000, 1_000, 600, 1_000], |_| ());
    assert!(variables.contains("in registers in both modes"), "{variables}");
    let text = table::render(&report(vec![program("p", slower)]));
    assert!(text.contains("* p: ssa takes 1.67x the time of memory: "), "{text}");
}

#[test]
fn the_page_is_well_formed_and_escapes_names() {
    let evil = "<script>alert('x')</script>&\u{1b}[1m";
    let mut program = program(evil, [600, 700, 1_000, 1_000, 1_000]);
    program.modes[4].with_less_work = vec![evil.to_owned()];
    let mut report = report(vec![program, program_of_rounds("q", &[5, 6, 7])]);
    report.partial = true;
    let page = html::render(&report);
    assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{page}");
    assert!(!page.contains("http"), "it fetches nothing");
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)") && page.contains("Interrupted"));
    // Elements without an end tag aside, it is XML.
    let xml = page.replace("<!doctype html>", "").replace("utf-8\">", "utf-8\"/>");
    let xml = xml.replace("=1\">", "=1\"/>").replace("dark\">", "dark\"/>");
    let xml = roxmltree::Document::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    let n_bars = xml.descendants().filter(|node| node.tag_name().name() == "rect").count();
    assert_eq!(n_bars, 3 * 4 + 5 * stage_names().len(), "two programs and their mean; five modes");
    let n_tables = xml.descendants().filter(|node| node.tag_name().name() == "table").count();
    assert_eq!(n_tables, 4);
}

#[test]
fn markdown_escapes_names() {
    let text = markdown::render(&report(vec![program("a|<b>", [1; 5])]));
    assert!(text.starts_with("# Memory against registers\n\nCranelift 1.2.3"), "{text}");
    assert!(text.contains("\n## Run time\n") && text.contains(r"| a\|&lt;b> "), "{text}");
}

#[test]
fn an_interrupted_report_may_be_empty() {
    let report = Report { partial: true, ..report(Vec::new()) };
    assert!(table::render(&report).contains("Interrupted"));
    assert!(html::render(&report).contains("Interrupted"));
    assert!(markdown::render(&report).contains("Interrupted"));
    assert!(super::chart::render(&report).unwrap().contains("<svg"));
}
