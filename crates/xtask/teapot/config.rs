//! `teapot` of a route.

use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::{OrText, Text};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Faults, Route};
use crate::handle::teapot::Teapot;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

/// A teapot.
#[derive(Clone, Debug, PartialEq)]
pub struct TeapotSettings {
    /// What it says.
    pub words: String,
}

/// `[site.route.teapot]`
static TEAPOT: SchemaTable = SchemaTable {
    name: "teapot",
    header: "`teapot` of a route",
    text: "Brews no coffee. A plain string is what it says.",
    base: None,
    keys: &[
        SchemaKey::new("words", Text, Preset::Text("short and stout"))
            .says("What it says.")
            .example("\"here is my spout\""),
    ],
};

impl HasSettings for Teapot {
    type Settings = TeapotSettings;
    type Spots = ();
}

impl Configured for Teapot {
    const KEY: SchemaKey = SchemaKey::new("teapot", OrText("words", &TEAPOT), Nothing(""));

    fn read(
        section: &Section,
        _: &OnSection<'_>,
        _: &mut Programs<'_>,
        _: &mut Faults<'_>,
    ) -> (TeapotSettings, ()) {
        let settings = TeapotSettings {
            words: section.text("words").to_owned(),
        };
        (settings, ())
    }

    fn build(
        settings: &TeapotSettings,
        _: &mut SitesBuildContext<'_>,
        _: &Route,
        _: &Pattern,
    ) -> Result<Arc<Teapot>, String> {
        Ok(Arc::new(Teapot {
            words: settings.words.clone(),
        }))
    }
}
