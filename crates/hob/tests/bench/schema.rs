//! Holds a result against its published schema.

use serde_json::Value;

/// Holds a value against the part of JSON Schema that ours uses; unknown fields are refused too.
pub(crate) fn conforms(value: &Value, schema: &Value, root: &Value, path: &str) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(name.trim_start_matches('#')).unwrap();
        return conforms(value, target, root, path);
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        // A choice is known by its type; one that is told elsewhere is not null.
        let is_it = |choice: &&Value| match choice["type"].as_str() {
            Some(name) => is_of_type(value, name, path),
            None => !value.is_null(),
        };
        let choice = choices.iter().find(is_it);
        let choice = choice.unwrap_or_else(|| panic!("{path} is {value}, not of {choices:?}"));
        return conforms(value, choice, root, path);
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let is_one = choices.iter().any(|choice| choice["const"] == *value);
        assert!(is_one, "{path} is {value}, not of {choices:?}");
        return;
    }
    let fits = match &schema["type"] {
        Value::String(name) => is_of_type(value, name, path),
        Value::Array(names) => {
            let mut names = names.iter().map(|name| name.as_str().unwrap());
            names.any(|name| is_of_type(value, name, path))
        }
        other => panic!("{path}: no type but {other}"),
    };
    assert!(fits, "{path} is {value}, not {}", schema["type"]);
    if let Value::Object(fields) = value {
        // Names that are not known before, each with the same.
        if let Some(each) = schema.get("additionalProperties") {
            for (name, field) in fields {
                conforms(field, each, root, &format!("{path}.{name}"));
            }
            return;
        }
        let properties = schema["properties"].as_object().unwrap();
        for name in schema["required"].as_array().unwrap() {
            assert!(
                fields.contains_key(name.as_str().unwrap()),
                "{path} has no {name}"
            );
        }
        for (name, field) in fields {
            let property = properties.get(name);
            let property = property.unwrap_or_else(|| panic!("{path}.{name} is not in the schema"));
            conforms(field, property, root, &format!("{path}.{name}"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(item, &schema["items"], root, &format!("{path}[]"));
    }
}

fn is_of_type(value: &Value, name: &str, path: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{path}: type {other}"),
    }
}
