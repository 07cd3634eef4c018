//! Pages that prove to a certificate authority that a host is ours: they come before sites and
//! redirects, on every listener, and only while an authority has been told to look.

use hob_http::thread::Crew;
use hob_http::{Body, Request, Response, acme};
use hob_trace::HandlerKind;

use crate::answer::listener_log;
use crate::handle::plain;
use crate::serve::sites::Sites;

/// The page, if this is a request for one.
//= rfc8555#8.3
pub(super) fn page(crew: &Crew, sites: &Sites, request: &Request) -> Option<Response> {
    let head = request.head();
    if !head.path().starts_with(acme::PATH) {
        return None;
    }
    let page = crew.challenges()?.page(head.path())?;
    {
        let mut record = request.record_mut();
        record.handler = HandlerKind::Respond;
        record.log = listener_log(sites, request);
    }
    if !matches!(head.method(), b"GET" | b"HEAD") {
        return Some(plain::wrong_method(head.method(), plain::READING));
    }
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"application/octet-stream");
    fields.add(b"Cache-Control", b"no-store");
    Some(Response::new(200, fields, Body::Bytes(page)))
}
