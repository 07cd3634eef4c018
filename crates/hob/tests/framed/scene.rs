//! A server with a few programs, and a client of either protocol that waits for nothing but itself.

use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;
use socket2::{SockRef, Socket};

use crate::carry::{Download, Received, Server, Upload};
use crate::harness::{DEADLINE, Hob, Place};
use crate::watcher::{Watcher, object};
use crate::{PIECE_BYTES, h2, h3, tls};

/// The port of a server of its own.
const LISTEN: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n";

const SITE: &str = r#"
[[site]]
root = "site"

[[site.route]]
path = "/timed/*"
server_timing = true
files = "site"

[[site.route]]
path = "/cgi/*"
cgi = { dir = "cgi" }
"#;

const PROGRAMS: &[(&str, &str)] = &[
    ("echo", "printf 'Content-Type: text/plain\\n\\n'\ncat\n"),
    ("say", "printf 'Content-Type: text/plain\\n\\nhi\\n'\n"),
    (
        "wait",
        "cat fifo\nprintf 'Content-Type: text/plain\\n\\nhi\\n'\n",
    ),
    (
        "twice",
        "cat fifo\nprintf 'Content-Type: text/plain\\n\\nhi\\n'\ncat fifo\necho ho\n",
    ),
    (
        "page",
        "cat pages\nprintf 'Content-Type: text/plain\\nX-Long: %050000d\\n\\nhi\\n' 0\n",
    ),
    (
        "read",
        "read a\nread b\nprintf 'Content-Type: text/plain\\n\\nhi\\n'\n",
    ),
];

/// Which of the two is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http2,
    Http3,
}

/// A place whose server runs, seen by tasks that must not block.
pub(crate) struct Scene {
    place: Arc<Place>,
    pub(crate) version: Version,
}

/// Runs a test over HTTP/2, then over HTTP/3, each with a server of its own.
pub(crate) fn on_both(test: impl AsyncFn(Scene, Client)) {
    for version in [Version::Http2, Version::Http3] {
        println!("{version:?}");
        on(version, "", async |scene: Scene, port: u16| {
            test(scene, Client::connect(version, port).await).await;
        });
    }
}

/// Runs a test over one of them, with keys of the listener or behind it; what connects is given
/// the server's port.
pub(crate) fn on(version: Version, keys: &str, test: impl AsyncFn(Scene, u16)) {
    let place = Arc::new(Place::new());
    let hob = serve(&place, keys);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let scene = Scene {
        place: Arc::clone(&place),
        version,
    };
    tokio::task::LocalSet::new().block_on(&runtime, test(scene, hob.tls_port()));
    drop(runtime);
    hob.stop();
}

fn serve(place: &Place, keys: &str) -> Hob {
    place.folder("cgi");
    let open = |name: &str| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(place.path(name), mode).unwrap();
    };
    for (name, text) in PROGRAMS {
        let name = format!("cgi/{name}");
        place.write(&name, &format!("#!/bin/sh\n{text}"));
        open(&name);
    }
    for name in ["cgi/fifo", "cgi/pages"] {
        let made = Command::new("mkfifo").arg(place.path(name)).status();
        assert!(made.unwrap().success());
        open(name);
    }
    std::fs::create_dir(place.path("site/timed")).unwrap();
    place.write("site/timed/hello.txt", "hello\n");
    place.serve_text(&format!("{LISTEN}{keys}{SITE}"))
}

impl Scene {
    /// The word for what is spoken.
    pub(crate) fn protocol(&self) -> &'static str {
        match self.version {
            Version::Http2 => "HTTP/2.0",
            Version::Http3 => "HTTP/3.0",
        }
    }

    /// Does what blocks while the client's connection goes on.
    pub(crate) async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> T + Send + 'static,
    ) -> T {
        let place = Arc::clone(&self.place);
        tokio::task::spawn_blocking(move || work(&place))
            .await
            .unwrap()
    }

    /// An answer of the control API.
    pub(crate) async fn object(&self, target: &str) -> Value {
        let target = target.to_owned();
        self.apart(move |place| object(place, &target)).await
    }

    /// Asks until something is so.
    async fn wait_for<T: Send + 'static>(
        &self,
        target: &str,
        find: impl Fn(&Value) -> Option<T> + Send + 'static,
    ) -> T {
        let target = target.to_owned();
        let look = move |place: &Place| {
            let until = Instant::now() + DEADLINE;
            loop {
                let told = object(place, &target);
                if let Some(found) = find(&told) {
                    return found;
                }
                assert!(Instant::now() < until, "{target}: {told:#}");
                std::thread::yield_now();
            }
        };
        self.apart(look).await
    }

    /// The records of so many requests, the oldest first, once the history has them.
    pub(crate) async fn records(&self, query: &str, count: usize) -> Vec<Value> {
        let find = move |told: &Value| {
            let requests = told["requests"].as_array().unwrap();
            (requests.len() == count).then(|| requests.iter().rev().cloned().collect())
        };
        let target = format!("/v1/history?{query}");
        let mut records: Vec<Value> = self.wait_for(&target, find).await;
        // They stand in the order of their ends.
        records.sort_by_key(|record| record["started_unix_ms"].as_u64());
        records
    }

    /// The one record of a path.
    pub(crate) async fn record(&self, path: &str) -> Value {
        self.records(&format!("path={path}"), 1).await.remove(0)
    }

    /// A running request, once there is such a one.
    pub(crate) async fn running(&self, is_it: impl Fn(&Value) -> bool + Send + 'static) -> Value {
        let find = move |told: &Value| {
            let requests = told["requests"].as_array().unwrap();
            requests.iter().find(|request| is_it(request)).cloned()
        };
        self.wait_for("/v1/running", find).await
    }

    /// An open connection, once there is such a one.
    pub(crate) async fn connection(
        &self,
        is_it: impl Fn(&Value) -> bool + Send + 'static,
    ) -> Value {
        let find = move |told: &Value| {
            let open = told["connections"].as_array().unwrap();
            open.iter().find(|one| is_it(one)).cloned()
        };
        self.wait_for("/v1/connections", find).await
    }

    /// Waits until there are so many such running requests.
    pub(crate) async fn running_count(
        &self,
        count: usize,
        is_it: impl Fn(&Value) -> bool + Send + 'static,
    ) {
        let find = move |told: &Value| {
            let requests = told["requests"].as_array().unwrap();
            let found = requests.iter().filter(|request| is_it(request));
            (found.count() == count).then_some(())
        };
        self.wait_for("/v1/running", find).await
    }

    /// The sum of a column of the activity, once it is this.
    pub(crate) async fn activity(&self, column: &'static str, expected: u64) -> u64 {
        let find = move |told: &Value| {
            let columns = told["columns"].as_array().unwrap();
            let at = columns.iter().position(|one| one == column).unwrap();
            let rows = told["rows"].as_array().unwrap();
            let sum: u64 = rows.iter().filter_map(|row| row[at].as_u64()).sum();
            (sum == expected).then_some(sum)
        };
        self.wait_for("/v1/activity?step=1", find).await
    }

    /// A counter, once it has this value.
    pub(crate) async fn wait_for_counter(&self, name: &'static str, value: u64) {
        self.apart(move |place| place.wait_for_counter(name, value))
            .await;
    }

    pub(crate) async fn watch(&self, query: &'static str) -> Watcher {
        self.apart(move |place| Watcher::begin(place, query)).await
    }

    /// Lets programs `page` go on, until so many have answers that wait to be sent.
    pub(crate) async fn turn_pages(&self, count: usize) {
        let fifo: PathBuf = self.place.path("cgi/pages");
        let find = move |told: &Value| {
            // Those that wait now; there may be none, or some that do not wait yet.
            let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
            let mut options = std::fs::OpenOptions::new();
            drop(options.write(true).custom_flags(flags).open(&fifo));
            let requests = told["requests"].as_array().unwrap();
            let is_page = |request: &&Value| {
                let target = request["target"].as_str().unwrap();
                target.starts_with("/cgi/page") && request["status"] == 200
            };
            (requests.iter().filter(is_page).count() == count).then_some(())
        };
        self.wait_for("/v1/running", find).await
    }

    /// Lets the programs `wait` and `twice` go on.
    pub(crate) async fn go(&self) {
        let fifo: PathBuf = self.place.path("cgi/fifo");
        self.apart(move |_| std::fs::write(fifo, "").unwrap()).await;
    }
}

/// A client of either protocol.
pub(crate) enum Client {
    Http2(h2::Connection, u16),
    Http3(h3::Connection, u16, quinn::Endpoint),
}

/// The body of a request.
pub(crate) enum Sending {
    Http2(<h2::Connection as Server>::Upload),
    Http3(Box<<h3::Connection as Server>::Upload>),
}

/// An answer.
pub(crate) enum Answer {
    Http2(h2::Answer),
    Http3(h3::Answer),
}

impl Client {
    pub(crate) async fn connect(version: Version, port: u16) -> Client {
        Client::connect_seen(version, port).await.0
    }

    /// The same, and its socket.
    pub(crate) async fn connect_seen(version: Version, port: u16) -> (Client, Socket) {
        match version {
            Version::Http2 => {
                let stream = tls::connect(tls::client(b"h2"), port).await.unwrap();
                let socket = SockRef::from(stream.get_ref().0).try_clone().unwrap();
                let connection = h2::connect_over(stream, PIECE_BYTES).await;
                (Client::Http2(connection.unwrap(), port), socket)
            }
            Version::Http3 => {
                let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
                let seen = SockRef::from(&socket).try_clone().unwrap();
                let endpoint = h3::endpoint_over(socket, tls::client(b"h3"));
                let connection = h3::connect(endpoint.clone(), port).await;
                (Client::Http3(connection.unwrap(), port, endpoint), seen)
            }
        }
    }

    /// Sends a request's head, and its end if there is no body.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        is_whole: bool,
    ) -> (Sending, Answer) {
        let port = self.port();
        let head = Request::builder()
            .method(method)
            .uri(format!("https://localhost:{port}{path}"))
            .body(())
            .unwrap();
        match self {
            Client::Http2(connection, _) => {
                let (upload, answer) = connection.send(head, is_whole).await.unwrap();
                (Sending::Http2(upload), Answer::Http2(answer))
            }
            Client::Http3(connection, ..) => {
                let (upload, answer) = connection.send(head, is_whole).await.unwrap();
                (Sending::Http3(Box::new(upload)), Answer::Http3(answer))
            }
        }
    }

    /// The server's.
    pub(crate) fn port(&self) -> u16 {
        let (Client::Http2(_, port) | Client::Http3(_, port, _)) = self;
        *port
    }

    /// Ends the connection, whatever is under way.
    pub(crate) fn vanish(&self) {
        match self {
            Client::Http2(connection, _) => connection.vanish(),
            Client::Http3(_, _, endpoint) => endpoint.close(0u32.into(), b""),
        }
    }

    /// Status and size of an answer.
    pub(crate) async fn get(&mut self, path: &str) -> (u16, usize) {
        let (_upload, mut answer) = self.send("GET", path, true).await;
        answer.read_all().await
    }
}

impl Upload for Sending {
    async fn data(&mut self, data: Bytes) -> std::io::Result<()> {
        match self {
            Sending::Http2(upload) => upload.data(data).await,
            Sending::Http3(upload) => upload.data(data).await,
        }
    }

    async fn end(&mut self, trailers: Option<http::HeaderMap>) -> std::io::Result<()> {
        match self {
            Sending::Http2(upload) => upload.end(trailers).await,
            Sending::Http3(upload) => upload.end(trailers).await,
        }
    }

    fn reset(&mut self) {
        match self {
            Sending::Http2(upload) => upload.reset(),
            Sending::Http3(upload) => upload.reset(),
        }
    }
}

impl Answer {
    async fn next(&mut self) -> std::io::Result<Received> {
        match self {
            Answer::Http2(answer) => answer.next().await,
            Answer::Http3(answer) => answer.next().await,
        }
    }

    /// Its head. Nothing of its body is taken.
    pub(crate) async fn head(&mut self) -> Response<()> {
        loop {
            match self.next().await.unwrap() {
                Received::Head { head, .. } => return head,
                Received::Interim(_) => {}
                Received::Data(_) | Received::End(_) => panic!("a body before its head"),
            }
        }
    }

    /// Takes all of its body and says how many bytes that were.
    pub(crate) async fn rest(&mut self) -> usize {
        let mut bytes = 0;
        loop {
            match self.next().await.unwrap() {
                Received::Data(data) => bytes += data.len(),
                Received::End(_) => return bytes,
                Received::Head { .. } | Received::Interim(_) => panic!("a head within a body"),
            }
        }
    }

    pub(crate) async fn read_all(&mut self) -> (u16, usize) {
        let status = self.head().await.status().as_u16();
        (status, self.rest().await)
    }
}
