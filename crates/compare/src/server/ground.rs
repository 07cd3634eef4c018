//! What a server's configuration is made of, and what comes of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Extra, ServerTuning};
use crate::copies::COPIES;
use crate::link::LinkedMachine;
use crate::mounts::{FileSystem, MountOrder};
use crate::site::ComparisonSite;
use crate::supervisor::ProgramCommand;

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) clear: u16,
    pub(crate) secure: u16,
    /// Of what stands on another machine.
    pub(crate) away: u16,
}

/// Where programs stand that are asked over the network.
pub(crate) struct OtherMachine {
    pub(crate) address: Ipv4Addr,
    /// Words before a command that is to run there.
    pub(crate) enter: Vec<String>,
}

impl OtherMachine {
    /// That one, or else this machine.
    pub(crate) fn of(machine: Option<&LinkedMachine>) -> OtherMachine {
        OtherMachine {
            address: machine.map_or(Ipv4Addr::LOCALHOST, |machine| machine.address),
            enter: machine
                .map(|machine| machine.namespace().enter())
                .unwrap_or_default(),
        }
    }
}

/// The folder of a server on which a file system is mounted.
pub(crate) const STORE: &str = "store";

/// All that a configuration depends on.
pub(crate) struct Ground<'a> {
    /// The program that is started.
    pub(crate) program: &'a str,
    /// nginx, for what stands behind it; else empty.
    pub(crate) front: &'a str,
    /// A folder of the server's own.
    pub(crate) folder: PathBuf,
    pub(crate) site: &'a ComparisonSite,
    /// Where it listens.
    pub(crate) host: Ipv4Addr,
    pub(crate) ports: Ports,
    pub(crate) other: &'a OtherMachine,
    pub(crate) settings: ServerTuning,
    pub(crate) extra: Extra,
    pub(crate) is_root: bool,
}

/// Where a server is to be reached before it counts as started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Door {
    /// A port of the address where servers listen.
    Port(u16),
    /// A port of another machine.
    Away(SocketAddr),
    /// A Unix socket in its folder.
    Socket(&'static str),
}

/// What is written, and what is started.
#[derive(Default)]
pub(crate) struct Setup {
    /// Names in the server's folder, and contents. The report shows those that are configurations.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Folders that must be there.
    pub(crate) folders: Vec<&'static str>,
    pub(crate) programs: Vec<ProgramCommand>,
    /// What is mounted before they are started.
    pub(crate) mounts: Vec<MountOrder>,
    /// Where it must be reached, besides its port for clear text.
    pub(crate) doors: Vec<Door>,
}

impl Setup {
    /// What the report shows of it: its configurations, or how it is called where it has none.
    pub(crate) fn shown(&self) -> String {
        let is_shown = |name: &str| !name.ends_with("_params");
        let files: Vec<_> = self
            .files
            .iter()
            .filter(|(name, _)| is_shown(name))
            .collect();
        match &files[..] {
            [] => {
                let lines = self
                    .programs
                    .iter()
                    .map(|program| program.command.join(" "));
                lines.map(|line| line + "\n").collect()
            }
            [(_, text)] => text.clone(),
            files => {
                let parts = files.iter().map(|(name, text)| format!("# {name}\n{text}"));
                parts.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Ground<'_> {
    /// A path in the server's folder, as configurations write it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A folder with a page, as configurations write it; see [`crate::copies`].
    pub(crate) fn copies(&self, name: &str) -> String {
        self.site.root.join(COPIES).join(name).display().to_string()
    }

    /// The folder with a file on the file system that a row asks for; none where it asks for none.
    pub(crate) fn store(&self) -> Option<String> {
        Some(match self.extra.file_system()? {
            FileSystem::Own => self.site.stored.display().to_string(),
            _ => self.path(STORE),
        })
    }

    /// What must be mounted for that.
    pub(crate) fn mounts(&self) -> Vec<MountOrder> {
        let kind = self.extra.file_system();
        let mounted = kind.filter(|kind| *kind != FileSystem::Own);
        let order = mounted.map(|kind| MountOrder {
            kind,
            source: self.site.stored.clone(),
            at: self.folder.join(STORE),
        });
        order.into_iter().collect()
    }

    pub(crate) fn is_tuned(&self) -> bool {
        self.settings == ServerTuning::Tuned
    }

    /// The text, where there is a certificate for TLS.
    pub(crate) fn where_secure(&self, text: impl FnOnce(&str, &str) -> String) -> String {
        match &self.site.certificate {
            Some(pair) => text(&pair.certificate, &pair.key),
            None => String::new(),
        }
    }

    /// The port for TLS, where there is a certificate.
    pub(crate) fn secure_door(&self) -> Option<Door> {
        let certificate = self.site.certificate.as_ref();
        certificate.map(|_| Door::Port(self.ports.secure))
    }

    /// Where programs on the other machine are asked.
    pub(crate) fn away(&self) -> SocketAddr {
        (self.other.address, self.ports.away).into()
    }

    /// A program of the other machine.
    pub(crate) fn there(&self, program: ProgramCommand) -> ProgramCommand {
        let enter = self.other.enter.iter().cloned();
        ProgramCommand {
            command: enter.chain(program.command).collect(),
            ..program
        }
    }

    /// One program, started with these arguments.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> ProgramCommand {
        let command = std::iter::once(self.program).chain(arguments.iter().copied());
        ProgramCommand {
            name: name.to_owned(),
            command: command.map(str::to_owned).collect(),
            environment: Vec::new(),
        }
    }
}
