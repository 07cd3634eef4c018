//! What programs are told, in every way that they can be written.

use crate::harness::client::call;
use crate::place::serve;
use crate::site::Programs;

const ASGI: &str = "async def app(scope, receive, send):\n\
    \x20   if scope['type'] == 'lifespan':\n\
    \x20       while True:\n\
    \x20           message = await receive()\n\
    \x20           await send({'type': message['type'] + '.complete'})\n\
    \x20           if message['type'] == 'lifespan.shutdown':\n\
    \x20               return\n\
    \x20   body = f\"{scope['root_path']} {scope['path']}\".encode()\n\
    \x20   await send({'type': 'http.response.start', 'status': 200,\n\
    \x20               'headers': [(b'content-type', b'text/plain')]})\n\
    \x20   await send({'type': 'http.response.body', 'body': body})\n";
const PSGI: &str = "sub { my $env = shift; [200, ['Content-Type' => 'text/plain'],\n\
    [\"$env->{SCRIPT_NAME} $env->{PATH_INFO}\"]] };\n";
const PYTHON: &str = "import hob\n\nfor request in hob.requests():\n\
    \x20   env = request.environ\n\
    \x20   request.respond(200, {'Content-Type': 'text/plain'},\n\
    \x20                   f\"{env['SCRIPT_NAME']} {env['PATH_INFO']}\")\n";
const PERL: &str = "use strict;\nuse warnings;\nuse Hob;\n\
    while (my $request = Hob->accept) {\n\
    my $env = $request->env;\n\
    $request->respond(200, ['Content-Type' => 'text/plain'], \"$env->{SCRIPT_NAME} $env->{PATH_INFO}\");\n\
    }\n";
const SCRIPT: &str = "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\n\";\n\
    print \"$ENV{SCRIPT_NAME} $ENV{PATH_INFO}\";\n";

#[test]
fn a_program_is_told_what_names_it_and_what_follows() {
    let site = serve("");
    let body = site.text("/app/tell/SCRIPT_NAME,PATH_INFO,REQUEST_METHOD,QUERY_STRING?a=b%20c");
    assert_eq!(
        body,
        "SCRIPT_NAME=/app\nPATH_INFO=/tell/SCRIPT_NAME,PATH_INFO,REQUEST_METHOD,QUERY_STRING\n\
         REQUEST_METHOD=GET\nQUERY_STRING=a=b%20c"
    );
    let reply = call(
        site.port(),
        "GET",
        "/app/tell/HTTP_X_FIELD,HTTP_AUTHORIZATION",
        "X-Field: a value\r\nAuthorization: Basic eDp5\r\n",
        b"",
    );
    assert_eq!(
        reply.answer.text(),
        "HTTP_X_FIELD=a value\nHTTP_AUTHORIZATION=None"
    );
    site.stop();
}

#[test]
fn one_process_answers_many_requests() {
    let site = serve("workers = { max = 1 }");
    let worker = site.worker();
    for _ in 0..50 {
        assert_eq!(site.worker(), worker);
    }
    let pool = site.wait_for_pool("served", |pool| pool["workers"][0]["served"] == 51);
    assert_eq!(pool["workers"][0]["pid"], worker);
    assert_eq!(pool["name"], "/app/* app:application");
    assert_eq!(pool["crashed"], 0);
    site.stop();
}

#[test]
fn every_kind_of_program_answers() {
    let site = Programs::new()
        .with_mode("asgi_app.py", ASGI, 0o644)
        .with_mode("app.psgi", PSGI, 0o644)
        .with_mode("looping.py", PYTHON, 0o644)
        .with_mode("looping.pl", PERL, 0o644)
        .with("scripts/one.pl", SCRIPT);
    let routes = [
        ("asgi", "asgi = \"asgi_app:app\", dir = \"cgi\""),
        ("psgi", "psgi = \"cgi/app.psgi\""),
        ("python", "python = \"cgi/looping.py\""),
        ("perl", "perl = \"cgi/looping.pl\""),
        ("scripts", "scripts = \"cgi/scripts\""),
    ];
    let tables = routes.map(|(name, keys)| {
        format!("path = \"/{name}/*\"\nresident = {{ {keys}, workers = {{ max = 1, min = 0 }} }}\n")
    });
    let site = site.serve_route(&tables.join("[[site.route]]\n"));
    assert_eq!(site.text("/asgi/a/b"), "/asgi /asgi/a/b");
    for name in ["psgi", "python", "perl"] {
        assert_eq!(site.text(&format!("/{name}/a/b")), format!("/{name} /a/b"));
    }
    assert_eq!(site.text("/scripts/one.pl/a"), "/scripts/one.pl /a");
    assert_eq!(site.get("/scripts/none.pl").answer.status, 404);
    site.stop();
}

#[test]
fn what_follows_a_program_is_as_it_was_sent_in_every_kind_of_program() {
    let site = Programs::new()
        .with_mode("asgi_app.py", ASGI, 0o644)
        .with_mode("app.psgi", PSGI, 0o644)
        .with_mode("looping.py", PYTHON, 0o644)
        .with("scripts/one.pl", SCRIPT)
        .with("scripts/sub/two.pl", SCRIPT);
    let routes = [
        ("asgi", "asgi = \"asgi_app:app\", dir = \"cgi\""),
        ("psgi", "psgi = \"cgi/app.psgi\""),
        ("python", "python = \"cgi/looping.py\""),
        ("scripts", "scripts = \"cgi/scripts\""),
    ];
    let tables = routes.map(|(name, keys)| {
        format!("path = \"/{name}/*\"\nresident = {{ {keys}, workers = {{ max = 1, min = 0 }} }}\n")
    });
    let site = site.serve_route(&tables.join("[[site.route]]\n"));
    for (sent, told) in [
        ("//a///b//", "//a///b//"),
        ("/x/..//./a", "//a"),
        ("/https:%2F%2fhost//a", "/https://host//a"),
        ("/a%252Fb", "/a%2Fb"),
    ] {
        assert_eq!(
            site.text(&format!("//asgi{sent}")),
            format!("/asgi /asgi{told}")
        );
        for name in ["psgi", "python"] {
            let text = site.text(&format!("//{name}{sent}"));
            assert_eq!(text, format!("/{name} {told}"));
        }
        let text = site.text(&format!("/scripts//sub//two.pl{sent}"));
        assert_eq!(text, format!("/scripts/sub/two.pl {told}"));
    }
    // Also when it is known what leads to the script, an encoded slash does not.
    for path in ["/sub/two.pl", "/sub/two.pl/a/b", "/one.pl"] {
        for _ in 0..3 {
            assert_eq!(site.get(&format!("/scripts{path}")).answer.status, 200);
        }
    }
    for path in [
        "/sub%2Ftwo.pl",
        "/sub%2ftwo.pl/a/b",
        "/%2Fone.pl",
        "%2Fone.pl",
    ] {
        assert_eq!(
            site.get(&format!("/scripts{path}")).answer.status,
            404,
            "{path}"
        );
    }
    assert_eq!(site.get("/scripts/one.pl/..%2Fsub").answer.status, 400);
    site.stop();
}

#[test]
fn a_failing_application_is_answered_with_500_and_goes_on() {
    let site = serve("workers = { max = 1 }");
    let worker = site.worker();
    assert_eq!(site.get("/app/fail").answer.status, 500);
    assert_eq!(site.worker(), worker);
    site.hob().wait_for("ValueError: told to fail");
    site.stop();
}
