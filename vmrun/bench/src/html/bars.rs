//! The drawings of the page, as SVG. Colours are those of the style sheet.

use std::fmt::Write as _;

use slotvm::SlotMode;

use super::escape;
use super::tables::grouped;
use crate::statistics::Estimate;
use crate::{Report, other_modes, stage_names};

/// Widths and heights in units of the drawing, which are pixels at full size.
const WIDTH: f64 = 960.0;
const NAMES_WIDTH: f64 = 170.0;
/// Room at the right for the figure after the longest bar.
const FIGURES_WIDTH: f64 = 110.0;
/// The width of a figure itself.
const FIGURE_WIDTH: f64 = 36.0;
const BAR_HEIGHT: f64 = 11.0;
const GROUP_GAP: f64 = 10.0;
const AXIS_HEIGHT: f64 = 24.0;

/// A name on at most so many characters, so that it fits beside the bars.
fn shortened(name: &str) -> String {
    /// Characters of a name.
    const CHARS_MAX: usize = 22;
    match name.chars().count() > CHARS_MAX {
        true => name.chars().take(CHARS_MAX - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn legend(names: impl Iterator<Item = &'static str>, class: &str) -> String {
    let item = |(i, name)| format!("<li><span class=\"key {class}{i}\"></span>{name}</li>");
    let items: String = names.enumerate().map(item).collect();
    format!("<ul class=\"legend\">{items}</ul>\n")
}

/// A group of bars for each program, one for each mode besides `ssa`.
pub(super) fn ratios(report: &Report) -> String {
    let programs = report.programs.iter();
    let of_program = programs.map(|program| {
        let ratios = other_modes().map(|mode| program.ratio(mode)).collect::<Vec<_>>();
        (program.name.as_str(), ratios)
    });
    let means = report.mean_ratios.iter().map(|mean| mean.ratio).collect::<Vec<_>>();
    let groups: Vec<_> = [("geometric mean", means)].into_iter().chain(of_program).collect();
    let ends = groups.iter().flat_map(|(_, ratios)| ratios);
    let ends = ends
        .map(|ratio| ratio.interval.map_or(ratio.value, |[_, high]| high.min(2.0 * ratio.value)));
    let largest = ends.fold(1.2, f64::max);
    let scale = (WIDTH - NAMES_WIDTH - FIGURES_WIDTH) / largest;
    let group_height = other_modes().count() as f64 * BAR_HEIGHT + GROUP_GAP;
    let height = AXIS_HEIGHT + groups.len() as f64 * group_height;

    let mut svg = String::new();
    axis(&mut svg, scale, largest, height);
    for (i, (name, ratios)) in groups.iter().enumerate() {
        let top = AXIS_HEIGHT + i as f64 * group_height + GROUP_GAP / 2.0;
        let middle = top + ratios.len() as f64 * BAR_HEIGHT / 2.0;
        push(
            &mut svg,
            format_args!(
                "<text class=\"name\" x=\"{:.1}\" y=\"{middle:.1}\"><title>{}</title>{}</text>\n",
                NAMES_WIDTH - 8.0,
                escape(name),
                escape(&shortened(name))
            ),
        );
        for (mode, &ratio) in ratios.iter().enumerate() {
            bar(&mut svg, mode, ratio, top + mode as f64 * BAR_HEIGHT, scale);
        }
    }
    line(&mut svg, "base", NAMES_WIDTH + scale, AXIS_HEIGHT, height);
    let modes = other_modes().map(SlotMode::name);
    legend(modes, "m")
        + &drawing("Bars of the time in each mode, divided by the time in mode ssa", height, &svg)
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes it");
}

fn drawing(label: &str, height: f64, content: &str) -> String {
    format!(
        "<div class=\"drawing\">\n<svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\">\n\
         {content}</svg>\n</div>\n"
    )
}

fn line(svg: &mut String, class: &str, x: f64, top: f64, bottom: f64) {
    push(
        svg,
        format_args!(
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>\n"
        ),
    );
}

/// Whole numbers, as many as fit.
fn axis(svg: &mut String, scale: f64, largest: f64, height: f64) {
    const APART_MIN: f64 = 40.0;
    let step = (APART_MIN / scale).ceil().max(1.0);
    let mut at = 0.0;
    while at <= largest {
        let x = NAMES_WIDTH + at * scale;
        line(svg, "grid", x, AXIS_HEIGHT, height);
        push(svg, format_args!("<text class=\"tick\" x=\"{x:.1}\" y=\"14\">{at:.0}x</text>\n"));
        at += step;
    }
}

fn bar(svg: &mut String, mode: usize, ratio: Estimate, top: f64, scale: f64) {
    let (length, height) = (ratio.value * scale, BAR_HEIGHT - 1.5);
    push(
        svg,
        format_args!(
            "<rect class=\"m{mode}\" x=\"{NAMES_WIDTH}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{height}\"/>\n"
        ),
    );
    let middle = top + height / 2.0;
    let mut end = length;
    if let Some([low, high]) = ratio.interval {
        let (from, to) = (NAMES_WIDTH + low * scale, (NAMES_WIDTH + high * scale).min(WIDTH));
        end = end.max(to - NAMES_WIDTH);
        push(
            svg,
            format_args!(
                "<line class=\"interval\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\n"
            ),
        );
    }
    // A figure is not written across the line at 1.
    if (scale - FIGURE_WIDTH..scale).contains(&end) {
        end = scale;
    }
    push(
        svg,
        format_args!(
            "<text class=\"figure\" x=\"{:.1}\" y=\"{middle:.1}\">{:.2}x</text>\n",
            NAMES_WIDTH + end + 5.0,
            ratio.value
        ),
    );
}

/// A bar for each mode: the sums of the stages of all programs, one after the other.
pub(super) fn stages(report: &Report) -> String {
    const ROW_HEIGHT: f64 = 26.0;
    let sums: Vec<(SlotMode, Vec<u64>)> = SlotMode::ALL
        .into_iter()
        .map(|mode| {
            let sum =
                |stage: usize| report.programs.iter().map(|p| p.mode(mode).stages_ns[stage]).sum();
            (mode, (0..stage_names().len()).map(sum).collect())
        })
        .collect();
    let total = |stages: &[u64]| stages.iter().sum::<u64>();
    let largest = sums.iter().map(|(_, stages)| total(stages)).max().unwrap_or(0).max(1);
    let scale = (WIDTH - NAMES_WIDTH - FIGURES_WIDTH) / largest as f64;
    let mut svg = String::new();
    for (row, (mode, stages)) in sums.iter().enumerate() {
        let top = row as f64 * ROW_HEIGHT + 4.0;
        let middle = top + ROW_HEIGHT / 2.0 - 4.0;
        push(
            &mut svg,
            format_args!(
                "<text class=\"name\" x=\"{:.1}\" y=\"{middle:.1}\">{mode}</text>\n",
                NAMES_WIDTH - 8.0
            ),
        );
        let mut x = NAMES_WIDTH;
        for (i, (&ns, name)) in stages.iter().zip(stage_names()).enumerate() {
            let width = ns as f64 * scale;
            push(
                &mut svg,
                format_args!(
                    "<rect class=\"s{}\" x=\"{x:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{:.1}\">\
                 <title>{name}: {} µs</title></rect>\n",
                    i,
                    ROW_HEIGHT - 8.0,
                    grouped(ns / 1000)
                ),
            );
            x += width;
        }
        push(
            &mut svg,
            format_args!(
                "<text class=\"figure\" x=\"{:.1}\" y=\"{middle:.1}\">{} µs</text>\n",
                x + 5.0,
                grouped(total(stages) / 1000)
            ),
        );
    }
    let height = sums.len() as f64 * ROW_HEIGHT + 4.0;
    legend(stage_names().into_iter(), "s")
        + &drawing("Bars of the compile time in each mode, by stage", height, &svg)
}
