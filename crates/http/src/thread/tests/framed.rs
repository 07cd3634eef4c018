//! A client that speaks HTTP/2.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use super::client::Client;
use crate::fields_coding::hpack::{HpackDecoder, Stored, encode_field};
use crate::h2::PREFACE;
use crate::h2::frame::{self, HEADER_BYTES, Header};

pub(super) struct Framed {
    pub(super) line: Client,
    carry: Vec<u8>,
    decoder: HpackDecoder,
    next: u32,
    got: HashMap<u32, Got>,
    /// What may be sent, on all streams and on each.
    room: i64,
    rooms: HashMap<u32, i64>,
    /// It makes room again for what it has read.
    pub(super) takes: bool,
    /// The codes of the GOAWAY frames that have come, with the last stream.
    pub(super) goaways: Vec<(u32, u32)>,
    pub(super) pongs: usize,
}

/// What has come on a stream.
#[derive(Debug, Default)]
pub(super) struct Got {
    /// Heads, interim ones too, a line each: `:status` and fields, without the date.
    pub(super) heads: Vec<String>,
    pub(super) body: Vec<u8>,
    /// How many bytes each DATA frame had.
    pub(super) pieces: Vec<usize>,
    pub(super) is_ended: bool,
    pub(super) reset: Option<u32>,
}

impl Got {
    pub(super) fn status(&self) -> u16 {
        self.heads[0][8..11].parse().unwrap()
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Framed {
    /// One that has sent its preface and has read nothing.
    pub(super) fn connect(address: SocketAddr) -> Framed {
        Framed::connect_with(address, &[])
    }

    pub(super) fn connect_with(address: SocketAddr, settings: &[(u16, u32)]) -> Framed {
        Framed::begin(Client::connect(address), settings)
    }

    /// The same over a connection that is there.
    pub(super) fn begin(line: Client, settings: &[(u16, u32)]) -> Framed {
        let mut client = Framed {
            line,
            carry: Vec::new(),
            decoder: HpackDecoder::default(),
            next: 1,
            got: HashMap::new(),
            room: frame::WINDOW_BYTES,
            rooms: HashMap::new(),
            takes: true,
            goaways: Vec::new(),
            pongs: 0,
        };
        let mut out = PREFACE.to_vec();
        frame::push_header(settings.len() * 6, frame::SETTINGS, 0, 0, &mut out);
        for (id, value) in settings {
            frame::push_setting(*id, *value, &mut out);
        }
        client.write(&out);
        client
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.line.write(bytes).unwrap();
    }

    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        frame::push_header(payload.len(), kind, flags, stream, &mut out);
        out.extend_from_slice(payload);
        self.write(&out);
    }

    /// The bytes of a request's head, and its stream.
    pub(super) fn head(&mut self, ends: bool, fields: &[(&str, &str)]) -> (u32, Vec<u8>) {
        let id = self.next;
        self.next += 2;
        self.rooms.insert(id, frame::WINDOW_BYTES);
        self.got.insert(id, Got::default());
        let mut block = Vec::new();
        for (name, value) in fields {
            encode_field(
                name.as_bytes(),
                value.as_bytes(),
                Stored::AsText,
                &mut block,
            );
        }
        let flags = frame::END_HEADERS | if ends { frame::END_STREAM } else { 0 };
        let mut out = Vec::new();
        frame::push_header(block.len(), frame::HEADERS, flags, id, &mut out);
        out.extend_from_slice(&block);
        (id, out)
    }

    pub(super) fn open(
        &mut self,
        method: &str,
        target: &str,
        ends: bool,
        more: &[(&str, &str)],
    ) -> u32 {
        let usual = [
            (":method", method),
            (":scheme", "http"),
            (":path", target),
            (":authority", "h"),
        ];
        let (id, bytes) = self.head(ends, &[&usual, more].concat());
        self.write(&bytes);
        id
    }

    pub(super) fn get(&mut self, target: &str) -> u32 {
        self.open("GET", target, true, &[])
    }

    pub(super) fn post(&mut self, target: &str) -> u32 {
        self.open("POST", target, false, &[])
    }

    /// Sends a request and reads its answer.
    pub(super) fn ask(&mut self, target: &str) -> Got {
        let id = self.get(target);
        self.answer(id)
    }

    /// Sends body as the server makes room for it.
    pub(super) fn send(&mut self, id: u32, mut body: &[u8], ends: bool) {
        while !body.is_empty() || ends {
            let room = self.room.min(self.rooms[&id]).min(16_384);
            if room <= 0 && !body.is_empty() {
                if self.got[&id].reset.is_some() {
                    return;
                }
                self.read_frame();
                continue;
            }
            let (piece, rest) = body.split_at(body.len().min(room.max(0) as usize));
            body = rest;
            self.room -= piece.len() as i64;
            *self.rooms.get_mut(&id).unwrap() -= piece.len() as i64;
            let is_last = ends && body.is_empty();
            let flags = if is_last { frame::END_STREAM } else { 0 };
            self.frame(frame::DATA, flags, id, piece);
            if is_last {
                return;
            }
        }
    }

    pub(super) fn reset(&mut self, id: u32) {
        self.frame(frame::RST_STREAM, 0, id, &[0, 0, 0, 8]);
    }

    /// Reads until the stream has ended.
    pub(super) fn answer(&mut self, id: u32) -> Got {
        while !self.got[&id].is_ended && self.got[&id].reset.is_none() {
            self.read_frame();
        }
        self.got.remove(&id).unwrap()
    }

    /// Reads until so many bytes of the stream's body have come.
    pub(super) fn wait_for_body(&mut self, id: u32, len: usize) {
        while self.got[&id].body.len() < len {
            self.read_frame();
        }
    }

    /// Reads until so many heads of the stream have come; returns the last.
    pub(super) fn wait_for_head(&mut self, id: u32, count: usize) -> String {
        while self.got[&id].heads.len() < count {
            self.read_frame();
        }
        self.got[&id].heads[count - 1].clone()
    }

    /// Everything sent before this has been looked at when it returns.
    pub(super) fn ping(&mut self) {
        let before = self.pongs;
        self.frame(frame::PING, 0, 0, b"12345678");
        while self.pongs == before {
            self.read_frame();
        }
    }

    /// Reads until the server ends its side.
    pub(super) fn rest(&mut self) {
        while self.more() > 0 {
            while self.take_frame() {}
        }
    }

    pub(super) fn read_frame(&mut self) {
        while !self.take_frame() {
            assert!(self.more() > 0, "a frame comes");
        }
    }

    fn more(&mut self) -> usize {
        let mut buffer = [0; 64 * 1024];
        let count = self.line.read(&mut buffer).expect("bytes come in time");
        self.carry.extend_from_slice(&buffer[..count]);
        count
    }

    fn take_frame(&mut self) -> bool {
        let Some(header) = Header::read(&self.carry) else {
            return false;
        };
        if self.carry.len() < HEADER_BYTES + header.len {
            return false;
        }
        let payload: Vec<u8> = self
            .carry
            .drain(..HEADER_BYTES + header.len)
            .skip(HEADER_BYTES)
            .collect();
        self.take(header, &payload);
        true
    }

    fn take(&mut self, header: Header, payload: &[u8]) {
        let id = header.stream;
        let number = frame::number(payload);
        match header.kind {
            frame::HEADERS => {
                let line = self.read_head(payload);
                let got = self.got.entry(id).or_default();
                got.heads.push(line);
                got.is_ended |= header.has(frame::END_STREAM);
            }
            frame::DATA => {
                let got = self.got.entry(id).or_default();
                got.body.extend_from_slice(payload);
                got.pieces.push(payload.len());
                got.is_ended |= header.has(frame::END_STREAM);
                let is_ended = got.is_ended;
                if self.takes && !payload.is_empty() {
                    let mut out = Vec::new();
                    frame::push_window_update(0, payload.len() as u32, &mut out);
                    if !is_ended {
                        frame::push_window_update(id, payload.len() as u32, &mut out);
                    }
                    // The server may have closed.
                    let _ = self.line.write(&out);
                }
            }
            frame::RST_STREAM => self.got.entry(id).or_default().reset = Some(number),
            frame::SETTINGS if header.has(frame::ACK) => {}
            frame::SETTINGS => {
                let _ = self
                    .line
                    .write(&frame::header(0, frame::SETTINGS, frame::ACK, 0));
            }
            frame::WINDOW_UPDATE if id == 0 => self.room += i64::from(number),
            frame::WINDOW_UPDATE => *self.rooms.entry(id).or_default() += i64::from(number),
            frame::GOAWAY => self.goaways.push((number, frame::number(&payload[4..]))),
            frame::PING => self.pongs += 1,
            kind => panic!("a frame of kind {kind}"),
        }
    }

    fn read_head(&mut self, payload: &[u8]) -> String {
        let mut line = String::new();
        self.decoder
            .decode(payload, &mut Vec::new(), |buffer, field| {
                let (name, value) = field.texts(buffer);
                if name != b"date" {
                    let (name, value) = (name.escape_ascii(), value.escape_ascii());
                    write!(line, "{name}={value} ").unwrap();
                }
            })
            .unwrap();
        line.trim_end().to_owned()
    }
}
