//! Every field of a result in JSON, once: the schema and the page in the docs are made of this.

use hob_load::layout::Kind::{Amounts, Cpu, Integer, Number, Object, Objects, Text, Times, Truth};
use hob_load::layout::Null::{Never, Perhaps};
use hob_load::layout::{self, Field};
use serde_json::{Value, json};

/// Grows when a field changes its meaning or goes; fields may be added without it.
pub(super) const FORMAT: u32 = 1;

/// What was asked for, and the ways of running it.
const RUNGS: &[Field] = &[
    ("format", Integer, Never, "version of this layout: 1"),
    (
        "subject",
        Text,
        Never,
        "the script, the URL or the built-in echo",
    ),
    ("request", Object, Never, "what was asked, again and again"),
    ("request.method", Text, Never, "its method"),
    (
        "request.body_bytes",
        Integer,
        Never,
        "length of its body; 0 without one",
    ),
    ("count", Integer, Never, "requests of each kind"),
    (
        "rate_per_s",
        Number,
        Never,
        "requests per second for which savings are told",
    ),
    (
        "cpu_resolution_us",
        Number,
        Never,
        "what clock ticks leave open of the CPU time of a request, microseconds",
    ),
    (
        "rungs",
        Objects,
        Never,
        "the ways of running the script; empty where they were not asked for",
    ),
    (
        "rungs[].handler",
        Text,
        Never,
        "`cgi`, `warm` or `resident`",
    ),
    (
        "rungs[].carrier",
        Text,
        Perhaps,
        "how a resident program is spoken to; null for others",
    ),
    (
        "rungs[].program",
        Text,
        Never,
        "`script`, or `echo` for the built-in one in its place",
    ),
    (
        "rungs[].language",
        Text,
        Never,
        "what it is written in, as far as it is known",
    ),
    (
        "rungs[].wall",
        Times,
        Perhaps,
        "until the answer; null where it was not possible",
    ),
    ("rungs[].cpu_us", Cpu, Perhaps, "CPU time of a request"),
    (
        "rungs[].not_possible",
        Text,
        Perhaps,
        "why the script cannot be run so",
    ),
];

/// Where one request goes.
const STAGES: &[Field] = &[
    (
        "stages",
        Object,
        Perhaps,
        "where one request as `cgi` goes; null where that was not measured",
    ),
    ("stages.script", Text, Never, "the script"),
    ("stages.rows", Objects, Never, "the stages in their order"),
    ("stages.rows[].name", Text, Never, "what happens in it"),
    (
        "stages.rows[].wall_us",
        Number,
        Never,
        "difference of medians, microseconds",
    ),
    (
        "stages.rows[].p99_us",
        Number,
        Never,
        "difference of 99th percentiles",
    ),
    (
        "stages.rows[].cpu_us",
        Number,
        Perhaps,
        "difference of means; null where it is part of another",
    ),
    (
        "stages.rows[].in_1995_ms",
        Text,
        Never,
        "what stood in its place in 1995, milliseconds",
    ),
    (
        "stages.rows[].remark",
        Text,
        Never,
        "what is to be known about it",
    ),
    (
        "stages.unexplained_us",
        Number,
        Never,
        "what the stages together are less than the whole; more, where it is negative",
    ),
    (
        "stages.reap_us",
        Number,
        Never,
        "after the answer: from the end of the output until the process was waited for",
    ),
    (
        "stages.total",
        Times,
        Never,
        "the whole request, over a connection of its own",
    ),
    ("stages.cpu_us", Cpu, Never, "CPU time of the whole"),
    (
        "stages.nested",
        Objects,
        Never,
        "the totals that stages are differences of",
    ),
    ("stages.nested[].name", Text, Never, "what was measured"),
    ("stages.nested[].wall", Times, Never, "how long it took"),
    (
        "stages.nested[].cpu_us",
        Number,
        Perhaps,
        "mean CPU time, microseconds",
    ),
    (
        "stages.in_1995_ms",
        Object,
        Never,
        "the whole in 1995, milliseconds",
    ),
    ("stages.in_1995_ms.total", Number, Never, "all of it"),
    (
        "stages.in_1995_ms.blocked",
        Number,
        Never,
        "blocked on a socket, which nobody explained",
    ),
];

/// Processes alone, and what a start depends on.
const STARTS: &[Field] = &[
    (
        "bare",
        Objects,
        Never,
        "processes made with no server around them; empty where not asked for",
    ),
    (
        "bare[].made_by",
        Text,
        Never,
        "`fork`, `posix_spawn` or `vfork`",
    ),
    (
        "bare[].exec",
        Truth,
        Never,
        "the process becomes another program",
    ),
    (
        "bare[].parent_bytes",
        Integer,
        Never,
        "memory of the process that makes it",
    ),
    ("bare[].count", Integer, Never, "how many were made"),
    (
        "bare[].wall",
        Times,
        Perhaps,
        "until it had ended and was waited for; null where not possible",
    ),
    (
        "bare[].call",
        Times,
        Perhaps,
        "until the call that makes it was back",
    ),
    (
        "bare[].cpu_us",
        Number,
        Perhaps,
        "mean CPU time of both, microseconds",
    ),
    (
        "bare[].not_possible",
        Text,
        Perhaps,
        "why it was not measured",
    ),
    (
        "growth",
        Objects,
        Never,
        "the script as `cgi` with a server that has grown; empty where not asked for",
    ),
    (
        "growth[].wanted_bytes",
        Integer,
        Never,
        "memory the server was to have",
    ),
    ("growth[].server_bytes", Integer, Never, "what it had"),
    (
        "growth[].wall",
        Times,
        Perhaps,
        "until the answer; null where not possible",
    ),
    ("growth[].cpu_us", Cpu, Perhaps, "CPU time of a request"),
    (
        "growth[].not_possible",
        Text,
        Perhaps,
        "why it was not measured",
    ),
    (
        "burst",
        Objects,
        Never,
        "many starts at once; empty where not asked for",
    ),
    ("burst[].starts", Integer, Never, "requests at once"),
    (
        "burst[].limit",
        Integer,
        Perhaps,
        "how many may run at a time; null for all of them",
    ),
    ("burst[].wall", Times, Never, "until the answer"),
    ("burst[].cpu_us", Cpu, Never, "CPU time of a request"),
];

/// What goes over a connection, and what it was measured on.
const WIRE: &[Field] = &[
    (
        "wire",
        Object,
        Perhaps,
        "what goes between client and server; null where it was not asked for",
    ),
    ("wire.ways", Objects, Never, "every way of connecting"),
    (
        "wire.ways[].name",
        Text,
        Never,
        "protocol and what becomes of connections",
    ),
    (
        "wire.ways[].wall",
        Times,
        Perhaps,
        "until the answer, connecting included; null where not measured",
    ),
    (
        "wire.ways[].packets_out",
        Number,
        Perhaps,
        "packets to the server for each request, datagrams over HTTP/3; null where the kernel does not count",
    ),
    ("wire.ways[].packets_in", Number, Perhaps, "those from it"),
    (
        "wire.ways[].bytes_out",
        Number,
        Perhaps,
        "bytes to the server, without headers of TCP, UDP and IP",
    ),
    ("wire.ways[].bytes_in", Number, Perhaps, "those from it"),
    (
        "wire.ways[].round_trips",
        Number,
        Perhaps,
        "round trips of a request, those of connecting included",
    ),
    ("wire.ways[].tls", Text, Perhaps, "version and suite of TLS"),
    (
        "wire.ways[].calls",
        Object,
        Perhaps,
        "system calls of the server for each request",
    ),
    ("wire.ways[].calls.total", Number, Never, "all of them"),
    (
        "wire.ways[].calls.by_name",
        Amounts,
        Never,
        "each by its name",
    ),
    (
        "wire.ways[].not_measured",
        Text,
        Perhaps,
        "why there are no figures",
    ),
    (
        "wire.no_calls",
        Text,
        Perhaps,
        "why there are no system calls",
    ),
    (
        "failed",
        Objects,
        Never,
        "parts that failed after another was finished",
    ),
    ("failed[].part", Text, Never, "as `--part` names it"),
    ("failed[].why", Text, Never, "why"),
    (
        "sentence",
        Text,
        Never,
        "what a move would save; empty where there is nothing to compare",
    ),
    ("environment", Object, Never, "the machine"),
];

/// What times of requests are told by.
const TIMES: &[Field] = &[
    ("p50_us", Number, Never, "median"),
    (
        "p99_us",
        Number,
        Never,
        "99 %; the longest of fewer than 100",
    ),
    ("mean_us", Number, Never, "mean"),
];

/// Whose CPU time it is.
const CPU: &[Field] = &[
    ("server", Number, Never, "the process that answers"),
    (
        "spawner",
        Number,
        Never,
        "the one that starts programs, and the keeper",
    ),
    ("program", Number, Never, "the programs"),
    ("total", Number, Never, "all of them"),
];

/// The JSON schema of a result.
pub fn schema() -> Value {
    let mut times = layout::object(TIMES);
    times["title"] = "times in microseconds".into();
    let mut cpu = layout::object(CPU);
    cpu["title"] = "CPU time of a request in microseconds".into();
    let defined = json!({ "times": times, "cpu": cpu });
    layout::schema("result of `hob cost --json`", &fields(), defined)
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    format!(
        "# The result of a cost study\n\n\
         `hob cost --json` prints one JSON object with these fields; `hob cost --schema` prints \
         its JSON schema. Every field is always there; those marked *or null* hold null where \
         there is nothing to tell. New fields may be added; `format` grows when one changes its \
         meaning.\n\n\
         {}\n## Times\n\nOf many requests, in microseconds.\n\n{}\n\
         ## CPU times\n\nOf one request, in microseconds.\n\n{}",
        layout::table(&fields()),
        layout::table(TIMES),
        layout::table(CPU)
    )
}

fn fields() -> Vec<Field> {
    [RUNGS, STAGES, STARTS, WIRE, &hob_load::environment_fields()].concat()
}
