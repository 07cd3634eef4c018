//! Keys of `resident`: programs that stay.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{Integer, Path, Size, Text, Texts, Word};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, ValueType, joined};
use crate::handle::config::schema::{
    KIB, PROGRAM, TIB, TIME_OR_NONE, TIME_SOME, TIME_TO_MINUTE, secs,
};
use crate::handle::script::keys::{DEV, PASS_AUTHORIZATION, QUEUE_KEYS};

/// `[site.route.resident]`
pub(crate) static RESIDENT: SchemaTable = SchemaTable {
    name: "resident",
    header: "`resident` of a route",
    text: "A program that stays: its processes are started once and answer many requests. One of \
           `run`, `wsgi`, `asgi`, `psgi`, `python`, `perl` and `scripts` says what runs. How it \
           runs is as in `[program]`, where nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &joined::<{ RUN_KEYS.len() + 5 }>(&[
        RUN_KEYS,
        &[
        SchemaKey::new("watch", Texts, Preset::Texts(&[]))
            .says(
                "Files whose change replaces the workers, for development, relative to `dir`: `*` \
                 is any part of a name, `**` any number of folders; without a slash, a name in \
                 every folder. Hidden folders, `__pycache__` and `node_modules` are passed over. \
                 The new worker is ready before the old ones go; when it cannot start, clients \
                 are told why until the next change.",
            )
            .example("[\"*.py\", \"templates/**\"]")
            .aka(&["auto_reload", "restart_on"]),
        SchemaKey::new("workers", ValueType::Table(&WORKERS), Nothing("")).aka(&["pool"]),
        SchemaKey::new("queue", ValueType::Table(&QUEUE), Nothing("")),
        SchemaKey::new("timeout", ValueType::Table(&TIMEOUT), Nothing("")).aka(&["timeouts"]),
        SchemaKey::new("grace", TIME_TO_MINUTE, secs(10))
            .says(
                "How long a worker whose client has left, or whose time is up, may take to finish \
                 before it is ended, and again between SIGTERM and SIGKILL. When the server stops \
                 or is replaced, a worker has this time to end by itself once nobody has a request \
                 any more (or `drain` is over).",
            )
            .example("\"2s\"")
            .aka(&["kill_timeout", "stop_timeout"]),
        ],
    ]),
};

/// What runs, and how it is reached.
pub(in crate::handle) const RUN_KEYS: &[SchemaKey] = &[
    SchemaKey::new("run", Texts, Preset::Texts(&[]))
        .says(
            "A program that speaks one of the carriers, and its arguments, started without a \
             shell.",
        )
        .example("[\"./stock\", \"--quiet\"]")
        .aka(&["command", "exec", "cmd", "program"]),
    SchemaKey::new("wsgi", Text, Nothing("none"))
        .says("A WSGI application: module, and after a colon its name there.")
        .example("\"api:application\"")
        .aka(&["application", "app"]),
    SchemaKey::new("asgi", Text, Nothing("none"))
        .says("An ASGI application: module, and after a colon its name there.")
        .example("\"api:app\""),
    SchemaKey::new("psgi", Path, Nothing("none"))
        .says("The file of a PSGI application.")
        .example("\"app.psgi\""),
    SchemaKey::new("python", Path, Nothing("none"))
        .says("A Python program with a loop over `hob.requests()`.")
        .example("\"stock.py\""),
    SchemaKey::new("perl", Path, Nothing("none"))
        .says("A Perl program with a loop: `while (my $request = Hob->accept)`.")
        .example("\"stock.pl\""),
    SchemaKey::new("scripts", Path, Nothing("none"))
        .says(
            "A folder of Perl CGI scripts that are compiled once and kept: what follows the \
             route's prefix names one, and what follows that is its `PATH_INFO`.",
        )
        .example("\"cgi-bin\""),
    SchemaKey::new(
        "interpreter",
        Text,
        Nothing("`python3` or `perl`, as the program needs"),
    )
    .says("The interpreter of a program that is not started with `run`.")
    .example("\"venv/bin/python3\""),
    SchemaKey::new(
        "dir",
        Path,
        Nothing("the folder of the file that runs, else that of the config"),
    )
    .says("The folder it works in; modules are looked for there.")
    .example("\"api\"")
    .aka(&["root", "folder"]),
    SchemaKey::new(
        "carrier",
        Word(&["auto", "shm", "stream", "lines"]),
        Preset::Text("auto"),
    )
    .says(
        "How requests travel: `\"shm\"` in shared memory where the program can, `\"stream\"` \
         over a socket. `\"auto\"` is `\"shm\"` if the program takes it, else `\"stream\"`. \
         `\"lines\"` is the classic protocol of variables and an answer as lines, for programs \
         without a library: shell scripts, old programs.",
    )
    .example("\"stream\""),
    SchemaKey::new("shared", ValueType::Table(&SHARED), Nothing("")).aka(&["shm", "slots", "slot"]),
    PASS_AUTHORIZATION,
    DEV,
];

/// `[site.route.resident.workers]`
pub(crate) static WORKERS: SchemaTable = SchemaTable {
    name: "workers",
    header: "`workers` of `resident`",
    text: "How many processes a resident program has, and when they are replaced.",
    base: None,
    keys: &[
        SchemaKey::new(
            "min",
            Integer {
                min: 0,
                max: 10_000,
            },
            Preset::Integer(1),
        )
        .says("Workers that are there without a request, too; 0 starts the first on demand.")
        .example("2")
        .aka(&["spare", "start"]),
        SchemaKey::new(
            "max",
            Integer {
                min: 1,
                max: 10_000,
            },
            Nothing("256, and beyond twice the cores what half of the memory holds"),
        )
        .says("Most workers. One is added when requests wait, and only while it helps.")
        .example("8")
        .aka(&["count", "number"]),
        SchemaKey::new(
            "concurrency",
            Integer { min: 1, max: 1024 },
            Preset::Integer(1),
        )
        .says(
            "Requests that one worker has at a time: threads of a WSGI program, tasks of an \
                 ASGI one.",
        )
        .example("4")
        .aka(&["threads"]),
        SchemaKey::new("idle_timeout", TIME_OR_NONE, secs(300))
            .says("How long a worker above `min` stays without a request; `\"0s\"` is for ever.")
            .example("\"1m\"")
            .aka(&["idle"]),
        SchemaKey::new(
            "max_requests",
            Integer {
                min: 0,
                max: 1_000_000_000,
            },
            Preset::Integer(0),
        )
        .says(
            "Requests after which a worker is replaced, up to a tenth more or less; 0 is never. \
             The new one is ready before the old one retires.",
        )
        .example("10000")
        .aka(&["requests", "max_jobs"]),
        SchemaKey::new("max_age", TIME_OR_NONE, secs(0))
            .says(
                "Age at which a worker is replaced, up to a tenth more or less; `\"0s\"` is none.",
            )
            .example("\"1h\"")
            .aka(&["lifetime"]),
        SchemaKey::new("max_memory", Size { min: 0, max: TIB }, Preset::Size(0))
            .says("Memory (resident size) above which a worker is replaced; 0 is none.")
            .example("\"500MiB\"")
            .aka(&["memory"]),
    ],
};

/// `[site.route.resident.shared]`
pub(crate) static SHARED: SchemaTable = SchemaTable {
    name: "shared",
    header: "`shared` of `resident`",
    text: "What lies in the memory that hob and a worker share, for answers of more than 4 KiB: a \
           worker fills a chunk, and hob sends it from where it is. Smaller or fewer chunks take \
           less memory of each worker and stay in the caches of the processor; `hob compare \
           --sweep` measures which sizes suit a machine.",
    base: None,
    keys: &[
        SchemaKey::new("chunks", Integer { min: 4, max: 32 }, Preset::Integer(32))
            .says(
                "Chunks of a worker. Clients that take their time hold about half of them; what \
                 comes meanwhile is copied out.",
            )
            .example("16")
            .aka(&["count", "slots", "number"]),
        SchemaKey::new(
            "chunk",
            Size {
                min: 4 * KIB,
                max: 64 * KIB,
            },
            Preset::Size(64 * KIB),
        )
        .says("Size of a chunk, a multiple of 4 KiB.")
        .example("\"16KiB\"")
        .aka(&["size", "slot", "bytes"]),
    ],
};

/// `[site.route.resident.queue]`
pub(crate) static QUEUE: SchemaTable = SchemaTable {
    name: "queue",
    header: "`queue` of `resident`",
    text: "Requests that wait for a worker of a resident program.",
    base: None,
    keys: QUEUE_KEYS,
};

/// `[site.route.resident.timeout]`
pub(crate) static TIMEOUT: SchemaTable = SchemaTable {
    name: "timeout",
    header: "`timeout` of `resident`",
    text: "Time limits of a resident program; `\"0s\"` is none. The client is told at once (504), \
           and the worker is asked, then made to end.",
    base: None,
    keys: &[
        SchemaKey::new("start", TIME_SOME, secs(30))
            .says("From a worker's start until it is ready.")
            .example("\"2m\""),
        SchemaKey::new("first_byte", TIME_OR_NONE, secs(60))
            .says("From the moment a worker has a request until the head of its answer.")
            .example("\"10s\"")
            .aka(&["read"]),
        SchemaKey::new("total", TIME_OR_NONE, secs(600))
            .says("From the moment a worker has a request until the end of its answer.")
            .example("\"0s\"")
            .aka(&["max"]),
        SchemaKey::new("progress", TIME_OR_NONE, secs(60))
            .says("Longest pause between two pieces of an answer that the client waits for.")
            .example("\"5m\"")
            .aka(&["idle"]),
        SchemaKey::new("events", TIME_OR_NONE, secs(300))
            .says(
                "Longest pause between two pieces of an answer of `text/event-stream`; then it \
                 breaks off, and clients ask again. `total` and `progress` do not hold for such \
                 answers.",
            )
            .example("\"1h\"")
            .aka(&["sse", "event_stream"]),
        SchemaKey::new("tunnel", TIME_OR_NONE, secs(300))
            .says(
                "How long nothing may come through a tunnel (a WebSocket, say) in either \
                 direction; then it is broken off. `total` and `progress` do not hold for tunnels.",
            )
            .example("\"1h\"")
            .aka(&["websocket", "upgrade"]),
    ],
};
