//! Keys of the config that are nobody's handler, once: name, type, range, default, meaning and
//! example. A server puts them together with those of its handlers into one [`Schema`].
//!
//! Loading, unknown-key messages, the reference page, the JSON schema, `hob check --explain` and
//! the settings that `hob explain` tells all follow from it. Adding a key means its entry here, its
//! field and its reading where the table is built (`build`, `build_site`, `program`, ...), and its
//! place in a golden config: a test names keys that none sets.
//! `key` says what an entry is made of.

mod acme;
mod admin;
mod answers;
mod auth;
mod ban;
mod crowding;
mod inside;
mod logs;
mod metrics;
mod names;
mod programs;
mod shared;
mod site;
mod tls;
mod watch;
mod when;

use std::time::Duration;

use super::foreign::Foreign;
use super::key::Preset::{Inherited, Nothing, Required};
use super::key::ValueType::{
    Cpus, Flag, Integer, Map, OrFlag, OrText, OrWord, Path, Size, Tables, Text, TextOrTexts, Texts,
    Time, Word, Words,
};
use super::key::{MapOf, MapValue, Preset, SchemaKey, SchemaTable, ValueType};

pub use acme::{ACME, DNS, EXTERNAL_ACCOUNT};
pub use admin::{ADMIN, ADMIN_TLS, ADMIN_USER};
pub use answers::{ACCESS, ANSWER, COMPRESS_TYPES, CORS, RATE, REDIRECTS, REQUIRE};
pub use auth::{AUTH, FORWARD, JWT, PAM};
pub use ban::BAN;
pub use crowding::{BANDWIDTH, CONCURRENCY, OVERLOAD};
pub use inside::{ACTIVITY, HISTORY};
pub use logs::{FACILITIES, LOG, SEVERITIES, SYSLOG};
pub use metrics::{METRICS, OTLP};
pub use names::NAMES;
pub use programs::{CGROUP, GIDS, PROGRAM, RLIMITS, SANDBOX, UIDS};
pub use shared::{SNIPPETS, defaults};
pub use site::{SITE_ANSWERS, SITE_KEYS, routes, site, site_answers};
pub use tls::{HSTS, LISTEN_TLS, SITE_TLS};
pub use watch::WATCH;
pub use when::WHEN;

/// Every key that can stand in a config, and words of other servers for them.
#[derive(Debug)]
pub struct Schema {
    /// The top level.
    pub root: &'static SchemaTable,
    /// `[[site]]`
    pub site: &'static SchemaTable,
    /// `[[site.route]]`
    pub route: &'static SchemaTable,
    /// Names of handlers: keys of a route, one of which it has.
    pub handlers: &'static [&'static str],
    /// Words of other servers' configs, by what they are about.
    pub words: &'static [&'static [Foreign]],
}

/// The top level of a config file, with all its keys.
pub const fn top_level(keys: &'static [SchemaKey]) -> SchemaTable {
    SchemaTable {
        name: "",
        header: "the top level",
        text: "Keys of the server as a whole. They stand before the first `[table]` of a file.",
        base: None,
        keys,
    }
}

/// The key of the top level that is a list of sites.
pub const fn sites(site: &'static SchemaTable) -> SchemaKey {
    SchemaKey::new("site", Tables(site), Nothing("")).aka(&["host", "sites"])
}

static CACHE_TABLE: ValueType = ValueType::Table(&CACHE);
static ACTIVITY_TABLE: ValueType = ValueType::Table(&ACTIVITY);

/// Keys of the top level, but `site`.
pub const TOP_KEYS: &[SchemaKey] = &[
    SchemaKey::new("include", Texts, Preset::Texts(&[]))
        .says(
            "More config files, read as if they stood at the end of this one. `*` stands for \
                 any part of a file name (not of a folder name; never for a leading dot); matches \
                 are read in order of their names. A file is read once, however often it is \
                 named. A key that takes one value may be set in one file only; `[[listen]]`, \
                 `[[site]]` and `[[log]]` add up.",
        )
        .example("[\"conf.d/*.toml\"]"),
    SchemaKey::new(
        "threads",
        OrWord("auto", &Integer { min: 1, max: 1024 }),
        Preset::Text("auto"),
    )
    .says(
        "Server threads. `\"auto\"` is one for each CPU the server may use, CPU quota \
                 counted.",
    )
    .example("4"),
    SchemaKey::new("cpus", Cpus, Preset::Texts(&[]))
        .says(
            "CPUs the server may run on, as numbers or ranges, counted from 0. An empty list \
                 is every CPU it is allowed.",
        )
        .example("[\"0-3,6\"]")
        .aka(&["affinity"]),
    SchemaKey::new("nice", Integer { min: -20, max: 19 }, Preset::Integer(0))
        .says(
            "Nice level of the server process; lower is served first by the kernel. Below 0 \
                 needs root.",
        )
        .example("-5"),
    SchemaKey::new("user", Text, Nothing("none"))
        .says("Account the server runs as when it was started as root.")
        .example("\"www-data\""),
    SchemaKey::new("group", Text, Nothing("the group of `user`"))
        .says("Group the server runs as when it was started as root.")
        .example("\"www-data\""),
    SchemaKey::new(
        "unknown_host",
        Word(&["refuse", "first"]),
        Preset::Text("refuse"),
    )
    .says(
        "What is done for hosts that no site names, where each site has `names` (one without \
             answers all other hosts): `\"refuse\"` answers 421, `\"first\"` has the first site \
             answer, whose permanent redirects (301, 308) are sent as temporary ones (302, 307) \
             then. Requests that name no host are for the first site either way.",
    )
    .example("\"first\"")
    .aka(&["default_server", "default_site", "default_host"]),
    SchemaKey::new(
        "control",
        OrWord("off", &Path),
        Nothing("one of its own for each config, in the runtime folder"),
    )
    .says(
        "The control socket, by which `hob status`, `hob reload` and `hob stop` reach \
                 this server; `hob servers` shows where it is. `\"off\"` opens none.",
    )
    .example("\"/run/hob/site.sock\""),
    SchemaKey::new("state", Path, Nothing("chosen by the program"))
        .says(
            "Folder for what hob keeps over restarts, such as a certificate that it made. It \
                 must be root's or that of the user who starts hob, and others must not be able to \
                 write to it or to move it away: otherwise it is not used.",
        )
        .example("\"/var/lib/hob\"")
        .aka(&["state_dir", "data_dir", "datadir"]),
    SchemaKey::new("drain", TIME_TO_HOUR, secs(30))
        .says(
            "How long running requests may finish when the server stops or is replaced; then \
                 they are cut.",
        )
        .example("\"1m\"")
        .aka(&["grace"]),
    SchemaKey::new("default_log", Text, Nothing("no access log"))
        .says("The access log of listeners that name none: the `name` of a `[[log]]`.")
        .example("\"main\""),
    SchemaKey::new("limits", ValueType::Table(&LIMITS), Nothing("")),
    SchemaKey::new("program", ValueType::Table(&PROGRAM), Nothing("")).aka(&["programs"]),
    SchemaKey::new("cache", OrWord("off", &CACHE_TABLE), Nothing("")),
    SchemaKey::new("names", OrFlag("server", &NAMES), Nothing(""))
        .aka(&["hostname_lookups", "reverse_dns"]),
    SchemaKey::new("countries", Path, Nothing("none"))
        .says(
            "File that says which addresses are of which country, in MaxMind's format: one of \
             countries or of cities, such as `GeoLite2-Country.mmdb`. `allow` and `deny` of \
             `access` and `country` of `when` go by it, programs are told the client's in \
             `GEOIP_COUNTRY_CODE`, and the `format` of an access log may have `{country}`. It is \
             held in memory, and read anew within a second when it has changed; one that is broken \
             leaves the one before. 512 MiB at most.",
        )
        .example("\"GeoLite2-Country.mmdb\"")
        .aka(&["geoip2", "maxmind", "mmdb"]),
    SchemaKey::new("acme", ValueType::Table(&ACME), Nothing("")).aka(&[
        "letsencrypt",
        "certificates",
        "certbot",
        "autocert",
    ]),
    SchemaKey::new("watch", ValueType::Table(&WATCH), Nothing("")),
    SchemaKey::new("admin", ValueType::Table(&ADMIN), Nothing("no admin pages"))
        .aka(&["dashboard", "ui"]),
    SchemaKey::new("metrics", ValueType::Table(&METRICS), Nothing(""))
        .aka(&["prometheus", "stats"]),
    SchemaKey::new("otlp", OrText("endpoint", &OTLP), Nothing("")).aka(&["otel", "tracing"]),
    SchemaKey::new("history", ValueType::Table(&HISTORY), Nothing("")),
    SchemaKey::new("activity", OrWord("off", &ACTIVITY_TABLE), Nothing("")),
    SchemaKey::new("auth", Tables(&AUTH), Nothing("")).aka(&["accounts"]),
    SchemaKey::new("ban", Tables(&BAN), Nothing("")).aka(&["bans"]),
    SchemaKey::new("overload", OrText("queue", &OVERLOAD), Nothing("")),
    SchemaKey::new("log", Tables(&LOG), Nothing("")).aka(&["logs"]),
    SchemaKey::new("listen", Tables(&LISTEN), Nothing("`127.0.0.1:8080`")).aka(&["listener"]),
    SchemaKey::new("offer", Tables(&OFFER), Nothing("")).aka(&["offers"]),
];

/// `[limits]`
pub static LIMITS: SchemaTable = SchemaTable {
    name: "limits",
    header: "`[limits]`",
    text: "Limits of connections and requests. Each has a counter of the same name in `hob \
           status`.",
    base: None,
    keys: &[
        SchemaKey::new("target", Size { min: 64, max: MIB }, Preset::Size(8 * KIB))
            .says(
                "Longest request target (path and query); a longer one is answered with 414. Not \
                 above `head`.",
            )
            .example("\"16KiB\""),
        SchemaKey::new("head", Size { min: KIB, max: MIB }, Preset::Size(64 * KIB))
            .says(
                "Longest request head (request line and header fields); a longer one is answered \
                 with 431.",
            )
            .example("\"32KiB\""),
        SchemaKey::new(
            "headers",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(100),
        )
        .says("Most header fields of a request; more are answered with 431.")
        .example("200"),
        SchemaKey::new("head_time", TIME_SOME, secs(10))
            .says(
                "Time for a whole request head, from its first byte; then 408. A new connection \
                 that sends nothing for as long is closed without an answer.",
            )
            .example("\"5s\""),
        SchemaKey::new("body_progress", TIME_SOME, secs(30))
            .says(
                "Longest pause between two pieces of a request body; then 408, or the end of the \
                 connection where the answer has begun.",
            )
            .example("\"1m\""),
        SchemaKey::new("write_progress", TIME_SOME, secs(60))
            .says(
                "Longest time in which a client takes no byte of an answer; then the connection \
                 is closed.",
            )
            .example("\"30s\""),
        SchemaKey::new("idle", TIME_SOME, secs(75))
            .says("How long a connection may stay idle between two requests.")
            .example("\"15s\""),
        SchemaKey::new("linger", TIME_TO_MINUTE, secs(5))
            .says(
                "How long, at most, input is read and dropped before a connection with unread \
                 input is closed, so that the client can read the answer. `\"0s\"` closes at once.",
            )
            .example("\"2s\""),
        SchemaKey::new("handshake_time", TIME_SOME, secs(10))
            .says("Time for a whole TLS handshake, from the connection's begin; then it is closed.")
            .example("\"5s\"")
            .aka(&["ssl_handshake_timeout", "handshake_timeout"]),
        SchemaKey::new(
            "handshake_bytes",
            Size {
                min: 4 * KIB,
                max: MIB,
            },
            Preset::Size(64 * KIB),
        )
        .says("Bytes a client may send before its TLS handshake is done; then it is closed.")
        .example("\"32KiB\""),
        SchemaKey::new(
            "handshakes",
            Integer {
                min: 1,
                max: 10_000_000,
            },
            Preset::Integer(4096),
        )
        .says(
            "TLS handshakes under way at a time; a client beyond them is told so with an alert and \
             closed.",
        )
        .example("500"),
        SchemaKey::new("proxy_protocol_time", TIME_SOME, secs(5))
            .says(
                "Time for a whole header of the PROXY protocol, from the connection's begin; then \
                 it is closed.",
            )
            .example("\"1s\""),
        SchemaKey::new(
            "proxy_protocol_bytes",
            Size {
                min: 256,
                max: 64 * KIB,
            },
            Preset::Size(2 * KIB),
        )
        .says(
            "Longest such header of version 2; then the connection is closed. One of version 1 has \
             107 bytes at most.",
        )
        .example("\"4KiB\""),
        SchemaKey::new(
            "h3_unread",
            Size {
                min: MIB,
                max: 1024 * 1024 * MIB,
            },
            Preset::Size(128 * MIB),
        )
        .says(
            "Bytes of requests over HTTP/3 that have come and nobody reads, or can read while the \
             client holds others back, of all connections. Requests of a connection that has more \
             than are left for all others get 503, or are reset before their head is whole.",
        )
        .example("\"32MiB\""),
        SchemaKey::new(
            "connections",
            Integer {
                min: 1,
                max: 10_000_000,
            },
            Preset::Integer(10_000),
        )
        .says(
            "Open connections of the server. Those of the control socket do not count. They never \
             have more than half of the open files that the hard limit allows; `hob status` says \
             so where that is fewer. Whoever comes is let in while connections have fewer than \
             those, and connections to servers elsewhere count, resting ones too: a connection \
             that is proxied has two files, and four while a long body of it goes by a pipe.",
        )
        .example("50000")
        .aka(&["max_connections"]),
        SchemaKey::new(
            "connections_per_client",
            Integer {
                min: 0,
                max: 10_000_000,
            },
            Preset::Integer(0),
        )
        .says("Open connections of one client address; 0 is no limit.")
        .example("64"),
        SchemaKey::new(
            "bans",
            Integer {
                min: 1,
                max: 1_000_000,
            },
            Preset::Integer(10_000),
        )
        .says("Clients banned at a time; one more ends the ban that would end first.")
        .example("100000"),
        SchemaKey::new(
            "body",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Preset::Size(MIB),
        )
        .says(
            "Largest request body, unless the route says otherwise; a larger one is answered \
                 with 413.",
        )
        .example("\"16MiB\"")
        .aka(&["max_body"]),
        SchemaKey::new(
            "workers",
            Integer {
                min: 1,
                max: 100_000,
            },
            Preset::Integer(512),
        )
        .says(
            "Workers of all resident programs together. Near it idle ones of other programs \
                 make room; at it, a request that needs one more is answered with 503.",
        )
        .example("64"),
        SchemaKey::new(
            "roots",
            Integer {
                min: 1,
                max: 100_000,
            },
            Preset::Integer(1000),
        )
        .says(
            "Of each path with captures, such as `/home/{user}/public_html`, so many folders (or \
             files of `htpasswd`) are kept open; the one that was not asked for the longest is \
             closed for one more. Each takes a descriptor.",
        )
        .example("5000"),
    ],
};

const CACHE_BYTES: ValueType = Size {
    min: 0,
    max: 1 << 50,
};

/// `[cache]`
pub static CACHE: SchemaTable = SchemaTable {
    name: "cache",
    header: "`[cache]`",
    text: "The cache of files: contents of small ones, descriptors and facts of larger ones. \
           `cache = \"off\"` turns it off.",
    base: None,
    keys: &[
        SchemaKey::new("bytes", OrWord("auto", &CACHE_BYTES), Preset::Text("auto"))
        .says(
            "Memory for contents and what is known of files; 0 turns the cache off. `\"auto\"` is \
             an eighth of the memory that is free when the server starts, or of its control \
             group's limit where that is less, from 64MiB to 1GiB.",
        )
        .example("\"256MiB\"")
        .aka(&["size", "memory"]),
        SchemaKey::new(
            "max_file",
            Size {
                min: 0,
                max: 16 * MIB,
            },
            Preset::Size(32 * KIB),
        )
        .says(
            "Largest file whose content is kept; larger ones are sent from the kernel's own \
                 cache.",
        )
        .example("\"128KiB\""),
        SchemaKey::new(
            "max_file_tls",
            Size {
                min: 0,
                max: 16 * MIB,
            },
            Preset::Size(256 * KIB),
        )
        .says(
            "Largest file whose content is kept too once it is asked for again and again over \
                 TLS, HTTP/2 or HTTP/3, where the kernel cannot send it by itself.",
        )
        .example("\"1MiB\""),
        SchemaKey::new("recheck", TIME_TO_HOUR, secs(1))
            .says(
                "How old the knowledge of a file may get before the file is looked at again. \
                 `\"0s\"` looks at every request; a changed file is seen at the latest after this \
                 time. Where the kernel tells of changes, files are looked at again when it does, \
                 and after sixteen times this time.",
            )
            .example("\"10s\""),
    ],
};

/// `[[listen]]`
pub static LISTEN: SchemaTable = SchemaTable {
    name: "listen",
    header: "`[[listen]]`",
    text: "An address to listen on. Without any, hob listens on `127.0.0.1:8080`, which only this \
           machine can reach.",
    base: None,
    keys: &[
        SchemaKey::new("address", Text, Required)
            .says(
                "`\"127.0.0.1:8080\"`, `\"[::1]:8080\"`; `\"localhost:8080\"` is both, as browsers \
                 try both for that name (only the first on a machine without `::1`); `\":8080\"` \
                 is every IPv6 and IPv4 address of the machine; `\"unix:hob.sock\"` a Unix socket; `\"systemd:NAME\"` a \
                 socket handed down by systemd under that name. Port 0 takes a free one.",
            )
            .example("\":80\"")
            .aka(&["host", "addr"]),
        SchemaKey::new(
            "backlog",
            Integer {
                min: 1,
                max: 1_000_000,
            },
            Preset::Integer(1024),
        )
        .says(
            "Connections the kernel holds until they are accepted. The kernel clamps it to \
                 `net.core.somaxconn`.",
        )
        .example("4096"),
        SchemaKey::new(
            "send_buffer",
            Size {
                min: 4 * KIB,
                max: GIB,
            },
            Nothing("chosen by the kernel"),
        )
        .says("Send buffer of each connection (SO_SNDBUF).")
        .example("\"256KiB\""),
        SchemaKey::new(
            "receive_buffer",
            Size {
                min: 4 * KIB,
                max: GIB,
            },
            Nothing("chosen by the kernel"),
        )
        .says("Receive buffer of each connection (SO_RCVBUF).")
        .example("\"256KiB\""),
        SchemaKey::new(
            "notsent_lowat",
            Size { min: KIB, max: GIB },
            Nothing("chosen by the kernel"),
        )
        .says("Bytes not yet sent above which a connection takes no more (TCP_NOTSENT_LOWAT).")
        .example("\"128KiB\""),
        SchemaKey::new("user_timeout", TIME_SOME, Nothing("chosen by the kernel"))
            .says(
                "How long sent bytes may stay unacknowledged before the connection is given up \
                 (TCP_USER_TIMEOUT).",
            )
            .example("\"30s\""),
        SchemaKey::new("defer_accept", TIME_TO_MINUTE, secs(1))
            .says(
                "How long the kernel keeps a new connection to itself while it has sent nothing \
                 (TCP_DEFER_ACCEPT, in whole seconds): a request is then answered without waiting \
                 twice. Until then the connection counts towards no limit. `\"0s\"` takes \
                 connections at once.",
            )
            .example("\"0s\"")
            .aka(&["deferred", "accept_filter"]),
        SchemaKey::new("v6only", Flag, Preset::Flag(false))
            .says("An IPv6 wildcard address takes no IPv4 connections (IPV6_V6ONLY).")
            .example("true")
            .aka(&["ipv6only"]),
        SchemaKey::new("trusted", Texts, Preset::Texts(&[]))
            .says(
                "Balancers and proxies in front of hob whose word on the client is believed: \
                 addresses, networks, and `unix` for whoever connects over a Unix socket. The last \
                 address in `client_from` that is none of theirs is the client in logs, for \
                 programs and for other servers, and whether it came over TLS is what they say. \
                 Other fields that tell of a client do not reach programs from this listener.",
            )
            .example("[\"10.0.0.0/8\", \"unix\"]"),
        SchemaKey::new("client_from", Text, Preset::Text("X-Forwarded-For"))
            .says(
                "The one field in which those who are trusted say it: `X-Forwarded-For` with \
                 `X-Forwarded-Proto`, `Forwarded`, or one of their own, such as \
                 `CF-Connecting-IP`.",
            )
            .example("\"Forwarded\""),
        SchemaKey::new("proxy_protocol", Flag, Preset::Flag(false))
            .says(
                "Each connection begins with a header of the PROXY protocol, version 1 or 2, before \
                 TLS and HTTP, and is the one of the client that it names; one without is closed. \
                 With `trusted` only those there may connect, and fields are believed only where \
                 `client_from` is written. HTTP/3, which has no such header, is not spoken.",
            )
            .example("true"),
        SchemaKey::new("tls", OrFlag("certificate", &LISTEN_TLS), Nothing("")),
        SchemaKey::new("offers", Path, Nothing("none"))
            .says(
                "Hobs of other machines ask here for the programs of `[[offer]]`, and nothing else \
                 is answered. This is the file with the certificates of those who may have signed \
                 theirs, in PEM: without a certificate of a client there is no handshake. Needs \
                 `tls` with a certificate; HTTP/3 is not spoken. Read at the start and at each \
                 reload, from which on it holds for connections that stand, too. Heads may have \
                 8 fields and 64 KiB more than `limits` says, for what the other hob adds.",
            )
            .example("\"/etc/hob/hobs-ca.pem\""),
        SchemaKey::new("log", Text, Inherited("what `default_log` says"))
            .says(
                "Access log of connections from here: the `name` of a `[[log]]`, or `\"off\"`. \
                 Sites and routes may choose otherwise.",
            )
            .example("\"main\""),
    ],
};

/// `[[offer]]`
pub static OFFER: SchemaTable = SchemaTable {
    name: "offer",
    header: "`[[offer]]`",
    text: "A program of this machine that hobs of other machines may ask for, by `remote` of their \
           routes. They do so at a listener with `offers`.",
    base: None,
    keys: &[
        SchemaKey::new("program", Text, Required)
            .says(
                "The `name` of the route that runs it. What else that route and its site say holds \
                 for requests of their own: of others, the machine that asks has its rules.",
            )
            .example("\"reports\"")
            .aka(&["name", "route"]),
        SchemaKey::new("to", TextOrTexts, Required)
            .says(
                "Who may ask: the common name or a host of a certificate that one of `offers` has \
                 signed, or `sha256:` and the fingerprint of a certificate. What they say of \
                 their clients is believed.",
            )
            .example("[\"front1.example.com\"]")
            .aka(&["peers", "clients"]),
    ],
};

/// `[[site.route]]`, with all its keys; `text` says which handlers there are.
pub const fn route(text: &'static str, keys: &'static [SchemaKey]) -> SchemaTable {
    SchemaTable {
        name: "route",
        header: "`[[site.route]]`",
        text,
        base: Some(&ANSWER),
        keys,
    }
}

/// The key of a route that says for which paths it is; it stands before those of handlers.
pub const ROUTE_PATH: &[SchemaKey] = &[SchemaKey::new("path", Text, Required)
    .says(
        "`\"/about\"` is that path alone; `\"/docs/*\"` everything below `/docs/`; \
                 `\"*.php\"` and `\"/old/*.php\"` paths with that ending; \
                 `\"/user/{name}/posts\"` captures one segment, `\"/j/{id}.html\"` a part of one, \
                 `\"/files/{rest*}\"` the rest. `\"~ ^/(?<lang>de|en)/\"` is a regular expression \
                 that is found in the path, `\"~* \\.png$\"` one for both cases of letters. \
                 Written decoded: a space is a space, not `%20`; only an encoded slash, which is \
                 part of a name and separates nothing, is `%2F`.",
    )
    .example("\"/docs/*\"")
    .aka(&["pattern", "url", "uri"])];

/// Keys of a route behind those of handlers.
pub const ROUTE_KEYS: &[SchemaKey] = &[when::KEY,shared::KEY,        SchemaKey::new("rewrite", Text, Nothing("none"))
            .says(
                "The path the handler sees instead of the request's; captures of `path` are put \
                 in. They come from the path in its normal form: slashes in a row are one. Behind \
                 a `?` stands the query that programs see; without one they see the request's.",
            )
            .example("\"/pages/{name}.html\""),
        SchemaKey::new(
            "body",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Inherited("what `limits.body` says"),
        )
        .says("Largest request body here; a larger one is answered with 413.")
        .example("\"100MiB\"")
        .aka(&["max_body"]),
        SchemaKey::new("strict", Flag, Preset::Flag(false))
            .says(
                "Where only what is below a folder has a route, as `path = \"/notes/*\"` has, \
                 `/notes` is sent to `/notes/`, with 301 (GET and HEAD) or 308, unless another \
                 route or a file answers it. `true` leaves it 404.",
            )
            .example("true")
            .aka(&[
                "strict_slashes",
                "trailing_slash",
                "append_slash",
                "redirect_slash",
            ]),
        SchemaKey::new("internal", Flag, Preset::Flag(false))
            .says(
                "The route answers internal redirects of programs only (`Script-Control`, \
                 `X-Accel-Redirect`, a CGI program's local redirect); from outside it is 404.",
            )
            .example("true"),
        SchemaKey::new("name", Text, Nothing("none"))
            .says("A name for the route's program, by which an `[[offer]]` means it.")
            .example("\"reports\""),
        SchemaKey::new("log", Text, Inherited("the site's"))
            .says("Access log of this route: the `name` of a `[[log]]`, or `\"off\"`.")
            .example("\"off\""),
        SchemaKey::new(
            "half_close",
            Word(&["cancel", "serve"]),
            Preset::Text("cancel"),
        )
        .says(
            "What it means when a client closes its sending side while a program or a page makes \
                 the answer, and its connection would have been kept: `\"cancel\"`, it has left; \
                 `\"serve\"`, it still reads. Who sent its whole request and said that it is the last \
                 (HTTP/1.0, `Connection: close`) is answered either way, until its connection breaks.",
        )
        .example("\"serve\""),
];

/// A default, in seconds.
pub const fn secs(count: u64) -> Preset {
    Preset::Time(Duration::from_secs(count))
}

/// Bytes of a kibibyte.
pub const KIB: u64 = 1 << 10;
/// Of a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Of a gibibyte.
pub const GIB: u64 = 1 << 30;
/// Of a tebibyte.
pub const TIB: u64 = 1 << 40;
const SIZE_ANY: ValueType = Size { min: MIB, max: TIB };
const TIME_OF_CPU: ValueType = Time {
    min: Duration::from_secs(1),
    max: Duration::from_secs(86_400),
};
/// From a millisecond to a day.
pub const TIME_SOME: ValueType = Time {
    min: Duration::from_millis(1),
    max: Duration::from_secs(86_400),
};
/// Up to a day.
pub const TIME_OR_NONE: ValueType = Time {
    min: Duration::ZERO,
    max: Duration::from_secs(86_400),
};
/// Up to a minute.
pub const TIME_TO_MINUTE: ValueType = Time {
    min: Duration::ZERO,
    max: Duration::from_secs(60),
};
/// Up to an hour.
pub const TIME_TO_HOUR: ValueType = Time {
    min: Duration::ZERO,
    max: Duration::from_secs(3600),
};
