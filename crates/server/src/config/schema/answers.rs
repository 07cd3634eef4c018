//! Keys of answers that the config writes itself.

use super::*;

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
