//! The report as an SVG bar chart: how many times the time of `ssa` each other mode takes.

use std::error::Error;

use plotters::prelude::*;

use super::{Report, other_modes};

const COLOURS: [RGBColor; 4] = [
    RGBColor(178, 24, 43),
    RGBColor(244, 165, 130),
    RGBColor(146, 197, 222),
    RGBColor(33, 102, 172),
];

/// Draws the chart.
///
/// # Errors
/// Fails if drawing fails.
pub fn render(report: &Report) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    let groups: Vec<(&str, Vec<f64>)> = report
        .programs
        .iter()
        .map(|p| (p.name.as_str(), other_modes().map(|mode| p.ratio(mode).value).collect()))
        .chain([("geometric mean", report.mean_ratios.iter().map(|m| m.ratio.value).collect())])
        // Without programs there is no mean either.
        .filter(|(_, ratios): &(&str, Vec<f64>)| !ratios.is_empty())
        .collect();
    draw(&mut svg, report, &groups)?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    report: &Report,
    groups: &[(&str, Vec<f64>)],
) -> Result<(), Box<dyn Error>> {
    let n_modes = other_modes().count();
    // One row of each group stays empty, to set it apart.
    let rows_per_group = n_modes + 1;
    let n_rows = (groups.len() * rows_per_group).max(1);
    let largest = groups.iter().flat_map(|(_, ratios)| ratios).fold(1.0f64, |a, &b| a.max(b));
    let area = SVGBackend::with_string(svg, (900, 90 + 11 * n_rows as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let title =
        format!("time divided by that of ssa (Cranelift {}, {})", report.cranelift, report.target);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(140)
        .build_cartesian_2d(0f64..largest * 1.05, (0..n_rows).into_segmented())?;
    let group_name = |row: &SegmentValue<usize>| match row {
        SegmentValue::CenterOf(row) if row % rows_per_group == n_modes / 2 => {
            groups[groups.len() - 1 - row / rows_per_group].0.to_owned()
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(n_rows)
        .y_label_formatter(&group_name)
        .x_desc("times the time of ssa")
        .draw()?;
    for (m, (mode, colour)) in other_modes().zip(COLOURS).enumerate() {
        let bars = groups.iter().enumerate().map(|(g, (_, ratios))| {
            // The first group and the first mode are at the top.
            let row = (groups.len() - 1 - g) * rows_per_group + (n_modes - 1 - m);
            let corners =
                [(0.0, SegmentValue::Exact(row)), (ratios[m], SegmentValue::Exact(row + 1))];
            Rectangle::new(corners, colour.filled())
        });
        chart
            .draw_series(bars)?
            .label(mode.name())
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
    }
    let base = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Exact(n_rows))];
    chart.draw_series([PathElement::new(base, BLACK)])?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
