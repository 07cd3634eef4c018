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
    text: "What is done to answers.",
    base: None,
    keys: &[
        watch::SERVER_TIMING,
        SchemaKey::new("headers", Map(&HEADER_TO_TEXT), Nothing("none"))
            .says(
                "Header fields set in every answer, errors too; an empty value removes the field. \
                 `Cache-Control` and `Expires` are left out of errors that the server makes.",
            )
            .example("{ X-Frame-Options = \"DENY\", Server = \"\" }")
            .aka(&["header_set", "set_header", "headers_set"]),
        SchemaKey::new("headers_add", Texts, Preset::Texts(&[]))
            .says("Header fields added to every answer, whatever fields of that name there are.")
            .example("[\"Link: </style.css>; rel=preload; as=style\"]")
            .aka(&["header_add", "add_headers", "more_headers"]),
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

/// `site.headers` and `site.route.headers`
static HEADER_TO_TEXT: MapOf = MapOf {
    key: "header name",
    value: MapValue::Text,
};
