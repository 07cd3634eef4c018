//! Requests, written out once before the run.

use std::sync::Arc;

use crate::entry::RequestSpec;
use crate::limits::COPIED_BODY_BYTES_MAX;
use crate::plan::{BenchPlan, Protocol, Reuse};

/// One request as it goes over the wire in HTTP/1, head and body.
#[derive(Debug)]
pub(crate) struct H1Request {
    pub(crate) bytes: Vec<u8>,
    /// Where the target belongs, of a request that gets it later.
    target_at: usize,
    /// Where the body begins.
    body_at: usize,
}

impl H1Request {
    /// The request with a target, but for a long body.
    pub(crate) fn write_to(&self, target: &[u8], out: &mut Vec<u8>) {
        let end = self.bytes.len() - self.long_body().len();
        let (before, behind) = self.bytes[..end].split_at(self.target_at);
        out.clear();
        out.extend_from_slice(before);
        out.extend_from_slice(target);
        out.extend_from_slice(behind);
    }

    /// A body that is not copied for every request, but sent behind what was written.
    pub(crate) fn long_body(&self) -> &[u8] {
        let body = &self.bytes[self.body_at..];
        match body.len() > COPIED_BODY_BYTES_MAX {
            true => body,
            false => &[],
        }
    }
}

/// The fields of a request as HTTP/2 and HTTP/3 have them, in the order they are sent. An empty
/// `:path` stands for one that the request gets later.
pub(crate) type Fields = Vec<(String, String)>;

/// Does a field stand for a path that the request gets later?
pub(crate) fn is_path_to_come((name, value): &(String, String)) -> bool {
    name == ":path" && value.is_empty()
}

/// Fields written out, perhaps without the path.
#[derive(Debug, Default)]
pub(crate) struct RequestFieldBlock {
    pub(crate) bytes: Vec<u8>,
    /// Where the path belongs, of one that gets it later.
    pub(crate) path_at: usize,
}

impl RequestFieldBlock {
    /// Puts the fields down, with a path where they have none.
    pub(crate) fn write_to(&self, path: &[u8], out: &mut Vec<u8>) {
        let (before, behind) = self.bytes.split_at(self.path_at);
        out.extend_from_slice(before);
        out.extend_from_slice(path);
        out.extend_from_slice(behind);
    }
}

/// Fields that decide where a request ends; they follow from the plan.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
];

/// Fields of one connection, which later versions do not have. //= rfc9113#8.2.2
const OLD: &[&str] = &["keep-alive", "proxy-connection", "te"];

/// What several requests on one connection need to know of a kind of request.
#[derive(Debug, Clone)]
pub struct RequestProfile {
    pub(crate) body: Arc<[u8]>,
    pub(crate) is_head: bool,
    /// The hash of the answer's body is wanted.
    pub(crate) is_hashed: bool,
}

impl RequestProfile {
    /// Of a request for a body, without one of its own.
    pub fn plain() -> RequestProfile {
        RequestProfile {
            body: Arc::from([]),
            is_head: false,
            is_hashed: false,
        }
    }
}

/// Says what cannot be sent.
fn check(plan: &BenchPlan, entry: &RequestSpec) -> Result<(), String> {
    let method = plan.method_of(entry);
    if !is_token(method) {
        return Err(format!("{method:?} is no method; write GET, POST, ..."));
    }
    if method.eq_ignore_ascii_case("CONNECT") {
        return Err("CONNECT makes a tunnel, which is no request to measure".to_owned());
    }
    for (name, value) in plan.fields_of(entry) {
        check_field(name, value)?;
        let is_old = OLD.iter().any(|old| name.eq_ignore_ascii_case(old));
        if is_old && plan.protocol != Protocol::H1 {
            return Err(format!(
                "there is no field {name} in {}",
                plan.protocol.title()
            ));
        }
    }
    Ok(())
}

/// The fields of a request, or what cannot be sent.
pub fn fields(plan: &BenchPlan, entry: &RequestSpec) -> Result<Fields, String> {
    check(plan, entry)?;
    let url = &entry.url;
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let host = plan.fields_of(entry).find(|(name, _)| is_host(name));
    let host = host.map_or(url.authority.as_str(), |(_, value)| value);
    let scheme = if url.is_secure { "https" } else { "http" };
    let mut fields: Fields = [
        (":method", plan.method_of(entry)),
        (":scheme", scheme),
        (":authority", host),
        (":path", url.target.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let others = plan.fields_of(entry).filter(|(name, _)| !is_host(name));
    fields.extend(others.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    if let Some(body) = plan.body_of(entry) {
        fields.push(("content-length".to_owned(), body.len().to_string()));
    }
    Ok(fields)
}

/// A request in HTTP/1, or what cannot be sent.
pub(crate) fn write(plan: &BenchPlan, entry: &RequestSpec) -> Result<H1Request, String> {
    check(plan, entry)?;
    let (url, body) = (&entry.url, plan.body_of(entry));
    let mut head = format!("{} {} HTTP/1.1\r\n", plan.method_of(entry), url.target);
    let is_host = |(name, _): &(String, String)| name.eq_ignore_ascii_case("host");
    if !plan.fields_of(entry).any(is_host) {
        head.push_str(&format!("Host: {}\r\n", url.authority));
    }
    for (name, value) in plan.fields_of(entry) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if plan.reuse == Reuse::PerRequest {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    let body_at = bytes.len();
    bytes.extend_from_slice(body.unwrap_or_default());
    let target_at = plan.method_of(entry).len() + 1;
    Ok(H1Request {
        bytes,
        target_at,
        body_at,
    })
}

fn check_field(name: &str, value: &str) -> Result<(), String> {
    if !is_token(name) {
        return Err(format!("{name:?} is no name of a header field"));
    }
    if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
        return Err(format!(
            "the field {name} is set by what is asked for (--body, --close)"
        ));
    }
    // What a field may hold besides visible letters: spaces, tabs and bytes outside ASCII.
    if value
        .bytes()
        .any(|byte| byte < b' ' && byte != b'\t' || byte == 127)
    {
        return Err(format!(
            "the value of the field {name} holds control characters"
        ));
    }
    Ok(())
}

//= rfc9110#5.6.2
fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl H1Request {
        /// A request as it is written out, and where its target belongs.
        pub(crate) fn of_parts(head: &[u8], target_at: usize, body: &[u8]) -> H1Request {
            H1Request {
                bytes: [head, body].concat(),
                target_at,
                body_at: head.len(),
            }
        }
    }

    #[test]
    fn long_body_is_not_copied_for_every_request() {
        for (body_bytes, is_copied) in [
            (0, true),
            (COPIED_BODY_BYTES_MAX, true),
            (COPIED_BODY_BYTES_MAX + 1, false),
        ] {
            let head = b"POST  HTTP/1.1\r\n\r\n";
            let request = H1Request::of_parts(head, 5, &vec![b'x'; body_bytes]);
            let mut out = Vec::new();
            request.write_to(b"/a", &mut out);
            let copied = if is_copied { body_bytes } else { 0 };
            assert_eq!(out.len(), head.len() + 2 + copied);
            assert!(out.starts_with(b"POST /a HTTP/1.1\r\n\r\n"));
            assert_eq!(request.long_body().len(), body_bytes - copied);
        }
    }
}
