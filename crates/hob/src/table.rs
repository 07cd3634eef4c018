//! Tables for people: on a terminal as wide as it is, elsewhere as wide as they are.
//!
//! Every text becomes a [`TextCell`] on its way in, where it is escaped: nothing of the network
//! reaches the terminal as it came.

use std::cmp::Ordering;

use hob_load::page::{bytes, count, rate, time_us};
use ratatui::text::Span;

use crate::escape;

/// What stands for what is not known.
pub(crate) const UNKNOWN: &str = "-";
/// Between columns.
const GAP: usize = 2;
/// A column that has to give room keeps this much.
const COLUMN_WIDTH_MIN: usize = 8;

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellAlignment {
    Left,
    Right,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    side: CellAlignment,
    /// What is too long for the screen is cut here.
    gives: bool,
}

/// A column of words.
pub(crate) const fn words(name: &'static str) -> Column {
    let side = CellAlignment::Left;
    Column {
        name,
        side,
        gives: false,
    }
}

/// A column of texts of any length, which are cut where there is no room.
pub(crate) const fn texts(name: &'static str) -> Column {
    let side = CellAlignment::Left;
    Column {
        name,
        side,
        gives: true,
    }
}

/// A column of numbers.
pub(crate) const fn numbers(name: &'static str) -> Column {
    let side = CellAlignment::Right;
    Column {
        name,
        side,
        gives: false,
    }
}

/// What rows are sorted by.
#[derive(Debug, Clone, PartialEq)]
enum CellSortKey {
    Unknown,
    Number(f64),
    Text(String),
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextCell {
    text: String,
    key: CellSortKey,
}

impl TextCell {
    /// A text, of anybody.
    pub(crate) fn text(text: Option<&str>) -> TextCell {
        match text {
            None => TextCell::unknown(),
            Some(text) => TextCell {
                key: CellSortKey::Text(text.to_lowercase()),
                text: escape::line(text).into_owned(),
            },
        }
    }

    /// A count.
    pub(crate) fn count(value: Option<u64>) -> TextCell {
        TextCell::number(value.map(|value| value as f64), |_| {
            count(value.unwrap_or(0))
        })
    }

    /// A rate.
    pub(crate) fn rate(value: Option<f64>) -> TextCell {
        TextCell::number(value, rate)
    }

    /// Microseconds.
    pub(crate) fn us(value: Option<u64>) -> TextCell {
        TextCell::number(value.map(|value| value as f64), time_us)
    }

    /// A number of bytes.
    pub(crate) fn bytes(value: Option<u64>) -> TextCell {
        TextCell::number(value.map(|value| value as f64), bytes)
    }

    /// Seconds, as an age.
    pub(crate) fn age(value: Option<u64>) -> TextCell {
        TextCell::number(value.map(|value| value as f64), |value| age(value as u64))
    }

    /// A number as somebody writes it.
    pub(crate) fn number(value: Option<f64>, written: impl FnOnce(f64) -> String) -> TextCell {
        match value {
            None => TextCell::unknown(),
            Some(value) => TextCell {
                text: written(value),
                key: CellSortKey::Number(value),
            },
        }
    }

    fn unknown() -> TextCell {
        TextCell {
            text: UNKNOWN.to_owned(),
            key: CellSortKey::Unknown,
        }
    }

    /// As it is shown.
    pub(crate) fn shown(&self) -> &str {
        &self.text
    }

    /// The order of two cells of a column; what is not known is last, whichever way it is sorted.
    pub(crate) fn order(&self, other: &TextCell, is_falling: bool) -> Ordering {
        let order = match (&self.key, &other.key) {
            (CellSortKey::Unknown, CellSortKey::Unknown) => return Ordering::Equal,
            (CellSortKey::Unknown, _) => return Ordering::Greater,
            (_, CellSortKey::Unknown) => return Ordering::Less,
            (CellSortKey::Number(one), CellSortKey::Number(other)) => one.total_cmp(other),
            (CellSortKey::Text(one), CellSortKey::Text(other)) => one.cmp(other),
            (CellSortKey::Number(_), CellSortKey::Text(_)) => Ordering::Less,
            (CellSortKey::Text(_), CellSortKey::Number(_)) => Ordering::Greater,
        };
        if is_falling { order.reverse() } else { order }
    }
}

/// Rows below their columns' names.
#[derive(Debug, Clone)]
pub(crate) struct TextTable {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<TextCell>>,
}

impl TextTable {
    pub(crate) fn new(columns: &[Column]) -> TextTable {
        TextTable {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, which has a cell for every column.
    pub(crate) fn push(&mut self, row: Vec<TextCell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// The widths of the columns: as wide as their cells, less where all are too wide together.
    pub(crate) fn widths(&self, width: Option<usize>) -> Vec<usize> {
        self.widths_from(&[], width)
    }

    /// The same for columns that are already so wide: they get no narrower for rows that follow.
    pub(crate) fn widths_from(&self, least: &[usize], width: Option<usize>) -> Vec<usize> {
        let names = self.columns.iter().map(|column| columns_of(column.name));
        let least = least.iter().copied().chain(std::iter::repeat(0));
        let mut widths: Vec<usize> = names
            .zip(least)
            .map(|(own, least)| own.max(least))
            .collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(columns_of(&cell.text));
            }
        }
        let Some(width) = width else { return widths };
        let gaps = GAP * widths.len().saturating_sub(1);
        let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        // The last gives first: what is said of a request is longer than where it was.
        for (own, column) in widths.iter_mut().zip(&self.columns).rev() {
            if column.gives {
                let given = over.min(own.saturating_sub(COLUMN_WIDTH_MIN));
                *own -= given;
                over -= given;
            }
        }
        widths
    }

    /// The columns' names as a line.
    pub(crate) fn heading(&self, widths: &[usize]) -> String {
        let names = self.columns.iter().map(|column| column.name);
        line(names, &self.columns, widths)
    }

    /// A row as a line.
    pub(crate) fn row(&self, index: usize, widths: &[usize]) -> String {
        let cells = self.rows[index].iter().map(TextCell::shown);
        line(cells, &self.columns, widths)
    }

    /// All of it, a line each; as wide as a terminal, if it is for one.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let mut text = self.heading(&widths);
        text.push('\n');
        for index in 0..self.rows.len() {
            text.push_str(&self.row(index, &widths));
            text.push('\n');
        }
        text
    }
}

fn line<'a>(cells: impl Iterator<Item = &'a str>, columns: &[Column], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, ((cell, column), width)) in cells.zip(columns).zip(widths).enumerate() {
        if index > 0 {
            line.push_str(&" ".repeat(GAP));
        }
        let cell = cut(cell, *width);
        let room = " ".repeat(width.saturating_sub(columns_of(&cell)));
        match column.side {
            CellAlignment::Left => line.extend([cell.as_str(), &room]),
            CellAlignment::Right => line.extend([room.as_str(), &cell]),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// How many columns of a terminal a text takes.
pub(crate) fn columns_of(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => Span::raw(text).width(),
    }
}

/// A text that is no wider; `~` stands where something is left out.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut wide = 0;
    for one in text.chars() {
        wide += columns_of(one.encode_utf8(&mut [0; 4]));
        if wide + 1 > width {
            break;
        }
        cut.push(one);
    }
    cut.push('~');
    cut
}

/// An age in two units at most: `3 d 4 h`, `5 m 6 s`.
pub(crate) fn age(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let first = UNITS.iter().position(|(size, _)| seconds >= *size);
    let Some(first) = first else {
        return "0 s".to_owned();
    };
    let (size, unit) = UNITS[first];
    let text = format!("{} {unit}", seconds / size);
    let next = UNITS.get(first + 1);
    match next.map(|(smaller, name)| (seconds % size / smaller, name)) {
        None | Some((0, _)) => text,
        Some((rest, name)) => format!("{text} {rest} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table = TextTable::new(&[words("ID"), numbers("TIME"), texts("REQUEST")]);
        table.push(vec![
            TextCell::text(Some("1.2.3")),
            TextCell::us(Some(1234)),
            TextCell::text(Some("GET /a/long/path\x1b[2J")),
        ]);
        table.push(vec![
            TextCell::text(Some("1.2.30")),
            TextCell::us(None),
            TextCell::text(Some("GET /日本")),
        ]);
        table
    }

    #[test]
    fn cells_stand_below_each_other_and_are_cut_where_there_is_no_room() {
        assert_eq!(
            table().text(None),
            "ID         TIME  REQUEST\n\
             1.2.3   1.23 ms  GET /a/long/path\\x1b[2J\n\
             1.2.30        -  GET /日本\n"
        );
        assert_eq!(
            table().text(Some(26)),
            "ID         TIME  REQUEST\n\
             1.2.3   1.23 ms  GET /a/l~\n\
             1.2.30        -  GET /日本\n"
        );
        assert_eq!(cut("日本語", 4), "日~");
        assert_eq!(cut("abc", 3), "abc");
    }

    #[test]
    fn what_is_not_known_comes_last_either_way() {
        let cells = [None, Some(1), Some(2)].map(TextCell::count);
        assert_eq!(cells[1].order(&cells[2], false), Ordering::Less);
        assert_eq!(cells[1].order(&cells[2], true), Ordering::Greater);
        for is_falling in [false, true] {
            assert_eq!(cells[0].order(&cells[1], is_falling), Ordering::Greater);
        }
    }

    #[test]
    fn ages_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 m"),
            (3_725, "1 h 2 m"),
            (86_400 * 3 + 4 * 3_600, "3 d 4 h"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }
}
