//! Limits of sites and routes that count requests, and whom they have counted already.

use std::sync::{Arc, Weak};

use hob_config::{BandwidthSettings, ConcurrencySettings, RateKey, RateSettings};
use hob_http::Request;

use super::sites::{ServedRoute, SitesBuildContext};
use crate::handle::config;
use crate::serve::ServerState;
use crate::serve::concurrency::{ConcurrencyLimit, KeyGates};
use crate::step::bandwidth::BandwidthLimit;
use crate::step::rate::{RateClients, RateLimit};
use crate::step::request_key::CountedRequest;

/// Limits of a site, or of one of its routes.
#[derive(Clone, Default)]
pub(super) struct CountedLimits {
    pub(super) rate: Option<Arc<RateLimit>>,
    pub(super) concurrency: Option<Arc<ConcurrencyLimit>>,
    pub(super) bandwidth: Option<Arc<BandwidthLimit>>,
}

impl SitesBuildContext<'_> {
    /// The limits that routes of a site have together.
    pub(super) fn limits_of_site(&self, site: &config::Site) -> CountedLimits {
        CountedLimits {
            rate: self.rate(site.rate.as_ref(), ""),
            concurrency: self.concurrency(site.concurrency.as_ref(), ""),
            bandwidth: self.bandwidth(site.bandwidth.as_ref(), ""),
        }
    }

    /// The limits of a route: its own, or its site's.
    pub(super) fn limits(&self, route: &config::Route, of_site: &CountedLimits) -> CountedLimits {
        let (label, of_site) = (route.label(), of_site.clone());
        CountedLimits {
            rate: self.rate(route.rate.as_ref(), &label).or(of_site.rate),
            concurrency: self
                .concurrency(route.concurrency.as_ref(), &label)
                .or(of_site.concurrency),
            bandwidth: self
                .bandwidth(route.bandwidth.as_ref(), &label)
                .or(of_site.bandwidth),
        }
    }

    /// Likewise how fast answers leave.
    fn bandwidth(
        &self,
        settings: Option<&BandwidthSettings>,
        path: &str,
    ) -> Option<Arc<BandwidthLimit>> {
        let settings = settings?.clone();
        let shared = self.shared();
        let name = |whose: &str| format!("{} {path} bandwidth of {whose}", self.site());
        // Without clients there is one place.
        let keys = settings.client.map_or(1, |_| settings.keys);
        let clients = shared.rate_clients(name("clients"), keys);
        let all = shared.rate_clients(name("all"), 1);
        Some(Arc::new(BandwidthLimit {
            settings,
            clients,
            all,
        }))
    }

    /// The rate of the site, or of a route of this path.
    fn rate(&self, settings: Option<&RateSettings>, path: &str) -> Option<Arc<RateLimit>> {
        let settings = settings?.clone();
        let name = format!("{} {path} {:?}", self.site(), settings.by);
        let clients = self.shared().rate_clients(name, settings.keys);
        Some(Arc::new(RateLimit { settings, clients }))
    }

    /// Likewise how many requests are in service at once.
    fn concurrency(
        &self,
        settings: Option<&ConcurrencySettings>,
        path: &str,
    ) -> Option<Arc<ConcurrencyLimit>> {
        let settings = settings?.clone();
        let name = format!("{} {path} {:?}", self.site(), settings.by);
        let gates = self.shared().key_gates(name, &settings);
        Some(Arc::new(ConcurrencyLimit { settings, gates }))
    }
}

impl ServedRoute {
    /// A request that came to it by a path, as its limits count it.
    pub(crate) fn counted<'a>(
        &'a self,
        request: &'a Request,
        path: &'a [u8],
    ) -> CountedRequest<'a> {
        CountedRequest {
            request,
            label: &self.label,
            pattern: &self.pattern,
            path,
        }
    }

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
