//! Keys of visits, wherever they are kept.

use std::time::Duration;

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{Integer, Size, Text, Time, Word};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, ValueType};
use crate::handle::config::schema::{KIB, MIB, TIME_TO_MINUTE, secs};

const HOUR: u64 = 3600;

/// How long a visit may wait, or be.
const TIME_OF_VISIT: ValueType = Time {
    min: Duration::from_secs(1),
    max: Duration::from_secs(30 * 24 * HOUR),
};

/// Where handles are, and how long visits last.
pub(crate) const VISIT_KEYS: &[SchemaKey] = &[
    SchemaKey::new(
        "handle",
        Word(&["path", "cookie", "both"]),
        Preset::Text("path"),
    )
    .says(
        "Where a visitor's handle is: in the path, as the first segment behind the route's own \
         (`/shop/HANDLE/cart`), in a cookie that hob sets, or in both; two that differ are \
         refused. A cookie goes over TLS alone.",
    )
    .example("\"cookie\"")
    .aka(&["carriers", "transport"]),
    SchemaKey::new("cookie", Text, Nothing("made of the route's path"))
        .says("Name of that cookie, behind `__Host-`.")
        .example("\"shop\""),
    SchemaKey::new("stale", Text, Nothing("410"))
        .says(
            "Where visitors are sent whose visit is over (303): a path. It should be of another \
             route, or without a handle.",
        )
        .example("\"/shop/\""),
    SchemaKey::new("wait", TIME_OF_VISIT, secs(300))
        .says(
            "How long a visitor's next request is waited for, where the program or the page does \
             not say it; then the visit is over.",
        )
        .example("\"10m\"")
        .aka(&["idle_timeout", "idle", "expiry"]),
    SchemaKey::new("wait_max", TIME_OF_VISIT, secs(1800))
        .says("The longest that a program or a page may have that.")
        .example("\"1h\""),
    SchemaKey::new("life", TIME_OF_VISIT, secs(12 * HOUR))
        .says("How old a visit may be; then it ends as soon as it has no request.")
        .example("\"1h\"")
        .aka(&["max_age", "lifetime"]),
    SchemaKey::new("overlap", TIME_TO_MINUTE, secs(5))
        .says(
            "How long the handle before is good beside a new one, for requests that are on their \
             way.",
        )
        .example("\"0s\""),
    SchemaKey::new(
        "duplicate",
        Word(&["queue", "refuse", "repeat"]),
        Preset::Text("queue"),
    )
    .says(
        "What becomes of a request whose like the visitor has under way (the same method, path, \
         query and body, `Cookie` and `Authorization`): `\"queue\"` lets it wait its turn, \
         `\"refuse\"` answers 409, and with `\"repeat\"` it waits for the answer of the first and \
         gets the same, though the client of the first has left, as one does who clicks twice.",
    )
    .example("\"repeat\""),
    SchemaKey::new(
        "repeat",
        Size {
            min: 0,
            max: 16 * MIB,
        },
        Preset::Size(64 * KIB),
    )
    .says(
        "Longest answer that is held for `duplicate = \"repeat\"`, as long as it is under way; after \
         a longer one the same request again has its own turn. Bodies up to this, and 64 KiB at \
         most, are compared. What has a longer one, or none of known length, waits its turn, as \
         HEAD and tunnels do.",
    )
    .example("\"1MiB\""),
    SchemaKey::new("visits", ValueType::Table(&VISITS), Nothing("")),
];

/// `visits` of either.
pub(crate) static VISITS: SchemaTable = SchemaTable {
    name: "visits",
    header: "`visits` of `session`",
    text: "How many visits there may be. Those of a program are a process each, which \
           `limits.workers` counts too; those of a page hold a connection while something they \
           wrote is not committed.",
    base: None,
    keys: &[
        SchemaKey::new(
            "max",
            Integer {
                min: 1,
                max: 100_000,
            },
            Nothing("what memory has room for"),
        )
        .says(
            "Visits at once. For one more, the one goes that has waited longest; where none \
             waits, 503. Where it is not set, as many as half of the memory has room for that was \
             free at the start (of the machine, or in the control group's limit), by what 95 of \
             100 visits do not exceed: those of programs, never more than half of \
             `limits.workers`, are taken to take 16 MiB each until twenty are known, those of \
             pages, never more than 1024, 256 KiB. `hob explain` and `hob status --programs` show \
             the number.",
        )
        .example("1000"),
        SchemaKey::new(
            "per_client",
            Integer {
                min: 0,
                max: 100_000,
            },
            Preset::Integer(8),
        )
        .says(
            "Visits of one client at once, by its address, or by the first 64 bits of one of \
             IPv6; one more is answered with 429. 0 is any number.",
        )
        .example("2"),
        SchemaKey::new(
            "rate",
            Integer {
                min: 0,
                max: 100_000,
            },
            Preset::Integer(20),
        )
        .says("Visits that may begin each second; more are answered with 503. 0 is any number.")
        .example("5"),
        SchemaKey::new(
            "burst",
            Integer {
                min: 1,
                max: 100_000,
            },
            Preset::Integer(100),
        )
        .says("Visits that may begin at once before `rate` holds.")
        .example("20"),
    ],
};

/// How many of a visitor's requests wait.
pub(crate) const QUEUE_MAX: SchemaKey =
    SchemaKey::new("max", Integer { min: 0, max: 8 }, Preset::Integer(2))
        .says("Requests that wait; more are answered with 429.")
        .example("1")
        .aka(&["backlog", "size"]);
