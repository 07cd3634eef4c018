//! One HTTP/2 connection as a client has it, without a socket: bytes in, events out, bytes to be
//! sent in `out`. `receive` reads what the server sends.
//!
//! A stream's place in the table follows from its number, so that a frame finds it at once; a
//! number whose place is still taken is left out, which the protocol allows.

use std::collections::VecDeque;

use super::frame::{self, H2FrameHeader, PAYLOAD_BYTES_MAX, PREFACE, code, flag, kind, setting};
use super::hpack::{ClientHpackTable, HpackContext};
use super::request::{H2Requests, resize, write_path};
use crate::limits::HEAD_BYTES_MAX;
use crate::request::RequestProfile;
use crate::send::fields::Arriving;
use crate::send::kept::Kept;

/// The window a server has for everything, and for each answer, at the beginning.
pub(super) const WINDOW: u32 = (1 << 31) - 1;
/// A window that every side has without asking. //= rfc9113#6.9.2
const WINDOW_USUAL: u32 = 65_535;
/// Requests that a connection begins with before the server has said how many it takes: the first
/// need not wait for that, more might be too many.
const STREAM_COUNT_FIRST: usize = 1;
/// Bytes of bodies that are written out before they are sent.
const OUT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of acknowledgements that a server may have written without reading them.
const UNREAD_BYTES_MAX: usize = 4 << 20;
/// The last stream number of a connection, with room for what is left out.
const STREAM_MAX: u32 = (1 << 31) - (1 << 22);

/// What all sessions of a run read.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) requests: H2Requests,
    /// What else is to be known of each kind of request.
    pub(crate) asks: Vec<RequestProfile>,
    pub(crate) known: HpackContext,
}

/// A stream that is open.
#[derive(Debug, Clone)]
pub(super) struct H2ClientStream {
    /// 0: this place is free.
    pub(super) id: u32,
    pub(super) lane: u32,
    /// The kind of request.
    pub(super) kind: u32,
    pub(super) arriving: Arriving,
    /// Bytes of the request's body that are still to be sent.
    pub(super) left: u64,
    /// What the server lets us send of it.
    pub(super) window: i64,
    /// What the server has used of its own window since it was last told.
    pub(super) used: u32,
    /// After which share of its answer it is broken off; none where it is not.
    pub(super) break_at: Option<f32>,
}

/// How requests are written on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// The next one puts what repeats into the server's table.
    First,
    Again,
    Plain,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct H2ClientSession {
    /// A frame that has not come whole.
    pub(super) kept: Vec<u8>,
    /// What is left of the payload of a DATA frame, and the frame's stream and flags.
    pub(super) data: Option<(H2FrameHeader, usize, usize)>,
    /// A block of fields whose end has not come.
    pub(super) block: Option<(H2FrameHeader, Vec<u8>)>,
    pub(super) table: ClientHpackTable,
    /// What the server has used of the connection's window since it was last told.
    pub(super) used: u32,
    pub(super) has_settings: bool,
    out: Vec<u8>,
    out_sent: usize,
    pub(super) window: i64,
    pub(super) window_new: i64,
    pub(super) payload_bytes_max: usize,
    pub(super) streams: Vec<H2ClientStream>,
    /// Streams with a body to send, in turn.
    bodies: VecDeque<u32>,
    pub(super) next_id: u32,
    pub(super) active: usize,
    /// Requests at once: what is wanted, and what the server allows.
    wanted: usize,
    pub(super) allowed: Option<usize>,
    packing: Packing,
    resized: Option<usize>,
    /// The server takes no new requests here.
    pub(crate) is_going_away: bool,
}

const FREE: H2ClientStream = H2ClientStream {
    id: 0,
    lane: 0,
    kind: 0,
    arriving: Arriving::NEW,
    left: 0,
    window: 0,
    used: 0,
    break_at: None,
};

impl H2ClientStream {
    /// Has so much of the answer come that it is broken off?
    pub(super) fn is_due_to_break(&self) -> bool {
        self.break_at
            .is_some_and(|share| self.arriving.has_come(share))
    }
}

impl H2ClientSession {
    /// A new connection for so many requests at once; its first frames are there to be sent.
    pub(crate) fn new(wanted: usize) -> H2ClientSession {
        let mut session = H2ClientSession {
            kept: Vec::new(),
            data: None,
            block: None,
            table: ClientHpackTable::default(),
            used: 0,
            has_settings: false,
            out: PREFACE.to_vec(),
            out_sent: 0,
            window: i64::from(WINDOW_USUAL),
            window_new: i64::from(WINDOW_USUAL),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            streams: vec![FREE; (2 * wanted).next_power_of_two()],
            bodies: VecDeque::new(),
            next_id: 1,
            active: 0,
            wanted,
            allowed: None,
            packing: Packing::First,
            resized: None,
            is_going_away: false,
        };
        let mut settings = Vec::new();
        for (name, value) in [
            (setting::PUSH, 0),
            (setting::WINDOW, WINDOW),
            (setting::HEAD_BYTES, HEAD_BYTES_MAX as u32),
        ] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(kind::SETTINGS, 0, 0, &settings, &mut session.out);
        session.give_window(0, WINDOW - WINDOW_USUAL);
        session
    }

    /// Can another request begin?
    pub(crate) fn has_room(&self) -> bool {
        let most = match self.allowed {
            _ if !self.has_settings => STREAM_COUNT_FIRST,
            Some(allowed) => self.wanted.min(allowed),
            None => self.wanted,
        };
        !self.is_going_away && self.active < most
    }

    /// Requests that have no answer yet.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// The server takes no new requests, or there are no numbers for them left.
    pub(crate) fn is_going_away(&self) -> bool {
        self.is_going_away
    }

    /// The lanes whose requests have no answer yet.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = u32> {
        let open = self.streams.iter().filter(|stream| stream.id != 0);
        open.map(|stream| stream.lane)
    }

    /// Takes a stream for a request.
    fn open(&mut self, lane: u32, (kind, body_bytes): (u32, u64), arriving: Arriving) -> u32 {
        debug_assert!(self.has_room());
        let mask = self.streams.len() - 1;
        while self.streams[(self.next_id as usize / 2) & mask].id != 0 {
            self.next_id += 2;
        }
        let id = self.next_id;
        self.next_id += 2;
        if self.next_id > STREAM_MAX {
            self.is_going_away = true;
        }
        self.active += 1;
        self.streams[(id as usize / 2) & mask] = H2ClientStream {
            id,
            lane,
            kind,
            left: body_bytes,
            window: self.window_new,
            arriving,
            ..FREE
        };
        id
    }

    /// Begins a request of its own: a block of fields that uses no table, and no body.
    pub(crate) fn start_alone(&mut self, lane: u32, block: &[u8], kept: Kept) {
        let id = self.open(lane, (0, 0), Arriving::keeping(kept));
        match self.resized.take() {
            None => self.put_block(id, flag::END_STREAM, block),
            Some(table_bytes) => {
                let mut resized = Vec::new();
                resize(table_bytes, &mut resized);
                resized.extend_from_slice(block);
                self.put_block(id, flag::END_STREAM, &resized);
            }
        }
    }

    /// Begins a request of a kind; a path is of one that had none yet.
    pub(crate) fn start(&mut self, lane: u32, kind: usize, path: Option<&[u8]>, common: &Common) {
        let ask = &common.asks[kind];
        let arriving = Arriving::new(ask.is_hashed);
        let id = self.open(lane, (kind as u32, ask.body.len() as u64), arriving);
        let packed = &common.requests.packed[kind];
        let block = match self.packing {
            Packing::First => {
                self.packing = Packing::Again;
                &packed.first
            }
            Packing::Again => &packed.again,
            Packing::Plain => &packed.plain,
        };
        let ends = if ask.body.is_empty() {
            flag::END_STREAM
        } else {
            0
        };
        match (self.resized.take(), path) {
            (None, None) => self.put_block(id, ends, &block.bytes),
            (resized, path) => {
                let (mut own, mut own_path) = (Vec::new(), Vec::new());
                if let Some(table_bytes) = resized {
                    resize(table_bytes, &mut own);
                }
                if let Some(path) = path {
                    write_path(path, &mut own_path);
                }
                block.write_to(&own_path, &mut own);
                self.put_block(id, ends, &own);
            }
        }
        if !ask.body.is_empty() {
            self.bodies.push_back(id);
            self.put_bodies(common);
        }
    }

    /// Begins as many requests as are wanted, whatever the server allows.
    pub(super) fn begin_all(&mut self, common: &Common) {
        self.has_settings = true;
        for lane in 0..self.wanted as u32 {
            self.start(lane, 0, None, common);
        }
        self.has_settings = false;
    }

    fn put_block(&mut self, id: u32, ends: u8, block: &[u8]) {
        if block.len() <= self.payload_bytes_max {
            return frame::write(
                kind::HEADERS,
                ends | flag::END_HEADERS,
                id,
                block,
                &mut self.out,
            );
        }
        let mut pieces = block.chunks(self.payload_bytes_max).peekable();
        let (mut kind, mut flags) = (kind::HEADERS, ends);
        while let Some(piece) = pieces.next() {
            let last = if pieces.peek().is_none() {
                flag::END_HEADERS
            } else {
                0
            };
            frame::write(kind, flags | last, id, piece, &mut self.out);
            (kind, flags) = (kind::CONTINUATION, 0);
        }
    }

    /// Writes as much of the bodies as windows and room allow.
    fn put_bodies(&mut self, common: &Common) {
        let mut without_room = 0;
        while without_room < self.bodies.len() && self.out.len() < OUT_BYTES_MAX && self.window > 0
        {
            let Some(id) = self.bodies.pop_front() else {
                return;
            };
            let Some(at) = self.place(id) else {
                continue;
            };
            let stream = &mut self.streams[at];
            let body = &common.asks[stream.kind as usize].body;
            let most = (self.payload_bytes_max as i64)
                .min(self.window)
                .min(stream.window);
            if most <= 0 {
                self.bodies.push_back(id);
                without_room += 1;
                continue;
            }
            let len = stream.left.min(most as u64) as usize;
            let from = body.len() - stream.left as usize;
            stream.left -= len as u64;
            stream.window -= len as i64;
            self.window -= len as i64;
            let flags = if stream.left == 0 {
                flag::END_STREAM
            } else {
                0
            };
            frame::write(
                kind::DATA,
                flags,
                id,
                &body[from..from + len],
                &mut self.out,
            );
            if flags == 0 {
                self.bodies.push_back(id);
            }
            without_room = 0;
        }
    }

    /// What is to be sent.
    pub(crate) fn unsent(&mut self, common: &Common) -> &[u8] {
        if self.out_sent == self.out.len() {
            self.out.clear();
            self.out_sent = 0;
            if !self.bodies.is_empty() {
                self.put_bodies(common);
            }
        }
        &self.out[self.out_sent..]
    }

    /// So many bytes of it were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        self.out_sent += count;
    }

    /// The server reads nothing, and makes us write.
    pub(super) fn is_flooded(&self) -> bool {
        self.out.len() > UNREAD_BYTES_MAX + OUT_BYTES_MAX
    }

    /// Has the head of a lane's answer come?
    pub(crate) fn has_head(&self, lane: u32) -> bool {
        let mut open = self.streams.iter();
        open.any(|stream| stream.id != 0 && stream.lane == lane && stream.arriving.has_head())
    }

    /// Status and what is kept so far of a lane's answer.
    pub(crate) fn coming(&self, lane: u32) -> Option<(u16, &Kept)> {
        let mut open = self.streams.iter().filter(|stream| stream.id != 0);
        open.find(|stream| stream.lane == lane)?.arriving.coming()
    }

    /// The request of a lane is to be broken off after a share of its answer.
    pub(crate) fn break_off_at(&mut self, lane: u32, share: f32) {
        let is_it = |stream: &&mut H2ClientStream| stream.id != 0 && stream.lane == lane;
        if let Some(stream) = self.streams.iter_mut().find(is_it) {
            stream.break_at = Some(share);
        }
    }

    /// Gives a request up, of whatever stream its lane has.
    pub(crate) fn cancel(&mut self, lane: u32) {
        let is_it = |stream: &H2ClientStream| stream.id != 0 && stream.lane == lane;
        if let Some(at) = self.streams.iter().position(is_it) {
            self.reset(self.streams[at].id, code::CANCEL);
            self.free(at);
        }
    }

    /// Where a stream is, if it is open.
    pub(super) fn place(&self, id: u32) -> Option<usize> {
        let at = (id as usize / 2) & (self.streams.len() - 1);
        (self.streams[at].id == id && id != 0).then_some(at)
    }

    pub(super) fn free(&mut self, at: usize) {
        self.streams[at].id = 0;
        self.active -= 1;
    }

    pub(super) fn reset(&mut self, id: u32, code: u32) {
        frame::write(kind::RST_STREAM, 0, id, &code.to_be_bytes(), &mut self.out);
    }

    pub(super) fn give_window(&mut self, id: u32, more: u32) {
        frame::write(
            kind::WINDOW_UPDATE,
            0,
            id,
            &more.to_be_bytes(),
            &mut self.out,
        );
    }

    pub(super) fn acknowledge(&mut self, kind: u8, payload: &[u8]) {
        frame::write(kind, flag::ACK, 0, payload, &mut self.out);
    }

    /// Says why the connection ends.
    pub(crate) fn go_away(&mut self) {
        let payload = [0u32.to_be_bytes(), code::PROTOCOL.to_be_bytes()].concat();
        frame::write(kind::GOAWAY, 0, 0, &payload, &mut self.out);
    }

    /// The server has a table of another size for our fields.
    pub(super) fn resize_table(&mut self, table_bytes: usize, common: &Common) {
        //= rfc7541#4.2: a smaller table is told of before anything else is written.
        if table_bytes >= common.requests.table_bytes {
            self.resized = Some(table_bytes.min(4096));
        } else {
            self.resized = Some(0);
            self.packing = Packing::Plain;
        }
    }
}
