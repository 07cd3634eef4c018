//! Rules across keys, and what must be there on the disk.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::acme::{self, AcmeSpots};
use super::cgi::{CgiSpots, candidates};
use super::fault::{Faults, Spot};
use super::reach::Reach;
use super::resident::ResidentSpots;
use super::tls::TlsSpots;
use super::{
    Argument, CacheMode, CertificateSource, Cgi, CgiRuns, Config, Files, Handler, Host,
    ListenAddress, LogTarget, Loopback, PATH, Program, Resident, ResidentRuns, Site,
};
use crate::otlp::authorities;
use crate::route::pattern::Pattern;

/// What is on the disk, as far as checks ask.
pub trait Disk {
    /// What stands at this path, symbolic links followed.
    fn look(&self, path: &Path) -> Found;

    /// Why authorities cannot be read from a file that is there, which the key `_key` names.
    fn authorities_fault(&self, _path: &Path, _key: &str) -> Option<String> {
        None
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
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

/// The disk of this machine.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn look(&self, path: &Path) -> Found {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Found::Folder,
            Ok(_) => Found::File,
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Found::Nothing,
                _ => Found::Hidden(error.to_string()),
            },
        }
    }

    fn authorities_fault(&self, path: &Path, key: &str) -> Option<String> {
        authorities::read(path, key).err()
    }
}

/// A disk on which everything is as the config wants it: for a process that reads texts which
/// another has checked, perhaps with more rights.
#[derive(Clone, Copy, Debug)]
pub struct TrustedDisk;

impl Disk for TrustedDisk {
    fn look(&self, _path: &Path) -> Found {
        Found::Trusted
    }
}

/// A config that is not checked yet, and where its parts stand.
pub(crate) struct Built {
    pub(crate) config: Config,
    pub(crate) spots: Spots,
}

/// Where the parts of a config stand, in the order of the config's lists.
pub(crate) struct Spots {
    pub(crate) acme: Option<AcmeSpots>,
    /// Where authorities of the collector's certificate are named.
    pub(crate) otlp_ca: Option<Spot>,
    pub(crate) logs: Vec<Spot>,
    pub(crate) listeners: Vec<ListenSpots>,
    pub(crate) sites: Vec<SiteSpots>,
}

pub(crate) struct ListenSpots {
    pub(crate) address: Spot,
    /// Where its certificate is named.
    pub(crate) tls: Option<TlsSpots>,
    /// Keys given that mean nothing for a Unix socket.
    pub(crate) tcp_only: Vec<(&'static str, Spot)>,
}

pub(crate) struct SiteSpots {
    pub(crate) header: Spot,
    /// It names hosts, rightly or not.
    pub(crate) has_names: bool,
    pub(crate) names: Vec<Spot>,
    pub(crate) root: Option<Spot>,
    /// `root` or a route is given, rightly or not.
    pub(crate) has_handlers: bool,
    /// Where its certificate is named.
    pub(crate) tls: Option<TlsSpots>,
    pub(crate) error_pages: Vec<Spot>,
    pub(crate) routes: Vec<RouteSpots>,
}

pub(crate) struct RouteSpots {
    pub(crate) header: Spot,
    /// The path; `None` for the route a site's root is short for, and for a wrong path.
    pub(crate) path: Option<(Spot, Pattern)>,
    pub(crate) files: Option<FilesSpots>,
    pub(crate) cgi: Option<CgiSpots>,
    pub(crate) resident: Option<ResidentSpots>,
    /// Folders of files that programs may have sent.
    pub(crate) sendfile: Vec<Spot>,
}

pub(crate) struct FilesSpots {
    pub(crate) root: Spot,
    pub(crate) fallback: Spot,
    pub(crate) cache: Spot,
}

/// Tells everything that is wrong across the keys of a config.
pub(crate) fn check(built: &Built, disk: &dyn Disk, faults: &mut Faults<'_>) {
    let Built { config, spots } = built;
    listeners(config, &spots.listeners, faults);
    logs(config, &spots.logs, disk, faults);
    site_names(config, &spots.sites, faults);
    let mut looked = Looked {
        disk,
        found: HashMap::new(),
        told: HashSet::new(),
    };
    acme::check(built, faults);
    for (file, spot) in acme::files(config, spots) {
        file_on_disk(file, spot, "write the file's own path", &mut looked, faults);
    }
    if let (Some(otlp), Some(spot)) = (&config.otlp, spots.otlp_ca)
        && let Some(file) = &otlp.ca
    {
        file_on_disk(file, spot, "write the file's own path", &mut looked, faults);
        authorities_in(file, "otlp.ca", spot, &mut looked, faults);
    }
    if let Some((file, spot)) = acme::authorities(config, spots) {
        authorities_in(file, "acme.ca", spot, &mut looked, faults);
    }
    certificates_on_disk(config, spots, &mut looked, faults);
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        if !spots.has_handlers {
            let hint = "add `root = \"FOLDER\"` or a `[[site.route]]`";
            faults
                .error(spots.header, "the site answers nothing")
                .hint(hint);
        }
        reachable(site, spots, faults);
        unused_root(site, spots, faults);
        error_pages(site, spots, &mut looked, faults);
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            if let (Handler::Files(files), Some(spots)) = (&route.handler, &spots.files) {
                files_on_disk(files, spots, &mut looked, faults);
                config_in_root(files, spots, &mut looked, faults);
                pinned(config, files, spots, faults);
            }
            if let (Handler::Cgi(cgi), Some(spots)) = (&route.handler, &spots.cgi) {
                programs_on_disk(config, cgi, spots, &mut looked, faults);
            }
            if let (Handler::Resident(resident), Some(spots)) = (&route.handler, &spots.resident) {
                resident_on_disk(config, resident, spots, &mut looked, faults);
            }
            for (files, spot) in route.sendfile.iter().zip(&spots.sendfile) {
                root_on_disk(&files.root, *spot, &mut looked, faults);
            }
        }
    }
}

/// Files of certificates are there, and each TLS listener has one to show.
fn certificates_on_disk(
    config: &Config,
    spots: &Spots,
    looked: &mut Looked<'_>,
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
        file_on_disk(certificate, spots.certificate, hint, looked, faults);
        if key != certificate {
            file_on_disk(key, spots.key, hint, looked, faults);
        }
    }
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        if let (Some((_, authorities)), Some(spots)) = (&site.tls.client, spots.tls) {
            let hint = "write the file's own path";
            file_on_disk(authorities, spots.client_ca, hint, looked, faults);
        }
        if site.https_only
            && config
                .site_listeners()
                .all(|listener| listener.tls.is_none())
        {
            faults
                .error(
                    spots.header,
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

fn listeners(config: &Config, spots: &[ListenSpots], faults: &mut Faults<'_>) {
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

fn logs(config: &Config, spots: &[Spot], disk: &dyn Disk, faults: &mut Faults<'_>) {
    let mut files: HashMap<&Path, Spot> = HashMap::new();
    for (log, spot) in config.logs.iter().zip(spots) {
        let LogTarget::File(path) = &log.target else {
            continue;
        };
        if let Some(first) = files.insert(path, *spot) {
            faults
                .error(*spot, "two logs write to one file")
                .see(first, "the first")
                .hint("use one log for both, or another file");
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        match (disk.look(path), disk.look(folder)) {
            (Found::Folder, _) => {
                let message = format!("{} is a folder", path.display());
                faults
                    .error(*spot, message)
                    .hint("write the name of a file");
            }
            (_, Found::Nothing) => {
                let message = format!("the log's folder {} does not exist", folder.display());
                faults
                    .error(*spot, message)
                    .hint("create it, or use another");
            }
            (_, Found::File) => {
                let message = format!("{} is no folder", folder.display());
                faults
                    .error(*spot, message)
                    .hint("use another folder for the log");
            }
            _ => {}
        }
    }
}

fn site_names(config: &Config, spots: &[SiteSpots], faults: &mut Faults<'_>) {
    let mut seen: HashMap<&str, Spot> = HashMap::new();
    let mut nameless: Option<Spot> = None;
    for (site, spots) in config.sites.iter().zip(spots) {
        for (name, spot) in site.names.iter().zip(&spots.names) {
            if let Some(first) = seen.get(name.as_str()) {
                faults
                    .error(*spot, format!("`{name}` names a site already"))
                    .see(*first, "the first")
                    .hint("remove one; a name leads to one site");
                continue;
            }
            seen.insert(name, *spot);
        }
        if spots.has_names {
            continue;
        }
        match nameless {
            Some(first) => {
                faults
                    .error(spots.header, "a second site has no `names`")
                    .see(first, "the first")
                    .hint("give it `names`; one site alone answers all other hosts");
            }
            None => nameless = Some(spots.header),
        }
    }
}

fn reachable(site: &Site, spots: &SiteSpots, faults: &mut Faults<'_>) {
    let mut reach = Reach::default();
    for (index, (route, route_spots)) in site.routes.iter().zip(&spots.routes).enumerate() {
        let Some((spot, pattern)) = &route_spots.path else {
            continue;
        };
        let Some(earlier) = reach.add(index, &route.path) else {
            continue;
        };
        let Some((first, wider)) = &spots.routes[earlier].path else {
            continue;
        };
        let (message, hint) = if pattern.covers(wider) {
            (
                "a route for these paths stands above",
                "remove one of the two",
            )
        } else {
            (
                "this route is never reached",
                "move it above the route that matches all of its paths",
            )
        };
        faults
            .error(*spot, message)
            .see(*first, "this route answers first")
            .hint(hint);
    }
}

fn unused_root(site: &Site, spots: &SiteSpots, faults: &mut Faults<'_>) {
    let Some(root) = spots.root else { return };
    let uses = |route: &RouteSpots| route.files.as_ref().is_some_and(|files| files.root == root);
    if spots.routes.iter().any(uses) {
        return;
    }
    let open = site
        .routes
        .iter()
        .zip(&spots.routes)
        .find(|(route, _)| route.path == "/*");
    if let Some((_, route)) = open {
        faults
            .warn(root, "the site's `root` is never used")
            .see(
                route.path.as_ref().map_or(route.header, |(spot, _)| *spot),
                "this route answers",
            )
            .hint("remove `root`, or the route for `/*`");
    }
}

/// Each path is looked up once, however many routes name it.
struct Looked<'d> {
    disk: &'d dyn Disk,
    found: HashMap<PathBuf, Found>,
    /// Where roots stand that are wrong, as source and offset.
    told: HashSet<(usize, usize)>,
}

impl Looked<'_> {
    fn look(&mut self, path: &Path) -> Found {
        if let Some(found) = self.found.get(path) {
            return found.clone();
        }
        let found = self.disk.look(path);
        self.found.insert(path.to_path_buf(), found.clone());
        found
    }
}

fn error_pages(site: &Site, spots: &SiteSpots, looked: &mut Looked<'_>, faults: &mut Faults<'_>) {
    for ((_, path), spot) in site.error_pages.iter().zip(&spots.error_pages) {
        match looked.look(path) {
            Found::File | Found::Trusted => {}
            Found::Folder => {
                let message = format!("{} is a folder", path.display());
                faults
                    .error(*spot, message)
                    .hint("write the name of a file");
            }
            Found::Hidden(why) => hidden(path, &why, *spot, faults),
            Found::Nothing => {
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
fn page_in_root(site: &Site, path: &Path, looked: &mut Looked<'_>) -> Option<PathBuf> {
    let name = path.file_name()?;
    let roots = site.routes.iter().filter_map(|route| match &route.handler {
        Handler::Files(files) => Some(files.root.join(name)),
        _ => None,
    });
    roots
        .into_iter()
        .find(|page| looked.look(page) == Found::File)
}

fn files_on_disk(
    files: &Files,
    spots: &FilesSpots,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    // Without a root, that is told already.
    if files.root.as_os_str().is_empty() {
        return;
    }
    if root_on_disk(&files.root, spots.root, looked, faults) == Some(Found::Folder) {
        fallback(files, spots, looked, faults);
    }
}

/// Tells once, however many routes take a root from one place, when it is no folder. Gives what was
/// found unless that is told already.
fn root_on_disk(
    path: &Path,
    spot: Spot,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) -> Option<Found> {
    if looked.told.contains(&(spot.source, spot.start)) {
        return None;
    }
    let root = path.display();
    let found = looked.look(path);
    let (message, hint) = match &found {
        Found::Folder | Found::Trusted => return Some(found),
        Found::File => (
            format!("{root} is a file, not a folder"),
            "write the folder it is in",
        ),
        Found::Nothing => (format!("there is no folder {root}"), BEGIN_OF_PATHS),
        Found::Hidden(why) => (format!("{root} cannot be looked at: {why}"), HIDDEN),
    };
    looked.told.insert((spot.source, spot.start));
    faults.error(spot, message).hint(hint);
    None
}

/// Whoever asks for a config file by its name would get it.
fn config_in_root(
    files: &Files,
    spots: &FilesSpots,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    let sources = faults.sources();
    let served = (0..sources.count()).find_map(|source| {
        let name = Path::new(sources.names().nth(source)?).file_name()?;
        let is_hidden = !files.dot_files && name.as_encoded_bytes().starts_with(b".");
        let is_inside = sources.dir(source).starts_with(&files.root);
        // What was given on a command line has a name too.
        let mut is_file = || looked.look(&sources.dir(source).join(name)) == Found::File;
        (is_inside && !is_hidden && is_file()).then(|| name.display().to_string())
    });
    let Some(name) = served else {
        return;
    };
    if looked.told.insert((spots.root.source, spots.root.start)) {
        let message = format!("`root` holds {name}: whoever knows its name can download it");
        faults
            .warn(spots.root, message)
            .hint("serve a folder that holds nothing but what is to be served");
    }
}

fn fallback(files: &Files, spots: &FilesSpots, looked: &mut Looked<'_>, faults: &mut Faults<'_>) {
    let Some(fallback) = &files.fallback else {
        return;
    };
    let path = files.root.join(fallback);
    if looked.look(&path) != Found::File {
        let message = format!("there is no file {} yet", path.display());
        let hint = "until there is, what is not found is answered with 404";
        faults.warn(spots.fallback, message).hint(hint);
    }
}

/// The folder, the script, the command and the interpreters are there.
fn programs_on_disk(
    config: &Config,
    cgi: &Cgi,
    spots: &CgiSpots,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    let path = config.programs.get(cgi.program).map_or(PATH, Program::path);
    let interpreters: &[_] = match &cgi.runs {
        CgiRuns::Folder {
            dir, interpreters, ..
        } => {
            folder_on_disk(dir, spots.dir, looked, faults);
            interpreters
        }
        CgiRuns::Script { file, interpreters } => {
            let hint = "write `dir` for a folder of programs";
            file_on_disk(file, spots.script, hint, looked, faults);
            interpreters
        }
        CgiRuns::Command { dir, arguments, .. } => {
            folder_on_disk(dir, spots.dir, looked, faults);
            if let Some(Argument::Text(name)) = arguments.first() {
                program_on_disk(name, path, spots.command, looked, faults);
            }
            &[]
        }
    };
    for ((_, words), spot) in interpreters.iter().zip(&spots.interpreters) {
        if let Some(name) = words.first() {
            program_on_disk(name, path, *spot, looked, faults);
        }
    }
}

/// The program that stays, its folder and its interpreter are there.
fn resident_on_disk(
    config: &Config,
    resident: &Resident,
    spots: &ResidentSpots,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    let program = config.programs.get(resident.program);
    let path = program.map_or(PATH, Program::path);
    let interpreter = match &resident.runs {
        ResidentRuns::Command(_) => spots.what,
        ResidentRuns::Hosted { host, what, .. } => {
            let file = Path::new(what);
            match host {
                Host::Wsgi | Host::Asgi => {}
                _ if what.is_empty() => {}
                Host::Scripts => folder_on_disk(file, spots.what, looked, faults),
                Host::Psgi | Host::Python | Host::Perl => {
                    file_on_disk(
                        file,
                        spots.what,
                        "write the file's own path",
                        looked,
                        faults,
                    );
                }
            }
            spots.interpreter
        }
    };
    program_on_disk(resident.runs.program(), path, interpreter, looked, faults);
    // A folder of scripts that is not there was named just now.
    let is_told = matches!(&resident.runs, ResidentRuns::Hosted { host: Host::Scripts, what, .. }
        if Path::new(what) == resident.dir);
    if !is_told {
        folder_on_disk(&resident.dir, spots.dir, looked, faults);
    }
}

/// A file that holds no authorities is as good as none, which is noticed late.
fn authorities_in(
    file: &Path,
    key: &str,
    spot: Spot,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    if looked.look(file) == Found::File
        && let Some(fault) = looked.disk.authorities_fault(file, key)
    {
        let hint = "write the certificates of your authority there, in PEM, or remove `ca`";
        faults.error(spot, fault).hint(hint);
    }
}

fn file_on_disk(
    file: &Path,
    spot: Spot,
    not_folder: &str,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    let (message, hint) = match looked.look(file) {
        Found::File | Found::Trusted => return,
        Found::Hidden(why) => return hidden(file, &why, spot, faults),
        Found::Folder => (format!("{} is a folder", file.display()), not_folder),
        Found::Nothing => (
            format!("there is no file {}", file.display()),
            BEGIN_OF_PATHS,
        ),
    };
    faults.error(spot, message).hint(hint);
}

fn folder_on_disk(dir: &Path, spot: Spot, looked: &mut Looked<'_>, faults: &mut Faults<'_>) {
    if dir.as_os_str().is_empty() {
        // That is told already.
        return;
    }
    let (message, hint) = match looked.look(dir) {
        Found::Folder | Found::Trusted => return,
        Found::Hidden(why) => return hidden(dir, &why, spot, faults),
        Found::File => (
            format!("{} is a file, not a folder", dir.display()),
            "write `script` for one program",
        ),
        Found::Nothing => (
            format!("there is no folder {}", dir.display()),
            BEGIN_OF_PATHS,
        ),
    };
    faults.error(spot, message).hint(hint);
}

fn program_on_disk(
    name: &str,
    path: &str,
    spot: Spot,
    looked: &mut Looked<'_>,
    faults: &mut Faults<'_>,
) {
    let may_be = candidates(name, path);
    let is_there = |path: &PathBuf| !matches!(looked.look(path), Found::Nothing | Found::Folder);
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

const HIDDEN: &str = "let the user that starts hob search its folders";

fn hidden(path: &Path, why: &str, spot: Spot, faults: &mut Faults<'_>) {
    let message = format!("{} cannot be looked at: {why}", path.display());
    faults.error(spot, message).hint(HIDDEN);
}

fn pinned(config: &Config, files: &Files, spots: &FilesSpots, faults: &mut Faults<'_>) {
    if files.cache == CacheMode::Pin && config.cache.bytes == 0 {
        faults
            .error(spots.cache, "files cannot be pinned: the cache is off")
            .hint("give the `[cache]` its `bytes`, or remove `cache = \"pin\"`");
    }
}
