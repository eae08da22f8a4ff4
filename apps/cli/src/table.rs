//! Tables in plain text.

/// Spaces between columns.
const GAP: usize = 2;

/// Returns the lines of a table: the heads of the columns, then the rows. Each row has a cell for
/// each head.
pub(crate) fn lines(heads: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    let all: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let widths: Vec<usize> = (0..all[0].len())
        .map(|column| {
            let cells = all.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells: String = cells
            .map(|(cell, width)| format!("{cell:<width$}", width = width + GAP))
            .collect();
        cells.trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["long name".to_owned(), "1".to_owned()]];
        let lines = lines(&["NAME", "COUNT"], rows);
        assert_eq!(lines, ["NAME       COUNT", "long name  1"]);
    }
}
