//! Which site answers for a host, on each listener: sites may be bound to some of them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use hob_config::ListenAddress;

use crate::handle::config::{Config, Site};
use crate::route::host::{Chosen, HostTable};

/// Sites by host, for each listener. Where no site is bound, there is one table for all.
#[derive(Debug, Default)]
pub(crate) struct ListenerHosts {
    /// Of the sites that answer on every listener.
    everywhere: Arc<HostTable>,
    /// By the listeners' indexes in the config; empty where no site is bound to any.
    tables: Vec<Arc<HostTable>>,
    /// The same by their numbers; told once they have numbers.
    numbered: OnceLock<HashMap<u16, Arc<HostTable>, foldhash::fast::RandomState>>,
}

impl ListenerHosts {
    /// Those of a config.
    pub(crate) fn of(config: &Config) -> ListenerHosts {
        let everywhere = Arc::new(table(config, |site| site.listeners.is_empty()));
        if config.sites.iter().all(|site| site.listeners.is_empty()) {
            return ListenerHosts {
                everywhere,
                ..ListenerHosts::default()
            };
        }
        // Listeners that have the same sites share their table.
        let mut known: HashMap<Vec<usize>, Arc<HostTable>> = HashMap::new();
        let listeners = config.listeners.iter();
        let tables = listeners.map(|listener| {
            let is_here = |site: &Site| answers_on(site, &listener.address);
            let sites = (0..).zip(&config.sites);
            let sites: Vec<usize> = sites
                .filter_map(|(index, site)| is_here(site).then_some(index))
                .collect();
            let made = known.entry(sites);
            Arc::clone(made.or_insert_with(|| Arc::new(table(config, is_here))))
        });
        ListenerHosts {
            everywhere,
            tables: tables.collect(),
            numbered: OnceLock::new(),
        }
    }

    /// Says which number each listener has, in the order of the config; only once.
    pub(crate) fn number(&self, numbers: impl Iterator<Item = u16>) {
        if self.tables.is_empty() {
            return;
        }
        let tables = self.tables.iter().map(Arc::clone);
        let is_first = self.numbered.set(numbers.zip(tables).collect()).is_ok();
        debug_assert!(is_first, "sites come into force once");
    }

    /// The site for a host on a listener, by its index, and what decided it.
    #[inline]
    pub(crate) fn choose(&self, host: &[u8], listener: u16) -> Chosen {
        let own = self.numbered.get().and_then(|all| all.get(&listener));
        own.unwrap_or(&self.everywhere).choose(host)
    }
}

/// Whether a site answers on a listener.
fn answers_on(site: &Site, listener: &ListenAddress) -> bool {
    site.listeners.is_empty() || site.listeners.contains(listener)
}

fn table(config: &Config, is_in: impl Fn(&Site) -> bool) -> HostTable {
    let sites = (0..).zip(&config.sites).filter(|(_, site)| is_in(site));
    HostTable::of_some(sites.map(|(index, site)| (index, site.names.iter().map(String::as_str))))
}
