//! `countries`: rules that go by the country of the client's address, with files that another
//! implementation has written.
#![allow(clippy::unwrap_used)]

mod harness;

use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use harness::client::ask;
use harness::site::{TOP, ask_from, record};
use harness::{DEADLINE, Hob, Place, text_of};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/country/database.py");

/// Whether files can be written; a line says why not.
fn has_writer() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let install = Command::new("python3").args([SCRIPT, "install"]).output();
        match install {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(text_of(&output)),
            Err(error) => Some(error.to_string()),
        }
    });
    if let Some(reason) = reason {
        println!("skipped: mmdb_writer cannot be installed: {reason}");
    }
    reason.is_none()
}

/// A file of this kind.
fn database(kind: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.mmdb");
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/mmdb/bin/python");
    let written = Command::new(python)
        .args([SCRIPT, "write", kind])
        .arg(&file)
        .output();
    let written = written.unwrap();
    assert!(written.status.success(), "{}", text_of(&written));
    std::fs::read(file).unwrap()
}

/// A place with a file of this kind; nothing where none can be written.
fn place(kind: &str) -> Option<Place> {
    has_writer().then(|| {
        let place = Place::new();
        put(&place, &database(kind));
        place
    })
}

/// Puts a file in the place of the one before, at once.
fn put(place: &Place, bytes: &[u8]) {
    std::fs::write(place.path("new.mmdb"), bytes).unwrap();
    std::fs::rename(place.path("new.mmdb"), place.path("c.mmdb")).unwrap();
}

/// A config whose site has these keys and routes.
fn config(site: &str) -> String {
    format!("countries = \"c.mmdb\"\n{TOP}{site}")
}

fn status(hob: &Hob, client: &str, path: &str) -> u16 {
    ask_from(hob, client, path).status
}

/// Asks until this is the answer.
fn wait_for_status(hob: &Hob, client: &str, wanted: u16) {
    let until = Instant::now() + DEADLINE;
    while status(hob, client, "/hello.txt") != wanted {
        assert!(Instant::now() < until, "never {wanted}");
        std::thread::yield_now();
    }
}

const DENIED: &str = "access: `deny` has the country of the client's address";
const NOT_ALLOWED: &str = "access: `allow` has neither the client's address nor its country";

/// Each kind of file that there is says the same.
#[test]
fn denied_country_is_refused_whatever_wrote_the_file() {
    for kind in ["country", "flat", "v4"] {
        let Some(place) = place(kind) else { return };
        let hob = place.serve_text(&config(
            "access = { deny = [\"country:kp\", \"country:FR\"] }\n",
        ));
        for (client, wanted) in [
            ("192.0.2.1", 200),
            ("198.51.100.0", 403),
            ("198.51.100.255", 403),
            ("::ffff:198.51.100.7", 403),
            ("198.51.101.0", 200),
            ("203.0.113.127", 200),
            ("2001:db8::1", if kind == "v4" { 200 } else { 403 }),
            ("2001:db9::1", 200),
        ] {
            let path = format!("/hello.txt?{client}");
            assert_eq!(status(&hob, client, &path), wanted, "{kind}: {client}");
            let reason = if wanted == 403 { DENIED } else { "" };
            assert_eq!(record(&place, &path)["reason"], reason, "{kind}: {client}");
        }
        hob.stop();
    }
}

#[test]
fn allowed_are_networks_or_countries_and_denied_ones_win() {
    let Some(place) = place("country") else {
        return;
    };
    let hob = place.serve_text(&config(
        "access = { allow = [\"10.0.0.0/8\", \"country:DE\", \"country:AT\", \
         \"country:unknown\"], deny = [\"192.0.2.13\", \"country:AT\", \"172.16.0.0/12\"] }\n",
    ));
    for (client, wanted, reason) in [
        ("192.0.2.1", 200, ""),
        ("192.0.2.13", 403, "access: `deny` has the client's address"),
        ("203.0.113.1", 403, DENIED),
        ("198.51.100.1", 403, NOT_ALLOWED),
        ("2001:db8::1", 403, NOT_ALLOWED),
        // These are of no country.
        ("10.1.2.3", 200, ""),
        ("8.8.8.8", 200, ""),
        ("172.16.0.1", 403, "access: `deny` has the client's address"),
    ] {
        let path = format!("/hello.txt?{client}");
        assert_eq!(status(&hob, client, &path), wanted, "{client}");
        assert_eq!(record(&place, &path)["reason"], reason, "{client}");
    }
    assert_eq!(place.counter("access_refused"), 5);
    hob.stop();
}

#[test]
fn country_that_is_not_known_can_be_denied() {
    let Some(place) = place("country") else {
        return;
    };
    let hob = place.serve_text(&config("access = { deny = [\"country:unknown\"] }\n"));
    for (client, wanted) in [("192.0.2.1", 200), ("198.51.100.1", 200), ("10.0.0.1", 403)] {
        assert_eq!(status(&hob, client, "/hello.txt"), wanted, "{client}");
    }
    hob.stop();
}

#[test]
fn route_is_chosen_by_the_country() {
    let Some(place) = place("country") else {
        return;
    };
    let route = |body: &str, when: &str| {
        format!("[[site.route]]\npath = \"/x\"\nrespond = {{ body = \"{body}\" }}\n{when}\n")
    };
    let hob = place.serve_text(&config(&format!(
        "{}{}{}",
        route("german", "when = { country = [\"DE\", \"AT\"] }"),
        route(
            "nowhere",
            "when = { country = [\"unknown\"], method = [\"GET\"] }"
        ),
        route("rest", ""),
    )));
    for (client, body) in [
        ("192.0.2.1", "german"),
        ("203.0.113.1", "german"),
        ("203.0.113.128", "nowhere"),
        ("198.51.100.1", "rest"),
        ("2001:db8::1", "rest"),
    ] {
        assert_eq!(ask_from(&hob, client, "/x").text(), body, "{client}");
    }
    // This machine is of no country.
    assert_eq!(ask(hob.port(), "GET", "/x", "").text(), "nowhere");
    hob.stop();
}

#[test]
fn field_of_who_is_not_trusted_says_no_country() {
    let Some(place) = place("country") else {
        return;
    };
    let top = TOP.replace("trusted = [\"127.0.0.1\"]\n", "");
    let site = "access = { allow = [\"country:DE\"] }\n";
    let hob = place.serve_text(&format!("countries = \"c.mmdb\"\n{top}{site}"));
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 403);
    hob.stop();
}

#[test]
fn programs_and_logs_are_told_the_country() {
    let Some(place) = place("country") else {
        return;
    };
    place.script(
        "cgi/tell",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n[%s]' \"$GEOIP_COUNTRY_CODE\"\n",
    );
    let hob = place.serve_text(
        "countries = \"c.mmdb\"\ndefault_log = \"access\"\n[[log]]\nname = \"access\"\n\
         file = \"run/access.log\"\nformat = \"{target} {country}\"\n[[listen]]\n\
         address = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\n[[site]]\n[[site.route]]\n\
         path = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n",
    );
    for (client, said, logged) in [
        ("192.0.2.1", "[DE]", "DE"),
        ("10.0.0.1", "[]", "-"),
        ("2001:db8::1", "[FR]", "FR"),
    ] {
        let target = format!("/cgi/tell?{client}");
        assert_eq!(ask_from(&hob, client, &target).text(), said, "{client}");
        let line = format!("{target} {logged}");
        let until = Instant::now() + DEADLINE;
        loop {
            let log = std::fs::read_to_string(place.path("run/access.log")).unwrap_or_default();
            if log.lines().any(|found| found == line) {
                break;
            }
            assert!(Instant::now() < until, "no {line} in {log}");
            std::thread::yield_now();
        }
    }
    // What a client says of itself is another variable.
    let fields = "GeoIP-Country-Code: DE\r\nX-Forwarded-For: 10.0.0.1\r\n";
    assert_eq!(ask(hob.port(), "GET", "/cgi/tell", fields).text(), "[]");
    hob.stop();
}

#[test]
fn new_file_counts_and_one_that_is_none_leaves_the_one_before() {
    let Some(place) = place("country") else {
        return;
    };
    let hob = place.serve_text(&config("access = { deny = [\"country:KP\"] }\n"));
    wait_for_status(&hob, "192.0.2.1", 200);
    let moved = database("moved");
    put(&place, &moved);
    wait_for_status(&hob, "192.0.2.1", 403);
    assert_eq!(status(&hob, "198.51.100.1", "/hello.txt"), 200);
    hob.wait_for("countries are read anew");
    let asn = database("asn");
    let wrong: [(&[u8], &str); 5] = [
        (&asn, "has no countries: it is of the kind \"Test-ASN\""),
        (&moved[..moved.len() / 2], "is no file in MaxMind's format"),
        (b"", "is no file in MaxMind's format"),
        (&[&moved[moved.len() / 2..]].concat(), "c.mmdb "),
        (b"hello", "is no file in MaxMind's format"),
    ];
    for (count, (bytes, told)) in (1..).zip(wrong) {
        put(&place, bytes);
        let line = hob.wait_for_count("countries stay as they were", count);
        assert!(line.contains(told), "{line}");
        assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 403);
        // The same as a good one in its place tells.
        put(&place, &moved);
        hob.wait_for_count("countries are read anew", count + 1);
    }
    // One that is written over is shorter for a while: nothing is mapped that could go.
    std::fs::write(place.path("c.mmdb"), b"").unwrap();
    hob.wait_for_count("countries stay as they were", 6);
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 403);
    std::fs::write(place.path("c.mmdb"), database("country")).unwrap();
    wait_for_status(&hob, "192.0.2.1", 200);
    std::fs::remove_file(place.path("c.mmdb")).unwrap();
    hob.wait_for_count("countries stay as they were", 7);
    assert_eq!(status(&hob, "198.51.100.1", "/hello.txt"), 403);
    hob.stop();
}

#[test]
fn reload_takes_a_new_file_and_refuses_one_that_is_none() {
    let Some(place) = place("country") else {
        return;
    };
    let site = "access = { deny = [\"country:KP\"] }\n";
    let hob = place.serve_text(&config(site));
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    std::fs::write(place.path("d.mmdb"), database("moved")).unwrap();
    place.write("hob.toml", &config(site).replace("c.mmdb", "d.mmdb"));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 403);
    place.write("e.mmdb", "hello");
    place.write("hob.toml", &config(site).replace("c.mmdb", "e.mmdb"));
    let reload = place.run(&["reload"]);
    assert!(!reload.status.success());
    let told = text_of(&reload);
    assert!(
        told.contains("e.mmdb is no file in MaxMind's format"),
        "{told}"
    );
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 403);
    hob.stop();
}

#[test]
fn check_refuses_what_is_no_file_of_countries() {
    let Some(place) = place("asn") else { return };
    place.folder("folder");
    let check = |file: &str| {
        place.write("hob.toml", &config("").replace("c.mmdb", file));
        let check = place.run(&["check"]);
        (check.status.success(), text_of(&check))
    };
    for (file, told) in [
        ("away.mmdb", "there is no file"),
        ("folder", "folder is a folder"),
        ("site/hello.txt", "is no file in MaxMind's format"),
        ("site/big.bin", "is no file in MaxMind's format"),
        ("c.mmdb", "has no countries: it is of the kind \"Test-ASN\""),
    ] {
        let (is_right, said) = check(file);
        assert!(!is_right && said.contains(told), "{file}: {said}");
    }
    let huge = std::fs::File::create(place.path("huge.mmdb")).unwrap();
    huge.set_len((512 << 20) + 1).unwrap();
    let (is_right, said) = check("huge.mmdb");
    assert!(!is_right && said.contains("of more than 512 MiB"), "{said}");
    // Cut off anywhere it is none.
    let whole = database("country");
    for len in (0..whole.len()).step_by(whole.len() / 20) {
        put(&place, &whole[..len]);
        let (is_right, said) = check("c.mmdb");
        assert!(
            !is_right && said.contains("MaxMind's format"),
            "{len}: {said}"
        );
    }
    put(&place, &whole);
    let (is_right, said) = check("c.mmdb");
    assert!(is_right, "{said}");
}

#[test]
fn explain_tells_the_country_and_what_comes_of_it() {
    let Some(place) = place("country") else {
        return;
    };
    let some = "[[site.route]]\npath = \"/x\"\nrespond = { body = \"x\" }\n\
                when = { country = [\"DE\"] }\n";
    let site = format!("access = {{ deny = [\"country:KP\"] }}\n{some}");
    place.write("hob.toml", &config(&site));
    let explain = |arguments: &[&str]| text_of(&place.run(&[&["explain"], arguments].concat()));
    let told = explain(&["/hello.txt", "--from", "198.51.100.1"]);
    assert!(
        told.contains("403 Forbidden") && told.contains(DENIED),
        "{told}"
    );
    assert!(
        told.contains("198.51.100.1 is of KP, says `countries` (Test-Country of "),
        "{told}"
    );
    for (client, why) in [
        (
            "198.51.100.1",
            "`country` does not have KP, of which 198.51.100.1 is",
        ),
        ("10.0.0.1", "no country is known of 10.0.0.1"),
    ] {
        let told = explain(&["/x", "--from", client]);
        let skipped = format!("/x is skipped, says its `when`: {why} (");
        assert!(told.contains(&skipped), "{told}");
    }
    let told = explain(&["/x", "--from", "192.0.2.1"]);
    assert!(told.contains("/x matches"), "{told}");
    let told = explain(&["/x"]);
    assert!(
        told.contains("`country` goes by the client's address: --from ADDRESS tries one"),
        "{told}"
    );
    assert!(
        told.contains("`access` asks for the client's address: --from ADDRESS tries one"),
        "{told}"
    );
}

#[test]
fn file_of_many_networks_is_looked_up_in_each_of_them() {
    let Some(place) = place("large") else { return };
    let hob = place.serve_text(&config("access = { deny = [\"country:KP\"] }\n"));
    let codes = ["DE", "FR", "AT", "CH", "KP"];
    for at in (0..30_000).step_by(997) {
        let client = format!("10.{}.{}.77", at / 128, at % 128 * 2);
        let wanted = if codes[at % 5] == "KP" { 403 } else { 200 };
        assert_eq!(status(&hob, &client, "/hello.txt"), wanted, "{client}");
        let between = format!("10.{}.{}.77", at / 128, at % 128 * 2 + 1);
        assert_eq!(status(&hob, &between, "/hello.txt"), 200, "{between}");
    }
    hob.stop();
}
