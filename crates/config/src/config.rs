//! The config as types: complete once it is built. Its handlers are a type parameter.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_trace::access_log::SyslogSettings;

use crate::access::AccessRules;
use crate::acme::Acme;
use crate::admin::Admin;
use crate::auth::{AuthSettings, SignInRule};
use crate::ban::BanSettings;
use crate::bandwidth::BandwidthSettings;
use crate::clients::ClientSet;
use crate::concurrency::ConcurrencySettings;
use crate::cors::CorsSettings;
use crate::handlers::{Handlers, NoHandlers};
use crate::headers::HeaderRules;
use crate::inside::{Activity, HistorySettings};
use crate::metrics::{Metrics, Otlp};
use crate::names::ClientNamesSettings;
use crate::offer::ProgramOffer;
use crate::overload::{OverloadSettings, RoutePriority};
use crate::program::ProgramConfig;
use crate::rate::RateSettings;
use crate::redirects::RedirectList;
use crate::tls::{ListenTls, SiteTls, UpstreamTls};
use crate::trust::ClientTrust;
use crate::when::RouteWhen;

/// Everything a server runs on, made from one set of sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Config<H: Handlers> {
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
    /// What is done for hosts that no site names, where each has names.
    pub unknown_host: UnknownHost,
    /// The control socket; `None` leaves it to the caller, unless `control_off` is set.
    pub control: Option<PathBuf>,
    /// The config wants no control socket.
    pub control_off: bool,
    /// Folder for what is kept over restarts; `None` leaves it to the caller.
    pub state: Option<PathBuf>,
    /// How long running requests may finish when the server stops.
    pub drain: Duration,
    /// Limits of connections and requests.
    pub limits: LimitSettings,
    /// The cache of files.
    pub cache: CacheSettings,
    /// What those who watch requests are not shown.
    pub watch: WatchSettings,
    /// What is counted for Prometheus.
    pub metrics: Metrics,
    /// Where traces are sent; `None` is nowhere.
    pub otlp: Option<Otlp>,
    /// How names of clients are looked up; `None` when they have none.
    pub names: Option<ClientNamesSettings>,
    /// The file that says which addresses are of which country, in MaxMind's format.
    pub countries: Option<PathBuf>,
    /// The history of requests.
    pub history: HistorySettings,
    /// The server's activity.
    pub activity: Activity,
    /// How certificates are got by themselves; `None` when none is.
    pub acme: Option<Acme>,
    /// The admin pages; `None` when there are none.
    pub admin: Option<Admin>,
    /// Accounts that people sign in with, by the index that routes name.
    pub auth: Vec<AuthSettings>,
    /// Rules that ban clients, in file order.
    pub bans: Vec<BanSettings>,
    /// When low priorities are refused; `None` is never.
    pub overload: Option<OverloadSettings>,
    /// Programs that routes run, by the index that their handlers name.
    pub programs: Vec<ProgramConfig>,
    /// TLS that routes speak with servers of other people, each once.
    pub upstream_tls: Vec<UpstreamTls>,
    /// Access logs, by the index that listeners, sites and routes name.
    pub logs: Vec<LogSettings>,
    /// Where to listen, in file order; those of the admin pages come last.
    pub listeners: Vec<Listener>,
    /// Programs that are offered to other machines, in file order.
    pub offers: Vec<ProgramOffer>,
    /// Sites, in file order. The one without names, else the first, answers unknown hosts.
    pub sites: Vec<SiteConfig<H>>,
}

/// Limits of connections and requests; each has a counter of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSettings {
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
    /// Time for a whole header of the PROXY protocol (closed).
    pub proxy_protocol_time: Duration,
    /// Longest header of its version 2, in bytes (closed).
    pub proxy_protocol_bytes: usize,
    /// Bytes of bodies over HTTP/3 that nobody reads, of all connections (503).
    pub h3_unread: usize,
    /// Open connections of the server.
    pub connections: usize,
    /// Open connections of one client address; 0 is no limit.
    pub connections_per_client: usize,
    /// Clients that are banned at a time; one more ends that which would end first.
    pub bans: usize,
    /// Largest request body, in bytes, unless a route says otherwise (413).
    pub body: u64,
    /// Workers of all resident programs together (503).
    pub workers: usize,
    /// Folders and files kept open of each path with captures; the one not asked for the longest is
    /// closed for one more.
    pub roots: usize,
}

/// The cache of files.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// Memory for contents and what is known of files, in bytes; 0 turns the cache off. `None` is a
    /// share of what is free.
    pub bytes: Option<u64>,
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
    /// Variables of the environment that the format names, and their values.
    pub variables: Vec<(String, String)>,
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
    /// A collector of syslog.
    Syslog(SyslogSettings),
    /// Standard input of a program: its path and its arguments.
    Program(Vec<String>),
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
    /// Whose word on its clients is believed.
    pub trust: Option<ClientTrust>,
    /// Connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Who may have signed the certificates of those whom programs are offered to here.
    pub offers: Option<PathBuf>,
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
    /// Programs that other machines' hobs ask for.
    Offers,
}

/// One of the two listeners that `localhost` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    /// `127.0.0.1`.
    V4,
    /// `::1`, at the port of the listener before it; a machine may have no such address.
    V6,
}

impl<H: Handlers> Config<H> {
    /// Listeners of the sites: all but those of the admin pages and of offers.
    pub fn site_listeners(&self) -> impl Iterator<Item = &Listener> {
        let listeners = self.listeners.iter();
        listeners.filter(|listener| listener.purpose == Purpose::Sites)
    }
}

impl<H: Handlers> Config<H> {
    /// What is not about routes: all that a process needs which answers no request.
    pub fn without_routes(self) -> Config<NoHandlers> {
        Config {
            threads: self.threads,
            cpus: self.cpus,
            nice: self.nice,
            user: self.user,
            group: self.group,
            unknown_host: self.unknown_host,
            control: self.control,
            control_off: self.control_off,
            state: self.state,
            drain: self.drain,
            limits: self.limits,
            cache: self.cache,
            watch: self.watch,
            metrics: self.metrics,
            otlp: self.otlp,
            names: self.names,
            countries: self.countries,
            history: self.history,
            activity: self.activity,
            acme: self.acme,
            admin: self.admin,
            auth: self.auth,
            bans: self.bans,
            overload: self.overload,
            programs: self.programs,
            upstream_tls: self.upstream_tls,
            logs: self.logs,
            listeners: self.listeners,
            offers: self.offers,
            sites: self
                .sites
                .into_iter()
                .map(SiteConfig::without_routes)
                .collect(),
        }
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

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ListenAddress::Inherited(name) => write!(f, "systemd:{name}"),
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

/// Which of two names that differ by `www.` alone a site has its clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WwwForm {
    /// Either.
    Keep,
    /// The one without.
    Drop,
    /// The one with it.
    Add,
}

/// Whether paths of a route end in a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashForm {
    /// As they are asked for.
    Keep,
    /// Never.
    Drop,
    /// Always.
    Add,
}

/// A virtual host.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteConfig<H: Handlers> {
    /// Host names: exact, or `*.name`; lower case. Empty: the default site.
    pub names: Vec<String>,
    /// It answers on these listeners; empty is all.
    pub listeners: Vec<ListenAddress>,
    /// How many requests its routes answer in a time together, those with rates of their own left
    /// out.
    pub rate: Option<RateSettings>,
    /// How many requests its routes have in service at once together, likewise.
    pub concurrency: Option<ConcurrencySettings>,
    /// How fast the answers of its routes leave together, likewise.
    pub bandwidth: Option<BandwidthSettings>,
    /// Routes in order; the first that matches wins. A site with a root ends in a route for `/*`.
    pub routes: Vec<RouteConfig<H>>,
    /// Pages for error statuses: status and file.
    pub error_pages: Vec<(u16, PathBuf)>,
    /// Header rules for answers that no route gives.
    pub headers: HeaderRules,
    /// Requests in clear text are sent to TLS.
    pub https_only: bool,
    /// Which of two names that differ by `www.` alone is the other's.
    pub www: WwwForm,
    /// Paths with capital letters are sent to the same without.
    pub lower_paths: bool,
    /// Paths that have moved.
    pub redirects: Option<RedirectList>,
    /// Who may see it while it is down for maintenance.
    pub maintenance_allow: ClientSet,
    /// What TLS listeners offer for it.
    pub tls: SiteTls,
    /// Access log of this site.
    pub log: LogChoice,
    /// Where the site stands: file and line, for messages.
    pub place: SourceLocation,
}

impl<H: Handlers> SiteConfig<H> {
    fn without_routes(self) -> SiteConfig<NoHandlers> {
        SiteConfig {
            routes: Vec::new(),
            rate: self.rate,
            concurrency: self.concurrency,
            bandwidth: self.bandwidth,
            names: self.names,
            listeners: self.listeners,
            error_pages: self.error_pages,
            headers: self.headers,
            https_only: self.https_only,
            www: self.www,
            lower_paths: self.lower_paths,
            redirects: self.redirects,
            maintenance_allow: self.maintenance_allow,
            tls: self.tls,
            log: self.log,
            place: self.place,
        }
    }

    /// What it is called where one name must do: its first, `*` for the default site, and where
    /// another site may be called so, its first listener.
    pub fn name(&self) -> String {
        let name = self.names.first().map_or("*", String::as_str);
        match self.listeners.first() {
            Some(listener) => format!("{name} on {listener}"),
            None => name.to_owned(),
        }
    }

    /// They may be asked for one host on one listener.
    pub fn meets(&self, other: &SiteConfig<H>) -> bool {
        let mut own = self.listeners.iter();
        self.listeners.is_empty()
            || other.listeners.is_empty()
            || own.any(|listener| other.listeners.contains(listener))
    }
}

/// A path pattern, settings and one handler.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteConfig<H: Handlers> {
    /// Path pattern as written: exact, `prefix/*`, `*.suffix`, `/a/{name}/b`, `/a/{rest*}`.
    pub path: String,
    /// Which requests for its path it answers; `None` is all.
    pub when: Option<Arc<RouteWhen>>,
    /// What offers call its program.
    pub name: Option<String>,
    /// Who answers.
    pub handler: H,
    /// Rewritten path, before the handler sees it: a pattern with `{name}` captures.
    pub rewrite: Option<String>,
    /// Largest request body, in bytes (413).
    pub body: u64,
    /// Header rules: the site's, then the route's own.
    pub headers: HeaderRules,
    /// What is done to a program's answers; routes of one mind share it.
    pub after: Arc<AfterSteps>,
    /// Folders whose files a program may have sent.
    pub sendfile: Vec<H::Folder>,
    /// Answers tell their clients how long they took.
    pub server_timing: bool,
    /// Values of `Link` that are sent while an answer is made.
    pub early_hints: Vec<String>,
    /// What lacks the slash in front of the pattern's star is not sent there.
    pub strict: bool,
    /// Whether its paths end in a slash.
    pub slash: SlashForm,
    /// Only reached by internal redirects.
    pub internal: bool,
    /// Who may ask; routes that say nothing share their site's.
    pub access: Option<Arc<AccessRules>>,
    /// Who has to sign in; routes that say nothing share their site's.
    pub require: Option<Arc<SignInRule>>,
    /// Which pages elsewhere may ask; routes that say nothing share their site's.
    pub cors: Option<Arc<CorsSettings>>,
    /// How many requests it answers in a time, where it has a rate of its own.
    pub rate: Option<RateSettings>,
    /// How many requests it has in service at once, where it has a limit of its own.
    pub concurrency: Option<ConcurrencySettings>,
    /// How fast its answers leave, where it has a bandwidth of its own.
    pub bandwidth: Option<BandwidthSettings>,
    /// Whether it is refused before others when there is too much to do.
    pub priority: RoutePriority,
    /// Access log of this route.
    pub log: LogChoice,
    /// What a half-closed connection means for a program's answer.
    pub half_close: HalfClose,
    /// Where the route stands: file and line, for messages.
    pub place: SourceLocation,
}

impl<H: Handlers> RouteConfig<H> {
    /// What it is called among the routes of its site: its path, and its `when`, if it has one.
    pub fn label(&self) -> String {
        match &self.when {
            Some(when) => format!("{} when {when}", self.path),
            None => self.path.clone(),
        }
    }
}

/// What is done to a program's answers after its handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl<H: Handlers> Config<H> {
    /// What becomes of hosts that no site names; `None` where a site answers for all of them.
    pub fn unknown_hosts(&self) -> Option<&'static str> {
        let is_rest = |site: &SiteConfig<H>| site.names.is_empty() && site.listeners.is_empty();
        let all_named = !self.sites.iter().any(is_rest);
        all_named.then_some(match self.unknown_host {
            UnknownHost::Refuse => {
                "hosts that no site names get 421; `unknown_host = \"first\"` has the first site \
                 answer"
            }
            UnknownHost::First => "hosts that no site names are answered by the first site",
        })
    }
}

/// What is done for hosts that no site names, where each site has names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownHost {
    /// They get 421.
    #[default]
    Refuse,
    /// The first site answers; its permanent redirects are temporary ones then.
    First,
}

/// What FIN after a complete request means while its answer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// The client has left.
    Cancel,
    /// The client still reads.
    Serve,
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

impl Coding {
    /// All of them.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// As the config says it, and `Content-Encoding`.
    pub fn word(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// The ending of precompressed files, without its dot.
    pub fn ending(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zst",
            Coding::Gzip => "gz",
        }
    }
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceLocation {
    /// The file as named.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}
