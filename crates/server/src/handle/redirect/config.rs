//! `redirect` of a route.

use std::sync::Arc;

use crate::handle::config::build_site::{OnSection, template_wrong, warn_literal};
use crate::handle::config::key::Preset::{Nothing, Required};
use crate::handle::config::key::ValueType::{Integer, OrText, Text};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Faults, Route};
use crate::handle::redirect::Redirect;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::route::template::Location;
use crate::serve::sites::SitesBuildContext;
use hob_config::REDIRECT_STATUSES;

/// A redirect.
#[derive(Clone, Debug, PartialEq)]
pub struct RedirectSettings {
    /// Target: URL or path; `{name}` captures, `{path}`, `{query}` and `{host}` are replaced.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// `[site.route.redirect]`
static REDIRECT: SchemaTable = SchemaTable {
    name: "redirect",
    header: "`redirect` of a route",
    text: "Sends the client to another place. A plain string is the target.",
    base: None,
    keys: &[
        SchemaKey::new("to", Text, Required)
            .says(
                "Target: a path or a URL. Captures of the route's path are put in, as are `{uri}` \
                 (path and query as they came), `{path}`, `{query}` and `{host}`.",
            )
            .example("\"https://example.org{uri}\"")
            .aka(&["target", "url", "location"]),
        SchemaKey::new(
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

impl HasSettings for Redirect {
    type Settings = RedirectSettings;
    type Spots = ();
}

impl Configured for Redirect {
    const KEY: SchemaKey = SchemaKey::new("redirect", OrText("to", &REDIRECT), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        _: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (RedirectSettings, ()) {
        let to = section.text("to");
        if let (Some(given), Some(pattern)) = (section.given("to"), on.pattern)
            && let Err(error) = Location::parse(to, pattern)
        {
            template_wrong(&error, to, given.spot, faults);
        }
        let path = on.route.text("path");
        warn_literal(to, path, section.spot("to"), faults);
        let status: u16 = section.number("status");
        if !REDIRECT_STATUSES.contains(&status) {
            let message = format!("{status} is no status of a redirect");
            let hint = "use 301 or 308 (for good), 302, 303 or 307 (for now)";
            faults.error(section.spot("status"), message).hint(hint);
        }
        let settings = RedirectSettings {
            to: to.to_owned(),
            status,
        };
        (settings, ())
    }

    fn build(
        settings: &RedirectSettings,
        _: &mut SitesBuildContext<'_>,
        _: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<Redirect>, String> {
        Ok(Arc::new(Redirect {
            to: Location::parse(&settings.to, pattern).map_err(|error| error.to_string())?,
            status: settings.status,
        }))
    }
}
