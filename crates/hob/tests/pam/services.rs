//! Services that hang, crash, change or are many at once; and what becomes of what is known.

use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use super::harness::client::{Answer, Connection, ask};
use super::harness::site::{ask_from_with, record};
use super::harness::{DEADLINE, Place, text_of, wait_for_end};
use super::{
    ANY_ACCOUNT, INNER, basic, begin, checked_by, config, get, place, reason, serve, service,
    status, wait_for_status,
};

/// A service that says that it has begun, and goes on when it is let.
struct HeldService {
    place: Place,
}

impl HeldService {
    /// It is to think so of every password in the end.
    fn new(lets_in: bool) -> HeldService {
        let place = place();
        let fifo = |name: &str| {
            let path = place.path("run").join(name);
            let made = Command::new("mkfifo")
                .args(["-m", "666"])
                .arg(&path)
                .status();
            assert!(made.unwrap().success());
            path.display().to_string()
        };
        let (begun, go) = (fifo("begun"), fifo("go"));
        let exit = i32::from(!lets_in);
        place.script(
            "check",
            &format!("#!/bin/sh\necho $$ $PPID > {begun}\nread -r x < {go}\nexit {exit}\n"),
        );
        HeldService { place }
    }

    /// Waits until one has begun: its process, and the one that asks PAM.
    fn begun(&self) -> [u32; 2] {
        let line = std::fs::read_to_string(self.place.path("run/begun")).unwrap();
        let mut numbers = line
            .split_whitespace()
            .map(|number| number.parse().unwrap());
        [numbers.next().unwrap(), numbers.next().unwrap()]
    }

    /// Lets one that has begun go on.
    fn go_on(&self) {
        std::fs::write(self.place.path("run/go"), "x\n").unwrap();
    }
}

#[test]
fn service_that_hangs_is_ended_in_time() {
    let held = HeldService::new(true);
    let hob = serve(&held.place, ", timeout = \"5s\"");
    let mut connection = begin(&hob, "ann", "sesame");
    let processes = held.begun();
    assert_eq!(connection.read().unwrap().status, 503);
    let record = record(&held.place, "/inner/a.txt");
    let late = "require: PAM has not answered within `timeout` of `pam`";
    assert_eq!(
        (&record["reason"], &record["fault"]),
        (&late.into(), &"server".into())
    );
    processes.into_iter().for_each(wait_for_end);
    // Nobody has guessed.
    assert_eq!(held.place.counter("sign_ins_failed"), 0);
    hob.stop();
}

#[test]
fn service_that_crashes_takes_nothing_along() {
    let place = place();
    place.script("check", "#!/bin/sh\nkill -9 $PPID\nread -r x\n");
    let hob = serve(&place, "");
    assert_eq!(status(&hob, "ann", "sesame"), 503);
    let (reason, detail) = reason(&place, "/inner/a.txt");
    assert_eq!(
        reason,
        "require: the process that asks PAM has ended without an answer"
    );
    assert!(detail.contains("signal 9"), "{detail}");
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    place.script("check", super::CHECK);
    wait_for_status(&hob, "ann", "sesame", 200);
    hob.stop();
}

#[test]
fn as_many_ask_at_a_time_as_may() {
    let place = place();
    let log = place.path("run/conversations").display().to_string();
    place.script(
        "check",
        &format!("#!/bin/sh\necho + >> {log}\nread -r given\necho - >> {log}\nexit 0\n"),
    );
    let hob = serve(&place, ", processes = 3, timeout = \"60s\"");
    let mut all: Vec<Connection> = Vec::new();
    for number in 0..65 {
        let mut connection = Connection::open(hob.port()).unwrap();
        let user = basic(&format!("user{number}"), b"sesame");
        let fields = format!("X-Forwarded-For: 192.0.2.{number}\r\n{user}");
        connection.send_ask("GET", "/inner/a.txt", &fields);
        all.push(connection);
    }
    for mut connection in all {
        assert_eq!(connection.read().unwrap().status, 200);
    }
    assert_eq!(place.counter("passwords_checked"), 65);
    let text = std::fs::read_to_string(&log).unwrap();
    let (mut now, mut most) = (0, 0);
    for line in text.lines() {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
    }
    assert!((1..=3).contains(&most) && now == 0, "{most} at a time");
    hob.stop();
}

#[test]
fn who_waits_too_long_for_its_turn_is_refused() {
    let held = HeldService::new(true);
    let hob = serve(&held.place, ", processes = 1, timeout = \"4s\"");
    let first = begin(&hob, "ann", "guess0");
    held.begun();
    // Who has begun from here on is read at the end: nobody waits for a reader.
    let mut later = std::fs::OpenOptions::new();
    let later = std::os::unix::fs::OpenOptionsExt::custom_flags(&mut later, libc::O_NONBLOCK);
    let begun = held.place.path("run/begun");
    let mut later = later.read(true).write(true).open(begun).unwrap();
    let others = (1..7).map(|at| begin(&hob, "ann", &format!("guess{at}")));
    let waiting: Vec<_> = [first].into_iter().chain(others).collect();
    // The first is ended by its time; one of the others may have its place for as long.
    for mut connection in waiting {
        assert_eq!(connection.read().unwrap().status, 503);
    }
    let mut processes = [0; 4096];
    let count = std::io::Read::read(&mut later, &mut processes).unwrap_or(0);
    let processes = std::str::from_utf8(&processes[..count]).unwrap();
    for process in processes.split_whitespace() {
        wait_for_end(process.parse().unwrap());
    }
    let until = Instant::now() + DEADLINE;
    let (crowded, late) = loop {
        let log = std::fs::read_to_string(held.place.path("run/access.log")).unwrap();
        let crowded = log.matches("as many ask PAM as may").count();
        let late = log.matches("PAM has not answered").count();
        if crowded + late == 7 {
            break (crowded, late);
        }
        assert!(Instant::now() < until, "{log}");
    };
    assert!(crowded > 0 && late > 0, "{crowded} {late}");
    assert_eq!(held.place.counter("limit_pam"), crowded as u64);
    hob.stop();
}

#[test]
fn guesses_of_who_leaves_count_all_the_same() {
    let held = HeldService::new(false);
    let hob = serve(&held.place, "");
    let guess = |at: u32| format!("guess{at}");
    for at in 0..6 {
        let connection = begin(&hob, "ann", &guess(at));
        held.begun();
        connection.leave();
        held.go_on();
    }
    assert_eq!(held.place.counter("sign_ins_delayed"), 0);
    // It stands in line behind the last, which has been counted then.
    let mut owner = begin(&hob, "ann", &guess(5));
    held.begun();
    held.go_on();
    assert_eq!(owner.read().unwrap().status, 401);
    assert_eq!(held.place.counter("sign_ins_delayed"), 1);
    hob.stop();
}

#[test]
fn right_password_of_who_leaves_is_known_to_who_comes_then() {
    let held = HeldService::new(true);
    let hob = serve(&held.place, "");
    let connection = begin(&hob, "ann", "sesame");
    held.begun();
    let mut next: Vec<_> = (0..10).map(|_| begin(&hob, "ann", "sesame")).collect();
    connection.leave();
    held.go_on();
    for connection in &mut next {
        assert_eq!(connection.read().unwrap().status, 200);
    }
    assert_eq!(held.place.counter("passwords_checked"), 1);
    hob.stop();
}

#[test]
fn what_was_right_is_not_asked_again_until_something_changes() {
    let place = place();
    let hob = serve(&place, ", remember = \"1h\"");
    for _ in 0..3 {
        assert_eq!(status(&hob, "ann", "sesame"), 200);
    }
    assert_eq!(place.counter("passwords_checked"), 1);
    // Nobody has an account any more.
    service(&place, &format!("auth required pam_deny.so\n{ANY_ACCOUNT}"));
    wait_for_status(&hob, "ann", "sesame", 401);
    hob.stop();
}

#[test]
fn reload_ends_what_is_known_and_so_does_no_time_at_all() {
    let place = place();
    let hob = serve(&place, "");
    for _ in 0..2 {
        assert_eq!(status(&hob, "ann", "sesame"), 200);
    }
    assert_eq!(place.counter("passwords_checked"), 1);
    place.write("hob.toml", &config(", remember = \"0s\"", "\"system\""));
    let reloaded = place.run(&["reload", "--config", "hob.toml"]);
    assert!(reloaded.status.success(), "{}", text_of(&reloaded));
    for _ in 0..2 {
        assert_eq!(status(&hob, "ann", "sesame"), 200);
    }
    assert_eq!(place.counter("passwords_checked"), 3);
    hob.stop();
}

#[test]
fn conversation_goes_on_while_the_server_stops() {
    let held = HeldService::new(true);
    let mut hob = serve(&held.place, "");
    let mut connection = begin(&hob, "ann", "sesame");
    held.begun();
    hob.signal(Signal::TERM);
    hob.wait_for("stopping");
    held.go_on();
    let answer = connection.read().unwrap();
    assert_eq!((answer.status, answer.text()), (200, INNER.to_owned()));
    drop(connection);
    assert_eq!(hob.exit_code(), Some(0));
}

#[test]
fn conversation_ends_with_the_server_whose_time_is_over() {
    let held = HeldService::new(true);
    let keys = config("", "\"system\"");
    let mut hob = held.place.serve_text(&format!("drain = \"1s\"\n{keys}"));
    let _connection = begin(&hob, "ann", "sesame");
    let processes = held.begun();
    hob.signal(Signal::TERM);
    hob.exit_code();
    processes.into_iter().for_each(wait_for_end);
}

#[test]
fn reload_lets_a_conversation_go_on() {
    let held = HeldService::new(true);
    let hob = serve(&held.place, "");
    let mut connection = begin(&hob, "ann", "sesame");
    held.begun();
    let reloaded = held.place.run(&["reload", "--config", "hob.toml"]);
    assert!(reloaded.status.success(), "{}", text_of(&reloaded));
    held.go_on();
    assert_eq!(connection.read().unwrap().status, 200);
    hob.stop();
}

#[test]
fn guesses_wait_longer_and_longer() {
    let place = place();
    let hob = serve(&place, "");
    assert_eq!(status(&hob, "bob", "sesame"), 200);
    let guess = |at: u32| -> Answer {
        let fields = basic("ann", format!("guess{at}").as_bytes());
        ask_from_with(&hob, &format!("192.0.2.{at}"), "/inner/a.txt", &fields)
    };
    for at in 0..7 {
        assert_eq!(guess(at).status, 401);
    }
    assert_eq!(place.counter("sign_ins_delayed"), 1);
    // Neither who is known waits, nor another account.
    assert_eq!(status(&hob, "bob", "sesame"), 200);
    assert_eq!(place.counter("sign_ins_delayed"), 1);
    hob.stop();
}

#[test]
fn groups_are_those_of_the_system() {
    let place = place();
    place.script("check", "#!/bin/sh\nexit 0\n");
    let hob = place.serve_text(&config("", "{ auth = \"system\", groups = [\"daemon\"] }"));
    assert_eq!(status(&hob, "daemon", "sesame"), 200);
    for name in ["ann", "nobody"] {
        let path = format!("/inner/a.txt?{name}");
        assert_eq!(get(&hob, &path, name, "sesame").status, 403, "{name}");
        let (reason, _) = reason(&place, &path);
        assert!(
            reason.starts_with("require: the account is none that"),
            "{reason}"
        );
    }
    hob.stop();
}

#[test]
fn programs_are_told_who_has_signed_in() {
    let place = place();
    place.script(
        "cgi/who",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s %s' \"$REMOTE_USER\" \"$AUTH_TYPE\"\n\
         echo \" ${HTTP_AUTHORIZATION-none}\"\n",
    );
    let route = "[[site.route]]\npath = \"/inner/*\"\ncgi = { script = \"cgi/who\" }\n\
        require = \"system\"\n";
    let text = config("", "\"system\"");
    let start = text.find("[[site.route]]").unwrap();
    let end = text.find("[[auth]]").unwrap();
    let hob = place.serve_text(&format!("{}{route}{}", &text[..start], &text[end..]));
    let answer = get(&hob, "/inner/who", "ann", "sesame");
    assert_eq!(
        (answer.status, answer.text()),
        (200, "ann Basic none\n".to_owned())
    );
    assert_eq!(get(&hob, "/inner/who", "ann", "x").status, 401);
    hob.stop();
}

#[test]
fn service_that_is_not_there_is_told_before_anything_starts() {
    let place = place();
    std::fs::remove_file(place.path("pam.d/hob")).unwrap();
    place.write("hob.toml", &config("", "\"system\""));
    for arguments in [
        &["check", "--config", "hob.toml"][..],
        &["serve", "--config", "hob.toml"],
    ] {
        let output = place.run(arguments);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("PAM has no service \"hob\""), "{text}");
    }
    // One that asks for passwords of this machine, which nobody in particular may not read.
    service(
        &place,
        "auth required pam_unix.so\naccount required pam_unix.so\n",
    );
    let text = text_of(&place.run(&["check", "--config", "hob.toml"]));
    assert!(text.contains("may not read /etc/shadow"), "{text}");
    service(
        &place,
        &format!("{}{ANY_ACCOUNT}", checked_by(&place, "check")),
    );
    let text = text_of(&place.run(&["check", "--config", "hob.toml"]));
    assert!(!text.contains("/etc/shadow"), "{text}");
}

#[test]
fn process_that_asks_is_not_started_by_hand() {
    let place = place();
    let output = place.run(&["pam"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output).contains("by hand"), "{}", text_of(&output));
}

#[test]
fn explain_says_what_pam_would_decide() {
    let place = place();
    let rule = "{ auth = \"system\", users = [\"ann\"], groups = [\"lab\"] }";
    place.write("hob.toml", &config("", rule));
    let explain = |user: &[&str]| {
        let mut arguments = vec!["explain", "--config", "hob.toml"];
        arguments.extend(user);
        arguments.extend(["GET", "/inner/a.txt"]);
        text_of(&place.run(&arguments))
    };
    let asked = "where PAM (service \"hob\"), which is not asked here, lets it in";
    let ann = explain(&["--user", "ann"]);
    assert!(ann.contains(asked) && !ann.contains("one of lab"), "{ann}");
    let bob = explain(&["--user", "bob"]);
    assert!(
        bob.contains(&format!("{asked}, and it is in one of lab")),
        "{bob}"
    );
    let nobody = explain(&[]);
    assert!(nobody.contains("nobody has signed in"), "{nobody}");
}
