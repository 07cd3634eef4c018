//! `GET /v1/environment`: all of it as one object.

use std::collections::BTreeMap;
use std::path::Path;

use hob_machine::mounts::kinds;
use hob_machine::process::descriptors;
use hob_machine::read;
use rustix::system::uname;

use super::{confined, machine};
use crate::api::{BuildFacts, Environment, KernelFacts, RootFileSystem, ServerFacts};
use hob_keeper::process::landlock_version;
use hob_server::config::Config;
use hob_server::serve::ServerState;
use hob_server::serve::sites::Sites;

/// Checks for developers are in it.
const HAS_ASSERTIONS: bool = cfg!(debug_assertions);

/// How this program was built.
fn build() -> BuildFacts {
    BuildFacts {
        profile: env!("HOB_PROFILE").to_owned(),
        opt_level: env!("HOB_OPT_LEVEL").to_owned(),
        rustc: env!("HOB_RUSTC").to_owned(),
        target: env!("HOB_TARGET").to_owned(),
        has_assertions: HAS_ASSERTIONS,
    }
}

/// Where the server runs. The keeper's user tells whether programs are others than the server;
/// addresses and warnings are told by whoever has them.
pub(crate) fn environment(
    config: &Config,
    shared: &ServerState,
    thread_count: usize,
    keeper_uid: u32,
) -> Environment {
    let is_root = rustix::process::geteuid().is_root();
    Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: build(),
        hostname: uname().nodename().to_string_lossy().into_owned(),
        time_zone: time_zone(),
        kernel: kernel(),
        machine: machine::told(),
        server: ServerFacts {
            process: confined::process(std::process::id()),
            threads: thread_count,
            scripts_separated: keeper_uid == 0 && !is_root,
            descriptors: descriptors().unwrap_or(0),
        },
        limits: confined::limits(),
        programs: confined::programs(config, &shared.fleet),
        file_systems: file_systems(&shared.sites()),
        ..Environment::default()
    }
}

fn file_systems(sites: &Sites) -> Vec<RootFileSystem> {
    let kinds = kinds();
    let roots = sites.roots.iter().map(|root| RootFileSystem {
        folder: root.path().display().to_string(),
        kind: kinds.get(&root.mount()).cloned(),
        local: root.dir().is_local,
    });
    roots.collect()
}

/// What is to be known of file systems of other machines, or of programs: each look-up there is a
/// request of its own, by a thread that may wait. One sentence for each, however many folders are
/// on it.
pub(crate) fn slow_file_systems(sites: &Sites) -> Vec<String> {
    let mut slow: BTreeMap<u64, (&Path, usize)> = BTreeMap::new();
    for root in sites.roots.iter().filter(|root| !root.dir().is_local) {
        slow.entry(root.mount()).or_insert((root.path(), 0)).1 += 1;
    }
    if slow.is_empty() {
        return Vec::new();
    }
    let kinds = kinds();
    let sentence = |(mount, (folder, count)): (u64, (&Path, usize))| {
        let kind = kinds.get(&mount).map_or("of unknown kind", String::as_str);
        let (folder, others) = (folder.display(), count - 1);
        let who = match others {
            0 => format!("{folder} stands"),
            others => format!("{folder} and {others} other folders stand"),
        };
        format!(
            "{who} on a file system ({kind}) that may have to be waited for: a look there takes \
             another thread, and several times the CPU time of one on a local disk; have there \
             what seldom is asked for"
        )
    };
    slow.into_iter().map(sentence).collect()
}

fn kernel() -> KernelFacts {
    let system = uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let io_uring = match read("/proc/sys/kernel/io_uring_disabled").trim() {
        "0" => "allowed, not used",
        "1" => "allowed to root, not used",
        "2" => "forbidden, not used",
        _ => "not used",
    };
    let backlog_max = read("/proc/sys/net/core/somaxconn");
    KernelFacts {
        name: word(system.sysname()),
        release: word(system.release()),
        version: word(system.version()),
        machine: word(system.machine()),
        landlock: landlock_version().ok(),
        backlog_max: backlog_max.trim().parse().ok(),
        io_uring: io_uring.to_owned(),
    }
}

/// The machine's time zone, as far as its files say; times here are all UTC.
fn time_zone() -> String {
    let named = read("/etc/timezone").trim().to_owned();
    if !named.is_empty() {
        return named;
    }
    let link = std::fs::read_link("/etc/localtime").unwrap_or_default();
    let link = link.to_string_lossy();
    let name = link.split_once("zoneinfo/").map(|(_, name)| name);
    name.unwrap_or("UTC").to_owned()
}
