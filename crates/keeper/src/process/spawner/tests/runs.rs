//! Programs run, end, and are told of.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

use super::harness::{DEAF, Link, Outcome, Run, Spawner, is_alive, kill, rules, run, shell, until};
use crate::process::message::{EndSignal, Step, ToServer};
use crate::process::policy::Rules;

#[test]
fn program_gets_its_arguments_environment_folder_and_streams() {
    let spawner = Spawner::with(vec![Rules {
        variables: vec![("ONE".to_owned(), "1".to_owned())],
        ..rules()
    }]);
    let mut link = spawner.link();
    let mut ask = run(&[
        "/bin/sh",
        "-c",
        "pwd; echo \"$0 $1\"; env; cat; echo err >&2",
        "a",
        "b c",
    ]);
    ask.folder = "/usr".to_owned();
    ask.variables = vec![b"CGIPLUSEOF=".to_vec()];
    let (outcome, text) = link.run(&ask);
    assert_eq!(outcome, Outcome::Code(0), "{text}");
    let (first, rest) = text.split_once("\na b c\n").unwrap();
    assert_eq!(first, "/usr");
    let mut variables: Vec<&str> = rest.lines().collect();
    assert_eq!(variables.pop(), Some("err"));
    // The shell's own.
    variables.retain(|line| {
        !["PWD=", "SHLVL=", "_="]
            .iter()
            .any(|own| line.starts_with(own))
    });
    variables.sort_unstable();
    assert_eq!(variables, ["CGIPLUSEOF=", "ONE=1"]);
}

#[test]
fn exits_say_code_signal_and_use() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    assert_eq!(link.run(&shell("exit 3")).0, Outcome::Code(3));
    assert_eq!(link.run(&shell("kill -11 $$")).0, Outcome::Signal(11));
    let busy = link.start(&shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"));
    let (outcome, usage) = link.outcome(&busy);
    assert_eq!(outcome, Outcome::Code(0));
    assert!(usage.user_us > 1000 && usage.max_rss_kib > 100, "{usage:?}");
    spawner.wait_until_childless();
}

#[test]
fn what_cannot_run_says_at_which_step_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("no-interpreter");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    for path in [folder.path(), &script] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut failure = |path: &str, folder: &str| {
        let mut ask = run(&[path]);
        ask.folder = folder.to_owned();
        link.run(&ask).0
    };
    assert_eq!(
        failure("/no/such", "/"),
        Outcome::Failed(Step::Exec, libc::ENOENT)
    );
    assert_eq!(
        failure(script.to_str().unwrap(), "/"),
        Outcome::Failed(Step::Exec, libc::ENOENT)
    );
    assert_eq!(
        failure(plain.to_str().unwrap(), "/"),
        Outcome::Failed(Step::Exec, libc::EACCES)
    );
    assert_eq!(
        failure("/bin/true", "/no/such"),
        Outcome::Failed(Step::ChangeFolder, libc::ENOENT)
    );
    assert_eq!(
        failure("/bin/true", "/bin/true"),
        Outcome::Failed(Step::ChangeFolder, libc::ENOTDIR)
    );
    spawner.wait_until_childless();
}

#[test]
fn only_three_descriptors_are_inherited_and_nothing_else_of_ours() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let (outcome, text) = link.run(&run(&["/bin/ls", "/proc/self/fd"]));
    assert_eq!(outcome, Outcome::Code(0));
    // The fourth is the one it lists with.
    assert_eq!(text, "0\n1\n2\n3\n");
    let status = link.print("cat /proc/self/status");
    let line = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    for name in ["SigBlk:", "SigIgn:", "SigCgt:"] {
        assert_eq!(line(name), "0000000000000000", "{name}");
    }
    assert_eq!(
        link.print("cat /proc/self/coredump_filter >/dev/null; ulimit -c"),
        "0\n"
    );
    assert_eq!(link.print("ulimit -Sn"), "1024\n");
}

#[test]
fn channel_is_the_fourth_descriptor_and_its_process_is_told() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let (ours, theirs) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let null = || std::fs::File::open("/dev/null").unwrap().into();
    let ask = shell("echo $$ >&3; cat <&3 >&3; ls /proc/self/fd >&3");
    let id = link.send(&ask, vec![null(), null(), null(), theirs]);
    let ToServer::Started { id: told, pid } = link.next() else {
        panic!("its process is told first");
    };
    assert_eq!(told, id);
    let mut file = std::fs::File::from(ours);
    std::io::Write::write_all(&mut file, b"there\n").unwrap();
    rustix::net::shutdown(&file, rustix::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut file, &mut text).unwrap();
    assert_eq!(text, format!("{pid}\nthere\n0\n1\n2\n3\n4\n"));
    assert!(matches!(
        link.next(),
        ToServer::Exited { code: Some(0), .. }
    ));
}

#[test]
fn channel_is_a_unix_socket_or_a_pipe() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let null = || std::fs::File::open("/dev/null").unwrap().into();
    let packets = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
    link.send(&shell("true"), vec![null(), null(), null(), packets]);
    assert!(matches!(
        link.next(),
        ToServer::Failed {
            step: Step::Descriptors,
            ..
        }
    ));
}

#[test]
fn every_program_has_a_group_of_its_own_and_no_terminal() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let stat = link.print("read pid comm state ppid pgrp session tty rest < /proc/$$/stat; echo $$ $pgrp $session $tty");
    let fields: Vec<i32> = stat
        .split_whitespace()
        .map(|field| field.parse().unwrap())
        .collect();
    assert_eq!(fields[0], fields[1], "own group");
    assert_eq!(fields[2], spawner.pid(), "the spawner's session");
    assert_eq!(fields[3], 0, "no terminal");
    let mut ask =
        shell("read pid comm state ppid pgrp session rest < /proc/$$/stat; echo $$ $session");
    ask.outlives = true;
    let (_, text) = link.run(&ask);
    let (pid, session) = text.trim().split_once(' ').unwrap();
    assert_eq!(
        pid, session,
        "what outlives the spawner is not in its session"
    );
}

#[test]
fn long_arguments_travel_as_memory() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut ask = shell("echo ${#CGIPLUSEOF} ${#CGIPLUSESC}");
    let long = "x".repeat(120 * 1024);
    for name in ["CGIPLUSEOF", "CGIPLUSESC"] {
        ask.variables.push(format!("{name}={long}").into_bytes());
    }
    let (outcome, text) = link.run(&ask);
    assert_eq!(
        (outcome, text.as_str()),
        (Outcome::Code(0), "122880 122880\n")
    );
    let longer = "y".repeat(200 * 1024);
    ask.variables
        .push(format!("CGIPLUSEOT={longer}").into_bytes());
    assert_eq!(link.run(&ask).0, Outcome::Failed(Step::Exec, libc::E2BIG));
}

#[test]
fn many_starts_at_once_all_end_right() {
    let spawner = Spawner::with(vec![rules()]);
    let mut links = [spawner.link(), spawner.link()];
    let ask = run(&["/bin/sh", "-c", "exit $0", "7"]);
    // Only root may look, because it is not dumpable.
    let open = || {
        let listed = std::fs::read_dir(format!("/proc/{}/fd", spawner.pid()));
        listed.map(Iterator::count).unwrap_or(0)
    };
    assert_eq!(links[1].run(&ask).0, Outcome::Code(7));
    assert_eq!(links[0].run(&ask).0, Outcome::Code(7));
    let open_before = open();
    let mut runs = Vec::new();
    for round in 0..300 {
        runs.push(links[round % 2].start(&ask));
    }
    for link in &links {
        let mut ids: Vec<u64> = (0..150)
            .map(|_| match link.next() {
                ToServer::Exited {
                    id, code: Some(7), ..
                } => id,
                other => panic!("{other:?}"),
            })
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (2..=151).collect::<Vec<u64>>());
    }
    spawner.wait_until_childless();
    assert_eq!(open(), open_before);
}

#[test]
fn kill_ends_everything_that_was_started() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    // In its group, in a group and session of its own, and an orphan of that.
    let mut run = link.start(&shell(
        "sleep 1000 & echo $!; \
         setsid sh -c 'sleep 1001 & echo $!; echo $$; wait' & \
         (setsid sh -c 'echo $$; exec sleep 1002' &) ; \
         wait",
    ));
    let pids: Vec<i32> = (0..4).map(|_| run.line().parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    let mut other = link.start(&shell("echo $$; exec sleep 1003"));
    let other_pid: i32 = other.line().parse().unwrap();
    link.kill(&run, EndSignal::Kill);
    assert_eq!(link.outcome(&run).0, Outcome::Signal(libc::SIGKILL));
    until("all are gone", || !pids.iter().any(|pid| is_alive(*pid)));
    assert!(is_alive(other_pid), "another program is not touched");
    link.kill(&other, EndSignal::Term);
    assert_eq!(link.outcome(&other).0, Outcome::Signal(libc::SIGTERM));
    spawner.wait_until_childless();
}

/// Starts a shell that starts two marked ones, each in a session of its own and with a child, and
/// waits; returns the run, and the four processes.
fn start_parts(link: &mut Link, takes_along: bool) -> (Run, Vec<i32>) {
    let mut ask = shell(
        "for part in 70001 70002; do \
         prlimit --locks=$part setsid sh -c 'sleep 1020 & echo $$ $!; wait' & done; read end; wait",
    );
    ask.path = "/bin/sh".to_owned();
    ask.takes_along = takes_along;
    let mut run = link.start(&ask);
    let mut pids: Vec<(String, i32)> = Vec::new();
    for _ in 0..2 {
        for pid in run.line().split(' ') {
            let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
            let locks = limits
                .lines()
                .find(|line| line.starts_with("Max file locks"));
            pids.push((locks.unwrap().to_owned(), pid.parse().unwrap()));
        }
    }
    pids.sort();
    (run, pids.into_iter().map(|(_, pid)| pid).collect())
}

#[test]
fn part_of_a_program_ends_without_the_rest() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let (run, pids) = start_parts(&mut link, false);
    link.kill_part(&run, 70_001, EndSignal::Kill);
    until("the part is gone", || {
        !pids[..2].iter().any(|pid| is_alive(*pid))
    });
    assert!(
        pids[2..].iter().all(|pid| is_alive(*pid)),
        "the other part is not touched"
    );
    link.kill_part(&run, 70_002, EndSignal::Term);
    until("so is the other", || {
        !pids[2..].iter().any(|pid| is_alive(*pid))
    });
    assert_eq!(
        link.outcome(&run).0,
        Outcome::Code(0),
        "it was only waiting"
    );
    spawner.wait_until_childless();
}

#[test]
fn program_that_takes_along_what_it_started_does_so_when_it_is_killed() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let (run, pids) = start_parts(&mut link, true);
    let all = spawner.descendants_named("sh");
    let first = all.iter().find(|pid| !pids.contains(pid)).unwrap();
    kill(*first);
    assert_eq!(link.outcome(&run).0, Outcome::Signal(libc::SIGKILL));
    until("all are gone", || !pids.iter().any(|pid| is_alive(*pid)));
    let mut ask = shell("setsid sleep 1021 & echo $!");
    ask.takes_along = true;
    let mut run = link.start(&ask);
    let daemon: i32 = run.line().parse().unwrap();
    assert_eq!(link.outcome(&run).0, Outcome::Code(0));
    assert_eq!(
        link.print("echo later"),
        "later\n",
        "what came before is done"
    );
    assert!(is_alive(daemon), "who ends well leaves what it started");
    kill(daemon);
    spawner.wait_until_childless();
}

#[test]
fn program_that_is_asked_to_end_hears_it_once() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let text = "trap 'echo asked; exit 6' TERM; sleep 1011 > /dev/null & echo ready; wait";
    let mut run = link.start(&shell(text));
    assert_eq!(run.line(), "ready");
    // Before it is that, it is a copy of the shell, which would swallow the signal.
    until("it sleeps", || {
        !spawner.descendants_named("sleep").is_empty()
    });
    link.kill(&run, EndSignal::Term);
    assert_eq!(link.outcome(&run).0, Outcome::Code(6));
    assert_eq!(run.rest(), "asked\n");
    spawner.wait_until_childless();
}

#[test]
fn who_does_not_listen_ends_with_the_program_that_does() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut run = link.start(&shell(DEAF));
    let deaf: i32 = run.line().parse().unwrap();
    link.kill(&run, EndSignal::Term);
    assert_eq!(link.outcome(&run).0, Outcome::Signal(libc::SIGTERM));
    until("it is gone", || !is_alive(deaf));
    spawner.wait_until_childless();
}

#[test]
fn daemon_survives_a_normal_end() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut run = link.start(&shell("setsid sleep 1004 & echo $!"));
    let daemon: i32 = run.line().parse().unwrap();
    assert_eq!(link.outcome(&run).0, Outcome::Code(0));
    link.kill(&run, EndSignal::Kill);
    assert_eq!(
        link.print("echo later"),
        "later\n",
        "what came before is done"
    );
    assert!(is_alive(daemon));
    kill(daemon);
    spawner.wait_until_childless();
}

#[test]
fn lost_link_ends_what_was_started_over_it() {
    let spawner = Spawner::with(vec![rules()]);
    let (mut lost, mut kept) = (spawner.link(), spawner.link());
    let mut run = lost.start(&shell("sleep 1005 & echo $!; wait"));
    let pid: i32 = run.line().parse().unwrap();
    let mut other = kept.start(&shell("echo $$; exec sleep 1006"));
    let other_pid: i32 = other.line().parse().unwrap();
    drop(lost);
    until("it is gone", || !is_alive(pid));
    assert!(is_alive(other_pid));
}

#[test]
fn spawner_that_is_killed_takes_its_programs_along() {
    let mut spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut run = link.start(&shell("echo $$; sleep 1007 & echo $!; wait"));
    let (shell_pid, child): (i32, i32) = (run.line().parse().unwrap(), run.line().parse().unwrap());
    let mut ask = shell("echo $$; exec sleep 1008");
    ask.outlives = true;
    let mut outliving = link.start(&ask);
    let outliving: i32 = outliving.line().parse().unwrap();
    spawner.kill();
    assert_eq!(link.try_next(), None);
    until("the program is gone", || !is_alive(shell_pid));
    // What the keeper does then.
    until("what it started is gone", || {
        super::super::end_session(spawner.pid());
        !is_alive(child)
    });
    assert!(is_alive(outliving));
    kill(outliving);
}

#[test]
fn spawner_ends_with_the_keeper_and_the_last_server() {
    let mut spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut run = link.start(&shell("echo $$; exec sleep 1009"));
    let pid: i32 = run.line().parse().unwrap();
    let server = spawner.server.take();
    spawner.dismiss();
    assert_eq!(link.print("echo still"), "still\n", "a server is left");
    drop((link, server));
    spawner.wait();
    until("it is gone", || !is_alive(pid));
}

#[test]
fn retired_spawner_ends_with_its_last_server() {
    let mut spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let order = crate::process::orders::SpawnerOrder::Retire;
    spawner.keeper.send(order.encode()).unwrap();
    assert_eq!(link.print("echo still"), "still\n");
    drop(link);
    spawner.server = None;
    spawner.wait();
}

#[test]
fn nonsense_ends_its_link_and_no_other() {
    let spawner = Spawner::with(vec![rules()]);
    let (bad, mut good) = (spawner.link(), spawner.link());
    rustix::net::send(&bad.socket, b"nonsense", rustix::net::SendFlags::empty()).unwrap();
    assert_eq!(bad.try_next(), None);
    assert_eq!(good.print("echo fine"), "fine\n");
}

#[test]
fn second_start_with_a_number_in_use_ends_the_link() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let mut first = link.start(&shell("echo $$; exec sleep 1010"));
    let pid: i32 = first.line().parse().unwrap();
    let null = || -> OwnedFd { std::fs::File::open("/dev/null").unwrap().into() };
    link.forget_last_number();
    link.send(&shell("exit 0"), vec![null(), null(), null()]);
    assert_eq!(link.try_next(), None);
    until("it is gone", || !is_alive(pid));
}
