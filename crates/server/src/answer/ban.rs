//! Clients that are banned get a 403 before anything else is done for them, and those that are
//! refused too often are banned: as the head of the answer is about to leave, so that no thread
//! serves another request of theirs after it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_http::{ConnectionFacts, Request, Response, unix_ms};
use hob_trace::{Fault, RefusedBy};

use super::{HandlerContext, listener_log, note_fault};
use crate::handle::plain;
use crate::serve::ServerState;
use crate::serve::banned::{ban_of, is_spared, until};
use crate::serve::bans::{BY_HAND, Ban};
use crate::serve::sites::Sites;
use crate::step::banned_network::BanNetwork;
use crate::step::offences::BanRule;
use hob_config::BanCause;

/// The lane of the file pool in which bans are written down.
const LANE: u64 = u64::MAX - 10;
/// Longest part of a target that a ban remembers, in bytes.
const TARGET_BYTES_MAX: usize = 200;

impl HandlerContext {
    /// The answer of a client that is banned.
    #[inline]
    pub(super) fn refuse_banned(&self, sites: &Sites, request: &Request) -> Option<Response> {
        match self.shared.bans.is_any() {
            true => self.refuse_if_banned(sites, request),
            false => None,
        }
    }

    #[cold]
    fn refuse_if_banned(&self, sites: &Sites, request: &Request) -> Option<Response> {
        let facts = request.facts();
        let now_ms = unix_ms();
        let client = facts.peer?.ip();
        let known = ban_of((sites, &self.shared.bans), client, facts.listener, now_ms)?;
        known.refused.fetch_add(1, Ordering::Relaxed);
        self.counters.ban_refused.add(1);
        let ban = &known.ban;
        let until = until(ban);
        let by = match ban.rule.as_str() {
            BY_HAND => "by hand",
            rule => rule,
        };
        request.set_detail(format!("{by}, until {until}").as_bytes());
        {
            let mut record = request.record_mut();
            record.log = listener_log(sites, request);
            record.refused_by = RefusedBy::Ban;
        }
        note_fault(request, Fault::Client, "ban: the client is banned");
        let mut refusal = plain::banned(ban.until_ms.saturating_sub(now_ms));
        // A connection of a balancer is many clients'.
        refusal.close = ban.close && !sites.trusts.contains_key(&facts.listener);
        Some(refusal)
    }

    /// Whether a connection of a client to a listener is let in.
    #[inline]
    pub(super) fn lets_connect(&self, peer: Option<SocketAddr>, listener: u16) -> bool {
        !self.shared.bans.is_any() || !self.is_shut_out(peer, listener)
    }

    #[cold]
    fn is_shut_out(&self, peer: Option<SocketAddr>, listener: u16) -> bool {
        let sites = self.sites.borrow();
        let Some(client) = peer.map(|peer| peer.ip()) else {
            return false;
        };
        let bans = &self.shared.bans;
        let known = ban_of((&sites, bans), client, listener, unix_ms());
        let Some(known) = known.filter(|known| known.ban.close) else {
            return false;
        };
        known.refused.fetch_add(1, Ordering::Relaxed);
        self.counters.ban_closed.add(1);
        true
    }

    /// An answer with the status of an error is about to leave: it may be one too many.
    pub(super) fn count_error(&self, request: &Request) {
        let sites = self.sites.borrow();
        if sites.bans.is_empty() {
            return;
        }
        let (status, refused_by) = {
            let record = request.record();
            (record.status, record.refused_by)
        };
        let cause = match refused_by {
            RefusedBy::Ban => return,
            RefusedBy::Access => Some(BanCause::Access),
            RefusedBy::Rate => Some(BanCause::Rate),
            RefusedBy::SignIn => Some(BanCause::SignIn),
            RefusedBy::Concurrency | RefusedBy::Overload | RefusedBy::Nobody => None,
        };
        let facts = request.facts();
        let Some(client) = facts.peer.map(|peer| peer.ip()) else {
            return;
        };
        if is_spared(&sites, client, facts.listener) {
            return;
        }
        let why = || {
            let target = request.shown_target();
            let cut = &target[..target.len().min(TARGET_BYTES_MAX)];
            format!("{status} {}", String::from_utf8_lossy(cut))
        };
        for rule in &sites.bans {
            let is_meant = rule.settings.counts_status(status)
                || cause.is_some_and(|cause| rule.settings.counts(cause));
            if is_meant && self.count_offence(rule, client, &why) {
                request.record_mut().note =
                    Some("ban: without `dry_run` the client would be banned");
            }
        }
    }

    /// A TLS handshake has failed for something that the client did.
    pub(super) fn count_handshake(&self, facts: &ConnectionFacts, why: &str) {
        let sites = self.sites.borrow();
        let Some(client) = facts.peer.map(|peer| peer.ip()) else {
            return;
        };
        if sites.bans.is_empty() || is_spared(&sites, client, facts.listener) {
            return;
        }
        for rule in &sites.bans {
            if rule.settings.counts(BanCause::Tls) {
                self.count_offence(rule, client, &|| format!("TLS: {why}"));
            }
        }
    }

    /// Counts a refusal towards a rule. True where it would be a ban if the rule made some.
    fn count_offence(&self, rule: &BanRule, client: IpAddr, why: &dyn Fn() -> String) -> bool {
        let (settings, bans) = (&rule.settings, &self.shared.bans);
        if settings.except.has(client) {
            return false;
        }
        let network = BanNetwork::of_client(client, settings.v6_prefix);
        let outcome = rule.count(network);
        if outcome.has_forgotten {
            self.counters.limit_ban_keys.add(1);
        }
        if !outcome.is_reached {
            return false;
        }
        if settings.dry_run {
            self.counters.ban_dry_run.add(1);
            return true;
        }
        let now_ms = unix_ms();
        let ban = Ban {
            network,
            rule: settings.name.clone(),
            why: why(),
            since_ms: now_ms,
            until_ms: now_ms.saturating_add(settings.time.as_millis() as u64),
            close: settings.close,
        };
        let (until, rule) = (until(&ban), &settings.name);
        tracing::info!(client = %network, %rule, why = ?ban.why, %until, "a client is banned");
        let let_go = bans.add(ban, now_ms);
        self.counters.bans_made.add(1);
        self.counters.limit_bans.add(let_go as u64);
        keep_soon(&self.shared);
        false
    }
}

/// Has what has changed of bans written down by a thread that may wait for a disk.
fn keep_soon(shared: &Arc<ServerState>) {
    if !shared.bans.begin_keeping() {
        return;
    }
    let kept = Arc::clone(shared);
    let job = shared.pool.for_lane(LANE);
    if job.run(move || kept.bans.keep_changes(unix_ms)).is_err() {
        // The pool has no room: the next ban has it written down.
        shared.bans.end_keeping();
    }
}
