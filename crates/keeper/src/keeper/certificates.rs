//! Certificates and keys: read by the keeper, because the server and its programs may not; and the
//! one that signs itself, made once and kept.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hob_http::acme::{AuthorityFolder, Item, Store};
use hob_http::private_folder::PrivateFolder;
use hob_http::tls::{Certificate, SelfSigned};

use super::KeeperFailure;
use super::state::State;
use crate::Config;
use crate::key_files::{self, CertificateAndKey, FILE_BYTES_MAX, KeyFiles};
use crate::tls;
use hob_config::{CertificateSource, ListenAddress};

/// The one that signs itself is made again when it is good for no longer than this, in seconds.
const RENEWED_BEFORE_S: i64 = 30 * 24 * 60 * 60;
/// A chain and its key, as PEM.
type Certified = (Vec<u8>, Vec<u8>);

/// First words of its file; then come its names and until when it is good.
const MARK: &str = "hob self-signed";
/// Its name in its folder.
const FILE: &str = "self-signed.pem";

/// Reads every certificate that a config names, and sees whether they can be served with. `state`
/// is where one that is made here is kept.
pub(super) fn read_all(
    config: &Config,
    state: &State,
    warnings: &mut Vec<String>,
) -> Result<KeyFiles, KeeperFailure> {
    let mut files = KeyFiles::default();
    for source in tls::sources(config) {
        let (certificate, key) = match &source {
            CertificateSource::SelfSigned => own(config, state, warnings)?,
            CertificateSource::Files { certificate, key } => {
                let read = |path| key_files::read(path).map_err(KeeperFailure::Config);
                (read(certificate)?, read(key)?)
            }
            CertificateSource::Auto { names } => match got(config, state, names, warnings) {
                Some(pair) => pair,
                // Until there is one.
                None => own(config, state, warnings)?,
            },
        };
        files.pairs.push(CertificateAndKey {
            source,
            certificate,
            key,
        });
    }
    for path in tls::authorities(config) {
        let text = key_files::read(path).map_err(KeeperFailure::Config)?;
        files.authorities.push((path.to_owned(), text));
    }
    tls::offers(config, &files).map_err(KeeperFailure::Config)?;
    for tls in &config.upstream_tls {
        tls::peer_terms(tls, &files).map_err(KeeperFailure::Config)?;
    }
    Ok(files)
}

/// The file of a certificate that comes from an authority.
pub(super) fn kept_file(config: &Config, state: &State, names: &[String]) -> Option<PathBuf> {
    let (acme, name) = (config.acme.as_ref()?, names.first()?);
    let folder = AuthorityFolder::new(state.as_ref().ok()?, &acme.directory);
    Some(folder.file(&Item::Certificate(name.clone())))
}

/// The certificate that was got from an authority, if there is one to be served at all: it may be
/// about to end, or lack a name that is new.
fn got(
    config: &Config,
    state: &State,
    names: &[String],
    warnings: &mut Vec<String>,
) -> Option<Certified> {
    let (acme, name) = (config.acme.as_ref()?, names.first()?);
    let folder = AuthorityFolder::new(state.as_ref().ok()?, &acme.directory);
    let item = Item::Certificate(name.clone());
    let unusable = match folder.load(&item) {
        Ok(None) => return None,
        Ok(Some(text)) => match Certificate::from_pem(&text, &text) {
            Ok(_) => return Some((text.clone(), text)),
            Err(error) => format!("{}: {error}", folder.file(&item).display()),
        },
        Err(error) => error.to_string(),
    };
    warnings.push(format!(
        "the certificate kept for {name} cannot be served: {unusable}; another is asked for"
    ));
    None
}

/// The certificate that signs itself: as it was kept, else a new one.
fn own(
    config: &Config,
    state: &State,
    warnings: &mut Vec<String>,
) -> Result<Certified, KeeperFailure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_unix_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let (names, addresses) = own_names(config);
    let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let for_whom = [names.clone(), shown].concat().join(" ");
    let folder = state.as_ref().map(|state| state.join("tls"));
    if let Ok(folder) = &folder
        && let Some(kept) = kept(folder, &for_whom, now_unix_s)
    {
        return Ok(kept);
    }
    let made = SelfSigned::new(&names, &addresses, now_unix_s).map_err(|error| {
        KeeperFailure::Config(format!("cannot make a self-signed certificate: {error}"))
    })?;
    let until = now_unix_s.saturating_add(SelfSigned::LIFETIME_S);
    let text = format!(
        "{MARK}\n{for_whom}\n{until}\n{}{}",
        made.certificate, made.key
    );
    let not_kept = match folder {
        Ok(folder) => keep(&folder, &text).err().map(|error| {
            let path = folder.join(FILE);
            format!(
                "the self-signed certificate cannot be kept in {}: {error}",
                path.display()
            )
        }),
        Err(text) => Some(text.clone()),
    };
    if let Some(why) = not_kept {
        let text = format!(
            "{why}; the self-signed certificate is made anew at each start (`state` names another \
             folder)"
        );
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    Ok(pair_of(&text))
}

/// Names of sites and addresses of listeners, so that a client that was told to trust it can.
fn own_names(config: &Config) -> (Vec<String>, Vec<IpAddr>) {
    let mut names = vec!["localhost".to_owned(), "*.localhost".to_owned()];
    let of_sites = config.sites.iter().flat_map(|site| &site.names);
    let of_admin = config.admin.iter().flat_map(|admin| &admin.names);
    for name in of_sites.chain(of_admin) {
        if !names.contains(name) && name.parse::<IpAddr>().is_err() {
            names.push(name.clone());
        }
    }
    let mut addresses: Vec<IpAddr> = vec![[127, 0, 0, 1].into(), IpAddr::V6(1.into())];
    for listener in config
        .listeners
        .iter()
        .filter(|listener| listener.tls.is_some())
    {
        if let ListenAddress::Tcp(address) = &listener.address
            && !address.ip().is_unspecified()
            && !addresses.contains(&address.ip())
        {
            addresses.push(address.ip());
        }
    }
    (names, addresses)
}

fn kept(folder: &Path, for_whom: &str, now_unix_s: i64) -> Option<Certified> {
    let bytes = PrivateFolder::open(folder)
        .ok()?
        .read(FILE, FILE_BYTES_MAX as u64);
    let text = String::from_utf8(bytes.ok()?).ok()?;
    let mut lines = text.lines();
    let is_it = lines.next() == Some(MARK) && lines.next() == Some(for_whom);
    let until: i64 = lines.next()?.parse().ok()?;
    (is_it && until.saturating_sub(now_unix_s) > RENEWED_BEFORE_S).then(|| pair_of(&text))
}

/// It is the one that was made here.
pub(super) fn is_self_signed(text: &[u8]) -> bool {
    text.starts_with(MARK.as_bytes())
}

/// Certificate and key stand in one file; each is looked for in all of it.
fn pair_of(text: &str) -> Certified {
    (text.as_bytes().to_vec(), text.as_bytes().to_vec())
}

/// Writes the file that only we may read, whole or not at all.
fn keep(folder: &Path, text: &str) -> io::Result<()> {
    PrivateFolder::make(folder)?.write(FILE, text.as_bytes())
}
