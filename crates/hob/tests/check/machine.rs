//! What the machine refuses of a config: `check` and `serve` tell it in the same words, at the same
//! place.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Output};

use super::harness::{Place, User, datagram_port, is_root, text_of};

const SITE: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[site]]\nroot = \"site\"\n";

/// A config that is refused.
struct Case {
    /// What is wrong with it.
    name: &'static str,
    prepare: fn(&Place),
    config: String,
    /// The report, with `DIR` for the folder; of more lines than these only these are looked for.
    told: &'static str,
}

fn case(name: &'static str, prepare: fn(&Place), config: String, told: &'static str) -> Case {
    Case {
        name,
        prepare,
        config,
        told,
    }
}

/// Writes a config as it stands: the places in it are what is tested.
pub(super) fn write_config(place: &Place, text: &str) {
    std::fs::write(place.path("hob.toml"), text).unwrap();
}

fn mode(place: &Place, name: &str, mode: u32) {
    std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
}

pub(super) fn script(place: &Place, name: &str, text: &str, bits: u32) {
    place.script(name, text);
    mode(place, name, bits);
}

fn openssl(arguments: &[&str]) {
    let made = Command::new("openssl").args(arguments).output().unwrap();
    assert!(made.status.success(), "{}", text_of(&made));
}

fn tls(certificate: &str, key: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ certificate = \"{certificate}\", key = \
         \"{key}\" }}\n\n[[site]]\nnames = [\"one.test\"]\nroot = \"site\"\n"
    )
}

pub(super) fn route(keys: &str) -> String {
    format!("{SITE}\n[[site.route]]\npath = \"/x/*\"\n{keys}\n")
}

/// What a command said of the config, without what comes before and behind it.
pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All are refused, for whoever is nobody in particular.
fn all_refused<const COUNT: usize>(cases: [Case; COUNT]) {
    for case in cases {
        refused(&Place::new(), &case);
    }
}

/// Both refuse it, with this report and nothing else.
fn refused(place: &Place, case: &Case) {
    (case.prepare)(place);
    write_config(place, &case.config);
    let folder = place.path("").display().to_string();
    let owner = std::fs::metadata(place.path("run")).unwrap();
    let told = case.told.replace("DIR", folder.trim_end_matches('/'));
    let told = told.replace("UID", &owner.uid().to_string());
    let told = told.replace("GID", &owner.gid().to_string());
    for command in [&["check"][..], &["serve"]] {
        let output = place.run(command);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{}: {said}", case.name);
        assert_eq!(
            said.trim_end(),
            told.trim_end(),
            "{}: {command:?}",
            case.name
        );
    }
}

fn nothing(_: &Place) {}

#[test]
fn certificates_that_serve_refuses_are_told_at_their_place() {
    all_refused([
        case(
            "no certificate",
            |place| {
                place.certificate("one", "one.test");
                place.write("none.pem", "nothing\n");
            },
            tls("none.pem", "one.key"),
            "hob.toml:3:23: error: DIR/none.pem with DIR/one.key: there is no certificate in it \
             (PEM, `BEGIN CERTIFICATE`)
 3 | tls = { certificate = \"none.pem\", key = \"one.key\" }
   |                       ^^^^^^^^^^
   do: write the file of the whole chain, as PEM
1 error",
        ),
        case(
            "key of another certificate",
            |place| {
                place.certificate("one", "one.test");
                place.certificate("two", "two.test");
            },
            tls("one.pem", "two.key"),
            "hob.toml:3:40: error: DIR/one.pem with DIR/two.key: the private key belongs to \
             another certificate
 3 | tls = { certificate = \"one.pem\", key = \"two.key\" }
   |                                        ^^^^^^^^^
   do: write the key that the certificate was made with
1 error",
        ),
        case(
            "key that cannot be read",
            |place| {
                place.certificate("one", "one.test");
                mode(place, "one.key", 0o000);
            },
            tls("one.pem", "one.key"),
            "hob.toml:3:40: error: cannot read DIR/one.key: Permission denied (os error 13)
 3 | tls = { certificate = \"one.pem\", key = \"one.key\" }
   |                                        ^^^^^^^^^
   do: let the user that starts hob read it
1 error",
        ),
        case(
            "file that is no key",
            |place| {
                place.certificate("one", "one.test");
                place.write("none.key", "nothing\n");
            },
            tls("one.pem", "none.key"),
            "hob.toml:3:40: error: DIR/one.pem with DIR/none.key: the private key cannot be read: \
             no items found
 3 | tls = { certificate = \"one.pem\", key = \"none.key\" }
   |                                        ^^^^^^^^^^
   do: write the file of the private key, as PEM
1 error",
        ),
    ]);
}

#[test]
fn scripts_that_cannot_run_are_told_at_their_place() {
    all_refused([
        case(
            "script that is not executable",
            |place| script(place, "x.cgi", "#!/bin/sh\n", 0o644),
            route("cgi = { script = \"x.cgi\" }"),
            "hob.toml:9:18: error: DIR/x.cgi is not executable
 9 | cgi = { script = \"x.cgi\" }
   |                  ^^^^^^^
   do: `chmod +x` it, or give its ending an interpreter
1 error",
        ),
        case(
            "script whose interpreter is not there",
            |place| script(place, "x.cgi", "#!/usr/bin/perl7 -w\n", 0o755),
            route("cgi = { script = \"x.cgi\" }"),
            "hob.toml:9:18: error: DIR/x.cgi cannot be executed: there is no interpreter \
             \"/usr/bin/perl7\", which its first line names
 9 | cgi = { script = \"x.cgi\" }
   |                  ^^^^^^^
   do: mend its first line
1 error",
        ),
        case(
            "script with CR LF",
            |place| script(place, "x.cgi", "#!/bin/sh\r\necho\r\n", 0o755),
            route("cgi = { script = \"x.cgi\" }"),
            "hob.toml:9:18: error: DIR/x.cgi cannot be executed: its first line ends with CR LF, \
             so its interpreter is \"/bin/sh\\r\"; save it with LF alone
 9 | cgi = { script = \"x.cgi\" }
   |                  ^^^^^^^
   do: mend its first line
1 error",
        ),
        case(
            "program that is not executable",
            |place| script(place, "stock", "#!/bin/sh\n", 0o644),
            route("resident = { run = [\"./stock\"] }"),
            "hob.toml:9:20: error: DIR/stock is not executable
 9 | resident = { run = [\"./stock\"] }
   |                    ^^^^^^^^^^^
   do: `chmod +x` it, or name another program
1 error",
        ),
    ]);
}

#[test]
fn what_the_server_itself_cannot_have_is_told_at_its_place() {
    all_refused([
        case(
            "user that is not there",
            nothing,
            format!("user = \"no-such-user\"\n{SITE}"),
            "hob.toml:1:8: error: no user `no-such-user` on this machine
 1 | user = \"no-such-user\"
   |        ^^^^^^^^^^^^^^
   do: check the name
1 error",
        ),
        case(
            "folder of the control socket that others may enter",
            |place| mode(place, "run", 0o755),
            format!("control = \"run/control.sock\"\n{SITE}"),
            "hob.toml:1:11: error: no control socket at DIR/run/control.sock: its folder DIR/run \
             belongs to user UID and has mode 755
 1 | control = \"run/control.sock\"
   |           ^^^^^^^^^^^^^^^^^^
   do: it must be yours and 0700 (chmod 700 DIR/run)
1 error",
        ),
        case(
            "log that cannot be written",
            |place| {
                place.folder("logs");
                mode(place, "logs", 0o500);
            },
            format!("[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\n{SITE}"),
            "hob.toml:3:8: error: cannot open the access log DIR/logs/access.log: DIR/logs cannot \
             be written to by user UID: it has mode 500 and belongs to user UID and group GID
 3 | file = \"logs/access.log\"
   |        ^^^^^^^^^^^^^^^^^
   do: allow it to user UID (`chmod o+w DIR/logs`, or another owner or group)
1 error",
        ),
    ]);
}

/// What is served all the same: `check` exits 0 and warns, and so does the log of `serve`.
fn warned(place: &Place, config: &str, first_line: &str) {
    write_config(place, config);
    let first_line = first_line.replace(
        "DIR",
        place.path("").display().to_string().trim_end_matches('/'),
    );
    let output = place.run(&["check"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.lines().any(|line| line == first_line),
        "{first_line}\nin {said}"
    );
    let json: serde_json::Value =
        serde_json::from_slice(&place.run(&["check", "--json"]).stdout).unwrap();
    let told = json["warnings"].as_array().unwrap().iter();
    let mut messages = told.map(|warning| warning["message"].as_str().unwrap());
    assert!(
        messages.any(|message| first_line.ends_with(message)),
        "{json}"
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    hob.wait_for(&first_line);
    hob.stop();
}

#[test]
fn certificates_that_browsers_refuse_are_warned_of() {
    let place = Place::new();
    place.certificate("two", "two.test");
    warned(
        &place,
        &tls("two.pem", "two.key"),
        "hob.toml:3:23: warning: DIR/two.pem: the certificate is not for one.test; it is for \
         two.test",
    );
}

/// A request for a certificate of `one.test`, and what `openssl ca` signs it with by `two.pem`.
fn prepare_authority(place: &Place) {
    let path = |name: &str| place.path(name).display().to_string();
    openssl(&[
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=one.test",
        "-keyout",
        &path("one.key"),
        "-out",
        &path("one.csr"),
    ]);
    mode(place, "one.key", 0o644);
    place.write("names", "subjectAltName=DNS:one.test\n");
    place.write("index", "");
    place.write("serial", "01\n");
    place.write(
        "ca.conf",
        &format!(
            "[ca]\ndefault_ca=one\n[one]\nnew_certs_dir={0}\ndatabase={1}\nserial={2}\n\
             default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n",
            path(""),
            path("index"),
            path("serial")
        ),
    );
}

#[test]
fn certificates_that_are_not_good_now_or_not_whole_are_warned_of() {
    let place = Place::new();
    place.certificate("two", "two.test");
    prepare_authority(&place);
    let path = |name: &str| place.path(name).display().to_string();
    let sign = |begin: &str, end: &str| {
        place.write("index", "");
        openssl(&[
            "ca",
            "-batch",
            "-notext",
            "-config",
            &path("ca.conf"),
            "-cert",
            &path("two.pem"),
            "-keyfile",
            &path("two.key"),
            "-in",
            &path("one.csr"),
            "-extfile",
            &path("names"),
            "-startdate",
            begin,
            "-enddate",
            end,
            "-out",
            &path("one.pem"),
        ]);
    };
    let config = tls("one.pem", "one.key");
    sign("20240101000000Z", "20240201000000Z");
    warned(
        &place,
        &config,
        "hob.toml:3:23: warning: DIR/one.pem: the certificate expired on 2024-02-01",
    );
    sign("20990101000000Z", "20990201000000Z");
    warned(
        &place,
        &config,
        "hob.toml:3:23: warning: DIR/one.pem: the certificate is not good before 2099-01-01",
    );
    warned(
        &place,
        &config,
        "hob.toml:3:23: warning: DIR/one.pem: the certificate stands alone, without that of \
         \"CN=two.test\", who signed it",
    );
    let whole =
        ["one.pem", "two.pem"].map(|name| std::fs::read_to_string(place.path(name)).unwrap());
    let one = &whole[0][whole[0].find("-----BEGIN").unwrap()..];
    place.write("one.pem", &format!("{one}{}", whole[1]));
    let output = place.run(&["check"]);
    assert!(!said(&output).contains("stands alone"), "{}", said(&output));
    place.write("one.pem", &format!("{one}{one}"));
    warned(
        &place,
        &config,
        "hob.toml:3:23: warning: DIR/one.pem: the certificate of \"CN=one.test\" follows that of \
         \"CN=one.test\", which \"CN=two.test\" signed",
    );
}

#[test]
fn scripts_of_a_folder_that_cannot_run_are_warned_of() {
    let place = Place::new();
    place.folder("cgi");
    script(&place, "cgi/good.cgi", "#!/bin/sh\n", 0o755);
    script(&place, "cgi/notes.txt", "no script\n", 0o644);
    script(&place, "cgi/shut.cgi", "#!/bin/sh\n", 0o644);
    script(&place, "cgi/old.cgi", "#!/usr/bin/perl4\n", 0o755);
    script(&place, "cgi/lib.py", "#!/usr/bin/nothing\n", 0o644);
    let config = route("cgi = { dir = \"cgi\", interpreters = { \".py\" = \"python3\" } }");
    for line in [
        "hob.toml:9:15: warning: DIR/cgi/shut.cgi is not executable",
        "hob.toml:9:15: warning: DIR/cgi/old.cgi cannot be executed: there is no interpreter \
         \"/usr/bin/perl4\", which its first line names",
    ] {
        warned(&place, &config, line);
    }
    assert_eq!(said(&place.run(&["check"])).matches("warning").count(), 2);
}

#[test]
fn limits_that_the_system_does_not_give_are_told() {
    let place = Place::new();
    write_config(
        &place,
        &route("cgi = { command = [\"id\"], rlimits = { nofile = 1000 } }"),
    );
    let limited = |command: &str| {
        let mut limited = place.command_of("prlimit".as_ref());
        limited.arg("--nofile=400:400").arg(place.path("hob"));
        limited.arg(command).output().unwrap()
    };
    for command in ["check", "serve"] {
        let output = limited(command);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(
                "hob.toml:9:48: error: the system gives `nofile` only up to 400, not 1000\n"
            ),
            "{said}"
        );
    }
    write_config(&place, &format!("{SITE}\n[limits]\nconnections = 300\n"));
    let output = limited("check");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains(
            "hob.toml:8:15: warning: limits.connections: 200 connections may be open, not 300"
        ),
        "{}",
        said(&output)
    );
}

#[test]
fn address_of_another_is_an_error_and_one_of_its_own_server_is_not() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    write_config(&place, &SITE.replace("127.0.0.1:0", &address.to_string()));
    let message = format!("hob.toml:2:11: error: cannot bind to {address}: Address already in use");
    // A server that cannot have an address may be started again for that.
    for (command, code) in [("check", 2), ("serve", 1)] {
        let output = place.run(&[command]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(&message), "{said}");
        assert!(said.contains("do: another process listens there"), "{said}");
    }
    let elsewhere = format!(
        "user = \"no-such-user\"\n{}",
        SITE.replace("127.0.0.1:0", &address.to_string())
    );
    write_config(&place, &elsewhere);
    let output = place.run(&["check", "--no-machine"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    write_config(
        &place,
        "control = \"own/control.sock\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"unix:web.sock\"\n[[site]]\nroot = \"site\"\n",
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    for command in [&["check"][..], &["reload", "--config", "hob.toml"]] {
        let output = place.run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    }
    // Another config's server cannot have it.
    std::fs::copy(place.path("hob.toml"), place.path("second.toml")).unwrap();
    let output = place.run(&["check", "--config", "second.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let message = "second.toml:5:11: error: cannot listen on unix:";
    assert!(said(&output).contains(message), "{}", said(&output));
    assert!(
        said(&output).contains("another hob does") && said(&output).contains("`hob stop "),
        "{}",
        said(&output)
    );
    hob.stop();
}

/// A place of root's own; none when the tests do not run as root.
pub(super) fn place_of_root() -> Option<Place> {
    if !is_root() {
        println!("skipped: needs root");
        return None;
    }
    Some(Place::for_user(User::Same))
}

#[test]
fn root_is_told_which_accounts_cannot_be() {
    if place_of_root().is_none() {
        return;
    }
    for case in [
        case(
            "no server as root",
            nothing,
            format!("user = \"root\"\n{SITE}"),
            "hob.toml:1:8: error: the server never runs as root
 1 | user = \"root\"
   |        ^^^^^^
   do: name another `user`
1 error",
        ),
        case(
            "no program as root, told once for two routes",
            |place| script(place, "x.cgi", "#!/bin/sh\n", 0o755),
            format!(
                "[program]\nuser = \"root\"\n\n{}{}",
                route("cgi = { script = \"x.cgi\" }"),
                "[[site.route]]\npath = \"/y/*\"\ncgi = { script = \"x.cgi\" }\n"
            ),
            "hob.toml:2:8: error: a program never runs as root
 2 | user = \"root\"
   |        ^^^^^^
   do: name another `user`
1 error",
        ),
        case(
            "user of a program that is not there",
            |place| script(place, "x.cgi", "#!/bin/sh\n", 0o755),
            route("cgi = { script = \"x.cgi\", user = \"no-such-user\" }"),
            "hob.toml:9:34: error: no user `no-such-user` on this machine
 9 | cgi = { script = \"x.cgi\", user = \"no-such-user\" }
   |                                  ^^^^^^^^^^^^^^
   do: check the name
1 error",
        ),
    ] {
        refused(&Place::for_user(User::Same), &case);
    }
}

#[test]
fn root_is_told_what_accounts_cannot_do() {
    if place_of_root().is_none() {
        return;
    }
    for case in [
        case(
            "root that the server cannot enter",
            |place| mode(place, "site", 0o700),
            format!("user = \"nobody\"\n{SITE}"),
            "hob.toml:6:8: error: DIR/site cannot be entered by `nobody`: it has mode 700 and \
             belongs to user 0 and group 0
 6 | root = \"site\"
   |        ^^^^^^
   do: allow it to `nobody` (`chmod o+x DIR/site`, or another owner or group)
1 error",
        ),
        case(
            "folder on the way to a program",
            |place| {
                place.folder("home");
                place.folder("home/app");
                script(place, "home/app/x.cgi", "#!/bin/sh\n", 0o755);
                mode(place, "home", 0o750);
            },
            route("cgi = { script = \"home/app/x.cgi\", user = \"daemon\" }"),
            "hob.toml:9:18: error: DIR/home/app cannot be entered by `daemon`: DIR/home has mode \
             750 and belongs to user 0 and group 0
 9 | cgi = { script = \"home/app/x.cgi\", user = \"daemon\" }
   |                  ^^^^^^^^^^^^^^^^
   do: allow it to `daemon` (`chmod o+x DIR/home`, or another owner or group)
1 error",
        ),
        case(
            "script of the owner alone",
            |place| script(place, "x.cgi", "#!/bin/sh\n", 0o700),
            route("cgi = { script = \"x.cgi\", user = \"daemon\" }"),
            "hob.toml:9:18: error: DIR/x.cgi cannot be executed by `daemon`: it has mode 700 and \
             belongs to user 0 and group 0
 9 | cgi = { script = \"x.cgi\", user = \"daemon\" }
   |                  ^^^^^^^
   do: allow it to `daemon` (`chmod o+x DIR/x.cgi`, or another owner or group)
1 error",
        ),
    ] {
        refused(&Place::for_user(User::Same), &case);
    }
}

#[test]
fn root_is_told_who_has_an_address() {
    let Some(place) = place_of_root() else {
        return;
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    write_config(&place, &SITE.replace("127.0.0.1:0", &address));
    let who = format!("has it (process {})\n", std::process::id());
    for command in ["check", "serve"] {
        let said = said(&place.run(&[command]));
        assert!(said.contains(&who), "{said}");
    }
    drop(taken);
    let (_taken, address) = datagram_port();
    place.certificate("one", "one.test");
    let config = tls("one.pem", "one.key").replace("127.0.0.1:0", &address);
    write_config(&place, &config);
    for command in ["check", "serve"] {
        let said = said(&place.run(&[command]));
        assert!(said.contains("for HTTP/3 (UDP)"), "{said}");
        assert!(said.contains(&who), "{said}");
    }
}

#[test]
fn cpus_that_are_not_there_are_told_at_their_place() {
    let hint = "name CPUs that `nproc --all` counts, from 0, and that the control group allows";
    let place = Place::new();
    place.write_config("", "site");
    let report = |place: &str, line: &str, marks: &str, cpus: &str| {
        format!(
            "hob.toml:{place}: error: CPUs that hob cannot run on here: {cpus}\n {line}\n   | \
             {marks}\n   do: {hint}\n1 error"
        )
    };
    let own = report(
        "1:8",
        "1 | cpus = [\"1000-1001\"]",
        "       ^^^^^^^^^^^^^",
        "1000, 1001",
    );
    let own: &str = Box::leak(own.into_boxed_str());
    let of_program = report("2:8", "2 | cpus = [1000]", "       ^^^^^^", "1000");
    let of_program: &str = Box::leak(of_program.into_boxed_str());
    let script = |place: &Place| {
        place.folder("bin");
        script(place, "bin/a", "#!/bin/sh\n", 0o755);
    };
    let with_program = format!("[program]\ncpus = [1000]\n{}", route("cgi = \"bin\""));
    all_refused([
        case(
            "of the server",
            nothing,
            format!("cpus = [\"1000-1001\"]\n{SITE}"),
            own,
        ),
        case("of programs", script, with_program, of_program),
    ]);
    write_config(&place, &format!("cpus = [0, 1000]\n{SITE}"));
    let output = place.run(&["check"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let warning = "hob.toml:1:8: warning: CPUs that hob cannot run on here: 1000";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn key_of_an_account_at_the_authority_is_told_at_its_place() {
    let place = Place::new();
    place.write("eab.key", "<none>\n");
    let account = "[acme]\ncontact = [\"mailto:a@one.test\"]\n\
                   external_account = { id = \"x\", key = \"eab.key\" }\n";
    let listener = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"auto\"\n\
                    [[site]]\nnames = [\"one.test\"]\nroot = \"site\"\n";
    write_config(&place, &format!("{account}{listener}"));
    let output = place.run(&["check"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("hob.toml:3:38: error: "), "{said}");
    assert!(said.contains("eab.key: this is no key"), "{said}");
}
