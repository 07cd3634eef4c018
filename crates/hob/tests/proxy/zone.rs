//! A little name server of a test, over UDP: it says what the test wants it to say, and that may
//! change at any time.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

/// It ends with the test's process.
pub(crate) struct Zone {
    pub(crate) port: u16,
    said: Arc<Mutex<Said>>,
}

/// What it says for `_app._tcp.test`.
#[derive(Clone)]
pub(crate) enum Service {
    /// These servers.
    Servers(Vec<Srv>),
    /// There is no such name.
    Nothing,
    /// That the service is not offered.
    Unoffered,
    /// That it cannot say.
    Failure,
    /// Nothing at all.
    Silence,
}

/// A record, which holds for a second.
#[derive(Clone, Copy)]
pub(crate) struct Srv {
    pub(crate) target: &'static str,
    pub(crate) port: u16,
    pub(crate) priority: u16,
    pub(crate) weight: u16,
}

struct Said {
    service: Service,
    /// Names that it has no addresses of.
    unknown: Vec<&'static str>,
    /// How often it was asked for the service.
    asked: usize,
}

/// The last number of the address of each host: 127.0.0.2 for `a.test`.
const HOSTS: [(&str, u8); 4] = [("a.test", 2), ("b.test", 3), ("c.test", 4), ("d.test", 5)];
const SERVICE: &str = "_app._tcp.test";
const A: u16 = 1;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const NO_ERROR: u8 = 0;
const FAILURE: u8 = 2;
const NO_NAME: u8 = 3;

impl Zone {
    pub(crate) fn start(service: Service) -> Zone {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let said = Said {
            service,
            unknown: Vec::new(),
            asked: 0,
        };
        let zone = Zone {
            port: socket.local_addr().unwrap().port(),
            said: Arc::new(Mutex::new(said)),
        };
        let said = Arc::clone(&zone.said);
        std::thread::spawn(move || {
            let mut room = [0; 512];
            while let Ok((count, client)) = socket.recv_from(&mut room) {
                let answer = answer(&room[..count], &mut said.lock().unwrap());
                if let Some(answer) = answer {
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        zone
    }

    /// It says this from now on.
    pub(crate) fn says(&self, service: Service) {
        self.said.lock().unwrap().service = service;
    }

    /// It cannot say where these hosts are from now on.
    pub(crate) fn forgets(&self, hosts: &[&'static str]) {
        self.said.lock().unwrap().unknown = hosts.to_vec();
    }

    /// How often it was asked for the service.
    pub(crate) fn asked(&self) -> usize {
        self.said.lock().unwrap().asked
    }
}

/// Of a question to it; `None` where it is silent.
fn answer(asked: &[u8], said: &mut Said) -> Option<Vec<u8>> {
    let (mut name, mut at) = (Vec::new(), 12);
    while asked[at] > 0 {
        let end = at + 1 + usize::from(asked[at]);
        name.push(String::from_utf8(asked[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    let name = name.join(".");
    let kind = u16::from_be_bytes([asked[at + 1], asked[at + 2]]);
    let question = &asked[12..at + 5];
    let (code, records) = match kind {
        SRV if name == SERVICE => {
            said.asked += 1;
            service(&said.service)?
        }
        A | AAAA if said.unknown.iter().any(|one| *one == name) => (FAILURE, Vec::new()),
        A | AAAA => match HOSTS.iter().find(|(host, _)| *host == name) {
            Some((_, last)) if kind == A => (NO_ERROR, vec![vec![127, 0, 0, *last]]),
            Some(_) => (NO_ERROR, Vec::new()),
            None => (NO_NAME, Vec::new()),
        },
        _ => (NO_NAME, Vec::new()),
    };
    let mut message = asked[..2].to_vec();
    message.extend([0x81, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
    message.extend(question);
    for record in records {
        // The name of the question, and a second.
        message.extend([0xc0, 12]);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1, 0, 0, 0, 1]);
        message.extend((record.len() as u16).to_be_bytes());
        message.extend(record);
    }
    Some(message)
}

fn service(service: &Service) -> Option<(u8, Vec<Vec<u8>>)> {
    let record = |(priority, weight, port): (u16, u16, u16), target: &str| {
        let numbers = [priority, weight, port].map(u16::to_be_bytes);
        let mut record = numbers.concat();
        for label in target.split('.').filter(|label| !label.is_empty()) {
            record.push(label.len() as u8);
            record.extend(label.as_bytes());
        }
        record.push(0);
        record
    };
    let of = |srv: &Srv| record((srv.priority, srv.weight, srv.port), srv.target);
    Some(match service {
        Service::Servers(all) => (NO_ERROR, all.iter().map(of).collect()),
        Service::Nothing => (NO_NAME, Vec::new()),
        Service::Unoffered => (NO_ERROR, vec![record((0, 0, 0), ".")]),
        Service::Failure => (FAILURE, Vec::new()),
        Service::Silence => return None,
    })
}
