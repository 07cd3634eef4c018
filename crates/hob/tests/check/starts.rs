//! Programs that stay, which `check` starts once.

use super::harness::client::get;
use super::harness::{Place, text_of, wait_for_end};
use super::machine::{place_of_root, route, said, script, write_config};

#[test]
fn application_that_does_not_start_is_told_with_its_last_line() {
    let place = Place::new();
    place.write("good.py", "def application(environ, start): pass\n");
    place.write("bad.py", "import nothing_of_this_name\n");
    place.write(
        "slow.py",
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n",
    );
    let check = |keys: &str, arguments: &[&str]| {
        write_config(&place, &route(&format!("resident = {{ {keys} }}")));
        place.run(&[&["check"], arguments].concat())
    };
    for (keys, why) in [
        (
            "wsgi = \"nothere:application\"",
            "ModuleNotFoundError: No module named 'nothere' (exit code 1)",
        ),
        (
            "wsgi = \"bad:application\"",
            "ModuleNotFoundError: No module named 'nothing_of_this_name' (exit code 1)",
        ),
        (
            "asgi = \"bad:application\"",
            "ModuleNotFoundError: No module named 'nothing_of_this_name' (exit code 1)",
        ),
        (
            "wsgi = \"good:other\"",
            "hob: module 'good' has no 'other' ('good:other') (exit code 1)",
        ),
        (
            "wsgi = \"slow:application\", timeout = { start = \"3s\" }",
            "it is not ready after 3 s",
        ),
    ] {
        let output = check(keys, &[]);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        let line = format!("hob.toml:9:21: error: a worker did not start: {why}\n");
        assert!(told.contains(&line), "{line}in {told}");
        assert!(told.contains("\n1 error"), "{told}");
        // Nothing is started, and nothing of it told.
        let output = check(keys, &["--no-start"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    // One that is too slow is ended.
    let pid = std::fs::read_to_string(place.path("pid")).unwrap();
    wait_for_end(pid.parse().unwrap());
    let output = check("wsgi = \"good:application\"", &[]);
    assert_eq!(
        (output.status.code(), text_of(&output).as_str()),
        (Some(0), "hob.toml: no errors\n")
    );
    check("wsgi = \"bad:application\"", &[]);
    // A server serves its other routes, and says the same.
    let hob = place.serve(&["--config", "hob.toml"]);
    hob.wait_for(
        "hob.toml:9:21: a worker did not start: ModuleNotFoundError: No module named \
         'nothing_of_this_name' (exit code 1)",
    );
    assert_eq!(
        get(hob.clear_port(), "/hello.txt").unwrap().text(),
        "hello\n"
    );
    hob.stop();
}

#[test]
fn program_that_stays_is_started_whatever_it_is_written_in() {
    let place = Place::new();
    place.write("bad.py", "import nothing_of_this_name\n");
    place.write("bad.pl", "use Nothing::Of::This::Name;\n");
    script(
        &place,
        "bad.sh",
        "#!/bin/sh\necho no such device >&2\nexit 3\n",
        0o755,
    );
    place.write(
        "good.py",
        "import hob\nfor request in hob.requests():\n    pass\n",
    );
    place.folder("scripts");
    place.write(
        "scripts/any.pl",
        "print \"Content-Type: text/plain\\n\\n\";\n",
    );
    let check = |keys: &str| {
        write_config(&place, &route(&format!("resident = {{ {keys} }}")));
        let output = place.run(&["check"]);
        (output.status.code(), said(&output))
    };
    for (keys, why) in [
        (
            "python = \"bad.py\"",
            "ModuleNotFoundError: No module named 'nothing_of_this_name' (exit code 1)",
        ),
        (
            "perl = \"bad.pl\"",
            "Can't locate Nothing/Of/This/Name.pm in @INC",
        ),
        ("run = [\"./bad.sh\"]", "no such device (exit code 3)"),
    ] {
        let (code, told) = check(keys);
        assert_eq!(code, Some(2), "{keys}: {told}");
        let line = format!("error: a worker did not start: {why}");
        assert!(told.contains(&line), "{line} in {told}");
        assert!(told.contains("\n1 error"), "{told}");
    }
    for keys in [
        "python = \"good.py\"",
        "scripts = \"scripts\"",
        // Nothing tells when it is ready.
        "run = [\"./bad.sh\"], carrier = \"lines\"",
    ] {
        let (code, told) = check(keys);
        assert_eq!(code, Some(0), "{keys}: {told}");
    }
}

#[test]
fn application_is_started_as_the_account_of_its_program() {
    let Some(place) = place_of_root() else {
        return;
    };
    place.write("who.py", "import os\nraise Exception(str(os.getuid()))\n");
    write_config(
        &place,
        &route("resident = { wsgi = \"who:application\", user = \"65534\" }"),
    );
    let output = place.run(&["check"]);
    assert!(
        said(&output).contains("hob.toml:9:21: error: a worker did not start: Exception: 65534 "),
        "{}",
        said(&output)
    );
}
