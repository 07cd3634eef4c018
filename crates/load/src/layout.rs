//! How a result in JSON is laid out: every field told once, as a row of a table. The schema and the
//! page in the docs are made of it.

use serde_json::{Map, Value, json};

/// The largest whole number that is the same in all readers of JSON.
const INTEGER_MAX: u64 = 1 << 53;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number, from 0 to 2^53.
    Integer,
    /// Any number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Truth,
    /// An object, whose fields follow.
    Object,
    /// Texts.
    Texts,
    /// Whole numbers.
    Integers,
    /// Numbers, each of which may be null.
    Numbers,
    /// Objects, whose fields follow below `[]`.
    Objects,
    /// An object whose names are not known before, each with a number.
    Amounts,
    /// An object of times, which is described once as `times`.
    Times,
    /// An object of CPU times, which is described once as `cpu`.
    Cpu,
}

/// May a field be null?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// It always holds what it is said to hold.
    Never,
    /// It is null where there is nothing to tell.
    Perhaps,
}

/// One field: where it is, what it holds, whether it may be null, and what it means. A parent
/// stands before its children; `[]` marks what repeats.
pub type Field = (&'static str, Kind, Null, &'static str);

/// The JSON schema of a whole, with what is described once in it by name.
pub fn schema(title: &str, fields: &[Field], defined: Value) -> Value {
    let mut whole = object(fields);
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    whole["title"] = title.into();
    whole["$defs"] = defined;
    whole
}

/// The schema of an object with these fields; all of them are always there.
pub fn object(fields: &[Field]) -> Value {
    object_below(fields, "")
}

fn object_below(fields: &[Field], parent: &str) -> Value {
    let mut properties = Map::new();
    for (path, kind, null, text) in fields {
        let Some(name) = path.strip_prefix(parent).filter(|name| !name.contains('.')) else {
            continue;
        };
        let mut property = match kind {
            Kind::Object => object_below(fields, &format!("{path}.")),
            Kind::Objects => {
                let items = object_below(fields, &format!("{path}[]."));
                json!({ "type": "array", "items": items })
            }
            Kind::Integers => json!({ "type": "array", "items": { "type": "integer" } }),
            Kind::Numbers => json!({ "type": "array", "items": { "type": ["number", "null"] } }),
            Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::Amounts => {
                json!({ "type": "object", "additionalProperties": { "type": "number" } })
            }
            Kind::Times => json!({ "$ref": "#/$defs/times" }),
            Kind::Cpu => json!({ "$ref": "#/$defs/cpu" }),
            Kind::Integer | Kind::Number | Kind::Text | Kind::Truth => {
                json!({ "type": word(*kind) })
            }
        };
        if *null == Null::Perhaps {
            match property.get("type") {
                Some(word) => property["type"] = json!([word, "null"]),
                None => property = json!({ "anyOf": [property, { "type": "null" }] }),
            }
        }
        property["description"] = (*text).into();
        properties.insert(name.to_owned(), property);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Whether what a whole has is what its fields are said to hold; else which of them does not. What
/// is missing or null is taken for not told: a field may be younger than the result.
pub(crate) fn check(whole: &Value, fields: &[Field], times: &[Field]) -> Result<(), String> {
    check_below(whole, "", (fields, times))
}

fn check_below(
    object: &Value,
    parent: &str,
    (fields, times): (&[Field], &[Field]),
) -> Result<(), String> {
    for (path, kind, ..) in fields {
        let Some(name) = path.strip_prefix(parent).filter(|name| !name.contains('.')) else {
            continue;
        };
        let value = match object.get(name) {
            None | Some(Value::Null) => continue,
            Some(value) => value,
        };
        let all = |is_one: fn(&Value) -> bool| {
            let items = value.as_array();
            items.is_some_and(|items| items.iter().all(is_one))
        };
        let is_fit = match kind {
            Kind::Integer => is_count(value),
            Kind::Number => value.is_number(),
            Kind::Text => value.is_string(),
            Kind::Truth => value.is_boolean(),
            Kind::Object | Kind::Amounts | Kind::Times | Kind::Cpu => value.is_object(),
            Kind::Texts => all(Value::is_string),
            Kind::Integers => all(is_count),
            Kind::Numbers => all(|one| one.is_number() || one.is_null()),
            Kind::Objects => all(Value::is_object),
        };
        if !is_fit {
            return Err(format!("{path} is not as it must be: {}", word(*kind)));
        }
        match kind {
            Kind::Object => check_below(value, &format!("{path}."), (fields, times))?,
            Kind::Times => check(value, times, &[]).map_err(|why| format!("{path}: {why}"))?,
            Kind::Objects => {
                let parent = format!("{path}[].");
                for item in value.as_array().into_iter().flatten() {
                    check_below(item, &parent, (fields, times))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A whole number that every reader of JSON keeps as it is; sums of thousands of them are numbers.
fn is_count(value: &Value) -> bool {
    value.as_u64().is_some_and(|count| count <= INTEGER_MAX)
}

/// The fields as a table in Markdown.
pub fn table(fields: &[Field]) -> String {
    let mut text = String::from("| field | holds | means |\n| --- | --- | --- |\n");
    for (path, kind, null, means) in fields {
        let or_null = match null {
            Null::Perhaps => " or null",
            Null::Never => "",
        };
        let word = word(*kind);
        text.push_str(&format!("| `{path}` | {word}{or_null} | {means} |\n"));
    }
    text
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Text => "string",
        Kind::Truth => "boolean",
        Kind::Object => "object",
        Kind::Texts => "array of strings",
        Kind::Integers => "array of integers",
        Kind::Numbers => "array of numbers or null",
        Kind::Objects => "array of objects",
        Kind::Amounts => "object of numbers",
        Kind::Times => "times",
        Kind::Cpu => "CPU times",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_below_their_parents_and_null_only_where_they_may_be() {
        let fields: &[Field] = &[
            ("a", Kind::Objects, Null::Perhaps, "one"),
            ("a[].b", Kind::Times, Null::Never, "two"),
            ("a[].c", Kind::Cpu, Null::Perhaps, "three"),
            ("d", Kind::Amounts, Null::Never, "four"),
        ];
        let wanted = json!({
            "type": "object",
            "required": ["a", "d"],
            "properties": {
                "a": {
                    "type": ["array", "null"],
                    "description": "one",
                    "items": {
                        "type": "object",
                        "required": ["b", "c"],
                        "properties": {
                            "b": { "$ref": "#/$defs/times", "description": "two" },
                            "c": {
                                "anyOf": [{ "$ref": "#/$defs/cpu" }, { "type": "null" }],
                                "description": "three",
                            },
                        },
                    },
                },
                "d": {
                    "type": "object",
                    "additionalProperties": { "type": "number" },
                    "description": "four",
                },
            },
        });
        assert_eq!(object(fields), wanted);
        assert!(table(fields).ends_with(
            "| `a[].c` | CPU times or null | three |\n| `d` | object of numbers | four |\n"
        ));
    }

    #[test]
    fn what_is_told_must_be_what_it_is_said_to_be() {
        let fields: &[Field] = &[
            ("a", Kind::Objects, Null::Never, "one"),
            ("a[].b", Kind::Times, Null::Never, "two"),
            ("a[].c", Kind::Object, Null::Never, "three"),
            ("a[].c.d", Kind::Integers, Null::Never, "four"),
            ("e", Kind::Numbers, Null::Never, "five"),
        ];
        let times: &[Field] = &[("f", Kind::Text, Null::Never, "six")];
        let fits = json!({
            "a": [{ "b": { "f": "x" }, "c": { "d": [1] } }, { "b": null }],
            "e": [1, null],
            "unknown": 1,
        });
        assert_eq!(check(&fits, fields, times), Ok(()));
        assert_eq!(check(&json!({}), fields, times), Ok(()));
        for (wrong, place) in [
            (json!({ "a": {} }), "a is not"),
            (
                json!({ "a": [{ "c": { "d": [u64::MAX] } }] }),
                "a[].c.d is not",
            ),
            (json!({ "a": [1] }), "a is not"),
            (json!({ "a": [{ "b": { "f": 1 } }] }), "a[].b: f is not"),
            (json!({ "a": [{ "c": { "d": [-1] } }] }), "a[].c.d is not"),
            (
                json!({ "e": ["x"] }),
                "e is not as it must be: array of numbers or null",
            ),
        ] {
            let why = check(&wrong, fields, times).unwrap_err();
            assert!(why.starts_with(place), "{why}");
        }
    }
}
