//! A route with the numbers of the server for Prometheus, for who has its token.
//!
//! What they are is known to who looks at the server from inside ([`crate::inside`]).

mod answer;
pub mod config;
mod explain;

use hob_http::{Body, Known, Request, Response};
use hob_trace::exposition::ExpositionFormat;

use crate::handle::metrics::config::MetricsSettings;
use crate::handle::plain;
use hob_keeper::secret::is_same;

/// A route with the server's numbers.
pub struct Metrics {
    token: Vec<u8>,
}

/// Shortest and longest token, in bytes.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 1024;
/// What whoever has no token, or another, is told.
const ASKS_FOR_TOKEN: &str = "These numbers are for who has the token that the server's config names (token_file). \
     Send it in a field: Authorization: Bearer TOKEN";
/// What may be done here.
const READING: &[u8] = b"GET, HEAD";

impl Metrics {
    /// Reads the token.
    ///
    /// # Errors
    /// Why there is none.
    pub fn new(settings: &MetricsSettings) -> Result<Metrics, String> {
        let file = &settings.token_file;
        let fail = |text: String| format!("token file {}: {text}", file.display());
        let size = std::fs::metadata(file).map_err(|error| fail(error.to_string()))?;
        if size.len() > 2 * TOKEN_BYTES_MAX as u64 {
            return Err(fail(format!("it is larger than {TOKEN_BYTES_MAX} bytes")));
        }
        let text = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
        let token = text.trim_ascii();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
            let count = token.len();
            return Err(fail(format!(
                "a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} characters, this one {count}; \
                 `openssl rand -hex 32` makes a good one"
            )));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(fail(
                "a token is one line of letters, digits and signs, without spaces".to_owned(),
            ));
        }
        Ok(Metrics {
            token: token.to_vec(),
        })
    }

    /// What a client is told that may not see them, or asks in a way that is not answered.
    fn refusal(&self, request: &Request) -> Option<Response> {
        let head = request.head();
        if !matches!(head.method(), b"GET" | b"HEAD") {
            return Some(plain::wrong_method(head.method(), READING));
        }
        let given = head.value(Known::Authorization).unwrap_or_default();
        let is_bearer = given
            .get(..7)
            .is_some_and(|word| word.eq_ignore_ascii_case(b"bearer "));
        if is_bearer && is_same(given[7..].trim_ascii(), &self.token) {
            return None;
        }
        let mut refusal = Response::text(401, ASKS_FOR_TOKEN);
        let fields = refusal.fields_mut();
        fields.add(b"Server", plain::SERVER);
        fields.add(b"WWW-Authenticate", b"Bearer realm=\"metrics\"");
        Some(refusal)
    }
}

/// The numbers in this format.
pub fn ready(text: String, format: ExpositionFormat) -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", format.content_type().as_bytes());
    fields.add(b"Cache-Control", b"no-store");
    fields.add(b"Vary", b"Accept");
    Response::new(200, fields, Body::Bytes(text.into()))
}
