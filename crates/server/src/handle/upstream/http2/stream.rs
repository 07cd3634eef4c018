//! A request on a connection with others.

use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use hob_http::Bytes;
use hob_http::h2::client::RequestBlock;

use crate::handle::upstream::http2::connection::{
    ConnectionState, Http2Broken, SharedConnection, StreamPart, opened,
};

/// A stream. One task may read and one write. Dropped before its end, it is taken back.
pub(crate) struct Http2Stream {
    connection: Rc<SharedConnection>,
    id: u32,
    /// How often something had come over the connection when this began.
    reads: u64,
}

/// The member takes no more of a request.
#[derive(Debug)]
pub(crate) struct TakesNoMore;

impl Http2Stream {
    /// Sends a head, which `write` makes; with `ends` that is all. `None` where the connection has
    /// no room for it any more.
    pub(crate) fn open(
        connection: &Rc<SharedConnection>,
        (is_head_method, ends): (bool, bool),
        write: impl FnOnce(&mut RequestBlock<'_>),
    ) -> Option<Rc<Http2Stream>> {
        if !connection.may_open(false) {
            return None;
        }
        let id = {
            let mut state = connection.state.borrow_mut();
            let ConnectionState { core, out, .. } = &mut *state;
            core.open((is_head_method, ends), out, write)
        };
        Some(opened(connection, id))
    }

    pub(super) fn new(connection: &Rc<SharedConnection>, id: u32) -> Rc<Http2Stream> {
        Rc::new(Http2Stream {
            connection: Rc::clone(connection),
            id,
            reads: connection.reads(),
        })
    }

    /// What comes next.
    pub(crate) fn poll_part(&self, cx: &Context<'_>) -> Poll<Result<StreamPart, Http2Broken>> {
        self.connection.poll_part(self.id, cx)
    }

    /// So many bytes of the body were given on.
    pub(crate) fn taken(&self, bytes: usize) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { core, out, .. } = &mut *state;
        let is_told = core.taken(self.id, bytes, out);
        drop(state);
        if is_told {
            self.connection.wake_driver();
        }
    }

    /// Sends a piece of the body, as far as the member takes it; with `ends` the last one.
    pub(crate) async fn send(&self, mut piece: Bytes, ends: bool) -> Result<(), TakesNoMore> {
        if piece.is_empty() {
            if ends {
                self.push(&[], true);
            }
            return Ok(());
        }
        poll_fn(|cx| self.poll_send(cx, &mut piece, ends)).await
    }

    /// Sends as much as goes now.
    pub(crate) fn poll_send(
        &self,
        cx: &Context<'_>,
        piece: &mut Bytes,
        ends: bool,
    ) -> Poll<Result<(), TakesNoMore>> {
        while !piece.is_empty() {
            let room = match self.connection.poll_room(self.id, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Err(TakesNoMore)),
                Poll::Ready(Some(room)) => room,
            };
            let now = piece.split_to(room.min(piece.len()));
            self.push(&now, ends && piece.is_empty());
        }
        Poll::Ready(Ok(()))
    }

    fn push(&self, bytes: &[u8], ends: bool) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { core, out, .. } = &mut *state;
        core.push_data(self.id, bytes, ends, out);
        drop(state);
        self.connection.wake_driver();
    }

    /// Ends the request by trailers.
    pub(crate) fn end_with(&self, trailers: &[(Bytes, Bytes)]) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { core, out, .. } = &mut *state;
        let fields = trailers.iter().map(|(name, value)| (&name[..], &value[..]));
        core.push_trailers(self.id, fields, out);
        drop(state);
        self.connection.wake_driver();
    }

    /// It was waited for in vain.
    pub(crate) fn time_out(&self) {
        if self.connection.reads() == self.reads {
            self.connection.fall_silent();
        }
    }

    /// Breaks it off: nobody wants more of it, and no more is sent.
    pub(crate) fn cancel(&self) {
        self.connection.forget(self.id);
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for Http2Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Http2Stream({})", self.id)
    }
}
