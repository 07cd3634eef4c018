//! The protocol of uWSGI as bytes: a request. Knows no socket and no time.
//!
//! ```text
//! there    0 u8 modifier1 | 1 u16 bytes of variables | 3 u8 modifier2
//!          4 *(u16 bytes, name, u16 bytes, value)  body          numbers are little-endian
//! back     what a CGI program prints, mostly behind a line such as `HTTP/1.1 200 OK`, until the
//!          connection ends
//! ```
//!
//! Source: The uwsgi (lowercase) protocol, in the documentation of uWSGI 2.0.

use crate::handle::script::variables::{ProgramRequest, VariableSink};
use crate::handle::upstream::fail::upstream_reasons;
use crate::handle::upstream::program::check::CheckedPath;
use crate::handle::upstream::program::protocol::{
    ProgramProtocol, ProtocolWords, UnfitVariables, write_variables,
};

/// Bytes before the variables.
const HEADER_BYTES: usize = 4;

/// The protocol, as it is spoken with one application.
#[derive(Debug)]
pub(crate) struct UwsgiProtocol {
    pub(crate) modifier1: u8,
    pub(crate) modifier2: u8,
}

static WORDS: ProtocolWords = ProtocolWords {
    key: "uwsgi",
    dev: "uwsgi.dev",
    reasons: upstream_reasons!("uwsgi", "program"),
};

impl ProgramProtocol for UwsgiProtocol {
    fn words(&self) -> &'static ProtocolWords {
        &WORDS
    }

    fn head(
        &self,
        asked: &ProgramRequest<'_>,
        env: &[(String, String)],
    ) -> Result<Vec<u8>, UnfitVariables> {
        let mut head = UwsgiHead::new(self.modifier1, self.modifier2);
        write_variables(asked, env, &mut head);
        head.finish()
    }

    fn check(&self, asked: &CheckedPath<'_>) -> Vec<u8> {
        let mut head = UwsgiHead::new(self.modifier1, self.modifier2);
        asked.write(&["PATH_INFO"], &mut head);
        // Who has a longer path in the config is told that there is no answer.
        head.finish().unwrap_or_default()
    }
}

/// The head of a request.
pub struct UwsgiHead {
    bytes: Vec<u8>,
}

impl UwsgiHead {
    /// That of a request without variables yet.
    pub fn new(modifier1: u8, modifier2: u8) -> UwsgiHead {
        let mut bytes = Vec::with_capacity(2048);
        bytes.extend_from_slice(&[modifier1, 0, 0, modifier2]);
        UwsgiHead { bytes }
    }

    /// All of it; the body follows.
    ///
    /// # Errors
    /// The variables are too long.
    pub fn finish(mut self) -> Result<Vec<u8>, UnfitVariables> {
        // Where all of them fit, each does.
        let len = u16::try_from(self.bytes.len() - HEADER_BYTES);
        let len = len.map_err(|_| UnfitVariables::TooLong)?;
        self.bytes[1..3].copy_from_slice(&len.to_le_bytes());
        Ok(self.bytes)
    }
}

impl VariableSink for UwsgiHead {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        let begin = self.bytes.len();
        sized(&mut self.bytes, name);
        if !sized(&mut self.bytes, value) {
            self.bytes.truncate(begin);
        }
    }
}

/// Writes a part behind its length.
fn sized<T>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    out.extend_from_slice(&[0; 2]);
    let begin = out.len();
    let written = write(out);
    let len = (out.len() - begin) as u16;
    out[begin - 2..begin].copy_from_slice(&len.to_le_bytes());
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(head: &mut UwsgiHead, name: &[u8], value: &[u8]) {
        head.add(
            |out| out.extend_from_slice(name),
            |out| {
                out.extend_from_slice(value);
                true
            },
        );
    }

    #[test]
    fn request_is_what_the_documentation_says() {
        let mut head = UwsgiHead::new(5, 1);
        add(&mut head, b"METHOD", b"GET");
        head.add(|out| out.extend_from_slice(b"NONE"), |_| false);
        add(&mut head, b"E", b"");
        assert_eq!(
            head.finish().unwrap(),
            b"\x05\x12\x00\x01\x06\x00METHOD\x03\x00GET\x01\x00E\x00\x00"
        );
        assert_eq!(UwsgiHead::new(0, 0).finish().unwrap(), [0; 4]);
    }

    #[test]
    fn variables_that_do_not_fit_are_refused_and_never_cut() {
        let of = |bytes: usize| {
            let mut head = UwsgiHead::new(0, 0);
            add(&mut head, b"A", &vec![b'x'; bytes - 5]);
            head.finish()
        };
        let most = of(65_535).unwrap();
        assert_eq!((&most[..4], most.len()), (&[0, 255, 255, 0][..], 65_539));
        for bytes in [65_536, 65_535 + 65_536, 200_000] {
            assert_eq!(of(bytes), Err(UnfitVariables::TooLong));
        }
    }
}
