//! Certificates that come from an authority.

use crate::escape;
use crate::facts::Facts;
use crate::table::{Cell, Table, texts, words};

/// A row for each, and below it what went wrong.
pub(crate) fn text(certificates: Facts<'_>, width: Option<usize>) -> String {
    let all: Vec<Facts<'_>> = certificates.each_item().collect();
    if all.is_empty() {
        return "no certificate comes from an authority\n".to_owned();
    }
    let mut table = Table::new(&[
        texts("NAMES"),
        words("STATE"),
        words("UNTIL"),
        words("NEXT TRY"),
        words("PROVED BY"),
    ]);
    for one in &all {
        table.push(vec![
            Cell::text(one.texts("names").as_deref()),
            Cell::text(one.text("state")),
            Cell::text(one.text("until")),
            Cell::text(one.text("next_try")),
            Cell::text(one.text("challenge")),
        ]);
    }
    let widths = table.widths(width);
    let mut text = table.heading(&widths) + "\n";
    for (index, one) in all.iter().enumerate() {
        text.push_str(&table.row(index, &widths));
        text.push('\n');
        if let Some(error) = one.text("error") {
            text.push_str(&format!("  {}\n", escape::line(error)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn certificates_are_rows_with_what_went_wrong() {
        let all = json!([
            {
                "names": ["a.example", "b.example"], "state": "failed", "until": null,
                "next_try": "2027-01-15 08:00 UTC", "challenge": "http-01",
                "error": "no answer\nfrom it",
            },
        ]);
        assert_eq!(
            text(Facts(&all), None),
            "NAMES                 STATE   UNTIL  NEXT TRY              PROVED BY\n\
             a.example, b.example  failed  -      2027-01-15 08:00 UTC  http-01\n  \
             no answer\\nfrom it\n"
        );
        assert_eq!(
            text(Facts(&json!([])), None),
            "no certificate comes from an authority\n"
        );
    }
}
