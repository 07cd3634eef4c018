//! What an entry of the schema is made of: tables, keys, kinds of values, defaults.

use std::time::Duration;

use super::fault::listed;
use super::schema::Schema;
use super::units::{duration_text, size_text};

/// A table of keys.
#[derive(Debug)]
pub struct SchemaTable {
    /// Its own name, the last part of its path; empty for the top level.
    pub name: &'static str,
    /// How it is written, for messages.
    pub header: &'static str,
    /// What it is for.
    pub text: &'static str,
    /// A table whose keys are valid here too.
    pub base: Option<&'static SchemaTable>,
    /// Its keys, in the order of the reference page.
    pub keys: &'static [SchemaKey],
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct SchemaKey {
    /// Its name, the last part of its path.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: ValueType,
    /// Its value when it is not set.
    pub preset: Preset,
    /// What it means.
    pub text: &'static str,
    /// An example value, as TOML; empty for tables.
    pub example: &'static str,
    /// What it is called elsewhere: someone who writes one of these is told the key.
    pub aka: &'static [&'static str],
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub enum ValueType {
    /// `true` or `false`.
    Flag,
    /// A whole number, bounds included.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number of bytes: `"16KiB"`, or an integer. Bounds included.
    Size {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A duration: `"10s"`. Bounds included.
    Time {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
    /// A string.
    Text,
    /// A path, relative to the file that names it.
    Path,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// A list of strings, or a string that is short for a list of it alone.
    TextOrTexts,
    /// A list of strings, each text or `${query.NAME}` as a whole.
    Arguments,
    /// A list of these words, each at most once.
    Words(&'static [&'static str]),
    /// A list of CPU numbers and ranges: `[0, 1]` or `["0-3,6"]`.
    Cpus,
    /// A table with keys of the user's.
    Map(&'static MapOf),
    /// A table.
    Table(&'static SchemaTable),
    /// A list of tables.
    Tables(&'static SchemaTable),
    /// This word, or the other kind.
    OrWord(&'static str, &'static ValueType),
    /// A table, or a string that is short for a table with only this key.
    OrText(&'static str, &'static SchemaTable),
    /// As [`ValueType::OrText`], or `true` for a table without keys, or `false` for none.
    OrFlag(&'static str, &'static SchemaTable),
}

/// A table whose keys are the user's.
#[derive(Debug)]
pub struct MapOf {
    /// What a key is.
    pub key: &'static str,
    /// What a value is.
    pub value: MapValue,
}

/// What the values of a [`MapOf`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapValue {
    /// Strings.
    Text,
    /// Paths, relative to the file that names them.
    Path,
}

/// The value of a key that is not set.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// There is none; the text says what happens then.
    Nothing(&'static str),
    /// Another key decides; the text says which.
    Inherited(&'static str),
    /// The key must be set.
    Required,
    /// Of [`ValueType::Flag`].
    Flag(bool),
    /// Of [`ValueType::Integer`].
    Integer(i64),
    /// Of [`ValueType::Size`].
    Size(u64),
    /// Of [`ValueType::Time`].
    Time(Duration),
    /// Of [`ValueType::Text`], [`ValueType::Word`] and the word of [`ValueType::OrWord`].
    Text(&'static str),
    /// Of the lists.
    Texts(&'static [&'static str]),
}

impl SchemaKey {
    /// A key of this name, kind and default.
    pub const fn new(name: &'static str, kind: ValueType, preset: Preset) -> SchemaKey {
        SchemaKey {
            name,
            kind,
            preset,
            text: "",
            example: "",
            aka: &[],
        }
    }

    /// With its meaning.
    pub const fn says(mut self, text: &'static str) -> SchemaKey {
        self.text = text;
        self
    }

    /// With an example value, as TOML.
    pub const fn example(mut self, example: &'static str) -> SchemaKey {
        self.example = example;
        self
    }

    /// With what it is called elsewhere.
    pub const fn aka(mut self, names: &'static [&'static str]) -> SchemaKey {
        self.aka = names;
        self
    }

    /// It is called so elsewhere.
    pub(crate) fn has_alias(&self, name: &str) -> bool {
        self.aka.contains(&name)
    }
}

/// Lists of keys as one, which holds `N`.
pub const fn joined<const N: usize>(lists: &[&[SchemaKey]]) -> [SchemaKey; N] {
    let mut all = [lists[0][0]; N];
    let (mut list, mut at, mut count) = (0, 0, 0);
    while list < lists.len() {
        if at < lists[list].len() {
            all[count] = lists[list][at];
            count += 1;
            at += 1;
        } else {
            list += 1;
            at = 0;
        }
    }
    assert!(count == N, "one place for each key");
    all
}

impl SchemaTable {
    /// Its base, the base of that, and so on.
    pub fn bases(&self) -> impl Iterator<Item = &'static SchemaTable> + Clone + use<> {
        std::iter::successors(self.base, |base| base.base)
    }

    /// Its keys and those of its bases.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static SchemaKey> + use<> {
        let inherited = self.bases().flat_map(|base| base.keys);
        self.keys.iter().chain(inherited)
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static SchemaKey> {
        self.all_keys().find(|key| key.name == name)
    }
}

impl ValueType {
    /// The table in values of this kind, if there is one.
    pub fn table(&self) -> Option<&'static SchemaTable> {
        match self {
            ValueType::Table(table) | ValueType::Tables(table) | ValueType::OrText(_, table) => {
                Some(table)
            }
            ValueType::OrFlag(_, table) => Some(table),
            ValueType::OrWord(_, kind) => kind.table(),
            _ => None,
        }
    }
}

/// Every key with its full path, such as `site.route.files.listing`, in the order of the table.
/// Keys of a base table come once for each table they are valid in.
pub fn paths(schema: &Schema) -> Vec<(String, &'static SchemaKey)> {
    fn add(table: &'static SchemaTable, prefix: &str, all: &mut Vec<(String, &'static SchemaKey)>) {
        for key in table.all_keys() {
            let path = format!("{prefix}{}", key.name);
            let below = format!("{path}.");
            all.push((path, key));
            if let Some(inner) = key.kind.table() {
                add(inner, &below, all);
            }
        }
    }
    let mut all = Vec::new();
    add(schema.root, "", &mut all);
    all
}

impl std::fmt::Display for ValueType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueType::Flag => f.write_str("`true` or `false`"),
            ValueType::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            ValueType::Size { min, max } => {
                write!(f, "a size from {} to {}", size_text(*min), size_text(*max))
            }
            ValueType::Time { min, max } => {
                write!(
                    f,
                    "a duration from {} to {}",
                    duration_text(*min),
                    duration_text(*max)
                )
            }
            ValueType::Text => f.write_str("a string"),
            ValueType::Path => f.write_str("a path"),
            ValueType::Word(words) => f.write_str(&quoted(words, " or ")),
            ValueType::Texts => f.write_str("a list of strings"),
            ValueType::TextOrTexts => f.write_str("a string or a list of strings"),
            ValueType::Arguments => f.write_str("a list of strings"),
            ValueType::Words(words) => write!(f, "a list of {}", quoted(words, " and ")),
            ValueType::Cpus => f.write_str("a list of CPU numbers and ranges"),
            ValueType::Map(map) => write!(f, "a table from {} to {}", map.key, map.value),
            ValueType::Table(_) => f.write_str("a table"),
            ValueType::Tables(_) => f.write_str("a list of tables"),
            ValueType::OrWord(word, kind) => write!(f, "`\"{word}\"` or {kind}"),
            ValueType::OrText(_, _) => f.write_str("a table or a string"),
            ValueType::OrFlag(_, _) => f.write_str("`true`, a table or a string"),
        }
    }
}

impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Preset::Nothing("") => f.write_str("none"),
            Preset::Nothing(text) | Preset::Inherited(text) => f.write_str(text),
            Preset::Required => f.write_str("none; the key must be set"),
            Preset::Flag(flag) => write!(f, "`{flag}`"),
            Preset::Integer(number) => write!(f, "`{number}`"),
            Preset::Size(0) => f.write_str("`0`"),
            Preset::Size(bytes) => write!(f, "`\"{}\"`", size_text(*bytes)),
            Preset::Time(time) => write!(f, "`\"{}\"`", duration_text(*time)),
            Preset::Text(text) => write!(f, "`{text:?}`"),
            Preset::Texts(texts) => write!(f, "`{texts:?}`"),
        }
    }
}

impl std::fmt::Display for MapValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MapValue::Text => "string",
            MapValue::Path => "path",
        })
    }
}

fn quoted(words: &[&str], last: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    listed(words.iter().map(String::as_str), last)
}
