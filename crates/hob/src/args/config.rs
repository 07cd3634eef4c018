//! Arguments of `hob config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ControlOptions;

const CONFIG_HELP: &str = "\
Examples:
  hob config apply new.toml --dry-run
      what would change in ./hob.toml, and what would be wrong with it
  sudo hob config apply --config /etc/hob/hob.toml new.toml
      it is written and in force, or all is as before
  sudo hob config apply --config /etc/hob/hob.toml --file /etc/hob/sites/shop.toml -
      a file that the config includes; its new text comes from standard input
  sudo hob config rollback --config /etc/hob/hob.toml
      the text from before the last apply is in force again; once more takes that back

The text from before stands beside the file, in FILE.before. Where root has started hob, only root
can change its config: the admin page shows what would change, and the command to type.

Exit codes:
  0  done
  1  the server refused it, or the file is not the one that was looked at
  2  the arguments or the new text are wrong
  3  no hob runs that was meant, or it does not answer";

/// What becomes of a config.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Put another text in the place of a file of the config, and have it come into force
    #[command(after_help = CONFIG_HELP)]
    Apply(ConfigApplyOptions),
    /// Put the text back from before the last apply, and have it come into force
    #[command(after_help = CONFIG_HELP)]
    Rollback(ConfigChangeOptions),
}

/// The new text.
#[derive(Args)]
pub(crate) struct ConfigApplyOptions {
    /// File with the new text; `-` is standard input
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// What the admin page calls the text that was changed (its `hash`): no other is replaced
    #[arg(long, value_name = "HASH")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) change: ConfigChangeOptions,
}

/// Which file.
#[derive(Args)]
pub(crate) struct ConfigChangeOptions {
    /// The file that gets the text, where it is one that the config includes
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}
