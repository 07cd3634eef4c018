//! Policies travel whole, and are made with names looked up.

use std::os::fd::AsFd;
use std::time::Duration;

use super::*;
use crate::wire::WireValue;

fn policy() -> Policy {
    let program = ProgramConfig {
        umask: Some(0o22),
        nice: -3,
        io_class: IoClass::Idle,
        cpus: vec![0, 5],
        limits: Rlimits {
            address_space: Some(1),
            core: 2,
            cpu: Some(Duration::from_secs(3)),
            data: None,
            file_size: Some(5),
            open_files: Some(6),
            processes: Some(7),
            stack: None,
        },
        sandbox: Sandbox {
            no_new_privileges: true,
            read: vec!["/a".into()],
            write: vec!["/b".into(), "/c".into()],
            execute: vec![],
            namespaces: vec![
                Namespace::Net,
                Namespace::Ipc,
                Namespace::Uts,
                Namespace::Pid,
                Namespace::Mount,
            ],
        },
        cgroup: Cgroup {
            is_wanted: true,
            memory: Some(8),
            pids: None,
            cpu_weight: Some(9),
        },
        roots: vec!["/srv".into()],
        folders: vec!["/var".into()],
        files: vec!["/a/b".into()],
        command_lines: vec![
            CommandLine {
                name: "sh".to_owned(),
                executables: vec!["/bin/sh".into()],
                arguments: vec![
                    Argument::Text("-c".to_owned()),
                    Argument::Query("day".to_owned()),
                ],
                file_ending: Some(".sh".to_owned()),
                host: None,
            },
            CommandLine {
                name: String::new(),
                executables: vec![],
                arguments: vec![],
                file_ending: None,
                host: Some(HostSource::ResidentPerl),
            },
        ],
        env: vec![("LANG".to_owned(), "C".to_owned())],
        ..ProgramConfig::default()
    };
    let identity = UserIdentity {
        name: "web".to_owned(),
        uid: 33,
        gid: 34,
        groups: vec![34, 35],
    };
    Policy {
        generation: 7,
        programs: vec![
            Rules::of(&program, Some(identity)),
            Rules::of(&ProgramConfig::default(), None),
        ],
    }
}

#[test]
fn policy_arrives_as_written() {
    let memory = policy().to_memory().unwrap();
    assert_eq!(Policy::from_memory(memory.as_fd()).unwrap(), policy());
}

#[test]
fn cut_or_changed_policies_never_panic() {
    let bytes = policy().encode_whole(VERSION);
    for end in 0..bytes.len() {
        Policy::decode_whole(&bytes[..end], VERSION, "policy").unwrap_err();
    }
    for position in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[position] = value;
            let _ = Policy::decode_whole(&changed, VERSION, "policy");
        }
    }
}

fn server(uid: u32) -> UserIdentity {
    UserIdentity {
        name: "server".to_owned(),
        uid,
        gid: uid,
        groups: vec![uid],
    }
}

#[test]
fn program_without_a_user_is_never_the_server() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root");
    }
    let programs = vec![ProgramConfig::default()];
    let nobody = privileges::program_identity(Some("nobody"), None, Some(&server(33)));
    let nobody = nobody.unwrap().unwrap();
    let (policy, warnings) = Policy::of(&programs, 1, Some(&server(33))).unwrap();
    assert_eq!(
        policy.programs[0].identity.as_ref().map(|it| it.uid),
        Some(nobody.uid)
    );
    assert!(warnings.is_empty());
    let (policy, warnings) = Policy::of(&programs, 1, Some(&server(nobody.uid))).unwrap();
    let other = policy.programs[0]
        .identity
        .as_ref()
        .map(|it| it.uid)
        .unwrap();
    assert!(other != nobody.uid && other != 0);
    assert!(warnings.is_empty());
}

#[test]
fn program_that_is_the_server_is_warned_of_and_root_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root");
    }
    let named = |user: &str| ProgramConfig {
        user: Some(user.to_owned()),
        ..ProgramConfig::default()
    };
    let same = vec![named("nobody"), named("nobody")];
    let nobody = privileges::program_identity(Some("nobody"), None, Some(&server(33)));
    let nobody = nobody.unwrap().unwrap();
    let (_, warnings) = Policy::of(&same, 1, Some(&nobody)).unwrap();
    assert_eq!(warnings.len(), 1, "once for all");
    assert!(warnings[0].contains("`nobody`"), "{warnings:?}");
    for root in ["root", "0"] {
        let refusal = Policy::of(&[named(root)], 1, Some(&nobody)).unwrap_err();
        assert_eq!(refusal, "a program never runs as root; name another `user`");
    }
    let unknown = Policy::of(&[named("no-such-user")], 1, Some(&nobody));
    assert!(unknown.unwrap_err().contains("no user `no-such-user`"));
}

#[test]
fn without_root_programs_stay_who_hob_is_and_that_is_said() {
    let programs = vec![ProgramConfig::default()];
    let (policy, warnings) = Policy::of(&programs, 1, None).unwrap();
    assert_eq!(policy.programs[0].identity, None);
    assert!(
        warnings[0].contains("nothing separates them"),
        "{warnings:?}"
    );
    let (policy, warnings) = Policy::of(&[], 1, None).unwrap();
    assert!(policy.programs.is_empty() && warnings.is_empty());
    let other = ProgramConfig {
        group: Some("daemon".to_owned()),
        ..ProgramConfig::default()
    };
    Policy::of(&[other], 1, None).unwrap_err();
}
