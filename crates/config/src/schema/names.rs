//! Keys of names of clients.

use super::*;

/// `[names]`
pub static NAMES: SchemaTable = SchemaTable {
    name: "names",
    header: "`[names]`",
    text: "Names of clients, as the DNS has them: in the history, `hob top`, the admin pages, and \
           in access logs whose `format` has `{client_name}`. `names = true` turns them on, a \
           plain string is `server`. No request waits for one: addresses are looked up by a \
           thread of its own, once somebody shows them, and a name counts only when it leads back \
           to its address. Whoever runs the name server sees the addresses that are looked up.",
    base: None,
    keys: &[
        SchemaKey::new("server", Text, Nothing("those of `/etc/resolv.conf`"))
            .says("The name server that is asked: an address, with a port where it is not 53.")
            .example("\"127.0.0.1:5353\"")
            .aka(&["resolver", "nameserver", "dns"]),
        SchemaKey::new(
            "entries",
            Integer {
                min: 16,
                max: 1_000_000,
            },
            Preset::Integer(10_000),
        )
        .says("Addresses whose names are kept; beyond them the oldest go.")
        .example("50000")
        .aka(&["cache", "cache_size", "max_entries"]),
        SchemaKey::new(
            "queue",
            Integer {
                min: 1,
                max: 100_000,
            },
            Preset::Integer(1000),
        )
        .says(
            "Addresses that wait to be looked up; others stay without a name until there is room.",
        )
        .example("5000"),
        SchemaKey::new(
            "time",
            ValueType::Time {
                min: Duration::from_millis(100),
                max: Duration::from_secs(30),
            },
            secs(2),
        )
        .says(
            "How long an answer may take. Where none came, the address is asked for again after 30 \
             s at the earliest.",
        )
        .example("\"500ms\"")
        .aka(&["timeout"]),
        SchemaKey::new("keep", TIME_OF_NAMES, secs(3600))
            .says("How long a name is kept at most; the DNS may say less, but not below a minute.")
            .example("\"1d\"")
            .aka(&["ttl", "max_ttl"]),
        SchemaKey::new("keep_unknown", TIME_OF_NAMES, secs(600))
            .says("How long it is kept that an address has no name, or one that is not its own.")
            .example("\"1m\"")
            .aka(&["negative_ttl"]),
    ],
};

const TIME_OF_NAMES: ValueType = ValueType::Time {
    min: Duration::from_secs(1),
    max: Duration::from_secs(7 * 86_400),
};
