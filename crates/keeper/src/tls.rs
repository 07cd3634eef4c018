//! From the config and the files it names to what TLS listeners offer. The first process uses this
//! to see whether everything fits together, the server to have it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use hob_http::tls::peer::{PeerTerms, PeerTrust};
use hob_http::tls::{Certificate, ClientRule, HostOffer, Need, Offer, Version};

use crate::KeyFiles;
use hob_config::{
    CertificateSource, ClientNeed, Config, Handlers, ListenAddress, ListenTls, Purpose, SiteConfig,
    UpstreamTls, is_certifiable,
};

/// What each listener of a config offers; `None` is clear text.
///
/// # Errors
/// A certificate that cannot be read or whose key is another's: in words, with its file.
pub fn offers<H: Handlers>(
    config: &Config<H>,
    files: &KeyFiles,
) -> Result<Vec<Option<Offer>>, String> {
    let mut certificates = HashMap::new();
    for pair in &files.pairs {
        let certificate = Certificate::from_pem(&pair.certificate, &pair.key);
        let certificate =
            certificate.map_err(|error| format!("{}: {error}", name(&pair.source)))?;
        certificates.insert(pair.source.clone(), certificate);
    }
    let rules = client_rules(config, files)?;
    let listeners = config.listeners.iter();
    listeners
        .map(|listener| match (&listener.tls, listener.purpose) {
            (Some(tls), Purpose::Sites) => {
                let (own, rules) = of_listener(config, &listener.address, &rules);
                offer(&own, tls, &certificates, &rules).map(Some)
            }
            (Some(tls), Purpose::Admin) => {
                // No site's certificate, and none of its rules for clients.
                let alone = Config {
                    sites: Vec::new(),
                    ..config.clone()
                };
                offer(&alone, tls, &certificates, &[]).map(Some)
            }
            (Some(tls), Purpose::Offers) => {
                let alone = Config {
                    sites: Vec::new(),
                    ..config.clone()
                };
                let rule = listener.offers.as_ref();
                let rule = rule.map(|path| client_rule((Need::Require, path), files));
                // Without one, whoever connects would be let in.
                let rule = rule.unwrap_or_else(|| Err("nobody signs for others".to_owned()))?;
                offer(&alone, tls, &certificates, &[Some(rule)]).map(Some)
            }
            (None, _) => Ok(None),
        })
        .collect()
}

/// The config as a listener sees it, with the sites that answer there, and their `rules`.
fn of_listener<'c, H: Handlers>(
    config: &'c Config<H>,
    listener: &ListenAddress,
    rules: &[Option<ClientRule>],
) -> (Cow<'c, Config<H>>, Vec<Option<ClientRule>>) {
    let is_here =
        |site: &SiteConfig<H>| site.listeners.is_empty() || site.listeners.contains(listener);
    if config.sites.iter().all(is_here) {
        return (Cow::Borrowed(config), rules.to_vec());
    }
    let own_rules = config.sites.iter().zip(rules);
    let own_rules = own_rules.filter(|(site, _)| is_here(site));
    let rules = own_rules.map(|(_, rule)| rule.clone()).collect();
    let mut own = config.clone();
    own.sites.retain(is_here);
    (Cow::Owned(own), rules)
}

/// Every certificate that TLS listeners need, or that other servers are shown, each once.
pub fn sources<H: Handlers>(config: &Config<H>) -> Vec<CertificateSource> {
    let mut sources = Vec::new();
    let mut known = HashSet::new();
    let mut add = |source: CertificateSource| {
        if known.insert(source.clone()) {
            sources.push(source);
        }
    };
    for listener in &config.listeners {
        let Some(tls) = &listener.tls else { continue };
        if listener.purpose != Purpose::Sites {
            add(for_nobody(config, tls));
            continue;
        }
        let (own, _) = of_listener(config, &listener.address, &[]);
        add(for_nobody(&own, tls));
        for site in &own.sites {
            add(for_site(&own, tls, site));
        }
    }
    let shown = config.upstream_tls.iter();
    shown
        .filter_map(|tls| tls.certificate.clone())
        .for_each(&mut add);
    sources
}

/// The certificate of a site on a listener.
fn for_site<H: Handlers>(
    config: &Config<H>,
    tls: &ListenTls,
    site: &SiteConfig<H>,
) -> CertificateSource {
    let of_site = site.tls.certificate.as_ref();
    match of_site.unwrap_or_else(|| usual(config, tls)) {
        // A listener's word is for each site that has none of its own.
        CertificateSource::Auto { names } if names.is_empty() || of_site.is_some() => {
            let names = site.names.iter().filter(|name| is_certifiable(name));
            let names: Vec<String> = names.cloned().collect();
            match names.is_empty() {
                true => CertificateSource::SelfSigned,
                false => CertificateSource::Auto { names },
            }
        }
        source => source.clone(),
    }
}

/// The certificate for clients that ask for a host which nobody has, or for none.
fn for_nobody<H: Handlers>(config: &Config<H>, tls: &ListenTls) -> CertificateSource {
    match usual(config, tls) {
        CertificateSource::Auto { names } if names.is_empty() => {
            let of_sites = config.sites.iter().map(|site| for_site(config, tls, site));
            let first = of_sites.into_iter().find(CertificateSource::is_auto);
            first.unwrap_or(CertificateSource::SelfSigned)
        }
        source => source.clone(),
    }
}

/// The certificate for hosts whose site has none of its own.
fn usual<'c, H: Handlers>(config: &'c Config<H>, tls: &'c ListenTls) -> &'c CertificateSource {
    let first = || {
        let of_sites = config.sites.iter();
        of_sites
            .filter_map(|site| site.tls.certificate.as_ref())
            .next()
    };
    let given = tls.certificate.as_ref().or_else(first);
    given.unwrap_or(&CertificateSource::SelfSigned)
}

fn offer<H: Handlers>(
    config: &Config<H>,
    tls: &ListenTls,
    certificates: &HashMap<CertificateSource, Certificate>,
    rules: &[Option<ClientRule>],
) -> Result<Offer, String> {
    let find = |source: &CertificateSource| {
        let found = certificates.get(source).cloned();
        found.ok_or_else(|| format!("{}: it was not read", name(source)))
    };
    let of_site = |(site, rule): (&SiteConfig<H>, &Option<ClientRule>)| {
        let certificate = find(&for_site(config, tls, site))?;
        Ok(HostOffer {
            names: site.names.clone(),
            certificate,
            client: rule.clone(),
        })
    };
    let sites = config.sites.iter().zip(rules);
    let mut hosts = sites.map(of_site).collect::<Result<Vec<_>, String>>()?;
    // Requests for hosts that nobody has go to this site, so its rule is theirs.
    let nameless = config.sites.iter().position(|site| site.names.is_empty());
    let default = match nameless {
        Some(index) => index,
        None => {
            hosts.push(HostOffer {
                names: Vec::new(),
                certificate: find(&for_nobody(config, tls))?,
                client: rules.first().cloned().flatten(),
            });
            hosts.len() - 1
        }
    };
    Ok(Offer {
        minimum: match tls.only_13 {
            true => Version::Tls13,
            false => Version::Tls12,
        },
        suites: tls.suites.iter().map(|suite| (*suite).to_owned()).collect(),
        hosts,
        default,
    })
}

/// The rule for certificates of clients of each site.
///
/// # Errors
/// A file of authorities that holds none.
pub fn client_rules<H: Handlers>(
    config: &Config<H>,
    files: &KeyFiles,
) -> Result<Vec<Option<ClientRule>>, String> {
    let rule = |site: &SiteConfig<H>| {
        let Some((need, path)) = &site.tls.client else {
            return Ok(None);
        };
        let need = match need {
            ClientNeed::Ask => Need::Ask,
            ClientNeed::Require => Need::Require,
        };
        client_rule((need, path), files).map(Some)
    };
    config.sites.iter().map(rule).collect()
}

fn client_rule((need, path): (Need, &Path), files: &KeyFiles) -> Result<ClientRule, String> {
    let fail = |error: String| format!("{}: {error}", path.display());
    let known = files.authorities.iter().find(|(known, _)| known == path);
    let (_, text) = known.ok_or_else(|| fail("it was not read".to_owned()))?;
    ClientRule::from_pem(need, text).map_err(fail)
}

/// TLS with servers of other people.
///
/// # Errors
/// A file that is no good, or a system without authorities.
pub fn peer_terms(tls: &UpstreamTls, files: &KeyFiles) -> Result<PeerTerms, String> {
    let unread = |path: &Path| format!("{}: it was not read", path.display());
    let trust = match &tls.ca {
        _ if !tls.verify => PeerTrust::Anybody,
        None => PeerTrust::System,
        Some(path) => {
            let known = files.authorities.iter().find(|(known, _)| known == path);
            let (_, text) = known.ok_or_else(|| unread(path))?;
            PeerTrust::Authorities(text, "tls.ca")
        }
    };
    let certificate = match &tls.certificate {
        None => None,
        Some(source) => {
            let fail = |error: String| format!("{}: {error}", name(source));
            let mut pairs = files.pairs.iter();
            let pair = pairs.find(|pair| pair.source == *source);
            let pair = pair.ok_or_else(|| fail("it was not read".to_owned()))?;
            let read = Certificate::from_pem(&pair.certificate, &pair.key);
            Some(read.map_err(|error| fail(error.to_string()))?)
        }
    };
    PeerTerms::new(trust, certificate.as_ref()).map_err(|error| match &tls.ca {
        Some(path) => format!("{}: {error}", path.display()),
        None => error,
    })
}

/// Every file of authorities that a config names, each once.
pub fn authorities<H: Handlers>(config: &Config<H>) -> Vec<&Path> {
    let of_clients = config.sites.iter().filter_map(|site| {
        let (_, path) = site.tls.client.as_ref()?;
        Some(path)
    });
    let of_hobs = config.listeners.iter();
    let of_hobs = of_hobs.filter_map(|listener| listener.offers.as_ref());
    let of_servers = config.upstream_tls.iter().filter_map(|tls| tls.ca.as_ref());
    let mut paths: Vec<&Path> = Vec::new();
    for path in of_clients.chain(of_hobs).chain(of_servers) {
        if !paths.contains(&path.as_path()) {
            paths.push(path);
        }
    }
    paths
}

/// A certificate as a person knows it.
pub fn name(source: &CertificateSource) -> String {
    match source {
        CertificateSource::SelfSigned => "the self-signed certificate".to_owned(),
        CertificateSource::Auto { names } => {
            format!("the certificate for {}", names.join(", "))
        }
        CertificateSource::Files { certificate, key } if key == certificate => {
            certificate.display().to_string()
        }
        CertificateSource::Files { certificate, key } => {
            format!("{} with {}", certificate.display(), key.display())
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn suites_that_a_config_can_name_are_those_that_are_spoken() {
        assert_eq!(hob_config::SUITES, hob_http::tls::SUITES);
    }
}
