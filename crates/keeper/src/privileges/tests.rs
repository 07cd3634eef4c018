//! Changing the user changes the whole process, so those tests run this test program again.

use std::process::Command;

use super::*;

/// Set for the child that drops: the test it should run does nothing without it.
const CHILD: &str = "HOB_TEST_DROP";

fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        println!("skipped: needs root");
    }
    is_root
}

#[test]
fn unknown_names_are_explained() {
    assert_eq!(
        find("no-such-user", None).unwrap_err(),
        "no user `no-such-user` on this machine; check the name"
    );
    assert_eq!(
        find("root", Some("no-such-group")).unwrap_err(),
        "no group `no-such-group` on this machine; check the name"
    );
    assert!(find("a\0b", None).is_err());
}

#[test]
fn user_is_found_by_name_and_by_number() {
    let by_name = find("root", None).unwrap();
    assert_eq!(
        (by_name.name.as_str(), by_name.uid, by_name.gid),
        ("root", 0, 0)
    );
    assert!(by_name.groups.contains(&0));
    assert_eq!(find("0", None).unwrap(), by_name);
    let unknown = find("3999999999", Some("77")).unwrap();
    assert_eq!(
        (unknown.uid, unknown.gid, unknown.groups),
        (3_999_999_999, 77, vec![77])
    );
    assert!(
        find("3999999999", None).is_err(),
        "a number without a user needs a group"
    );
}

#[test]
fn server_is_never_root() {
    if !is_root() {
        return;
    }
    assert_eq!(
        identity_for(Some("root"), None).unwrap_err(),
        "the server never runs as root; name another `user`"
    );
    assert_ne!(identity_for(None, None).unwrap().unwrap().uid, 0);
    assert!(become_identity(&find("root", None).unwrap()).is_err());
}

#[test]
fn all_of_root_is_gone_after_the_drop() {
    if !is_root() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = "privileges::tests::child_drops_and_tries_to_return";
    let output = Command::new(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("dropped for good"), "{text}");
}

#[test]
fn child_drops_and_tries_to_return() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let identity = UserIdentity {
        name: "test".to_owned(),
        uid: 4321,
        gid: 4322,
        groups: vec![4322, 7],
    };
    become_identity(&identity).unwrap();
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line[key.len()..]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("Uid:"), "4321 4321 4321 4321");
    assert_eq!(line("Gid:"), "4322 4322 4322 4322");
    assert_eq!(line("Groups:"), "7 4322");
    assert_eq!(line("NoNewPrivs:"), "1");
    for set in ["CapEff:", "CapPrm:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000");
    }
    // Root's files stay closed, and a second drop is refused because nothing is left to drop with.
    std::fs::read("/etc/shadow").unwrap_err();
    become_identity(&identity).unwrap_err();
    let dumpable = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(dumpable, DumpableBehavior::NotDumpable);
    println!("dropped for good");
}
