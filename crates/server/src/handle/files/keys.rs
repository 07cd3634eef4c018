//! Keys of `files`.

use crate::handle::config::key::Preset::{Inherited, Nothing};
use crate::handle::config::key::ValueType::{
    Flag, Map, OrWord, Path, Size, Text, Texts, Word, Words,
};
use crate::handle::config::key::{MapOf, MapValue, Preset, SchemaKey, SchemaTable};
use crate::handle::config::schema::{COMPRESS_TYPES, GIB, KIB};

/// `[site.files]`, and most of `[site.route.files]`
pub(crate) static FILES: SchemaTable = SchemaTable {
    name: "files",
    header: "`[site.files]`",
    text: "How files are served. In `[site.files]` for the whole site, in a route's `files` for \
           that route.",
    base: None,
    keys: &[
        SchemaKey::new(
            "keep_prefix",
            Flag,
            Nothing("false; true where a route takes its root from the site"),
        )
        .says(
            "The whole path is looked up below the root, not only what follows the route's \
                 prefix: with `path = \"/docs/*\"` and `root = \"manual\"`, `/docs/a` is \
                 `manual/docs/a` instead of `manual/a`.",
        )
        .example("true"),
        SchemaKey::new("index", Texts, Preset::Texts(&["index.html"]))
            .says(
                "Files that answer for a folder; the first that exists is sent. One whose path a \
                 route of the site has a program answer is run.",
            )
            .example("[\"index.html\", \"index.htm\"]")
            .aka(&["indexes", "default"]),
        SchemaKey::new("listing", Flag, Preset::Flag(false))
            .says("A folder without an index is answered with a list of its files.")
            .example("true")
            .aka(&["directory_listing"]),
        SchemaKey::new("fallback", OrWord("off", &Text), Nothing("none"))
            .says(
                "File below the root that answers with 200 when nothing is found, for single-page \
                 applications. One whose path a route of the site has a program answer is run, \
                 with all that came: a front controller. `\"off\"` is none, for a route of a site \
                 that has one.",
            )
            .example("\"index.html\"")
            .aka(&["spa"]),
        SchemaKey::new("try", Texts, Preset::Texts(&["{path}"]))
            .says(
                "What is looked for, in this order: `{path}`, the path itself, which stands first; \
                 `{path}.html` and the like, a file whose name ends so, for paths that end in no \
                 slash; last, `next`: where nothing is found, the next route that matches \
                 answers, as if this one did not stand there.",
            )
            .example("[\"{path}\", \"{path}.html\", \"next\"]"),
        SchemaKey::new("fallback_cache_control", Text, Preset::Text("no-cache"))
            .says(
                "`Cache-Control` of the fallback where it answers for something else, in the place \
                 of `cache_control`; empty sends none.",
            )
            .example("\"no-store\""),
        SchemaKey::new(
            "precompressed",
            Words(&["br", "zst", "gz"]),
            Preset::Texts(&["br", "zst", "gz"]),
        )
        .says(
            "Endings of compressed copies that lie beside a file (`style.css.br`) and are \
                 sent to clients that take them.",
        )
        .example("[\"br\"]"),
        SchemaKey::new(
            "compress",
            Words(&["zstd", "br", "gzip"]),
            Preset::Texts(&["zstd", "br", "gzip"]),
        )
        .says(
            "Codings in which files are compressed when asked for, the preferred one first; \
                 the cache keeps the result. An empty list compresses nothing.",
        )
        .example("[\"gzip\"]"),
        SchemaKey::new("compress_min", Size { min: 0, max: GIB }, Preset::Size(KIB))
            .says("Smaller files are not compressed.")
            .example("\"4KiB\""),
        SchemaKey::new("compress_types", Texts, Preset::Texts(COMPRESS_TYPES))
            .says("Media types that are compressed; `text/*` stands for every text type.")
            .example("[\"text/*\", \"application/json\"]"),
        SchemaKey::new("dot_files", Flag, Preset::Flag(false))
            .says("Files and folders whose name begins with a dot are served.")
            .example("true"),
        SchemaKey::new(
            "symlinks",
            Word(&["inside", "follow", "refuse"]),
            Preset::Text("inside"),
        )
        .says(
            "Symbolic links that are followed: those that stay `\"inside\"` the root, all \
                 (`\"follow\"`), none (`\"refuse\"`).",
        )
        .example("\"follow\"")
        .aka(&["follow_symlinks"]),
        SchemaKey::new("charset", Text, Preset::Text("utf-8"))
            .says("`charset` parameter of text types; empty adds none.")
            .example("\"iso-8859-1\""),
        SchemaKey::new("types", Map(&ENDING_TO_TYPE), Nothing("built-in table"))
            .says("Media types by ending, before the built-in table.")
            .example("{ \".mjs\" = \"text/javascript\" }")
            .aka(&["mime"]),
        SchemaKey::new("cache_control", Text, Preset::Text(""))
            .says("Value of the `Cache-Control` field; empty sends none.")
            .example("\"public, max-age=3600\""),
        SchemaKey::new("cache", Word(&["auto", "off", "pin"]), Preset::Text("auto"))
            .says(
                "`\"auto\"` keeps files by use; `\"off\"` keeps none; `\"pin\"` loads all at \
                 start and never drops them.",
            )
            .example("\"pin\""),
    ],
};

/// `[site.route.files]`
pub(crate) static ROUTE_FILES: SchemaTable = SchemaTable {
    name: "files",
    header: "`files` of a route",
    text: "Static files. A plain string is the root. Keys not given here are as in `[site.files]`.",
    base: Some(&FILES),
    keys: &[SchemaKey::new("root", Path, Inherited("the site's `root`"))
        .says(
            "The folder. What follows the route's prefix is looked up here. Captures of the \
             route's path may be parts of its names, as may `{host}`: \
             `/home/{user}/public_html`; what they give is one name of a folder that is not hidden.",
        )
        .example("\"manual\"")
        .aka(&["dir", "folder", "path", "alias"])],
};

/// `site.files.types`
static ENDING_TO_TYPE: MapOf = MapOf {
    key: "ending",
    value: MapValue::Text,
};
