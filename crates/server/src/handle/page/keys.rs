//! Keys of `page`, and of the databases that pages use.

use std::time::Duration;

use hob_page::escape::EscapeMode;

use crate::handle::config::key::Preset::{Nothing, Required};
use crate::handle::config::key::ValueType::{
    Flag, Integer, OrFlag, Path, Size, Table, Tables, Text, Texts, Time, Word,
};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, joined};
use crate::handle::config::schema::{KIB, MIB};
use crate::handle::script::visits::keys::{QUEUE_MAX, VISIT_KEYS};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// `[site.route.page]`
pub(crate) static PAGE: SchemaTable = SchemaTable {
    name: "page",
    header: "`page` of a route",
    text: "Pages of the macro language: text with variables, functions and statements of SQL in it. \
           Old macros of Net.Data run as they are. The path behind the route is that of a page, \
           and its last part the block that is asked for: `parts.page/list`. A plain string is \
           `dir`.",
    base: None,
    keys: &[
        SchemaKey::new("dir", Path, Required)
            .says("Folder of the pages. Nothing outside of it is read, but what `ini` names.")
            .example("\"macros\"")
            .aka(&["root", "path", "folder"]),
        SchemaKey::new("endings", Texts, Preset::Texts(ENDINGS))
            .says(
                "How names of pages end; others are not there. Files that pages include may have \
                 any name. A file of SQL is a page if its first line is `-- hob: page`.",
            )
            .example("[\".page\", \".d2w\"]")
            .aka(&["extensions", "suffixes"]),
        SchemaKey::new("database", Text, Nothing("none"))
            .says(
                "The database of these pages: the name of a `[[database]]`, or what `url` of one \
                 says. Pages may name any other `[[database]]` as `DATABASE`.",
            )
            .example("\"sqlite:stock.db\"")
            .aka(&["db", "datasource"]),
        SchemaKey::new("ini", Path, Nothing("none"))
            .says(
                "The initialization file of Net.Data, as it is. Of its paths, MACRO_PATH and \
                 INCLUDE_PATH name more folders of pages and of files that they include, FFI_PATH \
                 folders below `files`; relative ones are relative to it.",
            )
            .example("\"db2www.ini\""),
        SchemaKey::new("files", Path, Nothing("none"))
            .says(
                "Folder of flat files (`DTWF_`). Pages read files below it and no others, and look \
                 for them in the folders of FFI_PATH that are below it.",
            )
            .example("\"data\"")
            .aka(&["ffi", "ffi_path", "flat_files"]),
        SchemaKey::new("files_write", Flag, Preset::Flag(false))
            .says("Pages also write those files, make and remove them.")
            .example("true")
            .aka(&["writable"]),
        SchemaKey::new("registries", Path, Nothing("none"))
            .says("Folder of registries (`DTWR_`), which pages read and write: a file for each.")
            .example("\"registries\"")
            .aka(&["registry"]),
        SchemaKey::new("programs", Texts, Preset::Texts(&[]))
            .says(
                "Programs that these pages may call by `%EXEC`: the `name` of each route that runs \
                 one by `cgi`, `warm` or `resident`. They run as other requests for that route do; \
                 without `internal`, clients may ask for it too. Of a folder of programs, pages \
                 name one behind a slash: `tools/rpt.pl`.",
            )
            .example("[\"rpt.pl\", \"stock\"]")
            .aka(&["exec", "calls"]),
        SchemaKey::new(
            "program_output",
            Size {
                min: KIB,
                max: 256 * MIB,
            },
            Preset::Size(MIB),
        )
        .says("What a program may print for one call of a page; one that prints more is ended.")
        .example("\"64KiB\""),
        SchemaKey::new("escape", Word(ESCAPE_WORDS), Preset::Text("context"))
            .says(
                "How data is written into pages: `\"context\"` as it is safe where it stands, \
                 `\"html\"` as text of HTML everywhere, `\"off\"` as it is: whoever can put \
                 something into the database or the request then says what the page does.",
            )
            .example("\"html\""),
        SchemaKey::new("logins", Flag, Preset::Flag(false))
            .says("Pages may say `LOGIN` and `PASSWORD` for a database.")
            .example("true"),
        SchemaKey::new("threads", Integer { min: 1, max: 256 }, Preset::Integer(8))
            .says(
                "Pages that run at once and may wait for a disk. Pages with a database have as many \
                 as its `connections`; those that wait for nothing run beside these.",
            )
            .example("16"),
        SchemaKey::new(
            "queue",
            Integer {
                min: 0,
                max: 100_000,
            },
            Preset::Integer(1_000),
        )
        .says("Requests that wait for one of them. More are refused (503).")
        .example("100"),
        SchemaKey::new(
            "time",
            Time {
                min: Duration::from_millis(1),
                max: HOUR,
            },
            Preset::Time(Duration::from_secs(30)),
        )
        .says(
            "How long a page may take, with waiting. One that runs for longer is ended, and what it \
             wrote undone (504).",
        )
        .example("\"5s\"")
        .aka(&["timeout"]),
        SchemaKey::new("session", OrFlag("handle", &SESSION), Nothing("")).example("true"),
        SchemaKey::new("dev", Flag, Preset::Flag(false))
            .says("What is wrong with a page is shown to whoever asked for it.")
            .example("true"),
    ],
};

/// `[site.route.page.session]`
pub(crate) static SESSION: SchemaTable = SchemaTable {
    name: "session",
    header: "`session` of `page`",
    text: "Pages that call `@DTW_STATIC` last over several requests of a visitor: they keep their \
           variables, and what was written but not committed, until they call `@DTW_TERMINATE` or \
           the visitor does not come back, which undoes it. A plain string is `handle`; `true` is \
           a table without keys.",
    base: None,
    keys: &joined::<{ VISIT_KEYS.len() + 1 }>(&[
        VISIT_KEYS,
        &[SchemaKey::new("queue", Table(&VISITOR_QUEUE), Nothing(""))],
    ]),
};

/// `[site.route.page.session.queue]`
pub(crate) static VISITOR_QUEUE: SchemaTable = SchemaTable {
    name: "queue",
    header: "`queue` of `session` of `page`",
    text: "Requests of one visitor that wait for the one before; `time` counts that too.",
    base: None,
    keys: &[QUEUE_MAX],
};

const ENDINGS: &[&str] = &[".page", ".sql", ".d2w", ".mac", ".ndm", ".dtw", ".mbr"];
const ESCAPE_WORDS: &[&str] = &["context", "html", "off"];

/// What a word of `escape` means.
pub(super) fn escape_mode(word: &str) -> EscapeMode {
    match word {
        "html" => EscapeMode::Html,
        "off" => EscapeMode::Off,
        _ => EscapeMode::Context,
    }
}

/// The key of the top level that is a list of databases.
pub(in crate::handle) const DATABASES: SchemaKey =
    SchemaKey::new("database", Tables(&DATABASE), Nothing("")).aka(&["databases", "datasource"]);

/// `[[database]]`
pub(crate) static DATABASE: SchemaTable = SchemaTable {
    name: "database",
    header: "`[[database]]`",
    text: "A database that pages use by its name.",
    base: None,
    keys: &[
        SchemaKey::new("name", Text, Required)
            .says("What `database` of a `page` and `DATABASE` of pages call it.")
            .example("\"stock\""),
        SchemaKey::new("url", Text, Required)
            .says(
                "Where it is: `sqlite:` and a file, which is relative to this one, \
                 `postgres://USER@HOST/DATABASE` (`?host=FOLDER` of a socket, `sslmode`, \
                 `sslrootcert`, `connect_timeout` as in libpq), or `odbc:` and what ODBC has for \
                 it, such as `odbc:DSN=stock;UID=shop` or `odbc:Driver=NAME;Server=HOST`, where \
                 unixODBC and that driver are installed.",
            )
            .example("\"sqlite:stock.db\"")
            .aka(&["file", "path", "dsn"]),
        SchemaKey::new("password_file", Path, Nothing("none"))
            .says(
                "File with the password for it, on one line. The server's user must be able to \
                 read it.",
            )
            .example("\"/etc/hob/stock.password\""),
        SchemaKey::new("readonly", Flag, Preset::Flag(false))
            .says(
                "Nothing is written, whatever a page says. Over ODBC a statement that does not \
                 look as if it only read is refused, and nothing is kept; more depends on the \
                 driver, so let its user read only.",
            )
            .example("true")
            .aka(&["read_only"]),
        SchemaKey::new("create", Flag, Preset::Flag(false))
            .says("A file of SQLite is made where it is not there.")
            .example("true"),
        SchemaKey::new(
            "connections",
            Integer { min: 1, max: 256 },
            Preset::Integer(8),
        )
        .says(
            "Connections at once, and so runs of pages that use it. Over ODBC each is a process of \
             its own.",
        )
        .example("4")
        .aka(&["max", "pool", "pool_size"]),
        SchemaKey::new(
            "memory",
            Size {
                min: 32 * MIB,
                max: 1 << 40,
            },
            Preset::Size(hob_odbc::MEMORY_BYTES),
        )
        .says(
            "Over ODBC: memory that the process of a connection may have, for data and stacks, \
             not for what it maps of files. Most drivers crash where they get no more: that run \
             ends (502), and the next one has another process.",
        )
        .example("\"2GiB\""),
        SchemaKey::new(
            "busy",
            Time {
                min: Duration::ZERO,
                max: HOUR,
            },
            Preset::Time(Duration::from_secs(5)),
        )
        .says("How long a statement waits for another writer, in SQLite.")
        .example("\"2s\"")
        .aka(&["busy_timeout"]),
        SchemaKey::new(
            "slow",
            Time {
                min: Duration::ZERO,
                max: HOUR,
            },
            Preset::Time(SECOND),
        )
        .says("A statement that takes longer is told in the log, with its rows.")
        .example("\"200ms\""),
        SchemaKey::new("plan", Flag, Preset::Flag(false))
            .says(
                "Ask the database how it runs a statement that was slow, and tell that beside it: \
                 in the log, and in the record of the request. PostgreSQL names values that \
                 visitors sent in it.",
            )
            .example("true"),
    ],
};
