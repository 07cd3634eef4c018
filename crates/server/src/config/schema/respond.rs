//! Keys of `respond`.

use super::*;

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
