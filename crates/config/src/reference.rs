//! The reference page and `hob check --explain`, made from the schema.

use std::fmt::Write as _;

use hob_trace::AccessLogFormat;

use super::foreign;
use super::key::{Preset, SchemaKey, SchemaTable, paths};
use super::nearest::nearest;
use super::schema::{ANSWER, PROGRAM, Schema};

impl Schema {
    /// The reference page of every key, in Markdown.
    pub fn reference(&self) -> String {
        let mut page = format!("{INTRODUCTION}\n## Top level\n\n{}\n", self.root.text);
        self.add_table(&mut page, self.root, "", &mut Vec::new());
        page.push_str("\n## Fields of access logs\n\n| field | is |\n| --- | --- |\n");
        for (name, meaning) in AccessLogFormat::fields() {
            add(&mut page, format_args!("| `{{{name}}}` | {meaning} |\n"));
        }
        page
    }

    /// What a key means, for a terminal. `key` is a path such as `listen.backlog`, or a last part
    /// such as `backlog`, which may explain several keys; or what a key is called elsewhere, which
    /// tells the key. `None` when there is no such key and no such word.
    pub fn explain_key(&self, key: &str) -> Option<String> {
        let asked = key.trim_matches(['[', ']']);
        let all = paths(self);
        let exact = all.iter().find(|(path, _)| path == asked);
        let named = all
            .iter()
            .filter(|(_, key)| exact.is_none() && key.name == asked);
        let mut found: Vec<_> = exact.into_iter().chain(named).collect();
        let mut text = String::new();
        if found.is_empty() {
            let plain = foreign::plain(asked);
            found.extend(all.iter().filter(|(_, key)| key.has_alias(&plain)));
            let words: Vec<_> = foreign::find_anywhere(self, asked).collect();
            for word in &words {
                let told = foreign::told(self, word, None);
                let what = [told.lacks, told.hint].join("\n  ");
                add(
                    &mut text,
                    format_args!("{asked}, a word of {}\n  {}\n", word.of, what.trim_start()),
                );
            }
            let of_words = all
                .iter()
                .filter(|(path, _)| words.iter().any(|word| word.names(path)));
            found.extend(of_words);
            if !found.is_empty() && words.is_empty() {
                add(&mut text, format_args!("{asked} has another name here\n"));
            }
            if found.is_empty() && words.is_empty() {
                return None;
            }
        }
        for (path, key) in found {
            if !text.is_empty() {
                text.push('\n');
            }
            self.explain(&mut text, path, key);
        }
        Some(text)
    }

    /// What to tell someone who asks for a key that does not exist.
    pub fn unknown_key(&self, key: &str) -> String {
        let all = paths(self);
        let full = all.iter().map(|(path, _)| path.as_str());
        let last = all.iter().map(|(_, key)| key.name);
        match nearest(key, full.chain(last)) {
            Some(meant) => format!("there is no key `{key}`; did you mean `{meant}`?"),
            None => format!("there is no key `{key}`; `hob check --reference` lists them all"),
        }
    }

    fn explain(&self, text: &mut String, path: &str, key: &SchemaKey) {
        let inner = key.kind.table();
        let meaning = inner.map_or(key.text, |table| table.text);
        add(
            text,
            format_args!("{path}\n  {meaning}\n  value:   {}\n", key.kind),
        );
        if let Some(table) = inner {
            let keys: Vec<&str> = table.all_keys().map(|key| key.name).collect();
            add(text, format_args!("  keys:    {}\n", keys.join(" ")));
        } else {
            add(
                text,
                format_args!("  default: {}\n", self.default_of(path, key)),
            );
            add(
                text,
                format_args!("  example: {} = {}\n", key.name, key.example),
            );
        }
    }

    fn default_of(&self, path: &str, key: &SchemaKey) -> String {
        let home = path.strip_suffix(key.name).unwrap_or_default();
        let says = match home {
            "site.route." if ANSWER.key(key.name).is_some() => "site".to_owned(),
            _ => self.table_of_site(home, key).unwrap_or_default(),
        };
        if let Some(general) = self.general_path(path) {
            return match key.name {
                "env" => "those of `program.env`, and its own".to_owned(),
                _ => format!("what `{general}` says ({})", key.preset),
            };
        }
        match (says.as_str(), &key.preset) {
            ("site", _) if key.name.starts_with("headers") => {
                format!("none besides those of `site.{}`", key.name)
            }
            ("", Preset::Inherited(text)) => (*text).to_owned(),
            ("", preset) => preset.to_string(),
            (table, preset) => format!("what `{table}.{}` says ({preset})", key.name),
        }
    }

    /// The table in which a site says for all routes what this key of a handler says for one.
    fn table_of_site(&self, home: &str, key: &SchemaKey) -> Option<String> {
        let handler = home.strip_prefix("site.route.")?.strip_suffix('.')?;
        let base = self.route.key(handler)?.kind.table()?.base?;
        let is_base = |one: &&SchemaKey| {
            one.kind
                .table()
                .is_some_and(|table| std::ptr::eq(table, base))
        };
        let of_site = self.site.all_keys().find(is_base)?;
        base.key(key.name)?;
        Some(format!("site.{}", of_site.name))
    }

    /// Where `[program]` says for all programs what this key says for those of a route.
    fn general_path(&self, path: &str) -> Option<String> {
        let (handler, key) = path.strip_prefix("site.route.")?.split_once('.')?;
        let base = self.route.key(handler)?.kind.table()?.base?;
        let first = key.split('.').next()?;
        (std::ptr::eq(base, &PROGRAM) && base.key(first).is_some())
            .then(|| format!("program.{key}"))
    }

    /// `shown` are the tables whose keys stand on the page already.
    fn add_table(
        &self,
        page: &mut String,
        table: &'static SchemaTable,
        path: &str,
        shown: &mut Vec<*const SchemaTable>,
    ) {
        shown.push(table);
        let new: Vec<_> = { table.bases() }
            .filter(|base| !shown.contains(&std::ptr::from_ref(*base)))
            .collect();
        shown.extend(new.iter().map(|base| std::ptr::from_ref(*base)));
        let inherited = new.iter().flat_map(|base| base.keys);
        let keys = table.keys.iter().chain(inherited.clone());
        for key in keys.filter(|key| key.kind.table().is_none()) {
            let path = join(path, key.name);
            add(page, format_args!("\n### `{path}`\n\n{}\n\n", key.text));
            add(page, format_args!("- value: {}\n", key.kind));
            add(
                page,
                format_args!("- default: {}\n", self.default_of(&path, key)),
            );
            add(
                page,
                format_args!("- example: `{} = {}`\n", key.name, key.example),
            );
        }
        // Routes come behind what they take over from their site.
        for key in inherited.chain(table.keys) {
            let Some(inner) = key.kind.table() else {
                continue;
            };
            let path = join(path, key.name);
            add(
                page,
                format_args!("\n## `{path}`: {}\n\n{}\n", key.kind, inner.text),
            );
            if !matches!(key.preset, Preset::Nothing("")) {
                add(page, format_args!("\nDefault: {}\n", key.preset));
            }
            self.add_table(page, inner, &path, shown);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn add(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(piece);
}

const INTRODUCTION: &str = "\
# Config reference

The config is one TOML file, `hob.toml`, with those it includes. A key that is not on this page is
an error, and `hob check` tells every error at once.

- Sizes are `\"16KiB\"` (units `B`, `KiB`, `MiB`, `GiB`, `TiB`) or a number of bytes.
- Durations are `\"250ms\"`, `\"10s\"`, `\"1m30s\"` (units `ms`, `s`, `m`, `h`, `d`).
- Paths are relative to the file that names them.
- `${NAME}` in a string is replaced by that variable of the environment; one that is not set is an
  error. `$${` is a plain `${`. A number or a flag may be written as such a string.
- `hob check --explain KEY` prints what this page says of a key.
";
