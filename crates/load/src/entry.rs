//! One kind of request among those a run makes: a URL with its share, its name in the results, and
//! what sets it apart from the others.

use std::sync::Arc;

use crate::expect::Expectation;
use crate::url::Url;

/// What is asked for, one of several.
#[derive(Debug, Clone)]
pub struct RequestSpec {
    /// Where.
    pub url: Url,
    /// The name of the row of the results that it belongs to; its URL for none.
    pub name: Option<String>,
    /// How often it is drawn beside the others.
    pub weight: f64,
    /// Its method; that of the plan for none.
    pub method: Option<String>,
    /// Its own header fields, behind those of the plan.
    pub fields: Vec<(String, String)>,
    /// Its own body; that of the plan where it has no method of its own either.
    pub body: Option<Arc<[u8]>>,
    /// What its answers must be, beside and before what all must be.
    pub expectations: Vec<Expectation>,
}

impl From<Url> for RequestSpec {
    fn from(url: Url) -> RequestSpec {
        RequestSpec {
            url,
            name: None,
            weight: 1.0,
            method: None,
            fields: Vec::new(),
            body: None,
            expectations: Vec::new(),
        }
    }
}

/// The rows of results that entries belong to: those of one name share one.
#[derive(Debug, Default)]
pub(crate) struct ResultRows {
    /// For each entry its row.
    pub(crate) of_entry: Vec<u32>,
    /// The first entry of each row.
    pub(crate) first: Vec<usize>,
}

impl ResultRows {
    pub(crate) fn of(entries: &[RequestSpec]) -> ResultRows {
        let mut rows = ResultRows::default();
        let mut named = std::collections::HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let row = rows.first.len() as u32;
            let row = match &entry.name {
                Some(name) => *named.entry(name.as_str()).or_insert(row),
                None => row,
            };
            if row as usize == rows.first.len() {
                rows.first.push(index);
            }
            rows.of_entry.push(row);
        }
        rows
    }
}
