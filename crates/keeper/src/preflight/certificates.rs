//! Certificates and keys that are files: whether they can be served with, and for whom and until
//! when they are good.

use std::net::IpAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use hob_http::acme::{leaf_of, names_in};
use hob_http::tls::{Certificate, CertificateError, ClientRule, Need};
use hob_trace::calendar::UtcDateTime;

use super::told::PreflightReport;
use crate::acme::plan::external_key;
use crate::key_files;
use crate::tls;
use hob_config::{Built, CertificateSource, Config, Handlers, Spot};

/// A certificate that ends within this is about to end, in seconds.
const SOON_S: i64 = 14 * 24 * 60 * 60;

pub(super) fn look<H: Handlers>(built: &Built<H>, told: &mut PreflightReport<'_, '_>) {
    let Built { config, spots } = built;
    for (listener, spots) in config.listeners.iter().zip(&spots.listeners) {
        if let (Some(tls), Some(at)) = (&listener.tls, spots.tls)
            && let Some(source) = &tls.certificate
        {
            let names = names_without_own(config);
            look_at(source, (at.certificate, at.key), &names, told);
        }
    }
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        let Some(at) = spots.tls else { continue };
        if let Some(source) = &site.tls.certificate {
            let names = site.names.iter().map(String::as_str).collect::<Vec<_>>();
            look_at(source, (at.certificate, at.key), &names, told);
        }
        if let Some((_, file)) = &site.tls.client
            && file.is_file()
        {
            authorities(file, at.client_ca, told);
        }
    }
    let external = config.acme.as_ref().zip(spots.acme);
    if let Some((acme, at)) = external
        && let Some((_, file)) = &acme.external_account
        && file.is_file()
    {
        match key_files::read(file) {
            Err(text) => told.error(at.key, &text, LET_READ),
            Ok(text) => {
                if let Err(text) = external_key(file, &text) {
                    told.sentence(at.key, &text);
                }
            }
        }
    }
}

/// Hosts that are shown a listener's certificate.
fn names_without_own<H: Handlers>(config: &Config<H>) -> Vec<&str> {
    let sites = config.sites.iter();
    let bare = sites.filter(|site| site.tls.certificate.is_none());
    bare.flat_map(|site| site.names.iter().map(String::as_str))
        .collect()
}

fn look_at(
    source: &CertificateSource,
    (of_certificate, of_key): (Spot, Spot),
    names: &[&str],
    told: &mut PreflightReport<'_, '_>,
) {
    let CertificateSource::Files { certificate, key } = source else {
        return;
    };
    // What is not there is told already.
    if !certificate.is_file() || !key.is_file() {
        return;
    }
    let mut read = |path: &Path, spot| {
        let bytes = key_files::read(path);
        bytes.map_err(|text| told.error(spot, &text, LET_READ)).ok()
    };
    let (Some(chain), Some(private)) = (read(certificate, of_certificate), read(key, of_key))
    else {
        return;
    };
    if let Err(error) = Certificate::from_pem(&chain, &private) {
        let (spot, hint) = match error {
            CertificateError::NoCertificate | CertificateError::Chain(_) => {
                (of_certificate, "write the file of the whole chain, as PEM")
            }
            CertificateError::Key(_) => (of_key, "write the file of the private key, as PEM"),
            CertificateError::Mismatch => {
                (of_key, "write the key that the certificate was made with")
            }
        };
        told.error(spot, &format!("{}: {error}", tls::name(source)), hint);
        return;
    }
    validity(certificate, &chain, of_certificate, told);
    is_whole(certificate, &chain, of_certificate, told);
    covered(certificate, &chain, of_certificate, names, told);
}

const LET_READ: &str = "let the user that starts hob read it";

fn authorities(file: &Path, spot: Spot, told: &mut PreflightReport<'_, '_>) {
    match key_files::read(file) {
        Err(text) => told.error(spot, &text, LET_READ),
        Ok(text) => {
            if let Err(error) = ClientRule::from_pem(Need::Ask, &text) {
                let message = format!("{}: {error}", file.display());
                let hint = "write the certificates of who signs those of clients, as PEM";
                told.error(spot, &message, hint);
            }
        }
    }
}

fn validity(file: &Path, chain: &[u8], spot: Spot, told: &mut PreflightReport<'_, '_>) {
    let Some(leaf) = leaf_of(chain) else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_unix_s = now.map_or(0, |now| now.as_secs().cast_signed());
    let day = |unix_s| {
        let UtcDateTime {
            year, month, day, ..
        } = UtcDateTime::from_unix_s(unix_s);
        format!("{year}-{month:02}-{day:02}")
    };
    let file = file.display();
    let (begin, end) = (leaf.not_before_unix_s, leaf.not_after_unix_s);
    let message = if end <= now_unix_s {
        format!("{file}: the certificate expired on {}", day(end))
    } else if begin > now_unix_s {
        format!("{file}: the certificate is not good before {}", day(begin))
    } else if end - now_unix_s < SOON_S && leaf.lifetime_s() > 2 * SOON_S {
        format!("{file}: the certificate expires soon, on {}", day(end))
    } else {
        return;
    };
    let hint = "put a new one in its place, or have hob get them: `certificate = \"auto\"`";
    told.warn(spot, &message, hint);
}

/// Clients know roots, not those between a certificate and its root.
fn is_whole(file: &Path, chain: &[u8], spot: Spot, told: &mut PreflightReport<'_, '_>) {
    let names = names_in(chain);
    let file = file.display();
    let broken = names
        .windows(2)
        .find(|pair| pair[0].issuer != pair[1].subject);
    if let Some([of, next]) = broken.and_then(|pair| <&[_; 2]>::try_from(pair).ok()) {
        let message = format!(
            "{file}: the certificate of {:?} follows that of {:?}, which {:?} signed",
            next.subject, of.subject, of.issuer
        );
        let hint = "put each certificate behind the one that it signed, the site's first";
        return told.warn(spot, &message, hint);
    }
    if let [alone] = &names[..]
        && alone.issuer != alone.subject
    {
        let message = format!(
            "{file}: the certificate stands alone, without that of {:?}, who signed it",
            alone.issuer
        );
        let hint = "write the file of the whole chain, unless clients know who signed it";
        told.warn(spot, &message, hint);
    }
}

fn covered(
    file: &Path,
    chain: &[u8],
    spot: Spot,
    names: &[&str],
    told: &mut PreflightReport<'_, '_>,
) {
    let Some(leaf) = leaf_of(chain) else { return };
    let is_host = |name: &&&str| name.parse::<IpAddr>().is_err();
    let missing = names.iter().filter(is_host);
    let missing: Vec<&str> = missing.copied().filter(|name| !leaf.covers(name)).collect();
    if missing.is_empty() {
        return;
    }
    let message = format!(
        "{}: the certificate is not for {}; it is for {}",
        file.display(),
        missing.join(", "),
        match leaf.names.is_empty() {
            true => "no host".to_owned(),
            false => leaf.names.join(", "),
        }
    );
    let hint = "browsers refuse it there: use one that has the site's names";
    told.warn(spot, &message, hint);
}
