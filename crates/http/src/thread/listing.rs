//! What a thread has open and under way, for whoever asks: copies, made when they are asked for.
//! Nothing is kept for it while nobody does.

use std::net::SocketAddr;

use hob_trace::history::kept;
use hob_trace::{Protocol, Record, Texts, TlsVersion};

use crate::head::Known;
use crate::network::{Network, NetworkProbe};
use crate::request::{ConnectionFacts, HandlerPhase, Request};
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, OutputPiece, SocketConnection};
use crate::thread::run::Thread;
use crate::thread::work::Work;

/// A request under way.
#[derive(Clone, Debug)]
pub struct InFlightRequest {
    /// What is known of it so far.
    pub record: Record,
    /// Method, as sent. This and the other texts are cut where the history cuts them.
    pub method: Vec<u8>,
    /// Request target, as sent.
    pub target: Vec<u8>,
    /// `Host` or `:authority`.
    pub host: Vec<u8>,
    /// `Referer`.
    pub referer: Vec<u8>,
    /// `User-Agent`.
    pub user_agent: Vec<u8>,
    /// What it is at.
    pub state: RequestState,
    /// Since when it runs, in microseconds.
    pub age_us: u64,
    /// The worker that has it, as far as that is known.
    pub worker_pid: Option<u32>,
}

/// What a request is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// The client sends its body.
    ReadingBody,
    /// It waits in a program's queue.
    Queued,
    /// A program works on it.
    Program,
    /// Its answer leaves.
    Sending,
    /// Raw bytes flow both ways.
    Tunnel,
    /// The server works on it.
    Server,
}

impl RequestState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            RequestState::ReadingBody => "reading-body",
            RequestState::Queued => "queued",
            RequestState::Program => "program",
            RequestState::Sending => "sending",
            RequestState::Tunnel => "tunnel",
            RequestState::Server => "other",
        }
    }
}

/// An open connection.
#[derive(Clone, Debug)]
pub struct Open {
    /// Its number, unique in this process.
    pub number: u64,
    /// The client; `None` over a Unix socket.
    pub client: Option<SocketAddr>,
    /// What it speaks; as long as nothing was said, HTTP/1.1.
    pub protocol: Protocol,
    /// Version of TLS.
    pub tls_version: TlsVersion,
    /// Cipher suite of TLS by its IANA name; empty in clear text.
    pub tls_suite: &'static str,
    /// Index of the listener that took it.
    pub listener: u16,
    /// The server's address that it came to; `None` over a Unix socket.
    pub local: Option<SocketAddr>,
    /// When it was opened, as Unix time in milliseconds.
    pub opened_unix_ms: u64,
    /// Requests that have come over it.
    pub requests: u32,
    /// `handshake`, `idle`, `active` or `closing`.
    pub state: &'static str,
    /// What the network below it is like; `None` over a Unix socket.
    pub network: Option<Network>,
}

/// How far an answer is, as its connection sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Far {
    /// No head has left.
    Before,
    /// Its body is on its way, or all of it is made.
    Body,
    /// The client takes nothing for now.
    Blocked,
    Tunnel,
}

impl<A: Responder + 'static> Thread<A> {
    /// Shows every request under way.
    pub fn each_request(&self, mut show: impl FnMut(&Request)) {
        for conn in self.seats.iter() {
            requests_of(conn, &mut |request: &Request, _| show(request));
        }
        self.quic.each_request(|request, _, _| show(request));
    }

    /// Requests under way, at most so many, and whether there are more.
    pub fn running(&self, count_max: usize) -> (Vec<InFlightRequest>, bool) {
        let mut running = Vec::new();
        let mut is_more = false;
        let now_us = self.turn.now_us;
        let mut take = |request: &Request, far: Far| match running.len() < count_max {
            true => running.push(tell(request, far, now_us)),
            false => is_more = true,
        };
        for conn in self.seats.iter() {
            requests_of(conn, &mut take);
        }
        self.quic.each_request(|request, work, is_blocked| {
            take(request, far_of(request, work, is_blocked));
        });
        (running, is_more)
    }

    /// Open connections, at most so many, and whether there are more. Those of listeners that
    /// stand aside are left out.
    pub fn connections(&self, count_max: usize) -> (Vec<Open>, bool) {
        let unix_ms = |ms: u64| ms.wrapping_add(self.turn.unix_offset_ms);
        let mut open = Vec::new();
        let mut is_more = false;
        for conn in self.seats.iter() {
            match open.len() < count_max {
                true => open.push(open_conn(conn, unix_ms(conn.opened_ms))),
                false => is_more = true,
            }
        }
        self.quic
            .each_session(|facts, started_us, requests, state, way| {
                let opened_unix_ms = unix_ms(started_us / 1000);
                match open.len() < count_max {
                    true => open.push(Open {
                        protocol: Protocol::Http3,
                        opened_unix_ms,
                        requests,
                        state,
                        network: way.network(),
                        ..of_facts(facts)
                    }),
                    false => is_more = true,
                }
            });
        (open, is_more)
    }
}

fn requests_of(conn: &SocketConnection, take: &mut impl FnMut(&Request, Far)) {
    let is_blocked = conn.take_since_us != 0;
    for piece in &conn.out.pieces {
        if let OutputPiece::End(request) = piece {
            take(request, if is_blocked { Far::Blocked } else { Far::Body });
        }
    }
    if let Some(request) = &conn.request {
        let far = match &conn.stage {
            ConnectionStage::Stream(_) if conn.core.is_tunnel() => Far::Tunnel,
            ConnectionStage::Stream(_) | ConnectionStage::Pipe(_) if is_blocked => Far::Blocked,
            ConnectionStage::Stream(_) | ConnectionStage::Pipe(_) => Far::Body,
            _ => Far::Before,
        };
        take(request, far);
    }
    for stream in conn.h2.iter().flat_map(|session| &session.streams) {
        let (work, is_waiting) = stream.at();
        take(
            &stream.request,
            far_of(&stream.request, Some(work), is_waiting || is_blocked),
        );
    }
}

fn far_of(request: &Request, work: Option<&Work>, is_blocked: bool) -> Far {
    match work {
        Some(Work::Later(_)) => Far::Before,
        _ if request.is_tunnel() => Far::Tunnel,
        _ if is_blocked => Far::Blocked,
        _ => Far::Body,
    }
}

fn tell(request: &Request, far: Far, now_us: u64) -> InFlightRequest {
    let head = request.sent_head();
    let value = |known| head.value(known).unwrap_or_default();
    let record = *request.record();
    // A head may be large, and there may be many: as much as the history will keep.
    let texts = kept(&Texts {
        method: head.method(),
        target: request.shown_target(),
        host: head.host(),
        referer: request.shown_referer(),
        user_agent: value(Known::UserAgent),
        user: b"",
        detail: b"",
        asked: b"",
    });
    InFlightRequest {
        method: texts.method.to_vec(),
        target: texts.target.to_vec(),
        host: texts.host.to_vec(),
        referer: texts.referer.to_vec(),
        user_agent: texts.user_agent.to_vec(),
        state: state_of(request, &record, far),
        age_us: now_us.saturating_sub(record.started_us),
        worker_pid: request.worker_pid(),
        record,
    }
}

fn state_of(request: &Request, record: &Record, far: Far) -> RequestState {
    let is_program = record.handler.runs_program();
    match (far, request.phase()) {
        (Far::Tunnel, _) => RequestState::Tunnel,
        (Far::Blocked, _) => RequestState::Sending,
        // What has come from the program has left.
        (Far::Body, _) if is_program => RequestState::Program,
        (Far::Body, _) => RequestState::Sending,
        (Far::Before, HandlerPhase::Queued) => RequestState::Queued,
        (Far::Before, _) if request.waits_for_body() => RequestState::ReadingBody,
        (Far::Before, HandlerPhase::Program) => RequestState::Program,
        (Far::Before, HandlerPhase::Server) => RequestState::Server,
    }
}

fn open_conn(conn: &SocketConnection, opened_unix_ms: u64) -> Open {
    Open {
        protocol: match conn.h2 {
            Some(_) => Protocol::Http2,
            None => Protocol::Http11,
        },
        opened_unix_ms,
        requests: conn.request_count,
        state: match conn.stage {
            ConnectionStage::Header(_) | ConnectionStage::Handshake => "handshake",
            ConnectionStage::TurnedAway | ConnectionStage::Lingering => "closing",
            _ if conn.is_idle() => "idle",
            _ => "active",
        },
        network: conn.socket.network(),
        ..of_facts(&conn.facts)
    }
}

fn of_facts(facts: &ConnectionFacts) -> Open {
    let tls = facts.tls.as_ref();
    Open {
        number: facts.number,
        client: facts.peer,
        protocol: Protocol::Http11,
        tls_version: tls.map_or(TlsVersion::None, |tls| tls.version),
        tls_suite: tls.map_or("", |tls| tls.suite),
        listener: facts.listener,
        local: facts.local,
        opened_unix_ms: 0,
        requests: 0,
        state: "idle",
        network: None,
    }
}
