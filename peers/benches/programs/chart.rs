//! The geometric means as an SVG: a point for each contender of each suite, with its confidence interval.

use std::error::Error;

use plotters::prelude::*;

use crate::Measured;
use crate::report::{Phase, cell, ratios};
use slotvm_peers::stats::Estimate;

/// Ratios beyond these are left out: interpreters would make the rest too small to read.
const RATIO_MIN: f64 = 0.2;
const RATIO_MAX: f64 = 2.0;
/// The place of the figures, right of the points.
const FIGURES: f64 = 2.04;
/// End of the axis, right of the figures.
const END: f64 = 2.4;

const ROW_HEIGHT: u32 = 20;

/// A line of the chart.
enum Line {
    Suite(&'static str),
    Contender(&'static str, Estimate),
}

/// Draws the chart.
///
/// # Errors
/// Fails if drawing fails.
pub(crate) fn render(measured: &[Measured]) -> Result<String, Box<dyn Error>> {
    let lines: Vec<Line> = measured.iter().flat_map(lines_of).collect();
    let mut svg = String::new();
    draw(&mut svg, &lines)?;
    Ok(svg)
}

fn lines_of(measured: &Measured) -> Vec<Line> {
    let mut lines = vec![Line::Suite(measured.suite.title)];
    for (i, &name) in measured.engines.iter().enumerate().skip(1) {
        let estimate = Estimate::mean(&ratios(Phase::Run, i, &measured.rows));
        if (RATIO_MIN..RATIO_MAX).contains(&estimate.ratio) {
            lines.push(Line::Contender(name, estimate));
        }
    }
    lines
}

fn draw(svg: &mut String, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let n = lines.len();
    let area = SVGBackend::with_string(svg, (900, 90 + ROW_HEIGHT * n as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("time of slotvm divided by that of others", ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(190)
        .build_cartesian_2d(RATIO_MIN..END, (0..n - 1).into_segmented())?;
    // The first line is at the top.
    let label = |row: &SegmentValue<usize>| match row {
        SegmentValue::CenterOf(row) if *row < n => match &lines[n - 1 - row] {
            Line::Suite(title) => (*title).to_owned(),
            Line::Contender(name, _) => (*name).to_owned(),
        },
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(n)
        .y_label_formatter(&label)
        .x_desc("geometric mean over programs; below 1, slotvm is faster")
        .draw()?;
    let base = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Exact(n))];
    chart.draw_series([PathElement::new(base, BLACK)])?;
    for (i, line) in lines.iter().enumerate() {
        let row = n - 1 - i;
        let Line::Contender(_, estimate) = line else {
            let ends = [RATIO_MIN, END].map(|x| (x, SegmentValue::Exact(row + 1)));
            chart.draw_series([PathElement::new(ends, BLACK.mix(0.3))])?;
            continue;
        };
        let colour = RGBColor(33, 102, 172);
        if let Some((low, high)) = estimate.interval {
            let ends = [low.max(RATIO_MIN), high.min(RATIO_MAX)];
            let ends = ends.map(|x| (x, SegmentValue::CenterOf(row)));
            chart.draw_series([PathElement::new(ends, colour.stroke_width(2))])?;
        }
        let place = (estimate.ratio, SegmentValue::CenterOf(row));
        chart.draw_series([Circle::new(place, 4, colour.filled())])?;
        let figures = Text::new(cell(*estimate), (0, -7), ("sans-serif", 13));
        let beside = EmptyElement::at((FIGURES, SegmentValue::CenterOf(row))) + figures;
        chart.draw_series([beside])?;
    }
    area.present()?;
    Ok(())
}
