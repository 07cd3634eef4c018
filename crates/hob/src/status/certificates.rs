//! Certificates: those that come from an authority, and all that are served.

use crate::escape;
use crate::facts::JsonView;
use crate::history::moment;
use crate::table::{TextCell, TextTable, numbers, texts, words};

/// A row for each, and below it what went wrong.
pub(crate) fn text(certificates: JsonView<'_>, width: Option<usize>) -> String {
    let all: Vec<JsonView<'_>> = certificates.each_item().collect();
    if all.is_empty() {
        return "no certificate comes from an authority\n".to_owned();
    }
    let mut table = TextTable::new(&[
        texts("NAMES"),
        words("STATE"),
        words("UNTIL"),
        words("NEXT TRY"),
        words("PROVED BY"),
    ]);
    for one in &all {
        table.push(vec![
            TextCell::text(one.texts("names").as_deref()),
            TextCell::text(one.text("state")),
            TextCell::text(one.text("until")),
            TextCell::text(one.text("next_try")),
            TextCell::text(one.text("challenge")),
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

/// Those that listeners show, whoever they are of.
pub(crate) fn served(told: JsonView<'_>, width: Option<usize>) -> String {
    let mut table = TextTable::new(&[
        texts("SERVED FOR"),
        words("STATE"),
        numbers("DAYS LEFT"),
        words("UNTIL"),
        words("LISTENER"),
        texts("ISSUER"),
        texts("FROM"),
    ]);
    for one in told.each("certificates") {
        let until = one.count("not_after_unix_s");
        let until = until.map(|seconds| moment(seconds.saturating_mul(1000)));
        table.push(vec![
            TextCell::text(one.texts("names").as_deref()),
            TextCell::text(one.text("state")),
            TextCell::number(one.number("days_left"), |days| format!("{days:.0}")),
            TextCell::text(until.as_deref()),
            TextCell::text(one.text("listener")),
            TextCell::text(one.text("issuer").filter(|issuer| !issuer.is_empty())),
            TextCell::text(one.text("source")),
        ]);
    }
    match table.rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", table.text(width)),
    }
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
            text(JsonView(&all), None),
            "NAMES                 STATE   UNTIL  NEXT TRY              PROVED BY\n\
             a.example, b.example  failed  -      2027-01-15 08:00 UTC  http-01\n  \
             no answer\\nfrom it\n"
        );
        assert_eq!(
            text(JsonView(&json!([])), None),
            "no certificate comes from an authority\n"
        );
    }

    #[test]
    fn what_is_served_is_told_with_the_days_it_is_good_for() {
        let told = json!({
            "certificates": [{
                "names": ["localhost"], "state": "good", "days_left": -1,
                "not_after_unix_s": 1_800_000_000, "listener": "[::]:443",
                "source": "self-signed",
            }],
        });
        assert_eq!(
            served(JsonView(&told), None),
            "\nSERVED FOR  STATE  DAYS LEFT  UNTIL                    LISTENER  ISSUER  FROM\n\
             localhost   good          -1  2027-01-15 08:00:00 UTC  [::]:443  -       self-signed\n"
        );
    }
}
