//! The reference page and `hob check --explain`, made from the schema.

use std::fmt::Write as _;

use hob_trace::Format;

use super::key::{Key, Preset, Table, paths};
use super::nearest::nearest;
use super::schema::{ANSWER, PROGRAM, ROOT};

/// The reference page of every key, in Markdown.
pub fn reference() -> String {
    let mut page = format!("{INTRODUCTION}\n## Top level\n\n{}\n", ROOT.text);
    add_table(&mut page, &ROOT, "", &mut Vec::new());
    page.push_str("\n## Fields of access logs\n\n| field | is |\n| --- | --- |\n");
    for (name, meaning) in Format::fields() {
        add(&mut page, format_args!("| `{{{name}}}` | {meaning} |\n"));
    }
    page
}

/// What a key means, for a terminal. `key` is a path such as `listen.backlog`, or a last part such
/// as `backlog`, which may explain several keys. `None` when there is no such key.
pub fn explain_key(key: &str) -> Option<String> {
    let asked = key.trim_matches(['[', ']']);
    let all = paths();
    let exact = all.iter().find(|(path, _)| path == asked);
    let named = all
        .iter()
        .filter(|(_, key)| exact.is_none() && key.name == asked);
    let found: Vec<_> = exact.into_iter().chain(named).collect();
    if found.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (index, (path, key)) in found.into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        explain(&mut text, path, key);
    }
    Some(text)
}

/// What to tell someone who asks for a key that does not exist.
pub fn unknown_key(key: &str) -> String {
    let all = paths();
    let full = all.iter().map(|(path, _)| path.as_str());
    let last = all.iter().map(|(_, key)| key.name);
    match nearest(key, full.chain(last)) {
        Some(meant) => format!("there is no key `{key}`; did you mean `{meant}`?"),
        None => format!("there is no key `{key}`; `hob check --reference` lists them all"),
    }
}

fn explain(text: &mut String, path: &str, key: &Key) {
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
        add(text, format_args!("  default: {}\n", default_of(path, key)));
        add(
            text,
            format_args!("  example: {} = {}\n", key.name, key.example),
        );
    }
}

fn default_of(path: &str, key: &Key) -> String {
    let home = path.strip_suffix(key.name).unwrap_or_default();
    let says = match home {
        "site.route.files." if key.name != "root" => "site.files",
        "site.route." if ANSWER.key(key.name).is_some() => "site",
        _ => "",
    };
    if let Some(general) = general_path(path) {
        return match key.name {
            "env" => "those of `program.env`, and its own".to_owned(),
            _ => format!("what `{general}` says ({})", key.preset),
        };
    }
    match (says, &key.preset) {
        ("site", _) if key.name.starts_with("headers") => {
            format!("none besides those of `site.{}`", key.name)
        }
        ("", Preset::Inherited(text)) => (*text).to_owned(),
        ("", preset) => preset.to_string(),
        (table, preset) => format!("what `{table}.{}` says ({preset})", key.name),
    }
}

/// Where `[program]` says for all programs what this key says for those of a route.
fn general_path(path: &str) -> Option<String> {
    let key = ["site.route.cgi.", "site.route.warm."]
        .iter()
        .find_map(|handler| path.strip_prefix(handler))?;
    let first = key.split('.').next()?;
    PROGRAM.key(first)?;
    Some(format!("program.{key}"))
}

/// `shown` are the tables whose keys stand on the page already.
fn add_table(page: &mut String, table: &'static Table, path: &str, shown: &mut Vec<*const Table>) {
    shown.push(table);
    let base = table.base.filter(|base| {
        let is_new = !shown.contains(&std::ptr::from_ref(*base));
        shown.push(*base);
        is_new
    });
    let inherited = base.map_or(&[][..], |base| base.keys);
    let keys = table.keys.iter().chain(inherited);
    for key in keys.filter(|key| key.kind.table().is_none()) {
        let path = join(path, key.name);
        add(page, format_args!("\n### `{path}`\n\n{}\n\n", key.text));
        add(page, format_args!("- value: {}\n", key.kind));
        add(
            page,
            format_args!("- default: {}\n", default_of(&path, key)),
        );
        add(
            page,
            format_args!("- example: `{} = {}`\n", key.name, key.example),
        );
    }
    for key in table.keys {
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
        add_table(page, inner, &path, shown);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_on_the_page_once() {
        let page = reference();
        for (path, key) in paths() {
            let home = path.strip_suffix(key.name).unwrap();
            let is_base = (home == "site.route.files." && key.name != "root")
                || (home == "site.route." && ANSWER.key(key.name).is_some())
                || general_path(&path).is_some();
            let mark = if key.kind.table().is_some() {
                "## "
            } else {
                "### "
            };
            let heading = format!("\n{mark}`{path}`");
            assert_eq!(
                page.matches(&heading).count(),
                usize::from(!is_base),
                "{path}"
            );
        }
    }

    #[test]
    fn fields_of_access_logs_are_on_the_page() {
        let page = reference();
        assert!(
            page.contains("\n| `{status}` | The answer's status code;"),
            "{page}"
        );
    }

    #[test]
    fn every_key_is_explained_with_default_and_example() {
        for (path, key) in paths() {
            let text = explain_key(&path).unwrap();
            assert!(text.starts_with(&format!("{path}\n")), "{text}");
            let is_table = key.kind.table().is_some();
            assert_eq!(
                key.text.is_empty() || key.example.is_empty(),
                is_table,
                "{path}"
            );
        }
    }

    #[test]
    fn last_part_of_a_path_is_enough() {
        let text = explain_key("backlog").unwrap();
        assert!(text.starts_with("listen.backlog\n"), "{text}");
        assert_eq!(explain_key("log").unwrap().matches("\n  value:").count(), 1);
        assert_eq!(explain_key("v6only"), explain_key("listen.v6only"));
        assert_eq!(explain_key("backlok"), None);
        assert!(unknown_key("backlok").ends_with("did you mean `backlog`?"));
        assert!(unknown_key("limits.boddy").ends_with("did you mean `limits.body`?"));
        assert!(
            explain_key("[[listen]]")
                .unwrap()
                .contains("  keys:    address backlog")
        );
    }
}
