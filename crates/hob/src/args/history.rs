//! The flags of `hob history`.

use clap::Args;

use super::ControlOptions;

const HISTORY_HELP: &str = "\
Examples:
  hob history
      the last 20 requests, the newest first
  hob history status=5xx since=1h
      those that failed within the last hour
  hob history 'path=/cgi-bin/*' slower=100ms --slowest
      the slowest of a folder of scripts
  hob history client=192.0.2.7 --limit 200 --json
      a client's last 200, as JSON
  hob history 3.17.0
      the whole life of one request, by its id
  hob history --follow status=5xx
      those that fail from now on, as they finish, until Ctrl-C
  hob history --follow --json slower=1s | jq -r .target
      slow ones as they finish, an object a line

Filters: KEY=VALUE, all of which must hold
  client=ADDRESS   site=NAME      route=PATTERN   path=PATTERN (with *)
  method=NAME      status=404     status=4xx      handler=cgi    fault=script
  slower=100ms     since=1h       since=2026-01-31T12:00:00Z     until=...
  q=TEXT           a word that stands somewhere in what is known of the request

Exit codes:
  0  shown, even if nothing was found; with --follow, ended by Ctrl-C
  1  the running hob refused, or has no request of this id
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer any more";

/// Which finished requests to show.
#[derive(Args)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct HistoryOptions {
    #[command(flatten)]
    pub(crate) control: ControlOptions,
    /// KEY=VALUE, a word to look for, or the id of one request
    #[arg(value_name = "FILTER|ID")]
    pub(crate) filters: Vec<String>,
    /// Requests to show at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: usize,
    /// The slowest first, instead of the newest
    #[arg(long)]
    pub(crate) slowest: bool,
    /// Go on with requests as they finish, until Ctrl-C; with --json an object a line
    #[arg(long, short = 'f', conflicts_with_all = ["slowest", "limit"])]
    pub(crate) follow: bool,
}
