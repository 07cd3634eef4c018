//! A file of passwords for each account.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::harness::client::{Answer, ask};
use super::harness::{DEADLINE, Hob, Place, text_of};

const TOP: &str = "[cache]\nrecheck = \"50ms\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n";
const BY_USER: &str = "[[site.route]]\npath = \"/{user}/*\"\nfiles = \"home/{user}/www\"\n\
    require = \"homes\"\n";
const AUTH: &str = "[[auth]]\nname = \"homes\"\nhtpasswd = \"home/{user}/.htpasswd\"\n";

/// A place whose accounts have a page each, and a file with one who may see it.
fn place(names: &[&str]) -> Place {
    let place = Place::new();
    for name in names {
        std::fs::create_dir_all(place.path(&format!("home/{name}/www"))).unwrap();
        place.write(&format!("home/{name}/www/index.html"), name);
        place.write(
            &format!("home/{name}/.htpasswd"),
            &line(name, &format!("of {name}")),
        );
    }
    place
}

/// A line that is quick to check.
fn line(name: &str, password: &str) -> String {
    let mut command = Command::new("htpasswd");
    command.args(["-nb", "-B", "-C", "4", name, password]);
    let output = command.output().expect("apt-get install apache2-utils");
    format!("{}\n", String::from_utf8(output.stdout).unwrap().trim())
}

fn as_who(hob: &Hob, path: &str, name: &str) -> Answer {
    let both = BASE64_STANDARD.encode(format!("{name}:of {name}"));
    ask(
        hob.port(),
        "GET",
        path,
        &format!("Authorization: Basic {both}\r\n"),
    )
}

/// Asks until the status is this one: the files are looked at once a second.
fn wait_for(hob: &Hob, path: &str, name: &str, status: u16) {
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let now = as_who(hob, path, name).status;
        if now == status {
            return;
        }
        assert!(std::time::Instant::now() < until, "{path} as {name}: {now}");
    }
}

#[test]
fn each_account_says_who_sees_its_pages() {
    let names: Vec<String> = (0..200).map(|number| format!("user{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = place(&names);
    let hob = place.serve_text(&format!("{TOP}{BY_USER}{AUTH}"));
    for name in &names {
        let path = format!("/{name}/");
        let nobody = ask(hob.port(), "GET", &path, "");
        assert_eq!(nobody.status, 401, "{name}");
        assert_eq!(
            nobody
                .header("www-authenticate")
                .map(|text| text.contains("homes")),
            Some(true)
        );
        let own = as_who(&hob, &path, name);
        assert_eq!((own.status, own.text().as_str()), (200, *name));
    }
    assert_eq!(as_who(&hob, "/user1/", "user2").status, 401);
    assert_eq!(as_who(&hob, "/user2/", "user1").status, 401);
    for path in ["/nobody/", "/.user1/", "/%2e%2e/", "/user1%2f/"] {
        let status = as_who(&hob, path, "user1").status;
        assert!(matches!(status, 400 | 401 | 404), "{path}: {status}");
    }
    hob.stop();
}

#[test]
fn files_come_and_go_and_links_to_them_are_not_followed() {
    let place = place(&["ann", "bob", "cid"]);
    std::fs::remove_file(place.path("home/cid/.htpasswd")).unwrap();
    symlink("../ann/.htpasswd", place.path("home/cid/.htpasswd")).unwrap();
    std::fs::remove_file(place.path("home/bob/.htpasswd")).unwrap();
    let hob = place.serve_text(&format!("{TOP}{BY_USER}{AUTH}"));
    assert_eq!(as_who(&hob, "/ann/", "ann").status, 200);
    assert_eq!(as_who(&hob, "/bob/", "bob").status, 401);
    assert_eq!(as_who(&hob, "/cid/", "ann").status, 401);
    place.write("home/bob/.htpasswd", &line("bob", "of bob"));
    wait_for(&hob, "/bob/", "bob", 200);
    place.write("home/ann/.htpasswd", &line("dan", "of dan"));
    wait_for(&hob, "/ann/", "dan", 200);
    assert_eq!(as_who(&hob, "/ann/", "ann").status, 401);
    std::fs::remove_file(place.path("home/ann/.htpasswd")).unwrap();
    wait_for(&hob, "/ann/", "dan", 401);
    hob.stop();
}

#[test]
fn a_file_that_the_server_may_not_read_lets_nobody_in() {
    let place = place(&["ann"]);
    let file = place.path("home/ann/.htpasswd");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    if super::harness::is_root() {
        std::os::unix::fs::chown(&file, Some(1), Some(1)).unwrap();
    } else {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).unwrap();
    }
    let hob = place.serve_text(&format!("{TOP}{BY_USER}{AUTH}"));
    assert_eq!(as_who(&hob, "/ann/", "ann").status, 503);
    hob.wait_for("let that user read it");
    hob.stop();
}

#[test]
fn so_many_files_are_open() {
    let names: Vec<String> = (0..6).map(|number| format!("user{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = place(&names);
    let hob = place.serve_text(&format!("{TOP}{BY_USER}{AUTH}[limits]\nroots = 4\n"));
    for name in &names {
        assert_eq!(as_who(&hob, &format!("/{name}/"), name).status, 200);
    }
    // Of files of passwords, and of roots.
    assert_eq!(place.counter("limit_roots"), 4);
    assert_eq!(as_who(&hob, "/user0/", "user0").status, 200);
    hob.stop();
}

#[test]
fn explain_tells_the_file() {
    let place = place(&["ann"]);
    place.write("hob.toml", &format!("{TOP}{BY_USER}{AUTH}"));
    let explain = |arguments: &[&str]| {
        let all = [&["explain", "--config", "hob.toml"], arguments].concat();
        text_of(&place.run(&all))
    };
    let file = place.path("home/ann/.htpasswd");
    let told = explain(&["--user", "ann", "GET", "http://localhost/ann/"]);
    assert!(
        told.contains(&format!("`htpasswd` is {} here", file.display())),
        "{told}"
    );
    assert!(told.contains("may, with the right password"), "{told}");
    let told = explain(&["--user", "ann", "GET", "http://localhost/bob/"]);
    assert!(told.contains("nobody can sign in"), "{told}");
}
