//! Every field of a result in JSON, once: the schema and the page in the docs are made of this.

use hob_load::layout::Kind::{Integer, Number, Object, Objects, Text, Texts, Truth};
use hob_load::layout::Null::{Never, Perhaps};
use hob_load::layout::{self, Field};
use serde_json::{Value, json};

/// Grows when a field changes its meaning or goes; fields may be added without it.
pub(super) const FORMAT: u32 = 1;

/// The whole, and who was compared.
const WHOLE: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    (
        "begun_at",
        Integer,
        Never,
        "when it began, in seconds since 1970",
    ),
    ("elapsed_s", Number, Never, "how long all of it took"),
    (
        "interrupted",
        Truth,
        Never,
        "a signal ended it: rows at the end are missing or have few rounds",
    ),
    ("scope", Text, Never, "`quick`, `usual` or `full`"),
    (
        "settings",
        Text,
        Never,
        "`usual`: servers as they come; `tuned`: for speed",
    ),
    ("servers", Objects, Never, "who was compared, hob first"),
    ("servers[].name", Text, Never, "the server"),
    ("servers[].version", Text, Never, "as it says itself"),
    ("servers[].program", Text, Never, "its file"),
    (
        "servers[].configuration",
        Text,
        Perhaps,
        "what it was told; null where it was not started",
    ),
    ("missing", Objects, Never, "who was not compared"),
    ("missing[].name", Text, Never, "the server"),
    ("missing[].why", Text, Never, "why not"),
    (
        "notes",
        Texts,
        Never,
        "what must be known before the figures",
    ),
];

/// The rows.
const ROWS: &[Field] = &[
    (
        "rows",
        Objects,
        Never,
        "the same work for several, in the order in which they are shown",
    ),
    ("rows[].id", Text, Never, "its name for `--only`"),
    ("rows[].title", Text, Never, "what it is"),
    ("rows[].group", Text, Never, "what it belongs to"),
    ("rows[].connections", Integer, Never, "connections"),
    (
        "rows[].keep_alive",
        Truth,
        Never,
        "false: one connection per request",
    ),
    ("rows[].protocol", Text, Never, "`h1`, `h2` or `h3`"),
    (
        "rows[].streams",
        Integer,
        Never,
        "requests at once on a connection",
    ),
    ("rows[].tls", Truth, Never, "false: clear text"),
    (
        "rows[].per",
        Text,
        Never,
        "what CPU time is divided by: `request` or `megabyte`, of 1,000,000 bytes",
    ),
    (
        "rows[].repeated_rounds",
        Integer,
        Never,
        "rounds made again because the host took CPU time",
    ),
    (
        "rows[].disturbed_rounds",
        Integer,
        Never,
        "rounds that count although it did",
    ),
    ("rows[].then", Objects, Never, "figures of old documents"),
    (
        "rows[].then[].id",
        Text,
        Never,
        "the row of the document; its first letter is the document",
    ),
    ("rows[].then[].server", Text, Never, "the server of then"),
    ("rows[].then[].figure", Number, Never, "as printed"),
    ("rows[].then[].unit", Text, Never, "of what"),
    (
        "rows[].then[].remark",
        Text,
        Never,
        "what is odd about it; empty where nothing is",
    ),
    (
        "rows[].advice",
        Text,
        Never,
        "what old documents advised about it; empty where nothing",
    ),
    (
        "rows[].sweep",
        Object,
        Perhaps,
        "how the default stands to the best, in a row of a sweep",
    ),
    ("rows[].sweep.default", Text, Never, "label of the default"),
    ("rows[].sweep.best", Text, Never, "label of the best"),
    (
        "rows[].sweep.ratio",
        Object,
        Never,
        "CPU time of the default in times of the best",
    ),
    ("rows[].sweep.ratio.mean", Number, Never, "geometric mean"),
    (
        "rows[].sweep.ratio.half_95",
        Number,
        Perhaps,
        "half of its 95 % interval; null of one round",
    ),
    ("rows[].sweep.ratio.n", Integer, Never, "rounds"),
    (
        "rows[].sweep.within_5_percent",
        Truth,
        Perhaps,
        "whether it is within 5 %; null where the rounds differ too much to tell",
    ),
];

/// What came of each server in a row.
const CELLS: &[Field] = &[
    (
        "rows[].cells",
        Objects,
        Never,
        "who did the work; the first is what the others are compared with",
    ),
    (
        "rows[].cells[].label",
        Text,
        Never,
        "the server, and how where it does it in several ways",
    ),
    (
        "rows[].cells[].server",
        Text,
        Never,
        "the server, as in `servers`",
    ),
    ("rows[].cells[].path", Text, Never, "what was asked for"),
    (
        "rows[].cells[].cpu_us",
        Object,
        Perhaps,
        "CPU time of the server with all its processes, microseconds",
    ),
    (
        "rows[].cells[].cpu_us.mean",
        Number,
        Never,
        "mean of the rounds",
    ),
    (
        "rows[].cells[].cpu_us.half_95",
        Number,
        Perhaps,
        "half of its 95 % interval; null of one round",
    ),
    ("rows[].cells[].cpu_us.n", Integer, Never, "rounds"),
    (
        "rows[].cells[].cpu_us_median",
        Number,
        Perhaps,
        "median of the rounds",
    ),
    (
        "rows[].cells[].ratio",
        Object,
        Perhaps,
        "CPU time in times of the first one's, round by round",
    ),
    ("rows[].cells[].ratio.mean", Number, Never, "geometric mean"),
    (
        "rows[].cells[].ratio.half_95",
        Number,
        Perhaps,
        "half of its 95 % interval; null of one round",
    ),
    ("rows[].cells[].ratio.n", Integer, Never, "rounds"),
    (
        "rows[].cells[].failed",
        Integer,
        Never,
        "requests without the answer that was expected",
    ),
    (
        "rows[].cells[].not_measured",
        Text,
        Perhaps,
        "why there are no rounds",
    ),
    (
        "rows[].cells[].doubtful",
        Text,
        Perhaps,
        "why its figures are not to be trusted",
    ),
    (
        "rows[].cells[].rounds",
        Objects,
        Never,
        "every round that counts",
    ),
    (
        "rows[].cells[].rounds[].cpu_us",
        Number,
        Never,
        "CPU time, microseconds",
    ),
    (
        "rows[].cells[].rounds[].per_second",
        Number,
        Never,
        "answers per second",
    ),
    (
        "rows[].cells[].rounds[].bytes_per_second",
        Number,
        Never,
        "bytes of bodies per second",
    ),
    (
        "rows[].cells[].rounds[].good",
        Integer,
        Never,
        "answers as expected",
    ),
    (
        "rows[].cells[].rounds[].failed",
        Integer,
        Never,
        "requests without",
    ),
    (
        "rows[].cells[].rounds[].failure",
        Text,
        Perhaps,
        "the first failure",
    ),
    (
        "rows[].cells[].rounds[].p50_us",
        Number,
        Never,
        "median of the response times, microseconds",
    ),
    ("rows[].cells[].rounds[].p99_us", Number, Never, "99 %"),
    (
        "rows[].cells[].rounds[].client_cpu_us",
        Number,
        Never,
        "CPU time of the load generator per request",
    ),
    (
        "rows[].cells[].rounds[].steal_percent",
        Number,
        Never,
        "share of all CPU time that the host took",
    ),
    (
        "rows[].cells[].rounds[].tls",
        Text,
        Perhaps,
        "version, suite and group of the key exchange",
    ),
];

/// What follows from the rows, and where they were measured.
const REST: &[Field] = &[
    (
        "secure_to_plain",
        Objects,
        Never,
        "CPU time over TLS in times of that in clear text",
    ),
    ("secure_to_plain[].row", Text, Never, "the row over TLS"),
    (
        "secure_to_plain[].ratios",
        Objects,
        Never,
        "for each who was asked both ways",
    ),
    (
        "secure_to_plain[].ratios[].label",
        Text,
        Never,
        "as in the cells of the row",
    ),
    (
        "secure_to_plain[].ratios[].ratio",
        Number,
        Never,
        "the ratio",
    ),
    ("environment", Object, Never, "the machine"),
    (
        "environment.more",
        Objects,
        Never,
        "what else is known about it",
    ),
    ("environment.more[].name", Text, Never, "what"),
    ("environment.more[].value", Text, Never, "how it is"),
];

/// The JSON schema of a result.
pub fn schema() -> Value {
    layout::schema("result of `hob compare --json`", &fields(), json!({}))
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    format!(
        "# The result of a comparison\n\n\
         `hob compare --json FILE` writes one JSON object with these fields; `hob compare \
         --schema` prints its JSON schema. Every field is always there; those marked *or null* \
         hold null where there is nothing to tell. New fields may be added; `format` grows when \
         one changes its meaning.\n\n{}",
        layout::table(&fields())
    )
}

fn fields() -> Vec<Field> {
    [WHOLE, ROWS, CELLS, REST, &hob_load::environment_fields()].concat()
}
