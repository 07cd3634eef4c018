//! Keys of bans: who is refused too often, and is not heard for a while.

use super::*;

/// `[[ban]]`
pub static BAN: SchemaTable = SchemaTable {
    name: "ban",
    header: "`[[ban]]`",
    text: "Bans clients that are refused too often: for a while they get a 403 with `Retry-After`, \
           before a route is looked for, anybody signs in or a body is read. What counts is said \
           by `status` and `refused`; what matches both counts once, and what a banned client gets \
           never does. It is exact, whichever thread answers. Bans go on over a reload; over an \
           upgrade and a restart, too, where the config names a `state`. They end early where \
           their rule is gone from the config, or says `dry_run`. `hob ban list` shows them, \
           `hob ban lift` ends one. A client is its address, behind a balancer the one that is \
           believed; who is in `trusted` of a listener is never banned there.",
    base: None,
    keys: &[
        SchemaKey::new("name", Text, Required)
            .says("What lists and records call the rule.")
            .example("\"guessers\""),
        SchemaKey::new("status", Texts, Preset::Texts(&[]))
            .says(
                "Answers that count, by their status: `\"404\"`, or `\"4xx\"` for a class, of \
                 errors alone. Think of pages with a broken picture before you count 404.",
            )
            .example("[\"401\", \"403\"]")
            .aka(&["statuses", "codes", "status_codes"]),
        SchemaKey::new(
            "refused",
            Words(&["access", "rate", "sign_in", "tls"]),
            Preset::Texts(&[]),
        )
        .says(
            "Refusals that count: by `access` and by `rate` of a route; `sign_in`, names, \
             passwords and signed links that are wrong, and tokens that nobody has signed so; \
             `tls`, handshakes that break the rules of TLS, take too long, have nothing in \
             common with the server or show no good certificate. A client that leaves within a \
             handshake, or does not trust the server, does not count.",
        )
        .example("[\"sign_in\", \"access\"]")
        .aka(&["events", "triggers"]),
        SchemaKey::new("count", Text, Required)
            .says(
                "How many in what time make a ban: `20/10m` bans with the 20th within ten minutes. \
                 1,000 at most.",
            )
            .example("\"20/10m\"")
            .aka(&["limit"]),
        SchemaKey::new(
            "time",
            Time {
                min: Duration::from_secs(1),
                max: Duration::from_secs(366 * 86_400),
            },
            secs(3600),
        )
        .says("How long a ban lasts. What the client tries meanwhile does not make it longer.")
        .example("\"1d\"")
        .aka(&["duration"]),
        SchemaKey::new("except", Texts, Preset::Texts(&[]))
            .says("Clients that the rule never bans, by address or network.")
            .example("[\"127.0.0.1\", \"10.0.0.0/8\"]")
            .aka(&["allow", "allowlist", "whitelist"]),
        SchemaKey::new("close", Flag, Preset::Flag(false))
            .says(
                "New connections of a banned client are closed as they come, before TLS, and \
                 nothing says why. Connections of who is in `trusted` of the listener stay; what \
                 they bring of a banned client gets the 403.",
            )
            .example("true"),
        crowding::V6_PREFIX,
        SchemaKey::new(
            "keys",
            Integer {
                min: 100,
                max: 1_000_000,
            },
            Preset::Integer(10_000),
        )
        .says(
            "So many clients at a time are counted each for itself. Where more come, what had been \
             counted of another is forgotten, of whom nothing had come for longest: \
             `limit_ban_keys` counts these.",
        )
        .example("100000"),
        SchemaKey::new("dry_run", Flag, Preset::Flag(false))
            .says(
                "Nobody is banned: `ban_dry_run` counts who would be, and the record of the request \
                 says so.",
            )
            .example("true"),
    ],
};
