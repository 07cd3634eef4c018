//! Hosts: how they start, share, notice changes, and die.

use std::collections::BTreeSet;

use crate::compare::{Case, await_settled, serve};
use crate::harness::client::{Connection, call};
use crate::harness::{DEADLINE, send_signal, wait_for_end};
use crate::site::Programs;

const PYTHON: &str = "interpreter = \"python3\"";
const PERL: &str = "interpreter = \"perl\"";

#[test]
fn requests_get_random_numbers_of_their_own() {
    let python =
        "import random, os\nprint('Content-Type: text/plain\\n')\nprint(random.random())\n";
    let perl = "print \"Content-Type: text/plain\\n\\n\", rand;\n";
    let seeded = "BEGIN { srand 1; rand }\nprint \"Content-Type: text/plain\\n\\n\", rand;\n";
    for (keys, name, text) in [
        (
            "interpreter = \"python3\", preload = [\"random\"]",
            "a.py",
            python,
        ),
        (PERL, "a.pl", perl),
        (PERL, "seeded.pl", seeded),
    ] {
        let programs = serve(&[Case::new(name, text)], keys);
        // Until a script is kept compiled each of its runs is a first one, as with CGI.
        let first = programs.text(&format!("/cold/{name}"));
        let path = format!("/warm/{name}");
        let numbers = std::iter::repeat_with(|| programs.text(&path)).take(1000);
        let all: Vec<String> = numbers.filter(|one| *one != first).take(6).collect();
        let different: BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), 6, "{name}: {all:?}");
        programs.stop();
    }
}

#[test]
fn variables_of_one_request_are_not_those_of_the_next() {
    // As the language has them, and as a program that the script starts does.
    let python = "import os, subprocess\nprint('Content-Type: text/plain\\n', flush=True)\n\
                  names = sorted(name for name in os.environ if name.startswith('HTTP_X'))\n\
                  print(*(name + '=' + os.environ[name] for name in names), flush=True)\n\
                  os.system('env | grep -a ^HTTP_X | sort | tr \"\\\\n\" \" \"')\n";
    let perl = "$| = 1; print \"Content-Type: text/plain\\n\\n\";\n\
                print join(' ', map { \"$_=$ENV{$_}\" } grep { /^HTTP_X/ } sort keys %ENV), \"\\n\";\n\
                system 'env | grep -a ^HTTP_X | sort | tr \"\\\\n\" \" \"';\n";
    for (keys, name, text) in [(PYTHON, "a.py", python), (PERL, "a.pl", perl)] {
        let programs = serve(&[Case::new(name, text)], keys);
        let many: String = (10..50).map(|n| format!("X-M{n}: {n}\r\n")).collect();
        for fields in [
            "X-A: 1\r\n",
            "",
            &many,
            "X-B: 2\r\n",
            "X-A: 2\r\n",
            "X-A: 2\r\nX-B: 2\r\n",
            "X-B: =\r\nX-A: 2\r\n",
            "X-B: \r\nX-AA: 2\r\n",
            "X-A: 1\r\n",
        ] {
            let path = format!("/warm/{name}");
            let reply = call(programs.port(), "GET", &path, fields, b"");
            let mut expected: Vec<String> = fields
                .lines()
                .map(|field| field.replacen("-", "_", 1).replacen(": ", "=", 1))
                .map(|field| format!("HTTP_{field}"))
                .collect();
            expected.sort();
            let expected = expected.join(" ");
            let text = reply.answer.text();
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            let seen = [lines.first(), lines.get(1)].map(|line| *line.unwrap_or(&""));
            assert_eq!(seen, [expected.as_str(); 2], "{name} {fields:?}");
        }
        programs.stop();
    }
}

#[test]
fn script_that_changes_is_noticed() {
    for (keys, name, begin) in [
        (PYTHON, "a.py", "print('Content-Type: text/plain\\n')\n"),
        (PERL, "a.pl", "print \"Content-Type: text/plain\\n\\n\";\n"),
    ] {
        let programs = serve(&[Case::new(name, "")], keys);
        let file = programs.path(name);
        for round in 0..4 {
            // The same size each time.
            std::fs::write(&file, format!("{begin}print('round {round}');\n")).unwrap();
            if round % 2 == 0 {
                await_settled(&file);
            }
            for _ in 0..4 {
                let text = programs.text(&format!("/warm/{name}"));
                assert_eq!(text.trim_end(), format!("round {round}"), "{name}");
            }
        }
        programs.stop();
    }
}

#[test]
fn perl_script_is_compiled_once_and_python_code_is_kept() {
    let text = "our $compiled_in; BEGIN { $compiled_in = $$ }\n\
                print \"Content-Type: text/plain\\n\\n\", $compiled_in;\n";
    let programs = serve(&[Case::new("a.pl", text)], PERL);
    let until = std::time::Instant::now() + DEADLINE;
    // The template is made beside the first requests.
    while programs.text("/warm/a.pl") != programs.text("/warm/a.pl") {
        assert!(std::time::Instant::now() < until, "never compiled once");
    }
    programs.stop();
}

#[test]
fn module_that_cannot_be_loaded_or_starts_threads_is_the_reason() {
    for (keys, name, reason) in [
        (
            "interpreter = \"python3\", preload = [\"no_such\"]",
            "a.py",
            "No module named 'no_such'",
        ),
        (
            "interpreter = \"perl\", preload = [\"No::Such\"]",
            "a.pl",
            "Can't locate No/Such.pm",
        ),
        (
            "interpreter = \"python3\", preload = [\"json\", \"busy\"]",
            "a.py",
            "warm.preload: the module 'busy' starts threads",
        ),
    ] {
        let busy = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n";
        let programs = serve(&[Case::new(name, ""), Case::new("busy.py", busy)], keys);
        let path = format!("/warm/{name}");
        for _ in 0..2 {
            assert_eq!(programs.get(&path).answer.status, 502);
        }
        let record = programs.record(&path);
        assert_eq!(record["reason"], "the warm interpreter does not start");
        assert_eq!(record["fault"], "script");
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.contains(reason), "{detail}");
        programs.stop();
    }
}

/// The process of the host, which is the parent of what it forks.
pub(crate) fn host_of(programs: &Programs, path: &str) -> u32 {
    programs.text(path).trim().parse().unwrap()
}

#[test]
fn host_that_is_killed_is_told_of_and_started_again() {
    let programs = serve(
        &[
            Case::new(
                "parent.py",
                "import os\nprint('Content-Type: text/plain\\n')\nprint(os.getppid())\n",
            ),
            Case::new(
                "waits.py",
                "import os, time\nif os.fork() == 0:\n    os.setsid()\n    open('pid', 'w').write('%d\\n' % os.getpid())\ntime.sleep(1000)\n",
            ),
        ],
        PYTHON,
    );
    let host = host_of(&programs, "/warm/parent.py");
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get("/warm/waits.py").unwrap();
    let waiting = crate::compare::number_in(&programs, "pid");
    send_signal(host, rustix::process::Signal::KILL);
    let answer = connection.read().unwrap();
    assert_eq!(answer.status, 502);
    // What it had forked ends with it, wherever it went.
    wait_for_end(waiting);
    let record = programs.record("/warm/waits.py");
    assert_eq!(
        record["reason"],
        "the warm interpreter died, and the script with it"
    );
    let until = std::time::Instant::now() + DEADLINE;
    while programs.get("/warm/parent.py").answer.status != 200 {
        assert!(std::time::Instant::now() < until, "no other host");
    }
    assert_ne!(host_of(&programs, "/warm/parent.py"), host);
    programs.stop();
}

#[test]
fn script_is_ended_when_its_time_is_up_with_all_it_started() {
    let waits = "import os, signal, sys, time\n\
                 signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                 child = os.fork()\n\
                 if child == 0:\n    os.setsid()\n    os.fork() and os._exit(0)\n    \
                 open('grandchild', 'w').write('%d\\n' % os.getpid())\n    time.sleep(1000)\n\
                 open('pid', 'w').write('%d\\n' % os.getpid())\n\
                 time.sleep(1000)\n";
    let other = "import os\nprint('Content-Type: text/plain\\n')\nprint(os.getppid())\n";
    let cases = [Case::new("waits.py", waits), Case::new("parent.py", other)];
    let keys = "interpreter = \"python3\", first_byte = \"2s\", grace = \"100ms\"";
    let programs = serve(&cases, keys);
    let host = host_of(&programs, "/warm/parent.py");
    let reply = programs.get("/warm/waits.py");
    assert_eq!(reply.answer.status, 504);
    for name in ["pid", "grandchild"] {
        wait_for_end(crate::compare::number_in(&programs, name));
    }
    assert_eq!(
        host_of(&programs, "/warm/parent.py"),
        host,
        "the host is as before"
    );
    programs.stop();
}

#[test]
fn client_that_leaves_ends_the_script() {
    let waits = "$SIG{TERM} = sub { print STDERR \"asked\\n\"; exit }; open my $f, '>', 'pid'; \
                 print $f \"$$\\n\"; close $f; sleep 1000;\n";
    let programs = serve(&[Case::new("waits.pl", waits)], PERL);
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get("/warm/waits.pl").unwrap();
    let pid = crate::compare::number_in(&programs, "pid");
    connection.leave();
    wait_for_end(pid);
    programs.hob().wait_for("stderr: asked");
    assert_eq!(programs.record("/warm/waits.pl")["outcome"], "client-left");
    programs.stop();
}

#[test]
fn daemon_survives_the_script_that_started_it() {
    let starts = "import os, subprocess\nprint('Content-Type: text/plain\\n')\n\
                  daemon = subprocess.Popen(['sleep', '1000'], start_new_session=True,\n\
                  \x20   stdin=-3, stdout=-3, stderr=-3)\n\
                  print(daemon.pid)\n";
    let programs = serve(&[Case::new("starts.py", starts)], PYTHON);
    let daemon: u32 = programs.text("/warm/starts.py").trim().parse().unwrap();
    assert!(std::path::Path::new(&format!("/proc/{daemon}")).exists());
    programs.stop();
    wait_for_end(daemon);
}

#[test]
fn body_of_unknown_length_is_a_file_with_a_length() {
    let text = "import os, sys\nprint('Content-Type: text/plain\\n')\n\
                print(os.environ['CONTENT_LENGTH'], len(sys.stdin.read()), sys.stdin.seekable())\n";
    let programs = serve(&[Case::new("a.py", text)], PYTHON);
    let body = vec![b'x'; 200_000];
    let chunked = [
        format!("{:x}\r\n", body.len()).as_bytes(),
        &body,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    for handler in ["cold", "warm"] {
        let head = format!(
            "POST /{handler}/a.py HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        );
        let request = [head.as_bytes(), &chunked].concat();
        let reply = crate::harness::client::exchange(programs.port(), &request);
        assert_eq!(reply.answer.text(), "200000 200000 True\n", "{handler}");
    }
    programs.stop();
}

#[test]
fn environment_too_long_for_a_packet_arrives_whole() {
    let text = "import os\nprint('Content-Type: text/plain\\n')\n\
                print(len(os.environ['LONG']), os.environ['QUERY_STRING'])\n";
    let long = "y".repeat(110_000);
    for (interpreter, name, text) in [
        ("python3", "a.py", text),
        (
            "perl",
            "a.pl",
            "print \"Content-Type: text/plain\\n\\n\", length $ENV{LONG}, ' ', $ENV{QUERY_STRING}, \"\\n\";\n",
        ),
    ] {
        let keys = format!("interpreter = \"{interpreter}\", env = {{ LONG = \"{long}\" }}");
        let programs = serve(&[Case::new(name, text)], &keys);
        for _ in 0..3 {
            assert_eq!(programs.text(&format!("/warm/{name}?q")), "110000 q\n");
        }
        programs.stop();
    }
}

#[test]
fn host_that_hangs_while_it_starts_ends_when_nobody_wants_it() {
    let hangs = "import os, time\nwith open('slow.new', 'w') as file:\n    file.write(str(os.getpid()))\n\
                 os.rename('slow.new', 'slow.pid')\nwhile True:\n    time.sleep(1000)\n";
    let keys = "interpreter = \"python3\", preload = [\"slow\"]";
    let programs = serve(&[Case::new("a.py", ""), Case::new("slow.py", hangs)], keys);
    let written = programs.path("slow.pid");
    crate::pool::wait_for_file(&written);
    let host: u32 = std::fs::read_to_string(written).unwrap().parse().unwrap();
    let config = programs.place.path("hob.toml");
    let served = std::fs::read_to_string(&config).unwrap();
    programs.reload(&served.replace(keys, "interpreter = \"python3\""));
    wait_for_end(host);
    programs.stop();
}

#[test]
fn hosts_are_kept_over_a_reload_and_end_when_nobody_wants_them() {
    let text = "import os\nprint('Content-Type: text/plain\\n')\nprint(os.getppid())\n";
    let programs = serve(&[Case::new("parent.py", text)], PYTHON);
    let host = host_of(&programs, "/warm/parent.py");
    let config = programs.place.path("hob.toml");
    let written = std::fs::read_to_string(&config).unwrap();
    programs.reload(&format!(
        "{written}\n[[site.route]]\npath = \"/more\"\nrespond = {{ body = \"more\" }}\n"
    ));
    assert_eq!(host_of(&programs, "/warm/parent.py"), host);
    programs.reload(&written.replace(PYTHON, "interpreter = \"python3\", preload = [\"json\"]"));
    wait_for_end(host);
    // The other one is there without being asked for.
    let (other, _) = crate::lives::ready(&programs, 0, |pid| pid != host);
    assert_eq!(host_of(&programs, "/warm/parent.py"), other);
    assert_eq!(programs.place.counter("warm_crashes"), 0);
    programs.stop();
}
