//! W3C Trace Context, level 1: the request field `traceparent`, read and written.
//!
//! ```text
//! 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//! |  |                                |                flags: bit 0 is "sampled"
//! |  trace id, 16 bytes               span id of the caller, 8 bytes
//! version
//! ```
//!
//! Only lower-case hexadecimal digits are right, and ids of zeros are not. A version above 00 may
//! have more behind the flags, after one more `-`; its first four parts mean the same.

/// Bytes of a `traceparent` of version 00.
pub const TRACEPARENT_BYTES: usize = 55;
/// Longest `traceparent` of a later version that is read, in bytes.
pub const TRACEPARENT_BYTES_MAX: usize = 512;
/// Longest `tracestate` that is passed on, in bytes.
pub const TRACESTATE_BYTES_MAX: usize = 512;
/// Most members of a `tracestate`.
const TRACESTATE_MEMBERS_MAX: usize = 32;

const SAMPLED: u8 = 1;

/// The trace a request belongs to, and the request's own span in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The trace; zeros where there is none.
    pub id: [u8; 16],
    /// The request's own span; zeros where it has none.
    pub span: [u8; 8],
    /// The span of who asked; zeros where nobody said.
    pub parent: [u8; 8],
    /// The request's span is exported, and those called from it should be.
    pub is_sampled: bool,
}

/// What a caller says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The trace.
    pub trace: [u8; 16],
    /// Its span.
    pub span: [u8; 8],
    /// It may have recorded its span.
    pub is_sampled: bool,
}

impl Trace {
    /// No trace.
    pub const NONE: Trace = Trace {
        id: [0; 16],
        span: [0; 8],
        parent: [0; 8],
        is_sampled: false,
    };

    /// True where there is a trace.
    #[inline]
    pub fn is_some(&self) -> bool {
        self.id != [0; 16]
    }

    /// The trace's id as 32 hexadecimal digits.
    pub fn id_text(&self) -> [u8; 32] {
        let mut text = [0; 32];
        put_hex(&self.id, &mut text);
        text
    }

    /// What who is called from this request is told as `traceparent`.
    //= w3c-trace-context#traceparent-header
    pub fn traceparent(&self) -> [u8; TRACEPARENT_BYTES] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        put_hex(&self.id, &mut text[3..35]);
        // Without a span of its own the request is invisible: its caller is the parent.
        let span = match self.span {
            [0, 0, 0, 0, 0, 0, 0, 0] => &self.parent,
            ref own => own,
        };
        put_hex(span, &mut text[36..52]);
        put_hex(&[u8::from(self.is_sampled)], &mut text[53..55]);
        text
    }
}

impl Caller {
    /// Reads a `traceparent`; `None` where it is not one.
    pub fn parse(text: &[u8]) -> Option<Caller> {
        if text.len() < TRACEPARENT_BYTES || text.len() > TRACEPARENT_BYTES_MAX {
            return None;
        }
        let (text, more) = text.split_at(TRACEPARENT_BYTES);
        let mut version = [0];
        read_hex(&text[..2], &mut version)?;
        match (version[0], more.first()) {
            (0xff, _) => return None,
            (0, Some(_)) => return None,
            (_, Some(byte)) if *byte != b'-' => return None,
            _ => {}
        }
        if [text[2], text[35], text[52]] != *b"---" {
            return None;
        }
        let (mut trace, mut span, mut flags) = ([0; 16], [0; 8], [0]);
        read_hex(&text[3..35], &mut trace)?;
        read_hex(&text[36..52], &mut span)?;
        read_hex(&text[53..55], &mut flags)?;
        (trace != [0; 16] && span != [0; 8]).then_some(Caller {
            trace,
            span,
            is_sampled: flags[0] & SAMPLED != 0,
        })
    }
}

/// True for a `tracestate` that may be passed on: of members `key=value`, not too many, not too
/// long. Names and values are for those who wrote them; only what could not stand in a field or in
/// a list is refused.
//= w3c-trace-context#tracestate-header
pub fn is_tracestate(text: &[u8]) -> bool {
    let is_member = |member: &[u8]| {
        let member = trimmed(member);
        let Some(border) = member.iter().position(|byte| *byte == b'=') else {
            // Empty members are allowed.
            return member.is_empty();
        };
        let (key, value) = (&member[..border], &member[border + 1..]);
        let is_key_byte = |byte: &u8| match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            other => b"_-*/@".contains(other),
        };
        let is_value_byte = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'=';
        (1..=256).contains(&key.len())
            && key.iter().all(is_key_byte)
            && (1..=256).contains(&value.len())
            && value.iter().all(is_value_byte)
    };
    let members = || text.split(|byte| *byte == b',');
    !text.is_empty()
        && text.len() <= TRACESTATE_BYTES_MAX
        && members().count() <= TRACESTATE_MEMBERS_MAX
        && members().all(is_member)
}

/// Without the blanks that may stand around members of a list.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

fn put_hex(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

fn read_hex(text: &[u8], bytes: &mut [u8]) -> Option<()> {
    for (pair, byte) in text.chunks_exact(2).zip(bytes) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn with(at: usize, text: &[u8]) -> Vec<u8> {
        let mut changed = GIVEN.to_vec();
        changed[at..at + text.len()].copy_from_slice(text);
        changed
    }

    #[test]
    fn what_is_read_is_written_again() {
        let caller = Caller::parse(GIVEN).unwrap();
        assert!(caller.is_sampled);
        let mut trace = Trace {
            id: caller.trace,
            parent: caller.span,
            is_sampled: true,
            ..Trace::NONE
        };
        assert_eq!(&trace.traceparent(), GIVEN);
        assert_eq!(&trace.id_text(), b"4bf92f3577b34da6a3ce929d0e0e4736");
        trace.span = [0xab; 8];
        trace.is_sampled = false;
        let told = b"00-4bf92f3577b34da6a3ce929d0e0e4736-abababababababab-00";
        assert_eq!(&trace.traceparent(), told);
    }

    #[test]
    fn flags_other_than_sampled_and_later_versions_are_read() {
        assert!(Caller::parse(&with(53, b"03")).unwrap().is_sampled);
        assert!(!Caller::parse(&with(53, b"fe")).unwrap().is_sampled);
        let mut later = with(0, b"cc");
        assert!(Caller::parse(&later).is_some());
        later.extend_from_slice(b"-what-the-future-will-be-like");
        assert!(Caller::parse(&later).is_some());
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        let mut long = with(0, b"cc");
        long.resize(TRACEPARENT_BYTES_MAX + 1, b'-');
        let more = [GIVEN, b"-00"].concat();
        let mut joined = with(0, b"cc");
        joined.push(b'.');
        for wrong in [
            &b""[..],
            &GIVEN[..54],
            &more,
            &long,
            &joined,
            &with(0, b"ff"),
            &with(0, b"0x"),
            &with(2, b"_"),
            &with(35, b"_"),
            &with(52, b"_"),
            &with(3, b"4BF9"),
            &with(3, &[b'0'; 32]),
            &with(36, &[b'0'; 16]),
            &with(53, b"0g"),
        ] {
            assert_eq!(Caller::parse(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn tracestate_is_a_list_of_members() {
        for right in [
            "congo=t61rcWkgMzE",
            "rojo=00f067aa0ba902b7 , congo=t61,",
            "tenant@vendor=a b!c",
        ] {
            assert!(is_tracestate(right.as_bytes()), "{right}");
        }
        let long = format!("a={}", "x".repeat(TRACESTATE_BYTES_MAX));
        let many = "a=1,".repeat(TRACESTATE_MEMBERS_MAX);
        for wrong in [
            "", "a", "=b", "a=", "A=b", "a=b=c", "a=\u{e9}", &long, &many,
        ] {
            assert!(!is_tracestate(wrong.as_bytes()), "{wrong}");
        }
    }
}
