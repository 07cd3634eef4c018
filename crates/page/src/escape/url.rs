//! Where in an address the author's text is, and which schemes data may bring.

/// Schemes an address from data may have.
const SCHEMES: &[&str] = &["http", "https", "mailto"];
/// Bytes of an address before its scheme is known to be none.
const SCHEME_BYTES_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UrlState {
    /// A scheme may still come.
    Start,
    Path,
    Query,
}

/// Follows an address.
#[derive(Clone, Debug)]
pub(super) struct UrlPlace {
    state: UrlState,
    head: Vec<u8>,
    head_has_data: bool,
}

/// What became of a byte of the author.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UrlByte {
    Plain,
    /// A `:` would make a scheme of data.
    Defused,
    /// The rest is a script.
    Script,
    /// The rest is of a scheme in which data has no place.
    Foreign,
}

/// How data is written here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UrlData {
    Address,
    Part,
    Refused,
}

impl UrlPlace {
    pub(super) fn new() -> Self {
        Self {
            state: UrlState::Start,
            head: Vec::new(),
            head_has_data: false,
        }
    }

    /// A byte of the author's address.
    pub(super) fn author(&mut self, byte: u8) -> UrlByte {
        match (self.state, byte) {
            (UrlState::Start, b':') => {
                self.state = UrlState::Path;
                let scheme = scheme_of(&self.head);
                if self.head_has_data && !is_harmless(&scheme) {
                    return UrlByte::Defused;
                }
                match &*scheme {
                    "javascript" => UrlByte::Script,
                    "data" | "vbscript" => UrlByte::Foreign,
                    _ => UrlByte::Plain,
                }
            }
            (UrlState::Start | UrlState::Path, b'?' | b'#') => {
                self.state = UrlState::Query;
                UrlByte::Plain
            }
            (UrlState::Start, b'/') => {
                self.state = UrlState::Path;
                UrlByte::Plain
            }
            (UrlState::Start, _) => {
                self.add_to_head(&[byte]);
                UrlByte::Plain
            }
            _ => UrlByte::Plain,
        }
    }

    /// How this data is to be written; the place is behind it then.
    pub(super) fn data(&mut self, bytes: &[u8]) -> UrlData {
        if self.state == UrlState::Query {
            return UrlData::Part;
        }
        if self.state == UrlState::Start {
            let end = bytes.iter().position(|byte| b":/?#\\".contains(byte));
            let before = &bytes[..end.unwrap_or(bytes.len())];
            self.add_to_head(before);
            self.head_has_data |= !bytes.is_empty();
            match end.map(|at| bytes[at]) {
                None => return UrlData::Address,
                Some(b':') if !is_harmless(&scheme_of(&self.head)) => return UrlData::Refused,
                Some(_) => self.state = UrlState::Path,
            }
        }
        if bytes.iter().any(|byte| matches!(byte, b'?' | b'#')) {
            self.state = UrlState::Query;
        }
        UrlData::Address
    }

    fn add_to_head(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
        if self.head.len() > SCHEME_BYTES_MAX {
            self.state = UrlState::Path;
        }
    }
}

/// The scheme as browsers see it: without blanks and control characters.
fn scheme_of(head: &[u8]) -> String {
    let letters = head.iter().filter(|byte| **byte > b' ');
    letters
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect()
}

fn is_harmless(scheme: &str) -> bool {
    SCHEMES.contains(&scheme)
}
