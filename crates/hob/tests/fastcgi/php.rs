//! php-fpm: what scripts see, and what becomes of what they print.

use std::os::unix::fs::symlink;

use crate::authority::Authority;
use crate::harness::client::{Connection, call};
use crate::harness::site::Site;
use crate::harness::{Place, is_root};
use crate::site::{self, Kept, found};
use crate::tls::in_front;

const VARIABLES: &str = "<?php foreach (['SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_INFO', \
    'DOCUMENT_ROOT', 'REQUEST_URI', 'QUERY_STRING', 'REQUEST_METHOD', \
    'HTTP_X_OWN', 'APP_ENV', 'HTTP_AUTHORIZATION', 'CONTENT_LENGTH'] as $name) \
    echo $name, '=', $_SERVER[$name] ?? '-', \"\\n\";";

/// A php-fpm with two children, at `run/fpm.sock`.
pub(crate) fn fpm(place: &Place) -> Kept {
    let at = |name: &str| place.path(name).display().to_string();
    // Its master needs root to be somebody else, as the place's other programs are.
    let user = match is_root() {
        true => "user = nobody\ngroup = nogroup\n",
        false => "",
    };
    place.write(
        "fpm.conf",
        &format!(
            "[global]\nerror_log = {}\ndaemonize = no\n[www]\n{user}listen = {}\n\
             listen.mode = 0666\npm = static\npm.max_children = 2\ncatch_workers_output = yes\n",
            at("run/fpm.err"),
            at("run/fpm.sock"),
        ),
    );
    let mut command = std::process::Command::new(found(&["php-fpm", "php-fpm8.2", "php-fpm8.4"]));
    command
        .args(["--nodaemonize", "--fpm-config"])
        .arg(at("fpm.conf"))
        .arg("-n");
    Kept::start(place, command, "run/fpm.sock")
}

fn with_scripts(scripts: &[(&str, &str)]) -> (Place, Kept) {
    let place = Place::new();
    place.folder("php");
    for (name, text) in scripts {
        place.write(&format!("php/{name}"), text);
    }
    let fpm = fpm(&place);
    (place, fpm)
}

/// A site with these scripts below `/app/`.
fn serve(scripts: &[(&str, &str)], keys: &str) -> (Site, Kept) {
    let (place, fpm) = with_scripts(scripts);
    let keys = format!("to = \"unix:run/fpm.sock\", root = \"php\"{keys}");
    (site::serve(place, &keys, ""), fpm)
}

#[test]
fn script_sees_where_it_stands_and_who_asks() {
    let (site, _fpm) = serve(
        &[("vars.php", VARIABLES), ("index.php", VARIABLES)],
        ", env = { APP_ENV = \"test\" }",
    );
    let place = site.place.path("php").canonicalize().unwrap();
    let place = place.display();
    let fields = "X-Own: own\r\nAuthorization: Basic c2VjcmV0\r\n";
    let told = call(site.port(), "GET", "/app/vars.php/a%20b?c=d", fields, b"");
    assert_eq!(
        told.answer.header("content-type"),
        Some("text/html; charset=UTF-8")
    );
    assert_eq!(
        told.answer.text(),
        format!(
            "SCRIPT_NAME=/app/vars.php\nSCRIPT_FILENAME={place}/vars.php\nPATH_INFO=/a b\n\
             DOCUMENT_ROOT={place}\nREQUEST_URI=/app/vars.php/a%20b?c=d\nQUERY_STRING=c=d\n\
             REQUEST_METHOD=GET\nHTTP_X_OWN=own\nAPP_ENV=test\n\
             HTTP_AUTHORIZATION=-\nCONTENT_LENGTH=-\n"
        )
    );
    // A folder's index, and a folder without its slash.
    let index = site.get("/app/").answer;
    assert!(
        index.text().starts_with("SCRIPT_NAME=/app/index.php\n"),
        "{}",
        index.text()
    );
    let record = site.record("/app/");
    assert_eq!(
        (&record["handler"], &record["status"]),
        (&"fastcgi".into(), &200.into())
    );
    assert!(record["program_us"].as_u64().unwrap() > 0, "{record}");
    site.stop();
}

#[test]
fn only_a_script_that_is_there_is_passed_on() {
    let (place, fpm) = with_scripts(&[
        ("image.jpg", "<?php echo 'run';"),
        ("x.php", "<?php echo 'x';"),
    ]);
    place.folder("php/sub");
    place.folder("php/.git");
    place.write("php/.git/hook.php", "<?php echo 'hidden';");
    place.write("outside.php", "<?php echo 'outside';");
    symlink("x.php", place.path("php/link.php")).unwrap();
    symlink(place.path("outside.php"), place.path("php/out.php")).unwrap();
    let site = site::serve(place, "to = \"unix:run/fpm.sock\", root = \"php\"", "");
    for target in [
        "/app/image.jpg/x.php",
        "/app/none.php",
        "/app/image.jpg",
        "/app/none",
        "/app/.git/hook.php",
        "/app/out.php",
        "/app/sub/",
        "/app/sub/x.php/x.php",
    ] {
        let answer = site.get(target).answer;
        assert_eq!(answer.status, 404, "{target}: {}", answer.text());
        // It is hob's page, and not php-fpm's `File not found.`.
        assert!(
            answer.text().contains("<html"),
            "{target}: {}",
            answer.text()
        );
    }
    assert_eq!(site.get("/app/link.php").answer.text(), "x");
    let slash = site.get("/app/sub").answer;
    assert_eq!(
        (slash.status, slash.header("location")),
        (301, Some("/app/sub/"))
    );
    drop(fpm);
    site.stop();
}

#[test]
fn status_fields_and_bodies_are_the_scripts_own() {
    let (site, _fpm) = serve(
        &[
            (
                "gone.php",
                "<?php http_response_code(410); header('X-One: 1'); header('X-One: 2', false); echo 'gone';",
            ),
            ("away.php", "<?php header('Location: /elsewhere');"),
            ("none.php", "<?php http_response_code(204);"),
            (
                "echo.php",
                "<?php echo md5(file_get_contents('php://input')), ' ', $_SERVER['CONTENT_LENGTH'] ?? '-';",
            ),
            (
                "much.php",
                "<?php for ($i = 0; $i < 3000; $i++) echo str_repeat('x', 1000);",
            ),
            (
                "slow.php",
                "<?php echo 'one'; flush(); usleep(50000); echo 'two';",
            ),
        ],
        "",
    );
    let gone = site.get("/app/gone.php").answer;
    assert_eq!((gone.status, gone.text().as_str()), (410, "gone"));
    let ones: Vec<_> = gone
        .headers
        .iter()
        .filter(|(name, _)| name == "x-one")
        .collect();
    assert_eq!(ones.len(), 2);
    assert_eq!(gone.header("content-length"), Some("4"));
    let away = site.get("/app/away.php").answer;
    assert_eq!(
        (away.status, away.header("location")),
        (302, Some("/elsewhere"))
    );
    let none = site.get("/app/none.php").answer;
    assert_eq!((none.status, none.body.len()), (204, 0));
    let much = site.get("/app/much.php");
    assert!(much.is_whole && much.answer.body == vec![b'x'; 3_000_000]);
    assert_eq!(site.get("/app/slow.php").answer.text(), "onetwo");
    let head = call(site.port(), "HEAD", "/app/much.php", "", b"").answer;
    assert_eq!((head.status, head.body.len()), (200, 0));

    // Bodies of any size, of a known length and of none.
    for len in [0, 1, 70_000, 3_000_000] {
        let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let sum = md5(&body);
        let told = call(site.port(), "POST", "/app/echo.php", "", &body)
            .answer
            .text();
        let length = if len == 0 {
            "-".to_owned()
        } else {
            len.to_string()
        };
        assert_eq!(told, format!("{sum} {length}"));
    }
    let chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let head = b"POST /app/echo.php HTTP/1.1\r\nHost: localhost\r\n\
                 Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let told = crate::harness::client::exchange(site.port(), &[&head[..], chunks].concat());
    assert_eq!(told.answer.text(), format!("{} 11", md5(b"hello world")));
    site.stop();
}

/// As `md5sum` has it.
fn md5(bytes: &[u8]) -> String {
    use std::io::Write;
    let mut sum = std::process::Command::new("md5sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    sum.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = sum.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..32].to_owned()
}

#[test]
fn first_piece_is_sent_when_it_comes() {
    let (site, _fpm) = serve(
        &[(
            "waits.php",
            "<?php echo 'first'; flush(); while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'last';",
        )],
        "",
    );
    let mut connection = Connection::open(site.port()).unwrap();
    connection.send_get("/app/waits.php").unwrap();
    let (status, headers) = connection.read_head().unwrap();
    assert_eq!(status, 200);
    let first = connection.read_some().unwrap();
    assert!(
        String::from_utf8_lossy(&first).contains("first"),
        "{headers:?}"
    );
    std::fs::write(site.place.path("php/go"), "").unwrap();
    connection.read_until("last");
    site.stop();
}

#[test]
fn what_a_script_prints_on_standard_error_is_logged_and_told_of_a_failure() {
    let (site, _fpm) = serve(
        &[
            (
                "warns.php",
                "<?php ini_set('log_errors', 1); ini_set('error_log', ''); error_log('careful'); echo 'well';",
            ),
            (
                "dies.php",
                "<?php ini_set('display_errors', 0); ini_set('log_errors', 1); ini_set('error_log', ''); none();",
            ),
        ],
        "",
    );
    assert_eq!(site.get("/app/warns.php").answer.text(), "well");
    // It says 500 itself: its answer is passed on.
    assert_eq!(site.get("/app/dies.php").answer.status, 500);
    assert_eq!(site.record("/app/dies.php")["fault"], "none");
    let printed = site.stop_and_print();
    assert!(
        printed.contains("stderr: ") && printed.contains("careful"),
        "{printed}"
    );
    assert!(printed.contains("undefined function none()"), "{printed}");
}

#[test]
fn what_other_paths_answer_is_not_for_a_script_to_choose_unless_the_route_says_so() {
    let scripts = [
        (
            "steers.php",
            "<?php header('X-Accel-Redirect: /secret/key'); echo 'own';",
        ),
        (
            "file.php",
            "<?php header('X-Sendfile: ' . __DIR__ . '/file.php'); echo 'own';",
        ),
        (
            "stays.php",
            "<?php header('X-Accel-Buffering: no'); echo 'own';",
        ),
    ];
    let secret =
        "[[site.route]]\npath = \"/secret/*\"\nrespond = { body = \"secret\" }\ninternal = true\n";
    for (control, body) in [("", "own"), (", control = true", "secret")] {
        let (place, _fpm) = with_scripts(&scripts);
        let keys = format!("to = \"unix:run/fpm.sock\", root = \"php\"{control}");
        let site = site::serve(place, &keys, secret);
        let answer = site.get("/app/steers.php").answer;
        assert_eq!(answer.text(), body);
        assert_eq!(answer.header("x-accel-redirect"), None);
        let file = site.get("/app/file.php").answer;
        // Below no folder of `sendfile`.
        let expected = if control.is_empty() { 200 } else { 502 };
        assert_eq!((file.status, file.header("x-sendfile")), (expected, None));
        let stays = site.get("/app/stays.php").answer;
        assert_eq!(
            (stays.text().as_str(), stays.header("x-accel-buffering")),
            ("own", None)
        );
        site.stop();
    }
}

#[test]
fn files_of_a_site_fall_back_to_its_front_controller() {
    let (place, _fpm) = with_scripts(&[
        ("index.php", "<?php echo 'front ', $_SERVER['REQUEST_URI'];"),
        ("style.css", "p { }\n"),
        ("admin.php", "<?php echo 'admin';"),
    ]);
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"php\"\n\
         [site.files]\nindex = [\"index.php\"]\nfallback = \"index.php\"\n\
         [[site.route]]\npath = \"*.php\"\nfastcgi = \"unix:run/fpm.sock\"\n",
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let get = |target: &str| call(hob.port(), "GET", target, "", b"").answer.text();
    assert_eq!(
        get("/2026/hello-world/?p=1"),
        "front /2026/hello-world/?p=1"
    );
    assert_eq!(get("/"), "front /");
    assert_eq!(get("/admin.php"), "admin");
    assert_eq!(get("/style.css"), "p { }\n");
    hob.stop();
}

/// What a front controller is told, and the body it reads.
const FRONT: &str = "<?php echo implode(' ', array_map(fn ($name) => $_SERVER[$name] ?? '-', \
    ['REQUEST_METHOD', 'REQUEST_URI', 'SCRIPT_NAME', 'PATH_INFO', 'QUERY_STRING'])), \
    ' ', file_get_contents('php://input');";

#[test]
fn permalinks_are_for_the_front_controller_and_what_is_there_is_not() {
    let (place, _fpm) = with_scripts(&[("index.php", FRONT)]);
    for folder in ["wp-content", "wp-admin", ".git"] {
        place.folder(&format!("php/{folder}"));
    }
    place.write("php/wp-content/photo.txt", "a photo");
    place.write("php/wp-admin/index.php", "<?php echo 'admin';");
    place.write("php/.git/config", "secret");
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         [[site.route]]\npath = \"/blog/*.php\"\n\
         fastcgi = { to = \"unix:run/fpm.sock\", root = \"php\" }\n\
         [[site.route]]\npath = \"/blog/*\"\n\
         files = { root = \"php\", index = [\"index.php\"], fallback = \"index.php\" }\n",
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let ask = |method: &str, target: &str, body: &[u8]| {
        let answer = call(hob.port(), method, target, "", body).answer;
        (answer.status, answer.text())
    };
    let front = |told: &str| (200, told.to_owned());
    // As they came: the application makes of them what it likes.
    assert_eq!(
        ask("GET", "/blog/2024/hello?p=1", b""),
        front("GET /blog/2024/hello?p=1 /blog/index.php  p=1 ")
    );
    assert_eq!(
        ask("POST", "/blog/2024/hello", b"name=value"),
        front("POST /blog/2024/hello /blog/index.php   name=value")
    );
    assert_eq!(ask("GET", "/blog/wp-content/photo.txt", b"").1, "a photo");
    assert_eq!(ask("GET", "/blog/wp-admin/", b"").1, "admin");
    let slash = call(hob.port(), "GET", "/blog/wp-admin", "", b"").answer;
    assert_eq!(slash.header("location"), Some("/blog/wp-admin/"));
    // A script that is not there is missing, and what is hidden is nowhere.
    let (status, page) = ask("GET", "/blog/none.php", b"");
    assert!(status == 404 && page.contains("<html"), "{page}");
    assert!(!ask("GET", "/blog/.git/config", b"").1.contains("secret"));
    hob.stop();
}

#[test]
fn scripts_that_hob_does_not_see_are_named_as_the_other_side_sees_them() {
    let (place, _fpm) = with_scripts(&[("vars.php", VARIABLES)]);
    let php = place.path("php").display().to_string();
    let keys = format!("to = \"unix:run/fpm.sock\", script_root = \"{php}\"");
    let site = site::serve(place, &keys, "");
    let told = site.get("/app/vars.php/info").answer.text();
    assert!(
        told.contains(&format!(
            "SCRIPT_FILENAME={php}/vars.php\nPATH_INFO=/info\n"
        )),
        "{told}"
    );
    // Nobody has looked: it is php-fpm's to say.
    let missing = site.get("/app/none.php").answer;
    assert_eq!(
        (missing.status, missing.text().trim()),
        (404, "File not found.")
    );
    site.stop();
}

#[test]
fn php_is_asked_over_tls_with_bodies_both_ways() {
    let (place, _fpm) =
        with_scripts(&[("back.php", "<?php echo file_get_contents('php://input');")]);
    let authority = Authority::new("ca");
    authority.write(&place, "ca.pem");
    let signed = authority.sign(&["localhost"]);
    let (port, _front) = in_front(&place, &signed, "run/fpm.sock", "");
    let keys = format!(
        "to = \"tls://localhost:{port}\", root = \"php\", keep = 1, tls = {{ ca = \"ca.pem\" }}"
    );
    let site = site::serve(place, &keys, "");
    for len in [10, 3_000_000] {
        let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let reply = call(site.port(), "POST", "/app/back.php", "", &body);
        assert!(reply.is_whole && reply.answer.body == body);
    }
    let counted = ["upstream_tls_handshakes", "upstream_reuses"];
    assert_eq!(counted.map(|name| site.place.counter(name)), [1, 1]);
    site.stop();
}

#[test]
fn server_that_is_stopped_is_a_502_and_answers_again_when_it_is_back() {
    let (site, fpm) = serve(&[("x.php", "<?php echo 'x';")], "");
    assert_eq!(site.get("/app/x.php").answer.text(), "x");
    drop(fpm);
    let gone = site.get("/app/x.php?gone").answer;
    assert_eq!(gone.status, 502);
    let record = site.record("/app/x.php?gone");
    assert_eq!(record["reason"], "the program cannot be reached");
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.contains("x.php at unix:") && detail.contains("No such file"),
        "{detail}"
    );
    let _fpm = self::fpm(&site.place);
    assert_eq!(site.get("/app/x.php").answer.text(), "x");
    site.stop();
}
