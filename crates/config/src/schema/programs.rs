//! Keys of programs: who they run as, and what they may use.

use super::*;

/// `[program]`, and the base of every handler's table that runs programs
pub static PROGRAM: SchemaTable = SchemaTable {
    name: "program",
    header: "`[program]`",
    text: "How programs run. In `[program]` for all of them, in a route's handler for that route; \
           what a route does not say is as in `[program]`.",
    base: None,
    keys: &[
        SchemaKey::new(
            "user",
            Text,
            Nothing("when hob is started as root: `nobody`, or another account without rights that is not the server's; else the user hob runs as"),
        )
        .says(
            "Account the program runs as when hob is started as root: a name, or a number. Never \
             root. With a capture in it, `\"{user}\"`, a route's `cgi` runs each program as the \
             account whose folder it is in: `dir` has the same capture.",
        )
        .example("\"wiki\"")
        .aka(&["account", "run_as"]),
        SchemaKey::new("group", Text, Nothing("the groups of `user`"))
            .says("Group the program runs as, instead of the main group of `user`.")
            .example("\"www-data\""),
        SchemaKey::new("env", Map(&VARIABLE_TO_TEXT), Nothing("none"))
            .says(
                "Variables of the program's environment, besides `PATH` and those a request has. \
                 An empty value is an empty variable. In a route's `fastcgi` and `scgi`, every \
                 request has those of the route too, before its own.",
            )
            .example("{ LANG = \"C.UTF-8\", WIKI_ROOT = \"/srv/wiki\" }")
            .aka(&["variables"]),
        SchemaKey::new("umask", Text, Nothing("what hob was started with"))
            .says("Permissions that files made by the program do not get, in octal.")
            .example("\"027\""),
        SchemaKey::new(
            "nice",
            Integer { min: -20, max: 19 },
            Nothing("one above the server's `nice`, so that the server is served first"),
        )
        .says("Nice level of the program. Lower than hob's own needs root.")
        .example("10")
        .aka(&["priority"]),
        SchemaKey::new(
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
        SchemaKey::new("cpus", Cpus, Preset::Texts(&[]))
            .says("CPUs the program may run on. An empty list is every CPU hob is allowed.")
            .example("[\"2-3\"]")
            .aka(&["affinity"]),
        SchemaKey::new("rlimits", ValueType::Table(&RLIMITS), Nothing("")).aka(&["ulimit", "rlimit"]),
        SchemaKey::new("sandbox", ValueType::Table(&SANDBOX), Nothing("")),
        SchemaKey::new("cgroup", ValueType::Table(&CGROUP), Nothing("")),
    ],
};

/// Numbers of accounts that people have begin and end here on most systems.
const ID_MIN: i64 = 1000;
const ID_MAX: i64 = 60_000;
/// All numbers that an account other than root's may have.
const ID: ValueType = Integer {
    min: 1,
    max: u32::MAX as i64 - 1,
};

/// `[site.route.cgi.uids]`
pub static UIDS: SchemaTable = SchemaTable {
    name: "uids",
    header: "`[site.route.cgi.uids]`",
    text: "Accounts that a `user` with a capture may mean, by their numbers. Nobody else's program \
           runs.",
    base: None,
    keys: &[
        SchemaKey::new("min", ID, Preset::Integer(ID_MIN))
            .says("The smallest number of an account.")
            .example("2000"),
        SchemaKey::new("max", ID, Preset::Integer(ID_MAX))
            .says("The largest.")
            .example("2999"),
    ],
};

/// `[site.route.cgi.gids]`
pub static GIDS: SchemaTable = SchemaTable {
    name: "gids",
    header: "`[site.route.cgi.gids]`",
    text: "The same for the main group of such an account.",
    base: None,
    keys: &[
        SchemaKey::new("min", ID, Preset::Integer(ID_MIN))
            .says("The smallest number of a group.")
            .example("100"),
        SchemaKey::new("max", ID, Preset::Integer(ID_MAX))
            .says("The largest.")
            .example("2999"),
    ],
};

/// `[program.rlimits]`
pub static RLIMITS: SchemaTable = SchemaTable {
    name: "rlimits",
    header: "`[program.rlimits]`",
    text: "Resource limits of each process, as `ulimit` sets them; soft and hard limit alike.",
    base: None,
    keys: &[
        SchemaKey::new("as", SIZE_ANY, Nothing("none"))
            .says("Address space of one process (RLIMIT_AS).")
            .example("\"512MiB\"")
            .aka(&["address_space", "memory", "vmem"]),
        SchemaKey::new("core", Size { min: 0, max: TIB }, Preset::Size(0))
            .says("Largest core file (RLIMIT_CORE).")
            .example("\"100MiB\""),
        SchemaKey::new("cpu", TIME_OF_CPU, Nothing("none"))
            .says("CPU time of one process, in whole seconds; then it is ended (RLIMIT_CPU).")
            .example("\"30s\""),
        SchemaKey::new("data", SIZE_ANY, Nothing("none"))
            .says("Data segment of one process (RLIMIT_DATA).")
            .example("\"256MiB\""),
        SchemaKey::new(
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
        SchemaKey::new(
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
        SchemaKey::new(
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
        SchemaKey::new(
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
pub static SANDBOX: SchemaTable = SchemaTable {
    name: "sandbox",
    header: "`[program.sandbox]`",
    text: "What a program reaches. As soon as one of `read`, `write` and `execute` is set, \
           everything they do not name is out of reach (Landlock).",
    base: None,
    keys: &[
        SchemaKey::new("no_new_privs", Flag, Preset::Flag(true))
            .says(
                "The program and what it starts gain no rights by set-user-ID programs. `sudo`, \
                 `ping` and some versions of `sendmail` need `false`. It holds in any case as soon \
                 as one of `read`, `write` and `execute` is set: Landlock needs it.",
            )
            .example("false")
            .aka(&["no_new_privileges"]),
        SchemaKey::new("read", Texts, Preset::Texts(&[]))
            .says("Files and folders that may be read.")
            .example("[\"/etc\", \"/srv/wiki\"]"),
        SchemaKey::new("write", Texts, Preset::Texts(&[]))
            .says("Files and folders that may be read, written, made and removed.")
            .example("[\"/srv/wiki/data\", \"/tmp\"]"),
        SchemaKey::new("execute", Texts, Preset::Texts(&[]))
            .says(
                "Files and folders that may be read and executed. The program, its interpreter \
                 and their libraries belong here.",
            )
            .example("[\"/usr\", \"/bin\", \"/lib\", \"/lib64\"]"),
        SchemaKey::new(
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
pub static CGROUP: SchemaTable = SchemaTable {
    name: "cgroup",
    header: "`[program.cgroup]`",
    text: "Limits of all processes of a program together, in a control group of its own. They need \
           cgroup v2 with these controllers, or v1 with `memory` and `pids` mounted, and the right \
           to make groups; `hob status` says what could not be applied.",
    base: None,
    keys: &[
        SchemaKey::new("memory", SIZE_ANY, Nothing("none"))
            .says("Memory; at the limit processes of the program are killed.")
            .example("\"1GiB\"")
            .aka(&["memory_max"]),
        SchemaKey::new(
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
        SchemaKey::new(
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

/// `program.env`
static VARIABLE_TO_TEXT: MapOf = MapOf {
    key: "variable",
    value: MapValue::Text,
};
