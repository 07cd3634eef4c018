//! The flags of commands that look into a running hob.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use hob_load::parse_duration;

const TOP_HELP: &str = "\
Examples:
  hob top
      a screen of the running hob, once a second; 1 to 4 choose what it shows, ? tells all keys
  hob top --view routes -d 5s
      the slowest routes, every five seconds
  ssh -t www hob top
      the same from elsewhere: a screen of 80 by 24 is enough
  hob top --once
      one screenful as text, for a mail or a ticket; needs no terminal
  hob top --json
      a JSON document a second: overview, programs, running requests and routes

Exit codes:
  0  ended by q or Ctrl-C, or shown
  1  the running hob refused, or the terminal did
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer";

const WATCH_HELP: &str = "\
Examples:
  hob watch
      everything that happens to every request, as it happens
  hob watch 'path=/cgi-bin/* slower=100ms'
      only requests to scripts, and of these only slow ones
  hob watch client=192.0.2.7 --head --body
      all that one client sends and is sent, as text and in hexadecimal
  hob watch --trigger '~exit code' --keep 50
      nothing until an event has these words; then the 50 before it, and all that follow
  hob watch status=5xx --for 1m --json > events.json
      a minute of failures, an object a line

Filters: KEY=VALUE, of each key one, and of different keys all must hold
  client=ADDRESS   site=NAME      path=PATTERN (with *)     method=NAME
  status=5xx       handler=cgi    slower=100ms              header=NAME:REGEX
A pattern is of the whole text, with * for any part of it; behind ~ it is a regular expression.

Authorization, cookies and secret query keys are left out unless --secrets asks for them. What the
watcher is too slow for is dropped, never waited for: how much is said on standard error.

Exit codes:
  0  ended by Ctrl-C, --for or --count
  1  the running hob refused
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer any more";

const NATIVE_HELP: &str = "\
Examples:
  sudo hob native build
      for python3 and perl of PATH; workers that start from then on use them,
      as those of `hob recycle ROUTE`
  sudo hob native build --perl /opt/perl/bin/perl
      for that perl alone

Exit codes:
  0  built
  1  something is missing, as is said, or does not compile
  2  the arguments are wrong";

const STATUS_HELP: &str = "\
Examples:
  hob status
      processes, listeners, warnings, cache, programs, certificates, and every counter that is not 0
  hob status --programs
      programs that stay and interpreters that are kept warm, with their workers
  hob status --certificates --json
      certificates that come from an authority, as JSON
  hob status --environment
      build, machine, kernel, limits, and what programs are held to
  hob status --statistics
      requests since the start, today and since --zero, by what they were
  hob status --config /etc/hob.toml
      the hob that serves this config

Exit codes:
  0  shown
  1  the running hob refused
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer";

const SERVERS_HELP: &str = "\
Examples:
  hob servers
      your servers; for root those of all users
  hob reload --config /srv/one/hob.toml
      every command takes what stands in the column `config`
  hob servers --json | jq -r '.servers[].control'
      where each can be asked over HTTP

Exit codes:
  0  shown, even if none runs
  2  the arguments are wrong";

const MAINTENANCE_HELP: &str = "\
Examples:
  hob maintenance on --retry-after 30m
      all sites answer 503 with their own page for it; what is under way is finished
  hob maintenance on --site www.example.com
      one site, by its first name in the config
  hob maintenance off

It goes on over a reload; over an upgrade and a restart, too, where the config names a `state`.
Who is in `maintenance_allow` of a site sees it as ever.";

const UPSTREAM_HELP: &str = "\
Examples:
  hob upstream drain app 10.0.0.2:3000
      this member of the `[[upstream]]` app gets no new requests; `hob status` shows how many it
      still has
  hob upstream resume app 10.0.0.2:3000
      it gets requests again
  hob upstream drain 'www.example.com/app/* proxy' 127.0.0.1:3000
      the same for a route that names its members itself, by its site, path and handler

Exit codes:
  0  done
  1  there is no such upstream, or no such member of it
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer";

const RECYCLE_HELP: &str = "\
Examples:
  hob recycle /app
      workers of the route /app/* are replaced: each goes when another one is ready and what it
      has is answered
  hob recycle app:application
      the same by what runs, on every route that has it
  hob recycle php-fpm8.2
      the same of a program that `run` of `fastcgi` or `scgi` starts: others start, and take
      requests once they are ready; those before end with the last of what they have
  hob recycle /app --json
      the process ids of the workers that go, as JSON

Exit codes:
  0  others are on their way
  1  no program that stays, and none of `run`, has this route, or no worker of it is there
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer";

const VISIT_HELP: &str = "\
Examples:
  hob visit end 17
      the process of this visit finishes what it has, is told that nothing more comes, and ends;
      its handle is good for nothing then

Exit codes:
  0  it ends
  1  there is no such visit
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer";

/// How to reach the running hob.
#[derive(Args)]
pub(crate) struct ControlOptions {
    /// Control socket of the running hob
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub(crate) control: Option<PathBuf>,
    /// Config of the running hob, or the folder that it serves without one; else the one that
    /// serves ./hob.toml, else the only one that runs
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is told of the servers that run.
#[derive(Args)]
#[command(after_help = SERVERS_HELP)]
pub(crate) struct ServersOptions {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON schema of that instead
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
    /// Print the reference of its fields instead, in Markdown
    #[arg(long, exclusive = true)]
    pub(crate) reference: bool,
}

/// Which program's workers are renewed.
#[derive(Args)]
#[command(after_help = RECYCLE_HELP)]
pub(crate) struct RecycleOptions {
    /// Path of the route, as `/app` or `/app/*`, or what runs there, as `app:application`
    #[arg(value_name = "ROUTE")]
    pub(crate) route: String,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

/// What is done to a member.
#[derive(Subcommand)]
pub(crate) enum UpstreamCommand {
    /// Have it get no new requests; it finishes those it has, and clients with a cookie for it stay
    #[command(after_help = UPSTREAM_HELP)]
    Drain(MemberOptions),
    /// Have it get requests again
    #[command(after_help = UPSTREAM_HELP)]
    Resume(MemberOptions),
}

/// Which member.
#[derive(Args)]
pub(crate) struct MemberOptions {
    /// Name of the upstream, as `hob status` has it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Address of the member, as `hob status` has it
    #[arg(value_name = "MEMBER")]
    pub(crate) member: String,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

/// What sites do meanwhile.
#[derive(Subcommand)]
pub(crate) enum MaintenanceCommand {
    /// Have a site, or all of them, answer 503; what is under way is finished
    #[command(after_help = MAINTENANCE_HELP)]
    On {
        #[command(flatten)]
        options: MaintenanceOptions,
        /// When clients are told to come again
        #[arg(long, value_name = "TIME", default_value = "5m",
              value_parser = hob_server::config::parse_duration)]
        retry_after: Duration,
    },
    /// Have it answer again
    #[command(after_help = MAINTENANCE_HELP)]
    Off(MaintenanceOptions),
}

/// Which site.
#[derive(Args)]
pub(crate) struct MaintenanceOptions {
    /// The site, by its first name; all of them when it is not given
    #[arg(long, value_name = "NAME")]
    pub(crate) site: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

/// What is done to a visit.
#[derive(Subcommand)]
pub(crate) enum VisitCommand {
    /// Have its process finish what it has, and end
    #[command(after_help = VISIT_HELP)]
    End(VisitOptions),
}

/// Which visit.
#[derive(Args)]
pub(crate) struct VisitOptions {
    /// Number of the visit, as `hob status --programs` has it
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

/// What of the state to show.
#[derive(Args)]
#[command(after_help = STATUS_HELP)]
pub(crate) struct StatusOptions {
    #[command(flatten)]
    pub(crate) control: ControlOptions,
    /// Only the cache
    #[arg(long)]
    pub(crate) cache: bool,
    /// Only the certificates: those that are served and until when; of those that come from an
    /// authority the next try and what went wrong. As JSON the latter alone
    #[arg(long, conflicts_with = "cache")]
    pub(crate) certificates: bool,
    /// Only the resident programs: their workers, requests and memory
    #[arg(long, conflicts_with_all = ["cache", "certificates"])]
    pub(crate) programs: bool,
    /// Where it runs: build, machine, kernel, limits, and what programs are held to
    #[arg(long, conflicts_with_all = ["cache", "certificates", "programs"])]
    pub(crate) environment: bool,
    /// Requests by method, protocol, handler, status and cache: since the start, today, and since
    /// the counts were set to zero
    #[arg(long, conflicts_with_all = ["cache", "certificates", "programs", "environment"])]
    pub(crate) statistics: bool,
    /// Only a URL of the admin pages with which one browser can log in, once
    #[arg(
        long,
        conflicts_with_all = ["cache", "certificates", "programs", "environment", "statistics"]
    )]
    pub(crate) admin_url: bool,
    /// Set those counts to zero first
    #[arg(long, requires = "statistics")]
    pub(crate) zero: bool,
    /// Print the JSON schema of the whole state instead
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
    /// Print the reference of its fields instead, in Markdown
    #[arg(long, exclusive = true)]
    pub(crate) reference: bool,
}

/// What a screen of `hob top` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopView {
    /// Rates, times, workers, memory, alerts
    Overview,
    /// Programs and their workers
    Programs,
    /// Requests that are being answered
    Running,
    /// Routes, the slowest first
    Routes,
}

/// What to show of the running hob, and how often.
#[derive(Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopOptions {
    #[command(flatten)]
    pub(crate) control: ControlOptions,
    /// Time between two looks
    #[arg(
        long,
        short = 'd',
        value_name = "TIME",
        value_parser = parse_duration,
        default_value = "1s"
    )]
    pub(crate) delay: Duration,
    /// What to begin with
    #[arg(long, value_enum, default_value = "overview")]
    pub(crate) view: TopView,
    /// Only rows that have this text somewhere
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) filter: String,
    /// Print one screenful as text and end
    #[arg(long)]
    pub(crate) once: bool,
}

/// What to watch, and for how long.
#[derive(Args)]
#[command(after_help = WATCH_HELP)]
pub(crate) struct WatchOptions {
    #[command(flatten)]
    pub(crate) control: ControlOptions,
    /// KEY=VALUE
    #[arg(value_name = "FILTER")]
    pub(crate) filters: Vec<String>,
    /// With the heads of requests and answers
    #[arg(long)]
    pub(crate) head: bool,
    /// With the bodies of requests and answers
    #[arg(long)]
    pub(crate) body: bool,
    /// With what is secret: Authorization, cookies, query keys
    #[arg(long)]
    pub(crate) secrets: bool,
    /// Show nothing until an event has this pattern
    #[arg(long, value_name = "PATTERN")]
    pub(crate) trigger: Option<String>,
    /// Events before the one of --trigger that are shown too
    #[arg(long, value_name = "COUNT", requires = "trigger")]
    pub(crate) keep: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// End after so many events
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) count: Option<u64>,
}

/// What to do about native parts.
#[derive(Subcommand)]
pub(crate) enum NativeCommand {
    /// Build them with the system's compiler into `lib/hob`, where servers look; as root or as the
    /// owner of hob. Both languages unless one is named
    #[command(after_help = NATIVE_HELP)]
    Build(NativeBuildOptions),
}

/// What to build native parts for.
#[derive(Args)]
pub(crate) struct NativeBuildOptions {
    /// Interpreter of Python to build for, a path or a name in PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Interpreter of Perl to build for, a path or a name in PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) perl: Option<PathBuf>,
}
