//! Routes for some of those who have signed in.

use super::*;
use crate::harness::client::call;

#[test]
fn route_for_some_who_have_signed_in_leaves_others_to_the_next() {
    let place = Place::new();
    let some = |path: &str, word: &str, when: &str| {
        format!(
            "[[site.route]]\npath = \"{path}\"\nrespond = {{ body = \"{word}\" }}\n\
             require = \"staff\"\nwhen = {{ {when} }}\n"
        )
    };
    place.script(
        "cgi/who",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho \"$REMOTE_USER\"\ncat\n",
    );
    let routes = [
        some("/inner/*", "ann's", "user = [\"ann\"], group = [\"all\"]"),
        some(
            "/inner/*",
            "nobody's",
            "user = [\"ann\"], group = [\"lab\"]",
        ),
        some("/inner/*", "lab's", "group = [\"lab\"], method = [\"GET\"]"),
        inner("{ auth = \"staff\", users = [\"bob\", \"cid\"] }"),
        some("/form", "ann's", "user = [\"ann\"]"),
        "[[site.route]]\npath = \"/form\"\ncgi = { script = \"cgi/who\" }\n".to_owned(),
        some("/only", "ann's", "user = [\"ann\"]"),
        some("/moved", "ann's", "user = [\"ann\"]"),
        "[[site.route]]\npath = \"/moved\"\nrewrite = \"/inner/a.txt\"\nfiles = {}\n".to_owned(),
    ];
    let hob = serve(&place, &routes.concat());
    let got = |name: &str, path: &str| {
        let answer = get(&hob, path, &basic(name, "sesame"));
        (answer.status, answer.text())
    };
    let is_text = |got: (u16, String), text: &str| assert_eq!(got, (200, text.to_owned()));
    for path in ["/inner/a.txt", "/only"] {
        let refused = get(&hob, path, "");
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.header("www-authenticate").is_some());
        assert_eq!(
            get(&hob, path, &basic("cid", "sesam")).status,
            401,
            "{path}"
        );
    }
    // When its password is new, and when it is remembered.
    for _ in 0..2 {
        is_text(got("ann", "/inner/a.txt"), "ann's");
        is_text(got("bob", "/inner/a.txt"), "lab's");
        is_text(got("cid", "/inner/a.txt"), INNER);
        is_text(got("cid", "/moved?cid"), INNER);
        is_text(got("ann", "/moved"), "ann's");
    }
    // The next route's own rules hold, and it is the one that is told of.
    assert_eq!(got("cid", "/inner/").1, INNER);
    assert_eq!(got("cid", "/only").0, 404);
    let record = record(&place, "/moved?cid");
    assert_eq!(
        (&record["user"], &record["route"]),
        (&"cid".into(), &"/inner/*".into())
    );
    // A body comes along, and what the client says of itself does not.
    let form = |name: &str| {
        call(hob.port(), "POST", "/form", &basic(name, "sesame"), b"x=1")
            .answer
            .text()
    };
    assert_eq!(form("cid"), "cid\nx=1");
    assert_eq!(form("ann"), "ann's");
    let explained = |arguments: &[&str]| {
        text_of(&place.run(&[&["explain"], arguments, &["/inner/a.txt"]].concat()))
    };
    let text = explained(&["--user", "cid"]);
    for line in [
        "says its `when`: it is not for \"cid\", in all",
        "may, with the right password",
        "200 OK",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(explained(&[]).contains("401"));
    let text = text_of(&place.run(&["explain", "--user", "cid", "/inner/"]));
    assert!(
        text.contains("200 OK") && text.contains("index.html"),
        "{text}"
    );
    let text = explained(&["--user", "cid", "--group", "lab"]);
    assert!(text.contains("respond"), "{text}");
    hob.stop();
}
