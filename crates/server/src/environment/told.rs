//! `GET /v1/environment`: all of it as one object.

use hob_machine::process::descriptors;
use hob_machine::read;
use rustix::system::uname;
use serde_json::{Value, json};

use super::{confined, machine};
use crate::handle::admin::Admin;
use hob_keeper::process::landlock_version;

/// Checks for developers are in it.
const HAS_ASSERTIONS: bool = cfg!(debug_assertions);

/// How this program was built.
fn build() -> Value {
    json!({
        "profile": env!("HOB_PROFILE"),
        "opt_level": env!("HOB_OPT_LEVEL"),
        "rustc": env!("HOB_RUSTC"),
        "target": env!("HOB_TARGET"),
        "has_assertions": HAS_ASSERTIONS,
    })
}

/// Everything.
pub(crate) fn environment(admin: &Admin) -> Value {
    let report = admin.report().clone();
    let system = uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let io_uring = read("/proc/sys/kernel/io_uring_disabled");
    let is_root = rustix::process::geteuid().is_root();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": build(),
        "hostname": word(system.nodename()),
        "time_zone": time_zone(),
        "kernel": {
            "name": word(system.sysname()),
            "release": word(system.release()),
            "version": word(system.version()),
            "machine": word(system.machine()),
            "landlock": landlock_version().ok(),
            "backlog_max": read("/proc/sys/net/core/somaxconn").trim().parse::<u64>().ok(),
            "io_uring": match io_uring.trim() {
                "0" => "allowed, not used",
                "1" => "allowed to root, not used",
                "2" => "forbidden, not used",
                _ => "not used",
            },
        },
        "machine": machine::told(),
        "server": {
            "process": confined::process(std::process::id()),
            "threads": admin.crew.thread_count(),
            "scripts_separated": report.keeper_uid == 0 && !is_root,
            "descriptors": descriptors().unwrap_or(0),
        },
        "limits": confined::limits(),
        "listeners": report.addresses,
        "warnings": report.warnings,
        "programs": confined::programs(&admin.config(), &admin.shared.fleet),
    })
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
