//! Of which country the client is, where the config has a file of countries.

use hob_config::Country;

use super::follow::ExplainContext;
use super::told::Explanation;

impl ExplainContext<'_> {
    /// The country of the request's client.
    pub(super) fn country(&self) -> Country {
        self.sites
            .country(self.request.facts().peer.map(|peer| peer.ip()))
    }

    /// Tells it, where the client's address is known.
    pub(super) fn note_country(&self, told: &mut Explanation) {
        let Some(countries) = &self.sites.countries else {
            return;
        };
        let Some(peer) = self.request.facts().peer else {
            return;
        };
        let (client, file) = (peer.ip().to_canonical(), countries.kind());
        told.note(match self.country() {
            Country::UNKNOWN => format!("`countries` ({file}) knows no country of {client}"),
            country => format!("{client} is of {country}, says `countries` ({file})"),
        });
    }
}
