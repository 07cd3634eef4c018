//! Keys of session tickets: one set for the whole server, shared by its threads, kept over reloads,
//! changed by time.
//!
//! ```text
//! ticket   name 16 | nonce 12 | AES-256-GCM (what rustls wants back) | tag 16
//! ```
//!
//! A ticket can be opened only under the client rule it was made under: the key of a rule is the
//! secret of the time, put through HMAC with the rule's digest. So nobody who once connected to a
//! site that asks for no certificate comes back to one that does. The client's certificate in a
//! ticket is verified again each time: one that has run out since makes a whole handshake of it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hmac, rand};
use hob_trace::Mutex;
use rustls::pki_types::UnixTime;
use rustls::server::ProducesTickets;
use rustls::server::danger::ClientCertVerifier;

use crate::tls::client::chain_in;

/// The keys. Cheap to share.
pub struct TicketKeys {
    epochs: Mutex<Option<Epochs>>,
    /// What proofs of addresses are made with, where clients are asked for one.
    address_secret: [u8; 64],
}

/// The secret that is in use, and the one before it.
#[derive(Clone)]
struct Epochs {
    now: Epoch,
    before: Option<Epoch>,
    since: Instant,
}

#[derive(Clone)]
struct Epoch {
    name: [u8; NAME_BYTES],
    secret: [u8; 32],
}

/// How long a secret makes new tickets; it opens them as long again.
const EPOCH: Duration = Duration::from_secs(12 * 60 * 60);
const NAME_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

impl TicketKeys {
    /// New keys, which nobody else has.
    pub fn new() -> Arc<TicketKeys> {
        let mut address_secret = [0; 64];
        // Without randomness there is no handshake that a proof would be for.
        let _ = rand::fill(&mut address_secret);
        Arc::new(TicketKeys {
            epochs: Mutex::new(None),
            address_secret,
        })
    }

    /// What proofs of addresses are made with, on every thread.
    pub(crate) fn address_secret(&self) -> &[u8] {
        &self.address_secret
    }

    /// What makes tickets under a rule, whose certificates of clients this verifies.
    pub(crate) fn under(
        self: &Arc<TicketKeys>,
        rule: u64,
        verifier: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Arc<dyn ProducesTickets> {
        Arc::new(self.ticketer(rule, verifier))
    }

    pub(super) fn ticketer(
        self: &Arc<TicketKeys>,
        rule: u64,
        verifier: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Ticketer {
        Ticketer {
            keys: Arc::clone(self),
            rule,
            verifier,
        }
    }

    /// The secrets of this moment; `None` without randomness.
    fn epochs(&self, now: Instant) -> Option<Epochs> {
        let mut epochs = self.epochs.lock();
        let is_due = match &*epochs {
            None => true,
            Some(epochs) => now.saturating_duration_since(epochs.since) >= EPOCH,
        };
        if is_due {
            let before = epochs.take();
            // One that was not used for a whole turn is over too.
            let before = before
                .filter(|before| now.saturating_duration_since(before.since) < EPOCH * 2)
                .map(|before| before.now);
            *epochs = Some(Epochs {
                now: Epoch::new()?,
                before,
                since: now,
            });
        }
        epochs.clone()
    }
}

impl Epoch {
    fn new() -> Option<Epoch> {
        let mut epoch = Epoch {
            name: [0; NAME_BYTES],
            secret: [0; 32],
        };
        rand::fill(&mut epoch.name).ok()?;
        rand::fill(&mut epoch.secret).ok()?;
        Some(epoch)
    }

    fn key(&self, rule: u64) -> Option<LessSafeKey> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let key = hmac::sign(&secret, &rule.to_be_bytes());
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref()).ok()?;
        Some(LessSafeKey::new(key))
    }

    fn seal(&self, rule: u64, text: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).ok()?;
        let mut body = text.to_vec();
        let aad = Aad::from(&self.name);
        self.key(rule)?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut body)
            .ok()?;
        Some([&self.name[..], &nonce, &body].concat())
    }

    fn open(&self, rule: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_BYTES>()?;
        if *name != self.name {
            return None;
        }
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self
            .key(rule)?
            .open_in_place(nonce, Aad::from(name), &mut body)
            .ok()?;
        let len = text.len();
        body.truncate(len);
        Some(body)
    }
}

/// Makes and opens the tickets of one client rule.
#[derive(Debug)]
pub(super) struct Ticketer {
    keys: Arc<TicketKeys>,
    rule: u64,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Ticketer {
    fn seal(&self, text: &[u8], now: Instant) -> Option<Vec<u8>> {
        self.keys.epochs(now)?.now.seal(self.rule, text)
    }

    fn open(&self, ticket: &[u8], now: Instant) -> Option<Vec<u8>> {
        let epochs = self.keys.epochs(now)?;
        let mut all = [Some(&epochs.now), epochs.before.as_ref()]
            .into_iter()
            .flatten();
        all.find_map(|epoch| epoch.open(self.rule, ticket))
    }

    /// The certificate in what a ticket says would be taken now as well.
    pub(super) fn is_good(&self, text: &[u8], now: UnixTime) -> bool {
        let Some(verifier) = &self.verifier else {
            return true;
        };
        match chain_in(text).as_deref() {
            Some([own, others @ ..]) => verifier.verify_client_cert(own, others, now).is_ok(),
            Some([]) => !verifier.client_auth_mandatory(),
            None => false,
        }
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        EPOCH.as_secs() as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, Instant::now())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let text = self.open(cipher, Instant::now())?;
        self.is_good(&text, UnixTime::now()).then_some(text)
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticketer(keys: &Arc<TicketKeys>, rule: u64) -> Ticketer {
        keys.ticketer(rule, None)
    }

    #[test]
    fn ticket_is_opened_by_every_thread_under_its_own_rule_only() {
        let keys = TicketKeys::new();
        let now = Instant::now();
        let ticket = ticketer(&keys, 1).seal(b"state", now).unwrap();
        assert_eq!(ticketer(&keys, 1).open(&ticket, now).unwrap(), b"state");
        assert_eq!(ticketer(&keys, 2).open(&ticket, now), None);
        let others = TicketKeys::new();
        assert_eq!(ticketer(&others, 1).open(&ticket, now), None);
    }

    #[test]
    fn ticket_lives_for_one_epoch_after_its_own() {
        let keys = TicketKeys::new();
        let (one, start) = (ticketer(&keys, 1), Instant::now());
        let ticket = one.seal(b"x", start).unwrap();
        let second = Duration::from_secs(1);
        assert!(one.open(&ticket, start + EPOCH - second).is_some());
        assert!(one.open(&ticket, start + EPOCH + second).is_some());
        assert!(one.open(&ticket, start + EPOCH * 2 + second * 2).is_none());
    }

    #[test]
    fn secret_nobody_used_for_long_opens_nothing() {
        let keys = TicketKeys::new();
        let (one, start) = (ticketer(&keys, 1), Instant::now());
        let ticket = one.seal(b"x", start).unwrap();
        assert!(one.open(&ticket, start + EPOCH * 2).is_none());
    }

    #[test]
    fn changed_and_cut_tickets_open_nothing() {
        let keys = TicketKeys::new();
        let (one, now) = (ticketer(&keys, 1), Instant::now());
        let ticket = one.seal(b"state", now).unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(one.open(&changed, now), None, "{at}");
            assert_eq!(one.open(&ticket[..at], now), None, "{at}");
        }
    }
}
