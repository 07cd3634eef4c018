//! Keys of `remote`.

use crate::handle::config::key::Preset::{Nothing, Required};
use crate::handle::config::key::ValueType::{Integer, Table, Text, TextOrTexts};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, joined};
use crate::handle::proxy::keys::PROXY_TIMEOUT;
use crate::handle::upstream::buffer::BUFFER;
use crate::handle::upstream::keys::{CHOICE_KEYS, HEAD, KEEP_KEYS, QUEUE, RETRY, TLS, connections};

/// `[site.route.remote]`
pub(crate) static REMOTE: SchemaTable = SchemaTable {
    name: "remote",
    header: "`remote` of a route",
    text: "A program that a hob on another machine runs and offers to this one (`[[offer]]` there). \
           It is told what a program here would be told, and its answers are treated alike; \
           a file that it has sent (`X-Sendfile`) is one of its machine.",
    base: None,
    keys: &joined::<{ CHOICE_KEYS.len() + KEEP_KEYS.len() + 10 }>(&[
        &[
            SchemaKey::new("to", TextOrTexts, Required)
                .says(
                    "Where that hob takes requests for what it offers: `tls://HOST:PORT`, or \
                     several where several machines have the program. Both sides show a \
                     certificate: `tls` names the one of this machine.",
                )
                .example("\"tls://box2.example.com:9443\"")
                .aka(&["at", "address", "server", "servers"]),
            SchemaKey::new("program", Text, Required)
                .says("What the other machine calls the program, in its `[[offer]]`.")
                .example("\"reports\""),
        ],
        CHOICE_KEYS,
        &[
            connections(4096),
            SchemaKey::new(
                "keep",
                Integer {
                    min: 0,
                    max: 10_000,
                },
                Preset::Integer(256),
            )
            .says(
                "Connections to each member that stay open between requests, of all threads \
                 together; many requests share one.",
            )
            .example("8")
            .aka(&["pool_max_conn"]),
        ],
        KEEP_KEYS,
        &[
            QUEUE,
            SchemaKey::new("timeout", Table(&PROXY_TIMEOUT), Nothing("")).aka(&["timeouts"]),
            RETRY,
            BUFFER,
            TLS,
            HEAD,
        ],
    ]),
};
