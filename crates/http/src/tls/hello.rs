//! A look at a ClientHello before rustls has it: whether this is TLS at all, and which host it is
//! for, because the host decides which certificate and which client rule the handshake has.
//!
//! Only what is needed is read, and nothing is judged that rustls judges again: what is odd beyond
//! the name gives [`Hello::Client`] without one, and rustls says what is wrong with it.
//!
//! ```text
//! record    type 22, version 2, length 2, then a part of the message
//! message   type 1, length 3, version 2, random 32, session id, suites, compressions, extensions
//! extension type 2, length 2; type 0 is the server name: list length 2, kind 1 (0), length 2, name
//! ```

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hello {
    /// The begin of a ClientHello, as far as it has come.
    Partial,
    /// A whole ClientHello, and the host it names, in lower case.
    Client(Option<String>),
    /// A request in clear text.
    ClearText,
    /// A ClientHello in a version that nobody may speak.
    Outdated,
    /// Neither.
    Foreign,
}

/// What the bytes a connection begins with are.
pub fn look(input: &[u8]) -> Hello {
    let Some(first) = input.first() else {
        return Hello::Partial;
    };
    if first.is_ascii_uppercase() {
        return Hello::ClearText;
    }
    if *first != HANDSHAKE || input.get(1).is_some_and(|major| *major != 3) {
        return Hello::Foreign;
    }
    match message(input) {
        HelloMessage::Whole(body) if is_outdated(&body) => Hello::Outdated,
        HelloMessage::Whole(body) => Hello::Client(server_name(&body)),
        HelloMessage::Partial => Hello::Partial,
        HelloMessage::Foreign => Hello::Foreign,
    }
}

/// Whether a whole ClientHello asks for this protocol and no other, as an authority does that looks
/// for `tls-alpn-01`.
//= rfc8737#3
pub fn asks_only_for(input: &[u8], protocol: &[u8]) -> bool {
    let HelloMessage::Whole(body) = message(input) else {
        return false;
    };
    extension(&body, PROTOCOLS).is_some_and(|content| {
        let mut names = HelloReader(content);
        let list = names.block_u16();
        let mut list = HelloReader(list.unwrap_or_default());
        list.block_u8() == Some(protocol) && list.0.is_empty() && names.0.is_empty()
    })
}

/// How much of a message has come, and what it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gathering {
    /// Not all of it.
    Partial,
    /// All of it, and the host it names.
    Whole(Option<String>),
    /// It is no ClientHello.
    Foreign,
}

/// The same for a message that does not come in records, as in QUIC.
pub(crate) fn look_at_message(message: &[u8]) -> Gathering {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Gathering::Foreign;
    }
    let Some([_, a, b, c]) = message.first_chunk() else {
        return Gathering::Partial;
    };
    let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    match message.get(4..4 + len) {
        Some(body) => Gathering::Whole(server_name(body)),
        None if len > MESSAGE_BYTES_MAX => Gathering::Foreign,
        None => Gathering::Partial,
    }
}

/// No ClientHello of use is longer.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SSL_3: u16 = 0x0300;
const SERVER_NAME: u16 = 0;
const PROTOCOLS: u16 = 16;
const RECORD_HEADER_BYTES: usize = 5;
/// A record of a handshake is in clear text and no larger.
const FRAGMENT_BYTES_MAX: usize = 1 << 14;

enum HelloMessage {
    Whole(Vec<u8>),
    Partial,
    Foreign,
}

/// The body of the ClientHello, which may be spread over several records.
fn message(mut input: &[u8]) -> HelloMessage {
    let mut message: Vec<u8> = Vec::new();
    loop {
        let Some((header, rest)) = input.split_at_checked(RECORD_HEADER_BYTES) else {
            return HelloMessage::Partial;
        };
        let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE || header[1] != 3 || len == 0 || len > FRAGMENT_BYTES_MAX {
            return HelloMessage::Foreign;
        }
        let fragment = &rest[..len.min(rest.len())];
        message.extend_from_slice(fragment);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return HelloMessage::Foreign;
        }
        if let Some([_, a, b, c]) = message.first_chunk() {
            let whole = 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if message.len() >= whole {
                message.truncate(whole);
                message.drain(..4);
                return HelloMessage::Whole(message);
            }
        }
        if fragment.len() < len {
            return HelloMessage::Partial;
        }
        input = &rest[len..];
    }
}

/// It says SSL 3.0 or less, whatever its extensions say.
//= rfc8446#D.5
fn is_outdated(body: &[u8]) -> bool {
    body.first_chunk()
        .is_some_and(|version| u16::from_be_bytes(*version) <= SSL_3)
}

/// The host a ClientHello names.
fn server_name(body: &[u8]) -> Option<String> {
    host_of(extension(body, SERVER_NAME)?)
}

/// The content of an extension of a ClientHello.
fn extension(body: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut reader = HelloReader(body);
    reader.take(2 + 32)?;
    reader.block_u8()?;
    reader.block_u16()?;
    reader.block_u8()?;
    let mut extensions = HelloReader(reader.block_u16()?);
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.block_u16()?;
        if kind == wanted {
            return Some(content);
        }
    }
    None
}

fn host_of(extension: &[u8]) -> Option<String> {
    let mut names = HelloReader(HelloReader(extension).block_u16()?);
    if names.take(1)? != [0] {
        return None;
    }
    let name = names.block_u16()?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if name.is_empty() || name.len() > 253 || !name.iter().all(is_name) {
        return None;
    }
    let name = String::from_utf8(name.to_ascii_lowercase()).ok()?;
    // A root label says nothing more, and no certificate has one.
    Some(name.strip_suffix('.').map_or(name.clone(), str::to_owned))
}

/// Bytes still to be read; everything gives `None` beyond their end.
struct HelloReader<'a>(&'a [u8]);

impl<'a> HelloReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn block_u8(&mut self) -> Option<&'a [u8]> {
        let len = self.take(1)?[0];
        self.take(usize::from(len))
    }

    fn block_u16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with these extensions, in records of at most `piece` bytes.
    fn hello(extensions: &[u8], piece: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend_from_slice(&[7; 32]);
        body.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0]);
        body.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
        body.extend_from_slice(extensions);
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend_from_slice(&(body.len() as u16).to_be_bytes());
        message.extend_from_slice(&body);
        let mut records = Vec::new();
        for fragment in message.chunks(piece) {
            records.extend_from_slice(&[HANDSHAKE, 3, 1]);
            records.extend_from_slice(&(fragment.len() as u16).to_be_bytes());
            records.extend_from_slice(fragment);
        }
        records
    }

    fn name_extension(name: &[u8]) -> Vec<u8> {
        let len = name.len() as u16;
        let mut all = vec![0, 0];
        all.extend_from_slice(&(len + 5).to_be_bytes());
        all.extend_from_slice(&(len + 3).to_be_bytes());
        all.push(0);
        all.extend_from_slice(&len.to_be_bytes());
        all.extend_from_slice(name);
        all
    }

    #[test]
    fn name_is_found_however_the_hello_is_cut_into_records() {
        let mut extensions = vec![0, 43, 0, 3, 2, 3, 4];
        extensions.extend_from_slice(&name_extension(b"WWW.Example.org"));
        for piece in [1, 2, 7, 50, 16384] {
            let bytes = hello(&extensions, piece);
            let named = Hello::Client(Some("www.example.org".to_owned()));
            assert_eq!(look(&bytes), named, "{piece}");
            for end in 0..bytes.len() {
                assert_eq!(look(&bytes[..end]), Hello::Partial, "{piece} {end}");
            }
        }
    }

    #[test]
    fn hello_without_a_usable_name_is_one_all_the_same() {
        assert_eq!(look(&hello(&[], 100)), Hello::Client(None));
        for name in [&b"a b"[..], b"", b"\xc3\xa4.example"] {
            let bytes = hello(&name_extension(name), 1000);
            assert_eq!(look(&bytes), Hello::Client(None), "{name:?}");
        }
        let cut = hello(&[0, 0, 0, 9, 0], 1000);
        assert_eq!(look(&cut), Hello::Client(None));
    }

    #[test]
    fn only_one_protocol_asked_for_alone_is_taken_for_it() {
        let asks = |list: &[u8]| {
            let mut extension = name_extension(b"example.org");
            extension.extend_from_slice(&[0, 16, 0, list.len() as u8 + 2]);
            extension.extend_from_slice(&[0, list.len() as u8]);
            extension.extend_from_slice(list);
            asks_only_for(&hello(&extension, 7), b"acme-tls/1")
        };
        assert!(asks(b"\x0aacme-tls/1"));
        assert!(!asks(b"\x02h2\x0aacme-tls/1"));
        assert!(!asks(b"\x0aacme-tls/1\x02h2"));
        assert!(!asks(b"\x02h2"));
        assert!(!asks(b"\x0bacme-tls/1"));
        assert!(!asks(b""));
        assert!(!asks_only_for(&hello(&[], 100), b"acme-tls/1"));
        assert!(!asks_only_for(b"GET / HTTP/1.1\r\n", b"acme-tls/1"));
    }

    #[test]
    fn message_without_records_is_read_alike() {
        let bytes = hello(&name_extension(b"a.example"), 16384);
        let message = &bytes[RECORD_HEADER_BYTES..];
        let named = Gathering::Whole(Some("a.example".to_owned()));
        assert_eq!(look_at_message(message), named);
        for end in 0..message.len() {
            assert_eq!(look_at_message(&message[..end]), Gathering::Partial);
        }
        assert_eq!(look_at_message(&[2, 0]), Gathering::Foreign);
        assert_eq!(look_at_message(&[1, 1, 0, 1]), Gathering::Foreign, "long");
    }

    #[test]
    fn what_is_no_hello_is_told_apart() {
        assert_eq!(look(b"GET / HTTP/1.1\r\n"), Hello::ClearText);
        assert_eq!(look(b"P"), Hello::ClearText);
        assert_eq!(look(b"\x80\x2e\x01\x03\x01"), Hello::Foreign, "SSL 2");
        assert_eq!(look(b"\x16\x02"), Hello::Foreign);
        assert_eq!(look(b"\x16\x03\x01\x00\x00"), Hello::Foreign, "empty");
        assert_eq!(look(b"\x16\x03\x01\xff\xff"), Hello::Foreign, "too long");
        assert_eq!(look(b"\x16\x03\x01\x00\x04\x02"), Hello::Foreign);
        assert_eq!(look(b""), Hello::Partial);
    }
}
