//! hgweb.cgi, made as Mercurial's documentation shows: pages, and a real clone and push.

use std::fs;
use std::path::PathBuf;

use crate::compare::by_table;
use crate::place::{Place, installed, succeeded};
use crate::servers::{self, Mount, PEERS, Server};

/// hgweb.cgi for the repository `repo`; it needs the Python that hg runs on.
fn script(place: &Place) -> Option<PathBuf> {
    let hg = installed("mercurial", &["/usr/bin/hg"])?;
    let bytes = fs::read(hg).unwrap();
    let first = bytes
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let python = std::str::from_utf8(first).unwrap();
    let text = format!(
        "{python}\nfrom mercurial import demandimport\ndemandimport.enable()\n\
         from mercurial.hgweb import hgweb, wsgicgi\n\
         application = hgweb(b\"{}\")\nwsgicgi.launch(application)\n",
        place.shown("repo")
    );
    Some(place.script("bin/hgweb.cgi", &text))
}

fn hg(place: &Place, arguments: &[&str]) -> String {
    let mut command = place.command("/usr/bin/hg");
    command.env("HGPLAIN", "1").args(arguments);
    succeeded("hg", arguments, &command.output().unwrap())
}

fn commit(place: &Place, repository: &str, message: &str) {
    let date = "2024-05-06 07:08:09 +0000";
    let arguments = [
        "-R", repository, "commit", "-A", "-q", "-m", message, "-d", date, "-u", "Ann",
    ];
    hg(place, &arguments);
}

/// `repo`, to be pushed to by anybody.
fn repository(place: &Place) {
    // Its files may belong to whoever runs the tests.
    place.write("home/.hgrc", "[trusted]\nusers = *\n");
    hg(place, &["init", "repo"]);
    place.write("repo/README", "A repository to look at.\n");
    place.write("repo/a b+c.txt", "spaces & signs\n");
    commit(place, "repo", "first");
    place.write(
        "repo/README",
        "A repository to look at.\nWith a second line.\n",
    );
    commit(place, "repo", "second <&> commit");
    let web = "[web]\nallow-push = *\npush_ssl = False\nallow-archive = gz\nname = work\n";
    place.write("repo/.hg/hgrc", web);
}

/// Clones through a server and pushes a large commit.
fn goes_there_and_back(place: &Place, server: &Server, name: &str) {
    let url = format!("http://127.0.0.1:{}/hg", server.port);
    let copy = format!("{name}-copy");
    hg(place, &["clone", "-q", &url, &copy]);
    let text: String = (0..200_000)
        .map(|line| format!("{line} {name}\n"))
        .collect();
    place.write(&format!("{copy}/{name}.txt"), &text);
    commit(place, &copy, name);
    hg(place, &["-R", &copy, "push", "-q", &url]);
}

#[test]
fn hg_clones_and_pushes_as_through_other_servers() {
    let place = Place::new();
    let Some(script) = script(&place) else {
        return;
    };
    repository(&place);
    let mount = Mount::new(&place, "/hg", script);
    let mut names = Vec::new();
    for peer in PEERS {
        if let Some(server) = servers::peer(peer, &place, &mount) {
            goes_there_and_back(&place, &server, peer.name());
            names.push(peer.name());
        }
    }
    // What hob clones holds what was pushed through the others.
    goes_there_and_back(&place, &servers::hob(&place, &mount), "hob");
    names.push("hob");
    let ids = |repository| hg(&place, &["-R", repository, "log", "-T", "{node} {desc}\n"]);
    let ours = ids("repo");
    assert_eq!(ours, ids("hob-copy"));
    assert!(names.iter().all(|name| ours.contains(name)), "{ours}");
    hg(&place, &["-R", "repo", "verify", "-q"]);
}

#[test]
fn hgweb_answers_as_under_other_servers() {
    let place = Place::new();
    let Some(script) = script(&place) else {
        return;
    };
    repository(&place);
    let mount = Mount::new(&place, "/hg", script).warmed_by("/usr/bin/python3");
    by_table(&place, &mount, include_str!("mercurial.txt"));
}
