//! The servers that run: each tells of itself in the runtime folder of its user, so that commands
//! find the one they mean and a server is told who has its address.
//!
//! ```text
//! RUNTIME/          0700
//!   KEY.server      0600, a `Server` in JSON; locked by the keeper as long as it runs, also
//!                   over an upgrade: one that can be locked was left by a server that died
//!   KEY.sock        its control socket, where nothing else is named
//!   control.sock    a link to the socket of the server that came first, for programs
//! ```
//!
//! KEY is made of the path of the config without symbolic links: of a config there is one server. A
//! server without a config, and one whose control socket the command line names, has its process id
//! in it as well.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use hob_config::printable;

/// A file with more than this is none of ours.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const SERVER: &str = "server";
const SOCKET: &str = "sock";

/// What a server was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Paths", try_from = "Paths")]
pub enum Origin {
    /// A config, by its absolute path as it was named.
    Config(PathBuf),
    /// A folder without a config.
    Folder(PathBuf),
}

/// The same in JSON.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Paths {
    /// Its config, as it was named at the start.
    config: Option<String>,
    /// The folder that it serves without a config.
    folder: Option<String>,
}

impl From<Origin> for Paths {
    fn from(origin: Origin) -> Paths {
        let path = Some(origin.path().display().to_string());
        match origin {
            Origin::Config(_) => Paths {
                config: path,
                folder: None,
            },
            Origin::Folder(_) => Paths {
                config: None,
                folder: path,
            },
        }
    }
}

impl TryFrom<Paths> for Origin {
    type Error = &'static str;

    fn try_from(paths: Paths) -> Result<Origin, &'static str> {
        match (paths.config, paths.folder) {
            (Some(config), _) => Ok(Origin::Config(config.into())),
            (None, Some(folder)) => Ok(Origin::Folder(folder.into())),
            (None, None) => Err("neither config nor folder"),
        }
    }
}

impl Origin {
    /// The config or the folder.
    pub fn path(&self) -> &Path {
        match self {
            Origin::Config(path) | Origin::Folder(path) => path,
        }
    }

    /// Its path without symbolic links, as these are now.
    pub fn real_path(&self) -> PathBuf {
        fs::canonicalize(self.path()).unwrap_or_else(|_| self.path().to_owned())
    }
}

/// What a running server tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// Process id of its first process.
    pub pid: u32,
    /// Who started it.
    pub user_id: u32,
    /// What it was started with.
    #[serde(flatten)]
    pub origin: Origin,
    /// Where that leads without symbolic links, as it was last read.
    #[serde(serialize_with = "text")]
    pub real_path: PathBuf,
    /// Its control socket; null where it has none.
    #[serde(serialize_with = "text_or_null")]
    pub control: Option<PathBuf>,
    /// What it listens on.
    pub addresses: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// When it first started, in seconds since 1970; an upgrade does not change it.
    pub started_unix: u64,
    /// Counts loads of the config, from 1.
    pub generation: u64,
}

/// A path in JSON: what is no UTF-8 in it is replaced.
fn text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn text_or_null<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let path = path.as_ref().map(|path| path.display().to_string());
    path.serialize(serializer)
}

impl Server {
    /// What a command names it by, to be typed.
    pub fn flag(&self) -> String {
        format!("--config {}", quoted(self.origin.path()))
    }

    /// What a person knows it by.
    pub fn told(&self) -> String {
        let what = match &self.origin {
            Origin::Config(_) => "config",
            Origin::Folder(_) => "folder",
        };
        let path = self.origin.path().display().to_string();
        format!("process {}, {what} {}", self.pid, printable(&path))
    }

    fn has_address(&self, wanted: &str) -> bool {
        let clashes = |has: &String| match (wanted.parse::<SocketAddr>(), has.parse::<SocketAddr>())
        {
            (Ok(wanted), Ok(has)) => {
                let (one, other) = (wanted.ip(), has.ip());
                let is_same = one == other || one.is_unspecified() || other.is_unspecified();
                wanted.port() == has.port() && is_same
            }
            _ => wanted == has,
        };
        self.addresses.iter().any(clashes)
    }
}

/// The path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let text = printable(&path.display().to_string());
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Where the servers tell of themselves that a user may speak to: all of the machine for root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime(pub PathBuf);

impl Runtime {
    /// Every server that runs, those of this user first, then by when they started.
    pub fn servers(&self) -> Vec<Server> {
        let own = geteuid();
        let mut all = list(&self.0, own.as_raw());
        if own.is_root() {
            for (folder, user_id) in folders_of_users() {
                all.extend(list(&folder, user_id));
            }
        }
        let is_others = |server: &Server| server.user_id != own.as_raw();
        all.sort_by_key(|server| (is_others(server), server.started_unix, server.pid));
        all
    }

    /// The other server that listens where this one wants to, if it tells of itself.
    pub(crate) fn who_has(&self, address: &str) -> Option<Server> {
        let is_other =
            |server: &Server| server.pid != std::process::id() && server.has_address(address);
        self.servers().into_iter().find(is_other)
    }
}

/// Those of a list that were started with this config or folder: who was started with just this
/// path, else who serves what it leads to; a user's own before others'.
pub fn servers_of<'s>(servers: &'s [Server], path: &Path) -> Vec<&'s Server> {
    let named = std::path::absolute(path).ok();
    let real = fs::canonicalize(path).ok();
    let own = geteuid().as_raw();
    let with = |is_it: &dyn Fn(&&Server) -> bool| -> Vec<&'s Server> {
        let (ours, others): (Vec<_>, Vec<_>) = servers
            .iter()
            .filter(is_it)
            .partition(|server| server.user_id == own);
        if ours.is_empty() { others } else { ours }
    };
    let by_name = with(&|server| Some(server.origin.path()) == named.as_deref());
    match by_name.is_empty() {
        true => with(&|server| Some(&server.real_path) == real.as_ref()),
        false => by_name,
    }
}

/// The runtime folders of users, where programs find them by the user's number.
fn folders_of_users() -> Vec<(PathBuf, u32)> {
    let of = |parent: &str, prefix: &'static str, below: &'static str| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let name = entry.file_name();
            let user_id = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            // Without a slash at its end: a link would be followed.
            Some((entry.path().join(below).components().collect(), user_id))
        })
    };
    let all = of("/run/user", "", "hob").chain(of("/tmp", "hob-", ""));
    all.filter(|(_, user_id)| *user_id != 0).collect()
}

/// The servers of a runtime folder, if it is this user's. Files that dead ones left go.
fn list(folder: &Path, user_id: u32) -> Vec<Server> {
    let Ok(opened) = open_folder(folder) else {
        return Vec::new();
    };
    let own = geteuid().as_raw();
    // Who begins here holds the folder for a moment. Another user must not keep us waiting.
    let operation = match user_id == own {
        true => FlockOperation::LockShared,
        false => FlockOperation::NonBlockingLockShared,
    };
    let is_users = owner_and_mode(&opened).is_ok_and(|(owner, _)| owner == user_id);
    if !is_users || flock(&opened, operation).is_err() {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|name| name == SERVER))
        .filter_map(|path| match look(&path, user_id) {
            ServerLiveness::Runs(server) => server,
            ServerLiveness::Died => {
                if user_id == own {
                    let _ = fs::remove_file(path.with_extension(SOCKET));
                    let _ = fs::remove_file(&path);
                }
                None
            }
        })
        .collect()
}

enum ServerLiveness {
    /// Its server runs, and tells this; nothing while it starts.
    Runs(Option<Server>),
    /// It was left behind.
    Died,
}

fn look(path: &Path, user_id: u32) -> ServerLiveness {
    let nothing = ServerLiveness::Runs(None);
    loop {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = open(path, flags, Mode::empty()).map(File::from) else {
            return nothing;
        };
        let Ok(facts) = file.metadata() else {
            return nothing;
        };
        if !facts.is_file() || facts.uid() != user_id || facts.len() > FILE_BYTES_MAX {
            return nothing;
        }
        if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
            let mut text = String::new();
            let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
            let told = read.ok().and_then(|_| serde_json::from_str(&text).ok());
            return ServerLiveness::Runs(told.map(|told| Server { user_id, ..told }));
        }
        // Who runs puts another file in its place when there is something new to tell.
        let now = fs::symlink_metadata(path).map(|now| (now.dev(), now.ino()));
        if now.is_ok_and(|now| now == (facts.dev(), facts.ino())) {
            return ServerLiveness::Died;
        }
    }
}

/// The place of a running server among them; whoever drops it gives it up.
#[derive(Debug)]
pub(crate) struct ServerRegistration {
    pub(crate) path: PathBuf,
    /// Locked.
    pub(crate) file: OwnedFd,
}

/// Why there is no place.
#[derive(Debug)]
pub(crate) enum NoSeat {
    /// A server of this config has it, and tells this; nothing while it starts.
    Taken(Option<Box<Server>>),
    Refused(io::Error),
}

/// Whether others may be there with the same config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Alone,
    WithOthers,
}

impl ServerRegistration {
    /// Takes the place of what is served; nothing is told yet.
    pub(crate) fn take(
        runtime: &Runtime,
        origin: &Origin,
        company: Company,
    ) -> Result<ServerRegistration, NoSeat> {
        let path = runtime.0.join(key(origin, company)).with_extension(SERVER);
        let refused = |errno: Errno| NoSeat::Refused(errno.into());
        // So that who looks does not hold our file just then; it goes with `folder`.
        let folder = private_folder(&runtime.0).map_err(NoSeat::Refused)?;
        flock(&folder, FlockOperation::LockExclusive).map_err(refused)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(&path, flags, Mode::from_raw_mode(0o600)).map_err(refused)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(NoSeat::Taken(match look(&path, geteuid().as_raw()) {
                    ServerLiveness::Runs(server) => server.map(Box::new),
                    ServerLiveness::Died => None,
                }));
            }
            Err(errno) => return Err(refused(errno)),
        }
        // What the one before left is not ours.
        rustix::fs::ftruncate(&file, 0).map_err(refused)?;
        Ok(ServerRegistration { path, file })
    }

    /// The control socket, where nothing else is named.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.with_extension(SOCKET)
    }

    /// Tells this from now on: by another file, so that nobody reads half of it.
    pub(crate) fn tell(&mut self, server: &Server) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(&next, flags, Mode::from_raw_mode(0o600))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut file = File::from(file);
        file.write_all(format!("{:#}\n", serde_json::json!(server)).as_bytes())?;
        fs::rename(&next, &self.path)?;
        self.file = file.into();
        Ok(())
    }

    /// Gives it up.
    pub(crate) fn leave(&self) {
        // One that stays can be locked, and is known by that.
        let _ = fs::remove_file(&self.path);
    }
}

/// A name that a config has for good: nothing depends on it but where its files stand.
fn key(origin: &Origin, company: Company) -> String {
    let path = origin.real_path();
    let mut bytes = path.into_os_string().into_encoded_bytes();
    if company == Company::WithOthers {
        bytes.push(0);
        bytes.extend(std::process::id().to_le_bytes());
    }
    // FNV-1a, 64 bits: the same in every build, as a hash of the library is not.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn open_folder(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(folder, flags, Mode::empty())
}

fn owner_and_mode(folder: impl AsFd) -> rustix::io::Result<(u32, u32)> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_uid, stat.st_mode & 0o777))
}

/// The folder of a control socket, made if it is missing, checked if it is not: mode 0700 and ours,
/// so that only this user and root reach what is in it.
pub(crate) fn private_folder(folder: &Path) -> io::Result<OwnedFd> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let text = format!("cannot make the folder {}: {error}", folder.display());
            return Err(io::Error::new(error.kind(), text));
        }
        _ => {}
    }
    let opened = open_folder(folder)?;
    let (uid, mode) = owner_and_mode(&opened)?;
    match folder_fault(folder, uid, mode) {
        Some(text) => Err(io::Error::new(io::ErrorKind::PermissionDenied, text)),
        None => Ok(opened),
    }
}

/// Why a folder is not one for a control socket.
pub(crate) fn folder_fault(folder: &Path, uid: u32, mode: u32) -> Option<String> {
    let folder = folder.display();
    (uid != geteuid().as_raw() || mode != 0o700).then(|| {
        format!(
            "its folder {folder} belongs to user {uid} and has mode {mode:o}; \
             it must be yours and 0700 (chmod 700 {folder})"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(path: &Path) -> Server {
        Server {
            pid: std::process::id(),
            user_id: geteuid().as_raw(),
            origin: Origin::Config(path.to_owned()),
            real_path: path.to_owned(),
            control: None,
            addresses: vec!["127.0.0.1:8080".to_owned(), "unix:/run/web".to_owned()],
            version: "1.2.3".to_owned(),
            started_unix: 1_700_000_000,
            generation: 3,
        }
    }

    fn runtime() -> (tempfile::TempDir, Runtime) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime(folder.path().join("hob"));
        (folder, runtime)
    }

    fn listed(runtime: &Runtime) -> Vec<Server> {
        list(&runtime.0, geteuid().as_raw())
    }

    #[test]
    fn what_is_told_is_read_whole_however_often_it_changes() {
        let (_folder, runtime) = runtime();
        let origin = Origin::Config("/no/hob.toml".into());
        let mut seat = ServerRegistration::take(&runtime, &origin, Company::Alone).unwrap();
        assert_eq!(listed(&runtime), [], "nothing is told yet");
        seat.tell(&server(origin.path())).unwrap();
        assert_eq!(listed(&runtime), [server(origin.path())]);
        std::thread::scope(|scope| {
            let told = scope.spawn(|| {
                for generation in 0..500 {
                    let server = server(origin.path());
                    seat.tell(&Server {
                        generation,
                        ..server
                    })
                    .unwrap();
                }
            });
            while !told.is_finished() {
                assert_eq!(listed(&runtime).len(), 1);
            }
        });
    }

    #[test]
    fn place_is_one_for_a_config_and_free_when_its_server_has_died() {
        let (_folder, runtime) = runtime();
        let origin = Origin::Config("/no/hob.toml".into());
        let take = |company| ServerRegistration::take(&runtime, &origin, company);
        let mut seat = take(Company::Alone).unwrap();
        let refused = take(Company::Alone).unwrap_err();
        assert!(matches!(refused, NoSeat::Taken(None)), "{refused:?}");
        seat.tell(&server(origin.path())).unwrap();
        match take(Company::Alone).unwrap_err() {
            NoSeat::Taken(Some(told)) => assert_eq!(*told, server(origin.path())),
            other => panic!("{other:?}"),
        }
        let mut beside = take(Company::WithOthers).unwrap();
        beside.tell(&server(origin.path())).unwrap();
        assert_eq!(servers_of(&listed(&runtime), origin.path()).len(), 2);
        let path = seat.path.clone();
        fs::write(seat.socket(), "").unwrap();
        drop(seat);
        assert!(path.exists());
        assert_eq!(listed(&runtime).len(), 1);
        assert!(!path.exists() && !path.with_extension(SOCKET).exists());
        take(Company::Alone).unwrap();
    }

    #[test]
    fn folder_of_another_user_and_what_is_no_list_are_passed_over() {
        let (folder, runtime) = runtime();
        assert_eq!(listed(&runtime), []);
        let own = geteuid().as_raw();
        assert_eq!(list(folder.path(), own + 1), []);
        let origin = Origin::Folder("/no".into());
        let seat = ServerRegistration::take(&runtime, &origin, Company::WithOthers).unwrap();
        fs::write(&seat.path, "{\"pid\": 1").unwrap();
        assert_eq!(listed(&runtime), []);
    }

    #[test]
    fn name_of_a_config_is_the_same_in_every_build() {
        let origin = Origin::Config("/no/hob.toml".into());
        assert_eq!(key(&origin, Company::Alone), "d1139353271346e7");
    }

    #[test]
    fn addresses_clash_by_port_where_one_is_of_all() {
        let server = server(Path::new("/no"));
        for address in [
            "127.0.0.1:8080",
            "0.0.0.0:8080",
            "[::]:8080",
            "unix:/run/web",
        ] {
            assert!(server.has_address(address), "{address}");
        }
        for address in ["127.0.0.1:8081", "127.0.0.2:8080", "unix:/run/we", "x"] {
            assert!(!server.has_address(address), "{address}");
        }
    }

    #[test]
    fn what_is_to_be_typed_is_quoted_where_a_shell_wants_it() {
        let quoted = |path: &str| quoted(Path::new(path));
        assert_eq!(quoted("/srv/a-b_c/hob.toml"), "/srv/a-b_c/hob.toml");
        assert_eq!(quoted("/srv/my site/it's"), r"'/srv/my site/it'\''s'");
        assert_eq!(quoted("/srv/\u{1b}[2J"), "'/srv/\u{fffd}[2J'");
    }
}
