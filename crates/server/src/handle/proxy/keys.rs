//! Keys of `proxy`.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{
    Flag, Integer, Map, Table, Text, TextOrTexts, Texts, Word, Words,
};
use crate::handle::config::key::{MapOf, MapValue, Preset, SchemaKey, SchemaTable, joined};
use crate::handle::config::schema::{PROGRAM, TIME_OR_NONE, secs};
use crate::handle::script::keys::CONTROL;
use crate::handle::upstream::buffer::BUFFER;
use crate::handle::upstream::keys::{
    CHOICE_KEYS, HEAD, KEEP_KEYS, QUEUE, RETRY, SERVICE_MEMBERS, TIMEOUT_KEYS, TLS, connections,
};
use crate::handle::upstream::run::keys::RUN_SERVER_KEYS;

/// Words of `forwarded`.
pub(crate) const FORWARDED: &[&str] = &[
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Real-IP",
    "Forwarded",
    "Via",
];

/// Words of `http`.
pub(crate) const VERSIONS: &[&str] = &["auto", "1.1", "2"];

/// `[site.route.proxy]`
pub(crate) static PROXY: SchemaTable = SchemaTable {
    name: "proxy",
    header: "`proxy` of a route",
    text: "Another HTTP server answers: requests are passed on to it. `to` says where it listens, \
           `run` has hob start it. A plain string is `to`. How a server of `run` runs is as in \
           `[program]`, where nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &joined::<{ RUN_SERVER_KEYS.len() + CHOICE_KEYS.len() + KEEP_KEYS.len() + 18 }>(&[
        RUN_SERVER_KEYS,
        &[
        SchemaKey::new("to", TextOrTexts, Preset::Texts(&[]))
            .says(
                "Where it listens: `http://HOST:PORT`, `https://HOST:PORT`, `unix:PATH`, or `srv:` and \
                 a service that name servers have; a list where several do. The port is 80 where \
                 none is written, or 443. With a path behind the port, that stands in the place of \
                 the route's fixed folder: with `http://127.0.0.1:3000/` a route `/app/*` asks for \
                 `/x` where the client asks for `/app/x`. Without one, paths go on as they are.",
            )
            .example("\"http://127.0.0.1:3000\"")
            .aka(&["address", "server", "servers", "url"]),
        SchemaKey::new("host", Text, Preset::Text("keep"))
            .says(
                "The `Host` it is asked for: `keep` the client's, `upstream` the one in `to`, or \
                 this text.",
            )
            .example("\"upstream\"")
            .aka(&["preserve_host"]),
        SchemaKey::new(
            "forwarded",
            Words(FORWARDED),
            Preset::Texts(&["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"]),
        )
        .says(
            "Fields that tell it who asks, and over what. What a client sends in fields of these \
             names is never passed on, whether they are listed or not, but for `Via`.",
        )
        .example("[\"X-Forwarded-For\", \"Forwarded\"]"),
        SchemaKey::new("headers", Map(&HEADER_TO_TEXT), Nothing("none"))
            .says(
                "Header fields set in every request that is passed on; an empty value removes the \
                 field. Those of answers are set by `headers` of the site and the route.",
            )
            .example("{ X-Api-Key = \"abc\", Accept-Encoding = \"\" }")
            .aka(&["set_headers", "request_headers"]),
        SchemaKey::new("location", Flag, Preset::Flag(true))
            .says(
                "Where `Location` and `Content-Location` of its answers name the other server, or \
                 the folder in `to`, they are made to lead to the same here.",
            )
            .example("false")
            .aka(&["redirects"]),
        SchemaKey::new("cookies", Flag, Preset::Flag(false))
            .says(
                "Its cookies are made to hold for the route: a `Path` in the folder of `to` \
                 becomes that of the route, and a `Domain` that is the other server's goes.",
            )
            .example("true")
            .aka(&["cookie_path", "cookie_domain"]),
        SchemaKey::new("http", Word(VERSIONS), Preset::Text("auto"))
            .says(
                "The version of HTTP that is spoken with it. `auto`: over TLS HTTP/2 where it takes \
                 that, else HTTP/1.1; `2`: HTTP/2 without asking, as servers of gRPC want it. Over \
                 HTTP/2 many requests share a connection, at most as many as it allows.",
            )
            .example("\"2\"")
            .aka(&["http_version", "versions", "proto"]),
        SchemaKey::new("upgrade", Texts, Preset::Texts(&["websocket"]))
            .says(
                "Protocols that clients may have spoken through a tunnel (`Upgrade`, and CONNECT \
                 over HTTP/2 and 3). Other wishes are left out.",
            )
            .example("[]")
            .aka(&["upgrades"]),
        ],
        CHOICE_KEYS,
        &[
        SERVICE_MEMBERS,
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
            "Connections to each member that stay open between requests, of all threads together. \
             Fewer than are in use at a time means that some are opened anew all the time. 0 opens \
             one for each request.",
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
        CONTROL,
        ],
    ]),
};

/// `site.route.proxy.headers`
static HEADER_TO_TEXT: MapOf = MapOf {
    key: "header",
    value: MapValue::Text,
};

/// `[site.route.proxy.timeout]`
pub(crate) static PROXY_TIMEOUT: SchemaTable = SchemaTable {
    name: "timeout",
    header: "`timeout` of `proxy`",
    text: "Time limits (504); `\"0s\"` is none.",
    base: None,
    keys: &joined::<6>(&[
        TIMEOUT_KEYS,
        &[SchemaKey::new("tunnel", TIME_OR_NONE, secs(300))
            .says(
                "How long nothing may come through a tunnel (a WebSocket, say) in either \
                 direction; then it is broken off. The other limits do not hold for tunnels.",
            )
            .example("\"1h\"")],
    ]),
};
