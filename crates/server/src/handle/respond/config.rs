//! `respond` of a route.

use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{Integer, Text};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::text::check_media_type;
use crate::handle::config::tree::Section;
use crate::handle::config::{Faults, Route};
use crate::handle::respond::Respond;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

/// A fixed answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RespondSettings {
    /// Status code.
    pub status: u16,
    /// Media type of the body.
    pub content_type: String,
    /// The body.
    pub body: String,
}

/// `[site.route.respond]`
pub(crate) static RESPOND: SchemaTable = SchemaTable {
    name: "respond",
    header: "`respond` of a route",
    text: "A fixed answer.",
    base: None,
    keys: &[
        SchemaKey::new(
            "status",
            Integer { min: 200, max: 599 },
            Preset::Integer(200),
        )
        .says("Status code.")
        .example("410")
        .aka(&["code"]),
        SchemaKey::new(
            "content_type",
            Text,
            Preset::Text("text/plain; charset=utf-8"),
        )
        .says("Media type of the body.")
        .example("\"application/json\"")
        .aka(&["type", "mime"]),
        SchemaKey::new("body", Text, Preset::Text(""))
            .says("The body.")
            .example("\"gone\"")
            .aka(&["text", "content"]),
    ],
};

impl HasSettings for Respond {
    type Settings = RespondSettings;
    type Spots = ();
}

impl Configured for Respond {
    const KEY: SchemaKey = SchemaKey::new("respond", ValueType::Table(&RESPOND), Nothing(""))
        .aka(&["response", "answer"]);

    fn read(
        section: &Section,
        _: &OnSection<'_>,
        _: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (RespondSettings, ()) {
        let status: u16 = section.number("status");
        let body = section.text("body");
        if [204, 205, 304].contains(&status) && !body.is_empty() {
            let message = format!("an answer with status {status} has no body");
            faults
                .error(section.spot("body"), message)
                .hint("remove `body`, or use another status");
        }
        let content_type = section.text("content_type");
        check_media_type(
            content_type,
            content_type,
            section.spot("content_type"),
            faults,
        );
        let settings = RespondSettings {
            status,
            content_type: content_type.to_owned(),
            body: body.to_owned(),
        };
        (settings, ())
    }

    fn build(
        settings: &RespondSettings,
        _: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<Respond>, String> {
        Ok(Arc::new(Respond::new(settings, &route.after)))
    }
}
