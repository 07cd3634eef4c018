//! One finished request as bytes of a segment.
//!
//! ```text
//! offset  0  u16  size of the entry, all of it      36  u16  series (the route's number)
//!         2  u16  bytes of the target               38  u16  status
//!         4  u32  groups: what follows, a bit each   40  u8   protocol, handler, cache, fault,
//!         8  i32  start, ms after the segment's           u8   outcome, TLS version, handshake
//!        12  u32  total, us                          47  u8   method; 0: group METHOD has it
//!        16  u32  first byte, us                     48  u16  client's port
//!        20  u32  connection                         50  u16  0
//!        24  u32  bytes in                           52  u8 x 4  client's IPv4 address
//!        28  u32  bytes of the answer's head         56  u32  request
//!        32  u32  bytes of the answer's body         60  groups by their bit, lowest first; target
//! ```
//!
//! Numbers are little-endian. Most requests need no group but the texts; a text that equals the
//! last one of its kind in the segment is a bit and no bytes. What stands in a file is read by the
//! same code, so every read is checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::record::{
    CacheOutcome, Fault, HandlerKind, Outcome, ProgramEnd, Protocol, Record, Texts, TlsHandshake,
    TlsVersion,
};

/// Bytes of a method that are kept.
pub(super) const METHOD_BYTES_MAX: usize = 32;
/// Bytes of a target that are kept.
pub(super) const TARGET_BYTES_MAX: usize = 1024;
/// Bytes of a host that are kept.
pub(super) const HOST_BYTES_MAX: usize = 255;
/// Bytes of a referer that are kept.
pub(super) const REFERER_BYTES_MAX: usize = 512;
/// Bytes of a user agent that are kept.
pub(super) const AGENT_BYTES_MAX: usize = 255;
/// Bytes of a user that are kept.
pub(super) const USER_BYTES_MAX: usize = 128;
/// Bytes of a detail that are kept.
pub(super) const DETAIL_BYTES_MAX: usize = 1024;
/// Bytes of a reason, a note or the name of a cipher suite that are kept.
pub(super) const WORDS_BYTES_MAX: usize = 255;

/// Bytes before the groups.
const HEAD_BYTES: usize = 60;
/// Bytes of all groups that are numbers.
const NUMBERS_BYTES_MAX: usize = 6 * 8 + 4 * 4 + 3 * 4 + 3 * 4 + 4 + 16 + 2 * 4;
/// The largest entry.
pub(super) const ENTRY_BYTES_MAX: usize = HEAD_BYTES
    + NUMBERS_BYTES_MAX
    + TEXT_KINDS * 2
    + TRACE_BYTES
    + METHOD_BYTES_MAX
    + TARGET_BYTES_MAX
    + HOST_BYTES_MAX
    + REFERER_BYTES_MAX
    + AGENT_BYTES_MAX
    + USER_BYTES_MAX
    + DETAIL_BYTES_MAX
    + 3 * WORDS_BYTES_MAX;
const TEXT_KINDS: usize = 10;
/// Bytes of a trace's id.
const TRACE_BYTES: usize = 16;
/// Where the series stands in an entry.
const SERIES_AT: usize = 36;
const _: () = assert!(ENTRY_BYTES_MAX <= u16::MAX as usize);

const LARGE: u32 = 1;
const PROGRAM: u32 = 1 << 1;
const WAITS: u32 = 1 << 2;
const NETWORK: u32 = 1 << 3;
const HANDSHAKE: u32 = 1 << 4;
const V6: u32 = 1 << 5;
const METHOD: u32 = 1 << 6;
const USER: u32 = 1 << 7;
const DETAIL: u32 = 1 << 8;
const REASON: u32 = 1 << 9;
const NOTE: u32 = 1 << 10;
const HOST: u32 = 1 << 11;
const REFERER: u32 = 1 << 12;
const AGENT: u32 = 1 << 13;
const SUITE: u32 = 1 << 14;
/// The text of the kind four groups before is that of the last entry that had one.
const SAME: u32 = 4;
const TRACE: u32 = SUITE << SAME << 1;
/// The process and its end.
const PROCESS: u32 = TRACE << 1;
const GROUPS: u32 = (PROCESS << 1) - 1;

/// Methods that are one byte, from 1.
const METHODS: [&[u8]; 8] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT",
];

/// A finished request out of the history.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'a> {
    /// Numbers and facts; `site`, `route`, `log`, `reason`, `note` and `tls_suite` say nothing.
    pub record: Record,
    /// Its texts, cut to their limits.
    pub texts: Texts<'a>,
    /// Cipher suite of TLS by its IANA name; empty in clear text.
    pub tls_suite: &'a [u8],
    /// What went wrong, in words.
    pub reason: &'a [u8],
    /// What was strange, in words.
    pub note: &'a [u8],
}

impl Finished<'_> {
    /// When its answer was complete, as Unix time in milliseconds.
    pub fn finished_unix_ms(&self) -> u64 {
        let total_ms = self.record.total_us / 1000;
        self.record.started_unix_ms.saturating_add(total_ms)
    }
}

/// What an encoder remembers of the entries before: where the last text of each kind stands.
#[derive(Debug, Default)]
pub(super) struct Memory {
    host: Range<usize>,
    referer: Range<usize>,
    agent: Range<usize>,
    suite: Range<usize>,
}

/// What a decoder remembers of the entries before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PreviousTexts<'a> {
    host: &'a [u8],
    referer: &'a [u8],
    agent: &'a [u8],
    suite: &'a [u8],
}

/// Appends a finished request. `base_unix_ms` is the segment's; a start that is too far from it is
/// told as far as can be.
pub(super) fn encode(
    record: &Record,
    texts: &Texts<'_>,
    base_unix_ms: u64,
    memory: &mut Memory,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let target = cut(texts.target, TARGET_BYTES_MAX);
    let method = method_code(texts.method);
    out.extend_from_slice(&head_of(record, target.len(), base_unix_ms, method));
    let mut groups = 0;
    // Most requests have none of these; then they cost a look.
    let large = large_of(record);
    if large.iter().fold(0, |all, value| all | value) > u64::from(u32::MAX) {
        groups |= LARGE;
        push_all(&large, u64::to_le_bytes, out);
    }
    let waits_us = record.disk_wait_us | record.client_take_us | record.client_body_us;
    let programs_us = record.queue_us | record.program_us | record.start_us | record.cpu_us;
    let network = record.rtt_us | record.retransmits | record.window_bytes | record.handshake_us;
    if waits_us | programs_us | u64::from(network) != 0 || record.client.is_ipv6() {
        groups |= encode_numbers(record, out);
    }
    let has_words = record.reason.is_some() | record.note.is_some();
    if has_words || method == 0 || texts.user.len() | texts.detail.len() != 0 {
        groups |= encode_texts(record, texts, method == 0, out);
    }
    let mut repeated = |group: u32, text: &[u8], last: &mut Range<usize>| {
        if text.is_empty() {
            return;
        }
        if out.get(last.clone()) == Some(text) {
            groups |= group << SAME;
            return;
        }
        groups |= group;
        push_text(text, out);
        *last = out.len() - text.len()..out.len();
    };
    let suite = cut(record.tls_suite.as_bytes(), WORDS_BYTES_MAX);
    repeated(HOST, cut(texts.host, HOST_BYTES_MAX), &mut memory.host);
    let referer = cut(texts.referer, REFERER_BYTES_MAX);
    repeated(REFERER, referer, &mut memory.referer);
    let agent = cut(texts.user_agent, AGENT_BYTES_MAX);
    repeated(AGENT, agent, &mut memory.agent);
    repeated(SUITE, suite, &mut memory.suite);
    if record.trace.is_some() {
        groups |= TRACE;
        out.extend_from_slice(&record.trace.id);
    }
    if record.pid != 0 || record.program_end != ProgramEnd::Unknown {
        groups |= PROCESS;
        let end = [record.program_end as u8, record.end_number, 0, 0];
        push_all(
            &[record.pid, u32::from_le_bytes(end)],
            u32::to_le_bytes,
            out,
        );
    }
    out.extend_from_slice(target);
    let size = (out.len() - start) as u16;
    if let Some(head) = out.get_mut(start..start + 8) {
        head[..2].copy_from_slice(&size.to_le_bytes());
        head[4..].copy_from_slice(&groups.to_le_bytes());
    }
}

/// Numbers that are 32 bits wide unless one of them needs more.
fn large_of(record: &Record) -> [u64; 6] {
    [
        record.total_us,
        record.first_byte_us,
        record.connection,
        record.bytes_in,
        record.head_bytes_out,
        record.body_bytes_out,
    ]
}

/// What stands before the groups; size and groups are not known yet.
#[inline]
fn head_of(
    record: &Record,
    target_bytes: usize,
    base_unix_ms: u64,
    method: u8,
) -> [u8; HEAD_BYTES] {
    let started_ms = record.started_unix_ms.wrapping_sub(base_unix_ms) as i64;
    let started_ms = started_ms.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let [total, first_byte, connection, bytes_in, head, body] =
        large_of(record).map(|value| value as u32);
    let client = match record.client {
        IpAddr::V4(v4) => u32::from_le_bytes(v4.octets()),
        IpAddr::V6(_) => 0,
    };
    let words = [
        (target_bytes as u32) << 16,
        0,
        started_ms.cast_unsigned(),
        total,
        first_byte,
        connection,
        bytes_in,
        head,
        body,
        u32::from(record.series) | u32::from(record.status) << 16,
        u32::from_le_bytes([
            record.protocol as u8,
            record.handler as u8,
            record.cache as u8,
            record.fault as u8,
        ]),
        u32::from_le_bytes([
            record.outcome as u8,
            record.tls_version as u8,
            record.tls_handshake as u8,
            method,
        ]),
        u32::from(record.client_port),
        client,
        record.request,
    ];
    let mut bytes = [0; HEAD_BYTES];
    for (four, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *four = word.to_le_bytes();
    }
    bytes
}

fn push_all<T: Copy, const N: usize>(
    values: &[T],
    bytes_of: impl Fn(T) -> [u8; N],
    out: &mut Vec<u8>,
) {
    values
        .iter()
        .for_each(|value| out.extend_from_slice(&bytes_of(*value)));
}

fn encode_numbers(record: &Record, out: &mut Vec<u8>) -> u32 {
    let mut groups = 0;
    let mut numbers = |group: u32, values: &[u32]| {
        if values.iter().any(|value| *value != 0) {
            groups |= group;
            push_all(values, u32::to_le_bytes, out);
        }
    };
    let us = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let programs = [
        record.queue_us,
        record.program_us,
        record.start_us,
        record.cpu_us,
    ];
    let waits = [
        record.disk_wait_us,
        record.client_take_us,
        record.client_body_us,
    ];
    let network = [record.rtt_us, record.retransmits, record.window_bytes];
    numbers(PROGRAM, &programs.map(us));
    numbers(WAITS, &waits.map(us));
    numbers(NETWORK, &network);
    numbers(HANDSHAKE, &[record.handshake_us]);
    if let IpAddr::V6(v6) = record.client {
        groups |= V6;
        out.extend_from_slice(&v6.octets());
    }
    groups
}

fn encode_texts(record: &Record, texts: &Texts<'_>, has_method: bool, out: &mut Vec<u8>) -> u32 {
    let mut groups = 0;
    let method: &[u8] = if has_method { texts.method } else { b"" };
    for (group, text, bytes_max) in [
        (METHOD, method, METHOD_BYTES_MAX),
        (USER, texts.user, USER_BYTES_MAX),
        (DETAIL, texts.detail, DETAIL_BYTES_MAX),
        (REASON, words(record.reason), WORDS_BYTES_MAX),
        (NOTE, words(record.note), WORDS_BYTES_MAX),
    ] {
        if !text.is_empty() {
            groups |= group;
            push_text(cut(text, bytes_max), out);
        }
    }
    groups
}

fn words(text: Option<&'static str>) -> &'static [u8] {
    text.unwrap_or_default().as_bytes()
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text);
}

#[inline]
fn method_code(method: &[u8]) -> u8 {
    if method == METHODS[0] {
        return 1;
    }
    let known = METHODS.iter().position(|known| *known == method);
    known.map_or(0, |index| index as u8 + 1)
}

/// Texts as far as they are kept.
pub fn kept<'a>(texts: &Texts<'a>) -> Texts<'a> {
    Texts {
        method: cut(texts.method, METHOD_BYTES_MAX),
        target: cut(texts.target, TARGET_BYTES_MAX),
        host: cut(texts.host, HOST_BYTES_MAX),
        referer: cut(texts.referer, REFERER_BYTES_MAX),
        user_agent: cut(texts.user_agent, AGENT_BYTES_MAX),
        user: cut(texts.user, USER_BYTES_MAX),
        detail: cut(texts.detail, DETAIL_BYTES_MAX),
        asked: b"",
    }
}

#[inline]
fn cut(text: &[u8], bytes_max: usize) -> &[u8] {
    &text[..text.len().min(bytes_max)]
}

/// Reads the entry at the start of `bytes`, and says how long it is. `None` when it is none.
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    base_unix_ms: u64,
    seen: &mut PreviousTexts<'a>,
) -> Option<(Finished<'a>, usize)> {
    let size = usize::from(u16::from_le_bytes(*bytes.first_chunk()?));
    let entry = bytes.get(..size)?;
    let (head, rest) = entry.split_first_chunk::<HEAD_BYTES>()?;
    let mut reader = HistoryEntryReader { rest };
    let groups = u32_at(head, 4);
    if groups & !GROUPS != 0 || u16_at(head, 50) != 0 {
        return None;
    }
    let started_ms = i64::from(u32_at(head, 8).cast_signed());
    let mut record = Record {
        started_unix_ms: base_unix_ms.checked_add_signed(started_ms)?,
        total_us: u32_at(head, 12).into(),
        first_byte_us: u32_at(head, 16).into(),
        connection: u32_at(head, 20).into(),
        bytes_in: u32_at(head, 24).into(),
        head_bytes_out: u32_at(head, 28).into(),
        body_bytes_out: u32_at(head, 32).into(),
        series: u16_at(head, SERIES_AT),
        status: u16_at(head, 38),
        protocol: *Protocol::ALL.get(usize::from(head[40]))?,
        handler: *HandlerKind::ALL.get(usize::from(head[41]))?,
        cache: *CacheOutcome::ALL.get(usize::from(head[42]))?,
        fault: *Fault::ALL.get(usize::from(head[43]))?,
        outcome: *Outcome::ALL.get(usize::from(head[44]))?,
        tls_version: *TlsVersion::ALL.get(usize::from(head[45]))?,
        tls_handshake: *TlsHandshake::ALL.get(usize::from(head[46]))?,
        client_port: u16_at(head, 48),
        client: IpAddr::V4(Ipv4Addr::new(head[52], head[53], head[54], head[55])),
        request: u32_at(head, 56),
        ..Record::empty()
    };
    reader.numbers(groups, &mut record)?;
    let method: &[u8] = match head[47] {
        0 => reader.text(groups & METHOD)?,
        code => METHODS.get(usize::from(code) - 1)?,
    };
    let user = reader.text(groups & USER)?;
    let detail = reader.text(groups & DETAIL)?;
    let reason = reader.text(groups & REASON)?;
    let note = reader.text(groups & NOTE)?;
    let host = reader.text_or_same(groups, HOST, &mut seen.host)?;
    let referer = reader.text_or_same(groups, REFERER, &mut seen.referer)?;
    let user_agent = reader.text_or_same(groups, AGENT, &mut seen.agent)?;
    let tls_suite = reader.text_or_same(groups, SUITE, &mut seen.suite)?;
    if groups & TRACE != 0 {
        record.trace.id = *reader.take(TRACE_BYTES)?.first_chunk()?;
    }
    if groups & PROCESS != 0 {
        reader.process(&mut record)?;
    }
    let target = reader.take(usize::from(u16_at(head, 2)))?;
    let finished = Finished {
        record,
        texts: Texts {
            method,
            target,
            host,
            referer,
            user_agent,
            user,
            detail,
            asked: b"",
        },
        tls_suite,
        reason,
        note,
    };
    reader.rest.is_empty().then_some((finished, size))
}

/// Gives the entry at the start of `bytes` another series.
pub(super) fn set_series(bytes: &mut [u8], series: u16) {
    if let Some(place) = bytes.get_mut(SERIES_AT..SERIES_AT + 2) {
        place.copy_from_slice(&series.to_le_bytes());
    }
}

fn u16_at(head: &[u8; HEAD_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([head[at], head[at + 1]])
}

fn u32_at(head: &[u8; HEAD_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

struct HistoryEntryReader<'a> {
    rest: &'a [u8],
}

impl<'a> HistoryEntryReader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn numbers(&mut self, groups: u32, record: &mut Record) -> Option<()> {
        if groups & LARGE != 0 {
            record.total_us = self.u64()?;
            record.first_byte_us = self.u64()?;
            record.connection = self.u64()?;
            record.bytes_in = self.u64()?;
            record.head_bytes_out = self.u64()?;
            record.body_bytes_out = self.u64()?;
        }
        if groups & PROGRAM != 0 {
            record.queue_us = self.u32()?.into();
            record.program_us = self.u32()?.into();
            record.start_us = self.u32()?.into();
            record.cpu_us = self.u32()?.into();
        }
        if groups & WAITS != 0 {
            record.disk_wait_us = self.u32()?.into();
            record.client_take_us = self.u32()?.into();
            record.client_body_us = self.u32()?.into();
        }
        if groups & NETWORK != 0 {
            record.rtt_us = self.u32()?;
            record.retransmits = self.u32()?;
            record.window_bytes = self.u32()?;
        }
        if groups & HANDSHAKE != 0 {
            record.handshake_us = self.u32()?;
        }
        if groups & V6 != 0 {
            record.client = IpAddr::V6(Ipv6Addr::from(self.array::<16>()?));
        }
        Some(())
    }

    fn process(&mut self, record: &mut Record) -> Option<()> {
        record.pid = self.u32()?;
        let [end, number, 0, 0] = self.array()? else {
            return None;
        };
        record.program_end = *ProgramEnd::ALL.get(usize::from(end))?;
        record.end_number = number;
        Some(())
    }

    /// A text if its group is there, else an empty one.
    fn text(&mut self, group: u32) -> Option<&'a [u8]> {
        if group == 0 {
            return Some(b"");
        }
        let len = u16::from_le_bytes(self.array()?);
        self.take(len.into())
    }

    fn text_or_same(&mut self, groups: u32, group: u32, last: &mut &'a [u8]) -> Option<&'a [u8]> {
        if groups & group << SAME != 0 {
            return Some(last);
        }
        let text = self.text(groups & group)?;
        if groups & group != 0 {
            *last = text;
        }
        Some(text)
    }
}
