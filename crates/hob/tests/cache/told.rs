//! Files of which the kernel tells changes, and folders whose names are known.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use super::harness::client::{Answer, Connection};
use super::harness::{self, DEADLINE, Place};
use super::{SEEN_WITHIN, ask, crawl, make_files, number, open, replace, wait_until_seen};

#[test]
fn file_that_stays_as_it_is_is_not_looked_at_again() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/a/b")).unwrap();
    make_files(&place, "site/a/b", 20, 10);
    let hob = place.serve_config("");
    let client = &mut Connection::open(hob.port()).unwrap();
    let looks = || {
        let status = &place.status()["cache"];
        number(status, "revalidations") + number(status, "misses")
    };
    // Not through more than two times the second after which each would be looked at.
    let until = Instant::now() + DEADLINE;
    loop {
        let before = looks();
        let begun = Instant::now();
        while begun.elapsed() < 2 * SEEN_WITHIN {
            crawl(client, "a/b", 20);
        }
        if looks() == before {
            break;
        }
        assert!(Instant::now() < until, "{} looks", looks());
    }
    // All are kept in what the cache takes where nobody says how much.
    let bytes_max = number(&place.status()["cache"], "bytes_max");
    assert!((64 << 20..=1 << 30).contains(&bytes_max), "{bytes_max}");
    hob.stop();
}

#[test]
fn change_is_seen_within_a_second_however_long_nothing_changed_before_it() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/a/b")).unwrap();
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    let names = ["replaced", "rewritten", "named", "link", "locked", "moved"];
    for name in names {
        place.write(&format!("site/a/b/{name}.txt"), "old\n");
    }
    // What is done to these is done through other names.
    std::fs::remove_file(place.path("site/a/b/link.txt")).unwrap();
    place.write("elsewhere/target.txt", "old\n");
    symlink(
        "../../../elsewhere/target.txt",
        place.path("site/a/b/link.txt"),
    )
    .unwrap();
    let [named, other] = ["site/a/b/named.txt", "elsewhere/other.txt"].map(|name| place.path(name));
    std::fs::hard_link(named, other).unwrap();
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [site.files]\nsymlinks = \"follow\"\n",
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let client = &mut Connection::open(hob.port()).unwrap();
    let path_of = |name: &str| format!("/a/b/{name}.txt");
    // Each is asked for through more than three seconds, as it is looked at after one by itself.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(3300) {
        for name in names {
            assert_eq!(ask(client, &path_of(name), "").text(), "old\n", "{name}");
        }
    }
    let is_new = |answer: &Answer| answer.text() == "new\n";
    replace(&place, "site/a/b/replaced.txt", "new\n");
    wait_until_seen(client, (&path_of("replaced"), ""), is_new);
    for (path, file) in [
        ("rewritten", "site/a/b/rewritten.txt"),
        ("named", "elsewhere/other.txt"),
        ("link", "elsewhere/target.txt"),
    ] {
        open(&place, file).write_all(b"new\n").unwrap();
        wait_until_seen(client, (&path_of(path), ""), is_new);
    }
    if harness::is_root() {
        let locked = place.path("site/a/b/locked.txt");
        std::fs::set_permissions(locked, PermissionsExt::from_mode(0o600)).unwrap();
        wait_until_seen(client, (&path_of("locked"), ""), |answer| {
            answer.status == 403
        });
    }
    std::fs::create_dir_all(place.path("site/next/b")).unwrap();
    place.write("site/next/b/moved.txt", "new\n");
    std::fs::rename(place.path("site/a"), place.path("site/before")).unwrap();
    std::fs::rename(place.path("site/next"), place.path("site/a")).unwrap();
    wait_until_seen(client, (&path_of("moved"), ""), is_new);
    hob.stop();
}

#[test]
fn copies_that_come_and_go_in_a_folder_that_had_none_are_seen_within_a_second() {
    let place = Place::new();
    let folders = ["one", "two", "two/three"];
    for folder in folders {
        make_files(&place, &format!("site/{folder}"), 30, 40);
    }
    symlink("two", place.path("site/link")).unwrap();
    let hob = place.serve_config("");
    let client = &mut Connection::open(hob.port()).unwrap();
    let paths = [
        "one/7.txt",
        "two/7.txt",
        "two/three/7.txt",
        "link/7.txt",
        "link/three/7.txt",
    ];
    // The first few of a folder are asked about one by one, and then the folder is known.
    for path in paths {
        let folder = path.strip_suffix("/7.txt").unwrap();
        (0..2).for_each(|_| crawl(client, folder, 30));
    }
    const GZIP: &str = "Accept-Encoding: gzip\r\n";
    let is_coded = |answer: &Answer| answer.header("content-encoding") == Some("gzip");
    for folder in folders {
        let copy = format!("site/{folder}/7.txt.gz");
        place.write(&copy, folder);
        for path in paths.map(|path| format!("/{path}")) {
            let is_of_it = path.replace("link", "two") == format!("/{folder}/7.txt");
            if is_of_it {
                wait_until_seen(client, (&path, GZIP), |answer| {
                    is_coded(answer) && answer.text() == folder
                });
            }
        }
        std::fs::remove_file(place.path(&copy)).unwrap();
        wait_until_seen(client, (&format!("/{folder}/7.txt"), GZIP), |answer| {
            !is_coded(answer) && answer.text() == "x".repeat(40)
        });
    }
    // Another folder takes the place of one that was known.
    make_files(&place, "site/next", 30, 50);
    place.write("site/next/7.txt.gz", "of the next");
    std::fs::rename(place.path("site/one"), place.path("site/before")).unwrap();
    std::fs::rename(place.path("site/next"), place.path("site/one")).unwrap();
    wait_until_seen(client, ("/one/7.txt", GZIP), |answer| {
        is_coded(answer) && answer.text() == "of the next"
    });
    hob.stop();
}
