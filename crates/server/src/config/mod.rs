//! The config: complete once built, nothing is looked up by string afterwards.
//!
//! `schema` says every key once. `load` reads the texts (`sources`, `parse`), walks them by the
//! schema into one tree (`walk`, `values`, `tree`), builds the types below from it (`build`,
//! `build_site`) and holds the rules across keys against them (`check`, `reach`). What is wrong is
//! a `fault` with its place. `reference` and `json_schema` are made from the schema too.
//! The types below are what the rest of the server sees.

mod acme;
mod address;
mod admin;
mod build;
mod build_after;
mod build_site;
mod cgi;
mod check;
mod expand;
mod explain;
mod fault;
mod inside;
mod json_schema;
pub mod key;
mod load;
mod log_format;
mod metrics;
mod names;
mod nearest;
mod normal;
mod normal_programs;
mod normal_resident;
mod normal_tls;
mod parse;
mod program;
mod reach;
mod reference;
mod resident;
pub mod schema;
mod sources;
mod text;
mod tls;
mod tree;
mod units;
mod values;
mod walk;
mod warm;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::step::headers::{HeaderRule, HeaderRules};
pub(crate) use acme::is_certifiable;
pub use acme::{Acme, DnsHook};
pub use admin::{Admin, AdminUser};
pub use cgi::{Cgi, CgiRuns, PATH, RunLimits, candidates, parameter_pattern};
pub use check::{Disk, Found, RealDisk, TrustedDisk};
pub use explain::{Asked, Explanation, explain};
pub use fault::{Errors, Fault, Warnings};
pub use inside::{Activity, History, KeptFile};
pub use json_schema::json_schema;
pub use load::{load, load_with};
pub use metrics::{Metrics, Otlp, Parent, RouteMetrics};
pub use names::ClientNames;
pub use program::{Cgroup, IoClass, Namespace, Program, Rlimits, Sandbox};
pub use reference::{explain_key, reference, unknown_key};
pub use resident::{CarrierChoice, Host, Resident, ResidentRuns, SharedSizes, Timeouts, Workers};
pub use sources::{Environment, Sources};
pub use tls::{CertificateSource, ClientNeed, ListenTls, SiteTls};
pub use tree::Argument;
pub(crate) use units::parse_duration;
pub use warm::{Language, Warm};

/// Everything a server runs on, made from one set of sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Server threads; `None` is one per usable core (affinity and CPU quota counted).
    pub threads: Option<usize>,
    /// CPUs the server may run on; empty is all it is allowed.
    pub cpus: Vec<usize>,
    /// Nice level of the server process, -20 to 19.
    pub nice: i32,
    /// User the server drops to when started as root.
    pub user: Option<String>,
    /// Group the server drops to when started as root; `None` is the user's own.
    pub group: Option<String>,
    /// The control socket; `None` leaves it to the caller, unless `control_off` is set.
    pub control: Option<PathBuf>,
    /// The config wants no control socket.
    pub control_off: bool,
    /// Folder for what is kept over restarts; `None` leaves it to the caller.
    pub state: Option<PathBuf>,
    /// How long running requests may finish when the server stops.
    pub drain: Duration,
    /// Limits of connections and requests.
    pub limits: Limits,
    /// The cache of files.
    pub cache: CacheSettings,
    /// What those who watch requests are not shown.
    pub watch: WatchSettings,
    /// What is counted for Prometheus.
    pub metrics: Metrics,
    /// Where traces are sent; `None` is nowhere.
    pub otlp: Option<Otlp>,
    /// How names of clients are looked up; `None` when they have none.
    pub names: Option<ClientNames>,
    /// The history of requests.
    pub history: History,
    /// The server's activity.
    pub activity: Activity,
    /// How certificates are got by themselves; `None` when none is.
    pub acme: Option<Acme>,
    /// The admin pages; `None` when there are none.
    pub admin: Option<Admin>,
    /// Programs that routes run, by the index that their handlers name.
    pub programs: Vec<Program>,
    /// Access logs, by the index that listeners, sites and routes name.
    pub logs: Vec<LogSettings>,
    /// Where to listen, in file order; those of the admin pages come last.
    pub listeners: Vec<Listener>,
    /// Sites, in file order. The one without names, else the first, answers unknown hosts.
    pub sites: Vec<Site>,
}

/// Limits of connections and requests; each has a counter of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest request target, in bytes (414).
    pub target: usize,
    /// Longest request head, in bytes (431).
    pub head: usize,
    /// Most header fields of a request (431).
    pub headers: usize,
    /// Time for a whole request head from its first byte, and for a new connection's first byte
    /// (408).
    pub head_time: Duration,
    /// Longest pause between two pieces of a request body (408).
    pub body_progress: Duration,
    /// Longest pause in which a client takes no byte of an answer (closed).
    pub write_progress: Duration,
    /// How long a connection may stay idle between requests.
    pub idle: Duration,
    /// How long, at most, bytes are read and dropped before a connection with unread input closes.
    pub linger: Duration,
    /// Time for a whole TLS handshake (closed).
    pub handshake_time: Duration,
    /// Bytes before a TLS handshake is done (closed).
    pub handshake_bytes: usize,
    /// TLS handshakes under way at a time (closed).
    pub handshakes: usize,
    /// Open connections of the server.
    pub connections: usize,
    /// Open connections of one client address; 0 is no limit.
    pub connections_per_client: usize,
    /// Largest request body, in bytes, unless a route says otherwise (413).
    pub body: u64,
    /// Workers of all resident programs together (503).
    pub workers: usize,
}

/// The cache of files.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// Memory for contents and prepared heads, in bytes; 0 turns the cache off.
    pub bytes: u64,
    /// Largest file whose content is kept, in bytes.
    pub max_file: u64,
    /// Largest file whose content is kept for answers that must be sealed or framed, in bytes.
    pub max_file_tls: u64,
    /// How old what we know about a file may get before it is looked at again.
    pub recheck: Duration,
}

/// One access log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// Where lines go.
    pub target: LogTarget,
    /// `common`, `combined`, `json`, or a format of `{field}` words.
    pub format: String,
    /// Rotate when the file reaches this many bytes; 0 is never.
    pub rotate_bytes: u64,
    /// Rotate when a new day begins (UTC).
    pub rotate_daily: bool,
    /// Rotated files kept.
    pub keep: usize,
    /// Rotated files are compressed with gzip.
    pub compress: bool,
}

/// Where access log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Appended to a file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// Which access log a listener, site or route chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogChoice {
    /// Whatever the level above says.
    Inherit,
    /// None.
    Off,
    /// The log with this index in [`Config::logs`].
    Log(usize),
}

/// One address to listen on.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Where.
    pub address: ListenAddress,
    /// What it is for.
    pub purpose: Purpose,
    /// The config says `localhost`: that is two listeners, of which this is one.
    pub localhost: Option<Loopback>,
    /// Connections the kernel holds until we accept them.
    pub backlog: u32,
    /// SO_SNDBUF in bytes; `None` leaves it to the kernel.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes; `None` leaves it to the kernel.
    pub receive_buffer: Option<usize>,
    /// TCP_NOTSENT_LOWAT in bytes; `None` leaves it to the kernel.
    pub notsent_lowat: Option<usize>,
    /// TCP_USER_TIMEOUT; `None` leaves it to the kernel.
    pub user_timeout: Option<Duration>,
    /// TCP_DEFER_ACCEPT; zero is off.
    pub defer_accept: Duration,
    /// IPV6_V6ONLY.
    pub v6only: bool,
    /// TLS; `None` is clear text.
    pub tls: Option<ListenTls>,
    /// Access log of connections from here.
    pub log: LogChoice,
}

/// Where a listener listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
    /// A socket handed down by systemd, by its name (`FileDescriptorName=`).
    Inherited(String),
}

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The sites.
    Sites,
    /// The admin pages.
    Admin,
}

/// One of the two listeners that `localhost` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    /// `127.0.0.1`.
    V4,
    /// `::1`, at the port of the listener before it; a machine may have no such address.
    V6,
}

impl Config {
    /// Listeners of the sites: all but those of the admin pages.
    pub fn site_listeners(&self) -> impl Iterator<Item = &Listener> {
        let listeners = self.listeners.iter();
        listeners.filter(|listener| listener.purpose == Purpose::Sites)
    }
}

impl ListenAddress {
    /// Nobody on another machine can reach it.
    pub fn is_for_this_machine_only(&self) -> bool {
        match self {
            ListenAddress::Tcp(address) => address.ip().is_loopback(),
            ListenAddress::Unix(_) => true,
            ListenAddress::Inherited(_) => false,
        }
    }
}

/// What those who watch requests are not shown unless they ask for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// Words at which names of keys of a query end that are hidden.
    pub hidden_query: Vec<String>,
    /// Header fields that are hidden beside those that always are.
    pub hidden_fields: Vec<String>,
}

/// A virtual host.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Host names: exact, or `*.name`; lower case. Empty: the default site.
    pub names: Vec<String>,
    /// Routes in order; the first that matches wins. A site with a root ends in a route for `/*`.
    pub routes: Vec<Route>,
    /// Pages for error statuses: status and file.
    pub error_pages: Vec<(u16, PathBuf)>,
    /// Header rules for answers that no route gives.
    pub headers: HeaderRules,
    /// Requests in clear text are sent to TLS.
    pub https_only: bool,
    /// What TLS listeners offer for it.
    pub tls: SiteTls,
    /// Access log of this site.
    pub log: LogChoice,
    /// Where the site stands: file and line, for messages.
    pub place: Place,
}

impl Site {
    /// What it is called where one name must do: its first, `*` for the default site.
    pub fn name(&self) -> &str {
        self.names.first().map_or("*", String::as_str)
    }
}

/// A path pattern, settings and one handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Path pattern as written: exact, `prefix/*`, `*.suffix`, `/a/{name}/b`, `/a/{rest*}`.
    pub path: String,
    /// Who answers.
    pub handler: Handler,
    /// Rewritten path, before the handler sees it: a pattern with `{name}` captures.
    pub rewrite: Option<String>,
    /// Largest request body, in bytes (413).
    pub body: u64,
    /// Header rules: the site's, then the route's own.
    pub headers: HeaderRules,
    /// What is done to a program's answers.
    pub after: AfterSteps,
    /// Folders whose files a program may have sent.
    pub sendfile: Vec<Files>,
    /// Answers tell their clients how long they took.
    pub server_timing: bool,
    /// Only reached by internal redirects.
    pub internal: bool,
    /// Access log of this route.
    pub log: LogChoice,
    /// What a half-closed connection means for a program's answer.
    pub half_close: HalfClose,
    /// Where the route stands: file and line, for messages.
    pub place: Place,
}

/// What is done to a program's answers after its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterSteps {
    /// Codings in which answers are compressed, in order of preference; empty is none.
    pub compress: Vec<Coding>,
    /// Smallest answer compressed, in bytes, where its size is known.
    pub compress_min: u64,
    /// Media types that are compressed; `text/*` patterns allowed.
    pub compress_types: Vec<String>,
    /// The site's error pages take the place of a program's own, too.
    pub intercept_errors: bool,
    /// Largest answer that is collected when a program asks for it, in bytes.
    pub buffer_max: u64,
}

/// What FIN after a complete request means while its answer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// The client has left.
    Cancel,
    /// The client still reads.
    Serve,
}

/// Who answers a route.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    /// Static files.
    Files(Files),
    /// A process for each request.
    Cgi(Box<Cgi>),
    /// A program that stays.
    Resident(Box<Resident>),
    /// Another place.
    Redirect(Redirect),
    /// A fixed answer.
    Respond(Respond),
    /// The numbers of the server.
    Metrics(RouteMetrics),
    /// The control API; only on the control socket.
    Admin,
}

/// Settings of static files.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The folder. A path below the route's prefix is looked up here.
    pub root: PathBuf,
    /// True: the whole path is looked up below the root, not only what follows the route's prefix.
    pub keep_prefix: bool,
    /// Files that answer for a folder, first found wins.
    pub index: Vec<String>,
    /// Folders without an index are listed.
    pub listing: bool,
    /// File answered when nothing is found (single-page applications), below the root.
    pub fallback: Option<String>,
    /// Suffixes of precompressed files looked for: `br`, `zst`, `gz`.
    pub precompressed: Vec<Coding>,
    /// Codings made on the fly, in order of preference; empty is none.
    pub compress: Vec<Coding>,
    /// Smallest file compressed on the fly, in bytes.
    pub compress_min: u64,
    /// Media types compressed on the fly; `text/*` patterns allowed.
    pub compress_types: Vec<String>,
    /// Names that begin with a dot are served.
    pub dot_files: bool,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// `charset` parameter for text types; empty is none.
    pub charset: String,
    /// Media types by suffix, before the built-in table.
    pub types: Vec<(String, String)>,
    /// `Cache-Control` value; empty is none.
    pub cache_control: String,
    /// How the cache treats these files.
    pub cache: CacheMode,
}

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that stay below the root.
    Inside,
    /// All.
    Follow,
    /// None.
    Refuse,
}

/// How the cache treats a route's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    /// Kept by use.
    Auto,
    /// Never kept.
    Off,
    /// Loaded at start and never evicted.
    Pin,
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli, RFC 7932.
    Brotli,
    /// Zstandard, RFC 8878.
    Zstd,
    /// gzip, RFC 1952.
    Gzip,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq)]
pub struct Redirect {
    /// Target: URL or path; `{name}` captures, `{path}`, `{query}` and `{host}` are replaced.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Respond {
    /// Status code.
    pub status: u16,
    /// Media type of the body.
    pub content_type: String,
    /// The body.
    pub body: String,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The file as named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}
