//! Keys of `scgi`.

use crate::handle::config::key::Preset;
use crate::handle::config::key::ValueType::TextOrTexts;
use crate::handle::config::key::{SchemaKey, SchemaTable, joined};
use crate::handle::config::schema::PROGRAM;
use crate::handle::upstream::program::keys::PROGRAM_KEYS;
use crate::handle::upstream::run::keys::RUN_KEYS;

/// `[site.route.scgi]`
pub(crate) static SCGI: SchemaTable = SchemaTable {
    name: "scgi",
    header: "`scgi` of a route",
    text: "A program that speaks SCGI: Fossil, for one. It answers for every path of the route; \
           `SCRIPT_NAME` is the route's prefix. `run` has hob start it, `to` says where one \
           listens that others keep. A plain string is `to`. How a program of `run` runs is as in \
           `[program]`, where nothing else is said here.",
    base: Some(&PROGRAM),
    keys: &joined::<{ RUN_KEYS.len() + PROGRAM_KEYS.len() + 1 }>(&[
        RUN_KEYS,
        &[SchemaKey::new("to", TextOrTexts, Preset::Texts(&[]))
            .says(
                "Where it listens: an IP address or a name and a port, `tls://` and these where TLS is \
                 spoken, `unix:PATH`, or `srv:` and a service that name servers have; a list where \
                 several do. The account of the server must be able to write to a socket.",
            )
            .example("\"127.0.0.1:4000\"")
            .aka(&["address", "server"])],
        PROGRAM_KEYS,
    ]),
};
