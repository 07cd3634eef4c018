//! The papers that come with every `Start` and `Reload`: the sources of the config, and what only
//! the keeper knows. They travel as sealed memory, because sources have no small limit.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::SystemTime;

use super::memory;
use super::privileges::UserIdentity;
use super::wire::wire_struct;

/// Version of the layout; keeper and server are one program, so another one is a mistake.
const VERSION: u8 = 4;

/// The papers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Papers {
    /// `Sources`, encoded.
    pub(crate) sources: Vec<u8>,
    /// Who the server becomes; `None` when the keeper is not root.
    pub(crate) identity: Option<UserIdentity>,
    /// Nice level, set before privileges go.
    pub(crate) nice: i32,
    /// CPUs, set before privileges go; empty is all.
    pub(crate) cpus: Vec<usize>,
    /// What `hob status` tells about the keeper.
    pub(crate) facts: KeeperFacts,
}

/// What the keeper knows and the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperFacts {
    /// Process id of the keeper.
    pub keeper_pid: u32,
    /// User the keeper runs as: besides root, the one who may use the control socket.
    pub keeper_uid: u32,
    /// When the keeper first started; upgrades do not change it.
    pub started: SystemTime,
    /// Servers the keeper has started, this one included.
    pub servers_started: u64,
    /// Real addresses, by index of `Config::listeners`.
    pub addresses: Vec<String>,
    /// What the operator should know: values the kernel clamped, a control socket that is taken.
    pub warnings: Vec<String>,
    /// The first server's token for one login to the admin pages; others have none.
    pub admin_token: Option<String>,
    /// The config that is served, without symbolic links; none where a folder is.
    pub config: Option<PathBuf>,
}

impl Papers {
    /// Writes the papers to sealed memory.
    pub(crate) fn to_memory(&self) -> io::Result<OwnedFd> {
        memory::sealed_value("hob-papers", VERSION, self)
    }

    /// Reads papers from memory.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<Papers> {
        memory::read_value(memory, VERSION, "papers")
    }
}

wire_struct!(Papers: sources, identity, nice, cpus, facts);
wire_struct!(KeeperFacts: keeper_pid, keeper_uid, started, servers_started, addresses, warnings,
    admin_token, config);

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::wire::WireValue;

    fn papers() -> Papers {
        Papers {
            sources: b"[[listen]]".to_vec(),
            identity: Some(UserIdentity {
                name: "www-data".to_owned(),
                uid: 33,
                gid: 33,
                groups: vec![33, 100],
            }),
            nice: -5,
            cpus: vec![0, 3],
            facts: KeeperFacts {
                keeper_pid: 12,
                keeper_uid: 0,
                started: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
                servers_started: 2,
                addresses: vec!["127.0.0.1:80".to_owned()],
                warnings: vec![],
                admin_token: Some("ab12".to_owned()),
                config: Some("/etc/hob/hob.toml".into()),
            },
        }
    }

    #[test]
    fn papers_arrive_as_written() {
        use std::os::fd::AsFd;
        let memory = papers().to_memory().unwrap();
        assert_eq!(Papers::from_memory(memory.as_fd()).unwrap(), papers());
    }

    #[test]
    fn cut_or_changed_papers_never_panic() {
        let bytes = papers().encode_whole(VERSION);
        for end in 0..bytes.len() {
            Papers::decode_whole(&bytes[..end], VERSION, "papers").unwrap_err();
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = Papers::decode_whole(&changed, VERSION, "papers");
            }
        }
    }
}
