//! Requests, written out once before the run.

use crate::plan::{Plan, Reuse};
use crate::url::Url;

/// One request as it goes over the wire, head and body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
}

/// Fields that decide where a request ends; they follow from the plan.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
];

/// Writes the request for one URL, or says what in the plan cannot be sent.
pub(crate) fn write(plan: &Plan, url: &Url) -> Result<Request, String> {
    if !is_token(&plan.method) {
        return Err(format!(
            "{:?} is no method; write GET, POST, ...",
            plan.method
        ));
    }
    if plan.method.eq_ignore_ascii_case("CONNECT") {
        return Err("CONNECT makes a tunnel, which is no request to measure".to_owned());
    }
    let mut head = format!("{} {} HTTP/1.1\r\n", plan.method, url.target);
    if !plan
        .fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str(&format!("Host: {}\r\n", url.authority));
    }
    for (name, value) in &plan.fields {
        check_field(name, value)?;
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
