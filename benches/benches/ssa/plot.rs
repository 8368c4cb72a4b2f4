//! Cost against size, both logarithmic: a picture for each family, with a panel for each number of slots
//! and density.

use std::error::Error;

use plotters::prelude::*;

use super::measure::{Cell, Row};

const PANEL_SIZE: (u32, u32) = (420, 340);
const PANEL_COLUMNS: usize = 3;
const LEGEND_WIDTH: u32 = 170;

/// The pictures of all families: names and SVG.
///
/// # Errors
/// Fails if drawing fails.
pub(crate) fn render(
    rows: &[Row],
    contenders: &[String],
) -> Result<Vec<(&'static str, String)>, Box<dyn Error>> {
    let cells: Vec<(&Cell, &Row)> =
        rows.iter().filter_map(|row| row.cell.as_ref().map(|cell| (cell, row))).collect();
    let families = cells.chunk_by(|a, b| a.0.family == b.0.family);
    families.map(|family| Ok((family[0].0.family, draw(family, contenders)?))).collect()
}

fn draw(cells: &[(&Cell, &Row)], contenders: &[String]) -> Result<String, Box<dyn Error>> {
    let series = |cell: &Cell| (cell.n_slots, cell.density.to_bits());
    // A single size shows no growth.
    let panels: Vec<_> =
        cells.chunk_by(|a, b| series(a.0) == series(b.0)).filter(|panel| panel.len() > 1).collect();
    let columns = panels.len().clamp(1, PANEL_COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let width = PANEL_SIZE.0 * columns as u32;
    let mut svg = String::new();
    let size = (width + LEGEND_WIDTH, PANEL_SIZE.1 * rows as u32);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(width);
    for (panel, area) in panels.iter().zip(left.split_evenly((rows, columns))) {
        draw_panel(panel, contenders, &area)?;
    }
    for (i, name) in contenders.iter().enumerate() {
        let y = 40 + 20 * i as i32;
        let style = style(i, contenders.len());
        right.draw(&PathElement::new([(8, y), (32, y)], style))?;
        right.draw(&Text::new(name.clone(), (40, y - 6), ("sans-serif", 13)))?;
    }
    area.present()?;
    drop((left, right, area));
    Ok(svg)
}

/// Promotion, which comes first, is a thick black line; the others have colours that are far apart.
fn style(i: usize, n: usize) -> ShapeStyle {
    match i {
        0 => BLACK.stroke_width(3),
        _ => HSLColor(i as f64 / n as f64, 0.9, if i.is_multiple_of(2) { 0.35 } else { 0.55 })
            .stroke_width(2),
    }
}

fn draw_panel(
    cells: &[(&Cell, &Row)],
    contenders: &[String],
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), Box<dyn Error>> {
    let point = |row: &Row, name: &str| {
        let size = row.n_blocks + row.n_accesses;
        Some((size as f64, (row.figure(name)?.seconds * 1e3).max(1e-6)))
    };
    let points = |name: &str| -> Vec<(f64, f64)> {
        cells.iter().filter_map(|(_, row)| point(row, name)).collect()
    };
    let all: Vec<(f64, f64)> = contenders.iter().flat_map(|name| points(name)).collect();
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (least, most) = all
            .iter()
            .map(of)
            .fold((f64::MAX, 0.0), |(least, most), value| (value.min(least), value.max(most)));
        (least / 2.0..most * 2.0).log_scale()
    };
    if all.is_empty() {
        return Ok(());
    }
    let (cell, _) = cells[0];
    let title = format!("{}, {} slots, density {}", cell.family, cell.n_slots, cell.density);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(60)
        .build_cartesian_2d(range(|point| point.0), range(|point| point.1))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(4)
        .x_label_formatter(&|size| format!("{size:e}"))
        .y_label_formatter(&|ms| format!("{ms:e}"))
        .x_desc("blocks + accesses")
        .y_desc("CPU time, ms")
        .draw()?;
    for (i, name) in contenders.iter().enumerate().rev() {
        let style = style(i, contenders.len());
        chart.draw_series(LineSeries::new(points(name), style).point_size(3))?;
    }
    Ok(())
}
