//! Keys of `scgi`.

use crate::handle::config::key::Preset::Required;
use crate::handle::config::key::ValueType::TextOrTexts;
use crate::handle::config::key::{SchemaKey, SchemaTable, joined};
use crate::handle::upstream::program::keys::PROGRAM_KEYS;

/// `[site.route.scgi]`
pub(crate) static SCGI: SchemaTable = SchemaTable {
    name: "scgi",
    header: "`scgi` of a route",
    text: "A program that another process keeps and that speaks SCGI: Fossil, for one. It answers \
           for every path of the route; `SCRIPT_NAME` is the route's prefix. A plain string is \
           `to`.",
    base: None,
    keys: &joined::<{ PROGRAM_KEYS.len() + 1 }>(&[
        &[SchemaKey::new("to", TextOrTexts, Required)
            .says(
                "Where it listens: an IP address or a name, and a port, or `unix:PATH`; a list \
                 where several do. The account of the server must be able to write to a socket.",
            )
            .example("\"127.0.0.1:4000\"")
            .aka(&["address", "server"])],
        PROGRAM_KEYS,
    ]),
};
