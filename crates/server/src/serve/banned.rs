//! Whether a client is banned where its request came in.

use std::net::IpAddr;
use std::sync::Arc;

use super::bans::{Ban, BanInForce, Bans};
use super::listeners::VISITS_LISTENER;
use super::sites::Sites;
use crate::step::date::format_rfc3339;

/// The ban of a client that came to a listener, unless its rule excepts it by now. Nothing is
/// counted.
pub(crate) fn ban_of(
    (sites, bans): (&Sites, &Bans),
    client: IpAddr,
    listener: u16,
    now_ms: u64,
) -> Option<Arc<BanInForce>> {
    if is_spared(sites, client, listener) {
        return None;
    }
    let known = bans.find(client, now_ms)?;
    let mut rules = sites.bans.iter();
    let rule = rules.find(|rule| rule.settings.name == known.ban.rule);
    match rule.is_some_and(|rule| rule.settings.except.has(client)) {
        true => None,
        false => Some(known),
    }
}

/// Whether nobody is banned for what comes from there: who is believed on clients is none, and
/// other hobs and operators come to listeners of their own.
pub fn is_spared(sites: &Sites, client: IpAddr, listener: u16) -> bool {
    let is_own = listener >= VISITS_LISTENER || sites.offers.listeners.contains_key(&listener);
    let trust = sites.trusts.get(&listener);
    is_own || trust.is_some_and(|trust| trust.peers.has(client))
}

/// When a ban ends, for people.
pub(crate) fn until(ban: &Ban) -> String {
    let time = format_rfc3339((ban.until_ms / 1000) as i64);
    String::from_utf8_lossy(&time).into_owned()
}
