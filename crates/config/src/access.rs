//! `access` of a site or a route: who may ask for what it answers, and how.

use std::sync::Arc;

use super::certificate_holder::CertificateHolder;
use super::clients::{ALL, ClientSet};
use super::country::{CountrySet, miss_countries};
use super::fault::{Faults, Spot};
use super::method::{read_methods, with_head};
use super::tree::Section;

/// Who may ask, and how; all that is said has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRules {
    /// Who may, by where they connect from; `None` is everybody.
    pub allow: Option<ClientSet>,
    /// Who may not, whatever `allow` says.
    pub deny: ClientSet,
    /// Who may beside those of `allow`, by the country of their addresses; empty where that is
    /// `None`.
    pub allow_countries: CountrySet,
    /// Who may not, likewise.
    pub deny_countries: CountrySet,
    /// Who may, by their certificates; empty is everybody.
    pub certificates: Vec<CertificateHolder>,
    /// With which methods, HEAD among them where GET is; empty is with any.
    pub methods: Vec<String>,
}

impl AccessRules {
    /// They say who may, and not only how.
    pub fn asks_who(&self) -> bool {
        self.allow.is_some()
            || !self.deny.is_empty()
            || !self.deny_countries.is_empty()
            || !self.certificates.is_empty()
    }

    /// They go by countries.
    pub fn asks_country(&self) -> bool {
        !self.allow_countries.is_empty() || !self.deny_countries.is_empty()
    }
}

/// The rules of a site or a route, if it has some of its own; and where it names certificates.
pub(crate) fn read_access(
    root: &Section,
    section: &Section,
    faults: &mut Faults<'_>,
) -> (Option<Arc<AccessRules>>, Option<Spot>) {
    let Some(section) = section.section("access") else {
        return (None, None);
    };
    let (allowed, allow_countries) = read_clients((root, section), "allow", faults);
    let allow = section.given("allow").map(|given| {
        if section.given_texts("allow").is_empty() {
            let hint = "remove it, or write `deny = [\"all\"]` where nobody may";
            faults.error(given.spot, "nobody is allowed").hint(hint);
        }
        allowed
    });
    let (deny, deny_countries) = read_clients((root, section), "deny", faults);
    let everybody = section
        .given_texts("deny")
        .into_iter()
        .find(|(text, _)| *text == ALL);
    if let (Some((_, spot)), Some(given)) = (everybody, section.given("allow")) {
        faults
            .error(spot, "everybody is denied, those of `allow` too")
            .see(given.key, "`allow`")
            .hint("remove it: who is not allowed is denied where there is `allow`");
    }
    let rules = AccessRules {
        allow,
        deny,
        allow_countries,
        deny_countries,
        certificates: CertificateHolder::read(section, "certificates", faults),
        methods: with_head(read_methods(section.given_texts("methods"), faults)),
    };
    let asks = (!rules.certificates.is_empty()).then(|| section.spot("certificates"));
    (Some(Arc::new(rules)), asks)
}

/// Clients by their addresses, and by their countries.
fn read_clients(
    (root, section): (&Section, &Section),
    key: &str,
    faults: &mut Faults<'_>,
) -> (ClientSet, CountrySet) {
    let (countries, others) = CountrySet::split(section.given_texts(key), faults);
    miss_countries(root, &countries, section.spot(key), faults);
    let words = "`unix`, `all`, or a country such as `country:DE`";
    (ClientSet::of(others, (true, words), faults), countries)
}
