//! Finished requests as rows of a table, with a line below each of which there is more to say.

use super::{asked, client, clock, remark};
use crate::facts::JsonView;
use crate::table::{TextCell, TextTable, numbers, texts, words};

/// From this width on there is room for more columns.
const WIDE: usize = 100;

/// The requests as a table.
pub(super) fn table<'a>(
    requests: impl Iterator<Item = JsonView<'a>>,
    width: Option<usize>,
) -> TextTable {
    let is_wide = is_wide(width);
    let mut columns = vec![
        words("TIME"),
        words("ID"),
        texts("CLIENT"),
        numbers("STATUS"),
        numbers("TOTAL"),
    ];
    if is_wide {
        columns.extend([numbers("SENT"), words("HANDLER"), words("SITE")]);
    }
    columns.push(texts("REQUEST"));
    let mut table = TextTable::new(&columns);
    requests.for_each(|request| table.push(row(request, is_wide)));
    table
}

fn is_wide(width: Option<usize>) -> bool {
    width.is_none_or(|width| width >= WIDE)
}

fn row(request: JsonView<'_>, is_wide: bool) -> Vec<TextCell> {
    let status = request.count("status").map(|status| status.to_string());
    let mut row = vec![
        TextCell::text(request.count("started_unix_ms").map(clock).as_deref()),
        TextCell::text(request.text("id")),
        TextCell::text(client(request)),
        TextCell::text(status.as_deref()),
        TextCell::us(request.count("total_us")),
    ];
    if is_wide {
        let head = request.count("head_bytes_out").unwrap_or(0);
        let sent = request.count("body_bytes_out").map(|body| body + head);
        row.push(TextCell::bytes(sent));
        row.push(TextCell::text(request.text("handler")));
        row.push(TextCell::text(request.text("site")));
    }
    row.push(TextCell::text(Some(&asked(request))));
    row
}

/// The rows as lines, each with what there is to say below it.
pub(super) fn lines<'a>(
    table: &TextTable,
    requests: impl Iterator<Item = JsonView<'a>>,
    widths: &[usize],
) -> String {
    let mut text = String::new();
    for (index, request) in requests.enumerate() {
        text.push_str(&table.row(index, widths));
        text.push('\n');
        if let Some(remark) = remark(request) {
            text.push_str(&format!("          {remark}\n"));
        }
    }
    text
}

/// Widths for rows that are still to come: those that most of them have room in.
pub(super) fn usual_widths(table: &TextTable, width: Option<usize>) -> Vec<usize> {
    let mut least = vec![8, 7, 15, 6, 7];
    if is_wide(width) {
        least.extend([7, 8, 9]);
    }
    least.push(20);
    table.widths_from(&least, width)
}
