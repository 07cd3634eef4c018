//! Words for what this version has not.

use hob_config::foreign::{Foreign, lacks};
use hob_config::schema::LISTEN;

use super::super::keys::{ROOT, ROUTE, SITE};
use crate::handle::files::keys::{FILES, ROUTE_FILES};

/// Where what lacks is told together with what comes nearest.
const COMING: &str = "how-to/coming-from.md";

pub(super) static WORDS: &[Foreign] = &[
    lacks(
        &["ProxyRequests"],
        "Apache",
        "forward proxy",
        "`proxy` in a route passes requests on to servers that the config names",
        COMING,
    ),
    lacks(
        &["ajp"],
        "Apache",
        "AJP client",
        "what speaks HTTP, FastCGI or SCGI too answers a route with `proxy`, `fastcgi` or `scgi`",
        COMING,
    ),
    lacks(
        &["templates", "template"],
        "Caddy",
        "templates of that kind",
        "pages with variables and SQL are `page`; a script makes others: `cgi`, `warm` or `resident`",
        COMING,
    ),
    lacks(
        &[
            "auth_digest",
            "ldap",
        ],
        "nginx, Apache",
        "other ways to sign in than with a name and a password",
        "`[[auth]]` and `require` ask for names and passwords, tokens (`jwt`) or a service (`forward`), `certificates` \
         in `access` for certificates, and a program may check `Authorization` itself (`pass_authorization = true`)",
        "how-to/sign-in.md",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    lacks(
        &["map", "set", "SetEnvIf", "vars"],
        "nginx, Apache, Caddy, Unit",
        "variables of the config's own",
        "`when` of a route says which requests it answers, captures of its `path` are put into \
         targets, and `env` is what programs are told",
        "how-to/when.md",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    lacks(
        &[
            "webdav",
            "dav",
            "dav_methods",
            "dav_access",
            "create_full_put_path",
        ],
        "nginx, Apache, lighttpd, Caddy",
        "WebDAV",
        "files are only read; a program may take PUT and the rest",
        COMING,
    ),
    lacks(
        &[
            "ssi",
            "ssi.extension",
            "XBitHack",
            "Includes",
            "server_side_includes",
            "AddOutputFilter",
            "sub_filter",
            "addition_types",
        ],
        "nginx, Apache, lighttpd",
        "server-side includes",
        "a script puts the page together: `cgi`, `warm` or `resident`",
        COMING,
    ),
    lacks(
        &["AllowOverride", "AccessFileName", "htaccess", ".htaccess"],
        "Apache",
        "`.htaccess`",
        "what such files say stands in the config, as routes",
        COMING,
    ),
    lacks(
        &[
            "proxy_cache",
            "proxy_cache_path",
            "fastcgi_cache",
            "fastcgi_cache_path",
            "proxy_cache_valid",
            "CacheRoot",
            "purge",
        ],
        "nginx, Apache",
        "cache of what programs answer",
        "files are kept in memory by `[cache]`; programs may send `Cache-Control` for others' \
         caches",
        COMING,
    ),
    lacks(
        &[
            "gzip_comp_level",
            "brotli_comp_level",
            "DeflateCompressionLevel",
            "compression_level",
        ],
        "nginx, Apache",
        "choice of the level of compression",
        "files that are compressed beforehand are sent as they are (`precompressed`)",
        "how-to/files.md",
    ),
    lacks(
        &[
            "mirror",
            "image_filter",
            "mp4",
            "flv",
            "secure_link",
            "stream",
            "mail",
            "js_import",
            "lua",
            "content_by_lua_block",
            "perl_set",
            "magnet",
        ],
        "nginx, lighttpd",
        "scripts and filters inside the server",
        "a program makes such answers: `cgi`, `warm` or `resident`",
        COMING,
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
];
