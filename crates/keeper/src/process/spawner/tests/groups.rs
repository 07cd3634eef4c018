//! Control groups: limits over all processes of a program, and an end that nobody escapes.

use super::harness::{DEAF, Outcome, Spawner, is_alive, is_root, kill, rules, shell, until};
use crate::process::message::EndSignal;
use crate::process::orders::SpawnerReport;
use crate::process::policy::Rules;
use hob_config::Cgroup;

/// A spawner whose program has this group, and what it could not do for it.
fn grouped(cgroup: Cgroup) -> Option<Spawner> {
    if !is_root() {
        return None;
    }
    let mut spawner = Spawner::with(vec![Rules {
        cgroup: Cgroup {
            is_wanted: true,
            ..cgroup
        },
        ..rules()
    }]);
    // A program that ran was told of after everything about its policy.
    spawner.link().print(":");
    if let Some(SpawnerReport::Trouble { text }) = spawner.said_already() {
        println!("skipped: {text}");
        return None;
    }
    Some(spawner)
}

#[test]
fn program_runs_in_a_group_of_its_own_that_is_gone_afterwards() {
    let Some(mut spawner) = grouped(Cgroup::default()) else {
        return;
    };
    let mut link = spawner.link();
    let groups = link.print("cat /proc/self/cgroup");
    let own = format!("/hob-{}/1-0/", spawner.pid());
    assert!(groups.contains(&own), "{groups}");
    assert_eq!(
        link.print("cat /proc/self/cgroup"),
        groups,
        "a seat is used again"
    );
    drop(link);
    spawner.dismiss();
    spawner.wait();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    for mount in mounts.lines().filter(|mount| mount.contains(" - cgroup")) {
        let place = mount.split(' ').nth(4).unwrap();
        let left = format!("{place}/hob-{}", spawner.pid());
        assert!(!std::path::Path::new(&left).exists(), "{left}");
    }
}

#[test]
fn fork_bomb_stops_at_the_limit_of_its_group_and_ends_at_once() {
    let limit = Cgroup {
        pids: Some(20),
        ..Cgroup::default()
    };
    let Some(spawner) = grouped(limit) else {
        return;
    };
    let mut link = spawner.link();
    let text = "(i=0; while [ $i -lt 100 ]; do setsid sleep 1020 & i=$((i+1)); done) 2>/dev/null; \
                echo full; exec sleep 1021";
    let mut bomb = link.start(&shell(text));
    assert_eq!(bomb.line(), "full");
    let of_bomb = || spawner.descendants_named("sleep").len();
    until("the first is one of them", || of_bomb() >= 15);
    assert!(of_bomb() <= 20);
    link.kill(&bomb, EndSignal::Kill);
    assert_eq!(link.outcome(&bomb).0, Outcome::Signal(libc::SIGKILL));
    until("nothing of it is left", || of_bomb() == 0);
}

#[test]
fn memory_hog_is_killed_in_its_group() {
    let limit = Cgroup {
        memory: Some(24 << 20),
        ..Cgroup::default()
    };
    let Some(spawner) = grouped(limit) else {
        return;
    };
    let mut link = spawner.link();
    let text = "head -c 100m /dev/zero | tail -c 90m | wc -c";
    assert_ne!(link.run(&shell(text)).1, "94371840\n");
    assert_eq!(link.print("echo still"), "still\n");
}

#[test]
fn who_does_not_listen_ends_with_the_program_that_does() {
    let Some(spawner) = grouped(Cgroup::default()) else {
        return;
    };
    let mut link = spawner.link();
    let mut run = link.start(&shell(DEAF));
    let deaf: i32 = run.line().parse().unwrap();
    link.kill(&run, EndSignal::Term);
    assert_eq!(link.outcome(&run).0, Outcome::Signal(libc::SIGTERM));
    until("it is gone", || !is_alive(deaf));
}

#[test]
fn who_loses_its_mark_and_its_parents_still_ends_with_its_group() {
    let Some(spawner) = grouped(Cgroup::default()) else {
        return;
    };
    let mut link = spawner.link();
    let text = "(setsid prlimit --rttime=7 sh -c 'echo $$; exec sleep 1022' &); exec sleep 1023";
    let mut run = link.start(&shell(text));
    let escaped: i32 = run.line().parse().unwrap();
    link.kill(&run, EndSignal::Kill);
    assert_eq!(link.outcome(&run).0, Outcome::Signal(libc::SIGKILL));
    until("it is gone", || !is_alive(escaped));
}

#[test]
fn daemon_keeps_its_seat_and_the_next_program_gets_another() {
    let Some(spawner) = grouped(Cgroup::default()) else {
        return;
    };
    let mut link = spawner.link();
    let mut run = link.start(&shell(
        "cat /proc/self/cgroup | tail -1; setsid sleep 1024 & echo $!",
    ));
    let seat = run.line();
    let daemon: i32 = run.line().parse().unwrap();
    assert_eq!(link.outcome(&run).0, Outcome::Code(0));
    assert_ne!(link.print("cat /proc/self/cgroup | tail -1").trim(), seat);
    assert!(is_alive(daemon));
    kill(daemon);
}

#[test]
fn group_that_cannot_be_made_is_said_and_the_program_runs() {
    let mut spawner = Spawner::with(vec![Rules {
        cgroup: Cgroup {
            is_wanted: true,
            pids: Some(u64::MAX),
            ..Cgroup::default()
        },
        ..rules()
    }]);
    assert_eq!(spawner.link().print("echo runs"), "runs\n");
    let said = spawner.said_already();
    assert!(
        matches!(&said, Some(SpawnerReport::Trouble { text }) if text.contains("cgroup.pids")
            || text.contains("no control group")),
        "{said:?}"
    );
}
