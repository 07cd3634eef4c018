//! Flat files and registries of pages.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};

use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::{Place, is_root};
use crate::place::{place, post, serve_at};

/// A book of guests, what is kept of them, and a page that does with any file what it is told.
const GUESTS: &str = r#"
%DEFINE { t = %TABLE u = %TABLE %}
%HTML(sign) { @DTW_TB_SETCOLS(t, "2") @DTW_TB_APPENDROW(t, "1")
  @DTW_TB_SETV(t, name, "1", "1") @DTW_TB_SETV(t, text, "1", "2")
  @DTWF_APPEND("guests.txt", "DELIMITED", ";", t) signed %}
%HTML(list) { @DTWF_READ("guests.txt", "DELIMITED", ";", t) @DTW_TB_TABLE(t) @DTW_TB_rROWS(t) rows %}
%HTML(keep) { @DTWR_CREATEREG("seen") @DTWR_ADDENTRY("seen", name, text) ($(RETURN_CODE)) %}
%HTML(seen) { @DTWR_LISTREG("seen", u) @DTW_TB_rROWS(u) @DTWR_rRTVENTRY("seen", name) ($(RETURN_CODE)) %}
%HTML(read) { @DTWF_READ(f, "ASCIITEXT", "", t) ($(RETURN_CODE)) @DTW_TB_rGETV(t, "1", "1") %}
%HTML(write) { @DTW_TB_SETCOLS(t, "1") @DTW_TB_APPENDROW(t, "1") @DTW_TB_SETV(t, text, "1", "1")
  @DTWF_WRITE(f, "ASCIITEXT", "", t) ($(RETURN_CODE)) %}
%HTML(plain) { plain %}
"#;

const WRITES: &str = "files = \"store\", files_write = true, registries = \"kept\"";

fn guests() -> Place {
    let place = place();
    place.folder("store");
    place.folder("kept");
    place.write("macros/guests.page", GUESTS);
    place
}

fn text(site: &Site, target: &str) -> String {
    let answer = site.get(&format!("/app/guests.page/{target}")).answer;
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    let text = answer.text();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn page_keeps_a_file_and_a_registry() {
    let site = serve_at(guests(), WRITES, "");
    let evil = "name=%3Ci%3E&text=a%3Bb%0Ac";
    let signed = post(&site, "/app/guests.page/sign", evil).answer;
    assert_eq!((signed.status, signed.text().trim()), (200, "signed"));
    assert_eq!(text(&site, "sign?name=ann&text=hello"), "signed");
    let content = fs::read_to_string(site.place.path("store/guests.txt")).unwrap();
    assert_eq!(content, "<i>;a\u{10}db\u{10}nc\nann;hello\n", "each once");
    let listed = text(&site, "list");
    assert!(
        listed.contains("&lt;i&gt;") && listed.ends_with("2 rows"),
        "{listed}"
    );
    assert_eq!(text(&site, "keep?name=ann&text=1"), "(0)");
    assert_eq!(text(&site, "keep?name=ann&text=2"), "(3003)");
    assert_eq!(text(&site, "seen?name=ann"), "1 1 (0)");
    assert_eq!(text(&site, "plain"), "plain");
    // Whoever uses files runs where it may wait.
    assert_eq!(site.place.counter("page_inline"), 0);
    assert_eq!(site.place.counter("page_files"), 9);
    assert_eq!(site.place.counter("limit_page_files"), 0);
    site.stop();
}

#[test]
fn pages_without_a_folder_use_no_files() {
    let place = guests();
    place.write("store/guests.txt", "ann;hello\n");
    place.write("macros/db2www.ini", "FFI_PATH ../store\n");
    let site = serve_at(place, "ini = \"macros/db2www.ini\"", "");
    assert!(text(&site, "list").ends_with("0 rows"));
    assert_eq!(text(&site, "read?f=guests.txt"), "(2000)");
    assert_eq!(text(&site, "keep?name=a"), "(3001)");
    // Nothing of it has to wait.
    assert_ne!(site.place.counter("page_inline"), 0);
    let printed = site.stop_and_print();
    assert!(
        printed.contains("FFI_PATH of the ini file needs `files`"),
        "{printed}"
    );
}

#[test]
fn clients_reach_nothing_outside_of_the_folder() {
    let place = guests();
    place.write("secret.txt", "HIDDEN WORDS\n");
    place.write("store/in.txt", "within\n");
    place.write("store/.dot", "HIDDEN WORDS\n");
    symlink(place.path("secret.txt"), place.path("store/far.txt")).unwrap();
    symlink("..", place.path("store/up")).unwrap();
    symlink("in.txt", place.path("store/near.txt")).unwrap();
    mkfifoat(CWD, place.path("store/pipe"), Mode::RWXU | Mode::RWXO).unwrap();
    let secret = place.path("secret.txt").display().to_string();
    let site = serve_at(place, WRITES, "");
    for name in [
        "../secret.txt",
        "x/../../secret.txt",
        &secret,
        "far.txt",
        "up/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        ".dot",
        "none.txt",
        "in.txt%00",
    ] {
        assert_eq!(text(&site, &format!("read?f={name}")), "(2000)", "{name}");
        if name != "none.txt" {
            let written = text(&site, &format!("write?f={name}&text=x"));
            assert!(!written.ends_with("(0)"), "{name}: {written}");
        }
    }
    for target in [
        "read?f=pipe",
        "write?f=pipe&text=x",
        "write?f=near.txt&text=x",
    ] {
        let refused = text(&site, target);
        assert_eq!(refused, "<p>This page met an error (-551).</p>", "{target}");
    }
    for name in ["in.txt", "near.txt", "/in.txt"] {
        let read = text(&site, &format!("read?f={name}"));
        assert_eq!(read, "(0) within", "{name}");
    }
    let kept = fs::read_to_string(site.place.path("secret.txt")).unwrap();
    assert_eq!(kept, "HIDDEN WORDS\n");
    assert!(!site.place.path("store/.dot.hob").exists());
    site.stop();
}

#[test]
fn files_are_only_read_unless_the_config_says_more() {
    let place = guests();
    place.write("store/in.txt", "within\n");
    let site = serve_at(place, "files = \"store\"", "");
    assert_eq!(text(&site, "read?f=in.txt"), "(0) within");
    for target in ["write?f=in.txt&text=x", "write?f=new.txt&text=x"] {
        let refused = text(&site, target);
        assert_eq!(refused, "<p>This page met an error (-817).</p>", "{target}");
    }
    let left = fs::read_dir(site.place.path("store")).unwrap();
    assert_eq!(left.count(), 1);
    let printed = site.stop_and_print();
    assert!(printed.contains("nothing here may be written"), "{printed}");
}

#[test]
fn hundred_visitors_at_once_lose_nothing() {
    let site = serve_at(guests(), WRITES, "");
    assert_eq!(text(&site, "keep?name=first&text=0"), "(0)");
    let ask = |target: &str, number: usize| {
        let mut connection = Connection::open(site.port()).unwrap();
        let target = format!("/app/guests.page/{target}?name=n{number}&text=t{number}");
        connection.send_get(&target).unwrap();
        connection
    };
    let mut all = Vec::new();
    for number in 0..100 {
        all.push(ask("sign", number));
        all.push(ask("keep", number));
    }
    for connection in &mut all {
        let answer = connection.read().unwrap();
        let text = answer.text();
        let is_good = ["signed", "(0)"].contains(&text.trim());
        assert!(answer.status == 200 && is_good, "{text}");
    }
    let content = fs::read_to_string(site.place.path("store/guests.txt")).unwrap();
    let mut lines: Vec<&str> = content.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 100);
    assert_eq!(text(&site, "seen?name=n77"), "101 t77 (0)");
    site.stop();
}

#[test]
fn file_that_somebody_holds_keeps_no_run_beyond_its_time() {
    let place = guests();
    place.write("store/.guests.txt.hob", "");
    let open = PermissionsExt::from_mode(0o666);
    fs::set_permissions(place.path("store/.guests.txt.hob"), open).unwrap();
    let held = File::open(place.path("store/.guests.txt.hob")).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let site = serve_at(place, &format!("{WRITES}, time = \"2s\""), "");
    let late = site.get("/app/guests.page/sign?name=late").answer;
    // It may have ended at the last moment, with a code that this page does not look at.
    assert!([504, 200].contains(&late.status), "{}", late.status);
    drop(held);
    assert_eq!(text(&site, "sign?name=ann&text=hello"), "signed");
    let content = fs::read_to_string(site.place.path("store/guests.txt")).unwrap();
    assert_eq!(content, "ann;hello\n");
    site.stop();
}

#[test]
fn use_beyond_a_limit_is_counted() {
    let place = guests();
    let large = File::create(place.path("store/large.txt")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    let site = serve_at(place, WRITES, "");
    let refused = text(&site, "read?f=large.txt");
    assert_eq!(refused, "<p>This page met an error (-1001).</p>");
    assert_eq!(site.place.counter("limit_page_files"), 1);
    let printed = site.stop_and_print();
    assert!(
        printed.contains("larger than a file of pages may be"),
        "{printed}"
    );
}

#[test]
fn full_disk_leaves_files_as_they_were() {
    if !is_root() {
        eprintln!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let place = guests();
    let store = place.path("store");
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=64k,mode=777", "tmpfs"])
        .arg(&store);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a tmpfs cannot be mounted here");
        return;
    }
    let site = serve_at(place, WRITES, "");
    let long = "x".repeat(40_000);
    let first = format!("name=ann&text={long}");
    let signed = post(&site, "/app/guests.page/sign", &first).answer;
    assert_eq!((signed.status, signed.text().trim()), (200, "signed"));
    let more = post(&site, "/app/guests.page/sign", &first).answer;
    let content = fs::read_to_string(store.join("guests.txt")).unwrap();
    let left = fs::read_dir(&store).unwrap().count();
    let unmounted = Command::new("umount").arg("-l").arg(&store).status();
    assert!(unmounted.unwrap().success());
    assert_eq!(more.text().trim(), "<p>This page met an error (-968).</p>");
    assert_eq!(content, format!("ann;{long}\n"));
    assert_eq!(left, 1, "what was begun is gone");
    let printed = site.stop_and_print();
    assert!(printed.contains("the disk is full"), "{printed}");
}
