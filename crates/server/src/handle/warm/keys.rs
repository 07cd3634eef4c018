//! Keys of `warm`.

use crate::handle::cgi::keys::{
    CONCURRENT, EVENTS, EXIT, FIRST_BYTE, GRACE, HEAD, LINGER, QUEUE, QUEUE_TIME, SYMLINKS_TO,
    TOTAL, VALUES,
};
use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{Flag, Integer, Path, Text, Texts};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable};
use crate::handle::config::schema::PROGRAM;
use crate::handle::script::keys::{DEV, PASS_AUTHORIZATION};

/// `[site.route.warm]`
pub(crate) static WARM: SchemaTable = SchemaTable {
    name: "warm",
    header: "`warm` of a route",
    text: "Unchanged CGI scripts in Python or Perl, each request a fork of an interpreter that has \
           started already. A plain string is the folder of the scripts. How they run is as in \
           `[program]`, where nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &[
        SchemaKey::new("dir", Path, Nothing("none; give `dir` or `script`"))
            .says(
                "Folder of scripts: what follows the route's prefix names one, and what follows \
                 that is its `PATH_INFO`. Nothing in it is ever sent as a file.",
            )
            .example("\"reports\"")
            .aka(&["root", "folder", "directory", "path"]),
        SchemaKey::new("script", Path, Nothing("none"))
            .says("One script for every path of the route; what follows is its `PATH_INFO`.")
            .example("\"/srv/wiki/wiki.py\"")
            .aka(&["file", "program", "exec", "run"]),
        SchemaKey::new(
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
        SchemaKey::new("preload", Texts, Preset::Texts(&[]))
            .says(
                "Modules that the interpreter loads before the first request, so that no request \
                 does. They must not start threads.",
            )
            .example("[\"json\", \"sqlite3\"]")
            .aka(&["modules", "imports", "use"]),
        SchemaKey::new("hosts", Integer { min: 1, max: 64 }, Preset::Integer(1))
            .says(
                "Interpreters kept at once. One forks some thousand times a second, so only \
                 machines of many CPUs need more.",
            )
            .example("4"),
        SchemaKey::new("compile", Flag, Preset::Flag(true))
            .says(
                "Scripts are kept compiled until their file changes. A Perl script's `BEGIN` \
                 blocks and `use` then run once, without a request; with `false` each request \
                 compiles its script.",
            )
            .example("false")
            .aka(&["cache"]),
        SchemaKey::new(
            "index",
            Texts,
            Preset::Texts(&["index.cgi", "index.py", "index.pl"]),
        )
        .says("Scripts that answer for a folder; the first that exists is run.")
        .example("[\"index.py\"]")
        .aka(&["indexes", "default"]),
        SYMLINKS_TO,
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
