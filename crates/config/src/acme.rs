//! Certificates that are got by themselves: from whom, and how names are proved.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::check::{Built, Spots};
use super::fault::{Faults, Spot};
use super::schema::{ACME, DNS};
use super::tls::CertificateSource;
use super::tree::Section;
use super::{Config, Handlers, ListenAddress, Loopback, SiteConfig};

/// How certificates are got by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// Address of the authority's directory.
    pub directory: String,
    /// Whom the authority may write to, as URLs.
    pub contact: Vec<String>,
    /// How names are proved, where nothing else is needed.
    pub method: AcmeChallengeType,
    /// Authorities that may have signed the directory's certificate, besides the system's.
    pub ca: Option<PathBuf>,
    /// Kind of certificate.
    pub profile: Option<String>,
    /// Name of an account that was agreed on elsewhere, and the file of its key.
    pub external_account: Option<(String, PathBuf)>,
    /// Who sets records.
    pub dns: Option<DnsHook>,
}

/// A way to prove that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcmeChallengeType {
    /// A page in clear text, on port 80: `http-01`.
    Http,
    /// A certificate, on port 443: `tls-alpn-01`.
    TlsAlpn,
    /// A record in the domain name system, the one way for wildcards: `dns-01`.
    Dns,
}

/// Most names of one certificate.
pub const NAMES_MAX: usize = 100;

/// A program that sets records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsHook {
    /// The program.
    pub run: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
    /// It is killed after this.
    pub timeout: Duration,
    /// How long after the last record the authority is told.
    pub wait: Duration,
}

/// Where the parts of `[acme]` stand.
#[derive(Clone, Copy, Debug)]
pub struct AcmeSpots {
    challenge: Option<Spot>,
    ca: Spot,
    /// Where the key of an account is named.
    pub key: Spot,
    run: Spot,
}

/// What a config says about automatic certificates; `None` when nothing wants one and nothing is
/// said.
pub(crate) fn build_acme<H: Handlers>(
    root: &Section,
    config: &Config<H>,
    faults: &mut Faults<'_>,
) -> Option<(Acme, AcmeSpots)> {
    let is_wanted = sources(config).any(CertificateSource::is_auto);
    let default = Section::new(&ACME, root.header);
    let section = match root.section("acme") {
        Some(section) => section,
        None if is_wanted => &default,
        None => return None,
    };
    let directory = section.text("directory").to_owned();
    if !directory.starts_with("https://") || directory.contains(char::is_whitespace) {
        faults
            .error(
                section.spot("directory"),
                "this is no address of a directory",
            )
            .hint("it begins with `https://`");
    }
    let has_clear_text = config
        .site_listeners()
        .any(|listener| listener.tls.is_none() && is_tcp(&listener.address));
    let method = match section.given("challenge") {
        Some(_) => method_of(section.word("challenge")),
        None if has_clear_text => AcmeChallengeType::Http,
        None => AcmeChallengeType::TlsAlpn,
    };
    let external = section.section("external_account");
    let external_account = external.and_then(|external| {
        // What is missing is told already.
        let (_, _) = (external.given("id")?, external.given("key")?);
        let key = external.optional_path("key")?.clone();
        Some((external.text("id").to_owned(), key))
    });
    let dns = section.section("dns");
    let built = Acme {
        directory,
        contact: contact(section, faults),
        method,
        ca: section.optional_path("ca").cloned(),
        profile: section.optional_text("profile").map(str::to_owned),
        external_account,
        dns: dns.and_then(build_dns),
    };
    let spots = AcmeSpots {
        challenge: section.given("challenge").map(|given| given.spot),
        ca: section.spot("ca"),
        key: external.map_or(section.header, |external| external.spot("key")),
        run: dns.map_or(section.header, |dns| dns.spot("run")),
    };
    if method == AcmeChallengeType::Http && !has_clear_text {
        faults
            .error(
                section.spot("challenge"),
                "no listener speaks clear text, and \"http-01\" needs one",
            )
            .hint("add `[[listen]]` with `address = \":80\"`, or write \"tls-alpn-01\"");
    }
    if method == AcmeChallengeType::Dns && built.dns.is_none() && !section.has("dns") {
        faults
            .error(
                section.spot("challenge"),
                "\"dns-01\" needs a program that sets records",
            )
            .hint("add `dns = \"/path/of/program\"`");
    }
    Some((built, spots))
}

fn method_of(word: &str) -> AcmeChallengeType {
    match word {
        "tls-alpn-01" => AcmeChallengeType::TlsAlpn,
        "dns-01" => AcmeChallengeType::Dns,
        _ => AcmeChallengeType::Http,
    }
}

fn is_tcp(address: &ListenAddress) -> bool {
    !matches!(address, ListenAddress::Unix(_))
}

fn build_dns(dns: &Section) -> Option<DnsHook> {
    debug_assert!(dns.is_of(&DNS));
    dns.given("run")?;
    let arguments = dns.texts("arguments");
    Some(DnsHook {
        run: dns.optional_path("run")?.clone(),
        arguments: arguments
            .into_iter()
            .map(|(text, _)| text.to_owned())
            .collect(),
        timeout: dns.time("timeout"),
        wait: dns.time("wait"),
    })
}

fn contact(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (text, spot) in section.texts("contact") {
        let address = text.strip_prefix("mailto:").unwrap_or(text);
        let is_address = address.split_once('@').is_some_and(|(who, host)| {
            !who.is_empty() && !host.is_empty() && !address.contains(char::is_whitespace)
        });
        if !is_address {
            faults
                .error(spot, format!("{text:?} is no mail address"))
                .hint("write it as \"admin@example.org\"");
            continue;
        }
        all.push(format!("mailto:{address}"));
    }
    all
}

/// Every source of a certificate that a config names.
fn sources<H: Handlers>(config: &Config<H>) -> impl Iterator<Item = &CertificateSource> {
    let of_listeners = config.listeners.iter();
    let of_listeners =
        of_listeners.filter_map(|listener| listener.tls.as_ref()?.certificate.as_ref());
    let of_sites = config.sites.iter();
    of_listeners.chain(of_sites.filter_map(|site| site.tls.certificate.as_ref()))
}

/// Whether an authority could give a certificate for this name at all.
pub fn is_certifiable(name: &str) -> bool {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let is_local = host == "localhost" || host.ends_with(".localhost");
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    !is_local && host.parse::<IpAddr>().is_err() && host.split('.').all(is_label)
}

/// Rules across keys: names that want a certificate can have one.
pub(crate) fn check<H: Handlers>(built: &Built<H>, faults: &mut Faults<'_>) {
    let Built { config, spots } = built;
    let Some(acme) = &config.acme else {
        return;
    };
    let is_usual = config.listeners.iter().any(|listener| {
        let tls = listener.tls.as_ref();
        tls.and_then(|tls| tls.certificate.as_ref())
            .is_some_and(CertificateSource::is_auto)
    });
    let has_name = |site: &SiteConfig<H>| site.names.iter().any(|name| is_certifiable(name));
    let is_any = config.sites.iter().any(has_name);
    for (listener, spots) in config.listeners.iter().zip(&spots.listeners) {
        let tls = listener.tls.as_ref();
        let source = tls.and_then(|tls| tls.certificate.as_ref());
        let is_told = listener.localhost == Some(Loopback::V6);
        if source.is_some_and(CertificateSource::is_auto) && !is_any && !is_told {
            let spot = spots.tls.map_or(spots.address, |tls| tls.certificate);
            faults
                .error(spot, "no site has a name to get a certificate for")
                .hint("add `names = [\"example.org\"]` to a site, or write \"self-signed\"");
        }
    }
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        let own = site.tls.certificate.as_ref();
        let is_own = own.is_some_and(CertificateSource::is_auto);
        let is_wanted = is_own || (is_usual && own.is_none());
        if !is_wanted {
            continue;
        }
        let spot = spots.tls.map_or(spots.header, |tls| tls.certificate);
        if is_own && site.names.is_empty() && !spots.has_names {
            faults
                .error(spot, "there is no name to get a certificate for")
                .hint("add `names = [\"example.org\"]` to the site");
        }
        if site.names.len() > NAMES_MAX {
            let message = format!("a certificate has at most {NAMES_MAX} names");
            faults
                .error(spot, message)
                .hint("split the names between several sites");
        }
        for (name, place) in site.names.iter().zip(&spots.names) {
            if is_own && !is_certifiable(name) {
                faults
                    .error(
                        *place,
                        format!("no authority gives a certificate for {name:?}"),
                    )
                    .see(spot, "it is wanted here")
                    .hint("move the name to a site without `tls = \"auto\"`");
            }
            if name.starts_with("*.") && is_certifiable(name) {
                check_wildcard(acme, &built.spots, *place, faults);
            }
        }
    }
}

fn check_wildcard<H: Handlers>(
    acme: &Acme,
    spots: &Spots<H>,
    place: Spot,
    faults: &mut Faults<'_>,
) {
    if acme.dns.is_some() {
        return;
    }
    let mut fault = faults.error(place, "a wildcard is proved by \"dns-01\" only");
    if let Some(given) = spots.acme.and_then(|spots| spots.challenge) {
        fault = fault.see(given, "the challenge");
    }
    fault.hint("add `dns = \"/path/of/program\"` to `[acme]`");
}

/// The file of authorities that `[acme]` names, with where.
pub(crate) fn authorities<'c, H: Handlers>(
    config: &'c Config<H>,
    spots: &Spots<H>,
) -> Option<(&'c std::path::Path, Spot)> {
    let ca = config.acme.as_ref()?.ca.as_deref()?;
    Some((ca, spots.acme?.ca))
}

/// Files that `[acme]` names, with where.
pub(crate) fn files<'c, H: Handlers>(
    config: &'c Config<H>,
    all: &Spots<H>,
) -> Vec<(&'c std::path::Path, Spot)> {
    let (Some(acme), Some(spots)) = (&config.acme, all.acme) else {
        return Vec::new();
    };
    let ca = authorities(config, all);
    let key = acme.external_account.as_ref();
    let key = key.map(|(_, path)| (path.as_path(), spots.key));
    let run = acme.dns.as_ref().map(|dns| (dns.run.as_path(), spots.run));
    ca.into_iter().chain(key).chain(run).collect()
}
