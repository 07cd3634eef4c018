//! The JSON schema of a result, the page about it in the docs, and the check of one that was
//! written down: all made of its types.

use serde_json::Value;

use super::result::{BenchResult, Compared, LatencySummary};
use crate::layout;

/// The JSON schema of a result.
pub fn schema() -> Value {
    layout::schema_with::<BenchResult, Compared>("result of `hob bench --json`")
}

/// Whether a result that was written down is laid out like this; else what is not.
pub(crate) fn check(result: &Value) -> Result<(), String> {
    layout::check(result, &schema())
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# The result of a load test\n\n\
         `hob bench --json` prints one JSON object with these fields; `hob bench --schema` prints \
         its JSON schema. Every field is always there; those marked *or null* hold null where \
         there is nothing to tell. New fields may be added; `format` grows when one changes its meaning.\n\n",
    );
    text.push_str(&layout::table::<BenchResult>());
    text.push_str("\n## Times\n\nIn microseconds, each right to a thousandth of itself.\n\n");
    text.push_str(&layout::table::<LatencySummary>());
    text.push_str(
        "\n## Comparison\n\nWhat `hob bench --compare A B --json` prints; its schema is \
         `#/$defs/comparison` of that of results.\n\n",
    );
    text.push_str(&layout::table::<Compared>());
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
