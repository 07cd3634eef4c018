//! Lists of URLs: shares that follow the weights, rows by name, checks of each line, and lines that
//! are refused.

use serde_json::{Value, json};

use super::harness::{Place, text_of};
use super::server::{Reply, Server, answer};
use super::{bench, number, result};

/// The row of a name.
fn row<'a>(result: &'a Value, name: &str) -> &'a Value {
    let rows = result["urls"].as_array().unwrap();
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no row {name} in {rows:#?}"))
}

/// How many requests came for each target.
fn counts(server: &Server, target: &str) -> u64 {
    server.seen(|seen| {
        let heads = seen.requests.iter().map(|(head, _)| head);
        let asked = heads.filter(|head| head.split(' ').nth(1) == Some(target));
        asked.count() as u64
    })
}

#[test]
fn urls_are_drawn_by_weight_and_the_same_for_the_same_seed() {
    let place = Place::new();
    place.write("list", "/a weight=7\n/b weight=2 name=rest\n/c name=rest\n");
    let list = place.path("list");
    let run = |seed: &str| {
        let server = Server::start(|_| Reply::Bytes(answer("200 OK", "x")));
        let url = server.url();
        let more = ["-c", "4", "-n", "2000", "--seed", seed];
        let result = result(&[&[&url, "--urls", list.to_str().unwrap()], &more[..]].concat());
        assert_eq!(number(&result, "requests.good"), 2000);
        let seen = ["/a", "/b", "/c"].map(|target| counts(&server, target));
        assert_eq!(seen.iter().sum::<u64>(), 2000, "{seen:?}");
        let first = row(&result, &format!("{url}a"));
        assert_eq!(number(first, "answered"), seen[0]);
        let rest = row(&result, "rest");
        assert_eq!(number(rest, "answered"), seen[1] + seen[2]);
        assert_eq!(
            (&rest["weight"], &rest["url_count"]),
            (&json!(3.0), &json!(2))
        );
        assert_eq!(result["plan"]["weights"], json!([7.0, 2.0, 1.0]));
        let fairness = result["fairness_urls"].as_f64().unwrap();
        assert!(fairness > 0.98, "{fairness}");
        seen
    };
    let seen = run("1");
    // Six standard deviations around 1400, 400 and 200.
    for (count, share) in seen.iter().zip([1400, 400, 200]) {
        assert!(count.abs_diff(share) < 125, "{seen:?}");
    }
    assert_eq!(run("1"), seen);
    assert_ne!(run("2"), seen);
}

#[test]
fn lines_have_methods_bodies_fields_and_checks_of_their_own() {
    let place = Place::new();
    place.folder("sub");
    place.write("sub/form", "a=b");
    place.write(
        "sub/list",
        "GET /get header=\"X-Kind: a b\"\n\
         /form body=form name=form expect=status=201\n\
         DELETE /gone expect=status=200 name=gone # fails\n\
         HEAD /head expect=size=0\n",
    );
    // The four lines come in turn.
    let server = Server::start(|number| {
        Reply::Bytes(match number % 4 {
            1 => answer("201 Created", "made"),
            2 => answer("404 Not Found", ""),
            3 => b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n".to_vec(),
            _ => answer("200 OK", "x"),
        })
    });
    let list = place.path("sub/list");
    let url = server.url();
    let list = list.to_str().unwrap();
    let more = ["-c", "1", "-n", "8", "-H", "X-All: 1"];
    let result = result(&[&[&url, "--urls", list], &more[..]].concat());
    assert_eq!(number(&result, "requests.good"), 6, "{result:#}");
    assert_eq!(number(row(&result, "form"), "failed"), 0);
    let gone = row(&result, "gone");
    let failures = json!([{ "kind": "status", "count": 2, "first": "404" }]);
    assert_eq!(
        (&gone["failures"], &gone["method"]),
        (&failures, &json!("DELETE"))
    );
    assert_eq!(
        number(row(&result, &format!("HEAD {url}head")), "failed"),
        0
    );
    let wanted = [
        ("GET /get ", "X-All: 1\r\nX-Kind: a b\r\n", ""),
        ("POST /form ", "X-All: 1\r\nContent-Length: 3\r\n", "a=b"),
        ("DELETE /gone ", "X-All: 1\r\n\r\n", ""),
        ("HEAD /head ", "X-All: 1\r\n\r\n", ""),
    ];
    server.seen(|seen| {
        for ((head, body), (line, fields, wanted)) in seen.requests.iter().zip(wanted) {
            assert!(head.starts_with(line) && head.contains(fields), "{head}");
            assert_eq!(body, wanted.as_bytes());
        }
    });
}

#[test]
fn lists_are_asked_for_over_every_protocol() {
    let place = Place::new();
    place.write("site/small", "small");
    place.write(
        "list",
        "/hello.txt weight=3 name=hello expect=size=6\nHEAD /hello.txt name=head\n\
         /small expect=size=5 name=small header=X-Own:1\n\
         /missing name=missing expect=status=404\n",
    );
    let list = place.path("list");
    let config = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                  tls = true\n\n[[site]]\nroot = \"site\"\n";
    let hob = place.serve_text(config);
    let secure = format!("https://127.0.0.1:{}/", hob.tls_port());
    let clear = format!("http://127.0.0.1:{}/", hob.port());
    for (url, arguments) in [
        (&clear, &[][..]),
        (&clear, &["--http", "2", "-m", "5"]),
        (&secure, &["-t", "2"]),
        (&secure, &["--http", "2", "-m", "5"]),
        (&secure, &["--http", "3", "-m", "5"]),
    ] {
        let run = [
            url.as_str(),
            "--urls",
            list.to_str().unwrap(),
            "-n",
            "300",
            "-c",
            "2",
        ];
        let result = result(&[&run[..], arguments].concat());
        assert_eq!(
            number(&result, "requests.good"),
            300,
            "{arguments:?}: {result:#}"
        );
        let answered = ["hello", "head", "small", "missing"]
            .map(|name| number(row(&result, name), "answered"));
        assert_eq!(answered.iter().sum::<u64>(), 300);
        assert!(answered.iter().all(|count| *count > 10), "{answered:?}");
        let bodies = answered[0] * 6 + answered[2] * 5;
        assert!(number(&result, "bytes.bodies") >= bodies);
    }
    hob.stop();
}

#[test]
fn line_that_is_wrong_is_exit_code_2_with_its_place() {
    let place = Place::new();
    let path = place.path("list");
    let name = path.to_str().unwrap();
    for (text, says) in [
        (
            "http://127.0.0.1:1/\n/x wieght=3\n",
            ":2: \"wieght=3\" is nothing a line can say",
        ),
        (
            "http://127.0.0.1:1/\n\nhttp://127.0.0.2:1/\n",
            ":3: http://127.0.0.2:1/ is of another server",
        ),
        (
            "http://127.0.0.1:1/ body=none\n",
            ":1: body=none: cannot read it",
        ),
        ("# nothing\n", ":1: the list has no URL"),
    ] {
        place.write("list", text);
        let output = bench(&["--urls", name]);
        assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
        let wanted = format!("hob: {name}{says}");
        assert!(
            text_of(&output).starts_with(&wanted),
            "{}",
            text_of(&output)
        );
    }
    let output = bench(&["--urls", "/nonexistent"]);
    assert!(text_of(&output).contains("--urls /nonexistent: cannot read it"));
    let output = bench(&["http://a/", "http://a/b", "--urls", name]);
    assert!(text_of(&output).contains("one URL on the command line at most"));
}
