//! The flags of `hob cost`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const COST_HELP: &str = "\
Examples:
  hob cost cgi-bin/hello.py
      the script as cgi, warm and resident, as far as it can be, and where the time of one
      request goes as cgi: 1,000 requests of each kind
  hob cost form.py --body form.txt --header Content-Type:text/plain
      the same, with what the script is sent
  hob cost
      the built-in echo in every language here, asked as in 1995: POST of 542 bytes
  hob cost wiki/wiki.py --route /wiki
      with `env` and `preload` of that route of hob.toml (or of --config)
  hob cost hello.sh --part growth --part burst
      does a start cost more when the server has grown, or when 200 come at once?
  hob cost https://127.0.0.1:8443/ --pid $(pidof -s nginx)
      packets, bytes, round trips and system calls of a request, for each way of connecting
  hob cost hello.py --rate 50 --html cost.html --json
      savings for 50 requests a second; the result as a page, and as JSON

Exit codes:
  0  measured
  1  the script fails, or the system refused something
  2  the arguments are wrong";

/// A part of a cost study.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum CostPart {
    /// Every way of running the script
    Ladder,
    /// Where one request to it as cgi goes
    Stages,
    /// Processes made in every way there is, with no server, as in 1995
    Bare,
    /// As cgi with a server of 10 MB, 100 MB and 1 GB
    Growth,
    /// As cgi 200 times at once, with and without a limit
    Burst,
    /// Packets, bytes, round trips and system calls; the one part for a URL
    Wire,
    /// All of these
    All,
}

/// What to take apart.
#[derive(Args)]
#[command(after_help = COST_HELP)]
pub(crate) struct CostOptions {
    /// The script, or a URL; the built-in echo when there is none
    #[arg(value_name = "SCRIPT|URL")]
    pub(crate) subject: Option<PathBuf>,
    /// Run it with the variables and modules that this route has: `env` and `preload`; without a
    /// SCRIPT, measure the one the route runs
    #[arg(long, value_name = "PATH")]
    pub(crate) route: Option<String>,
    /// Config of that route
    #[arg(
        long,
        value_name = "FILE",
        default_value = "hob.toml",
        requires = "route"
    )]
    pub(crate) config: PathBuf,
    /// What to measure; more than once for more. Usual: ladder and stages, for the echo bare too
    #[arg(long, value_name = "PART", value_enum)]
    pub(crate) part: Vec<CostPart>,
    /// Requests of each kind
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = hob_cost::limits::COUNT)]
    pub(crate) count: u64,
    /// Requests per second for which savings are told
    #[arg(long, value_name = "RATE", default_value_t = 100.0)]
    pub(crate) rate: f64,
    /// Method of every request; POST where there is a body, else GET
    #[arg(long, short = 'X', value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Query of every request, without its question mark
    #[arg(long, value_name = "QUERY")]
    pub(crate) query: Option<String>,
    /// Header field of every request; more than once for more
    #[arg(long, short = 'H', value_name = "NAME:VALUE")]
    pub(crate) header: Vec<String>,
    /// File whose contents are the body of every request, at most 64 KiB
    #[arg(long, value_name = "FILE")]
    pub(crate) body: Option<PathBuf>,
    /// Process of a URL's server, whose system calls strace counts, with those below it
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    /// Take any certificate; that of a server on this machine is not checked anyway
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Also write the result as a page of HTML
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON schema of a result instead
    #[arg(long, conflicts_with_all = ["subject", "json", "html"])]
    pub(crate) schema: bool,
    /// Print the reference of a result in JSON instead, in Markdown
    #[arg(long, conflicts_with_all = ["subject", "json", "html", "schema"])]
    pub(crate) reference: bool,
}
