//! Rules across keys, and what must be there on the disk.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::acme::{self, AcmeSpots};
use super::auth::check_auth;
use super::fault::{Faults, Spot};
use super::find_file;
use super::listeners_of_sites;
use super::program::ProgramSpots;
use super::route::pattern::Pattern;
use super::tls::TlsSpots;
use super::unreachable::EarlierRoutes;
use super::{
    CertificateSource, Config, Handlers, ListenAddress, LogTarget, Loopback, SiteConfig, candidates,
};

/// What is on the disk, as far as checks ask.
pub trait Disk {
    /// What stands at this path, symbolic links followed.
    fn look(&self, path: &Path) -> PathStatus;

    /// Why authorities cannot be read from a file that is there, which the key `_key` names.
    fn authorities_fault(&self, _path: &Path, _key: &str) -> Option<String> {
        None
    }

    /// Why what stands in these files is no certificate and its key.
    fn certificate_fault(&self, _certificate: &Path, _key: &Path) -> Option<String> {
        None
    }

    /// Why a file that is there does not say which addresses are of which country.
    fn countries_fault(&self, _path: &Path) -> Option<String> {
        None
    }

    /// A file below a folder that is wanted.
    fn find_file(&self, _root: &Path, _wanted: &mut dyn FnMut(&Path) -> bool) -> Option<PathBuf> {
        None
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStatus {
    /// A folder.
    Folder,
    /// A file, or anything else that is no folder.
    File,
    /// Nothing.
    Nothing,
    /// It cannot be told, and why.
    Hidden(String),
    /// Whatever the config wants.
    Trusted,
}

/// The disk of this machine; files of authorities are not looked into.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn look(&self, path: &Path) -> PathStatus {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => PathStatus::Folder,
            Ok(_) => PathStatus::File,
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    PathStatus::Nothing
                }
                _ => PathStatus::Hidden(error.to_string()),
            },
        }
    }

    fn find_file(&self, root: &Path, wanted: &mut dyn FnMut(&Path) -> bool) -> Option<PathBuf> {
        find_file::find_file(root, wanted)
    }
}

/// A disk on which everything is as the config wants it: for a process that reads texts which
/// another has checked, perhaps with more rights.
#[derive(Clone, Copy, Debug)]
pub struct TrustedDisk;

impl Disk for TrustedDisk {
    fn look(&self, _path: &Path) -> PathStatus {
        PathStatus::Trusted
    }
}

/// A config that is not checked yet, and where its parts stand.
pub struct Built<H: Handlers> {
    /// The config.
    pub config: Config<H>,
    /// Where its parts stand.
    pub spots: Spots<H>,
}

/// Where the parts of a config stand, in the order of the config's lists.
pub struct Spots<H: Handlers> {
    /// Of the server itself.
    pub own: OwnSpots,
    /// Of its programs.
    pub programs: Vec<ProgramSpots>,
    /// Of `[acme]`, if there is one.
    pub acme: Option<AcmeSpots>,
    /// Where authorities of the collector's certificate are named.
    pub otlp_ca: Option<Spot>,
    /// Files of its accounts, and of their groups.
    pub auth: Vec<[Spot; 2]>,
    /// Files of its logs.
    pub logs: Vec<Spot>,
    /// Of its listeners.
    pub listeners: Vec<ListenSpots>,
    /// Of its sites.
    pub sites: Vec<SiteSpots<H>>,
}

/// Where the config says what the server itself is to have of the machine.
pub struct OwnSpots {
    /// Its account.
    pub user: Spot,
    /// The control socket.
    pub control: Spot,
    /// The CPUs.
    pub cpus: Spot,
    /// The nice level.
    pub nice: Spot,
    /// The file of countries.
    pub countries: Spot,
    /// The most connections.
    pub connections: Spot,
}

/// Where the parts of a listener stand.
pub struct ListenSpots {
    /// Its address.
    pub address: Spot,
    /// Where its certificate is named.
    pub tls: Option<TlsSpots>,
    /// Where those are named who may have signed for others to whom programs are offered.
    pub offers: Spot,
    /// Keys given that mean nothing for a Unix socket.
    pub tcp_only: Vec<(&'static str, Spot)>,
}

/// Where the parts of a site stand.
pub struct SiteSpots<H: Handlers> {
    /// Its header.
    pub header: Spot,
    /// It names hosts, rightly or not.
    pub has_names: bool,
    /// Its names, without those that are wrong.
    pub names: Vec<Spot>,
    /// Its listeners.
    pub listeners: Vec<Spot>,
    /// Its root, if it has one.
    pub root: Option<Spot>,
    /// That it answers over TLS only.
    pub https_only: Spot,
    /// Its file of paths that have moved.
    pub redirects: Option<Spot>,
    /// `root` or a route is given, rightly or not.
    pub has_handlers: bool,
    /// Where its certificate is named.
    pub tls: Option<TlsSpots>,
    /// Files of its error pages, in the order of their statuses.
    pub error_pages: Vec<Spot>,
    /// Of its routes.
    pub routes: Vec<RouteSpots<H>>,
}

impl<H: Handlers> SiteSpots<H> {
    /// It is for all hosts that no site names.
    pub(crate) fn is_rest(&self) -> bool {
        !self.has_names && self.listeners.is_empty()
    }
}

/// Where the parts of a route stand.
pub struct RouteSpots<H: Handlers> {
    /// Its header.
    pub header: Spot,
    /// The path; `None` for the route a site's root is short for, and for a wrong path.
    pub path: Option<(Spot, Pattern)>,
    /// It has a `when`, rightly or not.
    pub has_when: bool,
    /// Listeners of its `when`.
    pub listeners: Vec<Spot>,
    /// Its handler's parts.
    pub handler: H::Spots,
    /// Folders of files that programs may have sent.
    pub sendfile: Vec<Spot>,
}

/// Tells everything that is wrong across the keys of a config.
pub(crate) fn check<H: Handlers>(built: &Built<H>, disk: &dyn Disk, faults: &mut Faults<'_>) {
    let Built { config, spots } = built;
    listeners(config, &spots.listeners, faults);
    logs(config, &spots.logs, disk, faults);
    site_names(config, &spots.sites, faults);
    listeners_of_sites::answered(config, &spots.listeners, faults);
    let mut looked = PathLookups::new(disk);
    acme::check(built, faults);
    for (file, spot) in acme::files(config, spots) {
        looked.file(file, spot, "write the file's own path", faults);
    }
    if let (Some(otlp), Some(spot)) = (&config.otlp, spots.otlp_ca)
        && let Some(file) = &otlp.ca
    {
        looked.file(file, spot, "write the file's own path", faults);
        looked.authorities(file, "otlp.ca", spot, faults);
    }
    if let Some((file, spot)) = acme::authorities(config, spots) {
        looked.authorities(file, "acme.ca", spot, faults);
    }
    if let Some(file) = &config.countries {
        looked.countries(file, spots.own.countries, faults);
    }
    check_auth(config, spots, &mut looked, faults);
    certificates_on_disk(config, spots, &mut looked, faults);
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        if !spots.has_handlers {
            let hint = "add `root = \"FOLDER\"` or a `[[site.route]]`";
            faults
                .error(spots.header, "the site answers nothing")
                .hint(hint);
        }
        reachable(site, spots, faults);
        if let (Some(list), Some(spot)) = (&site.redirects, spots.redirects) {
            looked.file(&list.file, spot, "write the file's own path", faults);
        }
        listeners_of_sites::known(config, (site, spots), faults);
        error_pages(site, spots, &mut looked, faults);
        H::check(config, (site, spots), &mut looked, faults);
    }
}

/// Files of certificates are there, and each TLS listener has one to show.
fn certificates_on_disk<H: Handlers>(
    config: &Config<H>,
    spots: &Spots<H>,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let of_listeners = config.listeners.iter().zip(&spots.listeners);
    let of_listeners = of_listeners.filter_map(|(listener, spots)| {
        Some((listener.tls.as_ref()?.certificate.as_ref(), spots.tls?))
    });
    let of_sites = config.sites.iter().zip(&spots.sites);
    let of_sites =
        of_sites.filter_map(|(site, spots)| Some((site.tls.certificate.as_ref(), spots.tls?)));
    for (source, spots) in of_listeners.chain(of_sites) {
        let Some(CertificateSource::Files { certificate, key }) = source else {
            continue;
        };
        let hint = "write the file's own path";
        looked.file(certificate, spots.certificate, hint, faults);
        if key != certificate {
            looked.file(key, spots.key, hint, faults);
        }
    }
    for (listener, spots) in config.listeners.iter().zip(&spots.listeners) {
        if let Some(authorities) = &listener.offers {
            looked.file(
                authorities,
                spots.offers,
                "write the file's own path",
                faults,
            );
            if config.offers.is_empty() && looked.is_first(spots.offers) {
                faults
                    .warn(spots.offers, "nothing is offered here")
                    .hint("add `[[offer]]` with a `program` and to whom, or remove the listener");
            }
        }
    }
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        if let (Some((_, authorities)), Some(spots)) = (&site.tls.client, spots.tls) {
            let hint = "write the file's own path";
            looked.file(authorities, spots.client_ca, hint, faults);
        }
        // What stands in front may speak it.
        let is_clear = |listener: &super::Listener| {
            listener.tls.is_none() && listener.trust.is_none() && !listener.proxy_protocol
        };
        if site.https_only && config.site_listeners().all(is_clear) {
            faults
                .error(
                    spots.https_only,
                    "`https_only` without a listener that speaks TLS",
                )
                .hint("give one of `[[listen]]` its `tls`, or remove `https_only`");
        }
    }
    let has_any = config
        .sites
        .iter()
        .any(|site| site.tls.certificate.is_some());
    for (listener, spots) in config.listeners.iter().zip(&spots.listeners) {
        let Some(tls) = &listener.tls else { continue };
        if tls.certificate.is_none() && !has_any && !listener.address.is_for_this_machine_only() {
            faults
                .error(
                    spots.address,
                    "the listener speaks TLS and there is no certificate",
                )
                .hint(
                    "name one in its `tls` or in a site's; `tls = \"self-signed\"` for one that \
                     browsers warn about",
                );
        }
    }
}

fn listeners<H: Handlers>(config: &Config<H>, spots: &[ListenSpots], faults: &mut Faults<'_>) {
    let mut last_told = None;
    for (index, (listener, spot)) in config.listeners.iter().zip(spots).enumerate() {
        if listener.localhost == Some(Loopback::V6) && last_told == Some(spot.address) {
            continue;
        }
        let earlier = config.listeners[..index].iter().zip(spots);
        for (other, first) in earlier {
            let (see, hint) = match overlap(
                (&listener.address, listener.v6only),
                (&other.address, other.v6only),
            ) {
                Overlap::None => continue,
                Overlap::Same => ("the first", "remove one of them"),
                Overlap::Covered => (
                    "this address takes its port",
                    "keep the wider one, or use another port",
                ),
            };
            let message = match see {
                "the first" => "the address is listened on already",
                _ => "the kernel cannot listen on this address too",
            };
            faults
                .error(spot.address, message)
                .see(first.address, see)
                .hint(hint);
            last_told = Some(spot.address);
            break;
        }
        if let ListenAddress::Unix(_) = listener.address {
            for (key, key_spot) in &spot.tcp_only {
                let message = format!("`{key}` does nothing on a Unix socket");
                faults.warn(*key_spot, message).hint("remove it");
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Overlap {
    None,
    Same,
    Covered,
}

fn overlap(a: (&ListenAddress, bool), b: (&ListenAddress, bool)) -> Overlap {
    let (ListenAddress::Tcp(first), ListenAddress::Tcp(second)) = (a.0, b.0) else {
        return if a.0 == b.0 {
            Overlap::Same
        } else {
            Overlap::None
        };
    };
    if first.port() != second.port() || first.port() == 0 {
        return Overlap::None;
    }
    if first == second {
        return Overlap::Same;
    }
    if takes(first, a.1, second.ip()) || takes(second, b.1, first.ip()) {
        return Overlap::Covered;
    }
    Overlap::None
}

/// A socket on this address gets connections to `ip` too.
fn takes(address: &SocketAddr, v6only: bool, ip: IpAddr) -> bool {
    match address.ip() {
        IpAddr::V4(own) => own.is_unspecified() && ip.is_ipv4(),
        IpAddr::V6(own) => own.is_unspecified() && (ip.is_ipv6() || !v6only),
    }
}

fn logs<H: Handlers>(config: &Config<H>, spots: &[Spot], disk: &dyn Disk, faults: &mut Faults<'_>) {
    let mut files: HashMap<&Path, Spot> = HashMap::new();
    for (log, spot) in config.logs.iter().zip(spots) {
        let path = match &log.target {
            LogTarget::File(path) => path,
            LogTarget::Program(arguments) => {
                log_program(arguments, *spot, disk, faults);
                continue;
            }
            LogTarget::Stdout | LogTarget::Syslog(_) => continue,
        };
        if let Some(first) = files.insert(path, *spot) {
            faults
                .error(*spot, "two logs write to one file")
                .see(first, "the first")
                .hint("use one log for both, or another file");
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        match (disk.look(path), disk.look(folder)) {
            (PathStatus::Folder, _) => {
                let message = format!("{} is a folder", path.display());
                faults
                    .error(*spot, message)
                    .hint("write the name of a file");
            }
            (_, PathStatus::Nothing) => {
                let message = format!("the log's folder {} does not exist", folder.display());
                faults
                    .error(*spot, message)
                    .hint("create it, or use another");
            }
            (_, PathStatus::File) => {
                let message = format!("{} is no folder", folder.display());
                faults
                    .error(*spot, message)
                    .hint("use another folder for the log");
            }
            _ => {}
        }
    }
}

/// Whether there can be a program that reads a log.
fn log_program(arguments: &[String], spot: Spot, disk: &dyn Disk, faults: &mut Faults<'_>) {
    // One without a path is told already.
    let Some(path) = arguments.first().filter(|path| path.starts_with('/')) else {
        return;
    };
    let message = match disk.look(Path::new(path)) {
        PathStatus::Nothing => format!("there is no program {path}"),
        PathStatus::Folder => format!("{path} is a folder"),
        _ => return,
    };
    faults
        .error(spot, message)
        .hint("write the program's own path");
}

fn site_names<H: Handlers>(config: &Config<H>, spots: &[SiteSpots<H>], faults: &mut Faults<'_>) {
    let mut seen: HashMap<&str, Vec<(&SiteConfig<H>, Spot)>> = HashMap::new();
    let mut nameless: Vec<(&SiteConfig<H>, Spot)> = Vec::new();
    for (site, spots) in config.sites.iter().zip(spots) {
        let first_of = |all: &[(&SiteConfig<H>, Spot)]| {
            let mut all = all.iter();
            all.find(|(other, _)| other.meets(site))
                .map(|(_, spot)| *spot)
        };
        for (name, spot) in site.names.iter().zip(&spots.names) {
            let all = seen.entry(name).or_default();
            if let Some(first) = first_of(all) {
                faults
                    .error(*spot, format!("`{name}` names a site already"))
                    .see(first, "the first")
                    .hint("remove one, or have each answer on a `listener` of its own");
                continue;
            }
            all.push((site, *spot));
        }
        if spots.has_names {
            continue;
        }
        if let Some(first) = first_of(&nameless) {
            faults
                .error(spots.header, "a second site has no `names`")
                .see(first, "the first")
                .hint("give it `names`; one site alone answers all other hosts");
            continue;
        }
        nameless.push((site, spots.header));
    }
}

/// Each route answers something: no earlier one answers all of it.
fn reachable<H: Handlers>(site: &SiteConfig<H>, spots: &SiteSpots<H>, faults: &mut Faults<'_>) {
    let mut seen = EarlierRoutes::default();
    let mut asked: HashMap<String, Spot> = HashMap::new();
    for (index, (route, route_spots)) in site.routes.iter().zip(&spots.routes).enumerate() {
        let Some((spot, pattern)) = &route_spots.path else {
            continue;
        };
        if route.when.is_some()
            && let Some(first) = asked.insert(route.label(), *spot)
        {
            faults
                .error(*spot, "a route for these requests stands above")
                .see(first, "this route answers first")
                .hint("remove one of the two, or have them ask for something else in `when`");
            continue;
        }
        let earlier = match route_spots.has_when || route.handler.leaves_to_next() {
            true => seen.covering(pattern),
            false => seen.add(index, pattern),
        };
        let earlier = earlier.and_then(|earlier| spots.routes[earlier].path.as_ref());
        let Some((first, wider)) = earlier else {
            continue;
        };
        let (message, hint) = match (pattern.covers(wider), route_spots.has_when) {
            (true, true) => (
                "a route for these paths, and all requests, stands above",
                "put this one, which has a `when`, above it",
            ),
            (true, false) => (
                "a route for these paths stands above",
                "remove one of the two, or say with `when` which requests the first is for",
            ),
            (false, _) => (
                "this route is never reached",
                "move it above the route that matches all of its paths",
            ),
        };
        faults
            .error(*spot, message)
            .see(*first, "this route answers first")
            .hint(hint);
    }
}

/// Each path is looked up once, however many routes name it.
pub struct PathLookups<'d> {
    disk: &'d dyn Disk,
    found: HashMap<PathBuf, PathStatus>,
    /// Where roots stand that are wrong, as source and offset.
    told: HashSet<(usize, usize)>,
}

impl<'d> PathLookups<'d> {
    pub(crate) fn new(disk: &'d dyn Disk) -> PathLookups<'d> {
        PathLookups {
            disk,
            found: HashMap::new(),
            told: HashSet::new(),
        }
    }

    /// The disk that is looked at.
    pub fn disk(&self) -> &'d dyn Disk {
        self.disk
    }

    /// What stands at a path.
    pub fn look(&mut self, path: &Path) -> PathStatus {
        if let Some(found) = self.found.get(path) {
            return found.clone();
        }
        let found = self.disk.look(path);
        self.found.insert(path.to_path_buf(), found.clone());
        found
    }

    /// True once for a place in the sources where a root stands: what is wrong there is told once.
    pub fn is_first(&mut self, spot: Spot) -> bool {
        self.told.insert((spot.source, spot.start))
    }

    /// Tells once, however many routes take a root from one place, when it is no folder. Gives what
    /// was found unless that is told already.
    pub fn root(&mut self, path: &Path, spot: Spot, faults: &mut Faults<'_>) -> Option<PathStatus> {
        if self.told.contains(&(spot.source, spot.start)) {
            return None;
        }
        let root = path.display();
        let found = self.look(path);
        let (message, hint) = match &found {
            PathStatus::Folder | PathStatus::Trusted => return Some(found),
            PathStatus::File => (
                format!("{root} is a file, not a folder"),
                "write the folder it is in",
            ),
            PathStatus::Nothing => (format!("there is no folder {root}"), BEGIN_OF_PATHS),
            PathStatus::Hidden(why) => (format!("{root} cannot be looked at: {why}"), HIDDEN),
        };
        self.told.insert((spot.source, spot.start));
        faults.error(spot, message).hint(hint);
        None
    }

    /// Tells when a file is not there; `not_folder` is what to do about a folder in its place.
    pub fn file(&mut self, file: &Path, spot: Spot, not_folder: &str, faults: &mut Faults<'_>) {
        let (message, hint) = match self.look(file) {
            PathStatus::File | PathStatus::Trusted => return,
            PathStatus::Hidden(why) => return hidden(file, &why, spot, faults),
            PathStatus::Folder => (format!("{} is a folder", file.display()), not_folder),
            PathStatus::Nothing => (
                format!("there is no file {}", file.display()),
                BEGIN_OF_PATHS,
            ),
        };
        faults.error(spot, message).hint(hint);
    }

    /// Tells when a folder of programs is not there.
    pub fn folder(&mut self, dir: &Path, spot: Spot, faults: &mut Faults<'_>) {
        if dir.as_os_str().is_empty() {
            // That is told already.
            return;
        }
        let (message, hint) = match self.look(dir) {
            PathStatus::Folder | PathStatus::Trusted => return,
            PathStatus::Hidden(why) => return hidden(dir, &why, spot, faults),
            PathStatus::File => (
                format!("{} is a file, not a folder", dir.display()),
                "write `script` for one program",
            ),
            PathStatus::Nothing => (
                format!("there is no folder {}", dir.display()),
                BEGIN_OF_PATHS,
            ),
        };
        faults.error(spot, message).hint(hint);
    }

    /// Tells when a program is not there, neither where its name leads nor in a folder of `path`.
    pub fn program(&mut self, name: &str, path: &str, spot: Spot, faults: &mut Faults<'_>) {
        let may_be = candidates(name, path);
        let is_there =
            |path: &PathBuf| !matches!(self.look(path), PathStatus::Nothing | PathStatus::Folder);
        if name.is_empty() || may_be.iter().any(is_there) {
            return;
        }
        let message = format!("there is no program {name}");
        let hint = match name.contains('/') {
            true => BEGIN_OF_PATHS.to_owned(),
            false => format!("install it, or write its whole path; it was looked for in {path}"),
        };
        faults.error(spot, message).hint(hint);
    }

    /// Tells when a certificate and its key are not there, or do not belong together.
    pub fn certificate(
        &mut self,
        (certificate, key): (&Path, &Path),
        (of_certificate, of_key): (Spot, Spot),
        faults: &mut Faults<'_>,
    ) {
        let hint = "write the file's own path";
        self.file(certificate, of_certificate, hint, faults);
        if key != certificate {
            self.file(key, of_key, hint, faults);
        }
        let is_file = |path: &Path, looked: &mut Self| looked.look(path) == PathStatus::File;
        if is_file(certificate, self)
            && is_file(key, self)
            && let Some(fault) = self.disk.certificate_fault(certificate, key)
        {
            let hint = "write the files of a certificate and of the key that it was made with";
            faults.error(of_certificate, fault).hint(hint);
        }
    }

    /// Tells when a file of countries is not there, or is none.
    fn countries(&mut self, file: &Path, spot: Spot, faults: &mut Faults<'_>) {
        self.file(file, spot, "write the file's own path", faults);
        if self.look(file) == PathStatus::File
            && let Some(fault) = self.disk.countries_fault(file)
        {
            let hint = "write a file of countries or cities in MaxMind's format, such as \
                        `GeoLite2-Country.mmdb`";
            faults.error(spot, fault).hint(hint);
        }
    }

    /// A file that holds no authorities is as good as none, which is noticed late.
    pub fn authorities(&mut self, file: &Path, key: &str, spot: Spot, faults: &mut Faults<'_>) {
        if self.look(file) == PathStatus::File
            && let Some(fault) = self.disk.authorities_fault(file, key)
        {
            let hint = "write the certificates of your authority there, in PEM, or remove `ca`";
            faults.error(spot, fault).hint(hint);
        }
    }
}

fn error_pages<H: Handlers>(
    site: &SiteConfig<H>,
    spots: &SiteSpots<H>,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    for ((_, path), spot) in site.error_pages.iter().zip(&spots.error_pages) {
        match looked.look(path) {
            PathStatus::File | PathStatus::Trusted => {}
            PathStatus::Folder => {
                let message = format!("{} is a folder", path.display());
                faults
                    .error(*spot, message)
                    .hint("write the name of a file");
            }
            PathStatus::Hidden(why) => hidden(path, &why, *spot, faults),
            PathStatus::Nothing => {
                let hint = match page_in_root(site, path, looked) {
                    Some(page) => format!("there is {}: write the way to it", page.display()),
                    None => BEGIN_OF_PATHS.to_owned(),
                };
                let message = format!("there is no file {}", path.display());
                faults.error(*spot, message).hint(hint);
            }
        }
    }
}

const BEGIN_OF_PATHS: &str = "create it; paths begin at the folder of the file that names them";

/// The page in a root of the site, where people look for it first.
fn page_in_root<H: Handlers>(
    site: &SiteConfig<H>,
    path: &Path,
    looked: &mut PathLookups<'_>,
) -> Option<PathBuf> {
    let name = path.file_name()?;
    let roots = site.routes.iter().filter_map(|route| route.handler.root());
    roots
        .map(|root| root.join(name))
        .find(|page| looked.look(page) == PathStatus::File)
}

const HIDDEN: &str = "let the user that starts hob search its folders";

fn hidden(path: &Path, why: &str, spot: Spot, faults: &mut Faults<'_>) {
    let message = format!("{} cannot be looked at: {why}", path.display());
    faults.error(spot, message).hint(HIDDEN);
}
