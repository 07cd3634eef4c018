//! Short answers every handler may give: errors, redirects, lists of methods.

use std::time::Duration;

use bytes::Bytes;
use hob_config::{AccessRules, RateSettings};
use hob_http::{Body, Fields, Request, Response};

use crate::handle::error_page::{error_page, redirect_page};
use crate::handle::html;
use crate::step::access::AccessRefusal;

/// The value of `Server`.
pub const SERVER: &[u8] = b"hob";

/// Methods that read.
pub const READING: &[u8] = b"GET, HEAD, OPTIONS";

/// Methods of commands.
pub const COMMANDS: &[u8] = b"GET, HEAD, POST, OPTIONS";

/// Methods that programs are usually asked with; they get all others too, but TRACE.
pub const PROGRAMS: &[u8] = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// An error with its built-in page.
pub fn error(status: u16) -> Response {
    let mut fields = named();
    fields.add(b"Content-Type", html::CONTENT_TYPE.as_bytes());
    fields.add(
        b"Content-Security-Policy",
        html::CONTENT_SECURITY_POLICY.as_bytes(),
    );
    let body = Body::Bytes(Bytes::from(error_page(status)));
    let mut response = Response::new(status, fields, body);
    response.is_stand_in = true;
    response
}

/// 405, or 501 for a method nobody knows.
//= rfc9110#15.5.6
//= rfc9110#15.6.2
pub fn wrong_method(method: &[u8], allowed: &[u8]) -> Response {
    const REGISTERED: &[&[u8]] = &[
        b"GET",
        b"HEAD",
        b"POST",
        b"PUT",
        b"DELETE",
        b"CONNECT",
        b"OPTIONS",
        b"TRACE",
        b"PATCH",
        b"PROPFIND",
        b"PROPPATCH",
        b"MKCOL",
        b"COPY",
        b"MOVE",
        b"LOCK",
        b"UNLOCK",
        b"SEARCH",
        b"REPORT",
        b"QUERY",
    ];
    if !REGISTERED.contains(&method) {
        return error(501);
    }
    let mut response = error(405);
    response.fields_mut().add(b"Allow", allowed);
    response
}

/// The answer to who may not have a route's.
pub fn refuse_access(refusal: AccessRefusal, rules: &AccessRules, method: &[u8]) -> Response {
    match refusal {
        AccessRefusal::Method => wrong_method(method, rules.methods.join(", ").as_bytes()),
        _ => error(403),
    }
}

/// The answer to who asks too often, and may again after a while.
pub fn too_many(rate: &RateSettings, wait: Duration) -> Response {
    let whole = |time: Duration| time.as_millis().div_ceil(1000).max(1);
    let (wait, window) = (whole(wait), whole(rate.period));
    let policy = format!("\"rate\";q={};w={window}", rate.count);
    let mut response = error(429);
    let fields = response.fields_mut();
    fields.add(b"Retry-After", wait.to_string().as_bytes());
    fields.add(b"RateLimit-Policy", policy.as_bytes());
    fields.add(b"RateLimit", format!("\"rate\";r=0;t={wait}").as_bytes());
    response
}

/// The answer to who finds no place in service: such places become free as others' answers end,
/// at the latest, for who waited in vain, after about as long a wait.
pub fn crowded(status: u16, wait: Duration) -> Response {
    let seconds = wait.as_millis().div_ceil(1000).max(1).to_string();
    let mut response = error(status);
    response
        .fields_mut()
        .add(b"Retry-After", seconds.as_bytes());
    response
}

/// The answer to who is banned for so many milliseconds more.
pub fn banned(left_ms: u64) -> Response {
    let mut response = error(403);
    let seconds = left_ms.div_ceil(1000).max(1).to_string();
    let fields = response.fields_mut();
    fields.add(b"Retry-After", seconds.as_bytes());
    response
}

/// The answer to who has not signed in.
//= rfc7617#2
pub fn ask_who(realm: &str) -> Response {
    let mut response = error(401);
    let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    let fields = response.fields_mut();
    fields.add(b"WWW-Authenticate", challenge.as_bytes());
    response
}

/// The answer to who has not signed in by a token, or not by a good one; `refusal` is a code of the
/// RFC, and what is said of it.
//= rfc6750#3
pub fn ask_for_token(status: u16, realm: &str, refusal: Option<(&str, &str)>) -> Response {
    let mut response = error(status);
    let mut challenge = format!("Bearer realm=\"{realm}\"");
    if let Some((code, text)) = refusal {
        challenge += &format!(", error=\"{code}\", error_description=\"{text}\"");
    }
    let fields = response.fields_mut();
    fields.add(b"WWW-Authenticate", challenge.as_bytes());
    response
}

/// The answer to who may come again after a while.
pub fn come_again(wait: Duration) -> Response {
    let mut response = error(429);
    let seconds = wait.as_secs().to_string();
    response
        .fields_mut()
        .add(b"Retry-After", seconds.as_bytes());
    response
}

/// The answer to a browser that asks first.
pub fn preflight(told: &Fields) -> Response {
    let mut fields = named();
    for (name, value) in told.iter() {
        fields.add(name, value);
    }
    Response::new(204, fields, Body::Empty)
}

/// The answer to OPTIONS.
//= rfc9110#9.3.7
pub fn options(allowed: &[u8]) -> Response {
    let mut fields = named();
    fields.add(b"Allow", allowed);
    Response::new(204, fields, Body::Empty)
}

/// A redirect; a location with control characters is an error of ours, not sent.
pub fn redirect(status: u16, location: &[u8]) -> Response {
    let mut fields = named();
    fields.add(b"Content-Type", html::CONTENT_TYPE.as_bytes());
    if !fields.add(b"Location", location) {
        return error(500);
    }
    let page = redirect_page(status, location);
    Response::new(status, fields, Body::Bytes(Bytes::from(page)))
}

/// A redirect that a client may keep for good, of a request with this method.
pub fn move_for_good(method: &[u8], location: &[u8]) -> Response {
    let status = match method {
        b"GET" | b"HEAD" => 301,
        // Keeps the method.
        _ => 308,
    };
    redirect(status, location)
}

/// The same answer, but no redirect that a client may keep for good.
pub fn for_now(response: Response) -> Response {
    let before = response.status();
    let status = match before {
        301 => 302,
        308 => 307,
        _ => return response,
    };
    let fields = response.fields().clone();
    let location = fields.value(b"Location").unwrap_or_default();
    let body = match response.body {
        Body::Bytes(page) if page == redirect_page(before, location) => {
            Body::Bytes(Bytes::from(redirect_page(status, location)))
        }
        body => body,
    };
    let mut temporary = Response::new(status, fields, body);
    temporary.close = response.close;
    temporary
}

/// To the same place with a slash, so that links on its page are right.
pub fn add_slash(request: &Request) -> Response {
    let head = request.head();
    let mut location = head.path().to_vec();
    // Two slashes at the start would name another host.
    while location.starts_with(b"//") {
        location.remove(0);
    }
    location.push(b'/');
    if let Some(query) = head.query() {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    move_for_good(head.method(), &location)
}

/// Too much to do; the client may try again.
pub fn busy() -> Response {
    busy_for(1)
}

/// The server could not do its part; where it lacked something, the client may try again.
pub fn failed(is_lack: bool) -> Response {
    match is_lack {
        true => busy(),
        false => error(500),
    }
}

/// The same, where it is known for how many seconds.
pub fn busy_for(seconds: u64) -> Response {
    let mut response = error(503);
    let seconds = seconds.to_string();
    response
        .fields_mut()
        .add(b"Retry-After", seconds.as_bytes());
    response
}

/// Fields of any answer.
pub fn named() -> Fields {
    let mut fields = Fields::new();
    fields.add(b"Server", SERVER);
    fields
}
