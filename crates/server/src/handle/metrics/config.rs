//! `metrics` of a route.

use std::path::PathBuf;
use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::key::Preset::{Nothing, Required};
use crate::handle::config::key::ValueType::{OrText, Path};
use crate::handle::config::key::{SchemaKey, SchemaTable};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Faults, Route};
use crate::handle::metrics::Metrics;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

/// A route with the server's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsSettings {
    /// File with the token of scrapers.
    pub token_file: PathBuf,
}

/// `[site.route.metrics]`
static ROUTE_METRICS: SchemaTable = SchemaTable {
    name: "metrics",
    header: "`metrics` of a route",
    text: "The numbers of the whole server, for Prometheus. A plain string is `token_file`.",
    base: None,
    keys: &[SchemaKey::new("token_file", Path, Required)
        .says(
            "File with the token that a scraper must send (`Authorization: Bearer ...`): 16 to \
             1024 characters without spaces, on one line. The user that the server runs as must be \
             able to read it.",
        )
        .example("\"/etc/hob/metrics.token\"")
        .aka(&["token", "bearer", "password_file", "credentials_file"])],
};

impl HasSettings for Metrics {
    type Settings = MetricsSettings;
    type Spots = ();
}

impl Configured for Metrics {
    const KEY: SchemaKey =
        SchemaKey::new("metrics", OrText("token_file", &ROUTE_METRICS), Nothing(""))
            .aka(&["prometheus", "status"]);

    fn read(
        section: &Section,
        _: &OnSection<'_>,
        _: &mut Programs<'_>,
        _: &mut Faults<'_>,
    ) -> (MetricsSettings, ()) {
        // What is missing is told already.
        let given = section.given("token_file");
        let file = given.and_then(|_| section.optional_path("token_file"));
        let settings = MetricsSettings {
            token_file: file.cloned().unwrap_or_default(),
        };
        (settings, ())
    }

    fn build(
        settings: &MetricsSettings,
        _: &mut SitesBuildContext<'_>,
        _: &Route,
        _: &Pattern,
    ) -> Result<Arc<Metrics>, String> {
        Metrics::new(settings).map(Arc::new)
    }
}
