//! Every field of a result in JSON, once: the schema and the page in the docs are made of this.

use serde_json::{Map, Value, json};

/// Grows when a field changes its meaning or goes; fields may be added without it.
pub(crate) const FORMAT: u32 = 1;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Text,
    Truth,
    Object,
    Texts,
    Integers,
    Numbers,
    Objects,
    /// An object of times, described once, or null where there are none.
    Times,
}

/// One field: where it is, what it holds, whether it may be null, and what it means.
type Field = (&'static str, Kind, Null, &'static str);

/// May a field be null?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    Never,
    Perhaps,
}

use Kind::{Integer, Integers, Number, Numbers, Object, Objects, Text, Texts, Times, Truth};
use Null::{Never, Perhaps};

/// The fields of the whole. A parent stands before its children; `[]` marks what repeats.
const FIELDS: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    ("plan", Object, Never, "what was asked for"),
    ("plan.urls", Texts, Never, "the URLs, asked for in turn"),
    ("plan.address", Text, Never, "where the server was found"),
    ("plan.protocol", Text, Never, "`h1`, `h2` or `h3`"),
    (
        "plan.streams",
        Integer,
        Never,
        "requests at once on a connection",
    ),
    ("plan.method", Text, Never, "method of every request"),
    ("plan.loop", Text, Never, "`closed` or `open`"),
    (
        "plan.rate",
        Text,
        Perhaps,
        "requests per second as given, in an open loop",
    ),
    (
        "plan.arrivals",
        Text,
        Perhaps,
        "`constant` or `poisson`, in an open loop",
    ),
    (
        "plan.think_s",
        Number,
        Perhaps,
        "pause between answer and next request, in a closed loop",
    ),
    (
        "plan.connections",
        Integer,
        Never,
        "connections, over all threads",
    ),
    (
        "plan.keep_alive",
        Truth,
        Never,
        "false: one connection per request",
    ),
    (
        "plan.threads",
        Integer,
        Never,
        "threads of the load generator",
    ),
    (
        "plan.warm_up_s",
        Number,
        Never,
        "time before anything counts",
    ),
    (
        "plan.duration_s",
        Number,
        Perhaps,
        "measured time asked for",
    ),
    (
        "plan.count",
        Integer,
        Perhaps,
        "measured requests asked for",
    ),
    (
        "plan.timeout_s",
        Number,
        Never,
        "longest wait for an answer",
    ),
    (
        "plan.pid",
        Integer,
        Perhaps,
        "process that was watched, with those below it",
    ),
    ("plan.expectations", Texts, Never, "what answers had to be"),
    (
        "begun_at",
        Integer,
        Never,
        "when the run began, in seconds since 1970",
    ),
    ("begun_at_ms", Integer, Never, "the same in milliseconds"),
    (
        "elapsed_s",
        Number,
        Never,
        "measured time, until the last answer where that came later",
    ),
    ("interrupted", Truth, Never, "the run was ended by a signal"),
    (
        "stopped",
        Text,
        Perhaps,
        "the condition of `--stop-if` that ended the run, and what was so",
    ),
    (
        "shard",
        Text,
        Perhaps,
        "which part of the plan was carried out: `1/3`, or `3 of 3` where parts were merged",
    ),
    ("command", Texts, Never, "the command line"),
    (
        "environment",
        Object,
        Perhaps,
        "the machine of the load generator; null where several were",
    ),
    (
        "environment.program",
        Text,
        Never,
        "this program and its version",
    ),
    ("environment.kernel", Text, Never, "kernel and architecture"),
    ("environment.cpu", Text, Never, "model of the CPU"),
    ("environment.cpu_count", Integer, Never, "CPUs there are"),
    (
        "environment.usable_cpu_count",
        Integer,
        Never,
        "CPUs the load generator may use",
    ),
    (
        "environment.hypervisor",
        Text,
        Perhaps,
        "what the machine is a guest of",
    ),
    (
        "environment.cpu_quota",
        Number,
        Perhaps,
        "CPUs' worth of time that its control group allows",
    ),
    (
        "environment.memory_bytes",
        Integer,
        Never,
        "memory of the machine",
    ),
    (
        "environment.descriptor_count_max",
        Integer,
        Perhaps,
        "descriptors it may have; null for no limit",
    ),
    ("requests", Object, Never, "measured requests"),
    ("requests.due", Integer, Never, "requests that were due"),
    (
        "requests.answered",
        Integer,
        Never,
        "those with a complete answer, expected or not",
    ),
    (
        "requests.good",
        Integer,
        Never,
        "those answered as expected",
    ),
    (
        "requests.failed",
        Integer,
        Never,
        "those that failed, in whatever way",
    ),
    (
        "requests.unfinished",
        Integer,
        Never,
        "those on their way when the run was interrupted",
    ),
    (
        "requests.late",
        Integer,
        Never,
        "sent more than 1 ms late though a connection was free",
    ),
    (
        "requests.waited",
        Integer,
        Never,
        "sent more than 1 ms late because no connection was free",
    ),
    (
        "requests.again",
        Integer,
        Never,
        "sent again because the server refused to begin them",
    ),
    ("connections", Object, Never, "connections"),
    (
        "connections.opened",
        Integer,
        Never,
        "opened for measured requests, handshake included",
    ),
    ("tls", Object, Never, "what was agreed on"),
    (
        "tls.terms",
        Text,
        Perhaps,
        "version, suite and group of the key exchange; null in clear text",
    ),
    ("tls.full", Integer, Never, "full handshakes"),
    (
        "tls.resumed",
        Integer,
        Never,
        "handshakes that resumed a session",
    ),
    ("rate", Object, Never, "requests per second"),
    (
        "rate.offered_per_s",
        Number,
        Perhaps,
        "requests due per second, in an open loop",
    ),
    ("rate.answered_per_s", Number, Never, "answers per second"),
    ("bytes", Object, Never, "bytes of the measured requests"),
    ("bytes.received", Integer, Never, "received, heads included"),
    (
        "bytes.bodies",
        Integer,
        Never,
        "bodies received, without what frames them",
    ),
    ("bytes.sent", Integer, Never, "sent"),
    ("status", Objects, Never, "answers by status"),
    ("status[].code", Integer, Never, "the status"),
    ("status[].count", Integer, Never, "answers with it"),
    (
        "failures",
        Objects,
        Never,
        "failures by kind; only kinds that occurred",
    ),
    ("failures[].kind", Text, Never, "one of the kinds below"),
    ("failures[].count", Integer, Never, "how many"),
    ("failures[].first", Text, Never, "what the first one was"),
    (
        "latency",
        Object,
        Never,
        "histograms of times, in microseconds",
    ),
    (
        "latency.response",
        Times,
        Perhaps,
        "from when a request was due; requests without an answer in time with what they waited",
    ),
    (
        "latency.service",
        Times,
        Perhaps,
        "from when it was sent, answered requests only",
    ),
    (
        "latency.connect",
        Times,
        Perhaps,
        "from the beginning of a connection until it was open",
    ),
    (
        "series",
        Object,
        Never,
        "what happened when, by stretches of the measured time; requests belong to where they ended",
    ),
    (
        "series.interval_s",
        Number,
        Never,
        "length of a stretch: a second, in long runs more",
    ),
    (
        "series.answered",
        Integers,
        Never,
        "complete answers, by stretch",
    ),
    ("series.good", Integers, Never, "those answered as expected"),
    ("series.failed", Integers, Never, "failures"),
    (
        "series.p50_us",
        Numbers,
        Never,
        "median response time, right to a hundredth; null without one",
    ),
    ("series.p99_us", Numbers, Never, "99 %"),
    ("series.max_us", Numbers, Never, "the longest"),
    (
        "series.histograms",
        Texts,
        Never,
        "the times of each stretch, as `histogram` below",
    ),
    ("urls", Objects, Never, "by URL; empty where there is one"),
    ("urls[].url", Text, Never, "the URL"),
    ("urls[].answered", Integer, Never, "complete answers"),
    ("urls[].failed", Integer, Never, "failures"),
    ("urls[].response", Times, Perhaps, "as `latency.response`"),
    (
        "steps",
        Objects,
        Never,
        "by step of the rate; empty where there is one",
    ),
    ("steps[].answered", Integer, Never, "complete answers"),
    ("steps[].failed", Integer, Never, "failures"),
    ("steps[].response", Times, Perhaps, "as `latency.response`"),
    (
        "fairness",
        Number,
        Perhaps,
        "Jain's index of answers over connections: 1 is even, 1/n all to one",
    ),
    ("client", Object, Never, "the load generator"),
    (
        "client.cpu_us_per_request",
        Number,
        Perhaps,
        "its own CPU time per answer, microseconds",
    ),
    (
        "client.busy_percent",
        Number,
        Never,
        "time in which its busiest thread was busy",
    ),
    (
        "server",
        Object,
        Never,
        "the process of `--pid` and those below it",
    ),
    (
        "server.cpu_us_per_request",
        Number,
        Perhaps,
        "their CPU time per answer, microseconds",
    ),
    (
        "server.memory_bytes",
        Integer,
        Perhaps,
        "their memory at the end, shared pages by share",
    ),
    (
        "server.cgroup_cpu_us_per_request",
        Number,
        Perhaps,
        "CPU time of the control group of `--cgroup` per answer, microseconds",
    ),
    (
        "server.cgroup_memory_bytes",
        Integer,
        Perhaps,
        "its memory at the end, page cache included",
    ),
    (
        "machine",
        Object,
        Never,
        "the machine of the load generator",
    ),
    (
        "machine.busy_percent",
        Number,
        Never,
        "CPU time in use, of all CPUs",
    ),
    (
        "machine.steal_percent",
        Number,
        Never,
        "CPU time the host gave to others",
    ),
    (
        "doubtful",
        Truth,
        Never,
        "something else than the server may have been the limit",
    ),
    ("notes", Texts, Never, "why, and what else is to be known"),
    (
        "thresholds",
        Objects,
        Never,
        "the conditions of `--fail-if`",
    ),
    ("thresholds[].text", Text, Never, "as it was written"),
    (
        "thresholds[].value",
        Number,
        Perhaps,
        "the figure: nanoseconds, a count or %; null where it was not measured",
    ),
    (
        "thresholds[].crossed",
        Truth,
        Never,
        "the run has failed it",
    ),
];

/// The fields of an object of times.
const TIMES: &[Field] = &[
    ("count", Integer, Never, "times recorded"),
    ("mean_us", Number, Never, "their mean"),
    ("min_us", Number, Never, "the shortest"),
    ("p50_us", Number, Never, "half of them are at most this"),
    ("p75_us", Number, Never, "75 %"),
    ("p90_us", Number, Never, "90 %"),
    ("p95_us", Number, Never, "95 %"),
    ("p99_us", Number, Never, "99 %"),
    ("p99_9_us", Number, Never, "99.9 %"),
    ("p99_99_us", Number, Never, "99.99 %"),
    ("max_us", Number, Never, "the longest"),
    (
        "histogram",
        Text,
        Never,
        "all of them in nanoseconds: HdrHistogram's compressed V2 layout in base64",
    ),
];

/// The fields of a comparison.
const COMPARISON: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    (
        "confidence_percent",
        Number,
        Never,
        "share of cases in which an interval holds the true change",
    ),
    ("method", Text, Never, "how intervals were made"),
    ("figures", Objects, Never, "the figures both sides have"),
    ("figures[].name", Text, Never, "as thresholds name it"),
    (
        "figures[].before",
        Number,
        Never,
        "nanoseconds, answers per second or %",
    ),
    ("figures[].after", Number, Never, "the same afterwards"),
    (
        "figures[].change_percent",
        Number,
        Perhaps,
        "the change; null where it was 0 before",
    ),
    (
        "figures[].low_percent",
        Number,
        Perhaps,
        "lower end of its interval; null without one",
    ),
    ("figures[].high_percent", Number, Perhaps, "upper end"),
    (
        "figures[].verdict",
        Text,
        Never,
        "`faster`, `slower`, `fewer`, `more`, `cheaper`, `dearer`, `cannot be told apart` or `not judged`",
    ),
    ("notes", Texts, Never, "what else is to be known"),
    (
        "thresholds",
        Objects,
        Never,
        "the conditions of `--fail-if`",
    ),
    ("thresholds[].text", Text, Never, "as it was written"),
    (
        "thresholds[].crossed",
        Truth,
        Never,
        "the change is beyond it and certain",
    ),
];

/// The fields of what mischief came to.
const EXERCISE: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    ("url", Text, Never, "what was exercised"),
    ("address", Text, Never, "where the server was found"),
    ("protocol", Text, Never, "`h1`, `h2` or `h3`"),
    ("seed", Integer, Never, "what all acts follow from"),
    ("act", Integer, Perhaps, "the act that was repeated alone"),
    (
        "sequence",
        Text,
        Never,
        "two runs in which this is the same made the same acts",
    ),
    (
        "usual_status",
        Integer,
        Never,
        "what requests that behave are answered with",
    ),
    ("elapsed_s", Number, Never, "time of all acts"),
    ("interrupted", Truth, Never, "the run was ended by a signal"),
    (
        "acts",
        Objects,
        Never,
        "every act, in order of their numbers",
    ),
    ("acts[].number", Integer, Never, "its number, from 0"),
    ("acts[].name", Text, Never, "its kind"),
    (
        "acts[].detail",
        Text,
        Never,
        "what is special about this one",
    ),
    (
        "acts[].outcome",
        Text,
        Never,
        "statuses, resets and GOAWAY that came, else how it ended: `left` (by the act), `closed`, \
         `reset`, `no TLS`, `hung`, `no connection` or `malformed answer`",
    ),
    (
        "acts[].fault",
        Text,
        Perhaps,
        "what is wrong with that; null for an outcome that is allowed",
    ),
    ("acts[].took_ms", Number, Never, "how long it took"),
    ("acts[].repeat", Text, Never, "the command that repeats it"),
    (
        "outcomes",
        Objects,
        Never,
        "how often each kind of act had each outcome",
    ),
    ("outcomes[].act", Text, Never, "the kind"),
    (
        "outcomes[].outcome",
        Text,
        Never,
        "the outcome, with `x n` for however many alike",
    ),
    ("outcomes[].count", Integer, Never, "how often"),
    (
        "outcomes[].unexpected",
        Integer,
        Never,
        "how often of these it was not allowed",
    ),
    (
        "unexpected",
        Integer,
        Never,
        "acts with an outcome that is not allowed",
    ),
    (
        "beside",
        Object,
        Never,
        "requests that behaved, beside the acts",
    ),
    ("beside.due", Integer, Never, "requests that were due"),
    ("beside.good", Integer, Never, "those answered as usual"),
    ("beside.failed", Integer, Never, "those that were not"),
    ("beside.failures", Objects, Never, "by kind"),
    ("beside.failures[].kind", Text, Never, "see below"),
    ("beside.failures[].count", Integer, Never, "how often"),
    ("beside.failures[].first", Text, Never, "the first one"),
    ("beside.response", Times, Perhaps, "their response times"),
    (
        "beside.fault",
        Text,
        Perhaps,
        "why they ended before the acts did; null where they did not",
    ),
    (
        "afterwards",
        Integer,
        Perhaps,
        "the status when all was over; null for no answer",
    ),
    (
        "passed",
        Truth,
        Never,
        "nothing was unexpected, nothing failed beside, and the server answers as before",
    ),
];

/// The JSON schema of a result.
pub fn schema() -> Value {
    let mut times = object_of(TIMES, "");
    times["title"] = "times in microseconds, right to a thousandth".into();
    let mut whole = object_of(FIELDS, "");
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    whole["title"] = "result of `hob bench --json`".into();
    let mut comparison = object_of(COMPARISON, "");
    comparison["title"] = "result of `hob bench --compare --json`".into();
    let mut exercise = object_of(EXERCISE, "");
    exercise["title"] = "result of `hob bench --exercise --json`".into();
    whole["$defs"] = json!({ "times": times, "comparison": comparison, "exercise": exercise });
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
    text.push_str(
        "\n## Mischief\n\nWhat `hob bench --exercise --json` prints; its schema is \
         `#/$defs/exercise` of that of results.\n\n",
    );
    table(&mut text, EXERCISE);
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
