//! Keys of `cgi`, and those that every handler has that runs a process for each request.

use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{
    Arguments, Integer, Map, Path, Size, Text, Texts, Word,
};
use crate::handle::config::key::{MapOf, MapValue, Preset, SchemaKey, SchemaTable, ValueType};
use crate::handle::config::schema::{
    GIDS, KIB, MIB, PROGRAM, TIME_OR_NONE, TIME_SOME, TIME_TO_MINUTE, UIDS, secs,
};
use crate::handle::script::keys::{DEV, PASS_AUTHORIZATION};

/// `[site.route.cgi]`
pub(crate) static CGI: SchemaTable = SchemaTable {
    name: "cgi",
    header: "`cgi` of a route",
    text: "A process for each request: CGI programs, or a command that knows nothing of the web. A \
           plain string is the folder of the programs. How they run is as in `[program]`, where \
           nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &[
        SchemaKey::new("uids", ValueType::Table(&UIDS), Nothing("")),
        SchemaKey::new("gids", ValueType::Table(&GIDS), Nothing("")),
        SchemaKey::new(
            "dir",
            Path,
            Nothing("none; give `dir`, `script` or `command`"),
        )
        .says(
            "Folder of programs: what follows the route's prefix names one, and what follows \
                 that is its `PATH_INFO`. Nothing in it is ever sent as a file. For a `command`, \
                 the folder it works in. Without one, captures of the route's path and `{host}` \
                 may be parts of its names: `/home/{user}/cgi-bin`; no link is followed \
                 behind the first of them.",
        )
        .example("\"cgi-bin\"")
        .aka(&["root", "folder", "directory", "path"]),
        SchemaKey::new("script", Path, Nothing("none"))
            .says("One CGI program for every path of the route; what follows is its `PATH_INFO`.")
            .example("\"/usr/lib/cgit/cgit.cgi\"")
            .aka(&["file", "program", "exec", "run"]),
        SchemaKey::new("command", Arguments, Nothing("none"))
            .says(
                "A program and its arguments, started without a shell. What it prints is the \
                 answer; an exit code other than 0 makes it a 500. `\"${query.NAME}\"` is what \
                 the request's query has for that name, if `parameters` allows it.",
            )
            .example("[\"df\", \"-h\"]")
            .aka(&["cmd", "argv"]),
        SchemaKey::new("output", Text, Preset::Text("text/plain; charset=utf-8"))
            .says("Media type of what a `command` prints.")
            .example("\"application/json\"")
            .aka(&["content_type", "type"]),
        SchemaKey::new("parameters", Map(&PARAMETER_TO_PATTERN), Nothing("none"))
            .says(
                "Fields of the query a `command` takes, each with a regular expression that its \
                 whole value must match; another is answered with 400. A value that begins with \
                 `-` never passes, because it would be an option.",
            )
            .example("{ host = \"[a-z0-9.]{1,60}\" }")
            .aka(&["params", "query"]),
        SchemaKey::new("index", Texts, Preset::Texts(&["index.cgi"]))
            .says("Programs that answer for a folder; the first that exists is run.")
            .example("[\"index.cgi\", \"index.pl\"]")
            .aka(&["indexes", "default"]),
        SYMLINKS_TO,
        SchemaKey::new("interpreters", Map(&ENDING_TO_INTERPRETER), Nothing("none"))
            .says(
                "Programs that run files with an ending, with arguments of theirs; such files need \
                 not be executable. All others must be.",
            )
            .example("{ \".py\" = \"python3 -I\", \".pl\" = \"perl\" }")
            .aka(&["interpreter", "assign", "handlers"]),
        PASS_AUTHORIZATION,
        VALUES,
        DEV,
        EXIT,
        CONCURRENT,
        QUEUE,
        QUEUE_TIME,
        FIRST_BYTE,
        TOTAL,
        EVENTS,
        HEAD,
        LINGER,
        GRACE,
    ],
};

pub(in crate::handle) const SYMLINKS_TO: SchemaKey =
    SchemaKey::new("symlinks_to", Texts, Preset::Texts(&[]))
        .says(
            "Folders that symbolic links in `dir` may lead into. Links that stay in `dir` are \
                 followed anyway, all others are not: what they name is answered with 404, and \
                 the record says where it leads. The program is the file that the link leads to: \
                 it runs in that file's folder, under that file's path.",
        )
        .example("[\"/usr/share/gitweb\"]")
        .aka(&["symlinks", "follow_symlinks", "links"]);
pub(in crate::handle) const VALUES: SchemaKey = SchemaKey::new("values", Texts, Preset::Texts(&[]))
    .says(
        "Parameters of pages that call the program (`page.programs`) which it finds under \
                 their own names, as programs of Net.Data do: `kind` beside `DTW_kind`, of a table \
                 `t` also `t_ROWS`, `t_COLS`, `t_N_1`, `t_V_1_1`. Pages set no other variable.",
    )
    .example("[\"kind\", \"t\"]");
pub(in crate::handle) const EXIT: SchemaKey =
    SchemaKey::new("exit", Word(&["check", "trust"]), Preset::Text("check"))
        .says(
            "What it means how a program ends. `\"check\"`: an answer of unannounced length is not \
                 whole when a signal ended its program, nor when that ended with an exit code \
                 other than 0 and had printed on standard error, as an uncaught error does in \
                 every language: it is a 502, or breaks off where it has begun. An exit code \
                 without a word is only recorded, and so is one of an answer that is an error by \
                 its own status. A `command` has failed with every code other than 0. `\"trust\"`: \
                 an answer is whole when the output has ended, whatever the end; the record tells.",
        )
        .example("\"trust\"")
        .aka(&["exit_code", "exit_status"]);
pub(in crate::handle) const CONCURRENT: SchemaKey = SchemaKey::new(
    "concurrent",
    Integer {
        min: 1,
        max: 100_000,
    },
    Preset::Integer(64),
)
.says("Processes of this route at once; more requests wait in its queue.")
.example("8")
.aka(&["max_processes", "workers", "limit"]);
pub(in crate::handle) const QUEUE: SchemaKey = SchemaKey::new(
    "queue",
    Integer {
        min: 0,
        max: 1_000_000,
    },
    Preset::Integer(1024),
)
.says("Requests that wait for a process; more are answered with 503.")
.example("100")
.aka(&["backlog", "max_queue"]);
pub(in crate::handle) const QUEUE_TIME: SchemaKey =
    SchemaKey::new("queue_time", TIME_SOME, secs(30))
        .says("How long a request waits for a process; then 503.")
        .example("\"10s\"");
pub(in crate::handle) const FIRST_BYTE: SchemaKey =
    SchemaKey::new("first_byte", TIME_SOME, secs(60))
        .says(
            "From a program's start until the head of its answer is complete; then it is ended \
                 and the answer is 504.",
        )
        .example("\"10s\"")
        .aka(&["read_timeout"]);
pub(in crate::handle) const TOTAL: SchemaKey = SchemaKey::new("total", TIME_SOME, secs(600))
    .says(
        "From a program's start until the end; then it is ended, and an answer that has \
                 begun breaks off. Streams of events have `events` instead.",
    )
    .example("\"1h\"")
    .aka(&["max_time", "kill_after"]);
pub(in crate::handle) const EVENTS: SchemaKey = SchemaKey::new("events", TIME_OR_NONE, secs(300))
    .says(
        "Longest pause between two pieces of an answer of `text/event-stream`; then its program is \
                 ended and it breaks off, and clients ask again. `total` does not hold for such an \
                 answer, once its head is there. `\"0s\"` is none.",
    )
    .example("\"1h\"")
    .aka(&["sse", "event_stream"]);
pub(in crate::handle) const HEAD: SchemaKey =
    SchemaKey::new("head", Size { min: 256, max: MIB }, Preset::Size(64 * KIB))
        .says("Longest head of a program's answer; a longer one is a 502.")
        .example("\"16KiB\"")
        .aka(&["header_size", "buffer_size"]);
pub(in crate::handle) const LINGER: SchemaKey = SchemaKey::new("linger", TIME_TO_MINUTE, secs(2))
    .says(
        "How long the output of a program that has ended stays open for what it left \
                 running, and how long the end of one is waited for that has closed its output: \
                 only then is known that nothing is missing.",
    )
    .example("\"500ms\"");
pub(in crate::handle) const GRACE: SchemaKey = SchemaKey::new("grace", TIME_TO_MINUTE, secs(5))
    .says(
        "Between SIGTERM and SIGKILL, when a program is ended: its client has left, or its \
                 time is up.",
    )
    .example("\"1s\"")
    .aka(&["kill_timeout", "stop_timeout"]);

/// `site.route.cgi.parameters`
static PARAMETER_TO_PATTERN: MapOf = MapOf {
    key: "name in the query",
    value: MapValue::Text,
};

/// `site.route.cgi.interpreters`
static ENDING_TO_INTERPRETER: MapOf = MapOf {
    key: "ending",
    value: MapValue::Text,
};
