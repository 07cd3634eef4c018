//! Keys about what is told of requests: to their clients, and to those who watch.

use super::{Flag, Preset, SchemaKey, SchemaTable, Texts};

/// `server_timing` of `[[site]]` and `[[site.route]]`
pub(super) const SERVER_TIMING: SchemaKey =
    SchemaKey::new("server_timing", Flag, Preset::Flag(false))
        .says(
            "Answers of routes say in a `Server-Timing` field how long they took so far, in \
         milliseconds: `queue`, `start` (of a program), `program`, `disk` and `total`. Browsers \
         show it among the timings of a request. Every visitor can read it.",
        )
        .example("true")
        .aka(&["timing"]);

/// `[watch]`
pub static WATCH: SchemaTable = SchemaTable {
    name: "watch",
    header: "`[watch]`",
    text: "What `hob watch` and the admin pages do not show of requests unless they are asked for \
           secrets. Values of `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie` \
           are always among it.",
    base: None,
    keys: &[
        SchemaKey::new(
            "hidden_query",
            Texts,
            Preset::Texts(&["token", "password", "passwd", "key", "secret", "session"]),
        )
        .says(
            "Keys of a query whose values are hidden, from watchers, in the history and of requests \
             under way: those that end with one of these words, such as `access_token`. Upper and \
             lower case are the same.",
        )
        .example("[\"token\", \"pin\"]"),
        SchemaKey::new("hidden_fields", Texts, Preset::Texts(&[]))
            .says("More header fields whose values are hidden.")
            .example("[\"X-Api-Key\"]"),
    ],
};
