//! Files that programs pass by their descriptors: they arrive whole, and what is no file does not.

use std::fs::File;

use crate::harness::client::{Connection, ask, begin_download, call};
use crate::linked::serve_c;
use crate::site::Programs;

const PROGRAM: &str = include_str!("files.c");
/// As `handle/resident/limits.rs` has it.
const FILES_HELD_MAX: usize = 128;

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n % 251) as u8).collect()
}

fn on_both(run: impl Fn(&Programs)) {
    for carrier in ["shm", "stream"] {
        let keys = format!("carrier = \"{carrier}\", workers = {{ max = 1 }}");
        let site = serve_c(PROGRAM, &keys);
        assert_eq!(site.text("/app/carrier"), carrier);
        std::fs::write(site.path("data"), pattern(300_000)).unwrap();
        run(&site);
        site.stop();
    }
}

impl Programs {
    /// A file that takes no room, larger than what sockets buffer.
    fn huge(&self) -> File {
        let file = File::create(self.path("huge")).unwrap();
        file.set_len(64 << 20).unwrap();
        file
    }
}

#[test]
fn files_arrive_whole_in_parts_and_among_other_bytes() {
    on_both(|site| {
        let data = pattern(300_000);
        let reply = site.get("/app/whole?data");
        assert!(reply.is_whole && reply.answer.body == data);
        assert_eq!(reply.answer.header("content-length"), Some("300000"));
        let reply = site.get("/app/parts?data");
        let expected = [
            b"before ",
            &data[100..200_100],
            b" 200000 and ",
            &data[299_900..],
            b" 100 and ",
            &data[7..17],
        ];
        assert!(reply.is_whole && reply.answer.body == expected.concat());
        // More files than are under way at a time.
        let reply = site.get("/app/many?data");
        let expected: Vec<_> = (0..100)
            .flat_map(|n| &data[n..n + 65_536])
            .copied()
            .collect();
        assert!(reply.is_whole && reply.answer.body == expected);
    });
}

#[test]
fn requests_for_a_part_or_the_head_of_a_file_get_that() {
    on_both(|site| {
        let target = "/app/whole?data";
        let part = call(site.port(), "GET", target, "Range: bytes=5-9\r\n", b"").answer;
        assert_eq!((part.status, &part.body[..]), (206, &pattern(10)[5..]));
        assert_eq!(ask(site.port(), "HEAD", target, "").status, 200);
    });
}

#[test]
fn worker_is_free_while_its_file_is_sent() {
    on_both(|site| {
        site.huge();
        let (mut slow, _) = begin_download(site.port(), "/app/whole?huge");
        // The one worker there is.
        let worker = site.worker();
        assert_eq!(site.worker(), worker);
        assert_eq!(slow.skip(64 << 20).unwrap(), 64 << 20);
    });
}

#[test]
fn file_that_becomes_shorter_while_it_is_sent_breaks_off() {
    on_both(|site| {
        let file = site.huge();
        let (mut client, _) = begin_download(site.port(), "/app/whole?huge");
        file.set_len(10_000).unwrap();
        let rest = client.read_to_end();
        assert!(rest.len() < 64 << 20, "{}", rest.len());
        site.worker();
    });
}

#[test]
fn as_many_files_as_may_are_under_way() {
    // So many clients at once may take their time, to begin and to read.
    let site = Programs::new().with_linked("program", PROGRAM).serve_route(
        "path = \"/app/*\"\nresident = { run = [\"cgi/program\"], workers = { max = 1 } }\n\
         [limits]\nhandshake_time = \"10m\"\nwrite_progress = \"10m\"\n",
    );
    site.huge();
    let slow: Vec<_> = (0..FILES_HELD_MAX)
        .map(|_| begin_download(site.port(), "/app/whole?huge").0)
        .collect();
    let refused = site.get("/app/whole?huge").answer;
    assert_eq!(refused.status, 503);
    let (reason, _) = site.reason("/app/whole?huge");
    assert_eq!(
        reason,
        "limits: as many files of one worker as may are on their way"
    );
    assert_eq!(site.place.counter("limit_resident_files"), 1);
    drop(slow);
    site.place
        .wait_for_counter("client_left", FILES_HELD_MAX as u64);
    drop(begin_download(site.port(), "/app/whole?huge"));
    site.stop();
}

const WSGI: &str = "import gzip, io, tempfile\n\
    def application(environ, start):\n\
    \x20   what = environ['PATH_INFO'].lstrip('/')\n\
    \x20   fields = [('Content-Type', 'application/octet-stream')]\n\
    \x20   if what == 'short': fields.append(('Content-Length', '100000'))\n\
    \x20   if what == 'long': fields.append(('Content-Length', '400000'))\n\
    \x20   start('200 OK', fields)\n\
    \x20   if what == 'pid': return [str(__import__('os').getpid()).encode()]\n\
    \x20   if what == 'memory': file = io.BytesIO(b'x' * 100000)\n\
    \x20   elif what == 'packed': file = gzip.open('packed')\n\
    \x20   elif what == 'temporary':\n\
    \x20       file = tempfile.NamedTemporaryFile()\n\
    \x20       file.write(b'x' * 100000)\n\
    \x20       file.seek(10000)\n\
    \x20   else: file = open('huge' if what == 'huge' else 'data', 'rb')\n\
    \x20   if what == 'rest': file.read(70001)\n\
    \x20   return environ['wsgi.file_wrapper'](file)\n";

#[test]
fn files_of_wsgi_applications_arrive_however_they_are_sent() {
    let site = Programs::new().with_mode("files.py", WSGI, 0o644);
    let data = pattern(300_000);
    std::fs::write(site.path("data"), &data).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut packed, &data).unwrap();
    std::fs::write(site.path("packed"), packed.finish().unwrap()).unwrap();
    site.huge();
    let site = site.serve_route(
        "path = \"/app/*\"\nresident = { wsgi = \"files:application\", dir = \"cgi\", \
         workers = { max = 1 } }\n",
    );
    for (what, body) in [
        ("data", &data[..]),
        ("rest", &data[70_001..]),
        ("short", &data[..100_000]),
        ("packed", &data[..]),
        ("memory", &[b'x'; 100_000][..]),
        ("temporary", &[b'x'; 90_000][..]),
    ] {
        let reply = site.get(&format!("/app/{what}"));
        assert!(reply.is_whole && reply.answer.body == body, "{what}");
    }
    assert!(site.get("/app/long").is_broken());
    // It is free while its file is sent.
    let (mut slow, _) = begin_download(site.port(), "/app/huge");
    site.worker();
    assert_eq!(slow.skip(64 << 20).unwrap(), 64 << 20);
    site.stop();
}

/// A program that speaks for itself, and passes what it likes.
fn serve_passes(env: &str) -> Programs {
    let site = Programs::new()
        .with_mode("passes.py", include_str!("passes.py"), 0o644)
        .with_mode("data", "0123456789abcdef", 0o666);
    site.serve_route(&format!(
        "path = \"/app/*\"\nresident = {{ run = [\"python3\", \"passes.py\"], dir = \"cgi\", \
         carrier = \"stream\", workers = {{ max = 1 }}, env = {{ {env} }} }}\n"
    ))
}

#[test]
fn what_is_no_file_is_refused_and_the_worker_goes_on() {
    let site = serve_passes("PASSES = \"1\"");
    let worker = site.worker();
    assert_eq!(site.text("/app/file"), "0123456789");
    for (what, why) in [
        ("pipe", "what is no regular file"),
        ("socket", "what is no regular file"),
        ("folder", "what is no regular file"),
        ("device", "what is no regular file"),
        ("proc", "a file of the kernel's"),
        ("unreadable", "a file that cannot be read"),
        ("place", "a file that cannot be read"),
        ("beyond", "a file that is shorter than it says"),
    ] {
        let target = format!("/app/{what}");
        assert_eq!(site.get(&target).answer.status, 502, "{what}");
        let (reason, detail) = site.reason(&target);
        assert_eq!(reason, format!("the program passed {why}"), "{what}");
        assert_eq!(detail, "python3");
    }
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn answer_that_goes_on_with_what_is_no_file_breaks_off() {
    let site = serve_passes("PASSES = \"1\"");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("GET", "/app/later", "");
    client.read_until("the first half\n");
    site.go("later");
    let rest = client.read_to_end();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    let (reason, _) = site.reason("/app/later");
    assert_eq!(reason, "the program passed what is no regular file");
    site.stop();
}

#[test]
fn worker_whose_descriptors_do_not_fit_its_messages_is_ended() {
    let site = serve_passes("PASSES = \"1\"");
    for (what, why) in [
        ("missing", "it named a file without its descriptor"),
        ("nothing", "a file message that says no range of a file"),
        ("heap", "descriptors it passed were lost"),
    ] {
        let worker = site.worker();
        let target = format!("/app/{what}");
        assert!(site.get(&target).is_broken(), "{what}");
        let (reason, detail) = site.reason(&target);
        assert_eq!(reason, "the worker broke the protocol", "{what}");
        assert!(detail.contains(why), "{what}: {detail}");
        assert_ne!(site.worker(), worker, "{what}");
    }
    site.stop();
}

/// The client takes nothing, so no window is given back.
#[test]
fn worker_that_passes_more_files_than_its_window_allows_is_ended() {
    let site = serve_passes("PASSES = \"1\"");
    site.huge();
    let worker = site.worker();
    let slow = begin_download(site.port(), "/app/flood");
    crate::harness::wait_for_end(worker);
    let pool = site.wait_for_pool("told", |pool| pool["crashed"] == 1);
    let failure = pool["last_failure"].as_str().unwrap();
    assert!(
        failure.contains("it sent more files than its window allows"),
        "{failure}"
    );
    assert_ne!(site.worker(), worker);
    drop(slow);
    site.stop();
}

#[test]
fn worker_that_did_not_say_that_it_passes_files_does_not() {
    let site = serve_passes("");
    assert!(site.get("/app/file").is_broken());
    let (reason, detail) = site.reason("/app/file");
    assert_eq!(reason, "the worker broke the protocol");
    assert!(
        detail.contains("it sent a file, which its hello did not say"),
        "{detail}"
    );
    site.stop();
}
