//! The countries of clients, as the sites in force know them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hob_trace::format::ClientCountrySource;

use super::ServerState;

/// The lane of the pool that a file of countries is read in; folders have other numbers.
const LANE: u64 = u64::MAX - 9;

impl ServerState {
    /// Has the file of countries read anew where it has changed, by a thread that serves nobody.
    pub fn look_at_countries(&self) {
        let Some(countries) = self.sites().countries.clone() else {
            return;
        };
        if countries.has_changed() {
            // Where too much is waited for it is looked at again in a second.
            let _ = self.pool.for_lane(LANE).run(move || countries.look());
        }
    }
}

/// The countries of the sites that are in force, for who writes logs.
pub struct CountriesInForce(pub Arc<ServerState>);

impl ClientCountrySource for CountriesInForce {
    fn country(&self, client: IpAddr) -> Option<[u8; 2]> {
        self.0.sites().country(Some(client)).code()
    }
}

impl fmt::Debug for CountriesInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountriesInForce").finish_non_exhaustive()
    }
}
