//! Certificates that are served: for whom, until when, and where they come from.

use std::collections::HashSet;

use hob_http::acme::leaf_of;
use hob_http::{Answered, unix_ms};
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api::{Certificate, Certificates, Order};
use crate::resources::Expiry;
use hob_keeper::KeyFiles;
use hob_keeper::acme::CertificateState;
use hob_keeper::tls;
use hob_server::config::{CertificateSource, Config};

/// One certificate, as far as it does not change with time.
#[derive(Clone, Debug)]
pub struct ServedCertificate {
    source: CertificateSource,
    names: Vec<String>,
    issuer: String,
    not_before_unix_s: i64,
    not_after_unix_s: i64,
    /// Addresses of the listeners that show it.
    listeners: Vec<String>,
}

impl ServedCertificate {
    /// When it ends, for alerts.
    pub(crate) fn expiry(&self) -> Expiry {
        Expiry {
            name: self
                .names
                .first()
                .cloned()
                .unwrap_or(tls::name(&self.source)),
            from_unix_s: self.not_before_unix_s,
            until_unix_s: self.not_after_unix_s,
        }
    }
}

/// The certificates of a config's listeners; `addresses` has the real address of each.
pub fn held(config: &Config, keys: &KeyFiles, addresses: &[String]) -> Vec<ServedCertificate> {
    // What each listener shows, looked up once: sites may be thousands.
    let shown: Vec<(HashSet<CertificateSource>, &String)> = (config.listeners.iter())
        .zip(addresses)
        .map(|(listener, address)| {
            let alone = Config {
                listeners: vec![listener.clone()],
                upstream_tls: Vec::new(),
                ..config.clone()
            };
            (tls::sources(&alone).into_iter().collect(), address)
        })
        .collect();
    let pairs = keys.pairs.iter();
    let of = |pair: &hob_keeper::CertificateAndKey| {
        let leaf = leaf_of(&pair.certificate)?;
        let shows = shown
            .iter()
            .filter(|(sources, _)| sources.contains(&pair.source));
        Some(ServedCertificate {
            source: pair.source.clone(),
            names: leaf.names,
            issuer: leaf.issuer,
            not_before_unix_s: leaf.not_before_unix_s,
            not_after_unix_s: leaf.not_after_unix_s,
            listeners: shows.map(|(_, address)| (*address).clone()).collect(),
        })
    };
    pairs.filter_map(of).collect()
}

/// `GET /v1/certificates`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let admin = &ask.admin;
    let now_unix_s = i64::try_from(unix_ms() / 1000).unwrap_or(i64::MAX);
    let ordered = admin.report.lock().certificates.clone();
    let held = admin.certificates.lock();
    let certificates = held.iter().map(|one| told(one, &ordered, now_unix_s));
    let answer = Certificates {
        certificates: certificates.collect(),
        orders: ordered.iter().map(Order::from).collect(),
    };
    Answered::Ready(reply::object(200, &json!(answer)))
}

fn told(one: &ServedCertificate, ordered: &[CertificateState], now_unix_s: i64) -> Certificate {
    let left_s = one.not_after_unix_s - now_unix_s;
    let (source, key) = match &one.source {
        CertificateSource::SelfSigned => ("self-signed".to_owned(), None),
        CertificateSource::Auto { .. } => ("authority".to_owned(), None),
        CertificateSource::Files { certificate, key } => (
            certificate.display().to_string(),
            Some(key.display().to_string()),
        ),
    };
    let order = match &one.source {
        CertificateSource::Auto { names } => ordered.iter().find(|state| state.names == *names),
        _ => None,
    };
    let state = match (order, left_s) {
        (_, left_s) if left_s <= 0 => "expired",
        (_, _) if one.not_before_unix_s > now_unix_s => "not yet good",
        (Some(order), _) if order.error.is_some() => "good; renewal failed",
        (Some(order), _) if order.is_ordering => "good; being renewed",
        _ => "good",
    };
    Certificate {
        names: one.names.clone(),
        listener: one.listeners.join(", "),
        issuer: one.issuer.clone(),
        not_before_unix_s: one.not_before_unix_s,
        not_after_unix_s: one.not_after_unix_s,
        days_left: left_s.div_euclid(86_400),
        key,
        source,
        state: state.to_owned(),
    }
}
