//! The flags of `hob compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hob_compare::{ControlPort, LinkSettings, TargetAddress};
use hob_load::parse_duration;

const COMPARE_HELP: &str = "\
Examples:
  hob compare --quick
      hob and every server that is found in PATH or /usr/sbin, with configurations of their
      own in a temporary folder: CPU time per request of each, and its ratio to hob's
  hob compare --full --json result.json --html result.html
      every row, with each round of it as JSON, and a page with charts
  hob compare --only file.h1.clear --servers nginx
      files in clear text, with nginx alone
  hob compare --quick --rival /usr/bin/hob
      this build beside the one that is installed
  hob compare --releases releases.md --rival hob-0.1.0
      this release beside the one before, as a row of a table that grows
  hob compare --servers granian --rival venv/bin/granian --only script.wsgi
      a WSGI application in hob and in the Granian of that folder
  hob compare --sweep --quick
      whether the sizes of what carries answers suit this machine
  hob compare --link 1Gbit,0.2ms --only large.h1.clear
      large files to a client that a network of such bandwidth lies before
  hob compare --serve 0.0.0.0:7070
      on one machine: start servers for a client on another one, which is then told to do
  HOB_COMPARE_TOKEN=... hob compare --target server.example:7070 --quick
      on the other one: the same comparison over the network between both
  hob compare --list
      the rows with their ids

Exit codes:
  0  the comparison was made; interrupted ones are reported too, servers that do not start
     are named
  1  hob itself does not start, the system refused something, or the machine of --target is
     not heard any more
  2  the arguments are wrong";

/// What to compare, and how long it may take.
#[derive(Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareOptions {
    /// The rows that say most, in a minute or two for each two servers
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// All rows, in about half an hour; about ten minutes without either
    #[arg(long)]
    pub(crate) full: bool,
    /// Only rows whose id has these words beside each other, whole ones between dots; more than
    /// once for more
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Only these servers and hob: nginx, apache, lighttpd, h2o, caddy, php-fpm, uwsgi, granian,
    /// gunicorn, uvicorn
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// Another build of hob, to be compared with this one, or the program of a server above, to be
    /// taken instead of the one that is installed; more than once for more
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rival: Vec<PathBuf>,
    /// Write what this program takes in times of each other build named by --rival, by class of
    /// work, into a table in Markdown: a row for each release, of which one of the same version is
    /// replaced. Builds of hob alone are compared then
    #[arg(long, value_name = "FILE", requires = "rival", conflicts_with_all = ["servers", "sweep", "list"])]
    pub(crate) releases: Option<PathBuf>,
    /// Servers tuned for speed, instead of as they come
    #[arg(long)]
    pub(crate) tuned: bool,
    /// hob alone, with other sizes of what carries a program's answer: whether its defaults are
    /// within 5 % of the best on this machine
    #[arg(long, conflicts_with_all = ["servers", "rival", "tuned"])]
    pub(crate) sweep: bool,
    /// Servers and client in two network namespaces, joined by a link that carries so many bits a
    /// second each way (Gbit, Mbit, Kbit, bit) and over which a round trip takes so much longer:
    /// 1Gbit,0.2ms. Only root can
    #[arg(long, value_name = "RATE,DELAY", value_parser = LinkSettings::parse)]
    pub(crate) link: Option<LinkSettings>,
    /// Be the servers' machine of a comparison over a network: listen there, print what the client
    /// must know, and start servers for one client after the other. They listen on the address
    /// by which it comes
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = [
        "target", "link", "quick", "full", "only", "servers", "tuned", "sweep", "round", "rounds",
        "json", "html", "list", "schema", "reference", "releases",
    ])]
    pub(crate) serve: Option<ControlPort>,
    /// Compare servers of the machine on which `--serve` runs, with the client on this one
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["link", "rival", "list"])]
    pub(crate) target: Option<TargetAddress>,
    /// What `--serve` printed there; the environment variable HOB_COMPARE_TOKEN is for the same
    #[arg(long, value_name = "TOKEN", requires = "target")]
    pub(crate) token: Option<String>,
    /// Length of one round, instead of what the time for all of them gives
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) round: Option<Duration>,
    /// Rounds of each cell at most
    #[arg(long, value_name = "COUNT")]
    pub(crate) rounds: Option<usize>,
    /// Write the result as JSON, with every round
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the result as a page of HTML with charts
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print the rows there are, and the servers that were found, instead
    #[arg(long)]
    pub(crate) list: bool,
    /// Print the JSON schema of a result instead
    #[arg(long, conflicts_with_all = ["list", "json", "html"])]
    pub(crate) schema: bool,
    /// Print the reference of a result in JSON instead, in Markdown
    #[arg(long, conflicts_with_all = ["list", "json", "html", "schema"])]
    pub(crate) reference: bool,
}
