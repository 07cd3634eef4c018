//! A field of a block: what its name means, and whether it is lawful.

use crate::head::{self, HeadSpan, Known};

/// What the name of a request's field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFieldName {
    /// `:authority`
    Authority,
    /// `:method`
    Method,
    /// `:path`
    Path,
    /// `:scheme`
    Scheme,
    /// `:protocol` (RFC 8441)
    Protocol,
    /// A field; known ones have an index of their own in a head.
    Field(Option<Known>),
    /// `te`: only `trailers` is lawful.
    Te,
    /// No request may have it: another pseudo-header field, one that speaks of the connection, or
    /// no name in lower case.
    Unlawful,
}

impl RequestFieldName {
    /// What these bytes mean.
    //= rfc9113#8.2.1
    pub(crate) fn of(name: &[u8]) -> RequestFieldName {
        if name.first() == Some(&b':') {
            return match name {
                b":authority" => RequestFieldName::Authority,
                b":method" => RequestFieldName::Method,
                b":path" => RequestFieldName::Path,
                b":scheme" => RequestFieldName::Scheme,
                b":protocol" => RequestFieldName::Protocol,
                _ => RequestFieldName::Unlawful,
            };
        }
        if !head::is_name(name) || name.iter().any(u8::is_ascii_uppercase) {
            return RequestFieldName::Unlawful;
        }
        match Known::of(name) {
            Some(Known::Connection | Known::TransferEncoding | Known::Upgrade) => {
                RequestFieldName::Unlawful
            }
            Some(known) => RequestFieldName::Field(Some(known)),
            None if is_hop_by_hop(name) => RequestFieldName::Unlawful,
            None if name == b"te" => RequestFieldName::Te,
            None => RequestFieldName::Field(None),
        }
    }
}

/// Fields that speak of the connection, besides those with an index of their own.
//= rfc9113#8.2.2
pub(crate) fn is_hop_by_hop(name: &[u8]) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case(b"keep-alive") || name.eq_ignore_ascii_case(b"connection"),
        16 => name.eq_ignore_ascii_case(b"proxy-connection"),
        17 => name.eq_ignore_ascii_case(b"transfer-encoding"),
        7 => name.eq_ignore_ascii_case(b"upgrade"),
        _ => false,
    }
}

/// True for a value without control characters and without white space around it.
//= rfc9113#8.2.1
pub(crate) fn is_lawful(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_blank(value.first())
        && !is_blank(value.last())
        && value
            .iter()
            .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// One field of a block; its texts stand in the buffer the block was decoded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(crate) name_at: HeadSpan,
    pub(crate) value_at: HeadSpan,
    /// What its name means.
    pub name: RequestFieldName,
    /// Its value may stand in a message.
    pub has_lawful_value: bool,
}

impl Field {
    /// Name and value in `buffer`.
    pub fn texts<'b>(&self, buffer: &'b [u8]) -> (&'b [u8], &'b [u8]) {
        (self.name_at.of(buffer), self.value_at.of(buffer))
    }
}

/// Appends a text; says where it stands.
pub(crate) fn append(buffer: &mut Vec<u8>, text: &[u8]) -> HeadSpan {
    let start = buffer.len();
    buffer.extend_from_slice(text);
    span(start, buffer.len())
}

/// From here to there.
pub(crate) fn span(start: usize, end: usize) -> HeadSpan {
    HeadSpan {
        start: start as u32,
        len: (end - start) as u32,
    }
}
