//! Words about sites, routes, files, answers and TLS.

use hob_config::foreign::{Foreign, keys, needless};
use hob_config::schema::{LISTEN, LISTEN_TLS};

use super::super::keys::{ROOT, ROUTE, SITE};
use crate::handle::files::keys::{FILES, ROUTE_FILES};
use crate::handle::resident::keys::RESIDENT;

const FOLDER_WORDS: &[&str] = &[
    "root",
    "share",
    "alias",
    "file_server",
    "static-map",
    "alias.url",
];

const SIGN_IN: &str = "`[[auth]]` with `name = \"staff\"` and `htpasswd = \"FILE\"`, and \
     `require = \"staff\"` in `[[site]]` or `[[site.route]]`";

pub(super) static WORDS: &[Foreign] = &[
    keys(
        &["VirtualHost", "vhost", "virtual_host"],
        "Apache, nginx",
        &["site"],
        "one `[[site]]` for each, with `names = [\"example.org\"]`",
    ),
    keys(
        &["server"],
        "nginx",
        &["site"],
        "one `[[site]]` for each, with `names = [\"example.org\"]`",
    )
    .only_in(&[&ROOT, &SITE]),
    keys(
        &["http", "virtualHosts"],
        "nginx, Caddy",
        &["site", "listen"],
        "`[[site]]` and `[[listen]]` stand at the top level, in no block",
    )
    .only_in(&[&ROOT]),
    keys(
        &["server_name", "ServerName", "ServerAlias"],
        "nginx, Apache, lighttpd",
        &["site.names"],
        "`names = [\"example.org\", \"www.example.org\"]` in `[[site]]`",
    ),
    keys(
        &["listen", "bind", "port", "address", "server.port"],
        "nginx, Apache, gunicorn, lighttpd",
        &["listen.address"],
        "`[[listen]]` at the top level, with `address = \":8080\"`",
    )
    .only_in(&[&SITE, &ROUTE]),
    keys(
        &["listeners", "bind", "port"],
        "Unit, gunicorn, lighttpd",
        &["listen"],
        "`[[listen]]` with `address = \":8080\"`, one for each address",
    )
    .only_in(&[&ROOT]),
    keys(
        &["listen", "bind", "port"],
        "nginx, gunicorn, lighttpd",
        &["listen.address"],
        "`address = \":8080\"`",
    )
    .only_in(&[&LISTEN]),
    keys(
        &[
            "http-socket",
            "https-socket",
            "fastcgi-socket",
            "uwsgi-socket",
            "socket",
        ],
        "uWSGI",
        &["listen.address"],
        "`[[listen]]` with `address = \":8080\"`, or `address = \"unix:hob.sock\"`; hob speaks \
         HTTP there",
    ),
    keys(
        &[
            "allow",
            "deny",
            "Order",
            "remote_ip",
            "access_control",
            "RequireAny",
            "RequireAll",
            "source",
        ],
        "nginx, Apache, Caddy, Unit",
        &["site.access", "site.route.access"],
        "`access = { allow = [\"10.0.0.0/8\"] }` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &[
            "auth_basic",
            "auth_basic_user_file",
            "basicauth",
            "basic_auth",
            "htpasswd",
            "AuthType",
            "AuthName",
            "AuthUserFile",
            "AuthGroupFile",
            "AuthBasicProvider",
            "Satisfy",
            "auth.backend",
            "auth.require",
            "authentication",
        ],
        "nginx, Apache, Caddy, lighttpd",
        &["auth", "site.require", "site.route.require"],
        SIGN_IN,
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &["RewriteMap"],
        "Apache",
        &["site.redirects"],
        "`redirects = \"FILE\"` in `[[site]]`, with a line `FROM TO` for each path, or `FROM TO \
         rewrite`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &["auth_request", "forward_auth", "auth_request_set"],
        "nginx, Caddy",
        &["auth.forward", "site.require", "site.route.require"],
        "`[[auth]]` with `name = \"sso\"` and `forward = \"/verify\"`, a route for `/verify`, and \
         `require = \"sso\"` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &[
            "auth_jwt",
            "auth_jwt_key_file",
            "auth_jwt_key_request",
            "jwt",
            "jwtauth",
        ],
        "nginx, Caddy, Traefik",
        &["auth.jwt", "site.require", "site.route.require"],
        "`[[auth]]` with `name = \"tokens\"` and `jwt = { keys_url = \"URL\", issuer = \"URL\", \
         audience = \"NAME\" }`, and `require = \"tokens\"` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &["require"],
        "Apache",
        &["auth", "site.require", "site.route.require"],
        SIGN_IN,
    )
    .only_in(&[&ROOT, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &["auth"],
        "uWSGI, Caddy",
        &["auth", "site.require", "site.route.require"],
        SIGN_IN,
    )
    .only_in(&[&SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &[
            "rate_limit",
            "limit_req",
            "limit_req_zone",
            "limit_req_status",
            "burst",
            "throttle",
        ],
        "nginx, Caddy, Apache",
        &["site.rate", "site.route.rate"],
        "`rate = \"10/s\"` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &["limit_rate", "limit_rate_after", "traffic-shaper"],
        "nginx, lighttpd",
        &["site.bandwidth", "site.route.bandwidth"],
        "`bandwidth = \"1MiB/s\"` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &["rate"],
        "Caddy, lighttpd",
        &["site.rate", "site.route.rate"],
        "`rate = \"10/s\"` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &[
            "methods",
            "limit_except",
            "Limit",
            "LimitExcept",
            "AllowMethods",
        ],
        "nginx, Apache, Caddy, Unit",
        &["site.access", "site.route.access"],
        "`access = { methods = [\"GET\", \"POST\"] }` in `[[site]]` or `[[site.route]]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &[
            "if",
            "RewriteCond",
            "@matcher",
            "matcher",
            "expression",
            "split_clients",
            "request_method",
            "method",
            "query",
            "arguments",
            "cookies",
            "cookie",
            "header_regexp",
            "scheme",
        ],
        "nginx, Apache, Caddy, Unit, lighttpd",
        &["site.route.when"],
        "`when = { method = [\"POST\"], field = { X-Beta = \"1\" } }` in `[[site.route]]`; what it \
         leaves is answered by the next route whose path matches",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &FILES, &ROUTE_FILES]),
    keys(
        &["DocumentRoot", "document-root", "server.document-root"],
        "Apache, lighttpd",
        &["site.root", "site.route.files.root"],
        "`root = \"FOLDER\"` in `[[site]]`",
    ),
    keys(
        &["UserDir", "userdir.path"],
        "Apache, lighttpd",
        &["site.route.files.root"],
        "`path = \"/{user}/*\"` and `files = \"/home/{user}/public_html\"` in a `[[site.route]]`",
    ),
    keys(
        &["VirtualDocumentRoot", "evhost", "simple-vhost"],
        "Apache, lighttpd",
        &["site.root", "site.route.files.root"],
        "`root = \"/srv/{host}\"` in a `[[site]]`",
    ),
    keys(
        &["VirtualScriptAlias"],
        "Apache",
        &["site.route.cgi.dir"],
        "`cgi = \"/srv/{host}/cgi-bin\"` in a `[[site.route]]`",
    ),
    keys(
        FOLDER_WORDS,
        "nginx, Apache, Caddy, Unit, uWSGI, lighttpd",
        &["site.route.files"],
        "`files = \"FOLDER\"` in a route, or `root = \"FOLDER\"` in `[[site]]`",
    )
    .only_in(&[&ROUTE]),
    keys(
        FOLDER_WORDS,
        "nginx, Apache, Caddy, Unit, uWSGI, lighttpd",
        &["site.root", "site.route.files"],
        "`root = \"FOLDER\"` in `[[site]]`, or a `[[site.route]]` with `path = \"/static/*\"` \
         and `files = \"FOLDER\"`",
    )
    .only_in(&[&ROOT]),
    keys(
        &[
            "share",
            "alias",
            "file_server",
            "static-map",
            "check-static",
        ],
        "Unit, nginx, Apache, Caddy, uWSGI",
        &["site.root", "site.route"],
        "`root = \"FOLDER\"`, or a `[[site.route]]` with `path = \"/static/*\"` and `files = \
         \"FOLDER\"`",
    )
    .only_in(&[&SITE]),
    keys(
        &[
            "location",
            "LocationMatch",
            "handle",
            "handle_path",
            "match",
        ],
        "nginx, Apache, Caddy, Unit",
        &["site.route.path"],
        "`path = \"/docs/*\"`; each `[[site.route]]` has one",
    )
    .only_in(&[&ROUTE]),
    keys(
        &[
            "location",
            "LocationMatch",
            "Directory",
            "DirectoryMatch",
            "FilesMatch",
            "handle",
            "handle_path",
            "routes",
            "match",
        ],
        "nginx, Apache, Caddy, Unit",
        &["site.route"],
        "one `[[site.route]]` for each, with `path = \"/docs/*\"` and a handler; the first that \
         matches answers",
    )
    .only_in(&[&ROOT, &SITE]),
    keys(
        &["pass", "action"],
        "Unit",
        &["site.route"],
        "a route names its handler itself, as `files = \"FOLDER\"` or `cgi = \"FOLDER\"`",
    ),
    keys(
        &["index", "DirectoryIndex", "index-file.names"],
        "nginx, Apache, lighttpd",
        &["site.files.index"],
        "`index = [\"index.html\"]` in `[site.files]` or in `files` of a route",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &["DirectoryIndex", "static-index"],
        "Apache, uWSGI",
        &["site.files.index", "site.route.files.index"],
        "`index = [\"index.html\"]`",
    )
    .only_in(&[&FILES, &ROUTE_FILES]),
    keys(
        &["autoindex", "browse", "dir-listing", "IndexOptions"],
        "nginx, Caddy, lighttpd, Apache",
        &["site.files.listing", "site.route.files.listing"],
        "`listing = true` in `[site.files]` or in `files` of a route",
    ),
    keys(
        &["try_files", "FallbackResource", "error-handler-404"],
        "nginx, Caddy, Apache",
        &["site.files.try", "site.route.files.try"],
        "`try = [\"{path}\", \"{path}.html\", \"next\"]` in `[site.files]` or in `files` of a \
         route: what is looked for, and `next`, the route behind this one; `fallback = \
         \"index.html\"` is one file for all that is not there",
    ),
    keys(
        &[
            "error_page",
            "ErrorDocument",
            "handle_errors",
            "server.errorfile-prefix",
        ],
        "nginx, Apache, Caddy, lighttpd",
        &["site.error_pages"],
        "`error_pages = { 404 = \"404.html\" }` in `[[site]]`",
    ),
    keys(
        &[
            "expires",
            "ExpiresActive",
            "ExpiresDefault",
            "ExpiresByType",
            "static-expires",
        ],
        "nginx, Apache, lighttpd, uWSGI",
        &["site.files.cache_control", "site.route.files.cache_control"],
        "`cache_control = \"max-age=3600\"` in `[site.files]` or in `files` of a route",
    ),
    keys(
        &[
            "mime_types",
            "AddType",
            "mimetype.assign",
            "default_type",
            "ForceType",
        ],
        "nginx, Apache, lighttpd",
        &["site.files.types", "site.route.files.types"],
        "`types = { wasm = \"application/wasm\" }` in `[site.files]` or in `files` of a route; \
         the usual ones are known",
    ),
    keys(
        &["AddDefaultCharset", "AddCharset"],
        "Apache",
        &["site.files.charset", "site.route.files.charset"],
        "`charset = \"utf-8\"` in `[site.files]`",
    ),
    keys(
        &["disable_symlinks", "FollowSymLinks", "follow-symlink"],
        "nginx, Apache, lighttpd",
        &["site.files.symlinks", "site.route.files.symlinks"],
        "`symlinks = \"follow\"` (or `\"inside\"`, `\"refuse\"`) in `[site.files]` or in `files` \
         of a route",
    ),
    keys(
        &[
            "gzip",
            "brotli",
            "encode",
            "deflate",
            "gzip_vary",
            "gzip_proxied",
        ],
        "nginx, Caddy, Apache, lighttpd",
        &[
            "site.compress",
            "site.route.compress",
            "site.files.compress",
            "site.route.files.compress",
        ],
        "on by itself; `compress = [\"gzip\"]` chooses the codings, `compress = []` none",
    ),
    keys(
        &["gzip_static", "brotli_static"],
        "nginx, Caddy",
        &["site.files.precompressed", "site.route.files.precompressed"],
        "`precompressed = [\"br\", \"gz\"]` in `[site.files]` or in `files` of a route",
    ),
    keys(
        &[
            "gzip_types",
            "brotli_types",
            "AddOutputFilterByType",
            "deflate.mimetypes",
        ],
        "nginx, Apache, lighttpd",
        &[
            "site.compress_types",
            "site.route.compress_types",
            "site.files.compress_types",
            "site.route.files.compress_types",
        ],
        "`compress_types = [\"text/*\", \"application/json\"]`",
    ),
    keys(
        &["gzip_min_length", "gzip_length", "brotli_min_length"],
        "nginx",
        &[
            "site.compress_min",
            "site.route.compress_min",
            "site.files.compress_min",
            "site.route.files.compress_min",
        ],
        "`compress_min = \"4KiB\"`",
    ),
    keys(
        &["header", "more_set_headers", "response_headers"],
        "Apache, Caddy, nginx, Unit",
        &["site.headers", "site.route.headers"],
        "`headers = { X-Frame-Options = \"DENY\" }` in `[[site]]` or a route",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &FILES, &ROUTE_FILES]),
    keys(
        &["add_header", "setenv.add-response-header"],
        "nginx, uWSGI, lighttpd",
        &[
            "site.headers_add",
            "site.headers",
            "site.route.headers_add",
            "site.route.headers",
        ],
        "`headers = { X-Frame-Options = \"DENY\" }` sets a field, `headers_add = [\"Link: \
         </a.css>\"]` adds one; in `[[site]]` or a route",
    ),
    keys(
        &[
            "more_clear_headers",
            "proxy_hide_header",
            "fastcgi_hide_header",
            "hide_header",
            "del-header",
        ],
        "nginx, uWSGI",
        &["site.headers_remove", "site.route.headers_remove"],
        "`headers_remove = [\"X-Powered-By\"]` in `[[site]]` or a route",
    ),
    keys(
        &[
            "server_tokens",
            "ServerTokens",
            "ServerSignature",
            "server.tag",
        ],
        "nginx, Apache, lighttpd, Unit",
        &["site.headers_remove", "site.route.headers_remove"],
        "`headers_remove = [\"Server\"]` in `[[site]]`",
    ),
    keys(
        &[
            "RewriteRule",
            "RewriteEngine",
            "url.rewrite",
            "url.rewrite-once",
            "uri",
            "strip_prefix",
        ],
        "Apache, lighttpd, Caddy",
        &["site.route.rewrite"],
        "`path = \"/user/{name}\"` and `rewrite = \"/pages/{name}.html\"` in a route; `redirect \
         = \"/new/{name}\"` sends the visitor on",
    )
    .only_in(&[&ROOT, &SITE, &FILES, &ROUTE_FILES]),
    keys(
        &[
            "RewriteRule",
            "RewriteEngine",
            "url.rewrite",
            "url.rewrite-once",
            "strip_prefix",
        ],
        "Apache, lighttpd, Caddy",
        &["site.route.rewrite"],
        "`path = \"/user/{name}\"` and `rewrite = \"/pages/{name}.html\"`; `redirect = \
         \"/new/{name}\"` sends the visitor on",
    )
    .only_in(&[&ROUTE]),
    keys(
        &[
            "return",
            "redir",
            "RedirectMatch",
            "RedirectPermanent",
            "url.redirect",
            "route-redirect",
        ],
        "nginx, Caddy, Apache, lighttpd, uWSGI",
        &["site.route.redirect", "site.route.respond"],
        "`redirect = \"/new\"` in a route, or `respond = { status = 404 }`",
    ),
    keys(
        &["auto_https"],
        "Caddy",
        &["site.https_only"],
        "`https_only = true` in `[[site]]`; certificates come by themselves with `tls = \"auto\"`",
    ),
    keys(
        &[
            "ssl_certificate",
            "SSLCertificateFile",
            "SSLCertificateChainFile",
            "ssl.pemfile",
            "certfile",
        ],
        "nginx, Apache, lighttpd, gunicorn",
        &[
            "site.tls",
            "listen.tls",
            "site.tls.certificate",
            "listen.tls.certificate",
            "admin.tls.certificate",
        ],
        "`tls = { certificate = \"cert.pem\", key = \"key.pem\" }` in `[[site]]`, and `tls = \
         true` in `[[listen]]`",
    ),
    keys(
        &[
            "ssl_certificate_key",
            "SSLCertificateKeyFile",
            "ssl.privkey",
            "keyfile",
        ],
        "nginx, Apache, lighttpd, gunicorn",
        &[
            "site.tls",
            "listen.tls",
            "site.tls.key",
            "listen.tls.key",
            "admin.tls.key",
        ],
        "`tls = { certificate = \"cert.pem\", key = \"key.pem\" }` in `[[site]]`, and `tls = \
         true` in `[[listen]]`",
    ),
    keys(
        &["ssl", "https", "SSLEngine", "ssl.engine"],
        "nginx, Apache, lighttpd",
        &["site.tls", "listen.tls", "admin.tls"],
        "`tls = true` in `[[listen]]`, and in `[[site]]` `tls = { certificate = \"cert.pem\", \
         key = \"key.pem\" }` or `tls = \"auto\"`",
    ),
    keys(
        &["ssl_protocols", "SSLProtocol", "protocols", "ssl_version"],
        "nginx, Apache, Caddy, gunicorn",
        &["listen.tls.minimum"],
        "`tls = { minimum = \"1.3\" }` in `[[listen]]`; 1.2 and 1.3 are spoken by themselves",
    ),
    keys(
        &[
            "ssl_ciphers",
            "SSLCipherSuite",
            "ciphers",
            "cipher_suites",
            "conf_commands",
        ],
        "nginx, Apache, gunicorn, Caddy, Unit",
        &["listen.tls.suites"],
        "`tls = { suites = [\"TLS_AES_128_GCM_SHA256\"] }` in `[[listen]]`; all that are on are \
         safe",
    ),
    keys(
        &[
            "ssl_client_certificate",
            "ssl_verify_client",
            "SSLVerifyClient",
            "SSLCACertificateFile",
            "client_auth",
            "ssl.verifyclient",
        ],
        "nginx, Apache, Caddy, lighttpd",
        &["site.tls.client", "site.tls.client_ca"],
        "`tls = { certificate = \"cert.pem\", key = \"key.pem\", client = \"require\", client_ca \
         = \"clients.pem\" }` in `[[site]]`",
    ),
    needless(
        &[
            "ssl_session_cache",
            "ssl_session_timeout",
            "ssl_session_tickets",
            "ssl_prefer_server_ciphers",
            "ssl_dhparam",
            "ssl_ecdh_curve",
            "ssl_stapling",
            "SSLSessionCache",
            "SSLUseStapling",
            "SSLHonorCipherOrder",
        ],
        "nginx, Apache",
        "sessions, groups and the order of suites are chosen by hob, as is safe today",
        "how-to/tls.md",
    ),
    needless(
        &["http2", "h2c", "spdy"],
        "nginx, Caddy",
        "every listener speaks HTTP/2",
        "how-to/http2.md",
    ),
    keys(
        &["quic", "http3"],
        "nginx, Caddy",
        &["listen.tls.http3"],
        "`tls = { http3 = true }` in `[[listen]]`",
    )
    .only_in(&[&ROOT, &SITE, &LISTEN, &ROUTE]),
    keys(
        &["quic"],
        "nginx, Caddy",
        &["listen.tls.http3"],
        "`http3 = true`",
    )
    .only_in(&[&LISTEN_TLS]),
    needless(
        &[
            "etag",
            "FileETag",
            "static-file.etags",
            "if_modified_since",
            "merge_slashes",
        ],
        "nginx, Apache, lighttpd",
        "files have `ETag` and `Last-Modified`, and conditional requests and ranges are answered",
        "how-to/files.md",
    ),
    needless(
        &["websocket", "proxy_wstunnel", "upgrade"],
        "Apache, lighttpd",
        "a resident program answers WebSockets without a word in the config",
        "how-to/websocket.md",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &RESIDENT]),
];
