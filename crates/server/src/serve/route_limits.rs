//! Limits of sites and routes that count requests, and whom they have counted already.

use std::sync::{Arc, Weak};

use hob_config::{ConcurrencySettings, RateKey, RateSettings};

use super::sites::{ServedRoute, SitesBuildContext};
use crate::serve::ServerState;
use crate::step::concurrency::{ConcurrencyLimit, KeyGates};
use crate::step::rate::{RateClients, RateLimit};

impl SitesBuildContext<'_> {
    /// The rate of the site, or of a route of this path.
    pub(super) fn rate(
        &self,
        settings: Option<&RateSettings>,
        path: &str,
    ) -> Option<Arc<RateLimit>> {
        let settings = settings?.clone();
        let name = self.limit_name(path, &settings.by);
        let clients = self.shared().rate_clients(name, settings.keys);
        Some(Arc::new(RateLimit { settings, clients }))
    }

    /// Likewise how many requests are in service at once.
    pub(super) fn concurrency(
        &self,
        settings: Option<&ConcurrencySettings>,
        path: &str,
    ) -> Option<Arc<ConcurrencyLimit>> {
        let settings = settings?.clone();
        let name = self.limit_name(path, &settings.by);
        let gates = self.shared().key_gates(name, &settings);
        Some(Arc::new(ConcurrencyLimit { settings, gates }))
    }
}

impl ServedRoute {
    /// It has limits that are asked once it is known who sends a request.
    #[inline]
    pub(crate) fn is_limited_late(&self) -> bool {
        let is_by_user = |rate: &Arc<RateLimit>| rate.settings.by == RateKey::User;
        self.concurrency.is_some() || self.rate.as_ref().is_some_and(is_by_user)
    }
}

impl ServerState {
    /// The clients of the rate of this name: those that are known already, where there are places
    /// for as many.
    fn rate_clients(&self, name: String, keys: usize) -> Arc<RateClients> {
        let mut rates = self.rates.lock();
        rates.retain(|_, known| known.strong_count() > 0);
        let known = rates.get(&name).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.keys == keys) {
            return known;
        }
        let clients = Arc::new(RateClients::new(keys));
        rates.insert(name, Arc::downgrade(&clients));
        clients
    }

    /// The gates of the limit of this name, likewise, with the limits that hold from now on.
    fn key_gates(&self, name: String, settings: &ConcurrencySettings) -> Arc<KeyGates> {
        let limits = ConcurrencyLimit::limits(settings);
        let mut services = self.services.lock();
        services.retain(|_, known| known.strong_count() > 0);
        let known = services.get(&name).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.keys == settings.keys) {
            known.set_limits(limits);
            return known;
        }
        let gates = Arc::new(KeyGates::new(settings.keys, limits));
        services.insert(name, Arc::downgrade(&gates));
        gates
    }
}
