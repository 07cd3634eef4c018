//! A config as it is shown to those who may look and not change it: without what may be secret.
//! That is the values of `env`, which programs get, of the fields that a collector of traces is
//! sent, and hashes of passwords, which could be guessed at.

use std::collections::HashSet;
use std::ops::Range;

use toml_edit::Item;

use super::expand;
use super::parse::parse;
use super::sources::ConfigSources;

/// What stands in the place of a value.
const HIDDEN: &str = "\"(hidden)\"";
/// What is shown of a text that cannot be read, in which anything could stand anywhere.
const UNREAD: &str = "# This text is not TOML; it is shown to those who may change the config.\n";

/// The text with what may be secret left out. Comments are shown.
pub fn without_secrets(text: &str) -> String {
    let parsed = parse(text);
    let document = match parsed.document {
        Some(document) if parsed.errors.is_empty() => document,
        _ => return UNREAD.to_owned(),
    };
    let spans = spans(document.as_item());
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for span in spans {
        shown.push_str(text.get(done..span.start).unwrap_or_default());
        shown.push_str(HIDDEN);
        done = span.end;
    }
    shown.push_str(text.get(done..).unwrap_or_default());
    without_hashes(&shown)
}

/// Names of the variables whose values may be secret: the config has them in such values.
pub(super) fn variables(sources: &ConfigSources) -> HashSet<String> {
    let mut names = HashSet::new();
    for source in 0..sources.count() {
        let text = sources.text(source);
        let Some(document) = parse(text).document else {
            continue;
        };
        for span in spans(document.as_item()) {
            let value = text.get(span).unwrap_or_default();
            names.extend(expand::names(value).map(str::to_owned));
        }
    }
    names
}

fn spans(root: &Item) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    secrets(root, "", &mut spans);
    spans.sort_by_key(|span| span.start);
    spans
}

/// Where values stand that may be secret. `name` is the key that `item` is the value of.
fn secrets(item: &Item, name: &str, spans: &mut Vec<Range<usize>>) {
    for_each(item, &mut |key, inner| match is_secret(name, key) {
        true => values(inner, spans),
        false => secrets(inner, key, spans),
    });
}

/// What a table has for this key may be secret.
pub fn is_secret(table: &str, key: &str) -> bool {
    matches!(
        (table, key),
        (_, "env") | ("otlp" | "proxy", "headers") | ("sticky", "secret")
    )
}

fn values(item: &Item, spans: &mut Vec<Range<usize>>) {
    match item {
        Item::Value(value) if !value.is_inline_table() => spans.extend(value.span()),
        _ => for_each(item, &mut |_, inner| values(inner, spans)),
    }
}

/// What is in a table, of whichever form, or in an array of such.
fn for_each(item: &Item, each: &mut dyn FnMut(&str, &Item)) {
    if let Some(table) = item.as_table_like() {
        table.iter().for_each(|(key, inner)| each(key, inner));
    } else if let Some(tables) = item.as_array_of_tables() {
        let entries = tables.iter().flat_map(|table| table.iter());
        entries.for_each(|(key, inner)| each(key, inner));
    } else if let Some(array) = item.as_array() {
        let tables = array.iter().filter_map(|value| value.as_inline_table());
        for (key, value) in tables.flat_map(|table| table.iter()) {
            each(key, &Item::Value(value.clone()));
        }
    }
}

fn without_hashes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("$argon2") {
        let (before, hash) = rest.split_at(at);
        shown.push_str(before);
        shown.push_str("(a hash)");
        let is_part = |one: char| one.is_ascii_alphanumeric() || "$=,+/.-_".contains(one);
        rest = hash.trim_start_matches(is_part);
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_left_out_in_every_form_of_a_table() {
        let text = "drain = \"1s\" # of all\n\
            [program]\nenv = { A = \"sesame\", \"B\" = 'sesame' }\n\
            [otlp]\nheaders.authorization = \"Bearer sesame\"\nservice = \"env\"\n\
            [[site]]\nheaders = { X-Env = \"shown\" }\n\
            [[site.route]]\npath = \"/a\"\nresident = { run = [\"x\"], env = { C = \"\"\"\nsesame\"\"\" } }\n\
            [[site.route]]\npath = \"/b\"\n[site.route.cgi]\ndir = \"env\"\n[site.route.cgi.env]\nD = \"sesame\"\n";
        let shown = without_secrets(text);
        assert!(!shown.contains("sesame"), "{shown}");
        let hidden = shown.matches("\"(hidden)\"").count();
        assert_eq!(hidden, 5, "{shown}");
        for kept in [
            "drain = \"1s\" # of all\n",
            "env = { A = \"(hidden)\", \"B\" = \"(hidden)\" }",
            "headers = { X-Env = \"shown\" }",
            "dir = \"env\"",
            "service = \"env\"",
        ] {
            assert!(shown.contains(kept), "{shown}");
        }
    }

    #[test]
    fn arrays_of_inline_tables_are_looked_into() {
        let text = "site = [{ route = [{ path = \"/a\", cgi = { env = { A = \"sesame\" } } }] }]\n";
        assert!(!without_secrets(text).contains("sesame"));
    }

    #[test]
    fn hashes_of_passwords_are_left_out() {
        let text =
            "a = 1\npassword = \"$argon2id$v=19$m=64,t=1,p=1$c29t$eW+/z\" # x\nb = \"$argon2\"";
        assert_eq!(
            without_secrets(text),
            "a = 1\npassword = \"(a hash)\" # x\nb = \"(a hash)\""
        );
        assert_eq!(without_secrets("plain = 1"), "plain = 1");
    }

    #[test]
    fn text_that_is_not_toml_is_not_shown() {
        assert_eq!(
            without_secrets("[program]\nenv = { A = \"sesame }\n"),
            UNREAD
        );
        assert_eq!(without_secrets("env = { A = \"sesame\" }\nb c\n"), UNREAD);
    }
}
