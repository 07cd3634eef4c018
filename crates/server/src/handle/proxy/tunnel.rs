//! Tunnels: after the head raw bytes flow both ways, each way for itself.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use hob_http::reactor::Timer;
use hob_http::{Body, BodyError, BodyPiece, BodyStream, Bytes, Chunk, Request, Response};
use hob_trace::Fault;

use crate::handle::plain;
use crate::handle::proxy::exchange::{AnswerPart, ProxyExchange};
use crate::handle::proxy::fail::{self, ProxyFailure};
use crate::handle::proxy::limits::{TUNNEL_LITTLE_BYTES, TUNNEL_MUCH_BYTES};
use crate::handle::proxy::wire::AnswerHead;
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::http2::Http2Stream;
use crate::handle::upstream::patience::set;
use crate::handle::upstream::stream::MemberStream;

/// An open tunnel: what goes to the client.
struct Tunnel {
    exchange: ProxyExchange,
    idle: Rc<Timer>,
    idle_max: Duration,
    /// What goes the other way does so by itself once the client may send.
    is_begun: bool,
    rest: Bytes,
    /// Much came at once: what comes next goes by a pipe, where it can.
    is_busy: bool,
    /// The other server has ended its direction.
    is_half: bool,
    client_end: Rc<ClientEnd>,
}

/// Whether the client has ended its direction.
#[derive(Default)]
struct ClientEnd {
    is_there: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Where what the client sends is written.
pub(super) enum TunnelEnd {
    Http1(Rc<MemberStream>),
    Http2(Rc<Http2Stream>),
}

impl TunnelEnd {
    /// Writes all of it, as fast as the other side takes it. An error where that takes no more.
    async fn write(&self, piece: BodyPiece) -> Result<(), ()> {
        match (self, piece) {
            (TunnelEnd::Http1(stream), BodyPiece::Piped(mut pipe)) => {
                let drained = poll_fn(|cx| stream.poll_drain(cx, &mut pipe));
                drained.await.map_err(drop)
            }
            (TunnelEnd::Http1(stream), BodyPiece::Bytes(mut piece)) => {
                while !piece.is_empty() {
                    let written = poll_fn(|cx| stream.poll_write(cx, &piece)).await;
                    drop(piece.split_to(written.map_err(drop)?));
                }
                Ok(())
            }
            (TunnelEnd::Http2(stream), piece) => {
                let piece = piece.into_bytes().map_err(drop)?;
                stream.send(piece, false).await.map_err(drop)
            }
        }
    }

    /// What is in a pipe can be moved there.
    fn takes_pipes(&self) -> bool {
        matches!(self, TunnelEnd::Http1(stream) if stream.has_pipes())
    }

    /// The client has ended its direction.
    async fn end(&self) {
        match self {
            TunnelEnd::Http1(stream) => {
                let _ = poll_fn(|cx| stream.poll_end(cx)).await;
            }
            TunnelEnd::Http2(stream) => {
                let _ = stream.send(Bytes::new(), true).await;
            }
        }
    }

    fn hang_up(&self) {
        match self {
            TunnelEnd::Http1(stream) => stream.hang_up(),
            TunnelEnd::Http2(stream) => stream.cancel(),
        }
    }
}

/// From the head of a tunnel to an answer.
pub(super) fn open(
    request: &Request,
    exchange: &mut Option<ProxyExchange>,
    head: AnswerHead,
) -> Result<Response, ProxyFailure> {
    let is_asked = |protocol: &[u8]| {
        let opened = head.upgrade.as_deref();
        opened.is_some_and(|opened| opened.eq_ignore_ascii_case(protocol))
    };
    let Some(protocol) = request.tunnel().filter(|protocol| is_asked(protocol)) else {
        return Err(ProxyFailure::WrongTunnel);
    };
    // A client with a key looks for itself.
    //= rfc6455#4.1
    if let Some(key) = exchange.as_ref().and_then(ProxyExchange::key) {
        let is_it = |name: &[u8]| name.eq_ignore_ascii_case(b"Sec-WebSocket-Accept");
        let accepted = head.fields.iter().filter(|(name, _)| is_it(name));
        if !accepted
            .map(|(_, value)| value)
            .eq([&*websocket_accept(key)])
        {
            return Err(ProxyFailure::WrongKey);
        }
    }
    let Some(mut exchange) = exchange.take() else {
        return Err(UpstreamFailure::Closed.into());
    };
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    match request.head().connect_protocol() {
        //= rfc8441#5
        Some(_) => fields.remove(b"Sec-WebSocket-Accept"),
        //= rfc9110#7.8
        None => {
            fields.set(b"Upgrade", protocol);
            // A member that was asked by CONNECT has not seen the key.
            let key = request.head().values(b"sec-websocket-key").next();
            if let (true, Some(key)) = (exchange.is_http2(), key) {
                fields.set(b"Sec-WebSocket-Accept", &websocket_accept(key));
            }
        }
    }
    // What comes now is no body of a request.
    request.limit_body(u64::MAX);
    let idle_max = exchange.begin_tunnel();
    let idle = Rc::new(request.reactor().timer());
    set(&idle, idle_max);
    let tunnel = Tunnel {
        exchange,
        idle,
        idle_max,
        is_begun: false,
        rest: Bytes::new(),
        is_busy: false,
        is_half: false,
        client_end: Rc::default(),
    };
    Ok(Response::new(101, fields, Body::Tunnel(Box::new(tunnel))))
}

impl Tunnel {
    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        if let Some(other) = self.exchange.tunnel_end() {
            let request = self.exchange.request().clone();
            let (idle, idle_max) = (Rc::clone(&self.idle), self.idle_max);
            let end = Rc::clone(&self.client_end);
            let reactor = request.reactor().clone();
            reactor.spawn(async move {
                send(&request, &other, (&idle, idle_max)).await;
                end.is_there.set(true);
                if let Some(waker) = end.waker.take() {
                    waker.wake();
                }
            });
        }
    }

    fn poll_idle(&self, cx: &mut Context<'_>) -> Poll<BodyError> {
        const IDLE: &str = "limits: proxy.timeout.tunnel: nothing went either way";
        self.idle.poll_elapsed(cx).map(|()| {
            self.exchange.count_idle();
            BodyError::Source(Fault::Upstream, IDLE)
        })
    }
}

/// A key for a WebSocket whose client has none: it only has to look like sixteen random bytes in
/// base64, and to be another one each time (RFC 6455 section 4.1).
pub(super) fn websocket_key() -> Vec<u8> {
    let mut random = [0_u8; 16];
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    base64(&random)
}

//= rfc4648#4
fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(match digit <= group.len() {
                true => DIGITS[value as usize],
                false => b'=',
            });
        }
    }
    text
}

/// What a server says to have read a client's key.
//= rfc6455#4.2.2
fn websocket_accept(key: &[u8]) -> Vec<u8> {
    const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, SUFFIX].concat());
    base64(sum.as_ref())
}

/// What the client sends, as fast as the other side takes it.
async fn send(request: &Request, other: &TunnelEnd, (idle, idle_max): (&Timer, Duration)) {
    while let Some(piece) = request.next_body_piece().await {
        let Ok(piece) = piece else {
            other.hang_up();
            return;
        };
        set(idle, idle_max);
        let is_busy = match &piece {
            BodyPiece::Bytes(bytes) => bytes.len() >= TUNNEL_MUCH_BYTES,
            BodyPiece::Piped(pipe) => pipe.len() >= TUNNEL_LITTLE_BYTES,
        };
        request.take_body_in_pipes(is_busy && other.takes_pipes());
        // It reads no more; what it still has to say comes.
        if other.write(piece).await.is_err() {
            return;
        }
    }
    other.end().await;
}

impl BodyStream for Tunnel {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        self.begin();
        loop {
            if !self.rest.is_empty() {
                let chunk = self.rest.split_to(self.rest.len().min(max));
                return Poll::Ready(Some(Ok(Chunk::Bytes(chunk))));
            }
            if self.is_half && self.client_end.is_there.get() {
                return Poll::Ready(None);
            }
            if self.is_half {
                self.client_end.waker.replace(Some(cx.waker().clone()));
                return self.poll_idle(cx).map(|error| Some(Err(error)));
            }
            match self.exchange.poll_more(cx) {
                Poll::Ready(Ok(AnswerPart::Body(bytes))) => {
                    set(&self.idle, self.idle_max);
                    self.is_busy = bytes.len() >= TUNNEL_MUCH_BYTES;
                    self.rest = bytes;
                }
                Poll::Ready(Ok(AnswerPart::End | AnswerPart::Head(_))) => {
                    self.is_half = true;
                    return Poll::Ready(Some(Ok(Chunk::HalfClose)));
                }
                Poll::Ready(Err(failure)) => {
                    let error = fail::broken(&self.exchange, &failure);
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => return self.poll_idle(cx).map(|error| Some(Err(error))),
            }
        }
    }

    fn fills_next(&self) -> bool {
        self.is_busy && self.rest.is_empty() && !self.is_half && self.exchange.fills_next()
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<Result<usize, BodyError>> {
        match self.exchange.poll_fill(cx, (pipe, max)) {
            Poll::Ready(Ok(count)) => {
                self.is_busy = count >= TUNNEL_LITTLE_BYTES;
                if count > 0 {
                    set(&self.idle, self.idle_max);
                }
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(failure)) => Poll::Ready(Err(fail::broken(&self.exchange, &failure))),
            Poll::Pending => self.poll_idle(cx).map(Err),
        }
    }
}
