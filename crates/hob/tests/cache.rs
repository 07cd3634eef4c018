//! The cache of files as a client sees it: what changes on the disk is seen in time, whole or not
//! at all, and what is kept stays within its bounds.
//!
//! - `told` files of which the kernel tells changes
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

#[path = "cache/told.rs"]
mod told;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use harness::client::{Answer, Connection, begin_download};
use harness::{DEADLINE, Hob, Place, text_of};
use serde_json::Value;

/// A changed file is seen by requests that begin so long after the change. The second that the
/// documents promise, and what the clocks of two processes may differ by.
const SEEN_WITHIN: Duration = Duration::from_millis(1050);

/// One request on a connection that stays.
fn ask(connection: &mut Connection, path: &str, fields: &str) -> Answer {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    connection.send(head.as_bytes()).unwrap();
    connection.read().unwrap()
}

/// Asks until the answer is new; fails when an old one is given too late.
fn wait_until_seen(
    connection: &mut Connection,
    (path, fields): (&str, &str),
    is_new: impl Fn(&Answer) -> bool,
) {
    let changed = Instant::now();
    loop {
        let asked = Instant::now();
        let answer = ask(connection, path, fields);
        if is_new(&answer) {
            return;
        }
        let late = asked - changed;
        let text: String = answer.text().chars().take(40).collect();
        assert!(
            late < SEEN_WITHIN,
            "{path}: {} {text:?}, {late:?} after the change",
            answer.status
        );
    }
}

/// Puts a file in place of another, as editors and deployments do.
fn replace(place: &Place, name: &str, text: &str) {
    let next = format!("{name}.next");
    place.write(&next, text);
    std::fs::rename(place.path(&next), place.path(name)).unwrap();
}

fn open(place: &Place, name: &str) -> std::fs::File {
    let path = place.path(name);
    std::fs::OpenOptions::new().write(true).open(path).unwrap()
}

fn append(place: &Place, name: &str, bytes: &[u8]) {
    let path = place.path(name);
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

fn cache_status(place: &Place) -> Value {
    let output = place.run(&["status", "--cache", "--json"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text_of(&output)))
}

fn number(status: &Value, name: &str) -> u64 {
    status[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// Files `0.txt`, `1.txt`, ... of so many bytes in a folder of the site.
fn make_files(place: &Place, folder: &str, count: usize, bytes: usize) {
    std::fs::create_dir_all(place.path(folder)).unwrap();
    let text = "x".repeat(bytes);
    for number in 0..count {
        place.write(&format!("{folder}/{number}.txt"), &text);
    }
}

/// Asks for each of such files once.
fn crawl(connection: &mut Connection, folder: &str, count: usize) {
    for number in 0..count {
        let answer = ask(connection, &format!("/{folder}/{number}.txt"), "");
        assert_eq!(answer.status, 200, "{number}");
    }
}

#[test]
fn small_file_changed_in_any_way_is_seen_within_a_second() {
    change_in_every_way("old\n");
}

#[test]
fn large_file_changed_in_any_way_is_seen_within_a_second() {
    change_in_every_way(&"old line\n".repeat(10_000));
}

fn change_in_every_way(old: &str) {
    let place = Place::new();
    let names = [
        "renamed",
        "appended",
        "cut",
        "rewritten",
        "deleted",
        "locked",
    ];
    for name in names {
        place.write(&format!("site/{name}.txt"), old);
    }
    let hob = place.serve_config("");
    let client = &mut Connection::open(hob.port()).unwrap();
    for name in names {
        assert_eq!(ask(client, &format!("/{name}.txt"), "").text(), old);
    }
    replace(&place, "site/renamed.txt", "new\n");
    wait_until_seen(client, ("/renamed.txt", ""), |answer| {
        answer.text() == "new\n"
    });
    append(&place, "site/appended.txt", b"more\n");
    let longer = format!("{old}more\n");
    wait_until_seen(client, ("/appended.txt", ""), |answer| {
        answer.text() == longer
    });
    open(&place, "site/cut.txt").set_len(2).unwrap();
    wait_until_seen(client, ("/cut.txt", ""), |answer| answer.text() == old[..2]);
    let other = old.replace("old", "new");
    open(&place, "site/rewritten.txt")
        .write_all(other.as_bytes())
        .unwrap();
    wait_until_seen(client, ("/rewritten.txt", ""), |answer| {
        answer.text() == other
    });
    std::fs::remove_file(place.path("site/deleted.txt")).unwrap();
    wait_until_seen(client, ("/deleted.txt", ""), |answer| answer.status == 404);
    place.write("site/deleted.txt", "again\n");
    wait_until_seen(client, ("/deleted.txt", ""), |answer| {
        answer.text() == "again\n"
    });
    if harness::is_root() {
        let locked = place.path("site/locked.txt");
        std::fs::set_permissions(locked, PermissionsExt::from_mode(0o600)).unwrap();
        wait_until_seen(client, ("/locked.txt", ""), |answer| answer.status == 403);
    }
    hob.stop();
}

#[test]
fn two_changes_within_one_tick_of_the_clock_are_both_seen() {
    let place = Place::new();
    place.write("site/a.txt", "0000\n");
    let hob = place.serve_config("[cache]\nrecheck = \"20ms\"\n");
    let client = &mut Connection::open(hob.port()).unwrap();
    // Same size, and most often the same time: only the second look tells.
    for round in 1..200 {
        let text = format!("{round:04}\n");
        open(&place, "site/a.txt")
            .write_all(text.as_bytes())
            .unwrap();
        ask(client, "/a.txt", "");
        let last = format!("{:04}\n", round + 5000);
        open(&place, "site/a.txt")
            .write_all(last.as_bytes())
            .unwrap();
        let changed = Instant::now();
        while ask(client, "/a.txt", "").text() != last {
            assert!(changed.elapsed() < SEEN_WITHIN, "round {round}");
        }
    }
    hob.stop();
}

#[test]
fn new_index_and_new_compressed_copy_are_seen_within_a_second() {
    let place = Place::new();
    std::fs::create_dir(place.path("site/folder")).unwrap();
    place.write("site/folder/index.htm", "second\n");
    place.write("site/style.css", "p {}\n");
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [site.files]\nindex = [\"index.html\", \"index.htm\"]\n",
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let client = &mut Connection::open(hob.port()).unwrap();
    assert_eq!(ask(client, "/folder/", "").text(), "second\n");
    place.write("site/folder/index.html", "first\n");
    wait_until_seen(client, ("/folder/", ""), |answer| {
        answer.text() == "first\n"
    });
    std::fs::remove_file(place.path("site/folder/index.html")).unwrap();
    wait_until_seen(client, ("/folder/", ""), |answer| {
        answer.text() == "second\n"
    });

    const BROTLI: &str = "Accept-Encoding: br\r\n";
    let plain = ask(client, "/style.css", BROTLI);
    assert_eq!(plain.header("content-encoding"), None);
    place.write("site/style.css.br", "first copy");
    wait_until_seen(client, ("/style.css", BROTLI), |answer| {
        answer.header("content-encoding") == Some("br") && answer.text() == "first copy"
    });
    let first = ask(client, "/style.css", BROTLI);
    replace(&place, "site/style.css.br", "other copy");
    wait_until_seen(client, ("/style.css", BROTLI), |answer| {
        answer.text() == "other copy"
    });
    let other = ask(client, "/style.css", BROTLI);
    assert_ne!(first.header("etag"), other.header("etag"));
    hob.stop();
}

#[test]
fn root_that_leads_elsewhere_is_seen_within_a_second() {
    let place = Place::new();
    for version in ["one", "two"] {
        std::fs::create_dir(place.path(version)).unwrap();
        place.write(&format!("{version}/a.txt"), version);
    }
    symlink("one", place.path("current")).unwrap();
    place.write_config("", "current");
    let hob = place.serve(&["--config", "hob.toml"]);
    let client = &mut Connection::open(hob.port()).unwrap();
    for (round, version) in ["two", "one", "two"].iter().enumerate() {
        let before = ask(client, "/a.txt", "");
        assert_ne!(before.text(), *version, "{round}");
        symlink(version, place.path("next")).unwrap();
        std::fs::rename(place.path("next"), place.path("current")).unwrap();
        wait_until_seen(client, ("/a.txt", ""), |answer| answer.text() == *version);
    }
    hob.stop();
}

const DOWNLOAD_BYTES: usize = 50 * 1024 * 1024;

/// Bytes that tell their place: no two pieces are alike.
fn telling_bytes() -> Vec<u8> {
    let count = DOWNLOAD_BYTES as u32 / 4;
    (0..count)
        .flat_map(|number| (number ^ 0x5bd1_e995).to_le_bytes())
        .collect()
}

/// A download that has begun; the client has taken its head only.
struct Download {
    place: Place,
    hob: Hob,
    bytes: Vec<u8>,
    connection: Connection,
    headers: Vec<(String, String)>,
}

impl Download {
    fn begin() -> Download {
        let place = Place::new();
        let bytes = telling_bytes();
        std::fs::write(place.path("site/download.bin"), &bytes).unwrap();
        let hob = place.serve_config("threads = 1\n");
        let (connection, headers) = begin_download(hob.port(), "/download.bin");
        let length = ("content-length".to_owned(), DOWNLOAD_BYTES.to_string());
        assert!(headers.contains(&length));
        Download {
            place,
            hob,
            bytes,
            connection,
            headers,
        }
    }

    /// Takes the rest, which must be the whole file as it was.
    fn ends_whole(mut self) {
        let body = self.connection.read_body(&self.headers).unwrap();
        assert!(body == self.bytes, "the body is not the file as it was");
        self.hob.stop();
    }

    /// Takes the rest, which must break off. Returns what came and what was there before.
    fn breaks_off(mut self) -> (Vec<u8>, Vec<u8>) {
        let error = self.connection.read_body(&self.headers).unwrap_err();
        let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{error}");
        let came = self.connection.take_ahead();
        self.hob.stop();
        (came, self.bytes)
    }
}

#[test]
fn download_goes_on_whole_when_its_file_is_renamed_over_or_deleted() {
    let download = Download::begin();
    replace(&download.place, "site/download.bin", "new\n");
    download.ends_whole();
    let download = Download::begin();
    std::fs::remove_file(download.place.path("site/download.bin")).unwrap();
    download.ends_whole();
}

#[test]
fn download_breaks_off_when_its_file_is_cut() {
    // In the middle of a page, beyond what sockets hold; and all of it.
    for len in [DOWNLOAD_BYTES - 123, 0] {
        let download = Download::begin();
        open(&download.place, "site/download.bin")
            .set_len(len as u64)
            .unwrap();
        let (came, bytes) = download.breaks_off();
        assert!(came.len() < DOWNLOAD_BYTES);
        assert!(
            bytes.starts_with(&came),
            "what came is not the file's beginning"
        );
    }
}

#[test]
fn download_breaks_off_when_its_file_is_written_to_in_place() {
    let download = Download::begin();
    let other = vec![b'n'; DOWNLOAD_BYTES];
    open(&download.place, "site/download.bin")
        .write_all(&other)
        .unwrap();
    let (came, _) = download.breaks_off();
    assert!(came.len() < DOWNLOAD_BYTES);
}

/// What readers of a file that is replaced all the time have seen.
#[derive(Default)]
struct Seen {
    version_by_tag: HashMap<String, u64>,
    facts_by_version: HashMap<u64, (usize, String)>,
}

/// The text of a version: every line says which. Its size is one of a few, small and large.
fn version_text(version: u64) -> String {
    let lines = [3, 40, 3, 3, 5000, 400][version as usize % 6];
    format!("version {version:08}\n").repeat(lines)
}

#[test]
fn file_replaced_under_load_is_never_torn_and_its_head_fits_its_body() {
    for recheck in ["0s", "10ms"] {
        let place = Place::new();
        place.write("site/a.txt", &version_text(0));
        let hob = place.serve_config(&format!("threads = 2\n[cache]\nrecheck = {recheck:?}\n"));
        let is_over = AtomicBool::new(false);
        let (seen, reads) = (Mutex::new(Seen::default()), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut client = Connection::open(hob.port()).unwrap();
                    while !is_over.load(Ordering::Relaxed) {
                        check_version(&ask(&mut client, "/a.txt", ""), &seen);
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            // As fast as it goes, but not before readers had a part of it.
            for version in 1..400 {
                replace(&place, "site/a.txt", &version_text(version));
                while reads.load(Ordering::Relaxed) < version * 3 {
                    std::thread::yield_now();
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let versions = seen.lock().unwrap().facts_by_version.len();
        assert!(versions > 5, "only {versions} versions were seen");
        hob.stop();
    }
}

fn check_version(answer: &Answer, seen: &Mutex<Seen>) {
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let version: u64 = text[8..16].parse().unwrap();
    assert!(
        text == version_text(version),
        "a body of version {version} is torn"
    );
    let header = |name| answer.header(name).unwrap().to_owned();
    let mut seen = seen.lock().unwrap();
    let known = *seen.version_by_tag.entry(header("etag")).or_insert(version);
    assert_eq!(known, version, "one entity tag for two contents");
    let facts = (text.len(), header("last-modified"));
    let known = seen
        .facts_by_version
        .entry(version)
        .or_insert_with(|| facts.clone());
    assert_eq!(*known, facts, "version {version}");
}

#[test]
fn pinned_files_survive_a_crawl_and_what_does_not_fit_is_told_at_start() {
    let place = Place::new();
    make_files(&place, "pinned", 20, 8000);
    make_files(&place, "site/crawl", 3000, 2000);
    let config = |bytes: &str| {
        format!(
            "[cache]\nbytes = {bytes:?}\nrecheck = \"1h\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[site]]\nroot = \"site\"\n[[site.route]]\npath = \"/pinned/*\"\n\
             files = {{ root = \"pinned\", cache = \"pin\" }}\n"
        )
    };
    place.write("hob.toml", &config("1MiB"));
    let hob = place.serve(&["--config", "hob.toml"]);
    let client = &mut Connection::open(hob.port()).unwrap();
    crawl(client, "pinned", 20);
    crawl(client, "crawl", 3000);
    let before = cache_status(&place);
    assert!(number(&before, "pinned_bytes") >= 20 * 8000, "{before}");
    assert!(number(&before, "evictions") > 2000, "{before}");
    assert!(
        number(&before, "bytes") <= number(&before, "bytes_max"),
        "{before}"
    );
    crawl(client, "pinned", 20);
    let after = cache_status(&place);
    assert_eq!(
        number(&after, "hits") - number(&before, "hits"),
        20,
        "{after}"
    );
    hob.stop();

    place.write("hob.toml", &config("100KiB"));
    let output = place.run(&["serve", "--config", "hob.toml"]);
    let text = text_of(&output);
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("cache = \"pin\"") && text.contains("does not fit"),
        "{text}"
    );
}

#[test]
fn pinned_large_file_stays_pinned_when_it_changes() {
    let place = Place::new();
    make_files(&place, "pinned", 1, 100_000);
    let config = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                  [[site]]\n[[site.route]]\npath = \"/*\"\n\
                  files = { root = \"pinned\", cache = \"pin\" }\n";
    place.write("hob.toml", config);
    let hob = place.serve(&["--config", "hob.toml"]);
    let client = &mut Connection::open(hob.port()).unwrap();
    assert_eq!(ask(client, "/0.txt", "").body.len(), 100_000);
    replace(&place, "pinned/0.txt", &"y".repeat(200_000));
    wait_until_seen(client, ("/0.txt", ""), |answer| {
        answer.body.len() == 200_000
    });
    let status = cache_status(&place);
    let pinned = number(&status, "pinned_bytes");
    assert!((200_000..300_000).contains(&pinned), "{status}");
    hob.stop();
}

#[test]
fn hot_file_is_kept_in_memory_where_the_kernel_cannot_send_it() {
    let place = Place::new();
    make_files(&place, "site", 1, 100_000);
    let own_certificate = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n";
    for (cache, kept) in [("", true), ("[cache]\nmax_file_tls = \"64KiB\"\n", false)] {
        let plain = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n";
        let site = "[[site]]\nroot = \"site\"\n";
        let hob = place.serve_text(&format!("{plain}{own_certificate}{cache}{site}"));
        let client = &mut Connection::open(hob.port()).unwrap();
        for _ in 0..8 {
            assert_eq!(ask(client, "/0.txt", "").body.len(), 100_000);
        }
        let before = number(&cache_status(&place), "bytes");
        let url = format!("https://localhost:{}/0.txt?[1-20]", hob.tls_port());
        let whole = |version: &str| {
            let fetched = Command::new("curl")
                .args(["-ksS", "--noproxy", "*", version, &url])
                .output()
                .unwrap();
            assert!(fetched.status.success(), "{}", text_of(&fetched));
            assert_eq!(fetched.stdout.len(), 20 * 100_000);
            assert!(fetched.stdout.iter().all(|&byte| byte == b'x'), "{version}");
        };
        // A file that has just been written may yet change unseen: it is kept a little later.
        let until = Instant::now() + Duration::from_secs(30);
        let grown = || number(&cache_status(&place), "bytes") - before;
        whole("--http1.1");
        while kept && grown() == 0 && Instant::now() < until {
            whole("--http1.1");
        }
        assert_eq!(grown(), if kept { 100_000 } else { 0 });
        // From memory now, if it is kept.
        whole("--http2");
        replace(&place, "site/0.txt", &"y".repeat(100));
        wait_until_seen(client, ("/0.txt", ""), |answer| answer.body.len() == 100);
        let after = number(&cache_status(&place), "bytes");
        assert!(after < before, "{after} of {before}");
        replace(&place, "site/0.txt", &"x".repeat(100_000));
        hob.stop();
    }
}

#[test]
fn cache_that_is_off_keeps_nothing() {
    let place = Place::new();
    make_files(&place, "site/off", 10, 100);
    make_files(&place, "site/kept", 10, 100);
    let route = "[[site]]\nroot = \"site\"\n[[site.route]]\npath = \"/off/*\"\n\
                 files = { root = \"site/off\", cache = \"off\" }\n";
    let listen = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
    for (keys, hits, entries) in [("", 20, 10), ("cache = \"off\"\n", 0, 0)] {
        place.write("hob.toml", &format!("{keys}{listen}{route}"));
        let hob = place.serve(&["--config", "hob.toml"]);
        let client = &mut Connection::open(hob.port()).unwrap();
        for _ in 0..3 {
            crawl(client, "off", 10);
            crawl(client, "kept", 10);
        }
        // A look-up is counted when its answer has arrived, which a client of HTTP/3 says later.
        let until = Instant::now() + DEADLINE;
        let status = loop {
            let status = cache_status(&place);
            let counted = number(&status, "hits") + number(&status, "misses");
            if counted >= 60 || Instant::now() > until {
                break status;
            }
        };
        assert_eq!(number(&status, "hits"), hits, "{status}");
        assert_eq!(number(&status, "misses"), 60 - hits, "{status}");
        assert_eq!(number(&status, "entries"), entries, "{status}");
        hob.stop();
    }
}

#[test]
fn crawl_does_not_evict_what_is_hot() {
    let place = Place::new();
    make_files(&place, "site/hot", 20, 4000);
    make_files(&place, "site/crawl", 3000, 4000);
    let hob = place.serve_config("[cache]\nbytes = \"512KiB\"\nrecheck = \"1h\"\n");
    let client = &mut Connection::open(hob.port()).unwrap();
    for _ in 0..5 {
        crawl(client, "hot", 20);
    }
    crawl(client, "crawl", 3000);
    let before = cache_status(&place);
    assert!(number(&before, "evictions") > 2000, "{before}");
    crawl(client, "hot", 20);
    let after = cache_status(&place);
    assert_eq!(
        number(&after, "hits") - number(&before, "hits"),
        20,
        "{after}"
    );
    assert_eq!(
        number(&after, "misses"),
        number(&before, "misses"),
        "{after}"
    );
    hob.stop();
}

/// Memory of a process that no file stands behind, in bytes; of what is shared its share.
fn pss_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("Pss_Anon:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn memory_is_bounded_while_more_is_crawled_than_fits() {
    if !harness::is_root() {
        println!("skipped: reading another process's memory map needs root");
        return;
    }
    let place = Place::new();
    make_files(&place, "site/crawl", 20_000, 4000);
    let hob = place.serve_config("threads = 2\n[cache]\nbytes = \"8MiB\"\n");
    let (port, server) = (hob.port(), hob.server());
    let mut clients: Vec<_> = (0..2).map(|_| Connection::open(port).unwrap()).collect();
    for client in &mut clients {
        ask(client, "/hello.txt", "");
    }
    let before = pss_bytes(server);
    let most = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for mut client in clients {
            let most = Arc::clone(&most);
            scope.spawn(move || {
                for from in 0..20 {
                    for number in from * 1000..(from + 1) * 1000 {
                        ask(&mut client, &format!("/crawl/{number}.txt"), "");
                    }
                    most.fetch_max(pss_bytes(server), Ordering::Relaxed);
                }
            });
        }
    });
    let grown = most.load(Ordering::Relaxed).saturating_sub(before);
    // The budget; as much again for each thread that had no CPU to let go of what has left; an
    // eighth of these, which has left before a thread looks, with the heads of all. The files are
    // 80 MB.
    assert!(grown < 32 << 20, "grew by {} KiB", grown >> 10);
    let status = cache_status(&place);
    assert!(number(&status, "bytes") <= 8 << 20, "{status}");
    hob.stop();
}

#[test]
fn open_files_are_bounded_while_more_are_crawled_than_may_be_open() {
    let place = Place::new();
    make_files(&place, "site/crawl", 2000, 100);
    place.write_config("[cache]\nmax_file = 0\n", "site");
    let mut command = place.command_of(&PathBuf::from("/bin/sh"));
    command.args(["-c", "ulimit -n 256 && exec ./hob serve --config hob.toml"]);
    let hob = Hob::start(command);
    let client = &mut Connection::open(hob.port()).unwrap();
    crawl(client, "crawl", 2000);
    if harness::is_root() {
        let open = std::fs::read_dir(format!("/proc/{}/fd", hob.server())).unwrap();
        let files: HashSet<PathBuf> = open
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|path| path.starts_with(place.path("site/crawl")))
            .collect();
        assert!(
            (8..=64).contains(&files.len()),
            "{} files are open",
            files.len()
        );
    }
    hob.stop();
}

#[test]
fn hits_of_more_files_than_are_told_in_one_piece_are_all_told() {
    const COUNT: usize = 1100;
    let place = Place::new();
    make_files(&place, "site/many", COUNT, 10);
    let hob = place.serve_config("threads = 1\n");
    let client = &mut Connection::open(hob.port()).unwrap();
    for _ in 0..3 {
        crawl(client, "many", COUNT);
    }
    let socket = place.path("run/hob/control.sock");
    let mut entries = HashMap::new();
    // An answer has at most 1,000 of them.
    for digit in 0..10 {
        let target = format!("/v1/cache?limit=1000&q=/many/{digit}");
        let mut control = Connection::open_unix(&socket).unwrap();
        control.send_ask("GET", &target, "");
        let told: Value = serde_json::from_slice(&control.read_last("GET").body).unwrap();
        for entry in told["entries"].as_array().unwrap() {
            let path = entry["path"].as_str().unwrap().to_owned();
            entries.insert(path, entry["hits"].as_u64());
        }
    }
    assert_eq!(entries.len(), COUNT);
    let other = entries.iter().find(|(_, hits)| **hits != Some(2));
    assert_eq!(other, None, "brought in once, at hand twice");
    hob.stop();
}
