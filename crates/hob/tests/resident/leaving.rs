//! A server that ends lets its workers end: what follows their loop runs, within `grace`.

use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{Place, User, is_root, wait_for_end};
use crate::site::Programs;

const WSGI: &str = "import atexit, os\n\
    atexit.register(lambda: open('wsgi-ended', 'w').close())\n\
    def application(environ, start):\n    \
    start('200 OK', [])\n    return [str(os.getpid()).encode()]\n";

const ASGI: &str = "import os\n\
    async def application(scope, receive, send):\n    \
    if scope['type'] == 'lifespan':\n        \
    while True:\n            \
    message = await receive()\n            \
    if message['type'] == 'lifespan.shutdown':\n                \
    open('asgi-ended', 'w').close()\n                \
    return await send({'type': 'lifespan.shutdown.complete'})\n            \
    await send({'type': 'lifespan.startup.complete'})\n    \
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n    \
    await send({'type': 'http.response.body', 'body': str(os.getpid()).encode()})\n";

const PSGI: &str = "END { open my $ended, '>', 'psgi-ended' }\n\
    sub { [200, [], [$$]] };\n";

const LINES: &str = "exec 3<\"$CGIPLUSIN\"\n\
    while IFS= read -r line <&3; do\n  \
    [ -n \"$line\" ] && continue\n  \
    printf 'Content-Type: text/plain\\n\\n%s%s\\n' $$ \"$CGIPLUSEOF\"\n\
    done\n\
    : > lines-ended\n";

const ROUTES: &[(&str, &str)] = &[
    ("wsgi", "wsgi = \"one:application\""),
    ("asgi", "asgi = \"two:application\""),
    ("psgi", "psgi = \"cgi/three.psgi\""),
    ("lines", "run = [\"sh\", \"four.sh\"], carrier = \"lines\""),
];

/// All kinds of programs at once; each has answered a request, and so has a worker.
fn serve(user: User, keys: &str) -> (Programs, Vec<u32>) {
    let mut site = Programs::at(Place::for_user(user))
        .with_mode("one.py", WSGI, 0o644)
        .with_mode("two.py", ASGI, 0o644)
        .with_mode("three.psgi", PSGI, 0o644)
        .with_mode("four.sh", LINES, 0o644);
    std::fs::set_permissions(
        site.path(""),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let routes = ROUTES.iter().map(|(name, runs)| {
        format!(
            "[[site.route]]\npath = \"/{name}/*\"\n\
             resident = {{ {runs}, dir = \"cgi\", workers = {{ min = 1, max = 1 }}{keys} }}\n"
        )
    });
    let routes: String = routes.collect();
    site.serve_whole(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n{routes}"
    ));
    let workers = ROUTES.iter().map(|(name, _)| {
        let worker = site.text(&format!("/{name}/x"));
        worker.trim().parse().unwrap()
    });
    let workers = workers.collect();
    (site, workers)
}

fn assert_all_ended(site: &Programs) {
    let lacking = ROUTES.iter().filter(|(name, _)| {
        let ended = site.path(&format!("{name}-ended"));
        !ended.exists()
    });
    let lacking: Vec<_> = lacking.map(|(name, _)| name).collect();
    assert!(lacking.is_empty(), "killed: {lacking:?}");
}

fn sigterm_ends_all(user: User) {
    let (site, workers) = serve(user, "");
    site.hob().signal(Signal::TERM);
    workers.into_iter().for_each(wait_for_end);
    wait_for_end(site.hob().pid());
    assert_all_ended(&site);
    assert!(!site.hob().printed().contains("a worker ended"));
}

#[test]
fn sigterm_to_the_server_lets_every_kind_of_worker_end() {
    sigterm_ends_all(User::Unprivileged);
}

#[test]
fn sigterm_lets_workers_of_another_account_end() {
    if is_root() {
        sigterm_ends_all(User::Same);
    } else {
        eprintln!("skipped: workers of another account need root");
    }
}

#[test]
fn hob_stop_lets_every_kind_of_worker_end() {
    let (site, workers) = serve(User::Unprivileged, "");
    let output = site.place.run(&["stop"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    workers.into_iter().for_each(wait_for_end);
    wait_for_end(site.hob().pid());
    assert_all_ended(&site);
}

#[test]
fn upgrade_lets_the_workers_of_the_old_server_end() {
    let (site, workers) = serve(User::Unprivileged, "");
    let output = site.place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    workers.into_iter().for_each(wait_for_end);
    assert_all_ended(&site);
    site.stop();
}

#[test]
fn worker_that_does_not_end_is_killed_after_the_grace() {
    let mut site = Programs::new().with_mode(
        "stays.py",
        "import atexit, os, signal, time\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         atexit.register(lambda: time.sleep(3600))\n\
         def application(environ, start):\n    \
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    \
         start('200 OK', [])\n    return [str(os.getpid()).encode()]\n",
        0o644,
    );
    site = site.serve_route(
        "path = \"/app/*\"\nresident = { wsgi = \"stays:application\", dir = \"cgi\", \
         grace = \"500ms\", workers = { max = 1 } }\n",
    );
    let worker = site.text("/app/x").parse().unwrap();
    let began = std::time::Instant::now();
    site.hob().signal(Signal::TERM);
    wait_for_end(worker);
    wait_for_end(site.hob().pid());
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500), "{took:?}");
}
