//! What a comparison is to be, as it was asked for.

use std::path::PathBuf;
use std::time::Duration;

use crate::address::TargetAddress;
use crate::link::LinkSettings;
use crate::rows::Scope;
use crate::server::ServerTuning;

/// What is compared, and how long it may take.
#[derive(Debug, Clone)]
pub struct ComparisonPlan {
    /// Which rows.
    pub scope: Scope,
    /// Rows whose id has the words of one of these beside each other, in whatever scope; all of the
    /// scope for none.
    pub only: Vec<String>,
    /// Servers with one of these names; all for none. hob is always there.
    pub servers: Vec<String>,
    /// Other builds of hob, and servers that are taken instead of those in `folders`.
    pub rivals: Vec<PathBuf>,
    /// Out of the box or tuned.
    pub settings: ServerTuning,
    /// hob itself.
    pub program: PathBuf,
    /// Where programs are looked for, in this order.
    pub folders: Vec<PathBuf>,
    /// Where the temporary folder is made.
    pub temporary: PathBuf,
    /// Length of a round instead of what the scope's time gives.
    pub round: Option<Duration>,
    /// Rounds of a cell at most.
    pub rounds: Option<usize>,
    /// Other sizes of what carries answers, instead of other servers.
    pub is_sweep: bool,
    /// Builds of hob alone, of which there must be two, in rows that all of them have.
    pub is_of_releases: bool,
    /// What client and servers are joined by; the loopback for none.
    pub link: Option<LinkSettings>,
    /// The machine of the servers, where that is another one.
    pub target: Option<TargetAddress>,
}
