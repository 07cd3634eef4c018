//! The flags of commands that make what people sign in with.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

pub(super) const PASSWORD_HELP: &str = "\
Examples:
  hob password
      prints the hash of a password, for `[[admin.user]]`
  hob password /etc/hob/staff.htpasswd ann
      sets the password of an account, for `[[auth]]`
  hob password /etc/hob/staff.htpasswd ann --delete

The password is asked for twice; without a terminal it is a line of standard input.";

pub(super) const SIGN_HELP: &str = "\
Examples:
  openssl rand -hex 32 > links.keys
  hob sign --key links.keys --for 2d https://example.org/files/report.pdf
      prints the link with `expires` and `signature` behind it";

/// `hob password`
#[derive(Args)]
pub(crate) struct PasswordOptions {
    /// File of accounts, as `htpasswd` of `[[auth]]` names it; made where there is none
    #[arg(requires = "name")]
    pub(crate) file: Option<PathBuf>,
    /// Account whose password is set
    pub(crate) name: Option<String>,
    /// Take the account out of the file
    #[arg(long, requires = "name")]
    pub(crate) delete: bool,
}

/// `hob sign`
#[derive(Args)]
pub(crate) struct SignOptions {
    /// File with keys, as `signed_urls` of `[[auth]]` names it; the first signs
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// How long the link is good: `90s`, `1h`, `2d`
    #[arg(long = "for", value_name = "TIME", default_value = "1h",
          value_parser = hob_server::config::parse_duration)]
    pub(crate) time: Duration,
    /// URL, or a path with its query, as it is to be sent
    pub(crate) url: String,
}
