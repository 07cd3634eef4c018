//! Keys of programs: who they run as, what they may use, and how `cgi` and `warm` run them.

use super::*;

/// `[program]`, and the base of every handler's table that runs programs
pub static PROGRAM: Table = Table {
    name: "program",
    header: "`[program]`",
    text: "How programs run. In `[program]` for all of them, in a route's handler for that route; \
           what a route does not say is as in `[program]`.",
    base: None,
    keys: &[
        Key::new(
            "user",
            Text,
            Nothing("when hob is started as root: `nobody`, or another account without rights that is not the server's; else the user hob runs as"),
        )
        .says(
            "Account the program runs as when hob is started as root: a name, or a number. Never \
             root.",
        )
        .example("\"wiki\"")
        .aka(&["uid", "account", "run_as"]),
        Key::new("group", Text, Nothing("the groups of `user`"))
            .says("Group the program runs as, instead of the main group of `user`.")
            .example("\"www-data\"")
            .aka(&["gid"]),
        Key::new("env", Map(&VARIABLE_TO_TEXT), Nothing("none"))
            .says(
                "Variables of the program's environment, besides `PATH` and those a request has. \
                 An empty value is an empty variable.",
            )
            .example("{ LANG = \"C.UTF-8\", WIKI_ROOT = \"/srv/wiki\" }")
            .aka(&["environment", "setenv", "variables"]),
        Key::new("umask", Text, Nothing("what hob was started with"))
            .says("Permissions that files made by the program do not get, in octal.")
            .example("\"027\""),
        Key::new(
            "nice",
            Integer { min: -20, max: 19 },
            Nothing("one above the server's `nice`, so that the server is served first"),
        )
        .says("Nice level of the program. Lower than hob's own needs root.")
        .example("10")
        .aka(&["priority"]),
        Key::new(
            "io_class",
            Word(&["normal", "low", "idle"]),
            Preset::Text("normal"),
        )
        .says(
            "How the program's disk access is served: `\"low\"` after that of others, `\"idle\"` \
             only when nobody else wants the disk.",
        )
        .example("\"idle\"")
        .aka(&["ionice"]),
        Key::new("cpus", Cpus, Preset::Texts(&[]))
            .says("CPUs the program may run on. An empty list is every CPU hob is allowed.")
            .example("[\"2-3\"]")
            .aka(&["affinity", "cpu_affinity"]),
        Key::new("rlimits", Kind::Table(&RLIMITS), Nothing("")).aka(&["ulimit", "rlimit"]),
        Key::new("sandbox", Kind::Table(&SANDBOX), Nothing("")),
        Key::new("cgroup", Kind::Table(&CGROUP), Nothing("")),
    ],
};

/// `[program.rlimits]`
pub static RLIMITS: Table = Table {
    name: "rlimits",
    header: "`[program.rlimits]`",
    text: "Resource limits of each process, as `ulimit` sets them; soft and hard limit alike.",
    base: None,
    keys: &[
        Key::new("as", SIZE_ANY, Nothing("none"))
            .says("Address space of one process (RLIMIT_AS).")
            .example("\"512MiB\"")
            .aka(&["address_space", "memory", "vmem"]),
        Key::new("core", Size { min: 0, max: TIB }, Preset::Size(0))
            .says("Largest core file (RLIMIT_CORE).")
            .example("\"100MiB\""),
        Key::new("cpu", TIME_OF_CPU, Nothing("none"))
            .says("CPU time of one process, in whole seconds; then it is ended (RLIMIT_CPU).")
            .example("\"30s\""),
        Key::new("data", SIZE_ANY, Nothing("none"))
            .says("Data segment of one process (RLIMIT_DATA).")
            .example("\"256MiB\""),
        Key::new(
            "fsize",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Nothing("none"),
        )
        .says("Largest file it may write (RLIMIT_FSIZE).")
        .example("\"100MiB\"")
        .aka(&["file_size"]),
        Key::new(
            "nofile",
            Integer {
                min: 8,
                max: 1 << 30,
            },
            Nothing("a soft limit of 1024, and hob's own hard limit"),
        )
        .says("Open files of one process (RLIMIT_NOFILE).")
        .example("256")
        .aka(&["open_files"]),
        Key::new(
            "nproc",
            Integer {
                min: 1,
                max: 1 << 22,
            },
            Nothing("4096 when hob is started as root, else none"),
        )
        .says(
            "Processes and threads of the account as a whole, all programs that run as it counted \
             (RLIMIT_NPROC). What `cgroup.pids` says is counted for this program alone.",
        )
        .example("200")
        .aka(&["processes"]),
        Key::new(
            "stack",
            Size {
                min: 64 * KIB,
                max: TIB,
            },
            Nothing("none"),
        )
        .says("Stack of the first thread (RLIMIT_STACK).")
        .example("\"8MiB\""),
    ],
};

/// `[program.sandbox]`
pub static SANDBOX: Table = Table {
    name: "sandbox",
    header: "`[program.sandbox]`",
    text: "What a program reaches. As soon as one of `read`, `write` and `execute` is set, \
           everything they do not name is out of reach (Landlock).",
    base: None,
    keys: &[
        Key::new("no_new_privs", Flag, Preset::Flag(true))
            .says(
                "The program and what it starts gain no rights by set-user-ID programs. `sudo`, \
                 `ping` and some versions of `sendmail` need `false`. It holds in any case as soon \
                 as one of `read`, `write` and `execute` is set: Landlock needs it.",
            )
            .example("false")
            .aka(&["no_new_privileges"]),
        Key::new("read", Texts, Preset::Texts(&[]))
            .says("Files and folders that may be read.")
            .example("[\"/etc\", \"/srv/wiki\"]"),
        Key::new("write", Texts, Preset::Texts(&[]))
            .says("Files and folders that may be read, written, made and removed.")
            .example("[\"/srv/wiki/data\", \"/tmp\"]"),
        Key::new("execute", Texts, Preset::Texts(&[]))
            .says(
                "Files and folders that may be read and executed. The program, its interpreter \
                 and their libraries belong here.",
            )
            .example("[\"/usr\", \"/bin\", \"/lib\", \"/lib64\"]"),
        Key::new(
            "namespaces",
            Words(&["net", "ipc", "uts", "pid", "mount"]),
            Preset::Texts(&[]),
        )
        .says(
            "Namespaces of its own: `\"net\"`, no network; `\"ipc\"`; `\"uts\"`; `\"pid\"`, it \
             sees only what it started; `\"mount\"`, an empty `/tmp` of its own, and with \
             `\"pid\"` a `/proc` that fits.",
        )
        .example("[\"net\", \"pid\", \"mount\"]")
        .aka(&["unshare"]),
    ],
};

/// `[program.cgroup]`
pub static CGROUP: Table = Table {
    name: "cgroup",
    header: "`[program.cgroup]`",
    text: "Limits of all processes of a program together, in a control group of its own. They need \
           cgroup v2 with these controllers, or v1 with `memory` and `pids` mounted, and the right \
           to make groups; `hob status` says what could not be applied.",
    base: None,
    keys: &[
        Key::new("memory", SIZE_ANY, Nothing("none"))
            .says("Memory; at the limit processes of the program are killed.")
            .example("\"1GiB\"")
            .aka(&["memory_max"]),
        Key::new(
            "pids",
            Integer {
                min: 1,
                max: 1 << 22,
            },
            Nothing("none"),
        )
        .says("Processes and threads; beyond, the program can start no more.")
        .example("100")
        .aka(&["pids_max", "tasks"]),
        Key::new(
            "cpu_weight",
            Integer {
                min: 1,
                max: 10_000,
            },
            Nothing("100"),
        )
        .says("Share of the CPUs when they are busy; others have 100.")
        .example("50")
        .aka(&["cpu_shares", "weight"]),
    ],
};

/// `[site.route.cgi]`
pub static CGI: Table = Table {
    name: "cgi",
    header: "`cgi` of a route",
    text: "A process for each request: CGI programs, or a command that knows nothing of the web. A \
           plain string is the folder of the programs. How they run is as in `[program]`, where \
           nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &[
        Key::new(
            "dir",
            Path,
            Nothing("none; give `dir`, `script` or `command`"),
        )
        .says(
            "Folder of programs: what follows the route's prefix names one, and what follows \
                 that is its `PATH_INFO`. Nothing in it is ever sent as a file. For a `command`, \
                 the folder it works in.",
        )
        .example("\"cgi-bin\"")
        .aka(&["root", "folder", "directory", "path"]),
        Key::new("script", Path, Nothing("none"))
            .says("One CGI program for every path of the route; what follows is its `PATH_INFO`.")
            .example("\"/usr/lib/cgit/cgit.cgi\"")
            .aka(&["file", "program", "exec", "run"]),
        Key::new("command", Arguments, Nothing("none"))
            .says(
                "A program and its arguments, started without a shell. What it prints is the \
                 answer; an exit code other than 0 makes it a 500. `\"${query.NAME}\"` is what \
                 the request's query has for that name, if `parameters` allows it.",
            )
            .example("[\"df\", \"-h\"]")
            .aka(&["cmd", "argv"]),
        Key::new("output", Text, Preset::Text("text/plain; charset=utf-8"))
            .says("Media type of what a `command` prints.")
            .example("\"application/json\"")
            .aka(&["content_type", "type"]),
        Key::new("parameters", Map(&PARAMETER_TO_PATTERN), Nothing("none"))
            .says(
                "Fields of the query a `command` takes, each with a regular expression that its \
                 whole value must match; another is answered with 400. A value that begins with \
                 `-` never passes, because it would be an option.",
            )
            .example("{ host = \"[a-z0-9.]{1,60}\" }")
            .aka(&["params", "query"]),
        Key::new("index", Texts, Preset::Texts(&["index.cgi"]))
            .says("Programs that answer for a folder; the first that exists is run.")
            .example("[\"index.cgi\", \"index.pl\"]")
            .aka(&["indexes", "default"]),
        Key::new("interpreters", Map(&ENDING_TO_INTERPRETER), Nothing("none"))
            .says(
                "Programs that run files with an ending, with arguments of theirs; such files need \
                 not be executable. All others must be.",
            )
            .example("{ \".py\" = \"python3 -I\", \".pl\" = \"perl\" }")
            .aka(&["interpreter", "assign", "handlers"]),
        PASS_AUTHORIZATION,
        DEV,
        CONCURRENT,
        QUEUE,
        QUEUE_TIME,
        FIRST_BYTE,
        TOTAL,
        HEAD,
        LINGER,
        GRACE,
    ],
};

/// `[site.route.warm]`
pub static WARM: Table = Table {
    name: "warm",
    header: "`warm` of a route",
    text: "Unchanged CGI scripts in Python or Perl, each request a fork of an interpreter that has \
           started already. A plain string is the folder of the scripts. How they run is as in \
           `[program]`, where nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &[
        Key::new("dir", Path, Nothing("none; give `dir` or `script`"))
            .says(
                "Folder of scripts: what follows the route's prefix names one, and what follows \
                 that is its `PATH_INFO`. Nothing in it is ever sent as a file.",
            )
            .example("\"reports\"")
            .aka(&["root", "folder", "directory", "path"]),
        Key::new("script", Path, Nothing("none"))
            .says("One script for every path of the route; what follows is its `PATH_INFO`.")
            .example("\"/srv/wiki/wiki.py\"")
            .aka(&["file", "program", "exec", "run"]),
        Key::new(
            "interpreter",
            Text,
            Nothing("what the ending of `script` says: `python3` for `.py`, `perl` for `.pl`"),
        )
        .says(
            "The interpreter that is kept: a name or a path, of Python (3.9 and up) or Perl. A file \
             that begins with a `#!` line for something else runs as `cgi` would run it.",
        )
        .example("\"python3\"")
        .aka(&["language", "runtime"]),
        Key::new("preload", Texts, Preset::Texts(&[]))
            .says(
                "Modules that the interpreter loads before the first request, so that no request \
                 does. They must not start threads.",
            )
            .example("[\"json\", \"sqlite3\"]")
            .aka(&["modules", "imports", "use"]),
        Key::new("hosts", Integer { min: 1, max: 64 }, Preset::Integer(1))
            .says(
                "Interpreters kept at once. One forks some thousand times a second, so only \
                 machines of many CPUs need more.",
            )
            .example("4"),
        Key::new("compile", Flag, Preset::Flag(true))
            .says(
                "Scripts are kept compiled until their file changes. A Perl script's `BEGIN` \
                 blocks and `use` then run once, without a request; with `false` each request \
                 compiles its script.",
            )
            .example("false")
            .aka(&["cache"]),
        Key::new(
            "index",
            Texts,
            Preset::Texts(&["index.cgi", "index.py", "index.pl"]),
        )
        .says("Scripts that answer for a folder; the first that exists is run.")
        .example("[\"index.py\"]")
        .aka(&["indexes", "default"]),
        PASS_AUTHORIZATION,
        DEV,
        CONCURRENT,
        QUEUE,
        QUEUE_TIME,
        FIRST_BYTE,
        TOTAL,
        HEAD,
        LINGER,
        GRACE,
    ],
};

// Keys of every handler that runs a process for each request.

const PASS_AUTHORIZATION: Key = Key::new("pass_authorization", Flag, Preset::Flag(false))
    .says(
        "Programs see the `Authorization` field, with passwords in it, as \
                 `HTTP_AUTHORIZATION`. Those that log people in themselves need it.",
    )
    .example("true")
    .aka(&["authorization", "cgipassauth"]);
const DEV: Key = Key::new("dev", Flag, Preset::Flag(false))
    .says(
        "A program's failure is explained in the browser: why it failed, and what it \
                 printed on standard error. Only where no stranger can look.",
    )
    .example("true")
    .aka(&["debug", "development"]);
const CONCURRENT: Key = Key::new(
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
const QUEUE: Key = Key::new(
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
const QUEUE_TIME: Key = Key::new("queue_time", TIME_SOME, secs(30))
    .says("How long a request waits for a process; then 503.")
    .example("\"10s\"");
const FIRST_BYTE: Key = Key::new("first_byte", TIME_SOME, secs(60))
    .says(
        "From a program's start until the head of its answer is complete; then it is ended \
                 and the answer is 504.",
    )
    .example("\"10s\"")
    .aka(&["timeout", "read_timeout"]);
const TOTAL: Key = Key::new("total", TIME_SOME, secs(600))
    .says(
        "From a program's start until the end; then it is ended, and an answer that has \
                 begun breaks off.",
    )
    .example("\"1h\"")
    .aka(&["max_time", "harakiri", "kill_after"]);
const HEAD: Key = Key::new("head", Size { min: 256, max: MIB }, Preset::Size(64 * KIB))
    .says("Longest head of a program's answer; a longer one is a 502.")
    .example("\"16KiB\"")
    .aka(&["header_size", "buffer_size"]);
const LINGER: Key = Key::new("linger", TIME_TO_MINUTE, secs(2))
    .says(
        "How long the output of a program that has ended stays open for what it left \
                 running, and how long the end of one is waited for that has closed its output: \
                 only then is known that nothing is missing.",
    )
    .example("\"500ms\"");
const GRACE: Key = Key::new("grace", TIME_TO_MINUTE, secs(5))
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

/// `program.env`
static VARIABLE_TO_TEXT: MapOf = MapOf {
    key: "variable",
    value: MapValue::Text,
};
