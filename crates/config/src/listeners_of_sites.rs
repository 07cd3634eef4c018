//! Whether the listeners that sites and their routes name are there, and each has a site.

use super::check::{ListenSpots, SiteSpots};
use super::fault::{Faults, Spot, listed};
use super::{Config, Handlers, ListenAddress, Listener, Purpose, SiteConfig};

/// Listeners that a site or a `when` of its routes names are there.
pub(crate) fn known<H: Handlers>(
    config: &Config<H>,
    (site, spots): (&SiteConfig<H>, &SiteSpots<H>),
    faults: &mut Faults<'_>,
) {
    known_ones(config, (&site.listeners, &spots.listeners), faults);
    for (route, spots) in site.routes.iter().zip(&spots.routes) {
        if let Some(when) = &route.when {
            known_ones(config, (&when.listeners, &spots.listeners), faults);
        }
    }
}

fn known_ones<H: Handlers>(
    config: &Config<H>,
    (addresses, spots): (&[ListenAddress], &[Spot]),
    faults: &mut Faults<'_>,
) {
    let mut told = None;
    for (address, spot) in addresses.iter().zip(spots) {
        let is_it = |listener: &Listener| listener.address == *address;
        if config.site_listeners().any(is_it) || told == Some(*spot) {
            continue;
        }
        told = Some(*spot);
        let mut all: Vec<String> = config
            .site_listeners()
            .map(|listener| listener.address.to_string())
            .take(LISTENERS_TOLD)
            .collect();
        all.dedup();
        let message = format!("no listener of sites has the address `{address}`");
        let hint = match all.is_empty() {
            true => "give it a `[[listen]]`".to_owned(),
            false => format!(
                "write the `address` of one: {}",
                listed(all.iter().map(String::as_str), " or ")
            ),
        };
        faults.error(*spot, message).hint(hint);
    }
}

/// Tells of listeners on which no site answers.
pub(crate) fn answered<H: Handlers>(
    config: &Config<H>,
    spots: &[ListenSpots],
    faults: &mut Faults<'_>,
) {
    let is_here = |site: &SiteConfig<H>, listener: &Listener| {
        site.listeners.is_empty() || site.listeners.contains(&listener.address)
    };
    let mut told = None;
    for (listener, spots) in config.listeners.iter().zip(spots) {
        let has_site = config.sites.iter().any(|site| is_here(site, listener));
        if listener.purpose == Purpose::Sites
            && !config.sites.is_empty()
            && !has_site
            && told != Some(spots.address)
        {
            told = Some(spots.address);
            faults
                .warn(spots.address, "no site answers on this listener")
                .hint("name it in the `listener` of a site, or remove it");
        }
    }
}

/// Listeners that are named where one is not there.
const LISTENERS_TOLD: usize = 6;
