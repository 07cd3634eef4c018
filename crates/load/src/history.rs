//! The figures of old documents that stand beside ours, exactly as printed: `history.json`, read
//! once. A figure is found by its id, `DOCUMENT.TABLE.CASE.SIZE.cCONCURRENCY`.
//!
//! Machines, clients and protocols differ from today's: no ratio across the years is ever made of
//! them, only ratios within one document may be set beside ratios of ours.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Where figures were published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The first letter of the ids; `W` is the wider literature, which is none of the documents.
    pub key: char,
    /// Title and date.
    pub title: String,
    /// What it was measured on and how, in a line.
    pub method: String,
    /// The command that tells its figures.
    pub told_by: String,
}

/// One printed figure. What stands in another column of the same line has the same id and server,
/// and another unit or condition; the column that is compared comes first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Then {
    /// The row of the document; its first letter is the document.
    pub id: String,
    /// The server of then.
    pub server: String,
    /// As printed.
    pub figure: f64,
    /// Of what.
    pub unit: String,
    /// Under what it holds, or how it is meant, where the document's method does not say it; empty
    /// where it does.
    pub condition: String,
    /// What is odd about it; empty where nothing is.
    pub remark: String,
}

struct HistoricalFigures {
    documents: Vec<Document>,
    figures: Vec<Then>,
}

static HISTORY: LazyLock<HistoricalFigures> = LazyLock::new(|| {
    let whole: Value = serde_json::from_str(include_str!("history.json")).unwrap_or_default();
    let all = |name: &str| whole[name].as_array().cloned().unwrap_or_default();
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let document = |of: &Value| Document {
        key: text(of, "key").chars().next().unwrap_or_default(),
        title: text(of, "title"),
        method: text(of, "method"),
        told_by: text(of, "told_by"),
    };
    let then = |of: &Value| Then {
        id: text(of, "id"),
        server: text(of, "server"),
        figure: of["figure"].as_f64().unwrap_or_default(),
        unit: text(of, "unit"),
        condition: text(of, "condition"),
        remark: text(of, "remark"),
    };
    HistoricalFigures {
        documents: all("documents").iter().map(document).collect(),
        figures: all("figures").iter().map(then).collect(),
    }
});

/// The documents.
pub fn documents() -> &'static [Document] {
    &HISTORY.documents
}

/// Those whose figures a command tells.
pub fn documents_of(command: &str) -> impl Iterator<Item = &'static Document> {
    documents()
        .iter()
        .filter(move |document| document.told_by == command)
}

/// Every figure, in the order of the documents.
pub fn figures() -> &'static [Then] {
    &HISTORY.figures
}

/// What was printed under this id.
pub fn figures_of(id: &str) -> impl Iterator<Item = &'static Then> {
    figures().iter().filter(move |then| then.id == id)
}

/// Documents and figures as tables in Markdown, for the reference.
pub fn reference() -> String {
    let mut text = String::from("| key | document | how | told by |\n| --- | --- | --- | --- |\n");
    for document in documents() {
        let (key, title) = (document.key, &document.title);
        let (method, told_by) = (&document.method, &document.told_by);
        text.push_str(&format!("| {key} | {title} | {method} | `{told_by}` |\n"));
    }
    text.push_str("\n| id | of | figure | condition | remark |\n");
    text.push_str("| --- | --- | --- | --- | --- |\n");
    for then in figures() {
        let (id, server, figure) = (&then.id, &then.server, then.figure);
        let line = format!(
            "| `{id}` | {server} | {figure} {} | {} | {} |\n",
            then.unit, then.condition, then.remark
        );
        text.push_str(&line.replace("|  |", "| |").replace("|  |", "| |"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_figure_is_of_a_known_document() {
        assert_eq!(documents().len(), 6);
        let mut counts: BTreeMap<char, usize> = BTreeMap::new();
        for then in figures() {
            let key = then.id.chars().next().unwrap();
            *counts.entry(key).or_default() += 1;
            assert!(
                then.figure > 0.0 && then.id.split('.').count() >= 4,
                "{}",
                then.id
            );
            assert!(
                !then.server.is_empty() && !then.unit.is_empty(),
                "{}",
                then.id
            );
        }
        let keys: String = documents().iter().map(|document| document.key).collect();
        assert_eq!(keys, "ABCDEW");
        let wanted = [
            ('A', 73),
            ('B', 66),
            ('C', 21),
            ('D', 3),
            ('E', 64),
            ('W', 7),
        ];
        assert_eq!(counts, BTreeMap::from(wanted));
        // Each cell of a table stands here once.
        for (index, then) in figures().iter().enumerate() {
            let is_same = |other: &&Then| {
                (&other.id, &other.server, &other.unit) == (&then.id, &then.server, &then.unit)
                    && other.condition == then.condition
            };
            let again = figures()[index + 1..].iter().find(is_same);
            // Two drafts have two figures for one stage.
            assert!(
                again.is_none() || then.id == "W.stage.create.542",
                "{then:?}"
            );
        }
    }

    #[test]
    fn figures_that_no_document_has_are_called_wider_literature() {
        let wider: Vec<&Document> = documents().iter().filter(|one| one.key == 'W').collect();
        assert!(wider[0].title.starts_with("wider literature: "));
        // 202, 43 and 120 ms among them.
        assert!(figures().iter().all(|then| !then.id.starts_with("D.stage")));
        for ms in [202.0, 43.0, 120.0] {
            let of = figures()
                .iter()
                .filter(|then| then.unit == "ms" && then.figure == ms);
            let ids: Vec<&str> = of.map(|then| then.id.as_str()).collect();
            assert!(ids.len() == 1 && ids[0].starts_with("W."), "{ids:?}");
        }
    }

    /// Between what a figure lies that was rounded to the digits with which it is printed.
    fn rounded(then: &Then) -> (f64, f64) {
        let text = then.figure.to_string();
        let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
        let half = 0.5 * 0.1_f64.powi(digits as i32);
        (then.figure - half, then.figure + half)
    }

    /// Is there something that both could be?
    fn agree(one: (f64, f64), other: (f64, f64)) -> bool {
        one.0 <= other.1 + 1e-9 && other.0 <= one.1 + 1e-9
    }

    /// Another column of the same line.
    fn beside(then: &Then, unit: &str) -> Option<&'static Then> {
        figures_of(&then.id).find(|other| other.server == then.server && other.unit == unit)
    }

    /// Figures of one line that no rounding explains: those whose remark says so.
    fn odd_lines() -> Vec<&'static str> {
        let mut odd = vec![];
        for then in figures() {
            let words: Vec<&str> = then.id.split('.').collect();
            let (document, size) = (words[0], words[3]);
            let does_agree = match (document, then.unit.as_str()) {
                // So many requests in so many seconds.
                ("A", "s") if words[1] != "large" => {
                    let rate = beside(then, "req/s").unwrap();
                    let (least, most) = rounded(then);
                    agree(rounded(rate), (200.0 / most, 200.0 / least))
                }
                ("A", "s") => {
                    let bytes = 10.0 * size.parse::<f64>().unwrap() / 1e6;
                    let (least, most) = rounded(then);
                    agree(
                        rounded(beside(then, "MB/s").unwrap()),
                        (bytes / most, bytes / least),
                    )
                }
                // Bytes of an answer: a head of 100 to 500 bytes before 0 or 64 thousands, of 1,000
                // or of 1,024.
                ("B", "MB/s") if words[1].starts_with('h') => {
                    let (slow, fast) = rounded(beside(then, "req/s").unwrap());
                    let (least, most) = rounded(then);
                    let bytes = (least * 1_048_576.0 / fast, most * 1_048_576.0 / slow);
                    let body = match size {
                        "0k" => (0.0, 0.0),
                        _ => (64_000.0, 65_536.0),
                    };
                    agree(bytes, (body.0 + 100.0, body.1 + 500.0))
                }
                // The client shows whole seconds, those that are over.
                ("C", "s") => {
                    let (least, most) = rounded(beside(then, "MB/s").unwrap());
                    agree(
                        (1000.0 / most, 1000.0 / least),
                        (then.figure, then.figure + 0.999),
                    )
                }
                _ => true,
            };
            if !does_agree {
                odd.push(then.id.as_str());
            }
        }
        odd
    }

    #[test]
    fn columns_of_a_line_agree_but_for_the_known_slips() {
        let slips = [
            "A.file.cache.64k.c1",
            "A.remote.kept.0k.c1",
            "B.h1.tls.0k.c10",
            "B.h1.tls.0k.c10",
            "B.h2.tls.0k.c1",
            "B.h2.tls.0k.c10",
        ];
        assert_eq!(odd_lines(), slips);
        for id in slips {
            let mut remarks = figures_of(id).map(|then| &then.remark);
            let is_said = |remark: &String| {
                remark.contains("200 requests in the printed") || remark.contains("ten times")
            };
            assert!(remarks.any(is_said), "{id}");
        }
    }

    #[test]
    fn table_of_the_as400_is_made_of_its_two_columns() {
        let of =
            |id: &str, server: &str| figures_of(id).find(|then| then.server == server).unwrap();
        let quotient = |above: &Then, below: &Then| {
            let (above, below) = (rounded(above), rounded(below));
            (above.0 / below.1, above.1 / below.0)
        };
        let base = of("E.capacity.plain.1k", "static page, not cached");
        let ways = [
            ("static page, cached", "static-cached"),
            ("static page, not cached", "static-not-cached"),
            ("CGI (HTML)", "cgi-html"),
            ("CGI (SQL)", "cgi-sql"),
            ("persistent CGI", "persistent-cgi"),
            ("Net.Data (HTML)", "netdata-html"),
            ("Net.Data (SQL)", "netdata-sql"),
            ("servlet", "servlet"),
        ];
        for (way, word) in ways {
            let plain = of("E.capacity.plain.1k", way);
            let relative = of("E.plain.ways.1k", way);
            assert!(agree(rounded(relative), quotient(base, plain)), "{way}");
            let secure = of("E.capacity.secure.1k", way);
            let ratio = of(&format!("E.secure.{word}.1k"), "secure:plain CPU");
            assert!(agree(rounded(ratio), quotient(plain, secure)), "{way}");
        }
        // What the text makes of the table: an example, and two slips.
        let cgi = rounded(of("E.capacity.plain.1k", "CGI (HTML)"));
        let hits = |share: f64| (460.0 * share * cgi.0, 460.0 * share * cgi.1);
        for (id, share) in [
            ("E.example.cgi.460-cpw", 1.0),
            ("E.example.cgi.quarter", 0.25),
        ] {
            assert!(
                agree(rounded(figures_of(id).next().unwrap()), hits(share)),
                "{id}"
            );
        }
        let cpw = figures_of("E.example.cgi.175-hits").next().unwrap();
        assert!(agree(rounded(cpw), (175.0 / cgi.1, 175.0 / cgi.0)));
        let cached = quotient(of("E.capacity.plain.1k", "static page, cached"), base);
        let gain = figures_of("E.cache.gain.text").next().unwrap();
        assert!(!agree(
            rounded(gain),
            ((cached.0 - 1.0) * 100.0, (cached.1 - 1.0) * 100.0)
        ));
        assert!(gain.remark.contains("58 %"));
        let most = of("E.tls.cgi-netdata.text", "TLS, CGI and Net.Data, most");
        let in_table = of("E.secure.cgi-html.1k", "secure:plain CPU");
        assert!(rounded(in_table).0 > 1.0 + most.figure / 100.0);
        assert!(most.remark.contains("50 to 80 %"));
    }
}
