//! Requests to frames: heads, pieces of body, ends; and what was taken of answers.

use crate::fields_coding::hpack::{Encoder, Stored, encode_field};
use crate::h2::answer::{begin_block, end_block};
use crate::h2::client::conn::Http2Client;
use crate::h2::client::stream::{AnswerStage, ClientStream};
use crate::h2::frame::{self, Http2ErrorCode, PAYLOAD_BYTES, WINDOW_BYTES};
use crate::limits::{H2_STREAM_WINDOW_BYTES_MAX, H2_WINDOW_GROWTH_BYTES_MAX};

/// The head of a request while it is written: pseudo-header fields first.
pub struct RequestBlock<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
}

impl RequestBlock<'_> {
    /// What is asked for. `protocol` is what an extended CONNECT wants to speak (RFC 8441).
    //= rfc9113#8.3.1
    pub fn target(
        &mut self,
        (method, protocol): (&[u8], Option<&[u8]>),
        is_https: bool,
        (authority, path): (&[u8], &[u8]),
    ) {
        self.encoder.begin_request(method, is_https, path, self.out);
        self.encoder.repeated(b":authority", authority, self.out);
        if let Some(protocol) = protocol {
            encode_field(b":protocol", protocol, Stored::AsText, self.out);
        }
    }

    /// A field, in any case. Those that speak of a connection are left out.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        match Stored::of_request(name, value) {
            Stored::InTable => self.encoder.repeated(name, value, self.out),
            stored => encode_field(name, value, stored, self.out),
        }
    }
}

impl Http2Client {
    /// Opens a stream, which [`Http2Client::may_open`] must allow, with the head that `write`
    /// makes. With `ends` that is all of the request. Returns the stream.
    pub fn open(
        &mut self,
        (is_head_method, ends): (bool, bool),
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut RequestBlock<'_>),
    ) -> u32 {
        let id = self.next_stream;
        self.next_stream += 2;
        let mut stream = ClientStream::new(id, self.peer_window_bytes);
        stream.is_head_method = is_head_method;
        stream.is_sent = ends;
        self.streams.push(stream);
        let flags = if ends { frame::END_STREAM } else { 0 };
        let at = begin_block(id, flags, out);
        write(&mut RequestBlock {
            encoder: &mut self.encoder,
            out,
        });
        end_block(at, out);
        id
    }

    /// How many bytes may be sent on a stream in one frame now. `None` where nobody takes any: it
    /// is over.
    pub fn room(&mut self, id: u32) -> Option<usize> {
        let window = self.send_window;
        let stream = self.find(id).filter(|stream| !stream.is_sent)?;
        let room = stream
            .send_window
            .min(window)
            .clamp(0, PAYLOAD_BYTES as i64);
        Some(room as usize)
    }

    /// Appends a piece of a body, no more than [`Http2Client::room`]; nothing where the stream is
    /// over.
    pub fn push_data(&mut self, id: u32, bytes: &[u8], ends: bool, out: &mut Vec<u8>) {
        let len = bytes.len() as i64;
        let Some(stream) = self.find(id).filter(|stream| !stream.is_sent) else {
            return;
        };
        debug_assert!(len <= stream.send_window.max(0), "the window has room");
        stream.send_window -= len;
        stream.is_sent = ends;
        let is_over = ends && stream.receiving == AnswerStage::Ended;
        self.send_window -= len;
        let flags = if ends { frame::END_STREAM } else { 0 };
        frame::push_header(bytes.len(), frame::DATA, flags, id, out);
        out.extend_from_slice(bytes);
        if is_over {
            self.remove(id);
        }
    }

    /// Ends a request by trailers.
    pub fn push_trailers<'f>(
        &mut self,
        id: u32,
        trailers: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        out: &mut Vec<u8>,
    ) {
        let Some(stream) = self.find(id).filter(|stream| !stream.is_sent) else {
            return;
        };
        stream.is_sent = true;
        let is_over = stream.receiving == AnswerStage::Ended;
        let at = begin_block(id, frame::END_STREAM, out);
        self.encoder.begin_bare(out);
        for (name, value) in trailers {
            encode_field(name, value, Stored::AsText, out);
        }
        end_block(at, out);
        if is_over {
            self.remove(id);
        }
    }

    /// So many bytes of an answer were taken: the other side may send as many again. The window
    /// doubles where all that came was taken: over a long path no more than a window comes in a
    /// round trip. True when there is something to send.
    //= rfc9113#6.9.1
    pub fn taken(&mut self, id: u32, bytes: usize, out: &mut Vec<u8>) -> bool {
        let grown = |stream: &ClientStream| stream.window_bytes - WINDOW_BYTES;
        let growth_left = H2_WINDOW_GROWTH_BYTES_MAX - self.streams.iter().map(grown).sum::<i64>();
        let Some(stream) = self.find(id) else {
            return false;
        };
        stream.held_bytes -= bytes as i64;
        let AnswerStage::Body(left) = stream.receiving else {
            return false;
        };
        let free =
            |stream: &ClientStream| stream.window_bytes - stream.held_bytes - stream.receive_window;
        // Little at a time is not worth a frame, and what is announced and fits is on its way.
        let comes_anyway = left.is_some_and(|left| left as i64 <= stream.receive_window);
        if comes_anyway || free(stream) < stream.window_bytes / 2 {
            return false;
        }
        if stream.held_bytes == 0 {
            let most = H2_STREAM_WINDOW_BYTES_MAX - stream.window_bytes;
            stream.window_bytes += stream.window_bytes.min(most).min(growth_left).max(0);
        }
        let more = free(stream);
        stream.receive_window += more;
        frame::push_window_update(id, more as u32, out);
        true
    }

    /// Nobody wants the rest of a stream. True when there is something to send.
    pub fn cancel(&mut self, id: u32, out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        self.reset(id, Http2ErrorCode::Cancel, out);
        out.len() > begin
    }

    /// Says that the connection ends, in order.
    //= rfc9113#6.8
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        self.is_leaving = true;
        frame::push_goaway(0, Http2ErrorCode::NoError, "", out);
    }
}
