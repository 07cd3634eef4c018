//! The policy: what may be started, as whom and within which limits. The keeper makes it from the
//! config while it may read everything; the spawner takes it from sealed memory and believes
//! nothing else.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Cgroup, Config, IoClass, Namespace, Program, Rlimits, Sandbox};
use crate::life::memory;
use crate::life::privileges::{self, Identity};
use crate::life::wire::{Malformed, Reader, Writer};

const VERSION: u8 = 1;
/// Most programs of one config.
pub(crate) const PROGRAMS_MAX: usize = u16::MAX as usize;
const LIST_LEN_MAX: usize = 4096;

/// What may be started under one generation of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) generation: u64,
    /// By index of `Config::programs`.
    pub(crate) programs: Vec<Rules>,
}

/// The rules of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Who it becomes; `None` when hob was not started as root: it stays who it is.
    pub(crate) identity: Option<Identity>,
    pub(crate) umask: Option<u32>,
    pub(crate) nice: i32,
    pub(crate) io_class: IoClass,
    /// CPUs it may run on; empty is all.
    pub(crate) cpus: Vec<usize>,
    pub(crate) limits: Rlimits,
    pub(crate) sandbox: Sandbox,
    pub(crate) cgroup: Cgroup,
    /// Folders below which any program may be started.
    pub(crate) roots: Vec<PathBuf>,
    /// Folders that may be worked in besides.
    pub(crate) folders: Vec<PathBuf>,
    /// Programs that may be started.
    pub(crate) executables: Vec<PathBuf>,
}

impl Policy {
    /// The policy of a config, with its names looked up on this machine. `server` is who the
    /// server becomes. The second value is what the operator should know.
    ///
    /// # Errors
    /// A sentence for the operator: an unknown user, or one that may not run programs.
    pub(crate) fn of(
        config: &Config,
        generation: u64,
        server: Option<&Identity>,
    ) -> Result<(Policy, Vec<String>), String> {
        if config.programs.len() > PROGRAMS_MAX {
            return Err(format!("more than {PROGRAMS_MAX} programs"));
        }
        let mut programs = Vec::with_capacity(config.programs.len());
        let mut warnings = Vec::new();
        for program in &config.programs {
            let (user, group) = (program.user.as_deref(), program.group.as_deref());
            let identity = privileges::program_identity(user, group, server)?;
            warn_about(identity.as_ref(), server, &mut warnings);
            programs.push(Rules::of(program, identity));
        }
        let policy = Policy {
            generation,
            programs,
        };
        Ok((policy, warnings))
    }

    /// Writes the policy to sealed memory.
    pub(crate) fn to_memory(&self) -> io::Result<OwnedFd> {
        memory::sealed("hob-policy", &self.encode())
    }

    /// Reads a policy from memory.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<Policy> {
        Policy::decode(&memory::read(memory)?).map_err(io::Error::other)
    }

    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION).u64(self.generation);
        writer.count(self.programs.len());
        for rules in &self.programs {
            rules.encode(&mut writer);
        }
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Policy, Malformed> {
        let mut reader = Reader::new(bytes, "policy");
        if reader.u8()? != VERSION {
            return Err(Malformed("version of the policy"));
        }
        let generation = reader.u64()?;
        let count = reader.count(PROGRAMS_MAX)?;
        let programs = (0..count)
            .map(|_| Rules::decode(&mut reader))
            .collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Policy {
            generation,
            programs,
        })
    }
}

/// Says once, for all programs alike, when nothing separates them from the server.
fn warn_about(program: Option<&Identity>, server: Option<&Identity>, warnings: &mut Vec<String>) {
    let text = match (program, server) {
        (None, _) => "hob was not started as root: programs run as its own user, so nothing \
                      separates them from the server"
            .to_owned(),
        (Some(program), Some(server)) if program.uid == server.uid => format!(
            "programs run as `{}`, as the server does, so nothing separates them from it; give \
             them another `user`",
            program.name
        ),
        _ => return,
    };
    if !warnings.contains(&text) {
        warnings.push(text);
    }
}

impl Rules {
    pub(crate) fn of(program: &Program, identity: Option<Identity>) -> Rules {
        Rules {
            identity,
            umask: program.umask,
            nice: program.nice,
            io_class: program.io_class,
            cpus: program.cpus.clone(),
            limits: program.limits.clone(),
            sandbox: program.sandbox.clone(),
            cgroup: program.cgroup.clone(),
            roots: program.roots.clone(),
            folders: program.folders.clone(),
            executables: program.executables.clone(),
        }
    }

    fn encode(&self, writer: &mut Writer) {
        match &self.identity {
            None => writer.u8(0),
            Some(identity) => identity.encode(writer.u8(1)),
        };
        option(writer, self.umask.map(u64::from));
        // The sign travels in the bits.
        writer.u32(self.nice as u32).u8(self.io_class as u8);
        writer.count(self.cpus.len());
        for cpu in &self.cpus {
            writer.count(*cpu);
        }
        let limits = &self.limits;
        for limit in [
            limits.address_space,
            Some(limits.core),
            limits.cpu.map(|time| time.as_secs()),
            limits.data,
            limits.file_size,
            limits.open_files,
            limits.processes,
            limits.stack,
        ] {
            option(writer, limit);
        }
        let sandbox = &self.sandbox;
        writer.u8(sandbox.no_new_privileges.into());
        for list in [&sandbox.read, &sandbox.write, &sandbox.execute] {
            paths(writer, list);
        }
        writer.count(sandbox.namespaces.len());
        for namespace in &sandbox.namespaces {
            writer.u8(*namespace as u8);
        }
        writer.u8(self.cgroup.is_wanted.into());
        let Cgroup {
            memory,
            pids,
            cpu_weight,
            ..
        } = self.cgroup;
        for limit in [memory, pids, cpu_weight] {
            option(writer, limit);
        }
        paths(writer, &self.roots);
        paths(writer, &self.folders);
        paths(writer, &self.executables);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Rules, Malformed> {
        let identity = match reader.flag()? {
            true => Some(Identity::decode(reader)?),
            false => None,
        };
        let umask = match read_option(reader)? {
            None => None,
            Some(mask) => Some(u32::try_from(mask).map_err(|_| reader.malformed())?),
        };
        let nice = reader.u32()? as i32;
        let io_class = match reader.u8()? {
            0 => IoClass::Normal,
            1 => IoClass::Low,
            2 => IoClass::Idle,
            _ => return Err(reader.malformed()),
        };
        let count = reader.count(LIST_LEN_MAX)?;
        let cpus = (0..count)
            .map(|_| Ok(reader.u32()? as usize))
            .collect::<Result<_, _>>()?;
        Ok(Rules {
            identity,
            umask,
            nice,
            io_class,
            cpus,
            limits: Rlimits {
                address_space: read_option(reader)?,
                core: read_option(reader)?.unwrap_or_default(),
                cpu: read_option(reader)?.map(Duration::from_secs),
                data: read_option(reader)?,
                file_size: read_option(reader)?,
                open_files: read_option(reader)?,
                processes: read_option(reader)?,
                stack: read_option(reader)?,
            },
            sandbox: Sandbox {
                no_new_privileges: reader.flag()?,
                read: read_paths(reader)?,
                write: read_paths(reader)?,
                execute: read_paths(reader)?,
                namespaces: read_namespaces(reader)?,
            },
            cgroup: Cgroup {
                is_wanted: reader.flag()?,
                memory: read_option(reader)?,
                pids: read_option(reader)?,
                cpu_weight: read_option(reader)?,
            },
            roots: read_paths(reader)?,
            folders: read_paths(reader)?,
            executables: read_paths(reader)?,
        })
    }
}

fn option(writer: &mut Writer, value: Option<u64>) {
    match value {
        None => writer.u8(0),
        Some(value) => writer.u8(1).u64(value),
    };
}

fn read_option(reader: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    match reader.flag()? {
        true => Ok(Some(reader.u64()?)),
        false => Ok(None),
    }
}

fn paths(writer: &mut Writer, list: &[PathBuf]) {
    writer.count(list.len());
    for path in list {
        writer.path(path);
    }
}

fn read_paths(reader: &mut Reader<'_>) -> Result<Vec<PathBuf>, Malformed> {
    let count = reader.count(LIST_LEN_MAX)?;
    (0..count).map(|_| reader.path()).collect()
}

fn read_namespaces(reader: &mut Reader<'_>) -> Result<Vec<Namespace>, Malformed> {
    let count = reader.count(LIST_LEN_MAX)?;
    (0..count)
        .map(|_| match reader.u8()? {
            0 => Ok(Namespace::Net),
            1 => Ok(Namespace::Ipc),
            2 => Ok(Namespace::Uts),
            3 => Ok(Namespace::Pid),
            4 => Ok(Namespace::Mount),
            _ => Err(reader.malformed()),
        })
        .collect()
}

#[cfg(test)]
mod tests;
