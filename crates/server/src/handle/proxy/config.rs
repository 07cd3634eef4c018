//! `proxy` of a route: who is asked, how, and within which limits.

use std::sync::Arc;
use std::time::Duration;

use hob_http::is_host;
use hob_http::tls::peer::PeerName;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::{Programs, check_env};
use crate::handle::config::text::{header_name_wrong, header_value_wrong};
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Route, UpstreamTls};
use crate::handle::proxy::Proxy;
use crate::handle::proxy::check;
use crate::handle::proxy::head::is_own_field;
use crate::handle::proxy::keys::{PROXY, PROXY_TIMEOUT};
use crate::handle::script::build::half_close;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::buffer::BufferSettings;
use crate::handle::upstream::config::{
    RetryRules, UpstreamSections, UpstreamSettings, UpstreamTlsSpots,
};
use crate::handle::upstream::http2::HttpVersions;
use crate::handle::upstream::patience::UpstreamTimeouts;
use crate::handle::upstream::run::config::RunSettings;
use crate::handle::upstream::run::keys::RUN;
use crate::handle::{Configured, HasSettings, upstream};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// Another HTTP server.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySettings {
    /// Who answers.
    pub upstream: UpstreamSettings,
    /// Limits of time.
    pub timeout: UpstreamTimeouts,
    /// When another member is asked.
    pub retry: RetryRules,
    /// What is held of bodies.
    pub buffer: BufferSettings,
    /// The name and port of each member, as `to` has them.
    pub authorities: Vec<String>,
    /// What stands in the place of the route's fixed folder, from a slash to a slash; empty where
    /// paths go on as they are.
    pub base: String,
    /// The host that is asked for.
    pub host: HostSent,
    /// What is told of the client.
    pub forwarded: ForwardedFields,
    /// Fields that are set, those without a value left out; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Answers that lead to the other server lead here.
    pub location: bool,
    /// Its cookies hold for the route.
    pub cookies: bool,
    /// Versions of HTTP that are spoken with it.
    pub http: HttpVersions,
    /// Protocols that may be spoken through tunnels.
    pub upgrade: Vec<String>,
    /// How long nothing may go through a tunnel.
    pub tunnel_idle: Duration,
    /// Longest head of an answer, in bytes.
    pub head: usize,
    /// It may steer its answers.
    pub control: bool,
    /// The program that another hob is asked for; `None` where any server answers as it does.
    pub program: Option<String>,
    /// The server that hob starts itself to be asked; `None` where it does not.
    pub run: Option<RunSettings>,
}

/// The host that a member is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSent {
    /// The client's.
    Keep,
    /// The member's own.
    Upstream,
    /// This one.
    Fixed(String),
}

/// Fields that tell of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardedFields {
    /// `X-Forwarded-For`
    pub client: bool,
    /// `X-Forwarded-Proto`
    pub proto: bool,
    /// `X-Forwarded-Host`
    pub host: bool,
    /// `X-Forwarded-Port`
    pub port: bool,
    /// `X-Real-IP`
    pub real_ip: bool,
    /// `Forwarded` (RFC 7239)
    pub standard: bool,
    /// `Via`
    pub via: bool,
}

/// Where the parts of a `proxy` stand.
pub struct ProxySpots {
    pub(crate) to: Spot,
    pub(crate) tls: UpstreamTlsSpots,
}

impl HasSettings for Proxy {
    type Settings = ProxySettings;
    type Spots = ProxySpots;
}

impl Configured for Proxy {
    const KEY: SchemaKey = SchemaKey::new("proxy", ValueType::OrText("to", &PROXY), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (ProxySettings, ProxySpots) {
        let from = UpstreamSections::of(section, on.around.root, faults);
        let (mut to, tls) = (from.members_spot(), from.tls_spots());
        let mut settings = read(section, from, faults);
        check_env(section, faults);
        settings.run = RunSettings::read(section, on, programs, faults);
        if settings.run.is_some() {
            to = section.spot(RUN);
            settings.authorities = vec!["localhost".to_owned()];
        }
        (settings, ProxySpots { to, tls })
    }

    fn build(
        settings: &ProxySettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<Proxy>, String> {
        let (run, upstream) =
            around.run(settings.run.as_ref(), &settings.upstream, &route.label())?;
        let addresses = upstream.texts();
        let protocol = check::protocol(settings.http);
        let (upstream, gate) = around.upstream(&upstream, &route.label(), protocol);
        Ok(Arc::new(Proxy {
            upstream,
            run,
            gate,
            half_close: half_close(route),
            settings: settings.clone(),
            addresses,
        }))
    }

    fn check(
        settings: &ProxySettings,
        spots: &ProxySpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        if let Some(run) = &settings.run {
            run.check(spots.to, config, looked, faults);
        }
        upstream::config::look_at_sockets(&settings.upstream, spots.to, looked, faults);
        upstream::config::look_at_tls(&settings.upstream, spots.tls, looked, faults);
    }

    fn upstream_tls(settings: &ProxySettings) -> Option<&UpstreamTls> {
        settings.upstream.tls.as_ref()
    }

    fn look(settings: &ProxySettings, spots: &ProxySpots, look: &mut ProgramCheck<'_, '_, '_>) {
        if let Some(run) = &settings.run {
            run.look(spots.to, look);
        }
    }

    fn program(settings: &ProxySettings) -> Option<usize> {
        settings.run.as_ref().map(|run| run.rules)
    }

    fn grace(settings: &ProxySettings) -> Duration {
        let run = settings.run.as_ref();
        run.map_or(Duration::ZERO, |run| run.grace)
    }

    fn runs(settings: &ProxySettings) -> String {
        let run = settings.run.as_ref().map(|run| run.name().to_owned());
        run.unwrap_or_else(|| settings.upstream.texts())
    }
}

/// A member, as `to` has it.
struct HttpMember {
    address: MemberAddress,
    authority: String,
    base: String,
}

impl HttpMember {
    fn parse(
        text: &str,
        resolve: impl FnOnce(&str) -> std::path::PathBuf,
    ) -> Result<HttpMember, &'static str> {
        if text.starts_with("unix:") {
            return Ok(HttpMember {
                address: MemberAddress::parse(text, resolve)?,
                authority: "localhost".to_owned(),
                base: String::new(),
            });
        }
        if text.starts_with("srv:") {
            let address = MemberAddress::parse(text, resolve)?;
            let authority = address.service_host().unwrap_or_default().to_owned();
            return Ok(HttpMember {
                address,
                authority,
                base: String::new(),
            });
        }
        let (rest, is_tls) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            (None, None) => {
                return Err("write `http://HOST:PORT`, `https://`, `unix:PATH` or `srv:SERVICE`");
            }
        };
        let (authority, base) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if !is_host(authority.as_bytes()) {
            return Err("write a host and a port behind the `//`, such as `127.0.0.1:3000`");
        }
        let is_visible = |byte: u8| byte.is_ascii_graphic() && !b"?#\\".contains(&byte);
        if !base.bytes().all(is_visible) {
            return Err("write its path percent-encoded, without `?` and `#`");
        }
        let port = authority.rsplit_once(':');
        let (host, port) = match port.filter(|(_, port)| !port.contains(']')) {
            Some((host, port)) => (host, port),
            None if is_tls => (authority, "443"),
            None => (authority, "80"),
        };
        let mut address = MemberAddress::parse(&format!("{host}:{port}"), resolve)?;
        if is_tls {
            let name = PeerName::parse(host).ok_or("no certificate can be for this host")?;
            address = MemberAddress::Tls(Box::new(address), name);
        }
        let base = match base.ends_with('/') || base.is_empty() {
            true => base.to_owned(),
            false => format!("{base}/"),
        };
        Ok(HttpMember {
            address,
            authority: authority.to_owned(),
            base,
        })
    }
}

fn read(section: &Section, from: UpstreamSections<'_>, faults: &mut Faults<'_>) -> ProxySettings {
    let members = from.members(faults, |text, resolve| HttpMember::parse(text, resolve));
    let base = members
        .first()
        .map(|(first, _)| first.base.clone())
        .unwrap_or_default();
    if members.iter().any(|(member, _)| member.base != base) {
        faults
            .error(from.members_spot(), "the members have different paths")
            .hint("write the same path behind each, or none: any of them may get a request");
    }
    let (mut settings, mut authorities) = (Vec::new(), Vec::new());
    for (member, terms) in members {
        settings.push(terms.at(member.address));
        authorities.push(member.authority);
    }
    let has = |word: &str| {
        section
            .texts("forwarded")
            .iter()
            .any(|(one, _)| *one == word)
    };
    ProxySettings {
        upstream: UpstreamSettings::read(from, settings, faults),
        timeout: section.inner("timeout", &PROXY_TIMEOUT, UpstreamTimeouts::read),
        retry: RetryRules::read(section, faults),
        buffer: BufferSettings::read(section),
        authorities,
        base,
        host: host(section, faults),
        forwarded: ForwardedFields {
            client: has("X-Forwarded-For"),
            proto: has("X-Forwarded-Proto"),
            host: has("X-Forwarded-Host"),
            port: has("X-Forwarded-Port"),
            real_ip: has("X-Real-IP"),
            standard: has("Forwarded"),
            via: has("Via"),
        },
        headers: headers(section, faults),
        location: section.flag("location"),
        cookies: section.flag("cookies"),
        http: match section.word("http") {
            "1.1" => HttpVersions::Http1,
            "2" => HttpVersions::Http2,
            _ => HttpVersions::Auto,
        },
        upgrade: upgrade(section, faults),
        tunnel_idle: section.inner("timeout", &PROXY_TIMEOUT, |timeout| timeout.time("tunnel")),
        head: section.size_usize("head"),
        control: section.flag("control"),
        program: None,
        run: None,
    }
}

fn host(section: &Section, faults: &mut Faults<'_>) -> HostSent {
    match section.text("host") {
        "keep" => HostSent::Keep,
        "upstream" => HostSent::Upstream,
        text if is_host(text.as_bytes()) => HostSent::Fixed(text.to_owned()),
        text => {
            faults
                .error(section.spot("host"), format!("{text:?} is no host"))
                .hint("write `keep`, `upstream`, or a name with or without a port");
            HostSent::Keep
        }
    }
}

/// Fields to set. What says how a request is to be read, and who asks, is hob's own.
fn headers(section: &Section, faults: &mut Faults<'_>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for pair in section.map("headers") {
        let name = pair.name.to_ascii_lowercase();
        if let Some((message, hint)) = header_name_wrong(&pair.name) {
            faults.error(pair.key, message).hint(hint);
        } else if is_own_field(name.as_bytes()) {
            faults
                .error(
                    pair.key,
                    format!("`{}` is written by hob itself", pair.name),
                )
                .hint("`host`, `forwarded` and `upgrade` say what is told; remove it here");
        }
        if let Some(hint) = header_value_wrong(&pair.text) {
            let message = format!("{:?} is no value of a field", pair.text);
            faults.error(pair.spot, message).hint(hint);
        }
        headers.push((name, pair.text.clone()));
    }
    headers
}

fn upgrade(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    let names = section.texts("upgrade");
    for (name, spot) in &names {
        let is_name = hob_http::head::is_name(name.as_bytes());
        // It would take the connection out of the protocol that was checked.
        //= rfc9113#3.1
        if !is_name || name.eq_ignore_ascii_case("h2c") {
            faults
                .error(*spot, format!("{name:?} is no protocol for a tunnel"))
                .hint("write a name such as `websocket`; `h2c` is never passed on");
        }
    }
    names.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_http_addresses_with_or_without_a_path() {
        let parse = |text| HttpMember::parse(text, |path| path.into());
        let told = |text| {
            let member = parse(text).unwrap();
            (member.address.to_string(), member.authority, member.base)
        };
        let are = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(
            told("http://127.0.0.1:3000"),
            are("127.0.0.1:3000", "127.0.0.1:3000", "")
        );
        assert_eq!(told("http://[::1]/a"), are("[::1]:80", "[::1]", "/a/"));
        assert_eq!(
            told("http://localhost:1/"),
            are("127.0.0.1:1", "localhost:1", "/")
        );
        let tls = told("https://app.internal/");
        assert_eq!(tls, are("app.internal:443", "app.internal", "/"));
        let name = |text| parse(text).unwrap().address.peer_name().cloned();
        let expected = PeerName::parse("localhost");
        assert_eq!(name("https://localhost:8443"), expected);
        assert_eq!(name("https://[::1]:8443"), PeerName::parse("::1"));
        assert_eq!(name("http://localhost:8443"), None);
        let service = told("srv:_app._tcp.internal");
        assert_eq!(service, are("srv:_app._tcp.internal", "internal", ""));
        assert_eq!(told("unix:/run/x"), are("unix:/run/x", "localhost", ""));
        for wrong in [
            "",
            "127.0.0.1:3000",
            "http://",
            "http://a b:1",
            "http://127.0.0.1:1/?x",
            "https://",
            "http://user@127.0.0.1:1",
            "http://127.0.0.1:99999",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
