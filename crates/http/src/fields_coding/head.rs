//! Field lists to request heads (RFC 9113 section 8), and what makes a request malformed.
//!
//! A head is filled as HTTP/1 fills it: the authority is there as `Host`, pieces of a cookie are
//! one field, `target` is the path with its query. HTTP/3 has the same rules (RFC 9114 section 4)
//! and other blocks: who decodes them is an argument.

use bytes::Bytes;
use hob_trace::Protocol;

use crate::fields_coding::{ENTRY_BYTES, Field, MalformedFieldBlock, RequestFieldName};
use crate::framing::{expects_continue, read_decimal};
use crate::head::{HeadSpan, Known, RequestHead};
use crate::host::is_host;
use crate::limits::{HEAD_KEPT_BYTES_MAX, HttpLimits};
use crate::priority::Priority;
use crate::refusal::{HEAD_TOO_LONG, Refusal, TARGET_TOO_LONG, TOO_MANY_HEADERS};

const NO_AUTHORITY: &str = "there is neither :authority nor Host";
/// What stands between two pieces of a cookie that were joined.
const COOKIE_SEPARATOR: &[u8] = b"; ";

/// What a sound head says besides what stands in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sound {
    /// The announced size of the body.
    pub(crate) length: Option<u64>,
    pub(crate) expects_continue: bool,
    pub(crate) priority: Priority,
    /// CONNECT: what follows are the tunnel's bytes.
    pub(crate) is_tunnel: bool,
}

/// What is wrong with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// No request: its stream is reset.
    Malformed(&'static str),
    /// A request that gets this answer.
    Refused(Refusal),
}

/// Reads a request's block into `head`, which is empty; `decode` shows its fields.
pub(crate) fn read_head_by(
    protocol: Protocol,
    head: &mut RequestHead,
    limits: &HttpLimits,
    decode: impl FnOnce(&mut Vec<u8>, &mut HeadBuilder<'_>) -> Result<(), MalformedFieldBlock>,
) -> Result<Result<Sound, Wrong>, MalformedFieldBlock> {
    head.protocol = protocol;
    let mut bytes = std::mem::take(&mut head.bytes);
    let mut reading = HeadBuilder {
        head,
        limits,
        list_bytes: 0,
        method: None,
        scheme: None,
        path: None,
        authority: None,
        priority: None,
        cookie_pieces: Vec::new(),
        is_past_pseudo: false,
        wrong: None,
    };
    let decoded = decode(&mut bytes, &mut reading);
    let read = reading.finish(&mut bytes);
    if bytes.len() > HEAD_KEPT_BYTES_MAX {
        // It grew by doubling, and is held for as long as its request lives.
        bytes.shrink_to_fit();
    }
    head.bytes = bytes;
    decoded.map(|()| read)
}

/// Trailers, or why there are none.
pub(crate) type Trailers = Result<Vec<(Bytes, Bytes)>, &'static str>;

/// Trailers while their fields come.
pub(crate) struct TrailerReading<'r> {
    limits: &'r HttpLimits,
    list_bytes: usize,
    pub(crate) trailers: Trailers,
}

impl TrailerReading<'_> {
    pub(crate) fn new(limits: &HttpLimits) -> TrailerReading<'_> {
        TrailerReading {
            limits,
            list_bytes: 0,
            trailers: Ok(Vec::new()),
        }
    }

    /// Takes one field, or notes what is wrong with it.
    pub(crate) fn take(&mut self, bytes: &mut Vec<u8>, field: Field) {
        if let Ok(list) = &mut self.trailers {
            let (name, value) = field.texts(bytes);
            self.list_bytes += name.len() + value.len() + ENTRY_BYTES;
            let is_lawful = match field.name {
                RequestFieldName::Field(_) => field.has_lawful_value,
                _ => false,
            };
            let limits = self.limits;
            if !is_lawful {
                self.trailers = Err("a trailer is malformed");
            } else if self.list_bytes > limits.head_bytes || list.len() >= limits.header_count {
                self.trailers = Err("limits.head: the trailers are too long");
            } else {
                list.push((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
            }
        }
        bytes.clear();
    }
}

/// A head while its fields come.
pub(crate) struct HeadBuilder<'r> {
    head: &'r mut RequestHead,
    limits: &'r HttpLimits,
    list_bytes: usize,
    method: Option<HeadSpan>,
    scheme: Option<HeadSpan>,
    path: Option<HeadSpan>,
    authority: Option<HeadSpan>,
    priority: Option<HeadSpan>,
    /// Values of cookies that do not stand right behind the first one: joined when all have come.
    cookie_pieces: Vec<HeadSpan>,
    is_past_pseudo: bool,
    wrong: Option<Wrong>,
}

impl HeadBuilder<'_> {
    /// Takes one field, or notes what is wrong with it.
    pub(crate) fn take(&mut self, bytes: &mut Vec<u8>, field: Field) {
        let start = field.name_at.start as usize;
        self.list_bytes += bytes.len() - start + ENTRY_BYTES;
        if self.list_bytes > self.limits.head_bytes {
            self.refuse(HEAD_TOO_LONG);
        }
        if self.wrong.is_none() {
            if let Err(wrong) = self.sort(bytes, field) {
                self.wrong = Some(wrong);
            }
        } else {
            // It was read for the tables alone.
            bytes.truncate(start);
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.wrong.get_or_insert(Wrong::Refused(refusal));
    }

    fn sort(&mut self, bytes: &mut Vec<u8>, field: Field) -> Result<(), Wrong> {
        if !field.has_lawful_value {
            return Err(Wrong::Malformed("a field value has bytes it must not have"));
        }
        let place = match field.name {
            RequestFieldName::Field(known) => return self.push(bytes, known, field),
            //= rfc9113#8.2.2
            RequestFieldName::Te if field.value_at.of(bytes) != b"trailers" => {
                return Err(Wrong::Malformed("te is not trailers"));
            }
            RequestFieldName::Te => return self.push(bytes, None, field),
            RequestFieldName::Unlawful => {
                return Err(Wrong::Malformed(
                    "a field name is malformed, or speaks of the connection",
                ));
            }
            RequestFieldName::Method => &mut self.method,
            RequestFieldName::Scheme => &mut self.scheme,
            RequestFieldName::Path => &mut self.path,
            RequestFieldName::Authority => &mut self.authority,
            RequestFieldName::Protocol => &mut self.head.connect_protocol,
        };
        //= rfc9113#8.3
        if self.is_past_pseudo || place.is_some() {
            return Err(Wrong::Malformed(
                "a pseudo-header field comes twice, or after a field",
            ));
        }
        *place = Some(field.value_at);
        Ok(())
    }

    fn push(
        &mut self,
        bytes: &mut Vec<u8>,
        known: Option<Known>,
        field: Field,
    ) -> Result<(), Wrong> {
        self.is_past_pseudo = true;
        if known == Some(Known::Cookie) && self.join_cookie(bytes, field) {
            return Ok(());
        }
        if self.head.fields.len() >= self.limits.header_count {
            return Err(Wrong::Refused(TOO_MANY_HEADERS));
        }
        if known.is_none() && field.name_at.of(bytes) == b"priority" {
            self.priority = Some(field.value_at);
        }
        self.head.push_known(known, field.name_at, field.value_at);
        Ok(())
    }

    /// A cookie may come in pieces; whoever reads it expects one. A piece right behind the others
    /// joins them where they stand; the rest wait for [`HeadBuilder::join_pieces`], so that however
    /// they are spread, what is held is at most twice what was counted.
    //= rfc9113#8.2.3
    fn join_cookie(&mut self, bytes: &mut Vec<u8>, piece: Field) -> bool {
        let Some((_, whole)) = self.head.field_mut(Known::Cookie) else {
            return false;
        };
        let (name_at, value_at) = (piece.name_at, piece.value_at);
        if whole.start + whole.len != name_at.start || !self.cookie_pieces.is_empty() {
            self.cookie_pieces.push(value_at);
            return true;
        }
        // The name of the piece, longer than what separates it, makes room.
        let at = name_at.start as usize;
        bytes[at..at + COOKIE_SEPARATOR.len()].copy_from_slice(COOKIE_SEPARATOR);
        bytes.copy_within(value_at.range(), at + COOKIE_SEPARATOR.len());
        bytes.truncate(at + COOKIE_SEPARATOR.len() + value_at.len as usize);
        whole.len += COOKIE_SEPARATOR.len() as u32 + value_at.len;
        true
    }

    /// Makes one cookie of its pieces, behind all fields.
    fn join_pieces(&mut self, bytes: &mut Vec<u8>) {
        if self.cookie_pieces.is_empty() {
            return;
        }
        let Some((_, whole)) = self.head.field_mut(Known::Cookie) else {
            return;
        };
        let pieces_len: usize = self
            .cookie_pieces
            .iter()
            .map(|piece| piece.len as usize)
            .sum();
        let separators_len = self.cookie_pieces.len() * COOKIE_SEPARATOR.len();
        bytes.reserve_exact(whole.len as usize + pieces_len + separators_len);
        let start = bytes.len();
        bytes.extend_from_within(whole.range());
        for piece in &self.cookie_pieces {
            bytes.extend_from_slice(COOKIE_SEPARATOR);
            bytes.extend_from_within(piece.range());
        }
        *whole = HeadSpan {
            start: start as u32,
            len: (bytes.len() - start) as u32,
        };
    }

    /// All fields have come: what they say together.
    fn finish(mut self, bytes: &mut Vec<u8>) -> Result<Sound, Wrong> {
        self.head.method = self.method.unwrap_or_default();
        self.head.target = self.path.unwrap_or_default();
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        self.join_pieces(bytes);
        let head = self.head;
        let Some(method) = self.method.map(|method| method.of(bytes)) else {
            return Err(Wrong::Malformed("there is no :method"));
        };
        if !crate::head::is_name(method) {
            return Err(Wrong::Malformed(":method is no method"));
        }
        let is_connect = method == b"CONNECT";
        let is_plain_connect = is_connect && head.connect_protocol.is_none();
        if head.connect_protocol.is_some() && !(is_connect && self.limits.h2_connect_protocol) {
            return Err(Wrong::Malformed(":protocol without CONNECT, or unasked"));
        }
        let is_options = method == b"OPTIONS";
        if is_plain_connect {
            //= rfc9113#8.5
            if self.scheme.is_some() || self.path.is_some() {
                return Err(Wrong::Malformed("CONNECT with :scheme or :path"));
            }
            head.target = self.authority.unwrap_or_default();
        } else {
            match self.scheme.map(|scheme| scheme.of(bytes)) {
                Some(b"http" | b"https") => {}
                Some(_) => return Err(Wrong::Malformed(":scheme is neither http nor https")),
                None => return Err(Wrong::Malformed("there is no :scheme")),
            }
            read_path(head, self.path, bytes, is_options)?;
            if head.target.len as usize > self.limits.target_bytes {
                return Err(Wrong::Refused(TARGET_TOO_LONG));
            }
        }
        read_authority(head, self.authority, bytes)?;
        let priority = self.priority.map(|value| Priority::read(value.of(bytes)));
        // What follows looks at fields, whose texts stand in the head.
        std::mem::swap(&mut head.bytes, bytes);
        let read = read_framing(head, is_connect);
        std::mem::swap(&mut head.bytes, bytes);
        let (length, expects_continue) = read?;
        Ok(Sound {
            length,
            expects_continue,
            priority: priority.unwrap_or_default(),
            is_tunnel: is_connect,
        })
    }
}

/// Splits `:path` into path and query.
//= rfc9113#8.3.1
fn read_path(
    head: &mut RequestHead,
    path: Option<HeadSpan>,
    bytes: &[u8],
    is_options: bool,
) -> Result<(), Wrong> {
    let Some(target) = path else {
        return Err(Wrong::Malformed("there is no :path"));
    };
    let text = target.of(bytes);
    head.path = target;
    match text {
        b"*" if is_options => return Ok(()),
        [b'/', ..] => {}
        _ => return Err(Wrong::Malformed(":path does not begin with a slash")),
    }
    let is_visible = |&byte: &u8| (0x21..0x7f).contains(&byte) && byte != b'#';
    if !text.iter().all(is_visible) {
        return Err(Wrong::Malformed(":path has bytes it must not have"));
    }
    if let Some(mark) = text.iter().position(|&byte| byte == b'?') {
        head.path.len = mark as u32;
        head.query = Some(HeadSpan {
            start: target.start + mark as u32 + 1,
            len: (text.len() - mark - 1) as u32,
        });
    }
    Ok(())
}

/// The host, from `:authority` or `Host`, as a `Host` field in any case.
//= rfc9113#8.3.1
fn read_authority(
    head: &mut RequestHead,
    authority: Option<HeadSpan>,
    bytes: &mut Vec<u8>,
) -> Result<(), Wrong> {
    if head.is_repeated(Known::Host) {
        return Err(Wrong::Malformed("there is more than one Host field"));
    }
    let host = head.field_mut(Known::Host).map(|(_, value)| *value);
    head.host = match (authority.filter(|authority| authority.len > 0), host) {
        (Some(authority), Some(host))
            if !authority.of(bytes).eq_ignore_ascii_case(host.of(bytes)) =>
        {
            return Err(Wrong::Malformed(":authority and Host differ"));
        }
        (Some(authority), _) => authority,
        (None, Some(host)) if host.len > 0 => host,
        //= rfc9114#4.3.1
        _ if head.protocol == Protocol::Http3 => return Err(Wrong::Malformed(NO_AUTHORITY)),
        _ => return Err(Wrong::Refused(Refusal::bad(NO_AUTHORITY))),
    };
    if !is_host(head.host.of(bytes)) {
        return Err(Wrong::Malformed(":authority is malformed"));
    }
    if host.is_none() {
        let name = HeadSpan {
            start: bytes.len() as u32,
            len: 4,
        };
        bytes.extend_from_slice(b"host");
        head.push_known(Some(Known::Host), name, head.host);
    }
    Ok(())
}

/// The announced size of the body, and whether the client waits to be asked for it.
fn read_framing(head: &RequestHead, is_connect: bool) -> Result<(Option<u64>, bool), Wrong> {
    let length = match head.value(Known::ContentLength) {
        None => None,
        Some(_) if is_connect || head.is_repeated(Known::ContentLength) => {
            return Err(Wrong::Malformed("more than one content-length field"));
        }
        Some(value) => match read_decimal(value) {
            Ok(length) => Some(length),
            Err(refusal) => return Err(Wrong::Malformed(refusal.reason)),
        },
    };
    match expects_continue(head) {
        Ok(expects_continue) => Ok((length, expects_continue)),
        Err(refusal) => Err(Wrong::Refused(refusal)),
    }
}
