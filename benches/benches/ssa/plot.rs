//! Cost against size, both logarithmic: a picture for each family, with a panel for each number of slots
//! and density.

use std::error::Error;

use plotters::prelude::*;

use super::measure::{Cell, Row};

const PANEL_SIZE: (u32, u32) = (420, 360);

/// The pictures of all families: names and SVG.
///
/// # Errors
/// If drawing fails.
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
    let panels: Vec<_> = cells.chunk_by(|a, b| series(a.0) == series(b.0)).collect();
    let mut svg = String::new();
    let size = (PANEL_SIZE.0 * panels.len() as u32, PANEL_SIZE.1);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, area) in panels.iter().zip(area.split_evenly((1, panels.len()))) {
        draw_panel(panel, contenders, &area)?;
    }
    area.present()?;
    drop(area);
    Ok(svg)
}

fn draw_panel(
    cells: &[(&Cell, &Row)],
    contenders: &[String],
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), Box<dyn Error>> {
    let point = |row: &Row, name: &str| {
        Some((row.size(name)? as f64, (row.figure(name)?.seconds * 1e3).max(1e-6)))
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
        .y_label_area_size(52)
        .build_cartesian_2d(range(|point| point.0), range(|point| point.1))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("blocks + accesses + phis")
        .y_desc("CPU time, ms")
        .draw()?;
    for (i, name) in contenders.iter().enumerate() {
        let colour = Palette99::pick(i).to_rgba();
        chart
            .draw_series(LineSeries::new(points(name), colour.stroke_width(2)).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(("sans-serif", 10))
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}
