//! The types of the admin pages, made of the JSON schema of what the admin API answers.

use serde_json::Value;

/// What stands above the types.
const HEAD: &str = "// What the API answers. A field that may be missing or null is one that the server \
                    does not always know.\n";
const DEFINITIONS: &str = "#/$defs/";

/// TypeScript for everything that a schema defines.
pub(crate) fn made_from(schema: &str) -> Result<String, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let defined = schema["$defs"].as_object();
    let defined = defined.ok_or("the schema defines nothing")?;
    let mut text = HEAD.to_owned();
    for (name, one) in defined {
        text.push_str(&format!("\n{}", comment(one, "")));
        match &one["properties"] {
            Value::Object(_) => {
                let fields = fields(one)?;
                text.push_str(&format!("export interface {name} {{\n{fields}}}\n"));
            }
            _ => text.push_str(&format!("export type {name} = {};\n", kind(one)?)),
        }
    }
    Ok(text)
}

/// Those that are always there in their order, then those that may be missing.
fn fields(object: &Value) -> Result<String, String> {
    let required = object["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let all = object["properties"].as_object().into_iter().flatten();
    let others = all.map(|(name, _)| name.as_str());
    let others = others.filter(|name| !required.contains(name));
    let marked = required.iter().map(|name| (*name, ""));
    let marked = marked.chain(others.map(|name| (name, "?")));
    let lines = marked.map(|(name, mark)| {
        let field = &object["properties"][name];
        let kind = kind(field)?;
        Ok(format!("{}  {name}{mark}: {kind};\n", comment(field, "  ")))
    });
    lines.collect()
}

fn comment(schema: &Value, indent: &str) -> String {
    match schema["description"].as_str() {
        Some(text) => format!("{indent}/** {text} */\n"),
        None => String::new(),
    }
}

/// The type of what a schema describes.
fn kind(schema: &Value) -> Result<String, String> {
    if let Some(name) = schema["$ref"].as_str() {
        return Ok(name.trim_start_matches(DEFINITIONS).to_owned());
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let kinds: Result<Vec<String>, String> = choices.iter().map(kind).collect();
        return Ok(kinds?.join(" | "));
    }
    if !schema["const"].is_null() {
        return Ok(schema["const"].to_string());
    }
    match &schema["type"] {
        Value::Array(names) => {
            let kinds: Result<Vec<String>, String> =
                names.iter().map(|name| plain(name, schema)).collect();
            Ok(kinds?.join(" | "))
        }
        name => plain(name, schema),
    }
}

fn plain(name: &Value, schema: &Value) -> Result<String, String> {
    Ok(match name.as_str() {
        Some("integer" | "number") => "number".to_owned(),
        Some(word @ ("string" | "boolean" | "null")) => word.to_owned(),
        Some("array") => {
            let item = kind(&schema["items"])?;
            match item.contains(' ') {
                true => format!("({item})[]"),
                false => format!("{item}[]"),
            }
        }
        Some("object") => {
            let each = kind(&schema["additionalProperties"])?;
            format!("Record<string, {each}>")
        }
        _ => return Err(format!("no type is made of {schema}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_made_of_what_is_defined() {
        let schema = r##"{ "$defs": {
            "A": { "description": "One.", "required": ["z", "b"], "properties": {
                "a": { "type": ["integer", "null"], "description": "Perhaps." },
                "b": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] },
                "z": { "type": "array", "items": { "type": ["array", "null"],
                    "items": { "type": "number" } } } } },
            "B": { "oneOf": [{ "const": "x", "type": "string" }, { "const": "y" }] },
            "C": { "type": "object", "additionalProperties": { "type": "boolean" } } } }"##;
        let wanted = "\n/** One. */\nexport interface A {\n  z: (number[] | null)[];\n  \
                      b: B | null;\n  /** Perhaps. */\n  a?: number | null;\n}\n\n\
                      export type B = \"x\" | \"y\";\n\nexport type C = Record<string, boolean>;\n";
        assert_eq!(made_from(schema), Ok(format!("{HEAD}{wanted}")));
        assert!(made_from("{}").is_err());
        assert!(made_from(r#"{ "$defs": { "A": {} } }"#).is_err());
    }
}
