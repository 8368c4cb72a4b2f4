//! Tables of reports, in Markdown, so that they can be copied into documents.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// A table without rows: `n_names` left-aligned columns of names, and right-aligned columns of figures.
pub fn table<T: Into<Cell>>(n_names: usize, headers: impl IntoIterator<Item = T>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(headers.into_iter().map(Into::into).collect::<Vec<Cell>>());
    for column in table.column_iter_mut().skip(n_names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_at_the_right() {
        let mut table = table(1, ["name", "figure"]);
        table.add_row(["a", "1"]);
        assert_eq!(table.to_string().lines().next_back(), Some("| a    |      1 |"));
    }
}
