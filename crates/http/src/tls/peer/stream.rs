//! Bytes over a TLS connection to another server. It is read where the bytes are to be: records
//! come into the caller's buffer and are opened there.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustix::net::{SendFlags, Shutdown, send, shutdown};
use rustls::{AlertDescription, ClientConfig};

use crate::reactor::{Reactor, RestingFd, Watched};
use crate::tls::handshake::{Established, Handshake, HandshakeProgress};
use crate::tls::peer::fault::PeerFault;
use crate::tls::peer::terms::{PeerName, PeerTerms, PeerVersions};
use crate::tls::record::{RECORD_BYTES_MAX, TEXT_BYTES_MAX, TlsContentType, record_len};
use crate::tls::session::{TlsInputEnd, TlsSession};

/// A connection whose bytes are sealed. One task may read and one write.
pub struct TlsStream {
    socket: Watched,
    parts: RefCell<Box<TlsParts>>,
    is_resumed: bool,
    is_h2: bool,
}

/// What there is of a connection beside its socket.
struct TlsParts {
    session: TlsSession,
    /// One of the terms it was made on.
    config: Arc<ClientConfig>,
    /// Sealed bytes that came and are no whole record yet, or were not looked at.
    inbound: Vec<u8>,
    /// Sealed bytes on their way, from an offset on.
    outbound: Vec<u8>,
    outbound_from: usize,
    /// Bytes that are sealed and on their way, and of which the caller does not know yet.
    accepted: usize,
    /// How the input ended.
    end: Option<InputEnd>,
}

#[derive(Clone, Copy)]
enum InputEnd {
    /// In order.
    Closed,
    /// Perhaps not where the other side wanted it to.
    CutOff,
    GaveUp(u8),
    Broken(&'static str),
}

/// Most bytes of a handshake from the other side: chains of certificates are long.
const HANDSHAKE_BYTES_MAX: usize = 256 * 1024;
/// Bytes that are sealed at a time.
const SEALED_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;

impl TlsStream {
    /// Makes the handshake on a connection that is there.
    ///
    /// # Errors
    /// Why there is no TLS.
    pub async fn shake(
        socket: Watched,
        (terms, versions): (&PeerTerms, PeerVersions),
        name: &PeerName,
    ) -> Result<TlsStream, PeerFault> {
        let fault = |error: rustls::Error| PeerFault::of(&error);
        let begun = Handshake::with_server(terms.offering(versions), name.0.clone());
        let mut handshake = begun.map_err(fault)?;
        let (mut input, mut out, mut came) = (Vec::new(), Vec::new(), 0);
        loop {
            let (used, progress) = handshake.read(&mut input, &mut out);
            input.drain(..used);
            // Who does not take it may have said why: that is read.
            let _ = write_all(&socket, &out).await;
            out.clear();
            handshake = match progress {
                HandshakeProgress::Done(established) => {
                    let config = Arc::clone(&terms.http1);
                    return Ok(TlsStream::new(socket, config, *established, input));
                }
                HandshakeProgress::Failed(error) => return Err(fault(error)),
                HandshakeProgress::NeedMore(handshake) => handshake,
            };
            input.reserve(RECORD_BYTES_MAX);
            match poll_fn(|cx| socket.poll_read_behind(cx, &mut input)).await {
                Ok(0) => return Err(PeerFault::ended(None)),
                Ok(count) => came += count,
                Err(error) => return Err(PeerFault::ended(Some(&error))),
            }
            if came == input.len() && !is_tls(&input) {
                return Err(PeerFault::clear_text());
            }
            if came > HANDSHAKE_BYTES_MAX {
                return Err(PeerFault::other("its handshake is too long"));
            }
        }
    }

    fn new(
        socket: Watched,
        config: Arc<ClientConfig>,
        established: Established,
        inbound: Vec<u8>,
    ) -> TlsStream {
        TlsStream {
            socket,
            is_resumed: established.is_resumed,
            is_h2: established.is_h2,
            parts: RefCell::new(Box::new(TlsParts {
                session: established.session,
                config,
                inbound,
                outbound: Vec::new(),
                outbound_from: 0,
                accepted: 0,
                end: None,
            })),
        }
    }

    /// The handshake went on with an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// HTTP/2 was agreed on.
    pub fn is_h2(&self) -> bool {
        self.is_h2
    }

    /// True when it was made on these terms.
    pub fn is_on(&self, terms: &PeerTerms) -> bool {
        Arc::ptr_eq(&self.parts.borrow().config, &terms.http1)
    }

    /// The socket below.
    pub fn socket(&self) -> &Watched {
        &self.socket
    }

    /// Ready while reading is worth a try.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let parts = self.parts.borrow();
        match parts.end.is_some() || has_record(&parts.inbound) {
            true => Poll::Ready(()),
            false => self.socket.poll_readable(cx),
        }
    }

    /// Reads into the capacity that a buffer has behind its bytes, and more where a record needs
    /// it. Zero bytes are the end, which the other side has announced.
    pub fn poll_read_behind(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        loop {
            // Nothing is made room for in vain.
            ready!(self.poll_readable(cx));
            let mut parts = self.parts.borrow_mut();
            if let Some(end) = parts.end {
                return Poll::Ready(end.told());
            }
            let begin = buffer.len();
            buffer.append(&mut parts.inbound);
            if !has_record(&buffer[begin..]) {
                buffer.reserve(RECORD_BYTES_MAX);
                match self.socket.poll_read_behind(cx, buffer) {
                    Poll::Ready(Ok(0)) => parts.end = Some(InputEnd::CutOff),
                    Poll::Ready(Ok(_)) => {}
                    other => {
                        parts.inbound = buffer.split_off(begin);
                        return other;
                    }
                }
            }
            let text = parts.open(buffer, begin);
            parts.try_flush(&self.socket);
            if text > 0 {
                return Poll::Ready(Ok(text));
            }
        }
    }

    /// Writes a part of what there is. Where it has to wait, it is to be called again with the same
    /// bytes: some of them are sealed already.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut parts = self.parts.borrow_mut();
        ready!(parts.poll_flush(cx, &self.socket))?;
        if parts.accepted == 0 {
            parts.seal(&bytes[..bytes.len().min(SEALED_BYTES_MAX)])?;
            ready!(parts.poll_flush(cx, &self.socket))?;
        }
        Poll::Ready(Ok(std::mem::take(&mut parts.accepted)))
    }

    /// Says that nothing more is sent.
    pub fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let parts = &mut **self.parts.borrow_mut();
        parts.session.push_end(&mut parts.outbound);
        ready!(parts.poll_flush(cx, &self.socket))?;
        Poll::Ready(shutdown(self.socket.fd(), Shutdown::Write).map_err(io::Error::from))
    }

    /// Nothing is said any more, not even that it has ended: the other side must not take what it
    /// has for whole.
    pub fn fall_silent(&self) {
        let mut parts = self.parts.borrow_mut();
        parts.session.fall_silent();
        (parts.outbound, parts.outbound_from) = (Vec::new(), 0);
    }

    /// Leaves it for whoever takes it next, on any thread. Dropped, it ends in order. `None` where
    /// it cannot rest.
    pub fn rest(self) -> Option<RestingTls> {
        let mut parts = self.parts.into_inner();
        // An idle connection holds no buffer.
        parts.inbound.shrink_to_fit();
        let socket = self.socket.rest()?;
        let parts = Some((socket, parts));
        Some(RestingTls { parts })
    }
}

impl TlsParts {
    /// Opens what stands in a buffer from `begin` on; the text stands there then. Returns its
    /// length.
    fn open(&mut self, buffer: &mut Vec<u8>, begin: usize) -> usize {
        let opened = self.session.open(&mut buffer[begin..], &mut self.outbound);
        match opened.end {
            None if self.end.is_none() => {
                self.inbound
                    .extend_from_slice(&buffer[begin + opened.used..]);
            }
            None => {}
            Some(TlsInputEnd::Closed) => self.end = Some(InputEnd::Closed),
            Some(TlsInputEnd::GaveUp(number)) => self.end = Some(InputEnd::GaveUp(number)),
            Some(TlsInputEnd::Broken(why)) => self.end = Some(InputEnd::Broken(why)),
        }
        buffer.truncate(begin + opened.text);
        opened.text
    }

    fn seal(&mut self, bytes: &[u8]) -> io::Result<()> {
        for text in bytes.chunks(TEXT_BYTES_MAX) {
            let Some(key) = self.session.sealer(&mut self.outbound) else {
                return Err(PeerFault::other("too much was sent with one key").into());
            };
            let start = self.outbound.len();
            self.outbound.resize(start + text.len() + key.overhead(), 0);
            key.seal_text(TlsContentType::Data, text, &mut self.outbound[start..]);
        }
        self.accepted = bytes.len();
        Ok(())
    }

    /// Sends the sealed bytes that wait.
    fn poll_flush(&mut self, cx: &mut Context<'_>, socket: &Watched) -> Poll<io::Result<()>> {
        while self.outbound_from < self.outbound.len() {
            let rest = &self.outbound[self.outbound_from..];
            self.outbound_from += ready!(socket.poll_write(cx, rest))?;
        }
        // An idle connection holds no buffer.
        (self.outbound, self.outbound_from) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// Sends what reading has given to say. Whoever writes next sends what does not go now, and may
    /// be waiting for that already: nobody is woken in its place.
    fn try_flush(&mut self, socket: &Watched) {
        while self.outbound_from < self.outbound.len() {
            let rest = &self.outbound[self.outbound_from..];
            match send(socket.fd(), rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => self.outbound_from += count,
                Err(_) => return,
            }
        }
    }
}

impl InputEnd {
    fn told(self) -> io::Result<usize> {
        Err(match self {
            InputEnd::Closed => return Ok(0),
            //= rfc9112#9.8
            InputEnd::CutOff => io::Error::from(ErrorKind::UnexpectedEof),
            InputEnd::GaveUp(number) => PeerFault::of_alert(AlertDescription::from(number)).into(),
            InputEnd::Broken(why) => PeerFault::other(why).into(),
        })
    }
}

/// A connection that nobody uses, which any thread may take. Dropped, it ends in order.
pub struct RestingTls {
    /// `None` once it was taken.
    parts: Option<(RestingFd, Box<TlsParts>)>,
}

impl RestingTls {
    /// True when the thread of this reactor left it.
    pub fn is_of(&self, reactor: &Reactor) -> bool {
        let parts = self.parts.as_ref();
        parts.is_some_and(|(socket, _)| socket.is_of(reactor))
    }

    /// True when it was made on these terms.
    pub fn is_on(&self, terms: &PeerTerms) -> bool {
        let parts = self.parts.as_ref();
        parts.is_some_and(|(_, parts)| Arc::ptr_eq(&parts.config, &terms.http1))
    }

    /// Takes it over. `None` when its other end has ended it, or said something; tickets are
    /// nothing said. With `is_sure` the kernel is asked.
    pub fn take(mut self, reactor: &Reactor, is_sure: bool) -> Option<TlsStream> {
        let (socket, parts) = self.parts.take()?;
        let socket = socket.take(reactor).ok()?;
        if is_sure {
            socket.mark_readable();
        }
        let stream = TlsStream {
            socket,
            parts: RefCell::new(parts),
            is_resumed: false,
            is_h2: false,
        };
        let mut cx = Context::from_waker(Waker::noop());
        let is_open = stream
            .poll_read_behind(&mut cx, &mut Vec::new())
            .is_pending();
        is_open.then_some(stream)
    }
}

impl Drop for RestingTls {
    fn drop(&mut self) {
        let Some((socket, parts)) = &mut self.parts else {
            return;
        };
        let mut end = Vec::new();
        parts.session.push_end(&mut end);
        if let (Some(fd), true) = (socket.fd(), parts.outbound.is_empty()) {
            // What the socket does not take now, nobody waits for.
            let _ = send(fd, &end, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }
}

impl fmt::Debug for RestingTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.parts.as_ref().map(|(socket, _)| socket))
    }
}

/// The records of a handshake, and alerts, begin so.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [] | [21 | 22] | [21 | 22, 3, ..])
}

fn has_record(bytes: &[u8]) -> bool {
    record_len(bytes).is_some_and(|len| len <= bytes.len())
}

async fn write_all(socket: &Watched, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|cx| socket.poll_write(cx, bytes)).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

const _: fn() = || {
    // The rest of a connection goes from thread to thread.
    fn is_send<T: Send>() {}
    is_send::<RestingTls>();
};
