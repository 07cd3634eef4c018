//! `remote` of a route: which program is asked for, of whom, and within which limits.

use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::Faults;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Route, UpstreamTls};
use crate::handle::proxy::Proxy;
use crate::handle::proxy::config::{ForwardedFields, HostSent, ProxySettings, ProxySpots};
use crate::handle::proxy::keys::PROXY_TIMEOUT;
use crate::handle::remote::Remote;
use crate::handle::remote::keys::REMOTE;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::buffer::BufferSettings;
use crate::handle::upstream::config::{RetryRules, UpstreamSections, UpstreamSettings};
use crate::handle::upstream::http2::HttpVersions;
use crate::handle::upstream::patience::UpstreamTimeouts;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

impl HasSettings for Remote {
    type Settings = ProxySettings;
    type Spots = ProxySpots;
}

impl Configured for Remote {
    const KEY: SchemaKey = SchemaKey::new("remote", ValueType::Table(&REMOTE), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        _: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (ProxySettings, ProxySpots) {
        let from = UpstreamSections::of(section, on.around.root, faults);
        let spots = ProxySpots {
            to: from.members_spot(),
            tls: from.tls_spots(),
        };
        (read(section, from, faults), spots)
    }

    fn build(
        settings: &ProxySettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<Remote>, String> {
        let proxy = Proxy::build(settings, around, route, pattern)?;
        Ok(Arc::new(Remote(proxy)))
    }

    fn check(
        settings: &ProxySettings,
        spots: &ProxySpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        Proxy::check(settings, spots, config, looked, faults);
    }

    fn upstream_tls(settings: &ProxySettings) -> Option<&UpstreamTls> {
        settings.upstream.tls.as_ref()
    }

    fn runs(settings: &ProxySettings) -> String {
        let program = settings.program.as_deref().unwrap_or_default();
        format!("{program} of {}", settings.upstream.texts())
    }
}

fn read(section: &Section, from: UpstreamSections<'_>, faults: &mut Faults<'_>) -> ProxySettings {
    let members = from.members(faults, |text, resolve| {
        match MemberAddress::parse(text, resolve)? {
            address @ MemberAddress::Tls(..) => {
                let authority = text.strip_prefix("tls://").unwrap_or_default();
                Ok((address, authority.to_owned()))
            }
            _ => Err("a program of another machine is asked over TLS: write `tls://HOST:PORT`"),
        }
    });
    let (mut settings, mut authorities) = (Vec::new(), Vec::new());
    for ((address, authority), terms) in members {
        settings.push(terms.at(address));
        authorities.push(authority);
    }
    let upstream = UpstreamSettings::read(from, settings, faults);
    let shown = upstream.tls.as_ref();
    if shown.is_some_and(|tls| tls.certificate.is_none()) {
        faults
            .error(
                section.header,
                "no certificate is shown to the other machine",
            )
            .hint(
                "add `tls = { certificate = \"this-machine.pem\", key = \"this-machine.key\" }`: \
                 by it the other machine knows who asks",
            );
    }
    let program = section.text("program");
    if section.given("program").is_some() && program.is_empty() {
        faults
            .error(section.spot("program"), "`program` is empty")
            .hint("write what the other machine calls it in its `[[offer]]`");
    }
    ProxySettings {
        upstream,
        timeout: section.inner("timeout", &PROXY_TIMEOUT, UpstreamTimeouts::read),
        retry: RetryRules::read(section, faults),
        buffer: BufferSettings::read(section),
        authorities,
        base: String::new(),
        host: HostSent::Keep,
        forwarded: ForwardedFields::default(),
        headers: Vec::new(),
        location: false,
        cookies: false,
        http: HttpVersions::Http2,
        upgrade: Vec::new(),
        tunnel_idle: section.inner("timeout", &PROXY_TIMEOUT, |timeout| timeout.time("tunnel")),
        head: section.size_usize("head"),
        control: true,
        program: Some(program.to_owned()),
        run: None,
    }
}
