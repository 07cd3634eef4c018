//! From TOML to a tree of sections, by the schema: unknown keys and wrong types end here.
//!
//! Every mistake is reported and the walk goes on; what is wrong is left out of the tree and marked
//! there, so that later checks do not report its consequences.

use std::ops::Range;

use toml_edit::{Item as Toml, TableLike, Value as TomlValue};

use super::expand::{ExpansionError, expand};
use super::fault::{Faults, Spot, listed};
use super::foreign::{self, Foreign};
use super::key::{Preset, SchemaKey, SchemaTable, ValueType, paths};
use super::nearest::nearest;
use super::schema::Schema;
use super::tree::{ConfigValue, Given, Section};

/// The tree of one source, parsed before.
pub(crate) fn walk(
    schema: &'static Schema,
    root: &dyn TableLike,
    source: usize,
    faults: &mut Faults<'_>,
    required: Required,
) -> Section {
    let whole = Spot {
        source,
        start: 0,
        end: 0,
    };
    Walk {
        schema,
        source,
        faults,
        required,
    }
    .section(schema.root, root, whole)
}

/// Whether missing keys are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Required {
    /// They are.
    Told,
    /// They are not: a part of the text could not be read.
    Ignored,
}

pub(super) struct Walk<'w, 's> {
    schema: &'static Schema,
    pub(super) source: usize,
    pub(super) faults: &'w mut Faults<'s>,
    required: Required,
}

impl Walk<'_, '_> {
    pub(super) fn section(
        &mut self,
        table: &'static SchemaTable,
        toml: &dyn TableLike,
        header: Spot,
    ) -> Section {
        let mut section = Section::new(table, header);
        for (name, item) in toml.iter() {
            let span = toml.key(name).and_then(toml_edit::Key::span);
            let key_spot = self.spot_or(span.or(item.span()), header);
            let Some(key) = table.key(name) else {
                self.unknown_key(&mut section, table, name, key_spot);
                continue;
            };
            let spot = self.spot_or(item.span(), key_spot);
            match self.value(key, &key.kind, item, spot) {
                Some(value) => section.set(
                    key.name,
                    Given {
                        key: key_spot,
                        spot,
                        value,
                    },
                ),
                None => section.claim(key.name),
            }
        }
        self.missing_keys(&section, table);
        section
    }

    fn missing_keys(&mut self, section: &Section, table: &'static SchemaTable) {
        if self.required == Required::Ignored {
            return;
        }
        for key in table.all_keys() {
            if matches!(key.preset, Preset::Required) && !section.has(key.name) {
                let message = format!("`{}` is missing from {}", key.name, table.header);
                let hint = format!("add `{} = {}`, for example", key.name, key.example);
                self.faults.error(section.header, message).hint(hint);
            }
        }
    }

    fn unknown_key(
        &mut self,
        section: &mut Section,
        table: &'static SchemaTable,
        name: &str,
        spot: Spot,
    ) {
        let place = if table.name.is_empty() { "at" } else { "in" };
        let message = format!("unknown key `{name}` {place} {}", table.header);
        let same = table.key(&foreign::plain(name));
        if let (None, Some(word)) = (same, foreign::find(self.schema, name, table)) {
            self.foreign_word(section, table, word, message, spot);
            return;
        }
        let hint = match likely_key(table, name) {
            Some((key, hint)) => {
                section.claim(key.name);
                hint
            }
            None => {
                let home = home_of(self.schema, table, name);
                home.unwrap_or_else(|| list_of(self.schema, table))
            }
        };
        self.faults.error(spot, message).hint(hint);
    }

    /// A word of another server: its answer wins over words of ours that look alike.
    fn foreign_word(
        &mut self,
        section: &mut Section,
        table: &'static SchemaTable,
        word: &'static Foreign,
        message: String,
        spot: Spot,
    ) {
        for key in word.keys_of(self.schema, table) {
            section.claim(key.name);
        }
        // It may be what answers in a route or site, which then does not lack that.
        if std::ptr::eq(table, self.schema.route) && word.is_handler(self.schema.handlers) {
            section.claim(self.schema.handlers[0]);
        }
        if std::ptr::eq(table, self.schema.site) && word.is_handler(self.schema.handlers) {
            section.claim("route");
        }
        let told = foreign::told(self.schema, word, Some(table));
        let message = match told.lacks.as_str() {
            "" => message,
            lacks => format!("{message}: {lacks}"),
        };
        self.faults.error(spot, message).hint(told.hint);
    }

    pub(super) fn value(
        &mut self,
        key: &'static SchemaKey,
        kind: &ValueType,
        item: &Toml,
        spot: Spot,
    ) -> Option<ConfigValue> {
        match kind {
            ValueType::OrWord(word, _) if self.is_word(item, word) => Some(ConfigValue::Word(word)),
            ValueType::OrWord(_, other) => self.value(key, other, item, spot),
            ValueType::Table(inner) => self.table(key, inner, item, spot).map(ConfigValue::Section),
            ValueType::OrText(short, inner) => match item.as_str().and_then(flag_of) {
                Some(flag) if key.name == "tls" => self.flag_for_table(key, flag, item, spot),
                _ => self.table_or_text(key, short, inner, item, spot),
            },
            ValueType::OrFlag(short, inner) => match item.as_bool() {
                Some(true) => Some(ConfigValue::Section(Section::new(inner, spot))),
                Some(false) => Some(ConfigValue::Word("false")),
                None => match item.as_str().and_then(flag_of) {
                    Some(flag) => self.quoted_flag(key, flag, item, spot),
                    None => self.table_or_text(key, short, inner, item, spot),
                },
            },
            ValueType::Tables(inner) => self
                .tables(key, inner, item, spot)
                .map(ConfigValue::Sections),
            ValueType::Map(map) => self.map(key, map, item, spot).map(ConfigValue::Map),
            _ if item.is_value() => self.plain(key, kind, item, spot),
            _ => self.wrong_type(key, item, spot),
        }
    }

    fn is_word(&self, item: &Toml, word: &str) -> bool {
        let variable = |name: &str| self.faults.sources().variable(name);
        let text = item.as_str().map(|text| expand(text, variable));
        text.is_some_and(|text| text.as_deref() == Ok(word))
    }

    fn table(
        &mut self,
        key: &'static SchemaKey,
        inner: &'static SchemaTable,
        item: &Toml,
        spot: Spot,
    ) -> Option<Section> {
        if let Some(toml) = item.as_table_like() {
            return Some(self.section(inner, toml, spot));
        }
        self.wrong_type(key, item, spot)
    }

    fn table_or_text(
        &mut self,
        key: &'static SchemaKey,
        short: &'static str,
        inner: &'static SchemaTable,
        item: &Toml,
        spot: Spot,
    ) -> Option<ConfigValue> {
        let (Some(_), Some(short_key)) = (item.as_str(), inner.key(short)) else {
            return self.table(key, inner, item, spot).map(ConfigValue::Section);
        };
        let mut section = Section::new(inner, spot);
        let value = self.value(short_key, &short_key.kind, item, spot)?;
        section.set(
            short,
            Given {
                key: spot,
                spot,
                value,
            },
        );
        Some(ConfigValue::Section(section))
    }

    fn tables(
        &mut self,
        key: &'static SchemaKey,
        inner: &'static SchemaTable,
        item: &Toml,
        spot: Spot,
    ) -> Option<Vec<Section>> {
        if let Some(list) = item.as_array_of_tables() {
            let sections = list.iter().map(|table| {
                let header = self.spot_or(table.span(), spot);
                self.section(inner, table, header)
            });
            return Some(sections.collect());
        }
        let Some(list) = item.as_array() else {
            return self.wrong_type(key, item, spot);
        };
        let mut sections = Vec::new();
        for value in list {
            let header = self.spot_or(value.span(), spot);
            match value.as_inline_table() {
                Some(table) => sections.push(self.section(inner, table, header)),
                None => {
                    let message = format!("an element of `{}` is {}", key.name, value_type(value));
                    let hint = format!("write one {} for each", inner.header);
                    self.faults.error(header, message).hint(hint);
                }
            }
        }
        Some(sections)
    }

    /// A string value, its variables put in; what cannot be is reported.
    pub(super) fn text(&mut self, raw: &str, spot: Spot) -> Option<String> {
        let sources = self.faults.sources();
        let trouble = match expand(raw, |name| sources.variable(name)) {
            Ok(text) if text.contains('\0') => {
                self.faults
                    .error(spot, "a string holds a NUL character")
                    .hint("remove it");
                return None;
            }
            Ok(text) => return Some(text),
            Err(trouble) => trouble,
        };
        match trouble {
            ExpansionError::Undefined(name) => {
                let needle = format!("${{{name}}}");
                let spot = within(sources.text(spot.source), spot, &needle);
                let hint =
                    format!("set it where hob is started, or write `$${{{name}}}` for the text");
                let message = format!("the environment has no variable `{name}`");
                self.faults.error(spot, message).hint(hint);
            }
            ExpansionError::Malformed => {
                let spot = within(sources.text(spot.source), spot, "${");
                self.faults
                    .error(spot, "`${` is not followed by a name and `}`")
                    .hint("a name has letters, digits and `_`; write `$${` for a plain `${`");
            }
        }
        None
    }

    /// Reports a value of the wrong type.
    pub(super) fn wrong_type<T>(&mut self, key: &SchemaKey, item: &Toml, spot: Spot) -> Option<T> {
        let message = format!("`{}` is {}, not {}", key.name, key.kind, item_type(item));
        let hint = match (&key.kind, item) {
            (ValueType::Tables(inner), Toml::Table(_)) => {
                format!("write the header with two brackets: {}", inner.header)
            }
            (ValueType::Tables(inner), _) => match (key.name, item.as_str()) {
                ("listen", Some(text)) => two_lines(inner, "address", text),
                ("site", Some(text)) => two_lines(inner, "root", text),
                _ => format!("write one {} for each", inner.header),
            },
            (ValueType::Text, Toml::Value(TomlValue::Integer(number))) => {
                let number = number.value();
                match key.name {
                    "address" => format!(
                        "write `address = \":{number}\"` for every address of the machine, \
                         `address = \"127.0.0.1:{number}\"` for itself alone"
                    ),
                    name => format!("put it in quotes: `{name} = \"{number}\"`"),
                }
            }
            (_, Toml::ArrayOfTables(_)) if key.kind.table().is_some() => {
                format!("write the header with single brackets: `[{}]`", key.name)
            }
            _ => format!("write `{}`, for example", example(key)),
        };
        self.faults.error(spot, message).hint(hint);
        None
    }

    /// Reports a flag that is written as a text.
    fn quoted_flag<T>(
        &mut self,
        key: &SchemaKey,
        flag: bool,
        item: &Toml,
        spot: Spot,
    ) -> Option<T> {
        let given = item.as_str().unwrap_or_default();
        let message = format!("`{} = {given:?}` is a text, not `{flag}`", key.name);
        let hint = format!("write `{} = {flag}`, without quotes", key.name);
        self.faults.error(spot, message).hint(hint);
        None
    }

    /// Reports a flag in the place of a table that has none.
    fn flag_for_table<T>(
        &mut self,
        key: &SchemaKey,
        flag: bool,
        item: &Toml,
        spot: Spot,
    ) -> Option<T> {
        let given = item.as_str().unwrap_or_default();
        let name = key.name;
        let message = format!("`{name} = {given:?}` names no certificate");
        let hint = match flag {
            true => {
                "write `tls = \"auto\"` for one from an authority, or `tls = { certificate = \
                 \"FILE\", key = \"FILE\" }`; whether there is TLS is `tls` of `[[listen]]`"
            }
            false => "remove it: whether there is TLS is `tls` of `[[listen]]`",
        };
        self.faults.error(spot, message).hint(hint);
        None
    }

    /// Where an element of a list stands.
    pub(super) fn spot_of(&self, value: &toml_edit::Value) -> Spot {
        let start = Spot {
            source: self.source,
            start: 0,
            end: 0,
        };
        self.spot_or(value.span(), start)
    }

    pub(super) fn spot_or(&self, span: Option<Range<usize>>, otherwise: Spot) -> Spot {
        match span {
            Some(span) => Spot {
                source: self.source,
                start: span.start,
                end: span.end,
            },
            None => otherwise,
        }
    }
}

/// What people mean who write a flag as a text.
fn flag_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// How a list of tables is written that was given as one text.
fn two_lines(table: &SchemaTable, key: &str, text: &str) -> String {
    format!(
        "write two lines, below all keys of the top level: {}, and under it `{key} = {text:?}`",
        table.header
    )
}

/// The key with an example value.
fn example(key: &SchemaKey) -> String {
    match key.kind.table().and_then(|table| table.keys.first()) {
        Some(first) => format!("{} = {{ {} = {} }}", key.name, first.name, first.example),
        None => format!("{} = {}", key.name, key.example),
    }
}

/// The key that was probably meant, and how that is said.
fn likely_key(table: &'static SchemaTable, name: &str) -> Option<(&'static SchemaKey, String)> {
    let plain = foreign::plain(name);
    if let Some(key) = table.all_keys().find(|key| key.has_alias(&plain)) {
        let written = match key.kind {
            ValueType::Tables(inner) => format!("one {} for each", inner.header),
            _ => format!("`{}`", example(key)),
        };
        return Some((key, format!("hob's word is `{}`: {written}", key.name)));
    }
    let names = table.all_keys().map(|key| key.name);
    let same = table.key(&plain);
    let key = same.or_else(|| table.key(nearest(&plain, names)?))?;
    Some((key, format!("did you mean `{}`?", key.name)))
}

/// Where the keys of this table are listed, or which they are where they are few.
fn list_of(schema: &Schema, table: &'static SchemaTable) -> String {
    if table.all_keys().count() <= FEW {
        let names = table.all_keys().map(|key| key.name);
        return format!("keys here are {}", listed(names, " and "));
    }
    let all = paths(schema);
    let is_it = |key: &SchemaKey| key.kind.table().is_some_and(|own| std::ptr::eq(own, table));
    match all.iter().find(|(_, key)| is_it(key)) {
        Some((path, _)) => format!(
            "`hob check --explain {path}` lists the keys of {}, `hob check --reference` all keys",
            table.header
        ),
        None => "`hob check --reference` lists all keys".to_owned(),
    }
}

/// So many keys are told in a message.
const FEW: usize = 4;

/// Which other table has this key, as a hint: one inside this table, the top level, or any.
fn home_of(schema: &Schema, table: &'static SchemaTable, name: &str) -> Option<String> {
    let inside = table.all_keys().filter_map(|key| key.kind.table());
    if let Some(inner) = inside.into_iter().find(|inner| inner.key(name).is_some()) {
        return Some(format!("`{name}` belongs into `{}`", inner.name));
    }
    if schema.root.key(name).is_some() {
        return Some(format!(
            "`{name}` belongs at the top level, above {}",
            table.header
        ));
    }
    let plain = foreign::plain(name);
    let all = paths(schema);
    let called = all.iter().find(|(_, key)| key.name == plain);
    let (path, key) = called.or_else(|| all.iter().find(|(_, key)| key.has_alias(&plain)))?;
    let home = path.strip_suffix(key.name)?.trim_end_matches('.');
    if home.is_empty() {
        return Some(format!("did you mean `{path}` at the top level?"));
    }
    Some(format!("did you mean `{}` in `{home}`?", key.name))
}

/// Where `needle` stands within the spot, else the whole spot.
fn within(text: &str, spot: Spot, needle: &str) -> Spot {
    match text[spot.start..spot.end].find(needle) {
        Some(at) => {
            let start = spot.start + at;
            Spot {
                source: spot.source,
                start,
                end: start + needle.len(),
            }
        }
        None => spot,
    }
}

fn item_type(item: &Toml) -> &'static str {
    match item {
        Toml::Value(value) => value_type(value),
        Toml::ArrayOfTables(_) => "a list of tables",
        Toml::Table(_) | Toml::None => "a table",
    }
}

pub(super) fn value_type(value: &TomlValue) -> &'static str {
    match value {
        TomlValue::String(_) => "a string",
        TomlValue::Integer(_) => "an integer",
        TomlValue::Float(_) => "a float",
        TomlValue::Boolean(_) => "a boolean",
        TomlValue::Datetime(_) => "a date",
        TomlValue::Array(_) => "a list",
        TomlValue::InlineTable(_) => "a table",
    }
}
