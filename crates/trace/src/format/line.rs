//! One record to one line.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::{AccessLogFormat, AskedText, EscapeStyle, Field, PrefixedField};
use crate::address::push_ip;
use crate::calendar::{UtcDateTime, two_digits};
use crate::escape::{put_json, put_text, put_word};
use crate::pen::{Pen, PenBuffer};
use crate::record::{ProgramEnd, Record, Texts};

/// The names behind a record's numbers, as in the config that the record's request was answered by.
#[derive(Clone, Debug, Default)]
pub struct RecordNames {
    sites: Vec<SiteNames>,
    clients: Option<Arc<dyn ClientNameSource>>,
    countries: Option<Arc<dyn ClientCountrySource>>,
}

/// Who knows the names of clients.
pub trait ClientNameSource: Debug + Send + Sync {
    /// The name of an address, if it has one. The writer waits for it.
    fn name(&self, client: IpAddr) -> Option<Arc<str>>;
}

/// Who knows of which country an address is.
pub trait ClientCountrySource: Debug + Send + Sync {
    /// The two letters of its country, if one is known.
    fn country(&self, client: IpAddr) -> Option<[u8; 2]>;
}

#[derive(Clone, Debug)]
struct SiteNames {
    name: String,
    routes: Vec<String>,
}

impl RecordNames {
    /// No names: site and route are logged as absent.
    pub fn new() -> RecordNames {
        RecordNames::default()
    }

    /// Adds the next site with the paths of its routes, in the order of the config.
    pub fn add_site(&mut self, name: &str, routes: impl IntoIterator<Item = String>) {
        self.sites.push(SiteNames {
            name: name.to_owned(),
            routes: routes.into_iter().collect(),
        });
    }

    /// Says who knows the names of clients; without, they have none.
    pub fn set_clients(&mut self, clients: Arc<dyn ClientNameSource>) {
        self.clients = Some(clients);
    }

    /// Says who knows of which country clients are; without, that is not known.
    pub fn set_countries(&mut self, countries: Arc<dyn ClientCountrySource>) {
        self.countries = Some(countries);
    }

    fn country(&self, client: IpAddr) -> Option<[u8; 2]> {
        self.countries.as_ref()?.country(client)
    }

    fn client(&self, client: IpAddr) -> Option<Arc<str>> {
        self.clients.as_ref()?.name(client)
    }

    fn site(&self, record: &Record) -> &[u8] {
        self.sites
            .get(usize::from(record.site))
            .map_or(b"", |site| site.name.as_bytes())
    }

    fn route(&self, record: &Record) -> &[u8] {
        self.sites
            .get(usize::from(record.site))
            .and_then(|site| site.routes.get(record.route as usize))
            .map_or(b"", |route| route.as_bytes())
    }
}

/// What is kept from one line to the next: room to write in, and what two lines often have in
/// common.
#[derive(Debug)]
pub struct LineCache {
    block: PenBuffer,
    last: Last,
}

/// The last line's second and client's address, as text.
#[derive(Debug)]
struct Last {
    second: u64,
    clf: [u8; CLF_BYTES],
    /// Up to the second; milliseconds differ.
    iso: [u8; ISO_BYTES],
    client: IpAddr,
    client_text: Vec<u8>,
    /// The steady parts of the last format (0 is none) as text.
    start_of: u64,
    start: Vec<u8>,
}

const CLF_BYTES: usize = b"[21/Nov/2026:21:13:07 +0000]".len();
const ISO_BYTES: usize = b"2026-11-21T21:13:07".len();

impl Default for LineCache {
    fn default() -> LineCache {
        LineCache::new()
    }
}

impl LineCache {
    /// Nothing written yet.
    pub fn new() -> LineCache {
        let client = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let mut last = Last {
            second: 0,
            clf: [0; CLF_BYTES],
            iso: [0; ISO_BYTES],
            client,
            client_text: Vec::new(),
            start_of: 0,
            start: Vec::new(),
        };
        last.write_second(0);
        last.write_client(client);
        LineCache {
            block: PenBuffer::new(),
            last,
        }
    }
}

impl Last {
    #[inline]
    fn see(&mut self, record: &Record) {
        let second = record.started_unix_ms / 1000;
        if second != self.second {
            self.write_second(second);
        }
        if record.client != self.client {
            self.write_client(record.client);
        }
    }

    #[cold]
    fn write_second(&mut self, second: u64) {
        self.second = second;
        self.start_of = 0;
        let m = UtcDateTime::from_unix_s(second.cast_signed());
        let year = [two_digits(m.year / 100), two_digits(m.year % 100)];
        let [day, hour, minute, second] = [m.day, m.hour, m.minute, m.second].map(two_digits);
        self.clf = *b"[../.../....:..:..:.. +0000]";
        self.clf[1..3].copy_from_slice(&day);
        self.clf[4..7].copy_from_slice(m.month_name());
        self.clf[8..12].copy_from_slice(year.as_flattened());
        self.clf[13..15].copy_from_slice(&hour);
        self.clf[16..18].copy_from_slice(&minute);
        self.clf[19..21].copy_from_slice(&second);
        self.iso = *b"....-..-..T..:..:..";
        self.iso[0..4].copy_from_slice(year.as_flattened());
        self.iso[5..7].copy_from_slice(&two_digits(m.month));
        self.iso[8..10].copy_from_slice(&day);
        self.iso[11..13].copy_from_slice(&hour);
        self.iso[14..16].copy_from_slice(&minute);
        self.iso[17..19].copy_from_slice(&second);
    }

    #[cold]
    fn write_client(&mut self, client: IpAddr) {
        self.client = client;
        self.start_of = 0;
        self.client_text.clear();
        let client = client.to_canonical();
        if !client.is_unspecified() {
            push_ip(client, &mut self.client_text);
        }
    }
}

impl AccessLogFormat {
    /// Appends the record's line with its line break.
    pub fn push_line(
        &self,
        cache: &mut LineCache,
        names: &RecordNames,
        record: &Record,
        texts: &Texts<'_>,
        out: &mut Vec<u8>,
    ) {
        let LineCache { block, last } = cache;
        last.see(record);
        let steady = if texts.user.is_empty() {
            self.steady
        } else {
            0
        };
        if steady > 0 && last.start_of != self.identity.0 {
            self.write_start(block, last, names, record, texts);
        }
        let line = LogLineContext {
            style: self.style,
            last,
            names,
            record,
            texts,
        };
        let mut pen = Pen::new(block, out);
        if steady > 0 {
            pen.put(&last.start);
        }
        line.put_parts(&self.parts[steady..], &mut pen);
        pen.put_literal(&self.end);
        pen.finish();
    }

    /// Writes what the next lines will have in common.
    #[cold]
    fn write_start(
        &self,
        block: &mut PenBuffer,
        last: &mut Last,
        names: &RecordNames,
        record: &Record,
        texts: &Texts<'_>,
    ) {
        let mut start = std::mem::take(&mut last.start);
        start.clear();
        let line = LogLineContext {
            style: self.style,
            last,
            names,
            record,
            texts,
        };
        let mut pen = Pen::new(block, &mut start);
        line.put_parts(&self.parts[..self.steady], &mut pen);
        pen.finish();
        last.start = start;
        last.start_of = self.identity.0;
    }
}

/// All a field's value comes from.
struct LogLineContext<'a> {
    style: EscapeStyle,
    last: &'a Last,
    names: &'a RecordNames,
    record: &'a Record,
    texts: &'a Texts<'a>,
}

impl LogLineContext<'_> {
    #[inline]
    fn put_parts(&self, parts: &[PrefixedField], pen: &mut Pen<'_>) {
        for part in parts {
            pen.put_literal(&part.before);
            self.put(part.field, pen);
        }
    }

    fn put_country(&self, pen: &mut Pen<'_>) {
        let country = self.names.country(self.record.client);
        self.put_word(country.as_ref().map_or(&[][..], |code| code), pen);
    }

    fn put(&self, field: Field, pen: &mut Pen<'_>) {
        let record = self.record;
        match field {
            Field::Client => self.put_own(&self.last.client_text, pen),
            Field::ClientName => {
                let name = self.names.client(record.client);
                self.put_word(name.as_deref().unwrap_or_default().as_bytes(), pen);
            }
            Field::Country => self.put_country(pen),
            Field::ClientPort => pen.put_number(u64::from(record.client_port)),
            Field::Time => pen.put_array(&self.last.clf),
            Field::TimeIso => self.put_time_iso(pen),
            Field::UnixMs => pen.put_number(record.started_unix_ms),
            Field::RequestLine => self.put_request_line(pen),
            Field::Method => self.put_word(self.texts.method, pen),
            Field::Target => self.put_word(self.texts.target, pen),
            Field::Protocol => pen.put(record.protocol.word().as_bytes()),
            Field::Status => pen.put_number(u64::from(record.status)),
            Field::Bytes => pen.put_number(record.body_bytes_out),
            Field::BytesClf if record.body_bytes_out == 0 => pen.put_array(b"-"),
            Field::BytesClf => pen.put_number(record.body_bytes_out),
            Field::BytesIn => pen.put_number(record.bytes_in),
            Field::BytesOut => {
                pen.put_number(record.head_bytes_out.saturating_add(record.body_bytes_out));
            }
            Field::Host => self.put_word(self.texts.host, pen),
            Field::Referer => self.put_text(self.texts.referer, pen),
            Field::UserAgent => self.put_text(self.texts.user_agent, pen),
            Field::User => self.put_word(self.texts.user, pen),
            Field::TotalUs => pen.put_number(record.total_us),
            Field::TotalMs => put_ms(record.total_us, pen),
            Field::FirstByteUs => pen.put_number(record.first_byte_us),
            Field::QueueUs => pen.put_number(record.queue_us),
            Field::ProgramUs => pen.put_number(record.program_us),
            Field::ProgramEnd => match record.program_end {
                ProgramEnd::Unknown => self.put_absent(pen),
                ProgramEnd::Clean => pen.put(record.program_end.word().as_bytes()),
                end => {
                    pen.put(end.word().as_bytes());
                    pen.put_array(b" ");
                    pen.put_number(record.end_number.into());
                }
            },
            Field::DiskWaitUs => pen.put_number(record.disk_wait_us),
            Field::Site => self.put_word(self.names.site(record), pen),
            Field::Route => self.put_word(self.names.route(record), pen),
            Field::Handler => pen.put(record.handler.word().as_bytes()),
            Field::Cache => pen.put(record.cache.word().as_bytes()),
            Field::Fault => pen.put(record.fault.word().as_bytes()),
            Field::Outcome => pen.put(record.outcome.word().as_bytes()),
            Field::TlsVersion => self.put_word(record.tls_version.word().as_bytes(), pen),
            Field::TlsSuite => self.put_word(record.tls_suite.as_bytes(), pen),
            Field::TlsHandshake => self.put_word(record.tls_handshake.word().as_bytes(), pen),
            Field::HandshakeUs => pen.put_number(u64::from(record.handshake_us)),
            Field::TraceId if record.trace.is_some() => pen.put_array(&record.trace.id_text()),
            Field::TraceId => self.put_absent(pen),
            Field::Connection => pen.put_number(record.connection),
            Field::Request => pen.put_number(u64::from(record.request)),
            Field::Reason => self.put_text(record.reason.unwrap_or("").as_bytes(), pen),
            Field::Detail => self.put_text(self.texts.detail, pen),
            Field::Note => self.put_text(record.note.unwrap_or("").as_bytes(), pen),
            Field::Asked(place) => {
                let value = AskedText::at(self.texts.asked, place.into());
                self.put_text(value.bytes, pen);
                if value.is_cut {
                    pen.put(CUT_MARK.as_bytes());
                }
            }
        }
    }

    /// A value that this file wrote: nothing to escape.
    fn put_own(&self, value: &[u8], pen: &mut Pen<'_>) {
        if value.is_empty() {
            return self.put_absent(pen);
        }
        pen.put(value);
    }

    fn put_text(&self, value: &[u8], pen: &mut Pen<'_>) {
        if value.is_empty() {
            return self.put_absent(pen);
        }
        match self.style {
            EscapeStyle::Text => put_text(value, pen),
            EscapeStyle::Json => put_json(value, pen),
        }
    }

    fn put_word(&self, value: &[u8], pen: &mut Pen<'_>) {
        if value.is_empty() {
            return self.put_absent(pen);
        }
        match self.style {
            EscapeStyle::Text => put_word(value, pen),
            EscapeStyle::Json => put_json(value, pen),
        }
    }

    fn put_absent(&self, pen: &mut Pen<'_>) {
        match self.style {
            EscapeStyle::Text => pen.put_array(b"-"),
            EscapeStyle::Json => {}
        }
    }

    /// Nothing but `-` where no request line was understood.
    fn put_request_line(&self, pen: &mut Pen<'_>) {
        if self.texts.method.is_empty() && self.texts.target.is_empty() {
            return self.put_absent(pen);
        }
        self.put_word(self.texts.method, pen);
        pen.put_array(b" ");
        self.put_word(self.texts.target, pen);
        pen.put_array(b" ");
        pen.put(self.record.protocol.word().as_bytes());
    }

    fn put_time_iso(&self, pen: &mut Pen<'_>) {
        pen.put_array(&self.last.iso);
        pen.put_array(b".");
        put_three_digits((self.record.started_unix_ms % 1000) as u32, pen);
        pen.put_array(b"Z");
    }
}

/// Stands behind a text that was cut.
pub(crate) const CUT_MARK: &str = "…";

/// Microseconds as milliseconds with three digits after the point.
fn put_ms(us: u64, pen: &mut Pen<'_>) {
    pen.put_number(us / 1000);
    pen.put_array(b".");
    put_three_digits((us % 1000) as u32, pen);
}

fn put_three_digits(number: u32, pen: &mut Pen<'_>) {
    let [tens, ones] = two_digits(number % 100);
    pen.put_array(&[b'0' + (number / 100) as u8, tens, ones]);
}
