//! A certificate authority for tests: Pebble with a name server of its own, and gates in front of
//! every port that one side must know before the other has it.
//!
//! Pebble and its companion are built from their Go module into `target/pebble` the first time.
//! Where that cannot be, the tests say so and count as skipped.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Instant;

use crate::harness::{DEADLINE, Place, text_of};

const MODULE: &str = "github.com/letsencrypt/pebble/v2/cmd";
const VERSION: &str = "v2.10.1";
/// The key of the account `kid-1`, in base64.
pub(crate) const EXTERNAL_KEY: &str =
    "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// Where the two programs are, or why they cannot be built.
fn programs() -> &'static Result<PathBuf, String> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pebble");
        std::fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap().join(VERSION);
        let names = ["pebble", "pebble-challtestsrv"];
        if names.iter().all(|name| folder.join(name).exists()) {
            return Ok(folder);
        }
        let built = Command::new("go")
            .arg("install")
            .args(names.map(|name| format!("{MODULE}/{name}@{VERSION}")))
            .env("GOBIN", &folder)
            .env("GOFLAGS", "-mod=mod")
            .stdin(Stdio::null())
            .output();
        match built {
            Ok(built) if built.status.success() => Ok(folder),
            Ok(built) => Err(text_of(&built)
                .trim()
                .lines()
                .last()
                .unwrap_or("")
                .to_owned()),
            Err(error) => Err(format!("go: {error}")),
        }
    })
}

/// One of the two programs.
fn program(name: &str) -> Command {
    Command::new(programs().as_ref().unwrap().join(name))
}

/// A port that stays while what is behind it comes and goes.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) port: u16,
    behind: Arc<(Mutex<Behind>, Condvar)>,
}

/// What is behind a gate.
enum Behind {
    /// Connections are closed at once.
    Nothing,
    /// They lead to this port.
    Port(u16),
    /// They wait, and somebody is told.
    Later(Sender<()>),
}

impl Gate {
    fn new() -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let gate = Gate {
            port: listener.local_addr().unwrap().port(),
            behind: Arc::new((Mutex::new(Behind::Nothing), Condvar::new())),
        };
        let entered = gate.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let gate = entered.clone();
                std::thread::spawn(move || gate.enter(client));
            }
        });
        gate
    }

    fn enter(&self, client: TcpStream) {
        let (behind, changed) = &*self.behind;
        let mut behind = behind.lock().unwrap();
        let port = loop {
            match &*behind {
                Behind::Nothing => return,
                Behind::Port(port) => break *port,
                Behind::Later(told) => {
                    // Whoever waits needs to hear it once.
                    let _ = told.send(());
                    behind = changed.wait(behind).unwrap();
                }
            }
        };
        drop(behind);
        if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            join(client, server);
        }
    }

    /// Leads to this port from now on.
    pub(crate) fn lead_to(&self, port: u16) {
        self.set(Behind::Port(port));
    }

    /// Leads nowhere.
    pub(crate) fn close(&self) {
        self.set(Behind::Nothing);
    }

    /// Has everybody wait at the gate; the first is told of.
    pub(crate) fn hold(&self) -> Receiver<()> {
        let (sender, receiver) = channel();
        self.set(Behind::Later(sender));
        receiver
    }

    fn set(&self, next: Behind) {
        let (behind, changed) = &*self.behind;
        *behind.lock().unwrap() = next;
        changed.notify_all();
    }
}

fn join(client: TcpStream, server: TcpStream) {
    for (mut from, mut to) in [
        (client.try_clone().unwrap(), server.try_clone().unwrap()),
        (server, client),
    ] {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

/// A program that is killed when it is dropped.
struct Helper {
    child: Child,
    printed: Arc<Mutex<String>>,
}

impl Helper {
    fn start(command: &mut Command) -> Helper {
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = Arc::new(Mutex::new(String::new()));
        let pipes: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for pipe in pipes {
            let printed = Arc::clone(&printed);
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let mut printed = printed.lock().unwrap();
                    printed.push_str(&line);
                    printed.push('\n');
                }
            });
        }
        Helper { child, printed }
    }

    /// Waits until it listens on a TCP port; false when it has ended, because somebody else has one
    /// of its ports.
    fn is_up(&mut self, port: u16) -> bool {
        let until = Instant::now() + DEADLINE;
        while !self.listens(port) {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(Instant::now() < until, "{}", self.printed.lock().unwrap());
            std::thread::yield_now();
        }
        true
    }

    /// Somebody else may listen there: the socket must be one of its own.
    fn listens(&self, port: u16) -> bool {
        const LISTEN: &str = "0A";
        let folder = format!("/proc/{}/fd", self.child.id());
        let links = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let own: Vec<_> = links
            .filter_map(|link| std::fs::read_link(link.path()).ok())
            .collect();
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
            let table = std::fs::read_to_string(table).unwrap_or_default();
            table.lines().any(|line| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                fields.len() > 9
                    && fields[1].ends_with(&format!(":{port:04X}"))
                    && fields[3] == LISTEN
                    && own.contains(&format!("socket:[{}]", fields[9]).into())
            })
        })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("a helper printed:\n{}", self.printed.lock().unwrap());
        }
    }
}

/// A port that nobody had a moment ago, for TCP and UDP.
fn free_port() -> u16 {
    loop {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// The authority.
pub(crate) struct Authority {
    folder: PathBuf,
    names: Option<Helper>,
    pebble: Option<Helper>,
    names_port: u16,
    /// Where records are set.
    pub(crate) records_port: u16,
    management_port: u16,
    has_external_accounts: bool,
    /// Where its directory is.
    pub(crate) directory: Gate,
    /// What it takes for port 80 and port 443 of every host.
    pub(crate) http: Gate,
    pub(crate) tls: Gate,
}

impl Authority {
    /// Starts one whose files are in a place; `None` where there is no Pebble.
    pub(crate) fn start(place: &Place) -> Option<Authority> {
        Authority::start_with(place, false)
    }

    /// The same, where an account has to be agreed on elsewhere: `kid-1` with the key of Pebble's
    /// own examples.
    pub(crate) fn start_with_external_accounts(place: &Place) -> Option<Authority> {
        Authority::start_with(place, true)
    }

    fn start_with(place: &Place, has_external_accounts: bool) -> Option<Authority> {
        if let Err(reason) = programs() {
            println!("skipped: Pebble cannot be built: {reason}");
            return None;
        }
        place.folder("authority");
        let folder = place.path("authority");
        certify(&folder);
        let mut authority = Authority {
            folder,
            names: None,
            pebble: None,
            names_port: 0,
            records_port: 0,
            management_port: 0,
            has_external_accounts,
            directory: Gate::new(),
            http: Gate::new(),
            tls: Gate::new(),
        };
        authority.start_names();
        authority.resume();
        Some(authority)
    }

    /// The config's `[acme]` for this authority, with more keys. A profile is always asked for:
    /// who asks for none gets one at random from Pebble.
    pub(crate) fn keys(&self, more: &str) -> String {
        let port = self.directory.port;
        let profile = match more.contains("profile") {
            true => "",
            false => "profile = \"default\"\n",
        };
        format!(
            "[acme]\ndirectory = \"https://127.0.0.1:{port}/dir\"\nca = \"authority/cert.pem\"\n{profile}{more}\n"
        )
    }

    fn start_names(&mut self) {
        loop {
            let (names, records) = (free_port(), free_port());
            let mut command = program("pebble-challtestsrv");
            for (flag, value) in [
                ("-dnsserver", format!("127.0.0.1:{names}")),
                ("-management", format!("127.0.0.1:{records}")),
                ("-defaultIPv4", "127.0.0.1".to_owned()),
                ("-defaultIPv6", String::new()),
                ("-http01", String::new()),
                ("-https01", String::new()),
                ("-tlsalpn01", String::new()),
                ("-doh", String::new()),
            ] {
                command.arg(flag).arg(value);
            }
            let mut helper = Helper::start(&mut command);
            if helper.is_up(records) && helper.is_up(names) {
                (self.names, self.names_port, self.records_port) = (Some(helper), names, records);
                return;
            }
        }
    }

    /// Starts Pebble, which remembers nothing.
    pub(crate) fn resume(&mut self) {
        loop {
            let (directory, management) = (free_port(), free_port());
            let config = serde_json::json!({ "pebble": {
                "listenAddress": format!("127.0.0.1:{directory}"),
                "managementListenAddress": format!("127.0.0.1:{management}"),
                "certificate": self.folder.join("cert.pem"),
                "privateKey": self.folder.join("key.pem"),
                "httpPort": self.http.port,
                "tlsPort": self.tls.port,
                "keyAlgorithm": "ecdsa",
                "externalAccountBindingRequired": self.has_external_accounts,
                "externalAccountMACKeys": { "kid-1": EXTERNAL_KEY },
                "domainBlocklist": ["blocked.test"],
                "retryAfter": { "authz": 1, "order": 1 },
                "profiles": {
                    "default": { "description": "as usual", "validityPeriod": 7_776_000 },
                    "short": { "description": "soon over", "validityPeriod": 20 },
                },
            }});
            let file = self.folder.join("pebble.json");
            std::fs::write(&file, config.to_string()).unwrap();
            let mut command = program("pebble");
            command.arg("-config").arg(&file);
            command.args(["-dnsserver", &format!("127.0.0.1:{}", self.names_port)]);
            command
                .env("PEBBLE_VA_NOSLEEP", "1")
                .env("PEBBLE_WFE_NONCEREJECT", "20")
                .env("PEBBLE_AUTHZREUSE", "0");
            let mut helper = Helper::start(&mut command);
            if helper.is_up(directory) && helper.is_up(management) {
                self.pebble = Some(helper);
                self.management_port = management;
                self.directory.lead_to(directory);
                break;
            }
        }
        let root = self.manage("/roots/0", None);
        std::fs::write(self.root(), root).unwrap();
    }

    /// Ends Pebble: nobody answers at its directory any more.
    pub(crate) fn leave(&mut self) {
        self.directory.close();
        self.pebble = None;
    }

    /// Everything Pebble printed since it was started.
    pub(crate) fn printed(&self) -> String {
        let pebble = self.pebble.as_ref().unwrap();
        pebble.printed.lock().unwrap().clone()
    }

    /// How often an order was asked for, nonces that were refused included.
    pub(crate) fn order_count(&self) -> usize {
        self.printed().matches("POST /order-plz").count()
    }

    /// The file with the root that its certificates lead to.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root.pem")
    }

    /// Makes a certificate due for renewal, as the authority would if it had to revoke it.
    pub(crate) fn want_renewal_of(&self, certificate: &str) {
        let window =
            r#"{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}"#;
        let wish = serde_json::json!({ "Certificate": certificate, "ARIResponse": window });
        self.manage("/set-renewal-info/", Some(&wish.to_string()));
    }

    fn manage(&self, path: &str, body: Option<&str>) -> String {
        let port = self.management_port;
        let mut command = Command::new("curl");
        command.args([
            "-sS",
            "--fail-with-body",
            "--max-time",
            "60",
            "--noproxy",
            "*",
        ]);
        command.arg("--cacert").arg(self.folder.join("cert.pem"));
        if let Some(body) = body {
            command.args(["--data-binary", body]);
        }
        command.arg(format!("https://127.0.0.1:{port}{path}"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A program that sets records at the name server, with lines of a shell before.
    pub(crate) fn write_hook(&self, place: &Place, name: &str, before: &str) {
        let port = self.records_port;
        let text = format!(
            "#!/bin/sh\n{before}\ncase $1 in\n\
             add) curl -sS -d '{{\"host\":\"'$2'.\",\"value\":\"'$3'\"}}' http://127.0.0.1:{port}/set-txt ;;\n\
             remove) curl -sS -d '{{\"host\":\"'$2'.\"}}' http://127.0.0.1:{port}/clear-txt ;;\n\
             *) exit 9 ;;\nesac\n"
        );
        place.script(name, &text);
    }
}

/// A certificate for Pebble itself.
fn certify(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=authority"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("cert.pem"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text_of(&made));
}
