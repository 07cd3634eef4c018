//! What a run is to do, as it was asked for.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::arrive::{ArrivalRate, Arrivals};
use crate::entry::RequestSpec;
use crate::expect::Expectation;
use crate::replay::Replay;
use crate::threshold::Threshold;

/// When the next request leaves.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadModel {
    /// Closed loop: each connection sends the next request when it has its answer, after a pause.
    Closed {
        /// Time between an answer and the next request.
        think: Duration,
    },
    /// Open loop: requests are due at a rate, whatever the server does.
    Open {
        /// How many per second.
        rate: ArrivalRate,
        /// With which gaps.
        arrivals: Arrivals,
    },
    /// Open loop: requests are due when they were by a log, whatever the server does. What is asked
    /// for is then [`Replay::entries`].
    Log(Replay),
}

/// What requests are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2: in clear text with prior knowledge, over TLS by ALPN.
    H2,
    /// HTTP/3, over QUIC.
    H3,
}

impl Protocol {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::H1 => "h1",
            Protocol::H2 => "h2",
            Protocol::H3 => "h3",
        }
    }

    /// As TLS names it. //= rfc7301#6
    pub(crate) fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::H1 => b"http/1.1",
            Protocol::H2 => b"h2",
            Protocol::H3 => b"h3",
        }
    }

    /// As people name it.
    pub fn title(self) -> &'static str {
        match self {
            Protocol::H1 => "HTTP/1.1",
            Protocol::H2 => "HTTP/2",
            Protocol::H3 => "HTTP/3",
        }
    }
}

/// What is offered to a server over TLS, by the names that IANA has given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTlsOffer {
    /// The only cipher suite, such as `TLS_AES_256_GCM_SHA384`; the usual ones for none.
    pub suite: Option<String>,
    /// The only group of the key exchange, such as `X25519`; the usual ones for none.
    pub group: Option<String>,
}

/// What becomes of a connection after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reuse {
    /// It carries the next request.
    KeepAlive,
    /// Each request has a connection of its own.
    PerRequest,
}

/// What a visitor has of earlier visits when it comes to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Nothing: new connections for each view.
    Cold,
    /// What a browser's cache keeps, and its connections.
    Warm,
}

impl Visit {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Visit::Cold => "cold",
            Visit::Warm => "warm",
        }
    }
}

/// What clients do besides asking in good order; nothing of it unless it is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientActs {
    /// Of the requests with GET, how many in a hundred are made with HEAD instead.
    pub head_percent: f64,
    /// How many requests in a hundred are broken off within their answers.
    pub break_percent: f64,
    /// Bytes per second that are read of each connection at most, over TCP; none for all that come.
    pub read_rate: Option<NonZeroU64>,
    /// Every read over TCP takes another number of bytes at most, drawn at random.
    pub is_varied: bool,
}

/// What a run is to do. Every field is checked by `run` before anything is sent.
#[derive(Debug, Clone)]
pub struct BenchPlan {
    /// What is asked for, all of one origin: in turn, or drawn by weight where weights differ.
    pub entries: Vec<RequestSpec>,
    /// Where random gaps and draws begin.
    pub seed: u64,
    /// The URLs are pages, loaded with their assets as browsers do: a connection is a visitor then,
    /// with connections of its own, and a request a page.
    pub page: Option<Visit>,
    /// What clients do besides asking in good order.
    pub acts: ClientActs,
    /// A Unix socket to connect to instead of the URLs' host.
    pub unix: Option<PathBuf>,
    /// What requests are written in.
    pub protocol: Protocol,
    /// Requests at once on a connection; 1 over HTTP/1.
    pub streams: usize,
    /// Closed or open loop.
    pub pace: LoadModel,
    /// Connections, over all threads.
    pub connections: usize,
    /// Client addresses of 127.0.0.0/8 that they are spread over in turn; 1 for the system's
    /// choice.
    pub sources: usize,
    /// Keep connections or not.
    pub reuse: Reuse,
    /// Take any certificate of a server; one on this machine is not checked anyway.
    pub is_insecure: bool,
    /// What is offered over TLS.
    pub terms: ClientTlsOffer,
    /// Make a full TLS handshake for every connection.
    pub is_resumption_off: bool,
    /// Threads.
    pub threads: usize,
    /// CPUs the threads are bound to, in turn; none for no binding.
    pub cpus: Vec<usize>,
    /// Time before anything counts.
    pub warm_up: Duration,
    /// Measured time.
    pub duration: Option<Duration>,
    /// Measured requests.
    pub count: Option<u64>,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// The method of requests that have none of their own.
    pub method: String,
    /// Header fields of every request.
    pub fields: Vec<(String, String)>,
    /// The body of requests with neither a method nor a body of their own; none for none.
    pub body: Option<Vec<u8>>,
    /// What answers must be.
    pub expectations: Vec<Expectation>,
    /// What the result must not be.
    pub thresholds: Vec<Threshold>,
    /// A process whose CPU time, with that of its children, is put beside the result.
    pub pid: Option<u32>,
}

impl BenchPlan {
    /// What a request is: one, or a page with its assets.
    pub(crate) fn noun(&self) -> &'static str {
        match self.page {
            None => "requests",
            Some(_) => "pages",
        }
    }

    /// What makes them: connections, or visitors with connections of their own.
    pub(crate) fn makers(&self) -> &'static str {
        match self.page {
            None => "connections",
            Some(_) => "visitors",
        }
    }
}

impl BenchPlan {
    /// The method an entry is asked with.
    pub(crate) fn method_of<'a>(&'a self, entry: &'a RequestSpec) -> &'a str {
        match (&entry.method, &entry.body) {
            (Some(method), _) => method,
            (None, Some(_)) => "POST",
            (None, None) => &self.method,
        }
    }

    /// The body an entry is asked with.
    pub(crate) fn body_of<'a>(&'a self, entry: &'a RequestSpec) -> Option<&'a [u8]> {
        match (&entry.body, &entry.method) {
            (Some(body), _) => Some(body),
            (None, Some(_)) => None,
            (None, None) => self.body.as_deref(),
        }
    }

    /// All header fields an entry is asked with.
    pub(crate) fn fields_of<'a>(
        &'a self,
        entry: &'a RequestSpec,
    ) -> impl Iterator<Item = &'a (String, String)> + Clone {
        self.fields.iter().chain(&entry.fields)
    }
}
