//! Connections that begin with a header of the PROXY protocol, because their listener asks for one:
//! who they are from is known when it is there, and nothing is answered before.
//!
//! The header is looked at where the kernel holds it until it is whole, and only then taken: what
//! comes behind it, a TLS handshake or a request, is read as if nothing had been before.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::h1;
use crate::limits::{REFUSED_CONNECTIONS_MAX, REFUSED_GREETING_MS};
use crate::proxy_protocol::{self, ProxiedEnds, ProxyFault};
use crate::request::{ConnectionFacts, ToldOfClient};
use crate::response::Responder;
use crate::thread::accept::Accepted;
use crate::thread::conn::{ConnectionStage, CountedLimits, SocketConnection};
use crate::thread::drive::DriveOutcome;
use crate::thread::run::Thread;
use crate::tls::TlsHosts;

/// What follows the header of a connection.
pub(crate) struct BehindHeader {
    tls: Option<Arc<TlsHosts>>,
    alt_svc: Option<Arc<[u8]>>,
}

/// Why a connection is closed for its header.
enum HeaderRefusal {
    /// It is none.
    Fault(ProxyFault),
    /// Not all of it came before the other side ended.
    Cut,
    /// Not all of it came in time.
    Late,
    /// The listener does not trust who connects.
    Untrusted,
}

impl fmt::Display for HeaderRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderRefusal::Fault(fault) => fault.words(),
            HeaderRefusal::Cut => "it ended within its header",
            HeaderRefusal::Late => "limits.proxy_protocol_time: its header did not come in time",
            HeaderRefusal::Untrusted => "who connects is not in `trusted`",
        })
    }
}

impl HeaderRefusal {
    /// What is to be done about it.
    fn hint(&self) -> &'static str {
        match self {
            HeaderRefusal::Untrusted => "add its address to `trusted` if it may name clients",
            HeaderRefusal::Fault(ProxyFault::Long) => {
                "raise limits.proxy_protocol_bytes, or have it send less"
            }
            _ => "have it send the PROXY protocol, or use a listener without `proxy_protocol`",
        }
    }
}

impl<A: Responder + 'static> Thread<A> {
    /// Takes a connection over that begins with a header. Those there is no room for have one, too.
    pub(crate) fn adopt_with_header(&mut self, accepted: Accepted) {
        let behind = BehindHeader {
            tls: accepted.tls.clone(),
            alt_svc: accepted.alt_svc.clone(),
        };
        let mut conn = self.conn_of(accepted);
        if !self.answer.may_name_clients(&conn.facts) {
            self.refuse_header(&conn, HeaderRefusal::Untrusted);
            return self.close(conn);
        }
        let time_ms = match conn.counted {
            CountedLimits::Refused => REFUSED_GREETING_MS,
            _ => self.limits.proxy_protocol_time.as_millis() as u64,
        };
        conn.core.wait_for_first_bytes(self.turn.now_ms + time_ms);
        conn.stage = ConnectionStage::Header(Box::new(behind));
        self.drive_and_keep(conn);
    }

    /// Looks whether the header is there.
    pub(crate) fn read_header(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        if !conn.is_readable {
            return DriveOutcome::Wait;
        }
        let bytes_max = self.limits.proxy_protocol_bytes.min(self.input.len());
        let room = &mut self.input[..bytes_max];
        let count = match rustix::net::recv(&conn.socket, room, RecvFlags::PEEK) {
            // Who said nothing only tried whether somebody listens.
            Ok((0, _)) => return DriveOutcome::Close,
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => {
                conn.is_readable = false;
                return DriveOutcome::Wait;
            }
            Err(Errno::INTR) => return DriveOutcome::Again,
            Err(_) => return DriveOutcome::Close,
        };
        // More gives a new event.
        conn.is_readable = false;
        let (ends, is_secure, len) = match proxy_protocol::read(&self.input[..count], bytes_max) {
            Ok(Some((header, len))) => (header.ends, header.tls.is_some(), len),
            Ok(None) if conn.is_half_closed => {
                self.refuse_header(conn, HeaderRefusal::Cut);
                return DriveOutcome::Close;
            }
            Ok(None) => return DriveOutcome::Wait,
            Err(fault) => {
                self.refuse_header(conn, HeaderRefusal::Fault(fault));
                return DriveOutcome::Close;
            }
        };
        let taken = rustix::net::recv(&conn.socket, &mut self.input[..len], RecvFlags::empty());
        if !matches!(taken, Ok((count, _)) if count == len) {
            return DriveOutcome::Close;
        }
        conn.is_readable = count > len || conn.is_half_closed;
        believe(conn, ends, is_secure);
        self.go_on_behind_header(conn)
    }

    /// The client is known: it counts now, and what comes next is its own.
    fn go_on_behind_header(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        let ConnectionStage::Header(behind) =
            std::mem::replace(&mut conn.stage, ConnectionStage::Reading)
        else {
            return DriveOutcome::Close;
        };
        if !self
            .answer
            .lets_connect(conn.facts.peer, conn.facts.listener)
        {
            return DriveOutcome::Close;
        }
        if conn.counted == CountedLimits::Server {
            match self.crew.enter_client(&self.limits, conn.facts.peer) {
                Some(counted) => conn.counted = counted,
                None => {
                    self.counters.limit_connections_per_client.add(1);
                    if self.accepting.refused_count >= REFUSED_CONNECTIONS_MAX {
                        return DriveOutcome::Close;
                    }
                    self.crew.leave(conn.counted, None);
                    conn.counted = CountedLimits::Refused;
                    self.accepting.refused_count += 1;
                }
            }
        }
        if conn.counted == CountedLimits::Refused {
            self.say_no_room(conn, behind.tls.is_some());
            return DriveOutcome::Again;
        }
        conn.core = h1::Http1Connection::new(Rc::clone(&self.limits), self.turn.now_ms);
        if let Some(terms) = behind.tls {
            self.begin_secure(conn, terms, behind.alt_svc);
        }
        DriveOutcome::Again
    }

    /// The header did not come in time.
    pub(crate) fn time_out_header(&self, conn: &SocketConnection) {
        // Who there is no room for is counted already, and was not waited for.
        if conn.counted != CountedLimits::Refused {
            self.refuse_header(conn, HeaderRefusal::Late);
        }
    }

    /// Books a connection that is closed for its header, and tells the log of it: nobody else is
    /// told.
    fn refuse_header(&self, conn: &SocketConnection, refusal: HeaderRefusal) {
        let counter = match refusal {
            HeaderRefusal::Late => &self.counters.limit_proxy_protocol_time,
            HeaderRefusal::Fault(ProxyFault::Long) => &self.counters.limit_proxy_protocol_bytes,
            HeaderRefusal::Fault(_) | HeaderRefusal::Cut => &self.counters.proxy_protocol_wrong,
            HeaderRefusal::Untrusted => &self.counters.proxy_protocol_untrusted,
        };
        counter.add(1);
        let hint = refusal.hint();
        let from = conn
            .facts
            .peer
            .map_or_else(|| "a Unix socket".to_owned(), |peer| peer.to_string());
        hob_trace::warn_seldom!(
            from, reason = %refusal, hint,
            "a connection to a listener with `proxy_protocol` was closed"
        );
    }
}

/// From now on the connection is the one of the client that its header names.
fn believe(conn: &mut SocketConnection, ends: Option<ProxiedEnds>, is_secure: bool) {
    let mut facts = ConnectionFacts::clone(&conn.facts);
    if let Some(ends) = ends {
        let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        facts.peer = Some(canonical(ends.client));
        facts.local = Some(canonical(ends.server));
    }
    facts.told = Some(ToldOfClient {
        // Who stands in front may pass TLS through, and speak none itself: that says nothing.
        is_secure: is_secure.then_some(true),
        field: Rc::from(""),
        variables: None,
    });
    conn.facts = Rc::new(facts);
}
