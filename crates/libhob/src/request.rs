//! A request that a program answers: its variables, its body, and the answer as it is made.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hob_ipc::file::FileRange;
use hob_ipc::limits::{FILE_WINDOW_BYTES, PAYLOAD_BYTES_MAX, RING_DATA_BYTES_MAX};
use hob_ipc::message::{FAILED, LAST, MessageHead, MessageKind, QUIET, TUNNEL};
use hob_ipc::request::{OwnedBlock, RequestBlock};
use hob_ipc::shm::Room;

use crate::connection::{Accepted, HobConnection};
use crate::failure::CallFailure;
use crate::link;
use crate::output::{self, UnsentOutput};
use crate::plain::Plain;
use crate::wait::{Until, WaitKind};

/// What the messages of one write take of a ring at most, without the head's fields.
const MESSAGES_BYTES_MAX: usize = RING_DATA_BYTES_MAX + 128;

/// Where requests come from.
#[derive(Clone, Debug)]
pub(crate) enum RequestSource {
    /// hob.
    Hob(Arc<HobConnection>),
    /// The environment: one request.
    Plain(Arc<Plain>),
}

/// A request.
#[derive(Debug)]
pub(crate) struct HobRequest {
    source: RequestSource,
    id: u32,
    block: OwnedBlock,
    status: u16,
    fields: Vec<u8>,
    trailers: Vec<u8>,
    is_head_sent: bool,
    is_tunnel: bool,
    /// Its direction of the tunnel has ended.
    has_ended_half: bool,
    /// It came with nothing to follow.
    is_without_body: bool,
    output: UnsentOutput,
    /// Bytes of a file that go before what is in `output`.
    file: Option<(OwnedFd, FileRange)>,
    /// The piece of body being read, and how much of it has been.
    piece: Vec<u8>,
    piece_at: usize,
    /// Read since the server was last told.
    uncredited: u32,
}

impl HobRequest {
    /// The next request; `None` when none will come any more.
    pub(crate) fn accept(
        source: &RequestSource,
        until: Until,
    ) -> Result<Option<HobRequest>, CallFailure> {
        let (id, block, is_without_body, buffers) = match source {
            RequestSource::Plain(plain) => match plain.begin()? {
                Some(block) => (0, block, false, Default::default()),
                None => return Ok(None),
            },
            RequestSource::Hob(connection) => {
                let credit = connection.hello.data_window_bytes;
                let mut locked = connection.lock();
                let begun =
                    locked.wait(until, None, WaitKind::Arrival, |inner| inner.begin(credit))?;
                match begun? {
                    Accepted::Request(id, block, is_without_body) => {
                        let inner = locked.inner();
                        let buffers = [inner.buffer(), inner.buffer()];
                        (id, block, is_without_body, buffers)
                    }
                    Accepted::NoMore => return Ok(None),
                }
            }
        };
        let [fields, collected] = buffers;
        Ok(Some(HobRequest {
            source: source.clone(),
            id,
            block,
            status: 0,
            fields,
            trailers: Vec::new(),
            is_head_sent: false,
            is_tunnel: false,
            has_ended_half: false,
            is_without_body,
            output: UnsentOutput::new(collected),
            file: None,
            piece: Vec::new(),
            piece_at: 0,
            uncredited: 0,
        }))
    }

    /// Its number among those that are not finished; 0 as plain CGI.
    pub(crate) fn number(&self) -> u32 {
        self.id
    }

    /// Its variables.
    pub(crate) fn block(&self) -> RequestBlock<'_> {
        self.block.block()
    }

    /// Reads body into `into`; 0 at the end.
    pub(crate) fn read(&mut self, into: &mut [u8], until: Until) -> Result<usize, CallFailure> {
        if into.is_empty() {
            return Ok(0);
        }
        let connection = match &self.source {
            RequestSource::Plain(plain) => return plain.read(into),
            RequestSource::Hob(connection) => connection.clone(),
        };
        if self.piece_at == self.piece.len() {
            let mut locked = connection.lock();
            let id = self.id;
            let next = locked.wait(until, None, WaitKind::Change, |inner| {
                let Some(active) = inner.request(id) else {
                    return Some(Err(CallFailure::Misuse));
                };
                match active.body.pop_front() {
                    Some(piece) => Some(Ok(Some(piece))),
                    None if active.is_body_over => Some(Ok(None)),
                    None if active.is_cancelled => Some(Err(CallFailure::Cancelled)),
                    None => None,
                }
            })?;
            self.piece_at = 0;
            match next? {
                Some(piece) => self.piece = piece,
                None => {
                    self.piece.clear();
                    return Ok(0);
                }
            }
        }
        let left = &self.piece[self.piece_at..];
        let count = left.len().min(into.len());
        into[..count].copy_from_slice(&left[..count]);
        self.piece_at += count;
        self.credit_body(&connection, count)?;
        Ok(count)
    }

    /// Lets the server send more body, in steps of half a window.
    fn credit_body(&mut self, connection: &HobConnection, count: usize) -> Result<(), CallFailure> {
        self.uncredited += count as u32;
        if self.uncredited < (connection.hello.body_window_bytes / 2).max(1) {
            return Ok(());
        }
        let mut locked = connection.lock();
        let id = self.id;
        if locked
            .inner()
            .request(id)
            .is_some_and(|active| !active.is_body_over)
        {
            let window = MessageHead::new(MessageKind::WorkerWindow, id).large(self.uncredited);
            locked.push(window, &[])?;
            locked.flush()?;
        }
        self.uncredited = 0;
        Ok(())
    }

    /// Sets the answer's status.
    pub(crate) fn set_status(&mut self, status: u16) -> Result<(), CallFailure> {
        if self.is_head_sent || !(200..=599).contains(&status) {
            return Err(CallFailure::Misuse);
        }
        self.status = status;
        Ok(())
    }

    /// Adds a field to the answer's head.
    pub(crate) fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), CallFailure> {
        if self.is_head_sent {
            return Err(CallFailure::Misuse);
        }
        append_field(&mut self.fields, name, value)
    }

    /// Adds a field that follows the body.
    pub(crate) fn add_trailer(&mut self, name: &[u8], value: &[u8]) -> Result<(), CallFailure> {
        append_field(&mut self.trailers, name, value)
    }

    /// Sets status and all fields at once, as lines.
    pub(crate) fn set_head(&mut self, status: u16, lines: &[u8]) -> Result<(), CallFailure> {
        if self.is_head_sent || !matches!(status, 0 | 101 | 200..=599) {
            return Err(CallFailure::Misuse);
        }
        check_lines(lines)?;
        self.status = status;
        self.fields.clear();
        self.fields.extend_from_slice(lines);
        Ok(())
    }

    /// The head leaves, and what follows is raw both ways.
    pub(crate) fn tunnel(&mut self, status: u16, lines: &[u8]) -> Result<(), CallFailure> {
        let RequestSource::Hob(connection) = &self.source else {
            return Err(CallFailure::Unsupported);
        };
        if !matches!(status, 0 | 101 | 200..=299) {
            return Err(CallFailure::Misuse);
        }
        let connection = connection.clone();
        self.set_head(status, lines)?;
        self.is_tunnel = true;
        if self.is_without_body {
            // From here on bytes come for a request that had no body.
            if let Some(active) = connection.lock().inner().request(self.id) {
                active.is_body_over = false;
            }
        }
        self.flush()
    }

    /// Nothing more is written to a tunnel, which may still be read from.
    pub(crate) fn half_close(&mut self) -> Result<(), CallFailure> {
        let RequestSource::Hob(connection) = &self.source else {
            return Err(CallFailure::Unsupported);
        };
        if !self.is_tunnel || self.has_ended_half {
            return Err(CallFailure::Misuse);
        }
        if !connection.hello.takes_half_close {
            return Err(CallFailure::Unsupported);
        }
        let connection = connection.clone();
        let mut locked = connection.lock();
        self.output.send(&mut locked, self.id, LAST | TUNNEL)?;
        self.has_ended_half = true;
        locked.flush()
    }

    /// Sends an interim answer.
    pub(crate) fn interim(&mut self, status: u16, lines: &[u8]) -> Result<(), CallFailure> {
        if self.is_head_sent || !matches!(status, 100 | 102..=199) {
            return Err(CallFailure::Misuse);
        }
        check_lines(lines)?;
        let RequestSource::Hob(connection) = &self.source else {
            return Err(CallFailure::Unsupported);
        };
        let mut locked = connection.lock();
        locked.push(
            MessageHead::new(MessageKind::Info, self.id).small(status),
            &[lines],
        )?;
        locked.flush()
    }

    /// Writes a part of the answer's body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CallFailure> {
        let connection = match &self.source {
            RequestSource::Plain(plain) => {
                self.is_head_sent = true;
                return plain.write(self.status, &self.fields, bytes);
            }
            RequestSource::Hob(connection) => connection.clone(),
        };
        self.may_write()?;
        self.send_file(&connection, 0)?;
        if self.output.keep(&connection, bytes) {
            return Ok(());
        }
        self.send_head(&connection, 0)?;
        let mut locked = connection.lock();
        self.output.write(&mut locked, &connection, self.id, bytes)
    }

    /// After its half-close nothing is written to a tunnel.
    fn may_write(&self) -> Result<(), CallFailure> {
        match self.has_ended_half {
            true => Err(CallFailure::Misuse),
            false => Ok(()),
        }
    }

    /// Writes as much as finds room now; then a flush does not wait either.
    pub(crate) fn write_some(&mut self, bytes: &[u8]) -> Result<usize, CallFailure> {
        self.may_write()?;
        let mut count = bytes.len().min(PAYLOAD_BYTES_MAX);
        if let RequestSource::Hob(connection) = &self.source {
            let connection = connection.clone();
            let mut locked = connection.lock();
            locked.take_in_all()?;
            let room = Room {
                payload_bytes: self.fields.len() + MESSAGES_BYTES_MAX,
                chunk: true,
            };
            let unsent = self.output.bytes();
            let may_send = locked.inner().may_send(self.id, unsent, room)?;
            if may_send == 0 {
                return Err(CallFailure::Again);
            }
            count = count.min(may_send).min(connection.piece_bytes_max);
        }
        self.write(&bytes[..count])?;
        Ok(count)
    }

    /// A place to write to directly.
    pub(crate) fn space(&mut self) -> Result<(*mut u8, usize), CallFailure> {
        let connection = match &self.source {
            RequestSource::Plain(_) => return Ok(self.output.plain_space()),
            RequestSource::Hob(connection) => connection.clone(),
        };
        self.may_write()?;
        self.send_file(&connection, 0)?;
        self.send_head(&connection, 0)?;
        let mut locked = connection.lock();
        self.output.space(&mut locked, &connection, self.id)
    }

    /// So much was written there.
    pub(crate) fn advance(&mut self, count: usize) -> Result<(), CallFailure> {
        match &self.source {
            RequestSource::Hob(connection) => self.output.advance(connection, count),
            RequestSource::Plain(plain) => {
                self.is_head_sent = true;
                let (status, fields) = (self.status, &self.fields);
                let write = |bytes: &[u8]| plain.write(status, fields, bytes);
                self.output.plain_advance(count, write)
            }
        }
    }

    /// Sends bytes of an open file without reading them, if the server takes that; false when they
    /// have to be written instead. It is kept until more comes or the answer ends, so that its
    /// message can say that it is last.
    pub(crate) fn pass_file(
        &mut self,
        file: BorrowedFd<'_>,
        range: FileRange,
    ) -> Result<bool, CallFailure> {
        let RequestSource::Hob(connection) = &self.source else {
            return Ok(false);
        };
        let connection = connection.clone();
        let has_window = connection.hello.data_window_bytes as usize >= FILE_WINDOW_BYTES;
        if !connection.hello.takes_files || !has_window || self.is_tunnel {
            return Ok(false);
        }
        // The program may close its own; without one more the bytes are copied.
        let Ok(file) = rustix::io::fcntl_dupfd_cloexec(file, 3) else {
            return Ok(false);
        };
        self.send_file(&connection, 0)?;
        self.send_head(&connection, 0)?;
        self.output.send(&mut connection.lock(), self.id, 0)?;
        self.file = Some((file, range));
        Ok(true)
    }

    /// Sends the file that was kept; false when there is none.
    fn send_file(&mut self, connection: &HobConnection, flags: u8) -> Result<bool, CallFailure> {
        let Some((file, range)) = self.file.take() else {
            return Ok(false);
        };
        let mut locked = connection.lock();
        output::take_credit(&mut locked, self.id, FILE_WINDOW_BYTES)?;
        let head = MessageHead::new(MessageKind::File, self.id).flags(flags);
        locked.push_file(head, range, file.as_fd())?;
        Ok(true)
    }

    /// Sends all that was written.
    pub(crate) fn flush(&mut self) -> Result<(), CallFailure> {
        let connection = match &self.source {
            RequestSource::Plain(plain) => {
                self.is_head_sent = true;
                return plain.flush(self.status, &self.fields);
            }
            RequestSource::Hob(connection) => connection.clone(),
        };
        self.send_file(&connection, 0)?;
        self.send_head(&connection, 0)?;
        let mut locked = connection.lock();
        self.output.send(&mut locked, self.id, 0)?;
        locked.flush()
    }

    /// The answer is whole.
    pub(crate) fn finish(mut self) -> Result<(), CallFailure> {
        let connection = match &self.source {
            RequestSource::Plain(plain) => return plain.flush(self.status, &self.fields),
            RequestSource::Hob(connection) => connection.clone(),
        };
        let result = self.send_rest(&connection);
        self.end(
            &connection,
            result,
            |id| MessageHead::new(MessageKind::End, id),
            &[],
        )
    }

    /// The program gives up on this request: the client has a 500 if no head was sent, else the
    /// answer breaks.
    pub(crate) fn fail(self, reason: &[u8]) -> Result<(), CallFailure> {
        let connection = match &self.source {
            RequestSource::Plain(plain) => return plain.fail(self.is_head_sent, reason),
            RequestSource::Hob(connection) => connection.clone(),
        };
        let reason = &reason[..reason.len().min(PAYLOAD_BYTES_MAX)];
        let failed = |id| MessageHead::new(MessageKind::End, id).flags(FAILED);
        self.end(&connection, Err(CallFailure::Cancelled), failed, reason)
            .or_else(|failure| match failure {
                CallFailure::Cancelled => Ok(()),
                failure => Err(failure),
            })
    }

    /// Head, body and trailers, as far as they have not been sent; the last says that it is last.
    fn send_rest(&mut self, connection: &HobConnection) -> Result<(), CallFailure> {
        if self.has_ended_half {
            let mut locked = connection.lock();
            locked.push(MessageHead::new(MessageKind::End, self.id), &[])?;
            return locked.flush();
        }
        let has_trailers = !self.trailers.is_empty();
        let last = if has_trailers { 0 } else { LAST };
        if self.send_file(connection, last)? && !has_trailers {
            return connection.lock().flush();
        }
        if !self.is_head_sent && self.output.is_empty() && !has_trailers {
            self.send_head(connection, LAST)?;
            return connection.lock().flush();
        }
        self.send_head(connection, 0)?;
        let mut locked = connection.lock();
        self.output.send(&mut locked, self.id, last)?;
        if has_trailers {
            locked.push(
                MessageHead::new(MessageKind::End, self.id),
                &[&self.trailers],
            )?;
        }
        locked.flush()
    }

    /// Ends the request on this side. After a failure the server has yet to be told.
    fn end(
        self,
        connection: &HobConnection,
        mut result: Result<(), CallFailure>,
        head: impl Fn(u32) -> MessageHead,
        payload: &[u8],
    ) -> Result<(), CallFailure> {
        let mut locked = connection.lock();
        if result == Err(CallFailure::Cancelled) {
            let told = locked
                .push(head(self.id), &[payload])
                .and_then(|()| locked.flush());
            result = told.and(result);
        }
        let inner = locked.inner();
        inner.end(self.id);
        inner.keep(self.block.into_bytes());
        inner.keep(self.fields);
        inner.keep(self.output.into_buffer());
        result
    }

    fn send_head(&mut self, connection: &HobConnection, flags: u8) -> Result<(), CallFailure> {
        if self.is_head_sent {
            return Ok(());
        }
        let tunnel = if self.is_tunnel { TUNNEL } else { 0 };
        let head = MessageHead::new(MessageKind::Head, self.id)
            .flags(flags | tunnel)
            .small(self.status);
        connection.lock().push(head, &[&self.fields])?;
        self.is_head_sent = true;
        Ok(())
    }

    /// True when the client has left.
    pub(crate) fn is_cancelled(&self) -> Result<bool, CallFailure> {
        let RequestSource::Hob(connection) = &self.source else {
            return Ok(false);
        };
        let mut locked = connection.lock();
        locked.take_in_all()?;
        let active = locked.inner().request(self.id);
        Ok(active.is_none_or(|active| active.is_cancelled))
    }

    /// Asks the server something about this request.
    pub(crate) fn callout(&self, text: &[u8], reply: Reply<'_>) -> Result<usize, CallFailure> {
        callout(&self.source, self.id, text, reply)
    }
}

/// Takes in what has come; [`CallFailure::Again`] when nothing has.
pub(crate) fn look(source: &RequestSource) -> Result<(), CallFailure> {
    match source {
        RequestSource::Hob(connection) => connection.lock().take_news(),
        RequestSource::Plain(_) => Err(CallFailure::Again),
    }
}

/// What becomes of a callout's reply.
pub(crate) enum Reply<'a> {
    /// It is not wanted.
    Unwanted,
    /// Its text goes here, as much of it as fits; what is returned is its whole length.
    Into(&'a mut [u8]),
}

/// Asks the server something.
pub(crate) fn callout(
    source: &RequestSource,
    request: u32,
    text: &[u8],
    reply: Reply<'_>,
) -> Result<usize, CallFailure> {
    if text.len() > PAYLOAD_BYTES_MAX {
        return Err(CallFailure::TooLong);
    }
    let connection = match source {
        RequestSource::Plain(plain) => return plain.callout(text),
        RequestSource::Hob(connection) => connection,
    };
    let mut locked = connection.lock();
    let Reply::Into(into) = reply else {
        locked.push(link::callout(request, 0, QUIET), &[text])?;
        locked.flush()?;
        return Ok(0);
    };
    let serial = locked.inner().expect_reply();
    locked.push(link::callout(request, serial, 0), &[text])?;
    let replied = locked.wait(Until::Ever, None, WaitKind::Change, |inner| {
        inner.reply(serial)
    });
    locked.inner().forget_reply(serial);
    let replied = replied?;
    let text = replied.get(4..).unwrap_or_default();
    let count = text.len().min(into.len());
    into[..count].copy_from_slice(&text[..count]);
    if replied.first() == Some(&b'2') {
        Ok(text.len())
    } else {
        Err(CallFailure::Refused)
    }
}

/// Appends `Name: value`, refusing what would be read as something else.
fn append_field(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), CallFailure> {
    let is_token = |byte: &u8| byte.is_ascii_graphic() && *byte != b':';
    let is_text = |byte: &u8| !matches!(byte, 0 | b'\r' | b'\n');
    if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(is_text) {
        return Err(CallFailure::Misuse);
    }
    if lines.len() + name.len() + value.len() + 3 > PAYLOAD_BYTES_MAX {
        return Err(CallFailure::TooLong);
    }
    for piece in [name, b": ", value, b"\n"] {
        lines.extend_from_slice(piece);
    }
    Ok(())
}

fn check_lines(lines: &[u8]) -> Result<(), CallFailure> {
    if lines.len() > PAYLOAD_BYTES_MAX {
        return Err(CallFailure::TooLong);
    }
    if lines.contains(&0) {
        return Err(CallFailure::Misuse);
    }
    Ok(())
}
