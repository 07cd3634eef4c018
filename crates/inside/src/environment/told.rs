//! `GET /v1/environment`: all of it as one object.

use hob_machine::process::descriptors;
use hob_machine::read;
use rustix::system::uname;

use super::{confined, machine};
use crate::api::{BuildFacts, Environment, KernelFacts, ServerFacts};
use hob_keeper::process::landlock_version;
use hob_server::config::Config;
use hob_server::serve::ServerState;

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
        ..Environment::default()
    }
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
