//! Tables: a caption, columns of text or numbers, and marks.

use super::document::Tone;
use super::escape::escaped;

/// Rows that a table shows; what is more is counted below it.
const ROW_COUNT_MAX: usize = 2000;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Text,
    Number,
    Mark,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageCell {
    text: String,
    tone: Tone,
    small: String,
}

impl PageCell {
    /// A cell with a text.
    pub fn new(text: impl Into<String>) -> PageCell {
        PageCell {
            text: text.into(),
            ..PageCell::default()
        }
    }

    /// Good, bad or doubtful: with a sign and a colour.
    pub fn tone(mut self, tone: Tone) -> PageCell {
        self.tone = tone;
        self
    }

    /// What stands small below it: an interval, where a figure is from.
    pub fn small(mut self, text: impl Into<String>) -> PageCell {
        self.small = text.into();
        self
    }
}

impl From<&str> for PageCell {
    fn from(text: &str) -> PageCell {
        PageCell::new(text)
    }
}

impl From<String> for PageCell {
    fn from(text: String) -> PageCell {
        PageCell::new(text)
    }
}

/// A table. Columns come first, then rows; a row of too few cells is filled up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageTable {
    caption: String,
    columns: Vec<(String, ColumnKind)>,
    rows: Vec<Vec<PageCell>>,
    notes: Vec<String>,
}

impl PageTable {
    /// A table without columns yet.
    pub fn new(caption: impl Into<String>) -> PageTable {
        PageTable {
            caption: caption.into(),
            ..PageTable::default()
        }
    }

    /// A column of text. The first column names its row.
    pub fn text(self, title: impl Into<String>) -> PageTable {
        self.column(title, ColumnKind::Text)
    }

    /// A column of numbers, set to the right.
    pub fn number(self, title: impl Into<String>) -> PageTable {
        self.column(title, ColumnKind::Number)
    }

    /// A narrow column of marks: ids, short words, signs.
    pub fn mark(self, title: impl Into<String>) -> PageTable {
        self.column(title, ColumnKind::Mark)
    }

    fn column(mut self, title: impl Into<String>, kind: ColumnKind) -> PageTable {
        self.columns.push((title.into(), kind));
        self
    }

    /// One row more.
    pub fn row<C: Into<PageCell>>(mut self, cells: impl IntoIterator<Item = C>) -> PageTable {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// What is to be known about it, below the table.
    pub fn note(mut self, text: impl Into<String>) -> PageTable {
        self.notes.push(text.into());
        self
    }

    /// Has it no rows?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn write(&self, html: &mut String) {
        html.push_str("<div class=\"table\" tabindex=\"0\"><table>\n<caption>");
        html.push_str(&escaped(&self.caption));
        html.push_str("</caption>\n<thead><tr>");
        for (title, kind) in &self.columns {
            let class = class_of(*kind, Tone::Plain);
            html.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escaped(title)));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in self.rows.iter().take(ROW_COUNT_MAX) {
            self.write_row(html, row);
        }
        html.push_str("</tbody></table></div>\n");
        for note in &self.notes {
            html.push_str(&format!("<p class=\"note\">{}</p>\n", escaped(note)));
        }
        let more = self.rows.len().saturating_sub(ROW_COUNT_MAX);
        if more > 0 {
            html.push_str(&format!("<p class=\"note\">... and {more} rows more</p>\n"));
        }
    }

    fn write_row(&self, html: &mut String, row: &[PageCell]) {
        html.push_str("<tr>");
        let empty = PageCell::default();
        for (index, (_, kind)) in self.columns.iter().enumerate() {
            let cell = row.get(index).unwrap_or(&empty);
            let class = class_of(*kind, cell.tone);
            let (open, close) = match index {
                0 => (format!("<th scope=\"row\"{class}>"), "</th>"),
                _ => (format!("<td{class}>"), "</td>"),
            };
            html.push_str(&open);
            html.push_str(cell.tone.sign());
            html.push_str(&escaped(&cell.text));
            if !cell.small.is_empty() {
                html.push_str(&format!("<small>{}</small>", escaped(&cell.small)));
            }
            html.push_str(close);
        }
        html.push_str("</tr>\n");
    }
}

fn class_of(kind: ColumnKind, tone: Tone) -> String {
    let kind = match kind {
        ColumnKind::Text => "",
        ColumnKind::Number => "number",
        ColumnKind::Mark => "mark",
    };
    let all: Vec<&str> = [kind, tone.class()]
        .into_iter()
        .filter(|class| !class.is_empty())
        .collect();
    if all.is_empty() {
        return String::new();
    }
    format!(" class=\"{}\"", all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_says_what_its_cells_are() {
        let table = PageTable::new("a & b")
            .text("what")
            .number("<n>")
            .row([
                PageCell::new("x"),
                PageCell::new("1").tone(Tone::Bad).small("± 2"),
            ])
            .row(["y"])
            .note("all");
        let mut html = String::new();
        table.write(&mut html);
        assert!(html.contains("<caption>a &amp; b</caption>"), "{html}");
        assert!(
            html.contains("<th scope=\"col\" class=\"number\">&lt;n&gt;</th>"),
            "{html}"
        );
        assert!(html.contains("<th scope=\"row\">x</th>"), "{html}");
        assert!(html.contains("1<small>± 2</small></td>"), "{html}");
        assert!(
            html.contains("<th scope=\"row\">y</th><td class=\"number\"></td>"),
            "{html}"
        );
        assert!(html.contains("<p class=\"note\">all</p>"), "{html}");
    }
}
