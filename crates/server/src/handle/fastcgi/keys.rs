//! Keys of `fastcgi`.

use crate::handle::config::key::Preset::{Inherited, Nothing, Required};
use crate::handle::config::key::ValueType::{Flag, Integer, Map, Path, Size, Text, Texts};
use crate::handle::config::key::{MapOf, MapValue, Preset, SchemaKey, SchemaTable, ValueType};
use crate::handle::config::schema::{KIB, MIB, TIME_OR_NONE, TIME_SOME, secs};
use crate::handle::script::keys::{DEV, PASS_AUTHORIZATION, QUEUE_KEYS};

/// `[site.route.fastcgi]`
pub(crate) static FASTCGI: SchemaTable = SchemaTable {
    name: "fastcgi",
    header: "`fastcgi` of a route",
    text: "Programs that another process keeps and that speak FastCGI: php-fpm, for one. A plain \
           string is `to`.",
    base: None,
    keys: &[
        SchemaKey::new("to", Text, Required)
            .says(
                "Where it listens: `unix:PATH`, or an IP address and a port. The account of the \
                 server must be able to write to the socket.",
            )
            .example("\"unix:/run/php/php-fpm.sock\"")
            .aka(&["address", "server"]),
        SchemaKey::new("root", Path, Inherited("the site's `root`"))
            .says(
                "Folder of the scripts: what follows the route's prefix is looked up here, and \
                 only a file that is there is passed on. Links that stay in it are followed, and \
                 the program is told where they lead.",
            )
            .example("\"wiki\"")
            .aka(&["dir", "folder", "path"]),
        SchemaKey::new("index", Texts, Preset::Texts(&["index.php"]))
            .says("Scripts that answer for a folder; the first that exists.")
            .example("[\"index.php\", \"start.php\"]")
            .aka(&["indexes", "default"]),
        SchemaKey::new("split", Text, Preset::Text(".php"))
            .says(
                "Ending of scripts: the first part of the path that has it names the script, and \
                 what follows is its `PATH_INFO`; without one the answer is 404. `\"\"`: one \
                 program answers for every path of the route and no file is looked for; \
                 `SCRIPT_NAME` is the route's prefix.",
            )
            .example("\"\"")
            .aka(&["split_path_info", "ending", "extension"]),
        SchemaKey::new("script_root", Path, Nothing("where the scripts are found"))
            .says(
                "Where the process that runs them finds the scripts, if it sees another path than \
                 hob does, as one in a container.",
            )
            .example("\"/var/www/html\""),
        SchemaKey::new("check", Flag, Preset::Flag(true))
            .says(
                "Scripts are looked for before they are passed on. `false` where hob cannot see \
                 them: a missing script is then the program's to answer, and there is no index but \
                 the first.",
            )
            .example("false"),
        SchemaKey::new("env", Map(&NAME_TO_VALUE), Nothing("none"))
            .says("Variables that every request has, before those of the request.")
            .example("{ APP_ENV = \"production\" }")
            .aka(&["param", "params"]),
        PASS_AUTHORIZATION,
        DEV,
        SchemaKey::new(
            "connections",
            Integer {
                min: 1,
                max: 100_000,
            },
            Preset::Integer(256),
        )
        .says(
            "Connections at once, one for each request; more requests wait in its queue. The \
             process behind has its own limit, and those beyond wait there.",
        )
        .example("32")
        .aka(&["max_connections", "concurrent", "limit"]),
        SchemaKey::new(
            "keep",
            Integer {
                min: 0,
                max: 10_000,
            },
            Preset::Integer(0),
        )
        .says(
            "Connections that stay open between requests, of all threads together; one that has \
             rested for a minute or two is closed, and none rests while a new one waits to be \
             taken. Each holds a child of php-fpm for itself, also while it rests: keep fewer than \
             `pm.max_children` where others ask the same pool. Where hob is the only one, as many \
             of both `connections` and `keep` as there are children cost least. 0 opens one for \
             each request.",
        )
        .example("4")
        .aka(&["keep_conn"]),
        SchemaKey::new("queue", ValueType::Table(&QUEUE), Nothing("")),
        SchemaKey::new("timeout", ValueType::Table(&TIMEOUT), Nothing("")).aka(&["timeouts"]),
        SchemaKey::new("head", Size { min: KIB, max: MIB }, Preset::Size(64 * KIB))
            .says("Longest head of an answer; a longer one is a 502.")
            .example("\"16KiB\"")
            .aka(&["buffer_size"]),
        SchemaKey::new("control", Flag, Preset::Flag(false))
            .says(
                "The program may have hob send a file or what another path answers in the place of \
                 its own answer (`X-Sendfile`, `X-Accel-Redirect`, `Script-Control`), as programs \
                 that hob runs may. Else such fields are taken out; `X-Accel-Buffering` holds \
                 anyway.",
            )
            .example("true"),
    ],
};

/// `[site.route.fastcgi.queue]`
pub(crate) static QUEUE: SchemaTable = SchemaTable {
    name: "queue",
    header: "`queue` of `fastcgi`",
    text: "Requests that wait for a connection.",
    base: None,
    keys: QUEUE_KEYS,
};

/// `[site.route.fastcgi.timeout]`
pub(crate) static TIMEOUT: SchemaTable = SchemaTable {
    name: "timeout",
    header: "`timeout` of `fastcgi`",
    text: "Time limits (504); `\"0s\"` is none.",
    base: None,
    keys: &[
        SchemaKey::new("connect", TIME_SOME, secs(5))
            .says("Until there is a connection.")
            .example("\"1s\""),
        SchemaKey::new("first_byte", TIME_OR_NONE, secs(60))
            .says("From then until the head of the answer.")
            .example("\"10s\"")
            .aka(&["read", "read_timeout"]),
        SchemaKey::new("total", TIME_OR_NONE, secs(600))
            .says("From then until the end of the answer.")
            .example("\"0s\"")
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
    ],
};

/// `site.route.fastcgi.env`
static NAME_TO_VALUE: MapOf = MapOf {
    key: "name",
    value: MapValue::Text,
};
