//! SCGI as bytes: a request. Knows no socket and no time.
//!
//! ```text
//! there    LENGTH ":" *(name NUL value NUL) ","  body
//!          CONTENT_LENGTH first, SCGI=1 behind it, each name once; LENGTH in decimal digits
//! back     what a CGI program prints, until the connection ends
//! ```
//!
//! Source: SCGI, A Simple Common Gateway Interface alternative (Schemenauer, 2008).

use hob_http::digits::push_decimal;

use crate::handle::script::variables::{ProgramRequest, VariableSink};
use crate::handle::upstream::fail::upstream_reasons;
use crate::handle::upstream::program::check::CheckedPath;
use crate::handle::upstream::program::protocol::{
    ProgramProtocol, ProtocolWords, UnfitVariables, write_variables,
};

/// Variables that the protocol itself asks for.
pub(crate) const OWN_VARIABLES: [&[u8]; 2] = [b"CONTENT_LENGTH", b"SCGI"];

/// SCGI, as it is spoken with one program.
#[derive(Debug)]
pub(crate) struct ScgiProtocol;

static WORDS: ProtocolWords = ProtocolWords {
    key: "scgi",
    dev: "scgi.dev",
    reasons: upstream_reasons!("scgi", "program"),
};

impl ProgramProtocol for ScgiProtocol {
    fn words(&self) -> &'static ProtocolWords {
        &WORDS
    }

    fn head(
        &self,
        asked: &ProgramRequest<'_>,
        env: &[(String, String)],
    ) -> Result<Vec<u8>, UnfitVariables> {
        let mut head = ScgiHead::new(asked.body_bytes.unwrap_or_default());
        write_variables(asked, env, &mut head);
        head.finish()
    }

    fn check(&self, asked: &CheckedPath<'_>) -> Vec<u8> {
        let mut head = ScgiHead::new(0);
        asked.write(&["PATH_INFO"], &mut head);
        // The config lets no NUL in.
        head.finish().unwrap_or_default()
    }
}

/// The head of a request.
pub struct ScgiHead {
    variables: Vec<u8>,
    has_nul: bool,
}

impl ScgiHead {
    /// That of a request with a body of so many bytes, and no other variables yet.
    pub fn new(body_bytes: u64) -> ScgiHead {
        let mut variables = Vec::with_capacity(2048);
        variables.extend_from_slice(b"CONTENT_LENGTH\0");
        push_decimal(body_bytes, &mut variables);
        variables.extend_from_slice(b"\0SCGI\x001\0");
        ScgiHead {
            variables,
            has_nul: false,
        }
    }

    /// All of it; the body follows.
    ///
    /// # Errors
    /// A variable cannot be told from the next.
    pub fn finish(self) -> Result<Vec<u8>, UnfitVariables> {
        if self.has_nul {
            return Err(UnfitVariables::Nul);
        }
        let mut head = Vec::with_capacity(self.variables.len() + 24);
        push_decimal(self.variables.len() as u64, &mut head);
        head.push(b':');
        head.extend_from_slice(&self.variables);
        head.push(b',');
        Ok(head)
    }
}

impl VariableSink for ScgiHead {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        let out = &mut self.variables;
        let begin = out.len();
        name(out);
        let name_end = out.len();
        out.push(0);
        // Those of the protocol are there.
        let is_new = !OWN_VARIABLES.contains(&&out[begin..name_end]);
        if !is_new || !value(out) {
            out.truncate(begin);
            return;
        }
        let has_nul = |part: &[u8]| memchr::memchr(0, part).is_some();
        self.has_nul |= has_nul(&out[begin..name_end]) || has_nul(&out[name_end + 1..]);
        out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(body_bytes: u64, variables: &[(&[u8], &[u8])]) -> Result<Vec<u8>, UnfitVariables> {
        let mut head = ScgiHead::new(body_bytes);
        for (name, value) in variables {
            head.add(
                |out| out.extend_from_slice(name),
                |out| {
                    out.extend_from_slice(value);
                    true
                },
            );
        }
        head.add(|out| out.extend_from_slice(b"NONE"), |_| false);
        head.finish()
    }

    #[test]
    fn request_is_what_the_specification_says() {
        // The example of the specification.
        let variables: [(&[u8], &[u8]); 2] = [
            (b"REQUEST_METHOD", b"POST"),
            (b"REQUEST_URI", b"/deepthought"),
        ];
        assert_eq!(
            head(27, &variables).unwrap(),
            b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0REQUEST_METHOD\0POST\0REQUEST_URI\0/deepthought\0,"
        );
        assert_eq!(
            head(0, &[]).unwrap(),
            b"24:CONTENT_LENGTH\x000\0SCGI\x001\0,"
        );
    }

    #[test]
    fn what_the_protocol_says_is_said_once() {
        let variables: [(&[u8], &[u8]); 3] =
            [(b"CONTENT_LENGTH", b"9"), (b"SCGI", b"2"), (b"EMPTY", b"")];
        assert_eq!(
            head(5, &variables).unwrap(),
            b"31:CONTENT_LENGTH\x005\0SCGI\x001\0EMPTY\0\0,"
        );
    }

    #[test]
    fn variable_that_would_end_early_is_refused() {
        for variable in [(&b"A"[..], &b"b\0c"[..]), (b"A\0B", b"c")] {
            assert_eq!(head(0, &[variable]), Err(UnfitVariables::Nul));
        }
    }
}
