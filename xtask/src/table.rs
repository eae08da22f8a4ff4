//! Tables for people.

/// Formats `rows` below `head`. The first column is left-aligned, the others right-aligned.
pub(crate) fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = String::new();
    for row in [&head, &rule].into_iter().chain(rows) {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["put".into(), "12".into()],
            vec!["rename".into(), "1".into()],
        ];
        assert_eq!(
            render(&["what", "n"], &rows),
            "what     n\n------  --\nput     12\nrename   1\n"
        );
    }
}
