//! The same tests over other protocols: with `HOB_TEST_OVER` set to `tls`, `h2` or `h3`, hob gets a
//! TLS listener instead of a clear one, and a test the port of `tests/over/program.rs`, which
//! carries its HTTP/1.1 there. With `proxy`, a test gets the port of another hob, which passes all
//! requests on to the one that is tested; with `proxy-h2` over HTTP/2.
//!
//! Tests about HTTP/1 itself have `h1_only` in their names and are left out then.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{Hob, Place};

/// What hob is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 in clear.
    H1,
    Tls,
    H2,
    H3,
    /// HTTP/1.1 in clear, through another hob.
    Proxy,
    /// The same, and HTTP/2 between the two.
    ProxyH2,
}

impl Protocol {
    /// The one that these tests run over.
    pub fn tested() -> Protocol {
        match std::env::var("HOB_TEST_OVER").as_deref() {
            Err(_) | Ok("" | "h1") => Protocol::H1,
            Ok("tls") => Protocol::Tls,
            Ok("h2") => Protocol::H2,
            Ok("h3") => Protocol::H3,
            Ok("proxy") => Protocol::Proxy,
            Ok("proxy-h2") => Protocol::ProxyH2,
            Ok(other) => panic!("HOB_TEST_OVER={other}: it is h1, tls, h2, h3, proxy or proxy-h2"),
        }
    }

    /// What programs and logs are told.
    pub fn version(self) -> &'static str {
        match self {
            Protocol::H1 | Protocol::Tls | Protocol::Proxy => "HTTP/1.1",
            Protocol::H2 | Protocol::ProxyH2 => "HTTP/2.0",
            Protocol::H3 => "HTTP/3.0",
        }
    }

    pub fn scheme(self) -> &'static str {
        match self {
            Protocol::H1 | Protocol::Proxy | Protocol::ProxyH2 => "http",
            _ => "https",
        }
    }

    /// The config with which hob speaks it.
    pub fn config(self, text: &str) -> String {
        let tls = match self {
            Protocol::H1 | Protocol::Proxy | Protocol::ProxyH2 => return text.to_owned(),
            Protocol::Tls | Protocol::H2 => "{ certificate = \"self-signed\", http3 = false }",
            Protocol::H3 => "\"self-signed\"",
        };
        let clear = "address = \"127.0.0.1:0\"\n";
        let secure = format!("{clear}tls = {tls}\n");
        // A test may write again what it read.
        text.replace(&secure, clear).replace(clear, &secure)
    }
}

/// Carries a test's connections to hob; ends with this value.
pub struct Carrier {
    program: CarrierProgram,
    pub port: u16,
}

enum CarrierProgram {
    Example(Child),
    Proxy(#[expect(dead_code, reason = "ends when it is dropped")] Box<(Hob, Place)>),
}

impl Carrier {
    pub fn start(protocol: Protocol, port: u16) -> Carrier {
        match protocol {
            Protocol::Proxy => Carrier::start_proxy(port, "1.1"),
            Protocol::ProxyH2 => Carrier::start_proxy(port, "2"),
            protocol => Carrier::start_with(protocol, port, &[]),
        }
    }

    fn start_proxy(port: u16, http: &str) -> Carrier {
        let place = Place::new();
        let hob = place.serve_text(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/*\"\n\
             body = \"1GiB\"\n\
             proxy = {{ to = \"http://127.0.0.1:{port}\", http = \"{http}\" }}\n"
        ));
        let port = hob.clear_port();
        let program = CarrierProgram::Proxy(Box::new((hob, place)));
        Carrier { program, port }
    }

    /// Over HTTP/3, with a client that asks now and then whether the server still knows their
    /// connection, and never gives one up because nothing comes.
    pub fn start_asking(port: u16) -> Carrier {
        Carrier::start_with(Protocol::H3, port, &["asking"])
    }

    fn start_with(protocol: Protocol, port: u16, more: &[&str]) -> Carrier {
        let name = format!("{protocol:?}").to_lowercase();
        let path = example("over");
        let program = Command::new(&path)
            .args([name, port.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut program = program.unwrap_or_else(|error| {
            let hint = "`cargo build -p hob --example over` builds it";
            panic!("{}: {error}; {hint}", path.display())
        });
        let mut line = String::new();
        let mut said = BufReader::new(program.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        let program = CarrierProgram::Example(program);
        Carrier { program, port }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if let CarrierProgram::Example(program) = &mut self.program {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// Where cargo puts an example: beside the folder of tests.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().with_file_name("examples").join(name)
}
