//! Streams of events (`text/event-stream`): they have no end of their own, so neither `total` nor a
//! minute of silence is one, and a server that stops ends them first. The same for every way a
//! program can run.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "cgi/site.rs"]
mod site;

use harness::client::Connection;
use harness::wait_for_end;
use rustix::process::Signal;
use site::Programs;

/// By its query: `once` tells one event and is silent then, `slowly` tells some, and ends.
const SHELL: &str = "#!/bin/sh\n\
    [ \"$1\" = command ] || printf 'Content-Type: text/event-stream\\n\\n'\n\
    printf 'data: 0\\n\\n'\n\
    case \"$2$QUERY_STRING\" in *once) sleep 1000 & wait;; esac\n\
    for one in 1 2 3 4 5; do sleep 0.5; printf 'data: %s\\n\\n' $one; done\n";

const WARM: &str = "import os, time\n\
    print('Content-Type: text/event-stream\\n\\ndata: 0\\n', flush=True)\n\
    if os.environ['QUERY_STRING'] == 'once':\n    \
    time.sleep(1000)\n\
    for one in range(1, 6):\n    \
    time.sleep(0.5)\n    \
    print(f'data: {one}\\n', flush=True)\n";

const WSGI: &str = "import time\n\
    def told(once):\n    \
    yield b'data: 0\\n\\n'\n    \
    if once:\n        \
    time.sleep(1000)\n    \
    for one in range(1, 6):\n        \
    time.sleep(0.5)\n        \
    yield b'data: %d\\n\\n' % one\n\
    def application(environ, start):\n    \
    start('200 OK', [('Content-Type', 'text/event-stream')])\n    \
    return told(environ['QUERY_STRING'] == 'once')\n";

/// It ends when it hears that its client is gone.
const ASGI: &str = "import asyncio\n\
    async def application(scope, receive, send):\n    \
    head = [(b'content-type', b'text/event-stream; charset=utf-8')]\n    \
    await send({'type': 'http.response.start', 'status': 200, 'headers': head})\n    \
    async def tell(one, more=True):\n        \
    body = b'data: %d\\n\\n' % one\n        \
    await send({'type': 'http.response.body', 'body': body, 'more_body': more})\n    \
    await tell(0)\n    \
    if scope['query_string'] == b'once':\n        \
    while (await receive())['type'] != 'http.disconnect':\n            \
    pass\n        \
    open('asgi-left', 'w').close()\n        \
    return\n    \
    for one in range(1, 6):\n        \
    await asyncio.sleep(0.5)\n        \
    await tell(one, one < 5)\n";

const PATHS: [&str; 5] = [
    "/cgi/ticks.cgi?",
    "/command?how=",
    "/warm/ticks.py?",
    "/wsgi?",
    "/asgi?",
];

/// All ways at once. `keys` are those of programs that run for a request, `timeout` those of
/// programs that stay.
fn serve(keys: &str, timeout: &str) -> Programs {
    let mut site = Programs::new()
        .with("ticks.cgi", SHELL)
        .with("ticks.py", &format!("#!/usr/bin/env python3\n{WARM}"))
        .with_mode("one.py", WSGI, 0o644)
        .with_mode("two.py", ASGI, 0o644);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(site.path(""), open).unwrap();
    let log = site.place.path("run/access.log");
    let resident = format!("dir = \"cgi\", grace = \"200ms\", timeout = {{ {timeout} }}");
    site.serve_whole(&format!(
        "drain = \"600s\"\ndefault_log = \"main\"\n\
         [[log]]\nname = \"main\"\nfile = \"{}\"\nformat = \"json\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = {{ dir = \"cgi\"{keys} }}\n\
         [[site.route]]\npath = \"/command\"\n\
         cgi = {{ command = [\"cgi/ticks.cgi\", \"command\", \"${{query.how}}\"], dir = \".\", \
         output = \"text/event-stream\", parameters = {{ how = \"[a-z]+\" }}{keys} }}\n\
         [[site.route]]\npath = \"/warm/*\"\n\
         warm = {{ dir = \"cgi\", interpreter = \"python3\"{keys} }}\n\
         [[site.route]]\npath = \"/wsgi\"\nresident = {{ wsgi = \"one:application\", {resident} }}\n\
         [[site.route]]\npath = \"/asgi\"\nresident = {{ asgi = \"two:application\", {resident} }}\n",
        log.display()
    ));
    site
}

/// Clients that each have got one event, and would get no more.
fn listen(site: &Programs) -> Vec<Connection> {
    let begin = |path: &&str| {
        let mut connection = Connection::open(site.port()).unwrap();
        connection.send_get(&format!("{path}once")).unwrap();
        assert_eq!(connection.read_head().unwrap().0, 200, "{path}");
        connection.read_until("data: 0\n\n");
        connection
    };
    PATHS.iter().map(begin).collect()
}

fn assert_ended_whole(connections: Vec<Connection>) {
    for (mut connection, path) in connections.into_iter().zip(PATHS) {
        let rest = String::from_utf8(connection.read_to_end()).unwrap();
        assert_eq!(rest, "\r\n0\r\n\r\n", "{path}");
    }
}

#[test]
fn stop_ends_streams_of_events_first_and_does_not_wait_for_them() {
    let site = serve("", "");
    let connections = listen(&site);
    site.hob().signal(Signal::TERM);
    // Far below `drain`, which is longer than any test waits.
    assert_ended_whole(connections);
    wait_for_end(site.hob().pid());
    assert!(
        site.path("asgi-left").exists(),
        "the application heard of it"
    );
}

#[test]
fn upgrade_ends_streams_of_events_and_their_clients_find_the_new_server() {
    let site = serve("", "");
    let connections = listen(&site);
    let output = site.place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_ended_whole(connections);
    let again = listen(&site);
    assert_eq!(again.len(), PATHS.len());
    drop(again);
    site.stop();
}

#[test]
fn total_and_progress_are_not_for_streams_of_events() {
    // The head must come within it, on a busy machine too; the end comes after 2.5 s.
    let site = serve(", total = \"2s\"", "total = \"2s\", progress = \"200ms\"");
    std::thread::scope(|scope| {
        for path in PATHS {
            let site = &site;
            scope.spawn(move || {
                let text = site.text(&format!("{path}slowly"));
                assert_eq!(text.matches("data: ").count(), 6, "{path}: {text}");
            });
        }
    });
    site.stop();
}

#[test]
fn silent_streams_of_events_break_off_at_a_limit_of_their_own() {
    let site = serve(", events = \"150ms\"", "events = \"150ms\"");
    for path in PATHS {
        let path = format!("{path}once");
        let reply = site.get(&path);
        let came = (reply.answer.status, reply.answer.text());
        assert_eq!(came, (200, "data: 0\n\n".to_owned()), "{path}");
        assert!(!reply.is_whole, "{path}");
        let reason = site.record(&path)["reason"].clone();
        let is_told = reason.as_str().unwrap().contains("events fell silent");
        assert!(is_told, "{path}: {reason}");
    }
    assert_eq!(site.place.counter("limit_program_events"), 3);
    assert_eq!(site.place.counter("limit_resident_events"), 2);
    site.stop();
}
