//! Keys of programs that hob runs and asks itself.

use crate::handle::config::key::Preset::{self, Integer};
use crate::handle::config::key::SchemaKey;
use crate::handle::config::key::ValueType::{self, TextOrTexts};
use crate::handle::config::schema::{TIME_TO_MINUTE, secs};

/// The key that says what runs.
pub(crate) const RUN: &str = "run";

/// The key of programs that count their requests.
pub(crate) const RECYCLE: &str = "recycle";

/// Keys beside `to` where hob can run the program itself; its table's base is `program`.
pub(in crate::handle) const RUN_KEYS: &[SchemaKey] = &[
    SchemaKey::new(RUN, TextOrTexts, Preset::Texts(&[]))
        .says(
            "A program that hob starts and keeps itself, instead of `to`: its name or path, or a \
             list with arguments. `\"php-fpm\"`, or else the newest `php-fpmX.Y` that is \
             installed, gets a configuration of hob's, with one master; `\"php-cgi\"` likewise \
             has one parent. Anything else is started `children` times and takes connections \
             from the socket that is its standard input (`FCGI_LISTENSOCK_FILENO`). It runs as \
             `[program]` says, where nothing else is said here, and works in `root`, or in the \
             folder of the config.",
        )
        .example("\"php-fpm\""),
    SchemaKey::new(
        "children",
        ValueType::Integer {
            min: 1,
            max: 10_000,
        },
        Integer(5),
    )
    .says(
        "Processes of what `run` names that answer requests, each one at a time. Unless they are \
         set, `connections` is as many, and `keep` too where connections stay open.",
    )
    .example("10"),
    GRACE,
];

const GRACE: SchemaKey = SchemaKey::new("grace", TIME_TO_MINUTE, secs(10))
    .says(
        "How long what `run` names may take to end once nobody asks it any more, after SIGTERM; \
         then it is killed with everything it started.",
    )
    .example("\"2s\"");

/// The same keys of servers of HTTP, which answer many requests at a time.
pub(in crate::handle) const RUN_SERVER_KEYS: &[SchemaKey] = &[
    SchemaKey::new(RUN, TextOrTexts, Preset::Texts(&[]))
        .says(
            "A server that hob starts and keeps itself, instead of `to`: its name or path, or a \
             list with arguments. It takes connections from the listening socket that is its \
             standard input (descriptor 0). It runs as `[program]` says, where nothing else is \
             said here, and works in the folder of the config.",
        )
        .example("[\"node\", \"app/server.js\"]"),
    SchemaKey::new(
        "children",
        ValueType::Integer {
            min: 1,
            max: 10_000,
        },
        Integer(1),
    )
    .says("Processes of what `run` names; each takes the next connection when it likes.")
    .example("4"),
    GRACE,
];

/// Where PHP may run.
pub(in crate::handle) const RECYCLE_KEY: SchemaKey = SchemaKey::new(
    RECYCLE,
    ValueType::Integer {
        min: 0,
        max: 10_000_000,
    },
    Integer(0),
)
.says("Requests after which a child of PHP that `run` started is replaced; 0 is never.")
.example("500");
