//! The flags of commands that look at a config.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

/// What to check.
#[derive(Args)]
pub(crate) struct CheckOptions {
    /// Config file
    #[arg(long, value_name = "FILE", default_value = "hob.toml")]
    pub(crate) config: PathBuf,
    /// Start no program that stays to see whether it does
    #[arg(long, conflicts_with = "explain")]
    pub(crate) no_start: bool,
    /// Look at no certificate, account, address or limit either: the config is for another machine
    #[arg(long, conflicts_with = "explain")]
    pub(crate) no_machine: bool,
    /// Say what a key means instead, such as `listen.backlog` or only `backlog`, or what is written
    /// here for a word of another server, such as `proxy_pass`; of 502, 503 and 504 what makes hob
    /// answer so, and the ways out
    #[arg(long, value_name = "KEY", conflicts_with = "config")]
    pub(crate) explain: Option<String>,
    /// Result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the reference of every key instead, in Markdown
    #[arg(long, conflicts_with_all = ["config", "json", "explain"])]
    pub(crate) reference: bool,
    /// Print the JSON schema of a config instead
    #[arg(long, conflicts_with_all = ["config", "json", "explain", "reference"])]
    pub(crate) schema: bool,
    /// Print what programs are told of a request instead, in Markdown
    #[arg(long, conflicts_with_all = ["config", "json", "explain", "reference", "schema"])]
    pub(crate) variables: bool,
    /// Print what `/metrics` tells instead, in Markdown
    #[arg(long, exclusive = true)]
    pub(crate) metrics: bool,
    /// Print what the admin API can be asked instead, in Markdown
    #[arg(long, exclusive = true)]
    pub(crate) endpoints: bool,
    /// Print the JSON schema of what it answers instead
    #[arg(long, exclusive = true)]
    pub(crate) answers: bool,
    /// Print words of other servers' configs and what is written here instead, in Markdown
    #[arg(long, exclusive = true)]
    pub(crate) words: bool,
}

/// What to explain.
#[derive(Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct ExplainOptions {
    /// Method: GET, HEAD, ...
    #[arg(default_value = "GET")]
    pub(crate) method: String,
    /// URL, or a path alone
    pub(crate) url: String,
    /// Config file; what `serve` would serve when it is not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Header field the request would have; more than once for more
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) header: Vec<String>,
    /// Address the client would have, for `access` of routes
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: Option<IpAddr>,
    /// Account that has signed in, for `require` of routes
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Group that account is taken to be in, whatever a file says; more than once for more
    #[arg(long, value_name = "NAME", requires = "user")]
    pub(crate) group: Vec<String>,
    /// Explanation as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
