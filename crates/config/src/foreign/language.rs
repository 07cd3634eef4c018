//! Whose config a text is that is no TOML, by what only that kind of file has.

use super::find_anywhere;
use crate::schema::Schema;

/// Whose a text is, as `nginx's configuration`; `None` where it may well be TOML with a slip.
pub fn language_of(schema: &Schema, text: &str) -> Option<&'static str> {
    let lines: Vec<&str> = text
        .lines()
        .take(LINES_MAX)
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .collect();
    let has = |is: &dyn Fn(&str) -> bool| lines.iter().any(|line| is(line));
    let share = |is: &dyn Fn(&str) -> bool| lines.iter().filter(|line| is(line)).count() * 2;
    let most = lines.len();
    if is_json(text) {
        return Some(match () {
            () if text.contains("\"listeners\"") => "NGINX Unit's configuration (JSON)",
            () if text.contains("\"apps\"") => "Caddy's configuration (JSON)",
            () => "JSON",
        });
    }
    if has(&|line| line == "[uwsgi]") {
        return Some("uWSGI's configuration");
    }
    if has(&|line| line.starts_with("pm =") || line.starts_with("pm.")) {
        return Some("a pool of php-fpm");
    }
    if has(&is_tag) {
        return Some("Apache's configuration");
    }
    if has(&|line| line.starts_with("server.modules") || line.starts_with("$HTTP[")) {
        return Some("lighttpd's configuration");
    }
    // What follows has no `=` behind its words; a line of TOML always has one, or is a header.
    if share(&is_toml) > most {
        return None;
    }
    if has(&|line| line.ends_with(';')) && share(&is_of_blocks) > most {
        return Some("nginx's configuration");
    }
    if has(&|line| first_is_of(schema, line, "Caddy")) && share(&|line| !is_yaml(line)) > most {
        return Some("a Caddyfile");
    }
    if has(&|line| first_is_of(schema, line, "Apache")) && share(&|line| !is_yaml(line)) > most {
        return Some("Apache's configuration");
    }
    (share(&is_yaml) > most).then_some("YAML")
}

/// Lines that are looked at.
const LINES_MAX: usize = 200;

fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let inner = text.strip_prefix('{').or_else(|| text.strip_prefix('['));
    let inner = inner.map(str::trim_start).unwrap_or_default();
    // A header of TOML is no string, number or list.
    (text.starts_with('{') && inner.starts_with(['"', '}'])) || inner.starts_with('{')
}

/// `<VirtualHost *:80>`, `</Directory>`.
fn is_tag(line: &str) -> bool {
    let name = line
        .strip_prefix('<')
        .map(|rest| rest.trim_start_matches('/'));
    let starts_with_letter =
        |name: &str| name.starts_with(|first: char| first.is_ascii_alphabetic());
    name.is_some_and(starts_with_letter) && line.ends_with('>')
}

/// A header, or a key with its value.
fn is_toml(line: &str) -> bool {
    let is_header = line.starts_with('[') && line.ends_with(']');
    let key = line.split_once('=').map(|(key, _)| key.trim());
    let is_key = |key: &str| !key.is_empty() && !key.contains([' ', '{', '(', '$', ':', '@']);
    is_header || key.is_some_and(is_key) && !line.ends_with(';')
}

/// A line of nginx: it ends in `;` or is the begin or the end of a block.
fn is_of_blocks(line: &str) -> bool {
    line.ends_with([';', '{', '}'])
}

/// `key:`, `key: value`, `- item`, `---`.
fn is_yaml(line: &str) -> bool {
    let is_word = |key: &str| {
        !key.is_empty()
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-\"'.".contains(&b))
    };
    let key = line
        .strip_suffix(':')
        .or(line.split_once(": ").map(|(key, _)| key));
    line == "---" || line.starts_with("- ") || key.is_some_and(is_word)
}

/// The line begins with a word of this server.
fn first_is_of(schema: &Schema, line: &str, server: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    find_anywhere(schema, first).any(|entry| entry.of.contains(server))
}
