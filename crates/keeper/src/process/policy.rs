//! The policy: what may be started, as whom and within which limits. The keeper makes it from the
//! config while it may read everything; the spawner takes it from sealed memory and believes
//! nothing else.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use crate::memory;
use crate::privileges::{self, UserIdentity};
use crate::wire::{wire_enum, wire_struct};
use hob_config::route::template::{CapturedName, CapturedPath};
use hob_config::{
    AccountRule, Argument, Cgroup, CommandLine, HostSource, IoClass, Namespace, ProgramConfig,
    Rlimits, Sandbox,
};

const VERSION: u8 = 5;
/// Most programs of one config.
pub(crate) const PROGRAMS_MAX: usize = u16::MAX as usize;

/// What may be started under one generation of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub generation: u64,
    /// By index of `Config::programs`.
    pub programs: Vec<Rules>,
}

/// The rules of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Who it becomes; `None` when hob was not started as root: it stays who it is; and where
    /// `account` says it.
    pub(crate) identity: Option<UserIdentity>,
    /// Each program becomes the account whose folder of `captured` it is in.
    pub(crate) account: Option<AccountRule>,
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
    /// The same, one for each account or host.
    pub(crate) captured: Option<CapturedPath>,
    /// Folders that may be worked in besides.
    pub(crate) folders: Vec<PathBuf>,
    /// Programs that may be started by themselves.
    pub(crate) files: Vec<PathBuf>,
    /// What else may be started.
    pub(crate) command_lines: Vec<CommandLine>,
    /// Variables of every process of it, each once.
    pub(crate) variables: Vec<(String, String)>,
    /// Parameters of pages that are variables of these very names.
    pub(crate) values: Vec<String>,
}

impl Policy {
    /// The policy of a config's programs, with their names looked up on this machine. `server` is
    /// who the server becomes. The second value is what the operator should know.
    ///
    /// # Errors
    /// A sentence for the operator: an unknown user, or one that may not run programs.
    pub(crate) fn of(
        all: &[ProgramConfig],
        generation: u64,
        server: Option<&UserIdentity>,
    ) -> Result<(Policy, Vec<String>), String> {
        if all.len() > PROGRAMS_MAX {
            return Err(format!("more than {PROGRAMS_MAX} programs"));
        }
        let mut programs = Vec::with_capacity(all.len());
        let mut warnings = Vec::new();
        for program in all {
            let identity = privileges::identity_of(program, server)?;
            if program.account.is_none() {
                warn_about(identity.as_ref(), server, &mut warnings);
            }
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
        memory::sealed_value("hob-policy", VERSION, self)
    }

    /// Reads a policy from memory.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<Policy> {
        memory::read_value(memory, VERSION, "policy")
    }
}

wire_struct!(Policy: generation, programs);
wire_struct!(Rules: identity, account, umask, nice, io_class, cpus, limits, sandbox, cgroup,
    roots, captured, folders, files, command_lines, variables, values);
wire_struct!(AccountRule: name, uids, gids);
wire_struct!(CapturedPath: fixed, names);
wire_struct!(CapturedName: before, capture, after);
wire_enum!(IoClass: 0 => Normal, 1 => Low, 2 => Idle);
wire_struct!(Rlimits: address_space, core, cpu, data, file_size, open_files, processes, stack);
wire_struct!(Sandbox: no_new_privileges, read, write, execute, namespaces);
wire_enum!(Namespace: 0 => Net, 1 => Ipc, 2 => Uts, 3 => Pid, 4 => Mount);
wire_struct!(Cgroup: is_wanted, memory, pids, cpu_weight);
wire_struct!(CommandLine: name, executables, arguments, file_ending, host);
wire_enum!(Argument: 0 => Text(text), 1 => Query(name));
wire_enum!(HostSource: 0 => WarmPython, 1 => WarmPerl, 2 => ResidentPython, 3 => ResidentPerl);

/// Says once, for all programs alike, when nothing separates them from the server.
fn warn_about(
    program: Option<&UserIdentity>,
    server: Option<&UserIdentity>,
    warnings: &mut Vec<String>,
) {
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
    pub(crate) fn of(program: &ProgramConfig, identity: Option<UserIdentity>) -> Rules {
        Rules {
            identity,
            account: program.account.clone(),
            umask: program.umask,
            nice: program.nice,
            io_class: program.io_class,
            cpus: program.cpus.clone(),
            limits: program.limits.clone(),
            sandbox: program.sandbox.clone(),
            cgroup: program.cgroup.clone(),
            roots: program.roots.clone(),
            captured: program.captured.clone(),
            folders: program.folders.clone(),
            files: program.files.clone(),
            command_lines: program.command_lines.clone(),
            variables: program
                .variables()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            values: program.values.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
