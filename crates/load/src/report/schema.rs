//! The JSON schema of a result, the page about it in the docs, and the check of one that was
//! written down: all made of its fields.

use serde_json::{Value, json};

use super::comparison::COMPARISON;
use super::exercise::EXERCISE;
use super::fields::FIELDS;
use super::time_fields::TIMES;
use crate::layout::{self, Field};

/// The JSON schema of a result.
pub fn schema() -> Value {
    let mut times = layout::object(TIMES);
    times["title"] = "times in microseconds, right to a thousandth".into();
    let mut comparison = layout::object(COMPARISON);
    comparison["title"] = "result of `hob bench --compare --json`".into();
    let mut exercise = layout::object(EXERCISE);
    exercise["title"] = "result of `hob bench --exercise --json`".into();
    let defined = json!({ "times": times, "comparison": comparison, "exercise": exercise });
    layout::schema("result of `hob bench --json`", FIELDS, defined)
}

/// Whether a result that was written down is laid out like this; else what is not.
pub(crate) fn check(result: &Value) -> Result<(), String> {
    layout::check(result, FIELDS, TIMES)
}

/// The fields below `environment`: the machine a result was made on, as other results have it too.
pub fn environment_fields() -> Vec<Field> {
    let of_environment = |(path, ..): &&Field| path.starts_with("environment.");
    FIELDS.iter().filter(of_environment).copied().collect()
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# The result of a load test\n\n\
         `hob bench --json` prints one JSON object with these fields; `hob bench --schema` prints \
         its JSON schema. Every field is always there; those marked *or null* hold null where \
         there is nothing to tell. New fields may be added; `format` grows when one changes its meaning.\n\n",
    );
    text.push_str(&layout::table(FIELDS));
    text.push_str("\n## Times\n\nIn microseconds, each right to a thousandth of itself.\n\n");
    text.push_str(&layout::table(TIMES));
    text.push_str(
        "\n## Comparison\n\nWhat `hob bench --compare A B --json` prints; its schema is \
         `#/$defs/comparison` of that of results.\n\n",
    );
    text.push_str(&layout::table(COMPARISON));
    text.push_str(
        "\n## Mischief\n\nWhat `hob bench --exercise --json` prints; its schema is \
         `#/$defs/exercise` of that of results.\n\n",
    );
    text.push_str(&layout::table(EXERCISE));
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
