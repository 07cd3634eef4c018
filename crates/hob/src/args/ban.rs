//! Arguments of `hob ban`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::ControlOptions;

const BAN_HELP: &str = "\
Examples:
  hob ban list
      who is banned, by which rule, what it was refused last, since when and until when
  hob ban add 192.0.2.7 --time 1d
      requests from there get a 403
  hob ban add 2001:db8::/48 --close
      new connections from this network are closed as they come
  hob ban lift 192.0.2.7
      the client is served again; bans of networks around it end, too
  hob ban lift --all

Bans go on over a reload; over an upgrade and a restart, too, where the config names a `state`.

Exit codes:
  0  done
  1  the address is none, or the client was not banned
  2  the arguments or the config are wrong
  3  no hob runs that was meant, or it does not answer";

/// What is done to bans.
#[derive(Subcommand)]
pub(crate) enum BanCommand {
    /// Show who is banned, who is free first in front
    #[command(after_help = BAN_HELP)]
    List(ControlOptions),
    /// Ban a client, also without a rule in the config
    #[command(after_help = BAN_HELP)]
    Add(BanAddOptions),
    /// End the ban of a client, or all bans
    #[command(after_help = BAN_HELP)]
    Lift(BanLiftOptions),
}

/// Who is banned.
#[derive(Args)]
pub(crate) struct BanAddOptions {
    /// Address of the client, or a network such as 192.0.2.0/24 or 2001:db8::/48
    #[arg(value_name = "ADDRESS")]
    pub(crate) client: String,
    /// For how long
    #[arg(long, value_name = "TIME", default_value = "1h",
          value_parser = hob_server::config::parse_duration)]
    pub(crate) time: Duration,
    /// Close its new connections as they come, before TLS
    #[arg(long)]
    pub(crate) close: bool,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

/// Whose ban ends.
#[derive(Args)]
pub(crate) struct BanLiftOptions {
    /// Address of the client, or a network
    #[arg(
        value_name = "ADDRESS",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) client: Option<String>,
    /// End all bans
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}
