//! The JSON schema of a result and the page in the docs, made of the table of its fields.

use serde_json::{Map, Value, json};

use super::fields::Kind::{
    self, Integer, Integers, Number, Numbers, Object, Objects, Text, Texts, Times, Truth,
};
use super::fields::Null::Perhaps;
use super::fields::{COMPARISON, FIELDS, Field, TIMES};

/// The JSON schema of a result.
pub fn schema() -> Value {
    let mut times = object_of(TIMES, "");
    times["title"] = "times in microseconds, right to a thousandth".into();
    let mut whole = object_of(FIELDS, "");
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    whole["title"] = "result of `hob bench --json`".into();
    let mut comparison = object_of(COMPARISON, "");
    comparison["title"] = "result of `hob bench --compare --json`".into();
    whole["$defs"] = json!({ "times": times, "comparison": comparison });
    whole
}

/// The fields directly below a parent, as a schema; all of them are always there.
fn object_of(fields: &[Field], parent: &str) -> Value {
    let mut properties = Map::new();
    for (path, kind, null, text) in fields {
        let Some(name) = path.strip_prefix(parent).filter(|name| !name.contains('.')) else {
            continue;
        };
        let mut property = match kind {
            Object => object_of(fields, &format!("{path}.")),
            Objects => {
                json!({ "type": "array", "items": object_of(fields, &format!("{path}[].")) })
            }
            Integers => json!({ "type": "array", "items": { "type": "integer" } }),
            Numbers => json!({ "type": "array", "items": { "type": ["number", "null"] } }),
            Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Times => json!({ "anyOf": [{ "$ref": "#/$defs/times" }, { "type": "null" }] }),
            Integer | Number | Text | Truth => json!({ "type": word(*kind) }),
        };
        if *null == Perhaps && *kind != Times {
            property["type"] = json!([property["type"], "null"]);
        }
        property["description"] = (*text).into();
        properties.insert(name.to_owned(), property);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Integer => "integer",
        Number => "number",
        Text => "string",
        Truth => "boolean",
        Object => "object",
        Texts => "array of strings",
        Integers => "array of integers",
        Numbers => "array of numbers or null",
        Objects => "array of objects",
        Times => "times",
    }
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# The result of a load test\n\n\
         `hob bench --json` prints one JSON object with these fields; `hob bench --schema` prints \
         its JSON schema. Every field is always there; those marked *or null* hold null where \
         there is nothing to tell. New fields may be added; `format` grows when one changes its meaning.\n\n",
    );
    table(&mut text, FIELDS);
    text.push_str("\n## Times\n\nIn microseconds, each right to a thousandth of itself.\n\n");
    table(&mut text, TIMES);
    text.push_str(
        "\n## Comparison\n\nWhat `hob bench --compare A B --json` prints; its schema is \
         `#/$defs/comparison` of that of results.\n\n",
    );
    table(&mut text, COMPARISON);
    text.push_str("\n## Kinds of failure\n\n| kind | means |\n| --- | --- |\n");
    for (_, name, means) in crate::measure::FAILURES {
        text.push_str(&format!("| `{name}` | {means} |\n"));
    }
    text.push_str(
        "\n## Figures for thresholds\n\nWhat `--fail-if` can hold against a limit: `p50`, `p99`, \
         `p99.9` or any other percentile of the response times, and\n\n| figure | means |\n\
         | --- | --- |\n",
    );
    for (name, _, means) in crate::threshold::METRICS {
        text.push_str(&format!("| `{name}` | {means} |\n"));
    }
    text
}

fn table(text: &mut String, fields: &[Field]) {
    text.push_str("| field | holds | means |\n| --- | --- | --- |\n");
    for (path, kind, null, means) in fields {
        let or_null = if *null == Perhaps { " or null" } else { "" };
        text.push_str(&format!(
            "| `{path}` | {}{or_null} | {means} |\n",
            word(*kind)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_has_every_field_of_the_table() {
        let schema = schema();
        for (path, ..) in FIELDS {
            let pointer = path
                .replace("[].", "/items/properties/")
                .replace('.', "/properties/");
            let found = schema.pointer(&format!("/properties/{pointer}"));
            assert!(found.is_some(), "{path}");
        }
        let rate = &schema["properties"]["rate"]["properties"]["offered_per_s"];
        assert_eq!(rate["type"], json!(["number", "null"]));
    }
}
