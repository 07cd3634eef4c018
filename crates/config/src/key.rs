//! What an entry of the schema is made of: tables, keys, kinds of values, defaults.

use std::time::Duration;

use super::fault::listed;
use super::schema::Schema;
use super::units::{duration_text, size_text};

/// A table of keys.
#[derive(Debug)]
pub struct Table {
    /// Its own name, the last part of its path; empty for the top level.
    pub name: &'static str,
    /// How it is written, for messages.
    pub header: &'static str,
    /// What it is for.
    pub text: &'static str,
    /// A table whose keys are valid here too.
    pub base: Option<&'static Table>,
    /// Its keys, in the order of the reference page.
    pub keys: &'static [Key],
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name, the last part of its path.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
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
pub enum Kind {
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
    /// A list of strings, each text or `${query.NAME}` as a whole.
    Arguments,
    /// A list of these words, each at most once.
    Words(&'static [&'static str]),
    /// A list of CPU numbers and ranges: `[0, 1]` or `["0-3,6"]`.
    Cpus,
    /// A table with keys of the user's.
    Map(&'static MapOf),
    /// A table.
    Table(&'static Table),
    /// A list of tables.
    Tables(&'static Table),
    /// This word, or the other kind.
    OrWord(&'static str, &'static Kind),
    /// A table, or a string that is short for a table with only this key.
    OrText(&'static str, &'static Table),
    /// As [`Kind::OrText`], or `true` for a table without keys, or `false` for none.
    OrFlag(&'static str, &'static Table),
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
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Integer`].
    Integer(i64),
    /// Of [`Kind::Size`].
    Size(u64),
    /// Of [`Kind::Time`].
    Time(Duration),
    /// Of [`Kind::Text`], [`Kind::Word`] and the word of [`Kind::OrWord`].
    Text(&'static str),
    /// Of the lists.
    Texts(&'static [&'static str]),
}

impl Key {
    /// A key of this name, kind and default.
    pub const fn new(name: &'static str, kind: Kind, preset: Preset) -> Key {
        Key {
            name,
            kind,
            preset,
            text: "",
            example: "",
            aka: &[],
        }
    }

    /// With its meaning.
    pub const fn says(mut self, text: &'static str) -> Key {
        self.text = text;
        self
    }

    /// With an example value, as TOML.
    pub const fn example(mut self, example: &'static str) -> Key {
        self.example = example;
        self
    }

    /// With what it is called elsewhere.
    pub const fn aka(mut self, names: &'static [&'static str]) -> Key {
        self.aka = names;
        self
    }

    /// It is called so elsewhere.
    pub(crate) fn has_alias(&self, name: &str) -> bool {
        self.aka.contains(&name)
    }
}

/// Lists of keys as one, which holds `N`.
pub const fn joined<const N: usize>(lists: &[&[Key]]) -> [Key; N] {
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

impl Table {
    /// Its keys and those of its base.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys
            .iter()
            .chain(self.base.map_or(&[][..], |base| base.keys))
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.all_keys().find(|key| key.name == name)
    }
}

impl Kind {
    /// The table in values of this kind, if there is one.
    pub fn table(&self) -> Option<&'static Table> {
        match self {
            Kind::Table(table) | Kind::Tables(table) | Kind::OrText(_, table) => Some(table),
            Kind::OrFlag(_, table) => Some(table),
            Kind::OrWord(_, kind) => kind.table(),
            _ => None,
        }
    }
}

/// Every key with its full path, such as `site.route.files.listing`, in the order of the table.
/// Keys of a base table come once for each table they are valid in.
pub fn paths(schema: &Schema) -> Vec<(String, &'static Key)> {
    fn add(table: &'static Table, prefix: &str, all: &mut Vec<(String, &'static Key)>) {
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

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Flag => f.write_str("`true` or `false`"),
            Kind::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Kind::Size { min, max } => {
                write!(f, "a size from {} to {}", size_text(*min), size_text(*max))
            }
            Kind::Time { min, max } => {
                write!(
                    f,
                    "a duration from {} to {}",
                    duration_text(*min),
                    duration_text(*max)
                )
            }
            Kind::Text => f.write_str("a string"),
            Kind::Path => f.write_str("a path"),
            Kind::Word(words) => f.write_str(&quoted(words, " or ")),
            Kind::Texts => f.write_str("a list of strings"),
            Kind::Arguments => f.write_str("a list of strings"),
            Kind::Words(words) => write!(f, "a list of {}", quoted(words, " and ")),
            Kind::Cpus => f.write_str("a list of CPU numbers and ranges"),
            Kind::Map(map) => write!(f, "a table from {} to {}", map.key, map.value),
            Kind::Table(_) => f.write_str("a table"),
            Kind::Tables(_) => f.write_str("a list of tables"),
            Kind::OrWord(word, kind) => write!(f, "`\"{word}\"` or {kind}"),
            Kind::OrText(_, _) => f.write_str("a table or a string"),
            Kind::OrFlag(_, _) => f.write_str("`true`, a table or a string"),
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
