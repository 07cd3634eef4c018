//! From TOML to a tree of sections, by the schema: unknown keys and wrong types end here.
//!
//! Every mistake is reported and the walk goes on; what is wrong is left out of the tree and marked
//! there, so that later checks do not report its consequences.

use std::ops::Range;

use toml_edit::{Item as Toml, TableLike, Value as TomlValue};

use super::expand::{Trouble, expand};
use super::fault::{Faults, Spot, listed};
use super::key::{Key, Kind, Preset, Table, paths};
use super::nearest::nearest;
use super::schema::{self, HANDLERS, HANDLERS_LATER};
use super::tree::{Given, Section, Value};

/// The tree of one source, parsed before.
pub(crate) fn walk(
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
        source,
        faults,
        required,
    }
    .section(&schema::ROOT, root, whole)
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
    pub(super) source: usize,
    pub(super) faults: &'w mut Faults<'s>,
    required: Required,
}

impl Walk<'_, '_> {
    pub(super) fn section(
        &mut self,
        table: &'static Table,
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

    fn missing_keys(&mut self, section: &Section, table: &'static Table) {
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
        table: &'static Table,
        name: &str,
        spot: Spot,
    ) {
        if std::ptr::eq(table, &schema::ROUTE) && HANDLERS_LATER.contains(&name) {
            // It is the route's handler, so the route does not lack one.
            section.claim(HANDLERS[0]);
            let message = format!("handler `{name}` is not built yet in this version");
            let hint = format!(
                "this version has {}",
                listed(HANDLERS.iter().copied(), " and ")
            );
            self.faults.error(spot, message).hint(hint);
            return;
        }
        let meant = likely_key(table, name);
        if let Some(key) = meant {
            section.claim(key.name);
        }
        let hint = match meant {
            Some(key) => format!("did you mean `{}`?", key.name),
            None => home_of(table, name).unwrap_or_else(|| {
                let valid = table.all_keys().map(|key| key.name);
                format!("keys here are {}", listed(valid, " and "))
            }),
        };
        let place = if table.name.is_empty() { "at" } else { "in" };
        let message = format!("unknown key `{name}` {place} {}", table.header);
        self.faults.error(spot, message).hint(hint);
    }

    pub(super) fn value(
        &mut self,
        key: &'static Key,
        kind: &Kind,
        item: &Toml,
        spot: Spot,
    ) -> Option<Value> {
        match kind {
            Kind::OrWord(word, _) if self.is_word(item, word) => Some(Value::Word(word)),
            Kind::OrWord(_, other) => self.value(key, other, item, spot),
            Kind::Table(inner) => self.table(key, inner, item, spot).map(Value::Section),
            Kind::OrText(short, inner) => self.table_or_text(key, short, inner, item, spot),
            Kind::OrFlag(short, inner) => match item.as_bool() {
                Some(true) => Some(Value::Section(Section::new(inner, spot))),
                Some(false) => Some(Value::Word("false")),
                None => self.table_or_text(key, short, inner, item, spot),
            },
            Kind::Tables(inner) => self.tables(key, inner, item, spot).map(Value::Sections),
            Kind::Map(map) => self.map(key, map, item, spot).map(Value::Map),
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
        key: &'static Key,
        inner: &'static Table,
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
        key: &'static Key,
        short: &'static str,
        inner: &'static Table,
        item: &Toml,
        spot: Spot,
    ) -> Option<Value> {
        let (Some(_), Some(short_key)) = (item.as_str(), inner.key(short)) else {
            return self.table(key, inner, item, spot).map(Value::Section);
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
        Some(Value::Section(section))
    }

    fn tables(
        &mut self,
        key: &'static Key,
        inner: &'static Table,
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
            Trouble::Undefined(name) => {
                let needle = format!("${{{name}}}");
                let spot = within(sources.text(spot.source), spot, &needle);
                let hint =
                    format!("set it where hob is started, or write `$${{{name}}}` for the text");
                let message = format!("the environment has no variable `{name}`");
                self.faults.error(spot, message).hint(hint);
            }
            Trouble::Malformed => {
                let spot = within(sources.text(spot.source), spot, "${");
                self.faults
                    .error(spot, "`${` is not followed by a name and `}`")
                    .hint("a name has letters, digits and `_`; write `$${` for a plain `${`");
            }
        }
        None
    }

    /// Reports a value of the wrong type.
    pub(super) fn wrong_type<T>(&mut self, key: &Key, item: &Toml, spot: Spot) -> Option<T> {
        let message = format!("`{}` is {}, not {}", key.name, key.kind, item_type(item));
        let hint = match (&key.kind, item) {
            (Kind::Tables(inner), Toml::Table(_)) => {
                format!("write the header with two brackets: {}", inner.header)
            }
            (Kind::Tables(inner), _) => format!("write one {} for each", inner.header),
            (_, Toml::ArrayOfTables(_)) if key.kind.table().is_some() => {
                format!("write the header with single brackets: `[{}]`", key.name)
            }
            _ => format!("write `{}`, for example", example(key)),
        };
        self.faults.error(spot, message).hint(hint);
        None
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

/// The key with an example value.
fn example(key: &Key) -> String {
    match key.kind.table().and_then(|table| table.keys.first()) {
        Some(first) => format!("{} = {{ {} = {} }}", key.name, first.name, first.example),
        None => format!("{} = {}", key.name, key.example),
    }
}

/// The key that was probably meant.
fn likely_key(table: &'static Table, name: &str) -> Option<&'static Key> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    table
        .key(&plain)
        .or_else(|| {
            table
                .all_keys()
                .find(|key| key.aka.contains(&plain.as_str()))
        })
        .or_else(|| table.key(nearest(&plain, table.all_keys().map(|key| key.name))?))
}

/// Which other table has this key, as a hint: one inside this table, the top level, or any.
fn home_of(table: &'static Table, name: &str) -> Option<String> {
    let inside = table.all_keys().filter_map(|key| key.kind.table());
    if let Some(inner) = inside.into_iter().find(|inner| inner.key(name).is_some()) {
        return Some(format!("`{name}` belongs into `{}`", inner.name));
    }
    if schema::ROOT.key(name).is_some() {
        return Some(format!(
            "`{name}` belongs at the top level, above {}",
            table.header
        ));
    }
    let plain = name.to_ascii_lowercase().replace('-', "_");
    let all = paths();
    let called = all.iter().find(|(_, key)| key.name == plain);
    let (path, key) = called.or_else(|| {
        all.iter()
            .find(|(_, key)| key.aka.contains(&plain.as_str()))
    })?;
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
