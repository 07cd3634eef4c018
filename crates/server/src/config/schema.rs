//! Every key of the config, once: its name, type, range, default, meaning and example.
//!
//! Loading, unknown-key messages, the reference page, the JSON schema and `hob check --explain` all
//! follow from [`ROOT`]. Adding a key means one entry here, its reading in `build`, and a golden
//! test. `key` says what an entry is made of.

use std::time::Duration;

use super::key::Kind::{
    Arguments, Cpus, Flag, Integer, Map, OrText, OrWord, Path, Size, Tables, Text, Texts, Time,
    Word, Words,
};
use super::key::Preset::{Inherited, Nothing, Required};
use super::key::{Key, Kind, MapOf, MapValue, Preset, Table};

/// The top level of a config file.
pub static ROOT: Table = Table {
    name: "",
    header: "the top level",
    text: "Keys of the server as a whole. They stand before the first `[table]` of a file.",
    base: None,
    keys: &[
        Key::new("include", Texts, Preset::Texts(&[]))
            .says(
                "More config files, read as if they stood at the end of this one. `*` stands for \
                 any part of a file name (not of a folder name; never for a leading dot); matches \
                 are read in order of their names. A file is read once, however often it is \
                 named. A key that takes one value may be set in one file only; `[[listen]]`, \
                 `[[site]]` and `[[log]]` add up.",
            )
            .example("[\"conf.d/*.toml\"]"),
        Key::new(
            "threads",
            OrWord("auto", &Integer { min: 1, max: 1024 }),
            Preset::Text("auto"),
        )
        .says(
            "Server threads. `\"auto\"` is one for each CPU the server may use, CPU quota \
                 counted.",
        )
        .example("4")
        .aka(&["workers", "worker_processes", "processes"]),
        Key::new("cpus", Cpus, Preset::Texts(&[]))
            .says(
                "CPUs the server may run on, as numbers or ranges, counted from 0. An empty list \
                 is every CPU it is allowed.",
            )
            .example("[\"0-3,6\"]")
            .aka(&["affinity", "cpu_affinity"]),
        Key::new("nice", Integer { min: -20, max: 19 }, Preset::Integer(0))
            .says(
                "Nice level of the server process; lower is served first by the kernel. Below 0 \
                 needs root.",
            )
            .example("-5"),
        Key::new("user", Text, Nothing("none"))
            .says("Account the server runs as when it was started as root.")
            .example("\"www-data\""),
        Key::new("group", Text, Nothing("the group of `user`"))
            .says("Group the server runs as when it was started as root.")
            .example("\"www-data\""),
        Key::new(
            "control",
            OrWord("off", &Path),
            Nothing("chosen by the program"),
        )
        .says(
            "The control socket, by which `hob status`, `hob reload` and `hob stop` reach \
                 this server. `\"off\"` opens none.",
        )
        .example("\"/run/hob/control\""),
        Key::new("drain", TIME_TO_HOUR, secs(30))
            .says(
                "How long running requests may finish when the server stops or is replaced; then \
                 they are cut.",
            )
            .example("\"1m\"")
            .aka(&["shutdown_timeout", "grace", "graceful_timeout"]),
        Key::new("default_log", Text, Nothing("no access log"))
            .says("The access log of listeners that name none: the `name` of a `[[log]]`.")
            .example("\"main\""),
        Key::new("limits", Kind::Table(&LIMITS), Nothing("")),
        Key::new("program", Kind::Table(&PROGRAM), Nothing("")).aka(&["programs"]),
        Key::new("cache", OrWord("off", &Kind::Table(&CACHE)), Nothing("")),
        Key::new("log", Tables(&LOG), Nothing("")).aka(&["access_log", "logs"]),
        Key::new("listen", Tables(&LISTEN), Nothing("`127.0.0.1:8080`")).aka(&[
            "listener",
            "listeners",
            "bind",
            "port",
        ]),
        Key::new("site", Tables(&SITE), Nothing("")).aka(&[
            "server",
            "vhost",
            "virtualhost",
            "host",
            "sites",
        ]),
    ],
};

/// `[limits]`
pub static LIMITS: Table = Table {
    name: "limits",
    header: "`[limits]`",
    text: "Limits of connections and requests. Each has a counter of the same name in `hob \
           status`.",
    base: None,
    keys: &[
        Key::new("target", Size { min: 64, max: MIB }, Preset::Size(8 * KIB))
            .says(
                "Longest request target (path and query); a longer one is answered with 414. Not \
                 above `head`.",
            )
            .example("\"16KiB\""),
        Key::new("head", Size { min: KIB, max: MIB }, Preset::Size(64 * KIB))
            .says(
                "Longest request head (request line and header fields); a longer one is answered \
                 with 431.",
            )
            .example("\"32KiB\""),
        Key::new(
            "headers",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(100),
        )
        .says("Most header fields of a request; more are answered with 431.")
        .example("200"),
        Key::new("head_time", TIME_SOME, secs(10))
            .says(
                "Time for a whole request head, from its first byte; then 408. A new connection \
                 that sends nothing for as long is closed without an answer.",
            )
            .example("\"5s\""),
        Key::new("body_progress", TIME_SOME, secs(30))
            .says(
                "Longest pause between two pieces of a request body; then 408, or the end of the \
                 connection where the answer has begun.",
            )
            .example("\"1m\""),
        Key::new("write_progress", TIME_SOME, secs(60))
            .says(
                "Longest time in which a client takes no byte of an answer; then the connection \
                 is closed.",
            )
            .example("\"30s\""),
        Key::new("idle", TIME_SOME, secs(75))
            .says("How long a connection may stay idle between two requests.")
            .example("\"15s\"")
            .aka(&["keepalive", "keep_alive", "keepalive_timeout"]),
        Key::new("linger", TIME_TO_MINUTE, secs(5))
            .says(
                "How long, at most, input is read and dropped before a connection with unread \
                 input is closed, so that the client can read the answer. `\"0s\"` closes at once.",
            )
            .example("\"2s\""),
        Key::new(
            "connections",
            Integer {
                min: 1,
                max: 10_000_000,
            },
            Preset::Integer(10_000),
        )
        .says("Open connections of the server. Those of the control socket do not count.")
        .example("50000")
        .aka(&["max_connections", "worker_connections"]),
        Key::new(
            "connections_per_client",
            Integer {
                min: 0,
                max: 10_000_000,
            },
            Preset::Integer(0),
        )
        .says("Open connections of one client address; 0 is no limit.")
        .example("64"),
        Key::new(
            "body",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Preset::Size(MIB),
        )
        .says(
            "Largest request body, unless the route says otherwise; a larger one is answered \
                 with 413.",
        )
        .example("\"16MiB\"")
        .aka(&["client_max_body_size", "max_body"]),
    ],
};

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
                 `ping` and some versions of `sendmail` need `false`.",
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

/// `[cache]`
pub static CACHE: Table = Table {
    name: "cache",
    header: "`[cache]`",
    text: "The cache of files: contents of small ones, descriptors and facts of larger ones. \
           `cache = \"off\"` turns it off.",
    base: None,
    keys: &[
        Key::new(
            "bytes",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Preset::Size(64 * MIB),
        )
        .says("Memory for contents and prepared heads; 0 turns the cache off.")
        .example("\"256MiB\"")
        .aka(&["size", "memory"]),
        Key::new(
            "max_file",
            Size {
                min: 0,
                max: 16 * MIB,
            },
            Preset::Size(32 * KIB),
        )
        .says(
            "Largest file whose content is kept; larger ones are sent from the kernel's own \
                 cache.",
        )
        .example("\"128KiB\""),
        Key::new("recheck", TIME_TO_HOUR, secs(1))
            .says(
                "How old the knowledge of a file may get before the file is looked at again. \
                 `\"0s\"` looks at every request; a changed file is seen at the latest after this \
                 time.",
            )
            .example("\"10s\""),
    ],
};

/// `[[log]]`
pub static LOG: Table = Table {
    name: "log",
    header: "`[[log]]`",
    text: "An access log: one line for each request. Listeners, sites and routes choose one by \
           name.",
    base: None,
    keys: &[
        Key::new("name", Text, Required)
            .says("The name by which listeners, sites and routes choose this log.")
            .example("\"main\""),
        Key::new("file", Path, Nothing("none; give `file` or `stdout`"))
            .says("File the lines are appended to. Its folder must exist.")
            .example("\"/var/log/hob/access.log\"")
            .aka(&["path"]),
        Key::new("stdout", Flag, Preset::Flag(false))
            .says("Lines go to standard output instead of a file.")
            .example("true"),
        Key::new("format", Text, Preset::Text("combined"))
            .says(
                "`\"common\"`, `\"combined\"`, `\"json\"`, or a line of your own in which each \
                 `{field}` is replaced. The reference page lists the fields at its end.",
            )
            .example("\"{time} {client} {method} {target} {status} {total_us}\""),
        Key::new(
            "rotate_size",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Preset::Size(0),
        )
        .says("The file is rotated when it reaches this size; 0 is never.")
        .example("\"100MiB\""),
        Key::new("rotate", Word(&["never", "daily"]), Preset::Text("never"))
            .says("`\"daily\"` rotates the file when a new day begins (UTC).")
            .example("\"daily\""),
        Key::new(
            "keep",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(7),
        )
        .says("Rotated files that are kept; older ones are deleted.")
        .example("30"),
        Key::new("compress", Flag, Preset::Flag(true))
            .says("Rotated files are compressed with gzip.")
            .example("false"),
    ],
};

/// `[[listen]]`
pub static LISTEN: Table = Table {
    name: "listen",
    header: "`[[listen]]`",
    text: "An address to listen on. Without any, hob listens on `127.0.0.1:8080`, which only this \
           machine can reach.",
    base: None,
    keys: &[
        Key::new("address", Text, Required)
            .says(
                "`\"127.0.0.1:8080\"`, `\"[::1]:8080\"`; `\":8080\"` is every IPv6 and IPv4 \
                 address of the machine; `\"unix:hob.sock\"` a Unix socket; `\"systemd:NAME\"` a \
                 socket handed down by systemd under that name. Port 0 takes a free one.",
            )
            .example("\":80\"")
            .aka(&["port", "host", "bind", "addr"]),
        Key::new(
            "backlog",
            Integer {
                min: 1,
                max: 1_000_000,
            },
            Preset::Integer(1024),
        )
        .says(
            "Connections the kernel holds until they are accepted. The kernel clamps it to \
                 `net.core.somaxconn`.",
        )
        .example("4096"),
        Key::new(
            "send_buffer",
            Size {
                min: 4 * KIB,
                max: GIB,
            },
            Nothing("chosen by the kernel"),
        )
        .says("Send buffer of each connection (SO_SNDBUF).")
        .example("\"256KiB\""),
        Key::new(
            "receive_buffer",
            Size {
                min: 4 * KIB,
                max: GIB,
            },
            Nothing("chosen by the kernel"),
        )
        .says("Receive buffer of each connection (SO_RCVBUF).")
        .example("\"256KiB\""),
        Key::new(
            "notsent_lowat",
            Size { min: KIB, max: GIB },
            Nothing("chosen by the kernel"),
        )
        .says("Bytes not yet sent above which a connection takes no more (TCP_NOTSENT_LOWAT).")
        .example("\"128KiB\""),
        Key::new("user_timeout", TIME_SOME, Nothing("chosen by the kernel"))
            .says(
                "How long sent bytes may stay unacknowledged before the connection is given up \
                 (TCP_USER_TIMEOUT).",
            )
            .example("\"30s\""),
        Key::new("defer_accept", TIME_TO_MINUTE, secs(1))
            .says(
                "How long the kernel keeps a new connection to itself while it has sent nothing \
                 (TCP_DEFER_ACCEPT, in whole seconds): a request is then answered without waiting \
                 twice. Until then the connection counts towards no limit. `\"0s\"` takes \
                 connections at once.",
            )
            .example("\"0s\"")
            .aka(&["deferred", "accept_filter"]),
        Key::new("v6only", Flag, Preset::Flag(false))
            .says("An IPv6 wildcard address takes no IPv4 connections (IPV6_V6ONLY).")
            .example("true")
            .aka(&["ipv6only"]),
        Key::new("log", Text, Inherited("what `default_log` says"))
            .says(
                "Access log of connections from here: the `name` of a `[[log]]`, or `\"off\"`. \
                 Sites and routes may choose otherwise.",
            )
            .example("\"main\"")
            .aka(&["access_log"]),
    ],
};

/// `[[site]]`
pub static SITE: Table = Table {
    name: "site",
    header: "`[[site]]`",
    text: "A virtual host. The site without names answers hosts that no site names; if all have \
           names, the first does.",
    base: Some(&ANSWER),
    keys: &[
        Key::new("names", Texts, Preset::Texts(&[]))
            .says(
                "Host names, in lower case and without port: exact, or `*.example.org` for every \
                 name below. Names outside ASCII are written in punycode (`xn--...`).",
            )
            .example("[\"example.org\", \"*.example.org\"]")
            .aka(&[
                "name",
                "host",
                "hosts",
                "server_name",
                "domain",
                "domains",
                "hostname",
            ]),
        Key::new("root", Path, Nothing("none"))
            .says(
                "Folder whose files are served: the site ends in a route `/*` that answers with \
                 them.",
            )
            .example("\"site\"")
            .aka(&["document_root", "documentroot", "dir", "folder", "path"]),
        Key::new("log", Text, Inherited("the listener's"))
            .says("Access log of this site: the `name` of a `[[log]]`, or `\"off\"`.")
            .example("\"main\"")
            .aka(&["access_log"]),
        Key::new(
            "error_pages",
            Map(&STATUS_TO_PATH),
            Nothing("built-in pages"),
        )
        .says("Files sent as the body of error answers, by status (400 to 599).")
        .example("{ 404 = \"pages/404.html\", 500 = \"pages/500.html\" }")
        .aka(&["error_page", "errors"]),
        Key::new("files", Kind::Table(&FILES), Nothing("")),
        Key::new("route", Tables(&ROUTE), Nothing("")).aka(&["routes", "location"]),
    ],
};

/// `[[site.route]]`
pub static ROUTE: Table = Table {
    name: "route",
    header: "`[[site.route]]`",
    text: "A path pattern and one handler: `files`, `cgi`, `redirect` or `respond`. Routes are \
           tried in order and the first that matches answers, so a narrow pattern stands before \
           a wide one. Keys of `[[site]]` about answers, `headers` to `buffer_max`, may stand here \
           too and hold for the route.",
    base: Some(&ANSWER),
    keys: &[
        Key::new("path", Text, Required)
            .says(
                "`\"/about\"` is that path alone; `\"/docs/*\"` everything below `/docs/`; \
                 `\"*.php\"` and `\"/old/*.php\"` paths with that ending; \
                 `\"/user/{name}/posts\"` captures one segment, `\"/files/{rest*}\"` the rest. \
                 Written decoded: a space is a space, not `%20`.",
            )
            .example("\"/docs/*\"")
            .aka(&["location", "match", "pattern", "url", "uri"]),
        Key::new("files", OrText("root", &ROUTE_FILES), Nothing(""))
            .aka(&["file", "static", "root", "dir", "folder", "alias"]),
        Key::new("cgi", OrText("dir", &CGI), Nothing("")).aka(&[
            "script_alias",
            "scriptalias",
            "cgi_bin",
            "exec",
        ]),
        Key::new("redirect", OrText("to", &REDIRECT), Nothing("")).aka(&["return"]),
        Key::new("respond", Kind::Table(&RESPOND), Nothing("")).aka(&["response", "answer"]),
        Key::new("rewrite", Text, Nothing("none"))
            .says(
                "The path the handler sees instead of the request's; captures of `path` are put \
                 in.",
            )
            .example("\"/pages/{name}.html\""),
        Key::new(
            "body",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Inherited("what `limits.body` says"),
        )
        .says("Largest request body here; a larger one is answered with 413.")
        .example("\"100MiB\"")
        .aka(&["client_max_body_size", "max_body"]),
        Key::new("internal", Flag, Preset::Flag(false))
            .says(
                "The route answers internal redirects of programs only (`Script-Control`, \
                 `X-Accel-Redirect`, a CGI program's local redirect); from outside it is 404.",
            )
            .example("true"),
        Key::new("log", Text, Inherited("the site's"))
            .says("Access log of this route: the `name` of a `[[log]]`, or `\"off\"`.")
            .example("\"off\"")
            .aka(&["access_log"]),
        Key::new(
            "half_close",
            Word(&["cancel", "serve"]),
            Preset::Text("cancel"),
        )
        .says(
            "What it means when a client closes its sending side while a program makes the \
                 answer: `\"cancel\"`, it has left; `\"serve\"`, it still reads.",
        )
        .example("\"serve\""),
    ],
};

/// What is done to answers after their handler: keys of `[[site]]` and of `[[site.route]]`
pub static ANSWER: Table = Table {
    name: "site",
    header: "`[[site]]` and `[[site.route]]`",
    text: "What is done to answers.",
    base: None,
    keys: &[
        Key::new("headers", Map(&HEADER_TO_TEXT), Nothing("none"))
            .says(
                "Header fields set in every answer, errors too; an empty value removes the field. \
                 `Cache-Control` and `Expires` are left out of errors that the server makes.",
            )
            .example("{ X-Frame-Options = \"DENY\", Server = \"\" }")
            .aka(&[
                "header",
                "header_set",
                "set_header",
                "headers_set",
                "response_headers",
            ]),
        Key::new("headers_add", Texts, Preset::Texts(&[]))
            .says("Header fields added to every answer, whatever fields of that name there are.")
            .example("[\"Link: </style.css>; rel=preload; as=style\"]")
            .aka(&["header_add", "add_header", "add_headers", "more_headers"]),
        Key::new("headers_remove", Texts, Preset::Texts(&[]))
            .says("Names of header fields removed from every answer.")
            .example("[\"Server\", \"X-Powered-By\"]")
            .aka(&[
                "header_remove",
                "remove_header",
                "remove_headers",
                "hide_header",
                "header_unset",
            ]),
        Key::new(
            "compress",
            Words(&["zstd", "br", "gzip"]),
            Preset::Texts(&["zstd", "br", "gzip"]),
        )
        .says(
            "Codings in which answers are compressed when the client takes them, the preferred one \
             first, while they are made. An empty list compresses nothing. `compress` of `files` \
             comes first for files.",
        )
        .example("[\"gzip\"]")
        .aka(&["gzip", "encode", "compression"]),
        Key::new("compress_min", Size { min: 0, max: GIB }, Preset::Size(KIB))
            .says("Smaller answers are not compressed; those of unknown size are.")
            .example("\"4KiB\"")
            .aka(&["gzip_min_length"]),
        Key::new("compress_types", Texts, Preset::Texts(COMPRESS_TYPES))
            .says("Media types that are compressed; `text/*` stands for every text type.")
            .example("[\"text/*\", \"application/json\"]")
            .aka(&["gzip_types"]),
        Key::new("intercept_errors", Flag, Preset::Flag(false))
            .says(
                "Pages of `error_pages` take the place of error pages that a program makes. \
                 Without it they are sent for errors of the server's own, and where a program \
                 sends a status and no body.",
            )
            .example("true")
            .aka(&[
                "proxy_intercept_errors",
                "fastcgi_intercept_errors",
                "error_override",
            ]),
        Key::new("sendfile", Texts, Preset::Texts(&[]))
            .says(
                "Folders below which a program may name a file to be sent in the place of its \
                 output, with `Script-Control: sendfile=PATH` or `X-Sendfile: PATH`. Without any, \
                 such an answer is a 502.",
            )
            .example("[\"/var/files\"]")
            .aka(&[
                "xsendfile",
                "x_sendfile",
                "xsendfile_path",
                "sendfile_roots",
            ]),
        Key::new("buffer_max", Size { min: 0, max: GIB }, Preset::Size(MIB))
            .says(
                "Largest answer collected for a program that asks for it with `Script-Control: \
                 buffer=on`; a larger one is sent as it comes.",
            )
            .example("\"8MiB\"")
            .aka(&["buffer", "buffer_size"]),
    ],
};

/// Media types that are compressed unless the config says otherwise.
const COMPRESS_TYPES: &[&str] = &[
    "text/*",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/wasm",
    "application/xhtml+xml",
    "application/xml",
    "application/rss+xml",
    "application/atom+xml",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
    "font/ttf",
    "font/otf",
];

/// `[site.files]`, and most of `[site.route.files]`
pub static FILES: Table = Table {
    name: "files",
    header: "`[site.files]`",
    text: "How files are served. In `[site.files]` for the whole site, in a route's `files` for \
           that route.",
    base: None,
    keys: &[
        Key::new(
            "keep_prefix",
            Flag,
            Nothing("false; true where a route takes its root from the site"),
        )
        .says(
            "The whole path is looked up below the root, not only what follows the route's \
                 prefix: with `path = \"/docs/*\"` and `root = \"manual\"`, `/docs/a` is \
                 `manual/docs/a` instead of `manual/a`.",
        )
        .example("true"),
        Key::new("index", Texts, Preset::Texts(&["index.html"]))
            .says("Files that answer for a folder; the first that exists is sent.")
            .example("[\"index.html\", \"index.htm\"]")
            .aka(&["indexes", "default"]),
        Key::new("listing", Flag, Preset::Flag(false))
            .says("A folder without an index is answered with a list of its files.")
            .example("true")
            .aka(&["autoindex", "browse", "directory_listing"]),
        Key::new("fallback", Text, Nothing("none"))
            .says(
                "File below the root that answers with 200 when nothing is found, for single-page \
                 applications.",
            )
            .example("\"index.html\"")
            .aka(&["try_files", "spa"]),
        Key::new(
            "precompressed",
            Words(&["br", "zst", "gz"]),
            Preset::Texts(&["br", "zst", "gz"]),
        )
        .says(
            "Endings of compressed copies that lie beside a file (`style.css.br`) and are \
                 sent to clients that take them.",
        )
        .example("[\"br\"]"),
        Key::new(
            "compress",
            Words(&["zstd", "br", "gzip"]),
            Preset::Texts(&["zstd", "br", "gzip"]),
        )
        .says(
            "Codings in which files are compressed when asked for, the preferred one first; \
                 the cache keeps the result. An empty list compresses nothing.",
        )
        .example("[\"gzip\"]")
        .aka(&["gzip", "encode"]),
        Key::new("compress_min", Size { min: 0, max: GIB }, Preset::Size(KIB))
            .says("Smaller files are not compressed.")
            .example("\"4KiB\""),
        Key::new("compress_types", Texts, Preset::Texts(COMPRESS_TYPES))
            .says("Media types that are compressed; `text/*` stands for every text type.")
            .example("[\"text/*\", \"application/json\"]")
            .aka(&["gzip_types"]),
        Key::new("dot_files", Flag, Preset::Flag(false))
            .says("Files and folders whose name begins with a dot are served.")
            .example("true"),
        Key::new(
            "symlinks",
            Word(&["inside", "follow", "refuse"]),
            Preset::Text("inside"),
        )
        .says(
            "Symbolic links that are followed: those that stay `\"inside\"` the root, all \
                 (`\"follow\"`), none (`\"refuse\"`).",
        )
        .example("\"follow\"")
        .aka(&["follow_symlinks"]),
        Key::new("charset", Text, Preset::Text("utf-8"))
            .says("`charset` parameter of text types; empty adds none.")
            .example("\"iso-8859-1\""),
        Key::new("types", Map(&ENDING_TO_TYPE), Nothing("built-in table"))
            .says("Media types by ending, before the built-in table.")
            .example("{ \".mjs\" = \"text/javascript\" }")
            .aka(&["mime", "mime_types"]),
        Key::new("cache_control", Text, Preset::Text(""))
            .says("Value of the `Cache-Control` field; empty sends none.")
            .example("\"public, max-age=3600\"")
            .aka(&["expires"]),
        Key::new("cache", Word(&["auto", "off", "pin"]), Preset::Text("auto"))
            .says(
                "`\"auto\"` keeps files by use; `\"off\"` keeps none; `\"pin\"` loads all at \
                 start and never drops them.",
            )
            .example("\"pin\""),
    ],
};

/// `[site.route.files]`
pub static ROUTE_FILES: Table = Table {
    name: "files",
    header: "`files` of a route",
    text: "Static files. A plain string is the root. Keys not given here are as in `[site.files]`.",
    base: Some(&FILES),
    keys: &[Key::new("root", Path, Inherited("the site's `root`"))
        .says("The folder. What follows the route's prefix is looked up here.")
        .example("\"manual\"")
        .aka(&["dir", "folder", "path", "document_root", "alias"])],
};

/// `[site.route.redirect]`
pub static REDIRECT: Table = Table {
    name: "redirect",
    header: "`redirect` of a route",
    text: "Sends the client to another place. A plain string is the target.",
    base: None,
    keys: &[
        Key::new("to", Text, Required)
            .says(
                "Target: a path or a URL. Captures of the route's path are put in, as are \
                 `{path}`, `{query}` and `{host}`.",
            )
            .example("\"https://example.org{path}\"")
            .aka(&["target", "url", "location"]),
        Key::new(
            "status",
            Integer { min: 100, max: 999 },
            Preset::Integer(302),
        )
        .says(
            "301 or 308 for good, 302, 303 or 307 for now; 307 and 308 keep the method. \
                 Browsers remember the permanent ones, also a mistaken one, so the default is \
                 temporary.",
        )
        .example("308")
        .aka(&["code"]),
    ],
};

/// `[site.route.respond]`
pub static RESPOND: Table = Table {
    name: "respond",
    header: "`respond` of a route",
    text: "A fixed answer.",
    base: None,
    keys: &[
        Key::new(
            "status",
            Integer { min: 200, max: 599 },
            Preset::Integer(200),
        )
        .says("Status code.")
        .example("410")
        .aka(&["code"]),
        Key::new(
            "content_type",
            Text,
            Preset::Text("text/plain; charset=utf-8"),
        )
        .says("Media type of the body.")
        .example("\"application/json\"")
        .aka(&["type", "mime"]),
        Key::new("body", Text, Preset::Text(""))
            .says("The body.")
            .example("\"gone\"")
            .aka(&["text", "content"]),
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
        Key::new("pass_authorization", Flag, Preset::Flag(false))
            .says(
                "Programs see the `Authorization` field, with passwords in it, as \
                 `HTTP_AUTHORIZATION`. Those that log people in themselves need it.",
            )
            .example("true")
            .aka(&["authorization", "cgipassauth"]),
        Key::new("dev", Flag, Preset::Flag(false))
            .says(
                "A program's failure is explained in the browser: why it failed, and what it \
                 printed on standard error. Only where no stranger can look.",
            )
            .example("true")
            .aka(&["debug", "development"]),
        Key::new(
            "concurrent",
            Integer {
                min: 1,
                max: 100_000,
            },
            Preset::Integer(64),
        )
        .says("Processes of this route at once; more requests wait in its queue.")
        .example("8")
        .aka(&["max_processes", "workers", "limit"]),
        Key::new(
            "queue",
            Integer {
                min: 0,
                max: 1_000_000,
            },
            Preset::Integer(1024),
        )
        .says("Requests that wait for a process; more are answered with 503.")
        .example("100")
        .aka(&["backlog", "max_queue"]),
        Key::new("queue_time", TIME_SOME, secs(30))
            .says("How long a request waits for a process; then 503.")
            .example("\"10s\""),
        Key::new("first_byte", TIME_SOME, secs(60))
            .says(
                "From a program's start until the head of its answer is complete; then it is ended \
                 and the answer is 504.",
            )
            .example("\"10s\"")
            .aka(&["timeout", "read_timeout"]),
        Key::new("total", TIME_SOME, secs(600))
            .says(
                "From a program's start until the end; then it is ended, and an answer that has \
                 begun breaks off.",
            )
            .example("\"1h\"")
            .aka(&["max_time", "harakiri", "kill_after"]),
        Key::new("head", Size { min: 256, max: MIB }, Preset::Size(64 * KIB))
            .says("Longest head of a program's answer; a longer one is a 502.")
            .example("\"16KiB\"")
            .aka(&["header_size", "buffer_size"]),
        Key::new("linger", TIME_TO_MINUTE, secs(2))
            .says(
                "How long the output of a program that has ended stays open for what it left \
                 running, and how long the end of one is waited for that has closed its output: \
                 only then is known that nothing is missing.",
            )
            .example("\"500ms\""),
        Key::new("grace", TIME_TO_MINUTE, secs(5))
            .says(
                "Between SIGTERM and SIGKILL, when a program is ended: its client has left, or its \
                 time is up.",
            )
            .example("\"1s\"")
            .aka(&["kill_timeout", "stop_timeout"]),
    ],
};

/// `site.error_pages`
static STATUS_TO_PATH: MapOf = MapOf {
    key: "status",
    value: MapValue::Path,
};
/// `site.headers` and `site.route.headers`
static HEADER_TO_TEXT: MapOf = MapOf {
    key: "header name",
    value: MapValue::Text,
};
/// `site.files.types`
static ENDING_TO_TYPE: MapOf = MapOf {
    key: "ending",
    value: MapValue::Text,
};

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

/// Handlers a route can have.
pub const HANDLERS: &[&str] = &["files", "cgi", "redirect", "respond"];

/// Handlers that later versions have; naming one is told apart from a misspelling.
pub const HANDLERS_LATER: &[&str] = &[
    "warm", "resident", "session", "page", "fastcgi", "scgi", "proxy",
];

/// Statuses a redirect may have.
pub const REDIRECT_STATUSES: &[u16] = &[301, 302, 303, 307, 308];

const fn secs(count: u64) -> Preset {
    Preset::Time(Duration::from_secs(count))
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const SIZE_ANY: Kind = Size { min: MIB, max: TIB };
const TIME_OF_CPU: Kind = Time {
    min: Duration::from_secs(1),
    max: Duration::from_secs(86_400),
};
const TIME_SOME: Kind = Time {
    min: Duration::from_millis(1),
    max: Duration::from_secs(86_400),
};
const TIME_TO_MINUTE: Kind = Time {
    min: Duration::ZERO,
    max: Duration::from_secs(60),
};
const TIME_TO_HOUR: Kind = Time {
    min: Duration::ZERO,
    max: Duration::from_secs(3600),
};
