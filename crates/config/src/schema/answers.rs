//! Keys of answers: what is done to all of them.

use super::*;

/// Media types that are compressed unless the config says otherwise.
pub const COMPRESS_TYPES: &[&str] = &[
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

/// What is done to answers after their handler: keys of `[[site]]` and of `[[site.route]]`
pub static ANSWER: SchemaTable = SchemaTable {
    name: "site",
    header: "`[[site]]` and `[[site.route]]`",
    text: "Who may ask, how often, and what is done to answers.",
    base: None,
    keys: &[
        watch::SERVER_TIMING,
        SchemaKey::new("access", ValueType::Table(&ACCESS), Nothing("")),
        SchemaKey::new("require", OrText("auth", &REQUIRE), Nothing("")),
        SchemaKey::new("rate", OrText("requests", &RATE), Nothing("")),
        SchemaKey::new("concurrency", ValueType::Table(&CONCURRENCY), Nothing("")),
        SchemaKey::new("bandwidth", OrText("answer", &BANDWIDTH), Nothing("")),
        crowding::PRIORITY,
        site::SLASH,
        SchemaKey::new("cors", ValueType::Table(&CORS), Nothing("")),
        SchemaKey::new("headers", Map(&HEADER_TO_TEXT), Nothing("none"))
            .says(
                "Header fields set in every answer, errors too; an empty value removes the field. \
                 `Cache-Control` and `Expires` are left out of errors that the server makes.",
            )
            .example("{ X-Frame-Options = \"DENY\", Server = \"\" }")
            .aka(&["header_set", "set_header", "headers_set"]),
        SchemaKey::new(
            "security_headers",
            Word(&["off", "basic", "strict"]),
            Preset::Text("off"),
        )
        .says(
            "Header fields by which browsers take less from pages, in answers that do not have \
             them; `headers` and `headers_remove` have the last word. `\"basic\"`, which breaks no \
             page that others do not frame: `X-Content-Type-Options`, `X-Frame-Options` \
             (`SAMEORIGIN`) and `Referrer-Policy`. `\"strict\"`: the same without frames and \
             referrers, and a `Content-Security-Policy` of the page's own origin without inline \
             scripts, `Cross-Origin-Opener-Policy`, `Cross-Origin-Resource-Policy` and \
             `Permissions-Policy`.",
        )
        .example("\"basic\"")
        .aka(&["secure_headers"]),
        SchemaKey::new("headers_add", Texts, Preset::Texts(&[]))
            .says("Header fields added to every answer, whatever fields of that name there are.")
            .example("[\"Link: </style.css>; rel=preload; as=style\"]")
            .aka(&["header_add", "add_headers", "more_headers"]),
        SchemaKey::new("early_hints", Texts, Preset::Texts(&[]))
            .says(
                "Values of `Link` that browsers get while the answer is made (103), so that they \
                 fetch style sheets and scripts meanwhile: for pages that people go to \
                 (`Sec-Fetch-Mode: navigate`), over HTTP/2 and HTTP/3.",
            )
            .example("[\"</style.css>; rel=preload; as=style\"]"),
        SchemaKey::new("headers_remove", Texts, Preset::Texts(&[]))
            .says("Names of header fields removed from every answer.")
            .example("[\"Server\", \"X-Powered-By\"]")
            .aka(&[
                "header_remove",
                "remove_header",
                "remove_headers",
                "header_unset",
            ]),
        SchemaKey::new(
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
        .aka(&["compression"]),
        SchemaKey::new("compress_min", Size { min: 0, max: GIB }, Preset::Size(KIB))
            .says("Smaller answers are not compressed; those of unknown size are.")
            .example("\"4KiB\""),
        SchemaKey::new("compress_types", Texts, Preset::Texts(COMPRESS_TYPES))
            .says("Media types that are compressed; `text/*` stands for every text type.")
            .example("[\"text/*\", \"application/json\"]"),
        SchemaKey::new("intercept_errors", Flag, Preset::Flag(false))
            .says(
                "Pages of `error_pages` take the place of error pages that a program makes. \
                 Without it they are sent for errors of the server's own, and where a program \
                 sends a status and no body.",
            )
            .example("true"),
        SchemaKey::new("sendfile", Texts, Preset::Texts(&[]))
            .says(
                "Folders below which a program may name a file to be sent in the place of its \
                 output, with `Script-Control: sendfile=PATH` or `X-Sendfile: PATH`. Without any, \
                 such an answer is a 502.",
            )
            .example("[\"/var/files\"]")
            .aka(&["xsendfile_path", "sendfile_roots"]),
        SchemaKey::new("buffer_max", Size { min: 0, max: GIB }, Preset::Size(MIB))
            .says(
                "Largest answer collected for a program that asks for it with `Script-Control: \
                 buffer=on`; a larger one is sent as it comes.",
            )
            .example("\"8MiB\"")
            .aka(&["buffer", "buffer_size"]),
    ],
};

/// `access` of a site or a route
pub static ACCESS: SchemaTable = SchemaTable {
    name: "access",
    header: "`access` of a site or a route",
    text: "Who may ask, and how: all that is said here has to hold, or the answer is 403. A \
           route's table takes the place of its site's, all of it. What counts is the route that \
           answers in the end: that of a folder's index, a fallback, a rewritten path or an \
           internal redirect has its say, too. Only `X-Accel-Redirect` and its like come to a \
           route that is `internal` without being asked. A client behind a proxy is the one that \
           `trusted` of the listener lets the proxy name.",
    base: None,
    keys: &[
        SchemaKey::new("allow", Texts, Nothing("everybody"))
            .says(
                "Who may, by address: addresses, networks such as `10.0.0.0/8`, `unix` for whoever \
                 connects over a Unix socket, `all`, and with a file of `countries` those of a \
                 country, such as `country:DE`, or of none that is known, `country:unknown`. \
                 Everybody else may not.",
            )
            .example("[\"10.0.0.0/8\", \"2001:db8::/32\"]"),
        SchemaKey::new("deny", Texts, Preset::Texts(&[]))
            .says("Who may not, in the same words, also where `allow` has them.")
            .example("[\"10.0.0.13\"]"),
        SchemaKey::new("certificates", Texts, Preset::Texts(&[]))
            .says(
                "Who may, by their certificates, which `client` in `tls` of the site asks for: the \
                 common name or a host of one, or `sha256:` and its fingerprint.",
            )
            .example("[\"ann@example.com\", \"laptop.example.com\"]")
            .aka(&["client_certificates"]),
        SchemaKey::new("methods", Texts, Nothing("any"))
            .says("Methods that are taken; others are answered with 405. HEAD goes along with GET.")
            .example("[\"GET\", \"POST\"]")
            .aka(&["method"]),
    ],
};

/// `require` of a site or a route
pub static REQUIRE: SchemaTable = SchemaTable {
    name: "require",
    header: "`require` of a site or a route",
    text: "Who has to sign in, with a name and a password that browsers ask for (RFC 7617); \
           whoever does not is answered with 401, who may not with 403. Programs are told the name \
           in `REMOTE_USER`. A route's table takes the place of its site's, all of it; as with \
           `access`, the route that answers in the end has its say. A plain string is `auth`.",
    base: None,
    keys: &[
        SchemaKey::new("auth", Text, Required)
            .says(
                "With which accounts: the `name` of an `[[auth]]`. `\"none\"`: nobody has to, \
                 whatever the site says.",
            )
            .example("\"none\""),
        SchemaKey::new("users", Texts, Nothing("everybody with an account"))
            .says("Who may.")
            .example("[\"ann\", \"bob\"]")
            .aka(&["user", "valid-user"]),
        SchemaKey::new("groups", Texts, Preset::Texts(&[]))
            .says("Whose members may, besides `users`.")
            .example("[\"staff\"]")
            .aka(&["group"]),
        SchemaKey::new("all_groups", Texts, Preset::Texts(&[]))
            .says("Who may has to be a member of each of these, besides.")
            .example("[\"staff\", \"trained\"]"),
        SchemaKey::new("satisfy", Word(&["all", "any"]), Preset::Text("all"))
            .says(
                "`\"any\"`: whom `allow`, `deny` and `certificates` of `access` let in has not to \
                 sign in, and who signs in may come from elsewhere.",
            )
            .example("\"any\""),
    ],
};

/// The key of a site that is a file of paths that have moved.
pub(super) const REDIRECTS_KEY: SchemaKey =
    SchemaKey::new("redirects", OrText("file", &REDIRECTS), Nothing("")).aka(&["redirect_map"]);

/// `redirects` of a site
pub static REDIRECTS: SchemaTable = SchemaTable {
    name: "redirects",
    header: "`redirects` of a site",
    text: "Paths that have moved: they are looked up before routes are, among a million as fast as \
           among ten. A plain string is `file`.",
    base: None,
    keys: &[
        SchemaKey::new("file", Path, Required)
            .says(
                "File with a line `FROM TO` or `FROM TO STATUS` for each; empty lines and those that \
                 begin with `#` say nothing. `FROM` is a path; `TO` a path or a URL, behind which \
                 the request's query is put where it has none. `FROM TO rewrite` sends nobody on: \
                 `TO`, a path with a query perhaps, is answered instead. It is read at a start and \
                 a reload.",
            )
            .example("\"moved.txt\"")
            .aka(&["map"]),
        SchemaKey::new(
            "status",
            Integer { min: 100, max: 999 },
            Preset::Integer(301),
        )
        .says(
            "With which status, where a line says none: 301 or 308 for good, 302, 303 or 307 for \
             now.",
        )
        .example("308")
        .aka(&["code"]),
    ],
};

/// `rate` of a site or a route
pub static RATE: SchemaTable = SchemaTable {
    name: "rate",
    header: "`rate` of a site or a route",
    text: "How many requests of one client are answered in a time; more get a 429 that says in \
           `Retry-After` and `RateLimit` when to come again. A site's rate is for all its routes \
           together, but those with rates of their own. It is exact, whichever thread answers, and \
           goes on over a reload. A plain string is `requests`.",
    base: None,
    keys: &[
        SchemaKey::new("requests", Text, Required)
            .says(
                "How many in what time, on average: `10/s`, `100/m`, `1000/15m`. They are spread \
                 evenly over the time, but for what `burst` says.",
            )
            .example("\"10/s\"")
            .aka(&["rate", "limit", "average"]),
        SchemaKey::new(
            "burst",
            Integer {
                min: 1,
                max: 1_000_000,
            },
            Inherited("what comes in a second at that rate, 1 at least"),
        )
        .says(
            "So many may come at once, after a time without. A page with pictures is many requests.",
        )
        .example("50"),
        SchemaKey::new("by", Text, Preset::Text("client"))
            .says(
                "What requests have in common that are counted together: `client`, the address; \
                 `field:NAME` or `cookie:NAME`, the value of it; `user`, who has signed in \
                 (`require`); `capture:NAME`, what a part of the route's path stands for; and \
                 where a request has none of it, the address; `path`, the route, of a site each \
                 for itself; `all`, nothing. By `user` it is asked after signing in, else before.",
            )
            .example("\"field:X-Api-Key\"")
            .aka(&["key", "zone"]),
        crowding::V6_PREFIX,
        crowding::CLIENTS,
        SchemaKey::new("dry_run", Flag, Preset::Flag(false))
            .says(
                "Nothing is refused: `rate_dry_run` counts what would be, and the record of each \
                 says so.",
            )
            .example("true"),
    ],
};

/// `cors` of a site or a route
pub static CORS: SchemaTable = SchemaTable {
    name: "cors",
    header: "`cors` of a site or a route",
    text: "Which pages of other origins may send requests here with a script and read the answers. \
           Without it browsers let none. A browser that asks first (`OPTIONS`) is answered by the \
           server, before `access` and `rate`: it sends no credentials then. Fields of this kind \
           that a program sends itself are replaced. A route's table takes the place of its \
           site's, all of it.",
    base: None,
    keys: &[
        SchemaKey::new("origins", Texts, Required)
            .says(
                "Whose pages: `https://app.example.com`, `https://*.example.com` for all hosts \
                 below one, `*` for any.",
            )
            .example("[\"https://app.example.com\"]")
            .aka(&["origin", "allow_origin", "allow_origins"]),
        SchemaKey::new("methods", Texts, Preset::Texts(&["GET", "HEAD", "POST"]))
            .says("With which methods.")
            .example("[\"GET\", \"PUT\", \"DELETE\"]")
            .aka(&["allow_methods"]),
        SchemaKey::new("headers", Texts, Preset::Texts(&[]))
            .says(
                "With which fields, besides those that any page may send; `*` for any that a \
                 browser asks for.",
            )
            .example("[\"Authorization\", \"Content-Type\"]")
            .aka(&["allow_headers"]),
        SchemaKey::new("expose", Texts, Preset::Texts(&[]))
            .says("Fields of answers that pages may read, besides the usual ones.")
            .example("[\"X-Total-Count\"]")
            .aka(&["expose_headers"]),
        SchemaKey::new("credentials", Flag, Preset::Flag(false))
            .says("Also with cookies and certificates of the visitor.")
            .example("true")
            .aka(&["allow_credentials"]),
        SchemaKey::new(
            "max_age",
            Time {
                min: Duration::ZERO,
                max: Duration::from_secs(86_400),
            },
            secs(600),
        )
        .says("For how long a browser need not ask first again.")
        .example("\"1h\""),
    ],
};

/// `site.headers` and `site.route.headers`
static HEADER_TO_TEXT: MapOf = MapOf {
    key: "header name",
    value: MapValue::Text,
};
