//! Programs that are offered to hobs of other machines: `[[offer]]`, and `offers` of a listener.

use super::certificate_holder::CertificateHolder;
use super::config::{Listener, Purpose};
use super::fault::{Faults, Spot, listed};
use super::nearest::nearest;
use super::tls::CertificateSource;
use super::tree::Section;
use super::{Handlers, SiteConfig};

/// A program that others may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOffer {
    /// What they call it: the name of its route.
    pub program: String,
    /// Who may.
    pub to: Vec<CertificateHolder>,
    /// Its site, by its index.
    pub site: usize,
    /// Its route there, by its index.
    pub route: usize,
}

/// A route with a name.
struct NamedRoute<'s> {
    name: &'s str,
    spot: Spot,
    /// Its site's index and its own.
    at: (usize, usize),
}

/// What is offered, of these sites.
pub(crate) fn build_offers<H: Handlers>(
    root: &Section,
    sites: &[SiteConfig<H>],
    listeners: &[Listener],
    faults: &mut Faults<'_>,
) -> Vec<ProgramOffer> {
    let named = named_routes(root, faults);
    let mut offers: Vec<ProgramOffer> = Vec::new();
    for section in root.sections("offer") {
        let offer = build_offer(section, sites, &named, faults);
        let Some(offer) = offer else { continue };
        let mut before = offers.iter();
        if before.any(|known| known.program == offer.program) {
            let message = format!("the program {:?} is offered already", offer.program);
            faults
                .error(section.spot("program"), message)
                .hint("put all who may ask for it into `to` of one `[[offer]]`");
        }
        offers.push(offer);
    }
    let handlers = || sites.iter().flat_map(|site| &site.routes);
    for route in &named {
        let is_meant = |section: &Section| section.text("program") == route.name;
        let is_called = handlers().any(|one| one.handler.calls().contains(&route.at));
        if !is_called && !root.sections("offer").iter().any(is_meant) {
            faults
                .warn(route.spot, "`name` does nothing here")
                .hint("neither an `[[offer]]` nor a page means it: remove the name");
        }
    }
    let is_asked = |listener: &Listener| listener.purpose == Purpose::Offers;
    if let (Some(first), false) = (
        root.sections("offer").first(),
        listeners.iter().any(is_asked),
    ) {
        faults
            .error(first.header, "there is no listener to ask for it at")
            .hint(
                "add `[[listen]]` with `offers = \"hobs-ca.pem\"`, the file of who signs \
                 certificates of other hobs",
            );
    }
    offers
}

/// Every route that has a name; two have not the same.
fn named_routes<'s>(root: &'s Section, faults: &mut Faults<'_>) -> Vec<NamedRoute<'s>> {
    let mut named: Vec<NamedRoute<'s>> = Vec::new();
    for (site_index, site) in root.sections("site").iter().enumerate() {
        for (route_index, route) in site.sections("route").iter().enumerate() {
            let Some(name) = route.optional_text("name") else {
                continue;
            };
            let spot = route.spot("name");
            if let Some(first) = named.iter().find(|known| known.name == name) {
                faults
                    .error(spot, format!("a second route is named {name:?}"))
                    .see(first.spot, "the first")
                    .hint("give one of them another name");
            }
            named.push(NamedRoute {
                name,
                spot,
                at: (site_index, route_index),
            });
        }
    }
    named
}

fn build_offer<H: Handlers>(
    section: &Section,
    sites: &[SiteConfig<H>],
    named: &[NamedRoute<'_>],
    faults: &mut Faults<'_>,
) -> Option<ProgramOffer> {
    let to = CertificateHolder::read(section, "to", faults);
    if section.given("to").is_some() && section.given_texts("to").is_empty() {
        faults
            .error(section.spot("to"), "`to` names nobody")
            .hint("write names in the certificates of those who may ask, or remove the offer");
    }
    section.given("program")?;
    let (program, spot) = (section.text("program"), section.spot("program"));
    let Some(route) = named.iter().find(|route| route.name == program) else {
        let known = || named.iter().map(|route| route.name);
        let hint = match nearest(program, known()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None if named.is_empty() => {
                format!("write `name = {program:?}` into the `[[site.route]]` that runs it")
            }
            None => format!("routes have the names {}", listed(known(), " and ")),
        };
        faults
            .error(spot, format!("no route is named {program:?}"))
            .hint(hint);
        return None;
    };
    let (site, index) = route.at;
    let handler = &sites.get(site)?.routes.get(index)?.handler;
    if handler.program().is_none() {
        faults
            .error(
                spot,
                format!("the route {program:?} runs no program of this machine"),
            )
            .see(route.spot, "the route")
            .hint("offers are for routes of `cgi`, `warm`, `resident`, and of those with `run`");
        return None;
    }
    Some(ProgramOffer {
        program: program.to_owned(),
        to,
        site,
        route: index,
    })
}

/// What a listener of offers must have, and must not.
pub(crate) fn look_at_listener(
    section: &Section,
    listener: &mut Listener,
    faults: &mut Faults<'_>,
) {
    let Some(path) = section.optional_path("offers") else {
        return;
    };
    listener.purpose = Purpose::Offers;
    listener.offers = Some(path.clone());
    let certificate = listener.tls.as_mut().and_then(|tls| {
        tls.http3 = false;
        tls.certificate.as_ref()
    });
    if !matches!(certificate, Some(CertificateSource::Files { .. })) {
        faults
            .error(
                section.spot("offers"),
                "a listener of offers needs a certificate of its own",
            )
            .hint(
                "add `tls = { certificate = \"this-machine.pem\", key = \"this-machine.key\" }`: \
                 those who ask check it",
            );
    }
    if let Some(trusted) = section.given("trusted") {
        faults
            .warn(trusted.key, "`trusted` does nothing here")
            .hint("remove it: who is listed in an `[[offer]]` is believed, and nobody else");
    }
}
