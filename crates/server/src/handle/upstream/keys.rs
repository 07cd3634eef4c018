//! Keys that those who ask upstreams have in common.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{
    Flag, Integer, Path, Size, Table, Tables, Text, TextOrTexts, Word, Words,
};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, ValueType, joined};
use crate::handle::config::schema::{KIB, MIB, TIME_OR_NONE, TIME_SOME, secs};
use crate::handle::script::keys::QUEUE_KEYS;

/// Words of `balance`.
pub(crate) const BALANCES: &[&str] = &["latency", "requests", "round_robin", "hash"];
/// Words of `proxy_protocol`.
pub(crate) const PROXY_VERSIONS: &[&str] = &["v1", "v2"];
/// Words of `retry.on`.
pub(crate) const RETRIED: &[&str] = &["connect", "closed", "first_byte", "502", "503", "504"];

const BALANCE: SchemaKey = SchemaKey::new("balance", Word(BALANCES), Preset::Text("latency"))
    .says(
        "Which member gets a request. `latency`: the better of two that chance picks, by \
             requests under way and how long answers took lately, so that a slow one gets little; \
             `requests`: who has the fewest under way; `round_robin`: each in turn; `hash`: the \
             same one for what `hash` names. `latency` and `requests` divide by `weight`.",
    )
    .example("\"round_robin\"")
    .aka(&["lb_policy", "policy", "strategy"]);
const HASH: SchemaKey = SchemaKey::new("hash", Text, Preset::Text("path"))
    .says(
        "With `balance = \"hash\"`, what requests have in common that come to one member: \
             `path`, `client` (its address), `field:NAME` or `cookie:NAME`; requests without that \
             are given out as with `latency`. Who comes or goes moves its own share alone, and \
             nobody gets more than 1.25 of its share of the requests under way.",
    )
    .example("\"client\"")
    .aka(&["hash_key"]);
const STICKY: SchemaKey = SchemaKey::new("sticky", Table(&STICKY_TABLE), Nothing(""))
    .aka(&["sticky_session", "affinity"]);
const HEALTH: SchemaKey = SchemaKey::new("health", Table(&HEALTH_TABLE), Nothing(""))
    .aka(&["health_check", "active_health"]);
const SLOW_START: SchemaKey = SchemaKey::new("slow_start", TIME_OR_NONE, secs(0))
    .says(
        "For so long a member that was left out, or was added by a reload, gets fewer \
             requests than its share: a tenth at first, then more and more.",
    )
    .example("\"30s\"")
    .aka(&["slowstart"]);
const LAST_RESORT: SchemaKey = SchemaKey::new("last_resort", Flag, Preset::Flag(false))
    .says(
        "Where all members are left out, one of them is asked nevertheless; without it the \
             answer is 503 at once.",
    )
    .example("true")
    .aka(&["fail_open"]);
const PROXY_PROTOCOL: SchemaKey =
    SchemaKey::new("proxy_protocol", Word(PROXY_VERSIONS), Nothing("none"))
        .says(
            "Each connection begins with a header of the PROXY protocol in this version, which \
             names the client; `v2` says, too, whether that came over TLS. A connection is then \
             one client's, and serves one request: `keep` is 0.",
        )
        .example("\"v2\"");
const RESOLVER: SchemaKey = SchemaKey::new("resolver", TextOrTexts, Nothing("the machine's"))
    .says(
        "Name servers that are asked for the names of members: an address, with or without a port \
         (53), or a list of which one is asked after the other. Without it, names are what \
         `/etc/hosts` and the name servers of `/etc/resolv.conf` say, else what the system finds \
         by other means.",
    )
    .example("\"127.0.0.1:8600\"")
    .aka(&["resolvers", "name_servers", "dns"]);
/// Keys for who is asked, and who is left out, and how members hear of clients.
pub(in crate::handle) const CHOICE_KEYS: &[SchemaKey] = &[
    BALANCE,
    HASH,
    STICKY,
    FAIL,
    HEALTH,
    SLOW_START,
    LAST_RESORT,
    PROXY_PROTOCOL,
    RESOLVER,
];

pub(in crate::handle) const SERVICE_MEMBERS: SchemaKey = SchemaKey::new(
    "service_members",
    Integer { min: 1, max: 1000 },
    Preset::Integer(64),
)
.says(
    "Servers of one service (`srv:`) that are members at most. Where more are named, those of the \
     lowest priorities are, and of the same priority those of the greatest weights.",
)
.example("16")
.aka(&["max_servers"]);

/// The key of the top level that is a list of them.
pub(in crate::handle) const UPSTREAMS: SchemaKey =
    SchemaKey::new("upstream", Tables(&UPSTREAM), Nothing("")).aka(&["upstreams"]);

/// `[[upstream]]`
pub(crate) static UPSTREAM: SchemaTable = SchemaTable {
    name: "upstream",
    header: "`[[upstream]]`",
    text: "Servers that answer for several routes, or of which more is to be said than where they \
           are. Routes ask them by `to = \"upstream:NAME\"`, all over the same connections and \
           with the same knowledge of who answers and how fast.",
    base: None,
    keys: &joined::<{ KEEP_KEYS.len() + CHOICE_KEYS.len() + 8 }>(&[
        &[
            SchemaKey::new("name", Text, Preset::Required)
                .says("What routes and `hob upstream` call it.")
                .example("\"app\""),
            SchemaKey::new("to", TextOrTexts, Nothing("those of `member`"))
                .says("Its members, written as in `to` of the handler that asks them.")
                .example("[\"http://10.0.0.1:3000\", \"http://10.0.0.2:3000\"]")
                .aka(&["server", "servers"]),
            SchemaKey::new("member", Tables(&MEMBER), Nothing("those of `to`")).aka(&["members"]),
            SchemaKey::new(
                "connections",
                CONNECTIONS,
                Nothing("what the handler that asks has"),
            )
            .says("As `connections` of a handler, for all routes together.")
            .example("64"),
            SchemaKey::new(
                "keep",
                Integer {
                    min: 0,
                    max: 10_000,
                },
                Nothing("what the handler that asks has"),
            )
            .says("As `keep` of a handler, for all routes together.")
            .example("16"),
        ],
        KEEP_KEYS,
        &[QUEUE, TLS, SERVICE_MEMBERS],
        CHOICE_KEYS,
    ]),
};

/// `[[upstream.member]]`
static MEMBER: SchemaTable = SchemaTable {
    name: "member",
    header: "`[[upstream.member]]`",
    text: "One member of an upstream.",
    base: None,
    keys: &[
        SchemaKey::new("to", Text, Preset::Required)
            .says("Where it listens.")
            .example("\"http://10.0.0.3:3000\""),
        SchemaKey::new("weight", Integer { min: 1, max: 100 }, Preset::Integer(1))
            .says("Its share of the requests, beside those of the others.")
            .example("3"),
        SchemaKey::new("backup", Flag, Preset::Flag(false))
            .says("It is asked only where all that are no backup are left out.")
            .example("true"),
        SchemaKey::new(
            "connections",
            Integer {
                min: 0,
                max: 100_000,
            },
            Preset::Integer(0),
        )
        .says(
            "Requests that it has at once; where each member has as many as it may, others wait \
             as long as `queue.wait` says. 0 is no limit.",
        )
        .example("8")
        .aka(&["max_conns", "maxconn"]),
    ],
};

/// `sticky`
pub(crate) static STICKY_TABLE: SchemaTable = SchemaTable {
    name: "sticky",
    header: "`sticky` of an upstream",
    text: "A client stays with the member that answered it first, by a cookie of hob's own. Who \
           sends none, or one that hob did not make, is given out as `balance` says; a member that \
           drains keeps its clients.",
    base: None,
    keys: &[
        SchemaKey::new("cookie", Text, Preset::Text("hob_member"))
            .says("The cookie's name.")
            .example("\"node\"")
            .aka(&["name"]),
        SchemaKey::new(
            "secret",
            Text,
            Nothing("another one whenever the server starts"),
        )
        .says(
            "What cookies are signed with. With one of your own, clients stay with their \
                 member over restarts, and over several servers that have the same.",
        )
        .example("\"a text that nobody can guess\"")
        .aka(&["key"]),
    ],
};

/// `health`
pub(crate) static HEALTH_TABLE: SchemaTable = SchemaTable {
    name: "health",
    header: "`health` of an upstream",
    text: "Members are looked at from time to time, whether or not they have requests, each over \
           a connection of its own. Without it, a member is left out by what requests meet alone \
           (`fail`).",
    base: None,
    keys: &[
        SchemaKey::new("path", Text, Preset::Text(""))
            .says(
                "What is asked for by GET; of FastCGI the `SCRIPT_NAME`, such as `ping.path` of \
                 php-fpm, over SCGI and uwsgi the `PATH_INFO`. `\"\"`: a connection is enough.",
            )
            .example("\"/health\"")
            .aka(&["uri", "url"]),
        SchemaKey::new("every", TIME_SOME, secs(10))
            .says("So often.")
            .example("\"2s\"")
            .aka(&["interval"]),
        SchemaKey::new("timeout", TIME_SOME, secs(5))
            .says("How long it may take, from the connection to the end of the answer's head.")
            .example("\"1s\""),
        SchemaKey::new("expect", Text, Preset::Text("200-399"))
            .says("Status of a member that is well, or a range of them.")
            .example("\"200\"")
            .aka(&["status", "match"]),
        SchemaKey::new("fall", Integer { min: 1, max: 100 }, Preset::Integer(2))
            .says("So many in a row that fail leave the member out, a lone one too.")
            .example("3")
            .aka(&["fails"]),
        SchemaKey::new("rise", Integer { min: 1, max: 100 }, Preset::Integer(1))
            .says("So many in a row that do not bring it back.")
            .example("2")
            .aka(&["passes"]),
    ],
};

/// Keys beside `keep`: how long a connection is kept.
pub(in crate::handle) const KEEP_KEYS: &[SchemaKey] = &[
    SchemaKey::new(
        "keep_requests",
        Integer {
            min: 0,
            max: 10_000_000,
        },
        Preset::Integer(0),
    )
    .says("Requests after which a connection that was kept is closed; 0 is any number.")
    .example("1000")
    .aka(&["keepalive_requests", "max_requests", "max_reuse"]),
    SchemaKey::new("keep_time", TIME_OR_NONE, secs(3600))
        .says(
            "How old a connection that is kept may become; then it is closed once its request is \
             over. `\"0s\"` is any age.",
        )
        .example("\"10m\"")
        .aka(&["keepalive_time", "keep_age"]),
    SchemaKey::new("keep_idle", TIME_SOME, secs(60))
        .says(
            "How long a connection stays open without a request. Less than the other side leaves \
             it open spares requests that come to a connection which it has just closed.",
        )
        .example("\"4s\"")
        .aka(&["keepalive_timeout", "keepalive", "pool_purge_delay"]),
];

const CONNECTIONS: ValueType = Integer {
    min: 1,
    max: 100_000,
};

/// `connections`, so many where nothing is said.
pub(in crate::handle) const fn connections(preset: i64) -> SchemaKey {
    SchemaKey::new(
        "connections",
        CONNECTIONS,
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
const FAIL: SchemaKey =
    SchemaKey::new("fail", Table(&FAIL_TABLE), Nothing("")).aka(&["passive_health"]);
pub(in crate::handle) const HEAD: SchemaKey =
    SchemaKey::new("head", Size { min: KIB, max: MIB }, Preset::Size(64 * KIB))
        .says("Longest head of an answer; a longer one is a 502.")
        .example("\"16KiB\"")
        .aka(&["buffer_size"]);
pub(in crate::handle) const RETRY: SchemaKey =
    SchemaKey::new("retry", Table(&RETRY_TABLE), Nothing("")).aka(&["retries", "next_upstream"]);

pub(in crate::handle) const TLS: SchemaKey =
    SchemaKey::new("tls", Table(&TLS_TABLE), Nothing("")).aka(&["transport"]);

/// `tls`
pub(crate) static TLS_TABLE: SchemaTable = SchemaTable {
    name: "tls",
    header: "`tls` of an upstream",
    text: "TLS with members whose address begins with `https://`, of programs with `tls://`: their \
           certificates are checked, and sessions are resumed.",
    base: None,
    keys: &[
        SchemaKey::new("ca", Path, Nothing("the system's authorities"))
            .says(
                "File with certificates in PEM that are believed instead of those of the system's \
                 authorities: of who has signed the members', or the members' own. Read at the \
                 start and at each reload.",
            )
            .example("\"/etc/hob/internal-ca.pem\"")
            .aka(&["ca_file", "trusted_certificate", "tls_trust_pool", "root"]),
        SchemaKey::new("name", Text, Nothing("the host in `to`"))
            .says("Whom their certificates must be for; it is sent as the name of the host (SNI), too.")
            .example("\"app.example.com\"")
            .aka(&["sni", "tls_server_name", "host"]),
        SchemaKey::new("certificate", Path, Nothing("none"))
            .says(
                "File with a certificate of ours for members that want one, and those between it \
                 and its root, in PEM. Changed files are taken over by themselves.",
            )
            .example("\"/etc/hob/client.pem\"")
            .aka(&["cert", "certificate_file", "tls_client_auth"]),
        SchemaKey::new("key", Path, Nothing("the file of `certificate`"))
            .says("File with its private key, in PEM. The account that starts hob reads it.")
            .example("\"/etc/hob/client.key\"")
            .aka(&["key_file", "private_key"]),
        SchemaKey::new("verify", Flag, Preset::Flag(true))
            .says(
                "Whether their certificates are checked. With `false` whoever stands in between \
                 reads and changes everything unnoticed.",
            )
            .example("false")
            .aka(&["insecure", "tls_insecure_skip_verify", "ssl_verify"]),
    ],
};

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
