//! Figures as people read them.

/// A time given in microseconds, with three digits that mean something.
pub(crate) fn time(us: f64) -> String {
    let (value, unit) = match us.abs() {
        us if us < 999.5 => (1.0, "us"),
        us if us < 999_500.0 => (1e3, "ms"),
        _ => (1e6, "s"),
    };
    let value = us / value;
    let digits = match value.abs() {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A whole number in groups of three.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

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
    fn figures_read_well() {
        assert_eq!(time(1.234), "1.23 us");
        assert_eq!(time(-12.34), "-12.3 us");
        assert_eq!(time(999.6), "1.00 ms");
        assert_eq!(time(11_000.0), "11.0 ms");
        assert_eq!(time(2e6), "2.00 s");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        let rows = [["a", "bc", "d"], ["aaa", "b", "dd"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            columns(&rows, &[true, false, true]),
            "a    bc  d\naaa   b  dd\n"
        );
    }
}
