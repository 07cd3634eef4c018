//! Keys that those who ask upstreams have in common.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{Integer, Size, Table, Text, Word, Words};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable};
use crate::handle::config::schema::{KIB, MIB, TIME_OR_NONE, TIME_SOME, secs};
use crate::handle::script::keys::QUEUE_KEYS;

/// Words of `balance`.
pub(crate) const BALANCES: &[&str] = &["latency", "requests", "round_robin"];
/// Words of `retry.on`.
pub(crate) const RETRIED: &[&str] = &["connect", "closed", "first_byte", "502", "503", "504"];

pub(in crate::handle) const BALANCE: SchemaKey =
    SchemaKey::new("balance", Word(BALANCES), Preset::Text("latency"))
        .says(
            "Which member gets a request. `latency`: the better of two that chance picks, by \
             requests under way and how long answers took lately, so that a slow one gets little; \
             `requests`: who has the fewest under way; `round_robin`: each in turn.",
        )
        .example("\"round_robin\"")
        .aka(&["lb_policy", "policy", "strategy"]);
/// `connections`, so many where nothing is said.
pub(in crate::handle) const fn connections(preset: i64) -> SchemaKey {
    SchemaKey::new(
        "connections",
        Integer {
            min: 1,
            max: 100_000,
        },
        Preset::Integer(preset),
    )
    .says(
        "Connections at once to all members together, one for each request; more requests wait in \
         the queue. What listens there has its own limit, and those beyond wait there.",
    )
    .example("32")
    .aka(&["max_connections", "concurrent", "limit"])
}
pub(in crate::handle) const QUEUE: SchemaKey =
    SchemaKey::new("queue", Table(&QUEUE_TABLE), Nothing(""));
pub(in crate::handle) const TIMEOUT: SchemaKey =
    SchemaKey::new("timeout", Table(&TIMEOUT_TABLE), Nothing("")).aka(&["timeouts"]);
pub(in crate::handle) const FAIL: SchemaKey =
    SchemaKey::new("fail", Table(&FAIL_TABLE), Nothing("")).aka(&["health", "passive_health"]);
pub(in crate::handle) const HEAD: SchemaKey =
    SchemaKey::new("head", Size { min: KIB, max: MIB }, Preset::Size(64 * KIB))
        .says("Longest head of an answer; a longer one is a 502.")
        .example("\"16KiB\"")
        .aka(&["buffer_size"]);
pub(in crate::handle) const RETRY: SchemaKey =
    SchemaKey::new("retry", Table(&RETRY_TABLE), Nothing("")).aka(&["retries", "next_upstream"]);

/// `queue`
pub(crate) static QUEUE_TABLE: SchemaTable = SchemaTable {
    name: "queue",
    header: "`queue` of an upstream",
    text: "Requests that wait for a connection.",
    base: None,
    keys: QUEUE_KEYS,
};

/// `timeout`
pub(crate) static TIMEOUT_TABLE: SchemaTable = SchemaTable {
    name: "timeout",
    header: "`timeout` of an upstream",
    text: "Time limits (504); `\"0s\"` is none.",
    base: None,
    keys: TIMEOUT_KEYS,
};

/// Of `timeout`.
pub(in crate::handle) const TIMEOUT_KEYS: &[SchemaKey] = &[
    SchemaKey::new("connect", TIME_SOME, secs(5))
        .says("Until there is a connection.")
        .example("\"1s\""),
    SchemaKey::new("first_byte", TIME_OR_NONE, secs(60))
        .says(
            "From then until the head of the answer; while the request's body is on its way, from \
             the last of it that was sent.",
        )
        .example("\"10s\"")
        .aka(&["read", "read_timeout"]),
    SchemaKey::new("total", TIME_OR_NONE, secs(0))
        .says("From then until the end of the answer.")
        .example("\"10m\"")
        .aka(&["max"]),
    SchemaKey::new("progress", TIME_OR_NONE, secs(60))
        .says("Longest pause between two pieces of an answer.")
        .example("\"5m\"")
        .aka(&["idle"]),
    SchemaKey::new("events", TIME_OR_NONE, secs(300))
        .says(
            "Longest pause between two pieces of an answer of `text/event-stream`, for which \
                 `total` and `progress` do not hold.",
        )
        .example("\"1h\"")
        .aka(&["sse", "event_stream"]),
];

/// `fail`
pub(crate) static FAIL_TABLE: SchemaTable = SchemaTable {
    name: "fail",
    header: "`fail` of an upstream",
    text: "When a member of several is left out: it cannot be reached, ends its connection before \
           an answer, speaks another protocol, or begins no answer in time.",
    base: None,
    keys: &[
        SchemaKey::new(
            "count",
            Integer {
                min: 0,
                max: 1_000_000,
            },
            Preset::Integer(3),
        )
        .says("After so many failures within `window`; 0 leaves nobody out.")
        .example("1")
        .aka(&["max_fails"]),
        SchemaKey::new("window", TIME_SOME, secs(10))
            .says("Failures count for so long.")
            .example("\"30s\"")
            .aka(&["fail_timeout", "fail_duration"]),
        SchemaKey::new("pause", TIME_SOME, secs(1))
            .says(
                "For so long at first. Then one request tries it: an answer brings it back, \
                 another failure doubles the pause, up to a minute.",
            )
            .example("\"5s\""),
    ],
};

/// `retry`
pub(crate) static RETRY_TABLE: SchemaTable = SchemaTable {
    name: "retry",
    header: "`retry` of an upstream",
    text: "Requests that are given to another member when one fails. Only those of which nothing \
           was sent, or that may be made twice (`GET`, `HEAD`, `OPTIONS`, `PUT`, `DELETE`) and \
           whose body is all there; never once an answer has begun.",
    base: None,
    keys: &[
        SchemaKey::new("times", Integer { min: 0, max: 100 }, Preset::Integer(2))
            .says("So often at most, and each member is asked once.")
            .example("1")
            .aka(&["tries"]),
        SchemaKey::new(
            "on",
            Words(RETRIED),
            Preset::Texts(&["connect", "closed"]),
        )
        .says(
            "After what: no connection; a connection that ended before an answer, or over which \
             something else came; no answer in time; an answer of this status.",
        )
        .example("[\"connect\", \"503\"]"),
        SchemaKey::new("budget", Text, Preset::Text("20%"))
            .says(
                "Retries are at most this part of all requests, and ten beyond: where all members \
                 are in trouble, they do not get twice the requests.",
            )
            .example("\"5%\""),
    ],
};
