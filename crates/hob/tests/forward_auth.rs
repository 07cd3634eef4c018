//! `forward` of `[[auth]]`: a route of the site is asked whether it lets a request in.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{Answer, ask, call};
use harness::site::record;
use harness::{Hob, Place, text_of};

const TOP: &str = "default_log = \"access\"\n[[log]]\nname = \"access\"\n\
    file = \"run/access.log\"\nformat = \"json\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
    [[auth]]\nname = \"sso\"\nforward = { path = \"/verify\", \
    fields = [\"Remote-User\", \"Remote-Email\", \"X-Team\"] }\n\
    [[auth]]\nname = \"other\"\nforward = \"/other\"\n";

/// Lets in who has a cookie, and tells what it was asked; others are sent to a page.
const VERIFY: &str = "#!/bin/sh
case \"$HTTP_COOKIE\" in
*session=ann*) printf 'Status: 204\\nRemote-User: ann\\nRemote-Groups: staff, lab\\n'
    printf 'X-Team: %s %s %s\\n\\n' \
    \"$HTTP_X_FORWARDED_METHOD\" \"$HTTP_X_FORWARDED_URI\" \"$HTTP_X_FORWARDED_HOST\" ;;
*session=fresh*) printf 'Status: 200\\nRemote-User: ann\\nSet-Cookie: session=ann; Path=/\\n'
    printf 'set-cookie: seen=1\\n\\nnot for clients' ;;
*session=guest*) printf 'Content-Type: text/plain\\n\\nwelcome' ;;
*session=broken*) exit 3 ;;
*session=denied*) printf 'Status: 403\\nContent-Type: text/plain\\nX-Why: no\\n\\nnot you' ;;
*) printf 'Status: 302\\nLocation: https://sso.test/login\\nSet-Cookie: a=b\\n\\n' ;;
esac
";

/// What a program is told.
const ECHO: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
echo \"$REMOTE_USER|$AUTH_TYPE|$HTTP_REMOTE_USER|$HTTP_REMOTE_EMAIL|$HTTP_X_TEAM\"
cat
";

fn serve(place: &Place, require: &str) -> Hob {
    place.folder("cgi");
    place.script("cgi/verify", VERIFY);
    place.script("cgi/echo", ECHO);
    place.script(
        "cgi/other",
        "#!/bin/sh\nprintf 'Remote-User: bob\\nSet-Cookie: seen=2\\n\\n'\n",
    );
    place.serve_text(&format!(
        "{TOP}[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/verify\"\ninternal = true\ncgi = {{ script = \"cgi/verify\" }}\n\
         [[site.route]]\npath = \"/other\"\ninternal = true\ncgi = {{ script = \"cgi/other\" }}\n\
         [[site.route]]\npath = \"/inner/*\"\nrequire = {require}\ncgi = {{ script = \"cgi/echo\" }}\n\
         [[site.route]]\npath = \"/files/*\"\nrequire = \"sso\"\nfiles = {{ root = \"site\" }}\n\
         [[site.route]]\npath = \"/lab/*\"\nfiles = {{ root = \"site\" }}\n\
         require = {{ auth = \"sso\", groups = [\"lab\"] }}\n\
         [[site.route]]\npath = \"/some/*\"\nrequire = \"sso\"\n\
         respond = {{ body = \"lab\" }}\nwhen = {{ group = [\"lab\"] }}\n\
         [[site.route]]\npath = \"/some/*\"\nrequire = \"sso\"\ncgi = {{ script = \"cgi/echo\" }}\n\
         [[site.route]]\npath = \"/try/*\"\nrequire = \"sso\"\n\
         files = {{ root = \"site\", try = [\"{{path}}\", \"next\"] }}\n\
         [[site.route]]\npath = \"/try/*\"\nrequire = \"other\"\ncgi = {{ script = \"cgi/echo\" }}\n"
    ))
}

fn get(hob: &Hob, path: &str, cookie: &str) -> Answer {
    ask(
        hob.port(),
        "GET",
        path,
        &format!("Cookie: session={cookie}\r\n"),
    )
}

#[test]
fn answer_of_the_route_that_is_asked_lets_in_or_goes_to_the_client() {
    let place = Place::new();
    let hob = serve(&place, "\"sso\"");
    let answer = get(&hob, "/inner/a?b=c", "ann");
    let told = answer.text();
    assert_eq!(answer.status, 200);
    assert!(
        told.starts_with("ann|forward|ann||GET /inner/a?b=c "),
        "{told}"
    );
    assert_eq!(record(&place, "/inner/a?b=c")["user"], "ann");
    // One whose name is not told is let in, too.
    assert_eq!(get(&hob, "/inner/a", "guest").text(), "|forward|||\n");
    let refused = get(&hob, "/inner/denied", "denied");
    assert_eq!(
        (refused.status, refused.text()),
        (403, "not you".to_owned())
    );
    assert_eq!(refused.header("x-why"), Some("no"));
    let reason = "require: the route that is asked lets nobody in";
    assert_eq!(record(&place, "/inner/denied")["reason"], reason);
    let sent = get(&hob, "/inner/sent", "none");
    assert_eq!(sent.status, 302);
    assert_eq!(sent.header("location"), Some("https://sso.test/login"));
    assert_eq!(sent.header("set-cookie"), Some("a=b"));
    let broken = get(&hob, "/inner/broken", "broken");
    assert_eq!(broken.status, 502);
    let reason = "require: the route that is asked has failed";
    assert_eq!(record(&place, "/inner/broken")["reason"], reason);
    // From outside the route is not there, and asks nobody.
    assert_eq!(get(&hob, "/verify", "ann").status, 404);
    assert_eq!(get(&hob, "/hello.txt", "none").status, 200);
    hob.stop();
}

#[test]
fn what_a_client_sends_under_the_names_of_the_route_is_not_told() {
    let place = Place::new();
    let hob = serve(&place, "\"sso\"");
    let forged = "Remote-User: root\r\nRemote_User: root\r\nremote-email: root@test\r\n\
                  X-Team: root\r\nX-Forwarded-Uri: /open\r\nX_Forwarded_Uri: /open\r\n\
                  X-Forwarded-Method: OPTIONS\r\n";
    let with = |cookie: &str| {
        let fields = format!("Cookie: session={cookie}\r\n{forged}");
        ask(hob.port(), "GET", "/inner/a", &fields).text()
    };
    let told = with("ann");
    assert!(told.starts_with("ann|forward|ann||GET /inner/a "), "{told}");
    assert_eq!(with("guest"), "|forward|||\n");
    hob.stop();
}

#[test]
fn body_comes_to_the_program_and_not_to_the_route_that_is_asked() {
    let place = Place::new();
    let hob = serve(&place, "\"sso\"");
    let body = vec![b'x'; 300_000];
    let fields = "Cookie: session=ann\r\nExpect: 100-continue\r\n";
    let reply = call(hob.port(), "POST", "/inner/up", fields, &body);
    let text = String::from_utf8_lossy(&reply.answer.body).into_owned();
    assert_eq!(reply.answer.status, 200, "{text}");
    let (told, came) = text.split_once('\n').unwrap();
    assert!(
        told.starts_with("ann|forward|ann||POST /inner/up "),
        "{told}"
    );
    assert_eq!(came.len(), body.len());
    hob.stop();
}

#[test]
fn session_that_is_renewed_reaches_the_client_with_what_it_asked_for() {
    let place = Place::new();
    place.write("site/page.txt", "page\n");
    let hob = serve(&place, "\"sso\"");
    let cookies = |answer: &Answer| -> Vec<String> {
        let fields =
            { answer.headers.iter() }.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        fields.map(|(_, value)| value.clone()).collect()
    };
    let renewed = ["session=ann; Path=/", "seen=1"];
    let answer = get(&hob, "/inner/a", "fresh");
    assert_eq!(answer.text(), "ann|forward|ann||\n");
    assert_eq!(cookies(&answer), renewed);
    // A file that is kept with its head is no other client's.
    for _ in 0..3 {
        let fresh = get(&hob, "/files/page.txt", "fresh");
        assert_eq!(
            (fresh.text(), cookies(&fresh)),
            ("page\n".to_owned(), renewed.map(str::to_owned).to_vec())
        );
        let other = get(&hob, "/files/page.txt", "ann");
        assert_eq!(
            (other.text(), cookies(&other)),
            ("page\n".to_owned(), Vec::new())
        );
    }
    let missing = get(&hob, "/files/none", "fresh");
    assert_eq!(
        (missing.status, cookies(&missing)),
        (404, renewed.map(str::to_owned).to_vec())
    );
    // Who may not has it renewed, too.
    let refused = get(&hob, "/lab/page.txt", "fresh");
    assert_eq!(
        (refused.status, cookies(&refused)),
        (403, renewed.map(str::to_owned).to_vec())
    );
    // Two routes ask: of cookies with one name the last counts.
    let tried = get(&hob, "/try/a", "fresh");
    assert_eq!(tried.text(), "bob|forward|bob||\n");
    assert_eq!(cookies(&tried), [renewed[0], "seen=2"]);
    hob.stop();
}

#[test]
fn users_and_groups_of_the_answer_count() {
    let place = Place::new();
    let hob = serve(&place, "{ auth = \"sso\", groups = [\"lab\"] }");
    assert_eq!(get(&hob, "/inner/a", "ann").status, 200);
    assert_eq!(get(&hob, "/inner/a", "guest").status, 403);
    assert_eq!(get(&hob, "/some/a", "ann").text(), "lab");
    assert_eq!(get(&hob, "/some/a", "guest").text(), "|forward|||\n");
    assert_eq!(get(&hob, "/some/a", "denied").status, 403);
    // A session that the first route had renewed is told all the same.
    let renewed = get(&hob, "/some/a", "fresh");
    assert_eq!(renewed.text(), "ann|forward|ann||\n");
    assert_eq!(renewed.header("set-cookie"), Some("session=ann; Path=/"));
    hob.stop();
    let place = Place::new();
    let hob = serve(
        &place,
        "{ auth = \"sso\", users = [\"bob\"], groups = [\"labs\"] }",
    );
    assert_eq!(get(&hob, "/inner/a", "ann").status, 403);
    hob.stop();
}

#[test]
fn route_that_is_asked_has_to_be_there() {
    let place = Place::new();
    place.write(
        "hob.toml",
        &format!(
            "{TOP}[[site]]\n[[site.route]]\npath = \"/a\"\nrequire = \"sso\"\nrespond = {{}}\n"
        ),
    );
    let text = text_of(&place.run(&["serve"]));
    assert!(
        text.contains("`require` asks /verify, which no route answers"),
        "{text}"
    );
}
