//! Figures in columns, for a terminal.

/// Lines of equal columns, each aligned to the left or to the right.
pub(crate) fn columns(rows: &[Vec<String>], is_left: &[bool]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            if column > 0 {
                line.push_str("  ");
            }
            line.push_str(&match is_left.get(column).copied().unwrap_or(false) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bc", "d"], ["aaa", "b", "dd"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            columns(&rows, &[true, false, true]),
            "a    bc  d\naaa   b  dd\n"
        );
    }
}
