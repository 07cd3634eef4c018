//! Programs that hobs of other machines may ask for, and where they do.

use std::collections::HashSet;

use hob_config::{OfferPeer, ProgramOffer};
use hob_http::tls::ClientCertificate;

/// What is offered.
#[derive(Default)]
pub struct Offers {
    /// Listeners at which that is asked for and nothing else, by their numbers.
    pub listeners: HashSet<u16, foldhash::fast::RandomState>,
    all: Vec<ProgramOffer>,
}

impl Offers {
    pub(crate) fn of(all: &[ProgramOffer]) -> Offers {
        Offers {
            listeners: HashSet::default(),
            all: all.to_vec(),
        }
    }

    /// The offer of a program to who has shown this certificate.
    pub(crate) fn find(&self, program: &[u8], peer: &ClientCertificate) -> Option<&ProgramOffer> {
        let mut all = self.all.iter();
        all.find(|offer| offer.program.as_bytes() == program && is_for(offer, peer))
    }

    /// Whether anything is offered to who has shown this certificate.
    pub(crate) fn has_any_for(&self, peer: &ClientCertificate) -> bool {
        self.all.iter().any(|offer| is_for(offer, peer))
    }
}

fn is_for(offer: &ProgramOffer, peer: &ClientCertificate) -> bool {
    offer.to.iter().any(|one| match one {
        OfferPeer::Fingerprint(digits) => *digits == peer.fingerprint,
        OfferPeer::Name(name) => {
            *name == peer.common_name
                || peer
                    .hosts
                    .iter()
                    .any(|host| host.eq_ignore_ascii_case(name))
        }
    })
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
        let offer = |program: &str, to: &[OfferPeer]| ProgramOffer {
            program: program.to_owned(),
            to: to.to_vec(),
            site: 0,
            route: 0,
        };
        let name = |text: &str| OfferPeer::Name(text.to_owned());
        let offers = Offers::of(&[
            offer("a", &[name("front"), name("front.example.com")]),
            offer("b", &[OfferPeer::Fingerprint("0A".repeat(32))]),
        ]);
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
    }
}
