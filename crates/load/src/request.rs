//! Requests, written out once before the run.

use crate::plan::{Plan, Protocol, Reuse};
use crate::url::Url;

/// One request as it goes over the wire in HTTP/1, head and body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
}

/// The fields of a request as HTTP/2 and HTTP/3 have them, in the order they are sent.
pub(crate) type Fields = Vec<(String, String)>;

/// Fields that decide where a request ends; they follow from the plan.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
];

/// Fields of one connection, which later versions do not have. //= rfc9113#8.2.2
const OLD: &[&str] = &["keep-alive", "proxy-connection", "te"];

/// Says what in the plan cannot be sent.
fn check(plan: &Plan) -> Result<(), String> {
    if !is_token(&plan.method) {
        return Err(format!(
            "{:?} is no method; write GET, POST, ...",
            plan.method
        ));
    }
    if plan.method.eq_ignore_ascii_case("CONNECT") {
        return Err("CONNECT makes a tunnel, which is no request to measure".to_owned());
    }
    for (name, value) in &plan.fields {
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

/// The fields for one URL, or what in the plan cannot be sent.
pub(crate) fn fields(plan: &Plan, url: &Url) -> Result<Fields, String> {
    check(plan)?;
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let host = plan.fields.iter().find(|(name, _)| is_host(name));
    let host = host.map_or(url.authority.as_str(), |(_, value)| value);
    let scheme = if url.is_secure { "https" } else { "http" };
    let mut fields: Fields = [
        (":method", plan.method.as_str()),
        (":scheme", scheme),
        (":authority", host),
        (":path", url.target.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let others = plan.fields.iter().filter(|(name, _)| !is_host(name));
    fields.extend(others.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    if let Some(body) = &plan.body {
        fields.push(("content-length".to_owned(), body.len().to_string()));
    }
    Ok(fields)
}

/// The request for one URL in HTTP/1, or what in the plan cannot be sent.
pub(crate) fn write(plan: &Plan, url: &Url) -> Result<Request, String> {
    check(plan)?;
    let mut head = format!("{} {} HTTP/1.1\r\n", plan.method, url.target);
    if !plan
        .fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str(&format!("Host: {}\r\n", url.authority));
    }
    for (name, value) in &plan.fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = &plan.body {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if plan.reuse == Reuse::PerRequest {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(plan.body.as_deref().unwrap_or_default());
    Ok(Request { bytes })
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
