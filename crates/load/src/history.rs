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

/// One printed figure.
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
    text.push_str("\n| id | of | figure | remark |\n| --- | --- | --- | --- |\n");
    for then in figures() {
        let (id, server, figure) = (&then.id, &then.server, then.figure);
        let line = format!(
            "| `{id}` | {server} | {figure} {} | {} |\n",
            then.unit, then.remark
        );
        text.push_str(&line.replace("|  |", "| |"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_of_a_known_document() {
        assert_eq!(documents().len(), 6);
        assert_eq!(figures().len(), 128);
        for then in figures() {
            let key = then.id.chars().next();
            let is_known = documents().iter().any(|document| Some(document.key) == key);
            assert!(is_known, "{}", then.id);
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
    }

    #[test]
    fn figures_that_no_document_has_are_called_wider_literature() {
        let wider: Vec<&Document> = documents().iter().filter(|one| one.key == 'W').collect();
        assert!(wider[0].title.starts_with("wider literature: "));
        assert!(figures().iter().all(|then| !then.id.starts_with("D.stage")));
    }
}
