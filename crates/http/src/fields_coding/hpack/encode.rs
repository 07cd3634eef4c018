//! Names and values to blocks (RFC 7541 section 6).
//!
//! What many answers of a connection have in common stands in the dynamic table after the first of
//! them and then costs a byte. What is one answer's own, its size and validators above all, would
//! only push the rest out: it is written as text each time.

use crate::fields_coding::hpack::table::HpackDynamicTable;
use crate::fields_coding::hpack::{TABLE_BYTES, fixed};
use crate::fields_coding::number::{push_number, push_string};
use crate::fields_coding::{ENTRY_BYTES, is_hop_by_hop};

/// How a field of an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In the table, for answers to come.
    InTable,
    /// As text, each time.
    AsText,
    /// As text, and no proxy may put it into its table.
    AsSecret,
    /// Not at all: it speaks of the connection.
    Never,
}

impl Stored {
    /// How a field of this name is written; names are compared without case.
    pub fn of(name: &[u8], value: &[u8]) -> Stored {
        if is_hop_by_hop(name) {
            return Stored::Never;
        }
        Stored::by(name, value, fixed::index_of(name))
    }

    /// How a field of a request of ours is written: many clients' share a connection.
    //= rfc7541#7.1.3
    pub(crate) fn of_request(name: &[u8], value: &[u8]) -> Stored {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            6 if is(b"cookie") => Stored::AsSecret,
            13 if is(b"authorization") => Stored::AsSecret,
            14 if is(b"content-length") => Stored::AsText,
            11 if is(b"traceparent") || is(b"hob-request") => Stored::AsText,
            13 if is(b"if-none-match") => Stored::AsText,
            15 if is(b"x-forwarded-for") => Stored::AsText,
            _ => Stored::of(name, value),
        }
    }

    fn by(name: &[u8], value: &[u8], index: Option<usize>) -> Stored {
        let is_own = match index {
            Some(SET_COOKIE) => return Stored::AsSecret,
            Some(index) => OWN.contains(&index),
            None => false,
        };
        // Large entries would leave no room for others.
        let is_large = name.len() + value.len() + ENTRY_BYTES > TABLE_BYTES / 4;
        if is_own || is_large {
            Stored::AsText
        } else {
            Stored::InTable
        }
    }
}

const SET_COOKIE: usize = 55;
/// age, content-length, content-location, content-range, etag, expires, last-modified, link,
/// location
const OWN: [usize; 9] = [21, 28, 29, 30, 34, 36, 44, 45, 46];
const DATE: usize = 33;

/// Writes the blocks of one connection, in their order.
#[derive(Debug)]
pub struct Encoder {
    table: HpackDynamicTable<()>,
    /// By a hash of the field: the number of the entry that was added last, plus one.
    places: Box<[u32; PLACES]>,
    /// The date that was written last, and the number of its entry.
    date: [u8; 29],
    date_number: u32,
    /// Sizes the table must be told to have had before the next block: the smallest, then the last.
    resizes: Option<(usize, usize)>,
}

const PLACES: usize = 64;
const _: () = assert!(PLACES <= 256);

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            table: HpackDynamicTable::new(),
            places: Box::new([0; PLACES]),
            date: [0; 29],
            date_number: u32::MAX,
            resizes: None,
        }
    }
}

impl Encoder {
    /// The other side keeps a table of so many bytes from now on.
    //= rfc7541#4.2
    pub fn resize(&mut self, size: usize) {
        let size = size.min(TABLE_BYTES);
        let smallest = match self.resizes {
            Some((smallest, _)) => smallest.min(size),
            None if size == self.table.size_max() => return,
            None => size,
        };
        self.resizes = Some((smallest, size));
        self.table.set_size_max(size);
    }

    /// Begins a block with a status.
    pub fn begin(&mut self, status: u16, out: &mut Vec<u8>) {
        self.begin_bare(out);
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                push_number(8, 4, 0, out);
                let digits = [status / 100 % 10, status / 10 % 10, status % 10];
                out.push(3);
                out.extend(digits.map(|digit| b'0' + digit as u8));
                return;
            }
        };
        out.push(0x80 | index);
    }

    /// Begins a block with what a request asks for.
    pub(crate) fn begin_request(
        &mut self,
        method: &[u8],
        is_https: bool,
        path: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.begin_bare(out);
        match method {
            b"GET" => out.push(0x80 | 2),
            b"POST" => out.push(0x80 | 3),
            _ => {
                push_number(2, 4, 0, out);
                push_string(method, out);
            }
        }
        out.push(0x80 | if is_https { 7 } else { 6 });
        match path {
            b"/" => out.push(0x80 | 4),
            _ => {
                push_number(4, 4, 0, out);
                push_string(path, out);
            }
        }
    }

    /// Begins a block without one: trailers.
    pub fn begin_bare(&mut self, out: &mut Vec<u8>) {
        let Some((smallest, last)) = self.resizes.take() else {
            return;
        };
        if smallest < last {
            push_number(smallest, 5, 0x20, out);
        }
        push_number(last, 5, 0x20, out);
    }

    /// Appends the date, which changes once a second.
    pub fn date(&mut self, date: &[u8; 29], out: &mut Vec<u8>) {
        if *date == self.date
            && let Some(index) = self.table.index_of(self.date_number)
        {
            return push_number(index + FIRST_DYNAMIC, 7, 0x80, out);
        }
        self.date = *date;
        self.date_number = self.table.next_number();
        push_number(DATE, 6, 0x40, out);
        push_string(date, out);
        if !self.table.add(b"date", date, ()) {
            self.date_number = u32::MAX;
        }
    }

    /// Appends a field as its [`Stored`] says.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match Stored::of(name, value) {
            Stored::InTable => self.repeated(name, value, out),
            stored => encode_field(name, value, stored, out),
        }
    }

    /// Appends a field that other answers have too: an index, after the first time.
    pub fn repeated(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let mut lower = [0u8; NAME_INLINE];
        match lower.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                self.repeated_at(place_of(lower, value), lower, value, out);
            }
            None => {
                let lower = name.to_ascii_lowercase();
                self.repeated_at(place_of(&lower, value), &lower, value, out);
            }
        }
    }

    /// The same for a field in lower case whose [`place_of`] is known.
    pub(crate) fn repeated_at(&mut self, place: u8, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let Some(noted) = self.places.get_mut(usize::from(place)) else {
            return;
        };
        if let Some(index) = self.table.index_of(noted.wrapping_sub(1))
            && let Some((old_name, old_value, ())) = self.table.entry(index)
            && old_value == value
            && old_name == name
        {
            return push_number(index + FIRST_DYNAMIC, 7, 0x80, out);
        }
        let number = self.table.next_number();
        push_text(name, value, 6, 0x40, out);
        if self.table.add(name, value, ()) {
            *noted = number.wrapping_add(1);
        }
    }
}

/// Names up to this size are made lower case without an allocation.
const NAME_INLINE: usize = 64;
const FIRST_DYNAMIC: usize = 62;

/// Appends a field that does not touch the table: fit for every connection.
pub fn encode_field(name: &[u8], value: &[u8], stored: Stored, out: &mut Vec<u8>) {
    match stored {
        Stored::InTable | Stored::AsText => push_text(name, value, 4, 0, out),
        Stored::AsSecret => push_text(name, value, 4, 0x10, out),
        Stored::Never => {}
    }
}

fn push_text(name: &[u8], value: &[u8], prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    match fixed::index_of(name) {
        Some(index) => push_number(index, prefix_bits, pattern, out),
        None => {
            out.push(pattern);
            // Nearly all names are in lower case or short; this happens once for most of them.
            push_string(&name.to_ascii_lowercase(), out);
        }
    }
    push_string(value, out);
}

/// Where a field's last entry is noted: from the lengths, and the ends of name and value.
pub(crate) fn place_of(name: &[u8], value: &[u8]) -> u8 {
    let mut sum = name.len() * 31 + value.len() * 7;
    for byte in name.iter().rev().take(2).chain(value.iter().rev().take(4)) {
        sum = sum * 33 + usize::from(*byte);
    }
    ((sum ^ sum >> 6 ^ sum >> 12) % PLACES) as u8
}
