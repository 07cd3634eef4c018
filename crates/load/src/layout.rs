//! What is written of a type in JSON, for readers: its schema, and a table of its fields for the
//! docs. Both are made of the type; what a field means is the comment on it.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The largest whole number that is the same in all readers of JSON.
const INTEGER_MAX: u64 = 1 << 53;
/// Where a schema has what is described once in it.
const DEFINITIONS: &str = "#/$defs/";
/// The heading of a table of fields.
const HEADING: &str = "| field | holds | means |\n| --- | --- | --- |\n";

/// The JSON schema of what is written of a type.
pub fn schema<T: JsonSchema>(title: &str) -> Value {
    whole::<T>(title, generator())
}

/// The same, with another type among what it defines.
pub fn schema_with<T: JsonSchema, U: JsonSchema>(title: &str) -> Value {
    let mut generator = generator();
    generator.subschema_for::<U>();
    whole::<T>(title, generator)
}

/// The fields of a type as a table in Markdown: a parent stands before its children, `[]` marks
/// what repeats. A type with a title has a table of its own, and is called by its title in others.
pub fn table<T: JsonSchema>() -> String {
    let root = schema::<T>("");
    let mut text = String::from(HEADING);
    rows(&mut text, "", &root, &root);
    text
}

/// Every type that the fields of a type hold, each with a heading, in Markdown; before them a table
/// of those fields by their comments. What holds another type has a link to it.
pub fn types<T: JsonSchema>(heads: [&str; 2]) -> String {
    let root = schema::<T>("");
    let mut text = format!("| {} |\n| --- | --- |\n", heads.join(" | "));
    for (_, field) in fields(&root) {
        let says = field["description"].as_str().unwrap_or_default();
        text.push_str(&format!("| {says} | {} |\n", linked(field)));
    }
    let defined = root["$defs"].as_object().into_iter().flatten();
    text.extend(defined.map(|(name, one)| section(name, one)));
    text
}

/// Whether what a whole has is what its schema says; else what of it is not. What is missing or
/// null is taken for not told: a field may be younger than the result.
pub(crate) fn check(whole: &Value, schema: &Value) -> Result<(), String> {
    check_below(whole, "", schema, schema)
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .with_transform(RecursiveTransform(plain))
        .into_generator()
}

fn whole<T: JsonSchema>(title: &str, generator: SchemaGenerator) -> Value {
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

/// Comments are one line each; how Rust keeps a number is no reader's business.
fn plain(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("minimum");
    schema.remove("maximum");
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

fn rows(text: &mut String, parent: &str, object: &Value, root: &Value) {
    for (name, field) in fields(object) {
        let path = format!("{parent}{name}");
        let means = phrase(field["description"].as_str().unwrap_or_default());
        text.push_str(&format!("| `{path}` | {} | {means} |\n", word(field, root)));
        let (_, of) = resolved(field, root);
        match of["items"].is_object() {
            true => below(text, &format!("{path}[]."), &of["items"], root),
            false => below(text, &format!("{path}."), field, root),
        }
    }
}

fn below(text: &mut String, parent: &str, schema: &Value, root: &Value) {
    let (_, object) = resolved(schema, root);
    if object["title"].is_null() {
        rows(text, parent, object, root);
    }
}

/// What is written of one type.
fn section(name: &str, of: &Value) -> String {
    let says = of["description"].as_str().unwrap_or_default();
    let mut text = format!("\n### {name}\n\n{says}\n\n");
    if !of["properties"].is_object() {
        text.push_str(&format!("One of {}.\n", linked(of)));
        return text;
    }
    text.push_str(HEADING);
    let required = of["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    for (name, field) in fields(of) {
        let means = phrase(field["description"].as_str().unwrap_or_default());
        let missing = match is_required(name) {
            true => "",
            false => ", or missing",
        };
        let holds = linked(field) + missing;
        text.push_str(&format!("| `{name}` | {holds} | {means} |\n"));
    }
    text
}

/// What a field holds, in words, with links to the types.
fn linked(schema: &Value) -> String {
    let name = schema["$ref"].as_str();
    if let Some(name) = name.and_then(|name| name.strip_prefix(DEFINITIONS)) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema["const"].as_str() {
        return format!("`{value}`");
    }
    let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(choices) = choices {
        let words: Vec<String> = choices.iter().map(linked).collect();
        return words.join(" or ");
    }
    let word = match kind(schema) {
        "array" => format!("array of {}", plural(&linked(&schema["items"]))),
        "object" if schema["additionalProperties"].is_object() => {
            format!(
                "object of {}",
                plural(&linked(&schema["additionalProperties"]))
            )
        }
        kind => kind.to_owned(),
    };
    let or_null = if schema["type"].is_array() {
        " or null"
    } else {
        ""
    };
    word + or_null
}

/// More than one of something; what is a link stays as it is.
fn plural(word: &str) -> String {
    match word.split_once(' ') {
        _ if word.starts_with('[') => word.to_owned(),
        Some((one, rest)) => format!("{one}s {rest}"),
        None => format!("{word}s"),
    }
}

/// The fields of an object, in the order of the type; those that may be missing come last.
fn fields(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let required = object["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let all = object["properties"].as_object().into_iter().flatten();
    let others = all.map(|(name, _)| name.as_str());
    let others: Vec<&str> = others.filter(|name| !required.contains(name)).collect();
    let names = required.into_iter().chain(others);
    names.map(|name| (name, &object["properties"][name]))
}

/// What a schema says, followed to where it is defined, and whether null is allowed too.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> (bool, &'a Value) {
    if let Some(choices) = schema["anyOf"].as_array() {
        return (true, resolved(&choices[0], root).1);
    }
    let name = schema["$ref"].as_str();
    match name.and_then(|name| name.strip_prefix(DEFINITIONS)) {
        Some(name) => (false, &root["$defs"][name]),
        None => (schema["type"].is_array(), schema),
    }
}

/// What a field holds, in words.
fn word(schema: &Value, root: &Value) -> String {
    let (is_nullable, of) = resolved(schema, root);
    let or_null = if is_nullable { " or null" } else { "" };
    let each = |of: &Value| plural(&word(of, root));
    let word = match (of["title"].as_str(), kind(of)) {
        (Some(title), _) => title.to_owned(),
        (None, "array") => format!("array of {}", each(&of["items"])),
        (None, "object") if of["additionalProperties"].is_object() => {
            format!("object of {}", each(&of["additionalProperties"]))
        }
        (None, kind) => kind.to_owned(),
    };
    word + or_null
}

/// The type that a schema names, besides null.
fn kind(schema: &Value) -> &str {
    let kind = &schema["type"];
    kind.as_str().or_else(|| kind[0].as_str()).unwrap_or("any")
}

/// A comment as a cell of a table: no sentence.
fn phrase(comment: &str) -> String {
    let text = comment.strip_suffix('.').unwrap_or(comment);
    let word = text.split(|letter: char| !letter.is_alphanumeric()).next();
    let is_name = |word: &str| word.chars().skip(1).any(char::is_uppercase);
    match word {
        Some(word) if !is_name(word) => word.to_lowercase() + &text[word.len()..],
        _ => text.to_owned(),
    }
}

fn check_below(object: &Value, parent: &str, schema: &Value, root: &Value) -> Result<(), String> {
    for (name, field) in fields(resolved(schema, root).1) {
        let (path, value) = (format!("{parent}{name}"), &object[name]);
        if value.is_null() {
            continue;
        }
        if !is_fit(value, field, root) {
            let word = word(field, root);
            return Err(format!("{path} is not as it must be: {word}"));
        }
        let items = &resolved(field, root).1["items"];
        for item in value.as_array().into_iter().flatten() {
            check_below(item, &format!("{path}[]."), items, root)?;
        }
        if value.is_object() {
            check_below(value, &format!("{path}."), field, root)?;
        }
    }
    Ok(())
}

fn is_fit(value: &Value, schema: &Value, root: &Value) -> bool {
    let (is_nullable, of) = resolved(schema, root);
    let is_item = |item: &Value| is_fit(item, &of["items"], root);
    match kind(of) {
        _ if value.is_null() => is_nullable,
        "integer" => value.as_u64().is_some_and(|count| count <= INTEGER_MAX),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value
            .as_array()
            .is_some_and(|items| items.iter().all(is_item)),
        _ => {
            let each = &of["additionalProperties"];
            let mut values = value
                .as_object()
                .into_iter()
                .flat_map(|object| object.values());
            value.is_object() && (!each.is_object() || values.all(|one| is_fit(one, each, root)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::*;

    /// Times that are told
    /// once.
    #[derive(Serialize, JsonSchema)]
    #[schemars(rename = "times", title = "times")]
    struct Times {
        /// CPU time.
        cpu: f64,
    }

    #[derive(Serialize, JsonSchema)]
    struct Part {
        /// `x` alone.
        x: Option<Times>,
        /// Numbers.
        numbers: Vec<Option<f64>>,
    }

    /// The whole.
    #[derive(Serialize, JsonSchema)]
    struct Whole {
        /// Parts of
        /// it.
        parts: Option<Vec<Part>>,
        /// One.
        a: Part,
        /// Each.
        by_name: BTreeMap<String, u64>,
    }

    #[test]
    fn table_has_parents_before_children_and_null_only_where_it_may_be() {
        assert_eq!(
            table::<Whole>(),
            "| field | holds | means |\n| --- | --- | --- |\n\
             | `parts` | array of objects or null | parts of it |\n\
             | `parts[].x` | times or null | `x` alone |\n\
             | `parts[].numbers` | array of numbers or null | numbers |\n\
             | `a` | object | one |\n\
             | `a.x` | times or null | `x` alone |\n\
             | `a.numbers` | array of numbers or null | numbers |\n\
             | `by_name` | object of integers | each |\n"
        );
        let own = table::<Times>();
        assert!(own.ends_with("| `cpu` | number | CPU time |\n"), "{own}");
    }

    /// A word.
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Tone {
        /// Low.
        Low,
        /// High.
        High,
    }

    #[derive(Serialize, JsonSchema)]
    struct Tune {
        /// `one`
        tones: Vec<Option<Tone>>,
        /// `two`
        part: Part,
        /// `three`
        named: BTreeMap<String, Vec<u64>>,
        /// `four`
        #[serde(skip_serializing_if = "Option::is_none")]
        times: Option<Times>,
    }

    #[test]
    fn types_have_headings_and_links_lead_to_them() {
        let tone = |tone: Tone| serde_json::to_value(tone).unwrap();
        assert_eq!([tone(Tone::Low), tone(Tone::High)], ["low", "high"]);
        assert_eq!(
            types::<Tune>(["number", "holds"]),
            "| number | holds |\n| --- | --- |\n\
             | `one` | array of [Tone](#tone) or null |\n\
             | `two` | [Part](#part) |\n\
             | `three` | object of arrays of integers |\n\
             | `four` | [times](#times) or null |\n\
             \n### Part\n\n\n\n| field | holds | means |\n| --- | --- | --- |\n\
             | `x` | [times](#times) or null | `x` alone |\n\
             | `numbers` | array of numbers or null | numbers |\n\
             \n### Tone\n\nA word.\n\nOne of `low` or `high`.\n\
             \n### times\n\nTimes that are told once.\n\n\
             | field | holds | means |\n| --- | --- | --- |\n\
             | `cpu` | number | CPU time |\n"
        );
    }

    #[test]
    fn schema_tells_what_there_is_and_nothing_of_how_rust_keeps_it() {
        let schema = schema_with::<Part, Whole>("a part");
        assert_eq!(schema["title"], "a part");
        assert_eq!(schema["required"], json!(["x", "numbers"]));
        let by_name = &schema["$defs"]["Whole"]["properties"]["by_name"];
        let each = json!({ "type": "integer" });
        let wanted = json!({
            "type": "object", "additionalProperties": each, "description": "Each.",
        });
        assert_eq!(*by_name, wanted);
        let times = &schema["$defs"]["times"]["description"];
        assert_eq!(times, "Times that are told once.");
    }

    #[test]
    fn what_is_told_must_be_what_it_is_said_to_be() {
        let schema = schema::<Whole>("");
        let fits = json!({
            "parts": [{ "x": { "cpu": 1 }, "numbers": [1, null] }, { "x": null }],
            "by_name": { "a": 1 },
            "unknown": 1,
        });
        assert_eq!(check(&fits, &schema), Ok(()));
        assert_eq!(check(&json!({}), &schema), Ok(()));
        for (wrong, says) in [
            (json!({ "a": [] }), "a is not as it must be: object"),
            (
                json!({ "parts": [1] }),
                "parts is not as it must be: array of objects or null",
            ),
            (
                json!({ "parts": [{ "x": { "cpu": "x" } }] }),
                "parts[].x.cpu is not as it must be: number",
            ),
            (
                json!({ "a": { "numbers": ["x"] } }),
                "a.numbers is not as it must be: array of numbers or null",
            ),
            (
                json!({ "by_name": { "a": -1 } }),
                "by_name is not as it must be: object of integers",
            ),
        ] {
            assert_eq!(check(&wrong, &schema), Err(says.to_owned()));
        }
    }
}
