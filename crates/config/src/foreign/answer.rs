//! Finding a foreign word, and what is said of it: below a config, on the terminal, on the page.

use std::fmt::Write as _;

use super::super::fault::listed;
use super::super::key::{SchemaKey, SchemaTable, paths};
use super::super::schema::Schema;
use super::{Foreign, ForeignEquivalent};

/// What is said of a word in a place: what is added to the message, and the hint.
pub(crate) struct ForeignHint {
    pub(crate) lacks: String,
    pub(crate) hint: String,
}

/// The entry of a word that stands in a table.
pub(crate) fn find(
    schema: &Schema,
    word: &str,
    table: &'static SchemaTable,
) -> Option<&'static Foreign> {
    all(schema).find(|entry| entry.has(word) && entry.is_for(table))
}

/// The entries of a word, wherever it stands.
pub fn find_anywhere(schema: &Schema, word: &str) -> impl Iterator<Item = &'static Foreign> {
    all(schema).filter(move |entry| entry.has(word))
}

/// What is said of an entry whose word stands in this table, or is asked for.
pub(crate) fn told(
    schema: &Schema,
    entry: &Foreign,
    table: Option<&'static SchemaTable>,
) -> ForeignHint {
    let (lacks, hint) = match &entry.answer {
        ForeignEquivalent::Keys(paths, write) => {
            let own = table
                .map(|table| entry.keys_of(schema, table))
                .unwrap_or_default();
            let mut names: Vec<&str> = own.iter().map(|key| key.name).collect();
            if names.is_empty() {
                names = paths.iter().map(|path| last(path)).collect();
            }
            names.sort_unstable();
            names.dedup();
            let word = if names.len() == 1 {
                "word is"
            } else {
                "words are"
            };
            let names = listed(names, " and ");
            (String::new(), format!("hob's {word} {names}: {write}"))
        }
        ForeignEquivalent::Lacks(what, nearest, page) => (
            format!("this version has no {what}"),
            format!("{nearest}; see {page}"),
        ),
        ForeignEquivalent::Needless(why, page) => (
            "nothing has to be said about it".to_owned(),
            format!("remove it: {why}; see {page}"),
        ),
    };
    ForeignHint { lacks, hint }
}

impl Schema {
    /// The reference page of every word of other servers, in Markdown.
    pub fn foreign_words(&self) -> String {
        let mut page = String::from(INTRODUCTION);
        for entry in all(self) {
            let mut words: Vec<String> =
                entry.words.iter().map(|word| format!("`{word}`")).collect();
            if !entry.places.is_empty() {
                let places: Vec<&str> = entry.places.iter().map(|table| table.header).collect();
                words.push(format!("(in {})", places.join(", ")));
            }
            let told = match &entry.answer {
                ForeignEquivalent::Keys(paths, write) => {
                    let keys = listed(paths.iter().copied(), ", ");
                    format!("{keys}: {write}")
                }
                ForeignEquivalent::Lacks(what, nearest, page) => {
                    format!(
                        "This version has no {what}. {}; {}",
                        capital(nearest),
                        link(page)
                    )
                }
                ForeignEquivalent::Needless(why, page) => format!("Nothing: {why}; {}", link(page)),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(page, "| {} | {} | {told} |", words.join(" "), entry.of);
        }
        page
    }
}

const INTRODUCTION: &str = "\
# Words of other servers

What people write who know another server, and what is written here in its place. `hob check` says
so where such a word stands in a config, and `hob check --explain WORD` for one that is asked for.
Sites of other servers are shown both ways in
[Coming from nginx, Apache, Caddy, Unit, uWSGI](../how-to/coming-from.md).

| word | of | here |
| --- | --- | --- |
";

fn all(schema: &Schema) -> impl Iterator<Item = &'static Foreign> + use<> {
    schema.words.iter().copied().flatten()
}

/// As words are compared: case and the kind of dash do not matter, nor how a matcher of Caddy is
/// called.
pub(crate) fn plain(word: &str) -> String {
    match word.starts_with('@') {
        true => "@matcher".to_owned(),
        false => word.to_ascii_lowercase().replace('-', "_"),
    }
}

fn last(path: &'static str) -> &'static str {
    path.rsplit('.').next().unwrap_or(path)
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => String::new(),
    }
}

fn link(page: &str) -> String {
    format!("see [{page}](../{page})")
}

impl Foreign {
    /// It is the entry of this word; case and the kind of dash do not matter.
    pub fn has(&self, word: &str) -> bool {
        let word = plain(word);
        self.words.iter().any(|known| plain(known) == word)
    }

    /// It is answered in this table.
    pub fn is_for(&self, table: &'static SchemaTable) -> bool {
        let mut places = self.places.iter();
        self.places.is_empty() || places.any(|place| std::ptr::eq(*place, table))
    }

    /// The keys of the answer that stand in this table.
    pub(crate) fn keys_of(
        &self,
        schema: &Schema,
        table: &'static SchemaTable,
    ) -> Vec<&'static SchemaKey> {
        let ForeignEquivalent::Keys(named, _) = &self.answer else {
            return Vec::new();
        };
        let all = paths(schema);
        let mut found: Vec<&'static SchemaKey> = Vec::new();
        for path in *named {
            let key = all.iter().find(|(known, _)| known == path);
            let own = table.key(last(path));
            if let (Some((_, key)), Some(own)) = (key, own)
                && std::ptr::eq(*key, own)
                && !found.iter().any(|known| std::ptr::eq(*known, own))
            {
                found.push(own);
            }
        }
        found
    }

    /// The answer names this key.
    pub(crate) fn names(&self, path: &str) -> bool {
        matches!(&self.answer, ForeignEquivalent::Keys(named, _) if named.contains(&path))
    }

    /// The word stands for what answers in a route, in this version or another.
    pub(crate) fn is_handler(&self, handlers: &[&str]) -> bool {
        match &self.answer {
            ForeignEquivalent::Keys(paths, _) => paths.iter().any(|path| {
                let below = path.strip_prefix("site.route.").unwrap_or_default();
                handlers.contains(&below.split('.').next().unwrap_or_default())
            }),
            ForeignEquivalent::Lacks(..) => true,
            ForeignEquivalent::Needless(..) => false,
        }
    }
}
