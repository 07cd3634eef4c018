//! Keys of `fastcgi`.

use crate::handle::config::key::Preset::{Inherited, Nothing};
use crate::handle::config::key::ValueType::{Flag, Integer, Path, Text, TextOrTexts, Texts};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, joined};
use crate::handle::config::schema::PROGRAM;
use crate::handle::upstream::keys::KEEP_KEYS;
use crate::handle::upstream::program::keys::PROGRAM_KEYS;
use crate::handle::upstream::run::keys::{RECYCLE_KEY, RUN_KEYS};

/// `[site.route.fastcgi]`
pub(crate) static FASTCGI: SchemaTable = SchemaTable {
    name: "fastcgi",
    header: "`fastcgi` of a route",
    text: "Programs that speak FastCGI: php-fpm, for one. `run` has hob start one, `to` says where \
           one listens that others keep. A plain string is `to`. How a program of `run` runs is as \
           in `[program]`, where nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &joined::<{ RUN_KEYS.len() + OWN_KEYS.len() + KEEP_KEYS.len() + PROGRAM_KEYS.len() }>(&[
        RUN_KEYS,
        OWN_KEYS,
        KEEP_KEYS,
        PROGRAM_KEYS,
    ]),
};

/// Of `fastcgi` alone.
const OWN_KEYS: &[SchemaKey] = &[
    RECYCLE_KEY,
    SchemaKey::new("to", TextOrTexts, Preset::Texts(&[]))
        .says(
            "Where it listens: `unix:PATH`, an IP address or a name and a port, `tls://` and these \
             where TLS is spoken, or `srv:` and a service that name servers have; a list where \
             several do. The account of the server must be able to write to a socket.",
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
    SchemaKey::new(
        "keep",
        Integer {
            min: 0,
            max: 10_000,
        },
        Preset::Integer(0),
    )
    .says(
        "Connections to each member that stay open between requests, of all threads together; \
         none rests while a new one waits to be taken. Each holds a child of php-fpm for \
         itself, also while it rests: keep fewer than `pm.max_children` where others ask the \
         same pool. Where hob is the only one, as many of both `connections` and `keep` as \
         there are children cost least. 0 opens one for each request.",
    )
    .example("4")
    .aka(&["keep_conn"]),
];
