//! Keys of `uwsgi`.

use crate::handle::config::key::Preset::Required;
use crate::handle::config::key::ValueType::{Integer, TextOrTexts};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, joined};
use crate::handle::upstream::program::keys::{ENV, PROGRAM_KEYS};

/// `[site.route.uwsgi]`
pub(crate) static UWSGI: SchemaTable = SchemaTable {
    name: "uwsgi",
    header: "`uwsgi` of a route",
    text: "An application that uWSGI runs, or another program that speaks its protocol. It answers \
           for every path of the route; `SCRIPT_NAME` is the route's prefix. A plain string is \
           `to`.",
    base: None,
    keys: &joined::<{ PROGRAM_KEYS.len() + 4 }>(&[
        &[
            SchemaKey::new("to", TextOrTexts, Required)
                .says(
                    "Where it listens (`socket` of uWSGI): `unix:PATH`, an IP address or a name and a \
                     port, `tls://` and these where TLS is spoken, or `srv:` and a service that name \
                     servers have; a list where several do. The account of the server must be able \
                     to write to a socket.",
                )
                .example("\"unix:/run/uwsgi/app.sock\"")
                .aka(&["address", "server"]),
            SchemaKey::new(
                "modifier1",
                Integer { min: 0, max: 255 },
                Preset::Integer(0),
            )
            .says(
                "The plugin of uWSGI that answers, by its number: 0 is Python, 5 PSGI, 7 \
                     Rack, 9 CGI, 14 PHP.",
            )
            .example("5"),
            SchemaKey::new(
                "modifier2",
                Integer { min: 0, max: 255 },
                Preset::Integer(0),
            )
            .says("What `modifier1` leaves open; most plugins look at nothing of it.")
            .example("1"),
            ENV,
        ],
        PROGRAM_KEYS,
    ]),
};
