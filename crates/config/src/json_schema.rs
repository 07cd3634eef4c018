//! The JSON schema of a config file, made from the table of keys: for editors and other tools.
//!
//! A schema sees values before variables are put in, so a number may also be a string with `${`.

use serde_json::{Map, Value, json};

use super::key::{MapOf, Preset, SchemaKey, SchemaTable, ValueType};
use super::schema::Schema;
use super::units::{duration_text, size_text};

impl Schema {
    /// The schema of a config file, as JSON Schema 2020-12.
    pub fn json(&self) -> Value {
        let mut schema = table(self.root);
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        schema["title"] = json!("hob config");
        schema
    }
}

fn table(table: &SchemaTable) -> Value {
    let mut properties = Map::new();
    for entry in table.all_keys() {
        properties.insert(entry.name.to_owned(), key(entry));
    }
    let required: Vec<&str> = table
        .all_keys()
        .filter(|key| matches!(key.preset, Preset::Required))
        .map(|key| key.name)
        .collect();
    let mut schema = json!({
        "type": "object",
        "description": table.text,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn key(key: &SchemaKey) -> Value {
    let mut schema = kind(&key.kind);
    schema["description"] = json!(key.kind.table().map_or(key.text, |table| table.text));
    match key.preset {
        Preset::Flag(flag) => schema["default"] = json!(flag),
        Preset::Integer(number) => schema["default"] = json!(number),
        Preset::Size(bytes) => schema["default"] = json!(size_text(bytes)),
        Preset::Time(time) => schema["default"] = json!(duration_text(time)),
        Preset::Text(text) => schema["default"] = json!(text),
        Preset::Texts(texts) => schema["default"] = json!(texts),
        Preset::Nothing(_) | Preset::Inherited(_) | Preset::Required => {}
    }
    schema
}

/// A string in which a variable is put in.
fn variable() -> Value {
    json!({ "type": "string", "pattern": "\\$\\{" })
}

fn kind(kind: &ValueType) -> Value {
    match kind {
        ValueType::Flag => json!({ "anyOf": [{ "type": "boolean" }, variable()] }),
        ValueType::Integer { min, max } => json!({
            "anyOf": [{ "type": "integer", "minimum": min, "maximum": max }, variable()]
        }),
        ValueType::Size { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": "^[0-9]+ *([KMGT]i)?B?$" },
            variable(),
        ]}),
        ValueType::Time { .. } => json!({ "anyOf": [
            { "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$" },
            variable(),
        ]}),
        ValueType::Text | ValueType::Path => json!({ "type": "string" }),
        ValueType::Word(words) => json!({ "anyOf": [{ "enum": words }, variable()] }),
        ValueType::Texts | ValueType::Arguments => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        ValueType::TextOrTexts => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
        ]}),
        ValueType::Words(words) => json!({
            "type": "array",
            "uniqueItems": true,
            "items": { "anyOf": [{ "enum": words }, variable()] },
        }),
        ValueType::Cpus => json!({
            "type": "array",
            "items": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }] },
        }),
        ValueType::Map(map) => map_of(map),
        ValueType::Table(inner) => table(inner),
        ValueType::Tables(inner) => json!({ "type": "array", "items": table(inner) }),
        ValueType::OrWord(word, other) => {
            json!({ "anyOf": [{ "const": word }, self::kind(other)] })
        }
        ValueType::OrFlag(_, inner) => {
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }, table(inner)] })
        }
        ValueType::OrText(_, inner) => json!({ "anyOf": [{ "type": "string" }, table(inner)] }),
    }
}

fn map_of(map: &MapOf) -> Value {
    json!({
        "type": "object",
        "description": format!("from {} to {}", map.key, map.value),
        "additionalProperties": { "type": "string" },
    })
}
