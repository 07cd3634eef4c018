//! The papers that come with every `Start` and `Reload`: the sources of the config, and what only
//! the keeper knows. They travel as sealed memory, because sources have no small limit.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::memory;
use super::privileges::Identity;
use super::wire::{Malformed, Reader, Writer};

/// Version of the layout; keeper and server are one program, so another one is a mistake.
const VERSION: u8 = 2;
const LIST_LEN_MAX: usize = 4096;
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The papers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Papers {
    /// `Sources`, encoded.
    pub(crate) sources: Vec<u8>,
    /// Who the server becomes; `None` when the keeper is not root.
    pub(crate) identity: Option<Identity>,
    /// Nice level, set before privileges go.
    pub(crate) nice: i32,
    /// CPUs, set before privileges go; empty is all.
    pub(crate) cpus: Vec<usize>,
    /// What `hob status` tells about the keeper.
    pub(crate) facts: Facts,
}

/// What the keeper knows and the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
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
}

impl Papers {
    /// Writes the papers to sealed memory.
    pub(crate) fn to_memory(&self) -> io::Result<OwnedFd> {
        memory::sealed("hob-papers", &self.encode())
    }

    /// Reads papers from memory.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<Papers> {
        Papers::decode(&memory::read(memory)?).map_err(io::Error::other)
    }

    fn encode(&self) -> Vec<u8> {
        let facts = &self.facts;
        let mut writer = Writer::default();
        writer.u8(VERSION).block(&self.sources);
        match &self.identity {
            None => writer.u8(0),
            Some(identity) => identity.encode(writer.u8(1)),
        };
        // The sign travels in the bits.
        writer.u32(self.nice as u32).count(self.cpus.len());
        for cpu in &self.cpus {
            writer.count(*cpu);
        }
        writer.u32(facts.keeper_pid).u32(facts.keeper_uid);
        let started = facts.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        writer.u64(u64::try_from(started.as_millis()).unwrap_or(u64::MAX));
        writer.u64(facts.servers_started);
        for list in [&facts.addresses, &facts.warnings] {
            writer.count(list.len());
            for text in list {
                writer.text(text);
            }
        }
        writer.text(facts.admin_token.as_deref().unwrap_or_default());
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Papers, Malformed> {
        let mut reader = Reader::new(bytes, "papers");
        if reader.u8()? != VERSION {
            return Err(Malformed("version of the papers"));
        }
        let sources = reader.block(memory::MEMORY_BYTES_MAX as usize)?.to_vec();
        let identity = match reader.flag()? {
            true => Some(Identity::decode(&mut reader)?),
            false => None,
        };
        let nice = reader.u32()? as i32;
        let cpu_count = reader.count(LIST_LEN_MAX)?;
        let cpus = (0..cpu_count)
            .map(|_| Ok(reader.u32()? as usize))
            .collect::<Result<_, _>>()?;
        let facts = Facts {
            keeper_pid: reader.u32()?,
            keeper_uid: reader.u32()?,
            started: time(reader.u64()?).ok_or(reader.malformed())?,
            servers_started: reader.u64()?,
            addresses: texts(&mut reader)?,
            warnings: texts(&mut reader)?,
            admin_token: Some(reader.text(TEXT_BYTES_MAX)?).filter(|token| !token.is_empty()),
        };
        reader.end()?;
        Ok(Papers {
            sources,
            identity,
            nice,
            cpus,
            facts,
        })
    }
}

fn time(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

fn texts(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let count = reader.count(LIST_LEN_MAX)?;
    (0..count).map(|_| reader.text(TEXT_BYTES_MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn papers() -> Papers {
        Papers {
            sources: b"[[listen]]".to_vec(),
            identity: Some(Identity {
                name: "www-data".to_owned(),
                uid: 33,
                gid: 33,
                groups: vec![33, 100],
            }),
            nice: -5,
            cpus: vec![0, 3],
            facts: Facts {
                keeper_pid: 12,
                keeper_uid: 0,
                started: time(1_700_000_000_123).unwrap(),
                servers_started: 2,
                addresses: vec!["127.0.0.1:80".to_owned()],
                warnings: vec![],
                admin_token: Some("ab12".to_owned()),
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
        let bytes = papers().encode();
        for end in 0..bytes.len() {
            Papers::decode(&bytes[..end]).unwrap_err();
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = Papers::decode(&changed);
            }
        }
    }
}
