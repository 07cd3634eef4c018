//! Programs that run as the account whose folder they are in, and those that do not run.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::accounts::{FIRST, Machine, WHO};
use super::harness::client::{Answer, get};
use super::harness::{DEADLINE, Hob, text_of};

const TOP: &str = "[cache]\nrecheck = \"50ms\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n";
const CGI: &str = "[[site.route]]\npath = \"/{user}/cgi/*\"\n\
    cgi = { dir = \"home/{user}/cgi\", user = \"{user}\", interpreters = { \".sh\" = \"/bin/sh\" } }\n";

/// Accounts with a program each.
fn machine(names: &[&str]) -> Option<Machine> {
    let machine = Machine::new(names)?;
    for name in names {
        machine.folder(name, "cgi");
        machine.program(name, "cgi/who", WHO);
    }
    Some(machine)
}

fn who(hob: &Hob, path: &str) -> Answer {
    get(hob.port(), path).unwrap()
}

/// What [`WHO`] prints for the account with this name and number.
fn is(name: &str, id: u32) -> String {
    format!("{name}\n{id}\n{id}\n")
}

/// The program does not run, for this reason, which the log has.
fn refused(hob: &Hob, path: &str, reason: &str) {
    let seen = hob.printed().matches(reason).count();
    let answer = who(hob, path);
    assert_eq!(answer.status, 403, "{path}: {}", answer.text());
    hob.wait_for_count(reason, seen + 1);
}

#[test]
fn each_program_runs_as_the_account_whose_folder_it_is_in() {
    let names: Vec<String> = (0..200).map(|number| format!("user{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(machine) = machine(&names) else {
        return;
    };
    let hob = machine.serve(&format!("{TOP}{CGI}"));
    for (id, name) in (FIRST..).zip(&names) {
        let answer = who(&hob, &format!("/{name}/cgi/who"));
        assert_eq!((answer.status, answer.text()), (200, is(name, id)));
    }
    assert_eq!(machine.place.counter("account_refused"), 0);
    hob.stop();
}

#[test]
fn a_program_is_told_of_its_own_folder() {
    let Some(machine) = machine(&["ann"]) else {
        return;
    };
    machine.folder("ann", "cgi/deep");
    let text = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
        echo \"$DOCUMENT_ROOT $SCRIPT_NAME $PATH_INFO $0\"\npwd\nid -un\n";
    machine.program("ann", "cgi/deep/told", text);
    machine.write("ann", "cgi/by.sh", text);
    let hob = machine.serve(&format!("{TOP}{CGI}"));
    let cgi = machine.path("ann", "cgi");
    let cgi = cgi.display();
    assert_eq!(
        who(&hob, "/ann/cgi/deep/told/more").text(),
        format!("{cgi} /ann/cgi/deep/told /more {cgi}/deep/told\n{cgi}/deep\nann\n")
    );
    assert_eq!(
        who(&hob, "/ann/cgi/by.sh").text(),
        format!("{cgi} /ann/cgi/by.sh  {cgi}/by.sh\n{cgi}\nann\n")
    );
    // One that is no script: the very file that was looked at.
    let source = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"Content-Type: \
        text/plain\\n\\n%d\\n\", (int)getuid()); return 0; }\n";
    machine.place.write("a.c", source);
    let compiled = std::process::Command::new("cc")
        .args(["-o", &format!("{cgi}/binary")])
        .arg(machine.place.path("a.c"))
        .status();
    assert!(compiled.unwrap().success());
    machine.give("ann", &machine.path("ann", "cgi/binary"), 0o711);
    assert_eq!(who(&hob, "/ann/cgi/binary").text(), format!("{FIRST}\n"));
    hob.stop();
}

#[test]
fn what_is_not_the_accounts_own_does_not_run() {
    let Some(machine) = machine(&["ann", "bob"]) else {
        return;
    };
    let cgi = |name: &str| machine.path("ann", &format!("cgi/{name}"));
    for name in [
        "others", "roots", "group", "world", "setuid", "setgid", "by.sh",
    ] {
        machine.program("ann", &format!("cgi/{name}"), WHO);
    }
    let bob = machine.id("bob");
    chown(cgi("others"), Some(bob), Some(bob)).unwrap();
    chown(cgi("roots"), Some(0), Some(0)).unwrap();
    chown(cgi("by.sh"), Some(bob), Some(bob)).unwrap();
    let mode = |name: &str, mode| {
        std::fs::set_permissions(cgi(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("group", 0o775);
    mode("world", 0o757);
    mode("setuid", 0o4755);
    mode("setgid", 0o2755);
    symlink("who", cgi("link")).unwrap();
    symlink(machine.path("bob", "cgi/who"), cgi("away")).unwrap();
    let hob = machine.serve(&format!("{TOP}{CGI}"));
    assert_eq!(who(&hob, "/ann/cgi/who").status, 200);
    for (name, reason) in [
        ("others", "it is not the account's own"),
        ("roots", "it is not the account's own"),
        ("by.sh", "it is not the account's own"),
        (
            "group",
            "others than the account may write to it (`chmod go-w` it)",
        ),
        (
            "world",
            "others than the account may write to it (`chmod go-w` it)",
        ),
        ("setuid", "it has a setuid or setgid bit"),
        ("setgid", "it has a setuid or setgid bit"),
        ("link", "it is a link, or no regular file"),
    ] {
        refused(&hob, &format!("/ann/cgi/{name}"), reason);
    }
    assert_eq!(machine.place.counter("account_refused"), 8);
    assert_eq!(who(&hob, "/ann/cgi/away").status, 404);
    for path in [
        "/ann/cgi/../../bob/cgi/who",
        "/../cgi/who",
        "/%2e%2e/cgi/who",
        "/ann%2F..%2Fbob/cgi/who",
        "/bob%2F/cgi/who",
        "/.ann/cgi/who",
        "/nobody/cgi/who",
    ] {
        let status = who(&hob, path).status;
        assert!(
            matches!(status, 400 | 404) || path.contains("/ann/cgi/.."),
            "{path}: {status}"
        );
        assert_ne!(who(&hob, path).text(), is("ann", FIRST), "{path}");
    }
    hob.stop();
}

#[test]
fn folders_that_others_may_change_have_no_programs() {
    let names = ["ann", "bob", "cid", "dan", "eve", "fay"];
    let Some(machine) = machine(&names) else {
        return;
    };
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(&machine.path("ann", "cgi"), 0o775);
    chown(machine.path("bob", "cgi"), Some(0), Some(0)).unwrap();
    // On the way root's are as good; those of others are not.
    chown(machine.path("cid", ""), Some(0), Some(0)).unwrap();
    chown(machine.path("dan", ""), Some(FIRST), Some(FIRST)).unwrap();
    mode(&machine.path("eve", ""), 0o777);
    let hob = machine.serve(&format!("{TOP}{CGI}"));
    refused(
        &hob,
        "/ann/cgi/who",
        "others than the account may write to it, or to one on the way",
    );
    refused(
        &hob,
        "/bob/cgi/who",
        "that is not the account's own, or one on the way",
    );
    assert_eq!(who(&hob, "/cid/cgi/who").text(), is("cid", FIRST + 2));
    refused(
        &hob,
        "/dan/cgi/who",
        "that is not the account's own, or one on the way",
    );
    refused(
        &hob,
        "/eve/cgi/who",
        "others than the account may write to it, or to one on the way",
    );
    assert_eq!(who(&hob, "/fay/cgi/who").text(), is("fay", FIRST + 5));
    assert_eq!(machine.place.counter("account_refused"), 4);
    hob.stop();
}

#[test]
fn accounts_outside_of_their_range_and_accounts_that_are_none_run_nothing() {
    let Some(machine) = machine(&["ann", "bob", "cid"]) else {
        return;
    };
    machine.set_accounts(&["ann", "", "cid"]);
    for (name, id, gid) in [
        ("low", 999, 30_000),
        ("wheel", 30_500, 10),
        ("toor", 0, 30_000),
    ] {
        let home = machine.path(name, "");
        machine.add_account(&format!("{name}:x:{id}:{gid}::{}:/bin/sh", home.display()));
        machine.folder(name, "cgi");
        machine.program(name, "cgi/who", WHO);
    }
    let hob = machine.serve(&format!("{TOP}{CGI}"));
    assert_eq!(who(&hob, "/ann/cgi/who").text(), is("ann", FIRST));
    refused(
        &hob,
        "/bob/cgi/who",
        "find the account that its folder is named after",
    );
    for name in ["low", "wheel", "toor"] {
        refused(
            &hob,
            &format!("/{name}/cgi/who"),
            "outside of `uids` and `gids`",
        );
    }
    // Removed while the server runs, and made anew.
    machine.set_accounts(&["ann", "bob", ""]);
    refused(
        &hob,
        "/cid/cgi/who",
        "find the account that its folder is named after",
    );
    assert_eq!(who(&hob, "/bob/cgi/who").text(), is("bob", FIRST + 1));
    hob.stop();
    let wide = CGI.replace(
        "user = \"{user}\"",
        "user = \"{user}\", uids = { max = 30001 }",
    );
    let hob = machine.serve(&format!("{TOP}{wide}"));
    assert_eq!(who(&hob, "/bob/cgi/who").text(), is("bob", FIRST + 1));
    machine.set_accounts(&["ann", "bob", "cid"]);
    refused(&hob, "/cid/cgi/who", "outside of `uids` and `gids`");
    hob.stop();
}

#[test]
fn a_folder_replaced_by_a_link_runs_nothing() {
    let Some(machine) = machine(&["ann", "bob"]) else {
        return;
    };
    let hob = machine.serve(&format!("{TOP}{CGI}"));
    assert_eq!(who(&hob, "/ann/cgi/who").text(), is("ann", FIRST));
    std::fs::rename(machine.path("ann", "cgi"), machine.path("ann", "old")).unwrap();
    symlink(machine.path("bob", "cgi"), machine.path("ann", "cgi")).unwrap();
    // Whether the server has seen it yet or not, nothing of bob's runs, and nothing as ann.
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let answer = who(&hob, "/ann/cgi/who");
        match answer.status {
            404 => break,
            status => assert_eq!(status, 403, "{}", answer.text()),
        }
        assert!(std::time::Instant::now() < until, "the link is never seen");
    }
    assert_eq!(who(&hob, "/bob/cgi/who").text(), is("bob", FIRST + 1));
    hob.stop();
}

#[test]
fn explain_tells_folder_and_account() {
    let Some(machine) = machine(&["ann"]) else {
        return;
    };
    machine.place.write("hob.toml", &format!("{TOP}{CGI}"));
    let explain = |url: &str| {
        let mut command = machine.command();
        command.args(["explain", "--config", "hob.toml", "GET", url]);
        text_of(&command.output().unwrap())
    };
    let told = explain("http://localhost/ann/cgi/who");
    let cgi = machine.path("ann", "cgi");
    assert!(
        told.contains(&format!("`dir` is {} here", cgi.display())),
        "{told}"
    );
    assert!(told.contains("`user` is ann here"), "{told}");
    assert!(told.contains(&format!("{}/who", cgi.display())), "{told}");
    let told = explain("http://localhost/bob/cgi/who");
    assert!(told.contains("there is no such folder"), "{told}");
}

#[test]
fn without_root_no_program_runs_as_its_account() {
    let place = super::harness::Place::new();
    std::fs::create_dir(place.path("home")).unwrap();
    place.write("hob.toml", &format!("{TOP}{CGI}"));
    let output = place.run(&["check", "--config", "hob.toml"]);
    let text = text_of(&output);
    assert!(!output.status.success(), "{text}");
    let reason = "programs can run as the accounts that they belong to only when hob is started as";
    assert!(text.contains(reason), "{text}");
}
