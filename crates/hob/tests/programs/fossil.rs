//! fossil, a repository with a web frontend, as a CGI of two lines.

use std::path::PathBuf;

use crate::compare::by_table;
use crate::place::{Place, installed, succeeded};
use crate::servers::{self, Mount, PEERS, Server};

fn fossil(place: &Place, folder: &str, arguments: &[&str]) -> String {
    let mut command = place.command("/usr/bin/fossil");
    command.env("FOSSIL_HOME", place.path("home"));
    command.current_dir(place.path(folder)).args(arguments);
    succeeded("fossil", arguments, &command.output().unwrap())
}

fn commit(place: &Place, folder: &str, file: &str, message: &str) {
    place.write(
        &format!("{folder}/{file}"),
        &format!("{message}, to look at.\n"),
    );
    fossil(place, folder, &["add", file]);
    let date = "2024-05-06 07:08:09";
    let arguments = [
        "commit",
        "-m",
        message,
        "--date-override",
        date,
        "--no-warnings",
    ];
    fossil(place, folder, &arguments);
}

/// The CGI of a repository with a check-in.
fn script(place: &Place) -> Option<PathBuf> {
    installed("fossil", &["/usr/bin/fossil"])?;
    let date = "2024-05-06 07:08:09";
    let new = [
        "new",
        "--admin-user",
        "tester",
        "--date-override",
        date,
        "work.fossil",
    ];
    fossil(place, "", &new);
    // Anybody may clone and check in.
    let rights = [
        "user",
        "capabilities",
        "nobody",
        "gijorz",
        "-R",
        "work.fossil",
    ];
    fossil(place, "", &rights);
    place.folder("work");
    fossil(place, "", &["open", "work.fossil", "--workdir", "work"]);
    commit(place, "work", "README.txt", "first <&> check-in");
    let text = format!(
        "#!/usr/bin/fossil\nrepository: {}\n",
        place.shown("work.fossil")
    );
    Some(place.script("bin/fossil.cgi", &text))
}

/// Clones through a server, checks in through it, and compares.
fn goes_there_and_back(place: &Place, server: &Server, name: &str) {
    let url = format!("http://127.0.0.1:{}/fossil", server.port);
    let copy = format!("{name}.fossil");
    fossil(place, "", &["clone", "--admin-user", "tester", &url, &copy]);
    place.folder(name);
    fossil(place, "", &["open", &copy, "--workdir", name]);
    // Checking in sends it to where the copy came from.
    commit(place, name, &format!("{name}.txt"), name);
    let artifacts = |repository: &str| {
        let ids = "select uuid from blob order by uuid";
        fossil(place, "", &["sql", "-R", repository, ids])
    };
    assert_eq!(artifacts(&copy), artifacts("work.fossil"), "{name}");
    let comments = ["sql", "-R", "work.fossil", "select comment from event"];
    assert!(fossil(place, "", &comments).contains(name), "{name}");
}

#[test]
fn fossil_clones_as_through_other_servers() {
    let place = Place::new();
    let Some(script) = script(&place) else {
        return;
    };
    let mount = Mount::new(&place, "/fossil", script);
    goes_there_and_back(&place, &servers::hob(&place, &mount), "from-hob");
    for peer in PEERS {
        if let Some(server) = servers::peer(peer, &place, &mount) {
            goes_there_and_back(&place, &server, &format!("from-{}", peer.name()));
        }
    }
}

#[test]
fn fossil_answers_as_under_other_servers() {
    let place = Place::new();
    let Some(script) = script(&place) else {
        return;
    };
    let mount = Mount::new(&place, "/fossil", script);
    by_table(&place, &mount, include_str!("fossil.txt"));
}
