//! What must hold for all keys, those of handlers among them, and for words of other servers.

use std::path::Path;

use hob_config::foreign::{Foreign, ForeignEquivalent, find_anywhere, language_of};
use hob_config::key::{SchemaTable, paths};
use hob_config::schema::{ANSWER, PROGRAM};
use serde_json::{Value, json};

use super::*;

/// `[program]` says for all programs what this key says for those of a route.
fn is_of_program(path: &str) -> bool {
    let mut handlers = [
        "cgi", "warm", "resident", "session", "fastcgi", "scgi", "proxy",
    ]
    .into_iter();
    handlers.any(|handler| {
        let key = path.strip_prefix(&format!("site.route.{handler}."));
        key.is_some_and(|key| PROGRAM.key(key.split('.').next().unwrap()).is_some())
    })
}

#[test]
fn every_key_is_on_the_page_once() {
    let page = SCHEMA.reference();
    for (path, key) in paths(&SCHEMA) {
        let home = path.strip_suffix(key.name).unwrap();
        let of_route = path.strip_prefix("site.route.");
        let first = of_route.and_then(|below| below.split('.').next());
        let of_snippet = path.strip_prefix("snippet.");
        let is_base = (home == "site.route.files." && key.name != "root")
            || path.starts_with("defaults.")
            || of_snippet.is_some_and(|below| !below.starts_with("name"))
            || first.is_some_and(|first| ANSWER.key(first).is_some())
            || is_of_program(&path);
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
    let page = SCHEMA.reference();
    assert!(
        page.contains("\n| `{status}` | The answer's status code;"),
        "{page}"
    );
}

#[test]
fn every_key_is_explained_with_default_and_example() {
    for (path, key) in paths(&SCHEMA) {
        let text = SCHEMA.explain_key(&path).unwrap();
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
    let text = SCHEMA.explain_key("backlog").unwrap();
    assert!(text.starts_with("listen.backlog\n"), "{text}");
    assert_eq!(
        SCHEMA
            .explain_key("log")
            .unwrap()
            .matches("\n  value:")
            .count(),
        1
    );
    assert_eq!(
        SCHEMA.explain_key("v6only"),
        SCHEMA.explain_key("listen.v6only")
    );
    assert_eq!(SCHEMA.explain_key("backlok"), None);
    assert!(
        SCHEMA
            .unknown_key("backlok")
            .ends_with("did you mean `backlog`?")
    );
    assert!(
        SCHEMA
            .unknown_key("limits.boddy")
            .ends_with("did you mean `limits.body`?")
    );
    assert!(
        SCHEMA
            .explain_key("[[listen]]")
            .unwrap()
            .contains("  keys:    address backlog")
    );
}

/// The schema of a path, through lists and alternatives.
fn find<'s>(mut schema: &'s Value, path: &str) -> Option<&'s Value> {
    for part in path.split('.') {
        let within = |schema: &'s Value| {
            let inner = schema.get("items").unwrap_or(schema);
            inner.get("properties").and_then(|all| all.get(part))
        };
        let options = schema.get("anyOf").and_then(Value::as_array);
        schema = within(schema).or_else(|| options?.iter().find_map(within))?;
    }
    Some(schema)
}

#[test]
fn every_key_is_in_the_schema_and_no_other_is_allowed() {
    let schema = SCHEMA.json();
    for (path, _) in paths(&SCHEMA) {
        let found = find(&schema, &path).unwrap_or_else(|| panic!("{path} is missing"));
        assert!(
            found["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{path}"
        );
    }
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(
        schema["properties"]["listen"]["items"]["required"],
        json!(["address"])
    );
}

fn words() -> impl Iterator<Item = &'static Foreign> {
    SCHEMA.words.iter().copied().flatten()
}

fn tables() -> Vec<&'static SchemaTable> {
    let mut tables = vec![SCHEMA.root];
    tables.extend(
        paths(&SCHEMA)
            .iter()
            .filter_map(|(_, key)| key.kind.table()),
    );
    tables
}

#[test]
fn no_word_shadows_a_key_or_an_alias_of_its_place() {
    let mut wrong = Vec::new();
    for entry in words() {
        for table in tables().into_iter().filter(|table| entry.is_for(table)) {
            for key in table.all_keys() {
                let names = key.aka.iter().chain([&key.name]);
                let taken = names.filter(|name| entry.has(name));
                wrong.extend(taken.map(|name| format!("{name} in {}", table.header)));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_word_has_one_answer_in_a_place() {
    for entry in words() {
        for word in entry.words {
            for table in tables().into_iter().filter(|table| entry.is_for(table)) {
                let found = words().filter(|other| other.has(word) && other.is_for(table));
                assert_eq!(found.count(), 1, "{word} in {}", table.header);
            }
        }
    }
}

#[test]
fn keys_and_pages_that_are_named_exist() {
    let all_paths = paths(&SCHEMA);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    for entry in words() {
        match &entry.answer {
            ForeignEquivalent::Keys(keys, _) => {
                for path in *keys {
                    let known = all_paths.iter().any(|(known, _)| known == path);
                    assert!(known, "{:?} names {path}", entry.words);
                }
            }
            ForeignEquivalent::Lacks(_, _, page) | ForeignEquivalent::Needless(_, page) => {
                assert!(docs.join(page).is_file(), "{:?} names {page}", entry.words);
            }
        }
    }
}

#[test]
fn samples_within_answers_name_keys() {
    let all_paths = paths(&SCHEMA);
    for entry in words() {
        let (ForeignEquivalent::Keys(_, text) | ForeignEquivalent::Lacks(_, text, _)) =
            &entry.answer
        else {
            continue;
        };
        for code in text.split('`').skip(1).step_by(2) {
            let Some((name, _)) = code.split_once(" = ") else {
                continue;
            };
            let known = all_paths.iter().any(|(_, key)| key.name == name);
            assert!(known, "{:?} says {code}", entry.words);
        }
    }
}

#[test]
fn case_and_dashes_do_not_matter() {
    for word in ["DocumentRoot", "documentroot", "client-max-body-size"] {
        assert_eq!(find_anywhere(&SCHEMA, word).count(), 1, "{word}");
    }
    assert!(find_anywhere(&SCHEMA, "kettle").next().is_none());
}

#[test]
fn texts_of_other_servers_are_recognised() {
    for (text, whose) in [
        (
            "{\n  \"listeners\": { \"*:80\": {} }\n}",
            "NGINX Unit's configuration (JSON)",
        ),
        ("{\"apps\": {\"http\": {}}}", "Caddy's configuration (JSON)"),
        ("[\n {\"a\": 1}\n]", "JSON"),
        (
            "server {\n  listen 80;\n  root /srv;\n}\n",
            "nginx's configuration",
        ),
        ("# x\nuser www-data;\nhttp { }\n", "nginx's configuration"),
        (
            "proxy_pass http://127.0.0.1:3000;\n",
            "nginx's configuration",
        ),
        (
            "example.org {\n  root * /srv\n  file_server\n}\n",
            "a Caddyfile",
        ),
        (
            "{\n  email a@example.org\n}\nexample.org\nreverse_proxy :3000\n",
            "a Caddyfile",
        ),
        (
            "<VirtualHost *:80>\n  ServerName a\n</VirtualHost>\n",
            "Apache's configuration",
        ),
        (
            "Listen 80\nDocumentRoot /srv\nServerName a\n",
            "Apache's configuration",
        ),
        ("[uwsgi]\nsocket = :8000\n", "uWSGI's configuration"),
        ("[www]\nuser = a\npm = dynamic\n", "a pool of php-fpm"),
        (
            "server.modules = ( \"mod_cgi\" )\n",
            "lighttpd's configuration",
        ),
        (
            "listen:\n  - address: 127.0.0.1:8080\nsite:\n  root: /srv\n",
            "YAML",
        ),
        ("---\nroot: a\n", "YAML"),
    ] {
        assert_eq!(language_of(&SCHEMA, text), Some(whose), "{text}");
    }
}

#[test]
fn toml_with_a_slip_is_no_other_language() {
    for text in [
        "",
        "root = .\n",
        "[[site]\nroot = \"a\"\n",
        "threads = 4 4\n[[site]]\nroot = \"site\n",
        "[[site]]\nroot \"site\"\nnames = [\"a\"]\n",
        "[[listen]]\naddress: \"127.0.0.1:80\"\n[[site]]\nroot = \"a\"\n",
        "kettle\n",
    ] {
        assert_eq!(language_of(&SCHEMA, text), None, "{text}");
    }
}
