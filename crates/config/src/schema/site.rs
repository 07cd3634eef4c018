//! Keys of a site.

use super::*;

/// `[[site]]`, with all its keys.
pub const fn site(answers: &'static SchemaTable, keys: &'static [SchemaKey]) -> SchemaTable {
    SchemaTable {
        name: "site",
        header: "`[[site]]`",
        text: "A virtual host. The site without names answers hosts that no site names; if all \
               have names, `unknown_host` says what is done.",
        base: Some(answers),
        keys,
    }
}

/// Keys of a site about its answers, with those that routes have, too.
pub const fn site_answers(keys: &'static [SchemaKey]) -> SchemaTable {
    SchemaTable {
        name: "site",
        header: "`[[site]]` and `[defaults]`",
        text: "Who may ask, how often, and what is done to answers.",
        base: Some(&ANSWER),
        keys,
    }
}

/// The key of a site that is a list of routes.
pub const fn routes(route: &'static SchemaTable) -> SchemaKey {
    SchemaKey::new("route", Tables(route), Nothing(""))
}

/// Keys of a site, but those about its answers, of its handlers and `route`.
pub const SITE_KEYS: &[SchemaKey] = &[
    SchemaKey::new("names", Texts, Preset::Texts(&[]))
        .says(
            "Host names, in lower case and without port: exact, or `*.example.org` for every \
                 name below. Names outside ASCII are written in punycode (`xn--...`).",
        )
        .example("[\"example.org\", \"*.example.org\"]")
        .aka(&["name", "host", "hosts", "domain", "domains", "hostname"]),
    SchemaKey::new("listener", Texts, Nothing("all"))
        .says(
            "Listeners on which the site answers, which are written as their `address` is. Sites \
             on different listeners may have one name. In logs and metrics such a site is called \
             by its name and its first listener: `intern.example on 127.0.0.1:8081`.",
        )
        .example("[\"127.0.0.1:8080\"]")
        .aka(&["listeners"]),
    SchemaKey::new("root", Path, Nothing("none"))
        .says(
            "Folder whose files are served: the site ends in a route `/*` that answers with \
                 them.",
        )
        .example("\"site\"")
        .aka(&["dir", "folder", "path"]),
    shared::KEY,
    answers::REDIRECTS_KEY,
];

/// `slash` of a site or a route
pub(super) const SLASH: SchemaKey = SchemaKey::new(
    "slash",
    Word(&["keep", "drop", "add"]),
    Preset::Text("keep"),
)
.says(
    "Whether paths end in a slash: others are sent to the same path without it (`\"drop\"`) or \
     with it (`\"add\"`), with 301 (GET and HEAD) or 308, where a route with the same `slash` \
     answers. Not `/`, names with an ending (`/app.css`) get no slash, and routes of `files` keep \
     to their folders. The query stays as it is.",
)
.example("\"drop\"")
.aka(&["trailing_slash", "append_slash"]);

/// Keys of a site about its answers, which routes have not.
pub const SITE_ANSWERS: &[SchemaKey] = &[
    SchemaKey::new("log", Text, Inherited("the listener's"))
        .says("Access log of this site: the `name` of a `[[log]]`, or `\"off\"`.")
        .example("\"main\""),
    SchemaKey::new(
        "error_pages",
        Map(&STATUS_TO_PATH),
        Nothing("built-in pages"),
    )
    .says("Files sent as the body of error answers, by status (400 to 599).")
    .example("{ 404 = \"pages/404.html\", 500 = \"pages/500.html\" }")
    .aka(&["errors"]),
    SchemaKey::new("https_only", Flag, Preset::Flag(false))
        .says(
            "Requests in clear text are sent to the same address under `https://`, with 301 \
                 (GET and HEAD) or 308. Those over a Unix socket are answered.",
        )
        .example("true")
        .aka(&[
            "redirect_https",
            "force_https",
            "https_redirect",
            "ssl_redirect",
        ]),
    SchemaKey::new("www", Word(&["keep", "drop", "add"]), Preset::Text("keep"))
        .says(
            "Of two names of the site that differ by `www.` alone, the other one is sent to the \
             one without it (`\"drop\"`) or with it (`\"add\"`), with 301 (GET and HEAD) or 308. \
             Both stand in `names`.",
        )
        .example("\"drop\"")
        .aka(&["www_redirect"]),
    SchemaKey::new("path_case", Word(&["keep", "lower"]), Preset::Text("keep"))
        .says(
            "With `\"lower\"`, paths with capital letters (A to Z) are sent to the same in lower \
             case, with 301 (GET and HEAD) or 308. The query stays as it is.",
        )
        .example("\"lower\"")
        .aka(&["lowercase", "case"]),
    auth::MAINTENANCE_ALLOW,
    SchemaKey::new("hsts", OrText("age", &HSTS), Nothing("")).aka(&["strict_transport_security"]),
    SchemaKey::new("tls", OrText("certificate", &SITE_TLS), Nothing("")),
];

/// `site.error_pages`
static STATUS_TO_PATH: MapOf = MapOf {
    key: "status",
    value: MapValue::Path,
};
