//! Keys of what is done when many ask at once.

use super::*;

/// Which addresses are one client, where clients are counted.
pub(super) const V6_PREFIX: SchemaKey = SchemaKey::new(
    "v6_prefix",
    Integer { min: 16, max: 128 },
    Preset::Integer(64),
)
.says("Addresses of IPv6 that begin with so many same bits are one client.")
.example("56");

/// How many clients have a time of their own, in `rate` and `bandwidth`.
pub(super) const CLIENTS: SchemaKey = SchemaKey::new(
    "keys",
    Integer {
        min: 100,
        max: 10_000_000,
    },
    Preset::Integer(100_000),
)
.says(
    "So many clients at a time are counted each for itself, with 32 to 64 bytes for each. Those \
     beyond share what one may with others whose addresses begin alike: 16 bits of IPv4, 32 of \
     IPv6.",
)
.example("1000000");

/// `concurrency` of a site or a route
pub static CONCURRENCY: SchemaTable = SchemaTable {
    name: "concurrency",
    header: "`concurrency` of a site or a route",
    text: "How many requests of one client are in service at once: from when it is let in until \
           its answer has left, a tunnel until it ends. More wait in the order they came, without \
           a thread; who waits in vain, or finds as many waiting as may, gets a 429 by a key of \
           the client's own and a 503 by `all`, `path` or `capture:NAME`, with `Retry-After`. A \
           site's is for all its routes together, but those that have their own. It is exact, \
           whichever thread answers, and goes on over a reload.",
    base: None,
    keys: &[
        SchemaKey::new(
            "requests",
            Integer {
                min: 1,
                max: 1_000_000,
            },
            Required,
        )
        .says("So many with the same key (`by`) are in service at once.")
        .example("8")
        .aka(&["max", "limit", "count", "connections"]),
        SchemaKey::new("by", Text, Preset::Text("client"))
            .says(
                "What requests have in common that are counted together, as in `rate`: `client`, \
                 `field:NAME`, `cookie:NAME`, `user`, `capture:NAME`, `path` or `all`. It is \
                 asked after signing in.",
            )
            .example("\"user\"")
            .aka(&["key", "zone"]),
        SchemaKey::new(
            "queue",
            Integer {
                min: 0,
                max: 100_000,
            },
            Preset::Integer(20),
        )
        .says("So many more with the same key wait. Who leaves while waiting frees the place.")
        .example("100")
        .aka(&["max_queue", "backlog", "waiting"]),
        SchemaKey::new(
            "wait",
            Time {
                min: Duration::from_millis(1),
                max: Duration::from_secs(3600),
            },
            secs(10),
        )
        .says("For so long at most.")
        .example("\"30s\"")
        .aka(&["timeout", "wait_max"]),
        V6_PREFIX,
        CLIENTS.says(
            "So many keys with requests in service are counted each for itself. Requests of others \
             share what one may with those whose addresses begin alike: 16 bits of IPv4, 32 of \
             IPv6.",
        ),
        SchemaKey::new("dry_run", Flag, Preset::Flag(false))
            .says(
                "Nobody waits or is refused: `concurrency_dry_run` counts who would, and the \
                 record of each says so.",
            )
            .example("true"),
    ],
};

/// `bandwidth` of a site or a route
pub static BANDWIDTH: SchemaTable = SchemaTable {
    name: "bandwidth",
    header: "`bandwidth` of a site or a route",
    text: "How fast answers leave, in bytes of their bodies a second, over every protocol; what \
           comes through tunnels is not held back. Several that are given hold together. A site's \
           is for all its routes together, but those that have their own. A plain string is \
           `answer`.",
    base: None,
    keys: &[
        SchemaKey::new("answer", Text, Nothing("as fast as it goes"))
            .says("Each answer for itself, from 1KiB/s on.")
            .example("\"1MiB/s\"")
            .aka(&["connection", "rate", "speed", "limit_rate"]),
        SchemaKey::new("client", Text, Nothing("as fast as it goes"))
            .says("All answers to one client, known by its address.")
            .example("\"4MiB/s\""),
        SchemaKey::new("all", Text, Nothing("as fast as it goes"))
            .says("All answers of the route together; of a site, of its routes.")
            .example("\"100MiB/s\"")
            .aka(&["route", "site", "total"]),
        SchemaKey::new("after", Size { min: 0, max: TIB }, Preset::Size(0))
            .says("So many bytes of an answer leave before `answer` holds.")
            .example("\"1MiB\"")
            .aka(&["burst", "limit_rate_after"]),
        V6_PREFIX,
        CLIENTS,
    ],
};

/// `[overload]`
pub static OVERLOAD: SchemaTable = SchemaTable {
    name: "overload",
    header: "`[overload]`",
    text: "Has some routes refused when there is too much to do, so that others are answered: \
           while of the requests that ask programs and other servers more than one in a hundred \
           waits longer than this in their queues, routes of `priority = \"low\"` are answered \
           with 503, and where that is not enough those of `\"normal\"`, too. It is looked at every \
           second, and ends step by step when waits stay below half of that. Waits at a \
           `concurrency` do not count. A plain string is `queue`.",
    base: None,
    keys: &[
        SchemaKey::new(
            "queue",
            Time {
                min: Duration::from_millis(1),
                max: Duration::from_secs(60),
            },
            Preset::Time(Duration::from_millis(200)),
        )
        .says("So long 99 of 100 requests may wait.")
        .example("\"1s\""),
        SchemaKey::new("retry_after", TIME_SOME, secs(5))
            .says("When to come again, as `Retry-After` tells who is refused.")
            .example("\"30s\""),
    ],
};

/// `priority` of a site or a route
pub(super) const PRIORITY: SchemaKey = SchemaKey::new(
    "priority",
    Word(&["low", "normal", "high"]),
    Preset::Text("normal"),
)
.says(
    "Whether it is refused before others when there is too much to do, as `[overload]` says: \
     `\"low\"` first, `\"high\"` never.",
)
.example("\"low\"");
