//! What a program may use.

use super::harness::{Outcome, Spawner, identity, is_root, rules, shell};
use crate::process::policy::Rules;
use hob_config::{IoClass, Rlimits};

fn limited(limits: Rlimits) -> Spawner {
    Spawner::with(vec![Rules { limits, ..rules() }])
}

#[test]
fn limits_are_set_soft_and_hard() {
    let limits = Rlimits {
        address_space: Some(512 << 20),
        core: 4096,
        cpu: Some(std::time::Duration::from_secs(7)),
        data: Some(256 << 20),
        file_size: Some(1 << 20),
        open_files: Some(33),
        processes: None,
        stack: Some(4 << 20),
    };
    let spawner = limited(limits);
    let text = spawner.link().print("cat /proc/self/limits");
    let limit = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(limit("Max address space"), "536870912 536870912");
    assert_eq!(limit("Max core file size"), "4096 4096");
    assert_eq!(limit("Max cpu time"), "7 7");
    assert_eq!(limit("Max data size"), "268435456 268435456");
    assert_eq!(limit("Max file size"), "1048576 1048576");
    assert_eq!(limit("Max open files"), "33 33");
    assert_eq!(limit("Max stack size"), "4194304 4194304");
}

#[test]
fn nice_io_class_cpus_and_umask_are_set() {
    let spawner = Spawner::with(vec![Rules {
        nice: 7,
        io_class: IoClass::Idle,
        cpus: vec![0],
        umask: Some(0o027),
        ..rules()
    }]);
    let mut link = spawner.link();
    let stat = link.print("cat /proc/self/stat");
    assert_eq!(stat.split_whitespace().nth(18), Some("7"));
    let status = link.print("cat /proc/self/status");
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    assert_eq!(link.print("umask"), "0027\n");
    if super::harness::exists("/usr/bin/ionice") {
        assert_eq!(link.print("ionice -p $$"), "idle\n");
    }
}

#[test]
fn cpu_hog_is_ended_by_its_limit() {
    let limits = Rlimits {
        cpu: Some(std::time::Duration::from_secs(1)),
        ..Rlimits::default()
    };
    let spawner = limited(limits);
    let outcome = spawner.link().run(&shell("while :; do :; done")).0;
    assert_eq!(outcome, Outcome::Signal(libc::SIGKILL));
}

#[test]
fn memory_hog_fails_within_its_address_space() {
    let limits = Rlimits {
        address_space: Some(64 << 20),
        ..Rlimits::default()
    };
    let spawner = limited(limits);
    let (outcome, text) = spawner
        .link()
        .run(&shell("head -c 200m /dev/zero | tail -c 190m >/dev/null"));
    assert_ne!(outcome, Outcome::Code(0), "{text}");
}

#[test]
fn fork_bomb_stops_at_its_count_and_ends_whole() {
    if !is_root() {
        return;
    }
    let spawner = Spawner::with(vec![Rules {
        identity: Some(identity(54_321)),
        limits: Rlimits {
            processes: Some(40),
            ..Rlimits::default()
        },
        ..rules()
    }]);
    let mut link = spawner.link();
    let bomb = link.start(&shell(
        "(while :; do setsid sleep 1000 & done) 2>/dev/null; exec sleep 1000",
    ));
    let of_bomb = || {
        let status = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/status"));
        let all = super::harness::processes();
        let is_its = |pid: &i32| status(*pid).is_ok_and(|text| text.contains("Uid:\t54321"));
        all.into_iter().map(|(pid, _)| pid).filter(is_its).count()
    };
    super::harness::until("it has spread", || of_bomb() >= 30);
    assert!(of_bomb() <= 41);
    link.kill(&bomb, crate::process::message::EndSignal::Kill);
    super::harness::until("nothing of it is left", || of_bomb() == 0);
    spawner.wait_until_childless();
    drop(bomb);
}
