//! The grammar of the language for editors, in the form of TextMate, from the tables that pages are
//! read by.
//!
//! Blocks hold markup, statements or variables, and blocks inside of them; each ends with its `%}`.
//! Expressions use nothing that engines differ in.

use hob_page::builtin::{BuiltInForms, CallForm, LIST};
use hob_page::lex::keywords;
use serde_json::{Value, json};

/// The grammar as a file has it. Its first line is made anew where it is written as generated.
pub(super) fn text() -> String {
    let grammar = json!({
        "name": "Macro page",
        "scopeName": "text.html.macro-page",
        "fileTypes": ["d2w", "mac", "ndm", "page"],
        "patterns": [{ "include": "#declaration" }],
        "repository": repository(),
    });
    let text = format!("{grammar:#}\n");
    let rest = text.strip_prefix('{').unwrap_or(&text);
    format!("{{ \"comment\": \"Generated\",{rest}")
}

fn repository() -> Value {
    let inside = |what: &[&str]| -> Vec<Value> {
        what.iter().map(|name| json!({ "include": name })).collect()
    };
    let live = ["#comment", "#block", "#keyword", "#reference", "#call"];
    let with = |more: &str| inside(&[&live[..], &[more]].concat());
    json!({
        "declaration": {
            "patterns": inside(&["#comment", "#define", "#statement", "#block", "#keyword", "#call"]),
        },
        "comment": { "name": "comment.block", "begin": "%\\{", "end": "%\\}" },
        "define": block(
            "%(DEFINE)(\\([^)]*\\))?\\s*\\{",
            inside(&["#comment", "#keyword", "#text", "#values", "#assignment", "#string"]),
        ),
        "statement": block(
            "%(FUNCTION)\\s*\\(\\s*(?:DTW_SQL|DTW_ODBC|DTW_ORA|DTW_SYB)\\s*\\)[^{;]*\\{",
            with("source.sql"),
        ),
        "block": block("%([A-Z_]+)\\s*(?:\\([^)]*\\))?[^{%;\"\\n]*\\{", with("text.html.basic")),
        "text": { "begin": "\\{", "end": "%\\}", "patterns": with("#string") },
        "values": {
            "match": "\\b(TABLE|STATIC|TRANSIENT|PROTECTED)\\b", "name": "storage.modifier",
        },
        "assignment": {
            "match": "([A-Za-z_][A-Za-z0-9_.#]*)\\s*(=)",
            "captures": {
                "1": { "name": "variable.other" },
                "2": { "name": "keyword.operator" },
            },
        },
        "keyword": {
            "match": format!("(?i)%(?:{})\\b", keywords().collect::<Vec<_>>().join("|")),
            "name": "keyword.control",
        },
        "reference": {
            "begin": "\\$\\$?\\(", "end": "\\)", "name": "variable.other",
            "patterns": inside(&["#reference", "#call"]),
        },
        "call": { "patterns": [
            call(&format!("@(?:{})", functions().join("|")), "support.function"),
            call("@[A-Za-z_][A-Za-z0-9_.#]*", "entity.name.function"),
        ]},
        "string": {
            "begin": "\"", "end": "\"|$", "name": "string.quoted.double",
            "patterns": inside(&["#escape", "#reference", "#call"]),
        },
        "escape": { "match": "\"\"", "name": "constant.character.escape" },
    })
}

/// What begins with a keyword and ends with `%}`.
fn block(begin: &str, patterns: Vec<Value>) -> Value {
    json!({
        "begin": format!("(?i){begin}"), "end": "%\\}",
        "beginCaptures": { "1": { "name": "keyword.control" } },
        "endCaptures": { "0": { "name": "keyword.control" } },
        "patterns": patterns,
    })
}

/// A call, whose arguments are strings, names and other calls.
fn call(name: &str, scope: &str) -> Value {
    json!({
        "begin": format!("(?i)({name})\\s*\\("), "end": "\\)",
        "beginCaptures": { "1": { "name": scope } },
        "patterns": [
            { "include": "#comment" },
            { "include": "#string" },
            { "include": "#reference" },
            { "include": "#call" },
        ],
    })
}

/// All forms of all functions, longer names first where one begins with another.
fn functions() -> Vec<String> {
    let mut names = Vec::new();
    for function in LIST {
        let forms: &[CallForm] = match function.forms {
            BuiltInForms::Value => &[CallForm::Plain, CallForm::Value],
            BuiltInForms::Change => &[CallForm::Plain, CallForm::Value, CallForm::Change],
            _ => &[CallForm::Plain],
        };
        names.extend(forms.iter().map(|form| function.written(*form)));
    }
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names
}
