//! Keys of `session`: programs that stay for one visitor.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::Word;
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, ValueType, joined};
use crate::handle::config::schema::{PROGRAM, TIME_SOME, TIME_TO_MINUTE, secs};
use crate::handle::resident::keys::{RUN_KEYS, TIMEOUT};
use crate::handle::script::visits::keys::{QUEUE_MAX, VISIT_KEYS};

/// `[site.route.session]`
pub(crate) static SESSION: SchemaTable = SchemaTable {
    name: "session",
    header: "`session` of a route",
    text: "A program that stays for one visitor (Persistent CGI): each has a process of its own, \
           which gets one request at a time and remembers those before. An answer that begins with \
           `Accept-HTSession: HANDLE` keeps it, `HTTimeout: MINUTES` says for how long; an answer \
           without ends it. What runs is said as in `resident`, and how it runs as in `[program]`.",
    base: Some(&PROGRAM),
    keys: &joined::<{ RUN_KEYS.len() + VISIT_KEYS.len() + 4 }>(&[
        RUN_KEYS,
        VISIT_KEYS,
        &[
            SchemaKey::new("weak", Word(&["refuse", "bind"]), Preset::Text("refuse"))
                .says(
                    "What becomes of a handle of the program that can be guessed, of less than 96 \
                     random bits: `\"refuse\"` answers 502 and ends the visit; `\"bind\"` lets it \
                     hold beside a cookie of hob's with 128, one for each handle, for as long as \
                     `life`. That goes over TLS alone.",
                )
                .example("\"bind\""),
            SchemaKey::new("queue", ValueType::Table(&VISITOR_QUEUE), Nothing("")),
            SchemaKey::new("timeout", ValueType::Table(&TIMEOUT), Nothing("")).aka(&["timeouts"]),
            SchemaKey::new("grace", TIME_TO_MINUTE, secs(10))
                .says(
                    "How long a process whose visit is over may take to end by itself, after it \
                     was told and has answered, and again between SIGTERM and SIGKILL.",
                )
                .example("\"2s\"")
                .aka(&["kill_timeout", "stop_timeout"]),
        ],
    ]),
};

/// `[site.route.session.queue]`
pub(crate) static VISITOR_QUEUE: SchemaTable = SchemaTable {
    name: "queue",
    header: "`queue` of `session`",
    text: "Requests of one visitor that wait for the one before.",
    base: None,
    keys: &[
        QUEUE_MAX,
        SchemaKey::new("wait", TIME_SOME, secs(30))
            .says("How long a request waits; then 503.")
            .example("\"10s\"")
            .aka(&["time", "timeout"]),
    ],
};
