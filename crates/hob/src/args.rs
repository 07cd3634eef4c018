//! The one table of commands and flags, and the only place where arguments and environment are
//! read. Everything else gets what it needs as values.

mod auth;
mod ban;
mod check;
mod compare;
mod config;
mod cost;
mod foreign;
mod history;
mod look;
mod page;

use std::env;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, Parser, Subcommand, ValueEnum};
use hob_keeper::servers::Runtime;
use hob_load::arrive::ArrivalRate;
use hob_load::{
    Expectation, Shard, StopCondition, Url, parse_bytes_per_second, parse_duration, parse_moment,
    parse_percent,
};

use auth::{PASSWORD_HELP, SIGN_HELP};
pub(crate) use auth::{PasswordOptions, SignOptions};
pub(crate) use ban::BanCommand;
pub(crate) use check::{CheckOptions, ExplainOptions};
pub(crate) use compare::CompareOptions;
pub(crate) use config::{ConfigApplyOptions, ConfigChangeOptions, ConfigCommand};
pub(crate) use cost::{CostOptions, CostPart};
pub(crate) use history::HistoryOptions;
pub(crate) use look::{
    ControlOptions, MaintenanceCommand, NativeBuildOptions, NativeCommand, RecycleOptions,
    ServersOptions, StatusOptions, TopOptions, TopView, UpstreamCommand, VisitCommand,
    WatchOptions,
};
pub(crate) use page::{
    PageCheckOptions, PageCommand, PageFmtOptions, PageNewOptions, PageRunOptions,
};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the system, the server or the running hob refused, or a page is wrong
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer
  4  a threshold of `bench --fail-if` was crossed
  5  a condition of `bench --stop-if` ended the run early

Environment:
  HOB_LOG  diagnostics on standard error: error, warn, info (usual), debug, trace";

const BENCH_HELP: &str = "\
Examples:
  hob bench http://127.0.0.1:8080/
      closed loop: 10 connections, each asks again when it has its answer, for 10 s
  hob bench http://127.0.0.1:8080/ --rate 5000 --for 10s
      open loop: 5,000 requests a second whatever the server does; response times are
      measured from when a request was due
  hob bench http://127.0.0.1:8080/ --rate 1000,2000,4000 --for 30s --fail-if 'p99>50ms'
      three steps of 10 s each; exit code 4 when the 99th percentile is above 50 ms
  hob bench http://127.0.0.1:8080/form --method POST --body form.txt --count 1000 \\
      --header Content-Type:text/plain --expect status=200 --expect size=12
  hob bench http://127.0.0.1:8080/ --replay access.log --speed-up 10
      the requests of an access log at their own times, ten times as fast
  hob bench http://127.0.0.1:8080/ --urls urls.txt --rate 2000
      requests drawn by weight from a list, each with a row of its own in the result
  hob bench https://127.0.0.1:8443/ --http 2 --connections 4 --streams 10
      4 connections of HTTP/2, each with 10 requests at once
  hob bench https://127.0.0.1:8443/ --http 3 --close --tls full
      a connection of HTTP/3 for every request, with a full handshake each
  hob bench https://127.0.0.1:8443/ --http 2 --page -c 20 --rate 50
      50 pages a second with their assets, each as a new visitor's browser loads it; --warm
      for visitors who come again
  hob bench http://127.0.0.1:8080/ --break 5 --head 10
      visitors who leave in the middle of an answer, and some who only look at the head
  hob bench http://127.0.0.1:8080/big.zip --read-rate 64k --timeout 5m -c 200
      200 visitors on slow lines
  hob bench http://127.0.0.1:8080/ --pid $(pidof -s nginx) --json
      with CPU time per request of that process and those below it, as JSON
  hob bench http://127.0.0.1:8080/ --rate 5000 --html report.html --hdr times.hlog
      with a page for people and a log for HdrHistogram's tools
  hob bench http://127.0.0.1:8080/ --rate 50000 --stop-if 'backlog>20000'
      ends early, with exit code 5, when the server falls behind that far
  hob bench --compare before.json after.json --fail-if 'p99>10%'
      how two results of --json differ, and by how much that is certain
  hob bench http://10.0.0.1/ --rate 9000 --shard 1/3 --start-at 2026-01-31T12:00:00Z --json
  hob bench merge one.json two.json three.json --html report.html
      three machines carry out one plan together; their results become one

Exit codes:
  0  the run was made, and no threshold was crossed; interrupted runs are reported too
  1  no request was answered, or the system refused something
  2  the arguments are wrong
  4  a threshold of --fail-if was crossed, or its figure could not be measured
  5  a condition of --stop-if ended the run early";

/// Serves a site and keeps its scripts warm.
#[derive(Parser)]
#[command(name = "hob", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Serve a folder or what a config says; SIGTERM drains, SIGHUP reloads, SIGUSR2 upgrades
    Serve(ServeOptions),
    /// Say everything that is wrong with a config
    Check(CheckOptions),
    /// Say what would answer a request, and why, without serving it
    Explain(ExplainOptions),
    /// Make requests and measure how they are answered
    Bench(Box<BenchOptions>),
    /// Tell where the time of one request to a script goes, and what would save it
    Cost(CostOptions),
    /// Measure servers side by side on this machine: hob, and what else is installed
    Compare(Box<CompareOptions>),
    /// Check, run, lay out and begin macro pages, without a server
    Page {
        #[command(subcommand)]
        command: PageCommand,
    },
    /// Ask for a password and print its hash, or write it into a file of accounts
    #[command(after_help = PASSWORD_HELP)]
    Password(PasswordOptions),
    /// Sign a link, for `signed_urls` of `[[auth]]`
    #[command(after_help = SIGN_HELP)]
    Sign(SignOptions),
    /// Build what makes programs in Python and Perl faster, for interpreters that have none yet
    Native {
        #[command(subcommand)]
        command: NativeCommand,
    },
    /// List the servers that run, with what commands reach each by
    Servers(ServersOptions),
    /// Show the state of the running hob
    Status(StatusOptions),
    /// Show what the running hob does, again and again
    Top(TopOptions),
    /// Show requests that the running hob has answered, or the life of one
    History(HistoryOptions),
    /// Show what happens to requests as it happens
    Watch(WatchOptions),
    /// Show clients that are banned, ban some and lift bans
    Ban {
        #[command(subcommand)]
        command: BanCommand,
    },
    /// Have sites say that they are down for maintenance, and have them answer again
    Maintenance {
        #[command(subcommand)]
        command: MaintenanceCommand,
    },
    /// Put another text in the place of a config that is in force, and take it back
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Have the running hob read its config again
    Reload(ControlOptions),
    /// Have new workers take the places of those of a program that stays
    Recycle(RecycleOptions),
    /// Have a member of an upstream get no new requests, or get them again
    Upstream {
        #[command(subcommand)]
        command: UpstreamCommand,
    },
    /// End visits of `session` programs, and of pages that last
    Visit {
        #[command(subcommand)]
        command: VisitCommand,
    },
    /// Have the running hob go over to the program as it now stands on disk
    Upgrade(ControlOptions),
    /// Have the running hob finish what it has and end
    Stop(ControlOptions),
    /// The process that serves; started by `serve`
    #[command(hide = true)]
    Server,
    /// The process that starts programs; started by `serve`
    #[command(hide = true)]
    Spawner,
    /// The process that gets certificates; started by `serve`
    #[command(hide = true)]
    Acme,
    /// The process that has a driver of ODBC in it; started by whoever runs pages
    #[command(hide = true)]
    Odbc,
    /// The process that asks PAM about one password; started by the server
    #[command(hide = true)]
    Pam,
    /// The hob that `cost` measures; started by it
    #[command(hide = true)]
    CostServe {
        /// The process that it ends with
        parent: u32,
        /// Its config
        config: PathBuf,
        /// Its control socket
        control: PathBuf,
    },
    /// The process that starts programs bare; started by `cost`
    #[command(hide = true)]
    CostBare,
    /// The process that holds a server; started by `compare`
    #[command(hide = true)]
    CompareSupervisor,
    /// A file system that passes everything on to a folder; started by `compare-supervisor`
    #[command(hide = true)]
    CompareFuse {
        /// The folder
        folder: PathBuf,
    },
    /// Write man pages and completions into a folder; called when hob is packaged
    #[command(hide = true)]
    Manual {
        /// The folder, as a package's `/usr/share`
        folder: PathBuf,
    },
    /// Compress what a log was; started by `serve` after a rotation
    #[command(hide = true)]
    CompressLog {
        /// The file that was put aside
        path: PathBuf,
    },
}

/// What to serve.
#[derive(Args)]
pub(crate) struct ServeOptions {
    /// Folder to serve, with listings; the current one unless there is a hob.toml in it
    pub(crate) dir: Option<PathBuf>,
    /// Config file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "listen", "log"])]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on: PORT, IP:PORT, localhost:PORT or unix:PATH; more than once for more
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Vec<String>,
    /// Control socket, or `off`
    #[arg(long, value_name = "PATH|off")]
    pub(crate) control: Option<PathBuf>,
    /// Access log in combined format
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// An upgrade made this process; what it takes over waits on standard input
    #[arg(long, hide = true)]
    pub(crate) resume: bool,
    /// Serve for a command that ends it: others do not find it
    #[arg(long, hide = true)]
    pub(crate) unlisted: bool,
    /// Say whether an upgrade from this version may be tried, with the sources on standard input
    #[arg(long, hide = true, value_name = "VERSION", conflicts_with = "resume")]
    pub(crate) handover_check: Option<u32>,
}

/// Gaps between the requests of an open loop.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Gaps {
    /// As even as the rate is
    Constant,
    /// Like those of many visitors who know nothing of each other
    Poisson,
}

/// Handshakes of TLS.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Handshake {
    /// With the session of an earlier connection
    Resumed,
    /// In full
    Full,
}

/// Versions of HTTP, as curl has them.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum HttpVersion {
    /// HTTP/1.1
    #[value(name = "1.1", alias = "1")]
    One,
    /// HTTP/2
    #[value(name = "2")]
    Two,
    /// HTTP/3
    #[value(name = "3")]
    Three,
}

/// What to ask for, how often, and what to make of it.
#[derive(Args)]
#[command(
    after_help = BENCH_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct BenchOptions {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    /// What to ask for, in turn: http[s]://HOST[:PORT]/PATH, all of one server. With --urls the
    /// server that paths of the list are of
    #[arg(
        required_unless_present_any = ["schema", "reference", "compare", "list"],
        value_name = "URL"
    )]
    pub(crate) urls: Vec<Url>,
    /// List of what to ask for, a line each: [METHOD] URL [weight=NUMBER] [name=WORD] [body=FILE]
    /// [header=NAME:VALUE] [expect=WHAT=VALUE]. Drawn by weight, in turn where all weigh the same
    #[arg(long = "urls", value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Load each URL as a page with its assets, as a browser does: --connections are visitors then,
    /// --rate and --count are of pages, and times are those of whole pages
    #[arg(long)]
    pub(crate) page: bool,
    /// With --page: visitors have been there before, with a browser's cache and connections
    #[arg(long, requires = "page")]
    pub(crate) warm: bool,
    /// Open loop: requests per second; A..B for a ramp, A,B,C for steps
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<ArrivalRate>,
    /// Gaps between the requests of an open loop
    #[arg(
        long,
        value_name = "GAPS",
        default_value = "constant",
        requires = "rate"
    )]
    pub(crate) arrivals: Gaps,
    /// Open loop: send the requests of an access log at their own times; of the format common or
    /// combined, or hob's JSON, perhaps compressed by gzip. The URL says which server
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["rate", "think", "list"]
    )]
    pub(crate) replay: Option<PathBuf>,
    /// What the gaps between the requests of --replay are divided by
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1.0,
        requires = "replay"
    )]
    pub(crate) speed_up: f64,
    /// Methods of --replay that are sent, others are counted and left out: GET,HEAD,POST; those
    /// beside GET and HEAD have the body of --body
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "GET,HEAD",
        requires = "replay"
    )]
    pub(crate) replay_methods: Vec<String>,
    /// Number that what is random follows from: gaps of --arrivals poisson, draws by weight of
    /// --urls, of --head and --break, sizes of --vary
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Of the requests with GET, make so many in a hundred with HEAD; each URL has a row of its own
    /// for them. Not with --page and --replay
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "0")]
    pub(crate) head: f64,
    /// Break so many requests in a hundred off at a random point of their answers: over HTTP/1.1 by
    /// closing the connection, over HTTP/2 and HTTP/3 by a reset of the stream. They are counted
    /// apart, as neither answered nor failed. Not with --page
    #[arg(
        long = "break",
        value_name = "PERCENT",
        value_parser = parse_percent,
        default_value = "0"
    )]
    pub(crate) break_off: f64,
    /// Read no more than so many bytes per second of each connection, as visitors on slow lines do:
    /// 800, 64k, 1.5M. --timeout holds for the whole answer. Not over HTTP/3
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes_per_second)]
    pub(crate) read_rate: Option<NonZeroU64>,
    /// Read answers in pieces of random sizes, from one byte to 16 KiB. Not over HTTP/3
    #[arg(long)]
    pub(crate) vary: bool,
    /// Closed loop: pause between an answer and the next request
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "rate")]
    pub(crate) think: Option<Duration>,
    /// Connections; 10 in a closed loop, 100 in an open one
    #[arg(long, short = 'c', value_name = "COUNT")]
    pub(crate) connections: Option<usize>,
    /// Client addresses they come from in turn, 127.0.1.1 and on; only to servers at 127.0.0.0/8
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) sources: usize,
    /// What requests are written in; over https what is agreed on in the handshake must be this
    #[arg(long, value_name = "VERSION", default_value = "1.1")]
    pub(crate) http: HttpVersion,
    /// The same as --http 2; in clear text without asking the server first
    #[arg(long, conflicts_with = "http")]
    pub(crate) http2: bool,
    /// The same as --http 3
    #[arg(long, conflicts_with_all = ["http", "http2"])]
    pub(crate) http3: bool,
    /// Requests at once on each connection, over HTTP/2 and HTTP/3
    #[arg(long, short = 'm', value_name = "COUNT", default_value_t = 1)]
    pub(crate) streams: usize,
    /// A new connection for every request
    #[arg(long)]
    pub(crate) close: bool,
    /// Take any certificate; that of a server on this machine is not checked anyway
    #[arg(long)]
    pub(crate) insecure: bool,
    /// How connections after the first one shake hands: with its session where the server lets
    /// them, or in full
    #[arg(long, value_name = "HANDSHAKE", default_value = "resumed")]
    pub(crate) tls: Handshake,
    /// The same as --tls full
    #[arg(long, hide = true)]
    pub(crate) full_handshakes: bool,
    /// Threads of the load generator; as many as --cpus, else 1
    #[arg(long, short = 't', value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// CPUs the threads are bound to, such as 1 or 0,2-3
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Measured time; 10s unless --count is given, and with --replay to the log's end
    #[arg(long = "for", short = 'd', value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Measured requests; with --for, what comes first ends the run
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// Time before anything counts; 1s, and none with --replay, or with --count unless --warm and
    /// --rate are given too
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) warm_up: Option<Duration>,
    /// Longest wait for an answer
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub(crate) timeout: Duration,
    /// Method of every request; POST where there is a body, else GET
    #[arg(long, short = 'X', value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Header field of every request; more than once for more
    #[arg(long, short = 'H', value_name = "NAME:VALUE")]
    pub(crate) header: Vec<String>,
    /// File whose contents are the body of every request
    #[arg(long, value_name = "FILE")]
    pub(crate) body: Option<PathBuf>,
    /// Unix socket to connect to instead of the URL's host
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// What answers must be: status=200-399 (usual), size=BYTES, header=NAME[:VALUE], sha256=HASH
    #[arg(long, alias = "check", value_name = "WHAT=VALUE")]
    pub(crate) expect: Vec<Expectation>,
    /// What the result must not be: p99>50ms, errors>0.1%, rate<5000, ...; ends with exit code 4.
    /// With --compare a change: p99>10%, rate<-5%
    #[arg(long, value_name = "FIGURE>LIMIT")]
    pub(crate) fail_if: Vec<String>,
    /// What ends the run early, with exit code 5: backlog>COUNT (requests that are due and wait
    /// for a connection: the server cannot keep up with the rate), errors>COUNT
    #[arg(long, value_name = "FIGURE>COUNT")]
    pub(crate) stop_if: Vec<StopCondition>,
    /// Process whose CPU time, with that of all below it, is put beside the result
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    /// Control group whose CPU time and memory are put beside the result: the path of its folder,
    /// or what /proc/PID/cgroup says
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Carry out one part of the plan of several machines: rate, connections and count are shared
    #[arg(long, value_name = "NUMBER/COUNT")]
    pub(crate) shard: Option<Shard>,
    /// Begin at this moment: seconds since 1970, or UTC as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    pub(crate) start_at: Option<SystemTime>,
    /// Show lines while the run goes on, not a screen
    #[arg(long)]
    pub(crate) plain: bool,
    /// Result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result as a page of HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the times for HdrHistogram's tools: a log, or percentiles as text in a file *.hgrm
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,
    /// Say how the second of two results of --json differs from the first; a file with three
    /// results or more, one after the other, is of repeated runs
    #[arg(long, value_name = "FILE", num_args = 2, conflicts_with_all = ["urls", "html", "hdr"])]
    pub(crate) compare: Option<Vec<PathBuf>>,
    /// Print the JSON schema of a result instead
    #[arg(long, conflicts_with_all = ["urls", "json"])]
    pub(crate) schema: bool,
    /// Print the reference of a result in JSON instead, in Markdown
    #[arg(long, conflicts_with_all = ["urls", "json", "schema"])]
    pub(crate) reference: bool,
}

/// What else can be done with results.
#[derive(Subcommand)]
pub(crate) enum BenchCommand {
    /// Make one result of those that --shard gave, with exact percentiles
    Merge(MergeOptions),
}

/// What to merge.
#[derive(Args)]
pub(crate) struct MergeOptions {
    /// Results of --json, one of each shard
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result as a page of HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the times for HdrHistogram's tools
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,
}

impl Cli {
    /// Reads the arguments; ends the program with code 2 when they make no sense.
    pub(crate) fn read() -> Cli {
        Cli::try_parse().unwrap_or_else(|error| foreign::told(error, env::args()).exit())
    }
}

/// What the environment says, read once.
pub(crate) struct Surroundings {
    /// HOB_LOG.
    pub(crate) log_level: Option<String>,
    /// NOTIFY_SOCKET.
    pub(crate) notify: Option<OsString>,
    /// Sockets of LISTEN_FDS, by name.
    pub(crate) inherited: Vec<(String, OwnedFd)>,
    /// This program as it can be found on disk, also after it is replaced there.
    pub(crate) program: PathBuf,
    /// All arguments, the program's name first.
    pub(crate) arguments: Vec<OsString>,
    /// All variables.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where the servers of this user tell of themselves.
    pub(crate) runtime: Runtime,
    /// The usual place for what is kept over restarts, for this user.
    pub(crate) usual_state: Option<PathBuf>,
}

impl Surroundings {
    /// Takes what was handed down. Must come before anything is opened.
    pub(crate) fn take() -> Result<Surroundings, String> {
        let names = inherited_names(
            env::var_os("LISTEN_PID").as_deref(),
            env::var_os("LISTEN_FDS").as_deref(),
            env::var_os("LISTEN_FDNAMES").as_deref(),
            std::process::id(),
        )?;
        let inherited = hob_keeper::adopt_inherited(&names)
            .map_err(|error| format!("cannot take the sockets of the service manager: {error}"))?;
        let arguments: Vec<OsString> = env::args_os().collect();
        Ok(Surroundings {
            log_level: env::var("HOB_LOG").ok(),
            notify: env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()),
            inherited,
            program: program(arguments.first().map(OsString::as_os_str))
                .map_err(|error| format!("cannot find this program on disk: {error}"))?,
            arguments,
            environment: env::vars_os().collect(),
            runtime: runtime(
                rustix::process::geteuid().as_raw(),
                env::var_os("XDG_RUNTIME_DIR").as_deref(),
            ),
            usual_state: usual_state(
                rustix::process::geteuid().as_raw(),
                env::var_os("STATE_DIRECTORY").as_deref(),
                env::var_os("XDG_STATE_HOME").as_deref(),
                env::var_os("HOME").as_deref(),
            ),
        })
    }

    /// The folder that relative paths of the command line begin in.
    pub(crate) fn current_folder() -> std::io::Result<PathBuf> {
        std::env::current_dir()
    }

    /// Where programs are looked for.
    pub(crate) fn program_folders() -> Vec<PathBuf> {
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders).collect()
    }

    /// Where temporary folders are made.
    pub(crate) fn temporary_folder() -> PathBuf {
        env::temp_dir()
    }

    /// A variable for `${NAME}` in a config.
    pub(crate) fn variable(name: &str) -> Option<String> {
        env::var(name).ok()
    }
}

/// The names of the sockets that systemd handed to this process, in order.
fn inherited_names(
    pid: Option<&OsStr>,
    count: Option<&OsStr>,
    names: Option<&OsStr>,
    own_pid: u32,
) -> Result<Vec<String>, String> {
    let number = |text: Option<&OsStr>| {
        text.and_then(OsStr::to_str)
            .and_then(|text| text.parse().ok())
    };
    if number(pid) != Some(own_pid) {
        return Ok(Vec::new());
    }
    let count = number(count).ok_or("LISTEN_FDS is not a number")?;
    let names = names
        .map(|names| names.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut names: Vec<String> = names.split(':').map(str::to_owned).collect();
    // Without names all have the one that systemd uses then.
    names.retain(|name| !name.is_empty());
    names.resize(count as usize, "unknown".to_owned());
    Ok(names)
}

/// Where this program stands on disk. Symbolic links stay, because an upgrade may turn them.
fn program(name: Option<&OsStr>) -> std::io::Result<PathBuf> {
    let running = env::current_exe()?;
    let Some(name) = name.map(Path::new) else {
        return Ok(running);
    };
    let candidates = if name.components().count() > 1 {
        vec![env::current_dir()?.join(name)]
    } else {
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .collect()
    };
    let own = std::fs::metadata("/proc/self/exe")?;
    let is_own = |path: &PathBuf| {
        path.is_absolute()
            && std::fs::metadata(path)
                .is_ok_and(|file| (file.dev(), file.ino()) == (own.dev(), own.ino()))
    };
    Ok(candidates.into_iter().find(is_own).unwrap_or(running))
}

fn runtime(uid: u32, runtime_folder: Option<&OsStr>) -> Runtime {
    Runtime(match runtime_folder {
        _ if uid == 0 => PathBuf::from("/run/hob"),
        Some(folder) if Path::new(folder).is_absolute() => Path::new(folder).join("hob"),
        _ => PathBuf::from(format!("/tmp/hob-{uid}")),
    })
}

/// systemd's own answer first, then what each user's programs use. A folder for temporary files is
/// none: who makes it there first would be believed.
fn usual_state(
    uid: u32,
    service: Option<&OsStr>,
    state_home: Option<&OsStr>,
    home: Option<&OsStr>,
) -> Option<PathBuf> {
    let absolute = |folder: Option<&OsStr>| {
        let folder = folder.map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    };
    if let Some(folder) = absolute(service) {
        return Some(folder);
    }
    match (absolute(state_home), absolute(home)) {
        _ if uid == 0 => Some(PathBuf::from("/var/lib/hob")),
        (Some(folder), _) => Some(folder.join("hob")),
        (None, Some(home)) => Some(home.join(".local/state/hob")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn table_of_flags_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sockets_for_another_process_are_not_ours() {
        let names = |pid: &str, count: &str, names: Option<&str>| {
            inherited_names(
                Some(pid.as_ref()),
                Some(count.as_ref()),
                names.map(OsStr::new),
                42,
            )
        };
        assert_eq!(names("41", "2", None), Ok(vec![]));
        assert_eq!(
            names("42", "2", None),
            Ok(vec!["unknown".into(), "unknown".into()])
        );
        assert_eq!(
            names("42", "2", Some("web:tls")),
            Ok(vec!["web".into(), "tls".into()])
        );
        assert_eq!(names("42", "1", Some("web:tls")), Ok(vec!["web".into()]));
        assert!(names("42", "many", None).is_err());
        assert_eq!(inherited_names(None, None, None, 42), Ok(vec![]));
    }

    #[test]
    fn usual_state_folder_depends_on_service_and_user() {
        let path = |uid, service: Option<&str>, state: Option<&str>, home: Option<&str>| {
            let of = |text: Option<&str>| text.map(std::ffi::OsString::from);
            let (service, state, home) = (of(service), of(state), of(home));
            usual_state(uid, service.as_deref(), state.as_deref(), home.as_deref())
                .map(|path| path.display().to_string())
        };
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(
            path(0, None, Some("/s"), Some("/root")),
            some("/var/lib/hob")
        );
        assert_eq!(
            path(0, Some("/var/lib/web"), None, None),
            some("/var/lib/web")
        );
        assert_eq!(path(7, None, Some("/s"), Some("/h")), some("/s/hob"));
        assert_eq!(
            path(7, None, Some("s"), Some("/h")),
            some("/h/.local/state/hob")
        );
        assert_eq!(path(7, None, None, None), None);
    }

    #[test]
    fn runtime_folder_depends_on_the_user() {
        let named = Some(OsStr::new("/run/user/7"));
        let path = |uid, folder| runtime(uid, folder).0.display().to_string();
        assert_eq!(path(0, named), "/run/hob");
        assert_eq!(path(7, named), "/run/user/7/hob");
        assert_eq!(path(7, None), "/tmp/hob-7");
        assert_eq!(path(7, Some(OsStr::new("relative"))), "/tmp/hob-7");
    }
}
