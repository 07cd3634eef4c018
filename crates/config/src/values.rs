//! Single values: from TOML to the type the schema says, with its range.

use std::collections::BTreeSet;
use std::time::Duration;

use toml_edit::{Item as Toml, Value as TomlValue};

use super::fault::{Spot, listed};
use super::key::{MapOf, SchemaKey, ValueType};
use super::nearest::nearest;
use super::tree::{Argument, ConfigValue, Item, KeyTextPair};
use super::units::{duration_text, parse_duration, parse_size, size_text};
use super::walk::{Walk, value_type};

/// The highest CPU number that can be named; the kernel's own limit is 8191.
const CPU_MAX: usize = 8191;

impl Walk<'_, '_> {
    /// A value that is no table. `kind` is the key's, or a part of it.
    pub(super) fn plain(
        &mut self,
        key: &'static SchemaKey,
        kind: &ValueType,
        item: &Toml,
        spot: Spot,
    ) -> Option<ConfigValue> {
        match (kind, item.as_value()?) {
            (ValueType::Flag, TomlValue::Boolean(flag)) => Some(ConfigValue::Flag(*flag.value())),
            (ValueType::Integer { .. }, TomlValue::Integer(number)) => {
                self.integer(key, kind, *number.value(), spot)
            }
            (ValueType::Size { .. }, TomlValue::Integer(bytes)) => {
                match u64::try_from(*bytes.value()) {
                    Ok(bytes) => self.size(key, kind, bytes, spot),
                    Err(_) => self.out_of_range(key, kind, &bytes.value().to_string(), spot),
                }
            }
            (ValueType::Time { .. }, TomlValue::Integer(number)) => {
                let message = format!("`{}` is a duration and needs a unit", key.name);
                let hint = format!(
                    "write `{} = \"{}s\"`, for example",
                    key.name,
                    number.value()
                );
                self.faults.error(spot, message).hint(hint);
                None
            }
            (ValueType::Texts | ValueType::TextOrTexts, TomlValue::Array(list)) => {
                self.items(key, list).map(ConfigValue::Texts)
            }
            (ValueType::Arguments, TomlValue::Array(list)) => {
                self.arguments(key, list).map(ConfigValue::Arguments)
            }
            (ValueType::Words(words), TomlValue::Array(list)) => {
                let items = self.items(key, list)?;
                self.words(key, words, items)
            }
            (ValueType::Cpus, TomlValue::Array(list)) => self.cpus(key, list),
            (
                ValueType::Texts | ValueType::Arguments | ValueType::Words(_) | ValueType::Cpus,
                TomlValue::String(text),
            ) => {
                let message = format!("`{}` is {kind}, not a string", key.name);
                let hint = format!("write `{} = [{:?}]`", key.name, text.value());
                self.faults.error(spot, message).hint(hint);
                None
            }
            (_, TomlValue::String(raw)) => self.string(key, kind, raw.value(), item, spot),
            _ => self.wrong_type(key, item, spot),
        }
    }

    fn string(
        &mut self,
        key: &'static SchemaKey,
        kind: &ValueType,
        raw: &str,
        item: &Toml,
        spot: Spot,
    ) -> Option<ConfigValue> {
        let text = self.text(raw, spot)?;
        // A variable may stand for a number or a flag, which TOML itself cannot write.
        let is_variable = raw.contains("${");
        match kind {
            ValueType::Flag if is_variable => match text.parse() {
                Ok(flag) => Some(ConfigValue::Flag(flag)),
                Err(_) => self.out_of_range(key, kind, &format!("{text:?}"), spot),
            },
            ValueType::Integer { .. } if is_variable => match text.parse() {
                Ok(number) => self.integer(key, kind, number, spot),
                Err(_) => self.out_of_range(key, kind, &format!("{text:?}"), spot),
            },
            ValueType::Flag | ValueType::Integer { .. } => {
                let right = match kind {
                    ValueType::Flag => text.parse::<bool>().is_ok(),
                    _ => text.parse::<i64>().is_ok(),
                };
                if !right {
                    return self.wrong_type(key, item, spot);
                }
                let message = format!("`{}` is {kind}, not a string", key.name);
                let hint = format!("write it without quotes: `{} = {text}`", key.name);
                self.faults.error(spot, message).hint(hint);
                None
            }
            ValueType::Size { .. } => match parse_size(&text) {
                Ok(bytes) => self.size(key, kind, bytes, spot),
                Err(hint) => self.unreadable(key, "size", &text, &hint, spot),
            },
            ValueType::Time { .. } => match parse_duration(&text) {
                Ok(time) => self.time(key, kind, time, spot),
                Err(hint) => self.unreadable(key, "duration", &text, &hint, spot),
            },
            ValueType::Text => Some(ConfigValue::Text(text)),
            ValueType::TextOrTexts => Some(ConfigValue::Texts(vec![Item { text, spot }])),
            ValueType::Path if text.is_empty() => {
                let hint = "write a path; `.` is the folder of this file";
                self.faults
                    .error(spot, format!("`{}` is empty", key.name))
                    .hint(hint);
                None
            }
            ValueType::Path => Some(ConfigValue::Path(
                self.faults.sources().resolve(self.source, &text),
            )),
            ValueType::Word(words) => self.word(key, words, &text, spot).map(ConfigValue::Word),
            _ => self.wrong_type(key, item, spot),
        }
    }

    fn integer(
        &mut self,
        key: &SchemaKey,
        kind: &ValueType,
        number: i64,
        spot: Spot,
    ) -> Option<ConfigValue> {
        match kind {
            ValueType::Integer { min, max } if (*min..=*max).contains(&number) => {
                Some(ConfigValue::Integer(number))
            }
            _ => self.out_of_range(key, kind, &number.to_string(), spot),
        }
    }

    fn size(
        &mut self,
        key: &SchemaKey,
        kind: &ValueType,
        bytes: u64,
        spot: Spot,
    ) -> Option<ConfigValue> {
        match kind {
            ValueType::Size { min, max } if (*min..=*max).contains(&bytes) => {
                Some(ConfigValue::Size(bytes))
            }
            _ => self.out_of_range(key, kind, &size_text(bytes), spot),
        }
    }

    fn time(
        &mut self,
        key: &SchemaKey,
        kind: &ValueType,
        time: Duration,
        spot: Spot,
    ) -> Option<ConfigValue> {
        match kind {
            ValueType::Time { min, max } if (*min..=*max).contains(&time) => {
                Some(ConfigValue::Time(time))
            }
            _ => self.out_of_range(key, kind, &duration_text(time), spot),
        }
    }

    fn word(
        &mut self,
        key: &SchemaKey,
        words: &'static [&'static str],
        text: &str,
        spot: Spot,
    ) -> Option<&'static str> {
        if let Some(word) = words.iter().find(|word| **word == text) {
            return Some(word);
        }
        let message = format!("{text:?} is no value of `{}`", key.name);
        let valid = listed(words.iter().copied(), " and ");
        let hint = match nearest(text, words.iter().copied()) {
            Some(word) => format!("did you mean \"{word}\"? valid words are {valid}"),
            None => format!("valid words are {valid}"),
        };
        self.faults.error(spot, message).hint(hint);
        None
    }

    fn words(
        &mut self,
        key: &SchemaKey,
        words: &'static [&'static str],
        items: Vec<Item>,
    ) -> Option<ConfigValue> {
        let mut seen = BTreeSet::new();
        let mut right = true;
        for item in &items {
            let word = self.word(key, words, &item.text, item.spot);
            right &= word.is_some();
            if word.is_some_and(|word| !seen.insert(word)) {
                let message = format!("{:?} stands in `{}` twice", item.text, key.name);
                self.faults
                    .error(item.spot, message)
                    .hint("remove one of the two");
                right = false;
            }
        }
        right.then_some(ConfigValue::Texts(items))
    }

    fn items(&mut self, key: &SchemaKey, list: &toml_edit::Array) -> Option<Vec<Item>> {
        self.strings(key, list, |walk, raw, spot| {
            walk.text(raw, spot).map(|text| Item { text, spot })
        })
    }

    fn arguments(
        &mut self,
        key: &SchemaKey,
        list: &toml_edit::Array,
    ) -> Option<Vec<(Argument, Spot)>> {
        self.strings(key, list, |walk, raw, spot| {
            Some((walk.argument(raw, spot)?, spot))
        })
    }

    /// `${query.NAME}` stays, other variables are put in.
    fn argument(&mut self, raw: &str, spot: Spot) -> Option<Argument> {
        const BEGIN: &str = "${query.";
        if !raw.replace("$${", "").contains(BEGIN) {
            return self.text(raw, spot).map(Argument::Text);
        }
        let name = raw
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix('}'));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        match name {
            Some(name) if !name.is_empty() && name.chars().all(is_plain) => {
                Some(Argument::Query(name.to_owned()))
            }
            _ => {
                let message = "a query's value can be a whole argument only";
                let hint = "write `\"${query.NAME}\"` as a string of its own";
                self.faults.error(spot, message).hint(hint);
                None
            }
        }
    }

    /// The strings of a list, each read by `read`; none when one of them is wrong.
    fn strings<T>(
        &mut self,
        key: &SchemaKey,
        list: &toml_edit::Array,
        read: impl Fn(&mut Self, &str, Spot) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        let mut right = true;
        for value in list {
            let spot = self.spot_of(value);
            let item = match value.as_str() {
                Some(raw) => read(self, raw, spot),
                None => {
                    let message = format!(
                        "`{}` is {}, but this is {}",
                        key.name,
                        key.kind,
                        value_type(value)
                    );
                    let hint = format!("write `{} = {}`, for example", key.name, key.example);
                    self.faults.error(spot, message).hint(hint);
                    None
                }
            };
            right &= item.is_some();
            items.extend(item);
        }
        right.then_some(items)
    }

    fn cpus(&mut self, key: &SchemaKey, list: &toml_edit::Array) -> Option<ConfigValue> {
        let mut cpus = BTreeSet::new();
        let mut right = true;
        for value in list {
            let spot = self.spot_of(value);
            let text = match value {
                TomlValue::Integer(number) => Some(number.value().to_string()),
                TomlValue::String(raw) => self.text(raw.value(), spot),
                _ => Some(String::new()),
            };
            let Some(text) = text else {
                right = false;
                continue;
            };
            let Some(ranges) = cpu_ranges(&text) else {
                let message = format!("{text:?} names no CPUs");
                let hint = format!(
                    "write numbers up to {CPU_MAX} and ranges: `{} = [\"0-3,6\"]`",
                    key.name
                );
                self.faults.error(spot, message).hint(hint);
                right = false;
                continue;
            };
            cpus.extend(ranges.into_iter().flatten());
        }
        right.then(|| ConfigValue::Cpus(cpus.into_iter().collect()))
    }

    pub(super) fn map(
        &mut self,
        key: &'static SchemaKey,
        map: &MapOf,
        item: &Toml,
        spot: Spot,
    ) -> Option<Vec<KeyTextPair>> {
        let Some(toml) = item.as_table_like() else {
            return self.wrong_type(key, item, spot);
        };
        let mut pairs = Vec::new();
        for (name, item) in toml.iter() {
            let key_spot = self.spot_or(toml.key(name).and_then(toml_edit::Key::span), spot);
            let value_spot = self.spot_or(item.span(), key_spot);
            let Some(raw) = item.as_str() else {
                let message = format!("the value of a {} in `{}` is a string", map.key, key.name);
                let hint = format!("write `{} = {}`, for example", key.name, key.example);
                self.faults.error(value_spot, message).hint(hint);
                continue;
            };
            if let Some(text) = self.text(raw, value_spot) {
                pairs.push(KeyTextPair {
                    name: name.to_owned(),
                    key: key_spot,
                    text,
                    spot: value_spot,
                });
            }
        }
        Some(pairs)
    }

    fn unreadable<T>(
        &mut self,
        key: &SchemaKey,
        what: &str,
        text: &str,
        hint: &str,
        spot: Spot,
    ) -> Option<T> {
        let message = format!("{text:?} is no {what} (`{}`)", key.name);
        self.faults.error(spot, message).hint(hint);
        None
    }

    fn out_of_range<T>(
        &mut self,
        key: &SchemaKey,
        kind: &ValueType,
        given: &str,
        spot: Spot,
    ) -> Option<T> {
        let message = format!("`{}` is {given}, but must be {kind}", key.name);
        let hint = format!("write `{} = {}`, for example", key.name, key.example);
        self.faults.error(spot, message).hint(hint);
        None
    }
}

/// `0-3,6` as ranges.
fn cpu_ranges(text: &str) -> Option<Vec<std::ops::RangeInclusive<usize>>> {
    let range = |part: &str| {
        let part = part.trim();
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last <= CPU_MAX).then_some(first..=last)
    };
    text.split(',').map(range).collect()
}
