//! The bytes of a connection to a member: as they are, or over TLS. Clear ones cost nothing more
//! than the socket does.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::task::{Context, Poll, ready};

use hob_http::reactor::RestingFd;
use hob_http::tls::peer::{PeerTerms, RestingTls, TlsStream};
use hob_http::{Reactor, SplicePipe, Watched};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, connect_unspec, getpeername, recv, shutdown};
use rustix::pipe::{SpliceFlags, splice};

/// A connection's bytes. One task may wait to read and one to write.
pub(crate) enum MemberStream {
    Clear(Watched),
    Tls(TlsStream),
}

impl MemberStream {
    fn socket(&self) -> &Watched {
        match self {
            MemberStream::Clear(socket) => socket,
            MemberStream::Tls(stream) => stream.socket(),
        }
    }

    /// HTTP/2 was agreed on.
    pub(crate) fn is_h2(&self) -> bool {
        matches!(self, MemberStream::Tls(stream) if stream.is_h2())
    }

    /// It is clear and to be so, or was made on these terms.
    pub(crate) fn is_on(&self, terms: Option<&PeerTerms>) -> bool {
        match (self, terms) {
            (MemberStream::Clear(_), None) => true,
            (MemberStream::Tls(stream), Some(terms)) => stream.is_on(terms),
            _ => false,
        }
    }

    /// An end of it that is none of TLS may be anybody's.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self, MemberStream::Tls(_))
    }

    /// Where it leads, over TCP.
    pub(crate) fn place(&self) -> Option<SocketAddr> {
        getpeername(self.socket().fd()).ok()??.try_into().ok()
    }

    /// Ready while reading is worth a try.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            MemberStream::Clear(socket) => socket.poll_readable(cx),
            MemberStream::Tls(stream) => stream.poll_readable(cx),
        }
    }

    /// The first look would be in vain.
    pub(crate) fn clear_readable(&self) {
        self.socket().clear_readable();
    }

    /// The next look is not in vain.
    pub(crate) fn mark_readable(&self) {
        self.socket().mark_readable();
    }

    /// Reads into the capacity that a buffer has behind its bytes. Zero bytes are the end.
    pub(crate) fn poll_read_behind(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        match self {
            MemberStream::Clear(socket) => socket.poll_read_behind(cx, buffer),
            MemberStream::Tls(stream) => stream.poll_read_behind(cx, buffer),
        }
    }

    /// True where its bytes can be moved into pipes, and out of them.
    pub(crate) fn has_pipes(&self) -> bool {
        matches!(self, MemberStream::Clear(_))
    }

    /// True where nothing has come that nobody has read, and no end. The kernel is asked.
    pub(crate) fn is_quiet(&self) -> bool {
        is_open(self.socket())
    }

    /// Moves bytes into an empty pipe, of clear ones alone. Zero bytes are the end.
    pub(crate) fn poll_fill(
        &self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        let MemberStream::Clear(socket) = self else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        loop {
            ready!(socket.poll_readable(cx));
            match splice(socket.fd(), None, pipe, None, max, flags) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(Errno::AGAIN) => socket.clear_readable(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Moves all that is in a pipe to the other side, of clear ones alone.
    pub(crate) fn poll_drain(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut SplicePipe,
    ) -> Poll<io::Result<()>> {
        let MemberStream::Clear(socket) = self else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        while !pipe.is_empty() {
            ready!(socket.poll_writable(cx));
            match pipe.drain_into(socket.fd()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => socket.clear_writable(),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes a part of what there is. Where it has to wait, it is to be called again with the same
    /// bytes.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            MemberStream::Clear(socket) => socket.poll_write(cx, bytes),
            MemberStream::Tls(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Says that nothing more is sent; what the other side sends still comes.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            MemberStream::Clear(socket) => {
                Poll::Ready(shutdown(socket.fd(), Shutdown::Write).map_err(io::Error::from))
            }
            MemberStream::Tls(stream) => stream.poll_end(cx),
        }
    }

    /// Breaks it off, for whoever still sends a request's body, too. The other side hears of it
    /// also where it does not read.
    pub(crate) fn hang_up(&self) {
        if let MemberStream::Tls(stream) = self {
            stream.fall_silent();
        }
        // By a reset: an end could be taken for that of a body.
        let fd = self.socket().fd();
        if connect_unspec(fd).is_err() {
            let _ = shutdown(fd, Shutdown::Both);
        }
    }

    /// Ends it in order.
    pub(crate) fn close(self) {
        if let MemberStream::Tls(stream) = self {
            drop(stream.rest());
        }
    }

    /// Leaves it for whoever takes it next. Dropped then, it ends in order. `None` where it cannot
    /// rest.
    pub(crate) fn rest(self) -> Option<RestingStream> {
        match self {
            MemberStream::Clear(socket) => socket.rest().map(RestingStream::Clear),
            MemberStream::Tls(stream) => stream.rest().map(RestingStream::Tls),
        }
    }
}

/// A connection that nobody uses, which any thread may take.
#[derive(Debug)]
pub(crate) enum RestingStream {
    Clear(RestingFd),
    Tls(RestingTls),
}

impl RestingStream {
    /// True when the thread of this reactor left it.
    pub(crate) fn is_of(&self, reactor: &Reactor) -> bool {
        match self {
            RestingStream::Clear(socket) => socket.is_of(reactor),
            RestingStream::Tls(stream) => stream.is_of(reactor),
        }
    }

    /// Takes it over, unless the other side has closed it, or TLS is spoken on other terms now.
    /// With `is_sure` the kernel is asked.
    pub(crate) fn take(
        self,
        reactor: &Reactor,
        is_sure: bool,
        terms: Option<&PeerTerms>,
    ) -> Option<MemberStream> {
        match self {
            RestingStream::Clear(socket) => {
                let socket = socket.take(reactor).ok()?;
                let is_open = !is_sure && !socket.is_readable() || is_open(&socket);
                is_open.then_some(MemberStream::Clear(socket))
            }
            RestingStream::Tls(stream) => {
                let stream = terms.filter(|terms| stream.is_on(terms)).map(|_| stream)?;
                stream.take(reactor, is_sure).map(MemberStream::Tls)
            }
        }
    }
}

/// Whether a connection over which nothing is to come is open: what comes is its end.
fn is_open(socket: &Watched) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(socket.fd(), &mut [0_u8; 1], flags), Err(Errno::AGAIN))
}
