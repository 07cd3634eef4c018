//! Programs that hobs of other machines may ask for, and where they do.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_config::{CertificateHolder, ProgramOffer};
use hob_http::TlsFacts;
use hob_http::tls::{ClientCertificate, TlsHosts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::step::access::is_of;

/// What is offered.
#[derive(Default)]
pub struct Offers {
    /// Listeners at which that is asked for and nothing else, by their numbers, and who is let in.
    pub listeners: HashMap<u16, Arc<TlsHosts>, foldhash::fast::RandomState>,
    all: Vec<OfferedProgram>,
}

/// A program that is offered.
struct OfferedProgram {
    offer: ProgramOffer,
    /// Requests for it since the server started.
    requests: Arc<AtomicU64>,
}

/// What is told of a program that hobs of other machines may ask for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OfferReport {
    /// What they call it.
    pub program: String,
    /// Who may ask: names in certificates, and fingerprints of such.
    pub to: Vec<String>,
    /// The path of the route that runs it.
    pub route: String,
    /// Requests of theirs for it since the server started.
    pub requests: u64,
}

impl Offers {
    /// What a config offers. What was offered before goes on counting.
    pub(crate) fn of(all: &[ProgramOffer], before: &Offers) -> Offers {
        let counted = |program: &str| {
            let mut known = before.all.iter();
            known
                .find(|known| known.offer.program == program)
                .map(|known| Arc::clone(&known.requests))
        };
        let offered = all.iter().map(|offer| OfferedProgram {
            offer: offer.clone(),
            requests: counted(&offer.program).unwrap_or_default(),
        });
        Offers {
            listeners: HashMap::default(),
            all: offered.collect(),
        }
    }

    /// What is told of each; `path` is that of a route of a site, by their indices.
    pub(crate) fn told(&self, path: impl Fn(usize, usize) -> String) -> Vec<OfferReport> {
        let told = self.all.iter().map(|one| OfferReport {
            program: one.offer.program.clone(),
            to: one
                .offer
                .to
                .iter()
                .map(CertificateHolder::to_string)
                .collect(),
            route: path(one.offer.site, one.offer.route),
            requests: one.requests.load(Ordering::Relaxed),
        });
        told.collect()
    }

    /// Whether who came to a listener would be let in there now, too: who signs for others may
    /// have changed since the handshake.
    pub(crate) fn admits(&self, listener: u16, tls: &TlsFacts) -> bool {
        let hosts = self.listeners.get(&listener);
        hosts.is_some_and(|hosts| hosts.admits(tls))
    }

    /// The offer of a program to who has shown this certificate, and asks for it.
    pub(crate) fn find(&self, program: &[u8], peer: &ClientCertificate) -> Option<&ProgramOffer> {
        let mut all = self.all.iter();
        let found =
            all.find(|one| one.offer.program.as_bytes() == program && is_for(&one.offer, peer))?;
        found.requests.fetch_add(1, Ordering::Relaxed);
        Some(&found.offer)
    }

    /// Whether anything is offered to who has shown this certificate.
    pub(crate) fn has_any_for(&self, peer: &ClientCertificate) -> bool {
        self.all.iter().any(|one| is_for(&one.offer, peer))
    }
}

fn is_for(offer: &ProgramOffer, peer: &ClientCertificate) -> bool {
    offer.to.iter().any(|one| is_of(peer, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(common_name: &str, host: &str) -> ClientCertificate {
        ClientCertificate {
            subject: format!("CN={common_name}"),
            common_name: common_name.to_owned(),
            issuer: String::new(),
            serial: String::new(),
            not_before: String::new(),
            not_after: String::new(),
            hosts: vec![host.to_owned()],
            fingerprint: "0A".repeat(32),
        }
    }

    #[test]
    fn only_who_is_listed_has_a_program() {
        let offer = |program: &str, to: &[CertificateHolder]| ProgramOffer {
            program: program.to_owned(),
            to: to.to_vec(),
            site: 0,
            route: 0,
        };
        let name = |text: &str| CertificateHolder::Name(text.to_owned());
        let all = [
            offer("a", &[name("front"), name("front.example.com")]),
            offer("b", &[CertificateHolder::Fingerprint("0A".repeat(32))]),
        ];
        let offers = Offers::of(&all, &Offers::default());
        let has = |program: &str, peer: &ClientCertificate| {
            offers.find(program.as_bytes(), peer).is_some()
        };
        assert!(has("a", &peer("front", "x")) && has("a", &peer("x", "Front.example.com")));
        assert!(!has("a", &peer("front2", "x")) && !has("a", &peer("Front", "x")));
        assert!(has("b", &peer("anybody", "x")) && !has("d", &peer("front", "x")));
        let mut other = peer("x", "y");
        other.fingerprint = "0B".repeat(32);
        assert!(!has("b", &other) && !offers.has_any_for(&other));
        other.common_name = "front".to_owned();
        assert!(offers.has_any_for(&other));
        // A later config goes on counting.
        let told = Offers::of(&all, &offers).told(|_, _| "/a/*".to_owned());
        let told: Vec<_> = told
            .iter()
            .map(|one| (&*one.program, one.to.join(" "), one.requests))
            .collect();
        let digits = format!("sha256:{}", "0A".repeat(32));
        let names = "front front.example.com".to_owned();
        assert_eq!(told, [("a", names, 2), ("b", digits, 1)]);
    }
}
