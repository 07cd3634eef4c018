//! What a browser is told while its answer is made: which style sheets and scripts the page will
//! want (RFC 8297).

use hob_http::{Fields, Request};
use hob_trace::Protocol;

/// Values of `Link`.
#[derive(Debug)]
pub struct EarlyHints(Vec<String>);

impl EarlyHints {
    /// `None` where there is nothing to tell.
    pub(crate) fn of(values: &[String]) -> Option<EarlyHints> {
        (!values.is_empty()).then(|| EarlyHints(values.to_vec()))
    }

    /// Tells a browser that goes to a page. What stands between a client of HTTP/1.1 and the server
    /// may take an interim answer for the final one.
    //= rfc8297#3
    pub fn send(&self, request: &Request) {
        let head = request.head();
        let is_sure = matches!(head.protocol(), Protocol::Http2 | Protocol::Http3);
        let mut modes = head.values(b"sec-fetch-mode");
        let goes_there = modes.next().is_some_and(|mode| mode == b"navigate");
        if !(is_sure && goes_there && head.method() == b"GET") {
            return;
        }
        let mut fields = Fields::new();
        for value in &self.0 {
            fields.add(b"Link", value.as_bytes());
        }
        request.interim(103, fields);
    }
}
