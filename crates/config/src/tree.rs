//! A config's values after their types are known and before their meaning is: a tree of sections
//! shaped by the schema. Where a key is not set, reading it gives the schema's default.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::fault::{Faults, Spot};
use super::key::{Preset, SchemaTable, ValueType};

/// The keys set in one table.
#[derive(Clone, Debug)]
pub struct Section {
    table: &'static SchemaTable,
    /// The header, or whatever begins the table.
    pub header: Spot,
    given: BTreeMap<&'static str, Given>,
    /// Keys that were probably meant, but misspelt or of a wrong value: that is told already.
    claimed: BTreeSet<&'static str>,
}

/// A key that is set.
#[derive(Clone, Debug)]
pub struct Given {
    /// The key.
    pub key: Spot,
    /// Its value.
    pub spot: Spot,
    /// What it is set to.
    pub value: ConfigValue,
}

/// A value of the type the schema says.
#[derive(Clone, Debug)]
pub enum ConfigValue {
    /// Of [`ValueType::Flag`].
    Flag(bool),
    /// Of [`ValueType::Integer`].
    Integer(i64),
    /// Of [`ValueType::Size`], in bytes.
    Size(u64),
    /// Of [`ValueType::Time`].
    Time(Duration),
    /// Of [`ValueType::Text`].
    Text(String),
    /// Of [`ValueType::Path`], absolute.
    Path(PathBuf),
    /// Of [`ValueType::Word`], and the word of the kinds that have one.
    Word(&'static str),
    /// Of [`ValueType::Texts`], [`ValueType::TextOrTexts`] and [`ValueType::Words`].
    Texts(Vec<Item>),
    /// Of [`ValueType::Arguments`].
    Arguments(Vec<(Argument, Spot)>),
    /// Of [`ValueType::Cpus`].
    Cpus(Vec<usize>),
    /// Of [`ValueType::Map`].
    Map(Vec<KeyTextPair>),
    /// Of the kinds that are a table.
    Section(Section),
    /// Of [`ValueType::Tables`].
    Sections(Vec<Section>),
}

/// An argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// This text.
    Text(String),
    /// What the request's query has for this name.
    Query(String),
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Text(text) => f.write_str(text),
            Argument::Query(name) => write!(f, "${{query.{name}}}"),
        }
    }
}

/// One string of a list.
#[derive(Clone, Debug)]
pub struct Item {
    /// The string.
    pub text: String,
    /// Where it stands.
    pub spot: Spot,
}

/// One entry of a table whose keys are the user's.
#[derive(Clone, Debug)]
pub struct KeyTextPair {
    /// Its key.
    pub name: String,
    /// Where its key stands.
    pub key: Spot,
    /// Its value.
    pub text: String,
    /// Where its value stands.
    pub spot: Spot,
}

impl Section {
    /// A section in which nothing is set.
    pub fn new(table: &'static SchemaTable, header: Spot) -> Section {
        Section {
            table,
            header,
            given: BTreeMap::new(),
            claimed: BTreeSet::new(),
        }
    }

    /// Sets a key.
    pub fn set(&mut self, name: &'static str, given: Given) {
        self.given.insert(name, given);
    }

    /// Notes that a key was probably meant, and that what is wrong with it is reported.
    pub fn claim(&mut self, name: &'static str) {
        self.claimed.insert(name);
    }

    /// The table that shapes it.
    pub fn table(&self) -> &'static SchemaTable {
        self.table
    }

    /// The section is shaped by this table.
    pub fn is_of(&self, table: &'static SchemaTable) -> bool {
        std::ptr::eq(self.table, table)
    }

    /// The key was probably meant, and what is wrong with it is reported.
    pub fn is_claimed(&self, name: &str) -> bool {
        self.claimed.contains(name)
    }

    /// The key is there, whether or not its value is right.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name) || self.claimed.contains(name)
    }

    /// The key as it is set; `None` where it is not.
    pub fn given(&self, name: &str) -> Option<&Given> {
        self.given.get(name)
    }

    /// Where the value of the key stands, else the section's header.
    pub fn spot(&self, name: &str) -> Spot {
        self.given(name).map_or(self.header, |given| given.spot)
    }

    fn read(&self, name: &str) -> Result<&ConfigValue, Preset> {
        if let Some(given) = self.given.get(name) {
            return Ok(&given.value);
        }
        let key = self.table.key(name);
        Err(key.map_or_else(|| disagree(self.table, name), |key| key.preset))
    }

    /// A flag.
    pub fn flag(&self, name: &str) -> bool {
        match self.read(name) {
            Ok(ConfigValue::Flag(flag)) => *flag,
            Err(Preset::Flag(flag)) => flag,
            _ => disagree(self.table, name),
        }
    }

    /// An integer.
    pub fn integer(&self, name: &str) -> i64 {
        match self.read(name) {
            Ok(ConfigValue::Integer(number)) => *number,
            Err(Preset::Integer(number)) => number,
            // One that must be there and is not is told already.
            Err(Preset::Required) => 1,
            _ => disagree(self.table, name),
        }
    }

    /// An integer whose range in the schema fits `T`.
    pub fn number<T: TryFrom<i64>>(&self, name: &str) -> T {
        T::try_from(self.integer(name)).unwrap_or_else(|_| disagree(self.table, name))
    }

    /// A size, in bytes.
    pub fn size(&self, name: &str) -> u64 {
        match self.read(name) {
            Ok(ConfigValue::Size(bytes)) => *bytes,
            Err(Preset::Size(bytes)) => bytes,
            _ => disagree(self.table, name),
        }
    }

    /// A size whose range in the schema fits `usize`.
    pub fn size_usize(&self, name: &str) -> usize {
        usize::try_from(self.size(name)).unwrap_or(usize::MAX)
    }

    /// A duration.
    pub fn time(&self, name: &str) -> Duration {
        match self.read(name) {
            Ok(ConfigValue::Time(time)) => *time,
            Err(Preset::Time(time)) => time,
            _ => disagree(self.table, name),
        }
    }

    /// A string; empty for a required one that is missing.
    pub fn text(&self, name: &str) -> &str {
        match self.read(name) {
            Ok(ConfigValue::Text(text)) => text,
            Err(Preset::Text(text)) => text,
            // A required key that is missing or wrong is reported; reading goes on with no text.
            Err(Preset::Required) => "",
            _ => disagree(self.table, name),
        }
    }

    /// A word.
    pub fn word(&self, name: &str) -> &'static str {
        match self.read(name) {
            Ok(ConfigValue::Word(word)) => word,
            Err(Preset::Text(word)) => word,
            _ => disagree(self.table, name),
        }
    }

    /// The strings of a list that is given; none of a default, which need no check.
    pub fn given_texts(&self, name: &str) -> Vec<(&str, Spot)> {
        match self.given(name) {
            Some(_) => self.texts(name),
            None => Vec::new(),
        }
    }

    /// The same without their places.
    pub fn given_words(&self, name: &str) -> Vec<String> {
        let texts = self.given_texts(name).into_iter();
        texts.map(|(text, _)| text.to_owned()).collect()
    }

    /// The list's strings; those of the default stand at the header.
    pub fn texts(&self, name: &str) -> Vec<(&str, Spot)> {
        match self.read(name) {
            Ok(ConfigValue::Texts(items)) => {
                items.iter().map(|i| (i.text.as_str(), i.spot)).collect()
            }
            Err(Preset::Texts(texts)) => texts.iter().map(|text| (*text, self.header)).collect(),
            // A required key that is missing or wrong is reported; reading goes on with none.
            Err(Preset::Required) => Vec::new(),
            _ => disagree(self.table, name),
        }
    }

    /// The arguments of a command; none when it is not set.
    pub fn arguments(&self, name: &str) -> Vec<(&Argument, Spot)> {
        match self.read(name) {
            Ok(ConfigValue::Arguments(all)) => all.iter().map(|(one, spot)| (one, *spot)).collect(),
            Err(Preset::Nothing(_)) => Vec::new(),
            _ => disagree(self.table, name),
        }
    }

    /// A string, if it is set.
    pub fn optional_text(&self, name: &str) -> Option<&str> {
        match self.read(name) {
            Ok(ConfigValue::Text(text)) => Some(text),
            Ok(ConfigValue::Word(_)) | Err(Preset::Nothing(_) | Preset::Inherited(_)) => None,
            _ => disagree(self.table, name),
        }
    }

    /// A path, if it is set.
    pub fn optional_path(&self, name: &str) -> Option<&PathBuf> {
        match self.read(name) {
            Ok(ConfigValue::Path(path)) => Some(path),
            // One that must be there and is not is told already.
            Ok(ConfigValue::Word(_))
            | Err(Preset::Nothing(_) | Preset::Inherited(_) | Preset::Required) => None,
            _ => disagree(self.table, name),
        }
    }

    /// A size in bytes, if it is set.
    pub fn optional_size(&self, name: &str) -> Option<u64> {
        match self.read(name) {
            Ok(ConfigValue::Size(bytes)) => Some(*bytes),
            Err(Preset::Nothing(_) | Preset::Inherited(_)) => None,
            _ => disagree(self.table, name),
        }
    }

    /// A duration, if it is set.
    pub fn optional_time(&self, name: &str) -> Option<Duration> {
        match self.read(name) {
            Ok(ConfigValue::Time(time)) => Some(*time),
            Err(Preset::Nothing(_) | Preset::Inherited(_)) => None,
            _ => disagree(self.table, name),
        }
    }

    /// Numbers of CPUs; none where it is not set.
    pub fn cpus(&self, name: &str) -> &[usize] {
        match self.read(name) {
            Ok(ConfigValue::Cpus(cpus)) => cpus,
            Err(Preset::Texts([])) => &[],
            _ => disagree(self.table, name),
        }
    }

    /// Entries of the user's; none where it is not set.
    pub fn map(&self, name: &str) -> &[KeyTextPair] {
        match self.read(name) {
            Ok(ConfigValue::Map(pairs)) => pairs,
            Err(Preset::Nothing(_)) => &[],
            _ => disagree(self.table, name),
        }
    }

    /// The section of an inner table, if there is one.
    pub fn section(&self, name: &str) -> Option<&Section> {
        match self.read(name) {
            Ok(ConfigValue::Section(section)) => Some(section),
            Ok(ConfigValue::Word(_)) | Err(Preset::Nothing(_)) => None,
            _ => disagree(self.table, name),
        }
    }

    /// The section of a key that may also be something else, where it is one.
    pub fn section_of(&self, name: &str) -> Option<&Section> {
        match &self.given.get(name)?.value {
            ConfigValue::Section(section) => Some(section),
            _ => None,
        }
    }

    /// What is read of an inner table; where there is none, of one in which nothing is set.
    pub fn inner<T>(
        &self,
        name: &str,
        table: &'static SchemaTable,
        read: impl FnOnce(&Section) -> T,
    ) -> T {
        let none = Section::new(table, self.header);
        read(self.section(name).unwrap_or(&none))
    }

    /// The sections of a list of tables.
    pub fn sections(&self, name: &str) -> &[Section] {
        match self.read(name) {
            Ok(ConfigValue::Sections(sections)) => sections,
            Err(Preset::Nothing(_)) => &[],
            _ => disagree(self.table, name),
        }
    }

    /// The sections of a list of tables that is set, to be changed.
    pub(crate) fn sections_mut(&mut self, name: &str) -> &mut [Section] {
        match self.given.get_mut(name).map(|given| &mut given.value) {
            Some(ConfigValue::Sections(sections)) => sections,
            _ => &mut [],
        }
    }

    /// Takes over what another section says and this one does not. Entries of the user's and lists
    /// of header rules add up, and the keys of `files` are looked at one by one.
    pub(crate) fn inherit(&mut self, from: &Section) {
        for (name, theirs) in &from.given {
            if *name == "name" || self.claimed.contains(name) {
                continue;
            }
            let Some(own) = self.given.get_mut(name) else {
                self.given.insert(name, theirs.clone());
                continue;
            };
            match (*name, &mut own.value, &theirs.value) {
                (_, ConfigValue::Map(own), ConfigValue::Map(theirs)) => {
                    let is_new = |one: &&KeyTextPair| {
                        let mut names = own.iter().map(|pair| &pair.name);
                        !names.any(|name| name.eq_ignore_ascii_case(&one.name))
                    };
                    let new: Vec<_> = theirs.iter().filter(is_new).cloned().collect();
                    own.extend(new);
                }
                (
                    "headers_add" | "headers_remove",
                    ConfigValue::Texts(own),
                    ConfigValue::Texts(theirs),
                ) => own.extend(theirs.iter().cloned()),
                ("files", ConfigValue::Section(own), ConfigValue::Section(theirs)) => {
                    own.inherit(theirs);
                }
                _ => {}
            }
        }
    }

    /// Adds what a later source says. Lists of tables add up; a key that takes one value may be set
    /// in one of the two only.
    pub fn merge(&mut self, later: Section, faults: &mut Faults<'_>) {
        self.claimed.extend(later.claimed);
        for (name, new) in later.given {
            // Each file has its own.
            if name == "include" {
                continue;
            }
            let Some(old) = self.given.get_mut(name) else {
                self.given.insert(name, new);
                continue;
            };
            match (&mut old.value, new.value) {
                (ConfigValue::Section(old), ConfigValue::Section(new)) => old.merge(new, faults),
                (ConfigValue::Sections(old), ConfigValue::Sections(new)) => old.extend(new),
                _ => {
                    let message = format!("`{name}` is set in two files");
                    let see = faults
                        .error(new.key, message)
                        .see(old.key, "it is set here already");
                    see.hint("keep one of the two");
                }
            }
        }
    }
}

/// What the schema says of a key and how the config is built from it have drifted apart: a mistake
/// in this program that no text of a config can cause, and that each golden test would meet.
#[track_caller]
fn disagree(table: &SchemaTable, name: &str) -> ! {
    let kind: Option<ValueType> = table.key(name).map(|key| key.kind);
    unreachable!(
        "the schema has no such key of that kind: {}.{name}, {kind:?}",
        table.name
    )
}
