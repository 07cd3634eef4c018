//! Only what the policy allows is started, as whom it says.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::process::{Pid, Resource, Rlimit, getpriority_process, getrlimit, prlimit};

use super::harness::{
    Outcome, Spawner, exists, identity, is_root, rules, rules_without_user, run, shell,
};
use crate::process::message::{EndSignal, Step, ToServer};
use crate::process::orders::SpawnerReport;
use crate::process::policy::Rules;
use hob_config::{Argument, CommandLine, HostSource};

fn narrow() -> Rules {
    Rules {
        roots: vec!["/usr/share".into()],
        ..rules()
    }
}

#[test]
fn path_or_folder_outside_the_policy_is_refused() {
    let spawner = Spawner::with(vec![narrow()]);
    let mut link = spawner.link();
    let mut outcome = |path: &str, folder: &str| {
        let mut ask = shell("exit 5");
        (ask.path, ask.folder) = (path.to_owned(), folder.to_owned());
        link.run(&ask).0
    };
    assert_eq!(outcome("/bin/sh", "/usr/share"), Outcome::Code(5));
    let path = Outcome::Failed(Step::Path, libc::EACCES);
    for wrong in ["/bin/true", "sh", "/usr/share/../../bin/sh", "/usr/share"] {
        assert_eq!(outcome(wrong, "/usr/share"), path, "{wrong}");
    }
    let folder = Outcome::Failed(Step::Folder, libc::EACCES);
    for wrong in ["/", "/usr/share/..", ""] {
        assert_eq!(outcome("/bin/sh", wrong), folder, "{wrong}");
    }
}

#[test]
fn interpreter_outside_the_policy_is_started_only_with_nothing_to_do() {
    let spawner = Spawner::with(vec![Rules {
        command_lines: Vec::new(),
        ..narrow()
    }]);
    let mut link = spawner.link();
    let mut outcome = |arguments: &[&str], variables: &[&str]| {
        let mut ask = run(arguments);
        ask.path = arguments[0].to_owned();
        ask.folder = "/usr/share".to_owned();
        ask.variables = variables
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
        link.run(&ask).0
    };
    assert_eq!(outcome(&["/bin/sh", "-c", ":"], &[]), Outcome::Code(0));
    assert_eq!(outcome(&["/bin/true"], &[]), Outcome::Code(0));
    let path = Outcome::Failed(Step::Path, libc::EACCES);
    assert_eq!(outcome(&["/bin/sh", "-c", "exit 0"], &[]), path);
    assert_eq!(outcome(&["/bin/sh", "-c", ":", ":"], &[]), path);
    assert_eq!(outcome(&["/bin/sh", "-c", ":"], &["ENV=/x"]), path);
    assert_eq!(outcome(&["/bin/sh"], &[]), path);
    assert_eq!(outcome(&["/bin/../bin/sh", "-c", ":"], &[]), path);
    assert_eq!(outcome(&["/bin/cat"], &[]), path);
}

fn told(spawner: &mut Spawner) -> String {
    match spawner.said() {
        SpawnerReport::Refused { text } => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn variable_that_is_no_requests_is_refused_and_named() {
    let mut spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let refused = Outcome::Failed(Step::Variables, libc::EACCES);
    let with = |variable: &str| {
        let mut ask = run(&["/bin/true"]);
        ask.variables.push(variable.as_bytes().to_vec());
        ask
    };
    for variable in ["HTTP_ACCEPT=x", "QUERY_STRING=LD_PRELOAD=/x", "PATH_INFO="] {
        assert_eq!(link.run(&with(variable)).0, Outcome::Code(0), "{variable}");
    }
    assert_eq!(link.run(&with("LD_PRELOAD=/proc/self/fd/0")).0, refused);
    let text = told(&mut spawner);
    assert!(text.contains("\"LD_PRELOAD\""), "{text}");
    for variable in [
        "PATH=/tmp",
        "PERL5OPT=-Mx",
        "BASH_ENV=/proc/self/fd/0",
        "HTTP_PROXY=x",
        "LD_PRELOAD",
        "=x",
        "",
        // php-cgi would run it.
        "SCRIPT_FILENAME=/proc/self/fd/0",
    ] {
        assert_eq!(link.run(&with(variable)).0, refused, "{variable}");
    }
    let mut nameless = run(&["/bin/cat"]);
    nameless.variables.clear();
    assert_eq!(link.run(&nameless).0, refused);
    let mut command = shell("exit 0");
    command.variables = vec![b"QUERY_STRING=x".to_vec()];
    assert_eq!(
        link.run(&command).0,
        refused,
        "a command is told of no request"
    );
    assert_eq!(spawner.said_already(), None, "refusals are told at a rate");
}

#[test]
fn arguments_are_those_of_the_config_and_words_of_a_query() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let script = folder.path().join("a.sh");
    std::fs::write(&script, "echo \"$@\"\n").unwrap();
    let script = script.to_str().unwrap();
    let line = CommandLine {
        name: "sh".to_owned(),
        executables: vec!["/bin/sh".into()],
        arguments: vec![Argument::Text("-u".to_owned())],
        file_ending: Some(".sh".to_owned()),
        host: None,
    };
    let spawner = Spawner::with(vec![Rules {
        roots: vec![folder.path().to_owned()],
        command_lines: vec![line],
        ..rules()
    }]);
    let mut link = spawner.link();
    let mut outcome = |arguments: &[&str], file: &str| {
        let mut ask = run(arguments);
        ask.path = "/bin/sh".to_owned();
        ask.folder = folder.path().to_str().unwrap().to_owned();
        ask.variables = vec![format!("SCRIPT_FILENAME={file}").into_bytes()];
        link.run(&ask)
    };
    let answer = outcome(&["/bin/sh", "-u", script, "one", "two"], script);
    assert_eq!(answer, (Outcome::Code(0), "one two\n".to_owned()));
    assert_eq!(outcome(&["sh", "-u", script], script).0, Outcome::Code(0));
    let outside = "/proc/self/fd/0.sh";
    let up = format!("{script}/../../a.sh");
    for (arguments, file) in [
        (&["/bin/sh", "-c", "echo x"][..], "x"),
        (&["/bin/sh", "-u", "-c", "echo x"], "x"),
        (&["/bin/sh", "-u"], script),
        (&["/bin/sh", script], script),
        (&["/bin/sh", "-u", "-x", script], script),
        (&["/bin/sh", "-u", script, "-x"], script),
        (&["-sh", "-u", script], script),
        (&["/bin/sh", "-u", "/etc/passwd"], "/etc/passwd"),
        (&["/bin/sh", "-u", outside], outside),
        (&["/bin/sh", "-u", &up], &up),
    ] {
        let (got, text) = outcome(arguments, file);
        assert_eq!(
            got,
            Outcome::Failed(Step::Arguments, libc::EACCES),
            "{arguments:?} {text}"
        );
    }
}

#[test]
fn program_that_stays_gets_what_the_policy_has_and_nothing_else() {
    let line = CommandLine {
        name: "cat".to_owned(),
        executables: vec!["/bin/cat".into()],
        arguments: vec![Argument::Text("-".to_owned())],
        file_ending: None,
        host: Some(HostSource::WarmPerl),
    };
    let spawner = Spawner::with(vec![Rules {
        roots: Vec::new(),
        folders: vec!["/".into()],
        command_lines: vec![line],
        variables: vec![("HOB_FD".to_owned(), "3".to_owned())],
        ..rules()
    }]);
    let mut link = spawner.link();
    let mut ask = run(&["/bin/cat", "-"]);
    ask.variables.clear();
    let source = include_str!("../../../../../../lang/perl/host/warm.pl");
    for _ in 0..2 {
        let (outcome, text) = link.run(&ask);
        assert_eq!(outcome, Outcome::Code(0), "{text}");
        assert!(text.ends_with(source), "each reads it from its start");
    }
    let memory = || crate::memory::sealed("test", b"another source").unwrap();
    let null = || -> OwnedFd { std::fs::File::open("/dev/null").unwrap().into() };
    let id = link.send(&ask, vec![memory(), null(), null()]);
    let expected = ToServer::Failed {
        id,
        step: Step::Descriptors,
        errno: libc::EINVAL,
    };
    assert_eq!(link.next(), expected);
    let arguments = Outcome::Failed(Step::Arguments, libc::EACCES);
    assert_eq!(link.run(&run(&["/bin/cat", "/etc/passwd"])).0, arguments);
    assert_eq!(link.run(&run(&["/bin/cat", "-", "-"])).0, arguments);
    let mut told = ask.clone();
    told.variables = vec![b"HOB_FD=0".to_vec()];
    let variables = Outcome::Failed(Step::Variables, libc::EACCES);
    assert_eq!(link.run(&told).0, variables);
}

#[test]
fn program_or_generation_that_is_unknown_is_refused() {
    let mut spawner = Spawner::with(vec![rules()]);
    let mut old = spawner.link();
    let mut ask = shell("exit 0");
    ask.program = 1;
    let unknown = Outcome::Failed(Step::Policy, libc::ENOENT);
    assert_eq!(old.run(&ask).0, unknown);
    spawner.set_policy(vec![narrow(), rules()]);
    let mut new = spawner.link();
    assert_eq!(new.run(&ask).0, Outcome::Code(0), "a policy counts at once");
    assert_eq!(old.run(&ask).0, unknown, "and the old one is kept");
    assert_eq!(old.print("echo old"), "old\n");
}

#[test]
fn standard_streams_are_pipes_or_files_and_three() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let null = || -> OwnedFd { std::fs::File::open("/dev/null").unwrap().into() };
    let (socket, _other) = crate::parcel::pair().unwrap();
    let failed = |link: &super::harness::Link, id: u64| {
        let message = link.next();
        let expected = ToServer::Failed {
            id,
            step: Step::Descriptors,
            errno: libc::EINVAL,
        };
        assert_eq!(message, expected);
    };
    let ask = shell("exit 0");
    let id = link.send(&ask, vec![null(), socket, null()]);
    failed(&link, id);
    let id = link.send(&ask, vec![null()]);
    failed(&link, id);
    let id = link.send(&ask, vec![null(), null(), null(), null()]);
    failed(&link, id);
    assert_eq!(link.print("echo fine"), "fine\n");
}

#[test]
fn program_becomes_its_user_for_good() {
    if !is_root() {
        return;
    }
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let status = link.print("cat /proc/self/status");
    let line = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("Uid:"), "4321 4321 4321 4321");
    assert_eq!(line("Gid:"), "4322 4322 4322 4322");
    assert_eq!(line("Groups:"), "4322 4323");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000", "{set}");
    }
    // Its pipes are its own: they can be opened again.
    assert_eq!(
        link.print("echo again > /dev/stdout; cat < /dev/stdin"),
        "again\n"
    );
    assert_eq!(
        link.run(&shell("kill -9 $PPID 2>/dev/null; exit $?")).0,
        Outcome::Code(1)
    );
    assert_eq!(
        link.print("cat /proc/$PPID/environ 2>/dev/null || echo hidden"),
        "hidden\n"
    );
    assert_eq!(link.print("echo alive"), "alive\n");
}

#[test]
fn empty_input_is_a_pipe_that_has_ended_for_everyone_whatever_one_does_to_it() {
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let ended = "test -p /dev/stdin && test -z \"$(cat; cat < /dev/stdin)\" && echo ended";
    assert_eq!(link.print(ended), "ended\n");
    // Its read lasts as long as someone can write to what it reads from.
    let revived = "exec 3<> /proc/self/fd/0 && echo revived && cat";
    let mut reviving = link.start(&shell(&format!("({revived}) 2> /dev/null || cat")));
    if is_root() {
        assert_eq!(link.outcome(&reviving).0, Outcome::Code(0));
        assert_eq!(reviving.rest(), "", "it may not be written to");
    } else {
        assert_eq!(reviving.line(), "revived", "a pipe of its own");
        let other = link.start(&shell(ended));
        assert_eq!(link.outcome(&other).0, Outcome::Code(0));
        link.kill(&reviving, EndSignal::Kill);
        assert_eq!(link.outcome(&reviving).0, Outcome::Signal(9));
    }
    let nonblocking = "python3 -c 'import os; os.set_blocking(0, False)' && chmod 777 /dev/stdin";
    if exists("/usr/bin/python3") {
        let failed = link.run(&shell(&format!("{nonblocking} 2> /dev/null || echo kept")));
        assert_eq!(
            failed,
            (
                Outcome::Code(0),
                if is_root() { "kept\n" } else { "" }.into()
            )
        );
    }
    assert_eq!(link.print(ended), "ended\n");
}

#[test]
fn usual_nice_level_is_inherited_and_others_are_set() {
    if !is_root() {
        return;
    }
    let level = |pid: Option<Pid>| getpriority_process(pid).unwrap();
    let own = level(None);
    let with = |nice: i32| Rules { nice, ..rules() };
    let spawner = Spawner::with(vec![with(own + 1), with(own + 2)]);
    let mut link = spawner.link();
    assert_eq!(link.print("nice"), format!("{}\n", own + 1));
    let mut second = shell("nice");
    second.program = 1;
    assert_eq!(link.run(&second).1, format!("{}\n", own + 2));
    // The spawner is one thread of this process.
    let threads = std::fs::read_dir(format!("/proc/{}/task", spawner.pid())).unwrap();
    let mut threads = threads.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_a_step_back = |thread: String| level(Pid::from_raw(thread.parse().unwrap())) == own + 1;
    assert!(threads.any(is_a_step_back));
}

#[test]
fn root_is_refused_even_if_the_policy_says_so() {
    if !is_root() {
        return;
    }
    let named = Rules {
        identity: Some(identity(0)),
        ..rules()
    };
    for root in [named, rules_without_user()] {
        let spawner = Spawner::with(vec![root]);
        let outcome = spawner.link().run(&shell("exit 0")).0;
        assert_eq!(outcome, Outcome::Failed(Step::User, libc::EPERM));
    }
}

#[test]
fn files_given_as_streams_keep_their_owner() {
    if !is_root() {
        return;
    }
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    let file = tempfile::tempfile().unwrap();
    let owner = file.metadata().unwrap().uid();
    let given = || -> OwnedFd { file.try_clone().unwrap().into() };
    link.send(&run(&["/bin/true"]), vec![given(), given(), given()]);
    link.next();
    assert_eq!(file.metadata().unwrap().uid(), owner);
}

#[test]
fn packet_without_room_for_its_descriptors_fails_and_its_link_stays() {
    if !is_root() {
        return;
    }
    let spawner = Spawner::with(vec![rules()]);
    let mut link = spawner.link();
    assert_eq!(link.print("echo before"), "before\n");
    let pid = Pid::from_raw(spawner.pid());
    let is_free = |number: &u64| !exists(&format!("/proc/{}/fd/{number}", spawner.pid()));
    let first_free = (0..).find(is_free);
    let usual = getrlimit(Resource::Nofile);
    let none_left = Rlimit {
        current: first_free,
        ..usual
    };
    prlimit(pid, Resource::Nofile, none_left).unwrap();
    let failed = Outcome::Failed(Step::Descriptors, libc::EMFILE);
    assert_eq!(link.run(&shell("exit 0")).0, failed);
    prlimit(pid, Resource::Nofile, usual).unwrap();
    assert_eq!(link.print("echo after"), "after\n");
}

#[test]
fn spawner_keeps_only_what_it_needs_and_shows_nothing() {
    let spawner = Spawner::with(vec![rules()]);
    // The thread that is the whole process outside of this test program.
    let threads = std::fs::read_dir(format!("/proc/{}/task", spawner.pid())).unwrap();
    let mut statuses =
        threads.map(|entry| std::fs::read_to_string(entry.unwrap().path().join("status")).unwrap());
    let status = statuses
        .find(|status| status.starts_with("Name:\thob-spawner"))
        .unwrap();
    let line = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim().to_owned()
    };
    let kept = u64::from_str_radix(&line("CapEff:"), 16).unwrap();
    assert!(kept.count_ones() <= 9, "{kept:x}");
    assert_eq!(line("CapInh:"), "0000000000000000");
}
