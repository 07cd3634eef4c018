//! What the server and each program are held to: accounts, limits, and the sandbox as it was
//! applied.

use std::collections::BTreeMap;

use hob_machine::cgroup::membership;
use hob_machine::read;
use hob_machine::text::line_of;
use rustix::process::{Resource, Rlimit, getrlimit};

use crate::api::{ConfinedProgram, GroupLimits, LimitPair, ProcessFacts};
use hob_config::Handlers as _;
use hob_keeper::process::landlock_version;
use hob_server::config::{Cgroup, Config, Namespace, ProgramConfig, Sandbox};
use hob_server::handle::resident::status::pids;
use hob_server::serve::fleet::Fleet;

/// Limits of the server process, by the names the config has for those of programs.
const LIMITS: &[(&str, Resource)] = &[
    ("open_files", Resource::Nofile),
    ("processes", Resource::Nproc),
    ("address_space_bytes", Resource::As),
    ("data_bytes", Resource::Data),
    ("stack_bytes", Resource::Stack),
    ("core_bytes", Resource::Core),
    ("file_size_bytes", Resource::Fsize),
    ("locked_memory_bytes", Resource::Memlock),
    ("cpu_s", Resource::Cpu),
];

/// Limits of this process.
pub(super) fn limits() -> BTreeMap<String, LimitPair> {
    let told = LIMITS.iter().map(|(name, resource)| {
        let Rlimit { current, maximum } = getrlimit(*resource);
        let pair = LimitPair {
            soft: current,
            hard: maximum,
        };
        ((*name).to_owned(), pair)
    });
    told.collect()
}

/// What the kernel says of a process: who it is, and what it may not do any more.
pub(super) fn process(pid: u32) -> ProcessFacts {
    let status = read(format!("/proc/{pid}/status"));
    let word = |name: &str| line_of(&status, name);
    let number = |name: &str| {
        word(name)?
            .split_ascii_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    };
    let seccomp = match number("Seccomp") {
        Some(0) => Some("off"),
        Some(1) => Some("strict"),
        Some(2) => Some("filter"),
        _ => None,
    };
    let groups = read(format!("/proc/{pid}/cgroup"));
    ProcessFacts {
        pid,
        user_id: number("Uid"),
        group_id: number("Gid"),
        no_new_privileges: number("NoNewPrivs").map(|flag| flag == 1),
        seccomp: seccomp.map(str::to_owned),
        capabilities: word("CapEff").map(str::to_owned),
        cgroup: membership(&groups, "").map(str::to_owned),
    }
}

/// What programs are held to: by the config, and as the kernel says of those that run.
pub(super) fn programs(config: &Config, fleet: &Fleet) -> Vec<ConfinedProgram> {
    let running = pids(fleet);
    let landlock = landlock_version().ok();
    let mut all = Vec::new();
    for site in &config.sites {
        for route in &site.routes {
            let index = route.handler.program();
            let Some(program) = index.and_then(|index| config.programs.get(index)) else {
                continue;
            };
            // A pool is called by its route, and what runs.
            let named = |(name, _): &&(String, Vec<u32>)| {
                let rest = name.strip_prefix(&route.path);
                rest.is_some_and(|rest| rest.starts_with(' '))
            };
            let pids = running.iter().filter(named).flat_map(|(_, pids)| pids);
            all.push(ConfinedProgram {
                site: site.name(),
                route: route.label(),
                running: pids.take(RUNNING_MAX).map(|pid| process(*pid)).collect(),
                ..wanted(program, landlock)
            });
        }
    }
    all
}

/// Processes of a program that are told of.
const RUNNING_MAX: usize = 4;

/// What the config wants of a program, wherever it is.
fn wanted(program: &ProgramConfig, landlock: Option<u32>) -> ConfinedProgram {
    let Sandbox {
        no_new_privileges,
        read,
        write,
        execute,
        namespaces,
    } = &program.sandbox;
    let restricts = !(read.is_empty() && write.is_empty() && execute.is_empty());
    let files = match (restricts, landlock) {
        (false, _) => "not restricted".to_owned(),
        (true, None) => "not restricted: this kernel has no Landlock".to_owned(),
        (true, Some(_)) => format!(
            "Landlock: reads {}, writes {}, executes {} folders",
            read.len(),
            write.len(),
            execute.len()
        ),
    };
    let namespaces = namespaces.iter().map(|one| word(*one).to_owned());
    ConfinedProgram {
        user: program.user.clone(),
        no_new_privileges: *no_new_privileges,
        files,
        namespaces: namespaces.collect(),
        cgroup: group(&program.cgroup),
        ..ConfinedProgram::default()
    }
}

fn group(group: &Cgroup) -> Option<GroupLimits> {
    group.is_wanted.then_some(GroupLimits {
        memory_bytes: group.memory,
        pids: group.pids,
        cpu_weight: group.cpu_weight,
    })
}

fn word(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Net => "net",
        Namespace::Ipc => "ipc",
        Namespace::Uts => "uts",
        Namespace::Pid => "pid",
        Namespace::Mount => "mount",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_and_limits_are_told() {
        let own = process(std::process::id());
        let user_id = rustix::process::geteuid().as_raw();
        assert_eq!(own.user_id, Some(user_id.into()));
        assert!(own.no_new_privileges.is_some(), "{own:?}");
        assert_eq!(limits().len(), LIMITS.len());
        assert_eq!(process(u32::MAX).user_id, None);
    }

    #[test]
    fn sandbox_without_landlock_is_not_told_as_one() {
        let mut program = ProgramConfig::default();
        assert_eq!(wanted(&program, Some(5)).files, "not restricted");
        program.sandbox.read.push("/srv".into());
        program.sandbox.namespaces.push(Namespace::Net);
        assert_eq!(
            wanted(&program, None).files,
            "not restricted: this kernel has no Landlock"
        );
        let told = wanted(&program, Some(5));
        assert_eq!(
            told.files,
            "Landlock: reads 1, writes 0, executes 0 folders"
        );
        assert_eq!(told.namespaces, ["net"]);
        assert!(told.cgroup.is_none());
    }
}
