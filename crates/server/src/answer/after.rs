//! What is done to a program's answer after its handler: conditions, ranges and compression, as the
//! files handler does them for files.
//!
//! Steps only narrow: a program that answers a range or a condition by itself, or sends its output
//! compressed, is left alone. A program without `ETag` and `Last-Modified` is asked anew each time.

use hob_http::status::is_bodiless;
use hob_http::{Body, Fields, Known, Request, Response, ResponseHead};
use hob_trace::watch::RequestStage;

use crate::handle::files::media_type::MediaType;
use crate::handle::plain;
use crate::handle::script::control::{Buffer, Compress, Control};
use crate::step::conditional::{
    self, ConditionalMethod, Conditions, PreconditionOutcome, Validators,
};
use crate::step::cut::cut;
use crate::step::date::parse_http_date;
use crate::step::encode::{Encoded, Encoder, Flush};
use crate::step::negotiate::{self, Negotiated};
use crate::step::range::{self, ByteRange, Selection};
use crate::step::weights::weighted;
use hob_config::{AfterSteps, Coding};

/// Narrows an answer to what the request asks for. A body that is not sent is dropped, which tells
/// its source to end.
pub(super) fn narrow(
    request: &Request,
    steps: &AfterSteps,
    control: &Control,
    mut response: Response,
) -> Response {
    if matches!(response.body, Body::Tunnel(_)) || response.status() < 200 {
        return response;
    }
    let head = request.head();
    let coded = Coded::choose(request, steps, control, &response);
    if response.status() == 200 && matches!(head.method(), b"GET" | b"HEAD") {
        match verdict(request, response.fields()) {
            PreconditionOutcome::NotModified => return not_modified(response, coded),
            PreconditionOutcome::PreconditionFailed => return plain::error(412),
            PreconditionOutcome::IgnoreRange => {}
            PreconditionOutcome::Proceed => {
                response = match one_range(request, response, coded) {
                    Ranged::Part(part) => return part,
                    Ranged::Whole(whole) => whole,
                };
            }
        }
        offer_ranges(&mut response, coded);
    }
    if coded.varies {
        add_vary(response.fields_mut());
    }
    if let Some(coding) = coded.coding {
        encode(&mut response, coding, control);
    }
    response
}

/// Makes of an error a program tells without words one that a page of the site's can say.
pub(super) fn make_stand_in(response: &mut Response) {
    response.body = Body::Empty;
    response.is_stand_in = true;
    let validators: [&[u8]; 2] = [b"ETag", b"Last-Modified"];
    response.fields_mut().retain(|name, _| {
        let mut known = ABOUT_CONTENT.iter().chain(&validators);
        !known.any(|known| known.eq_ignore_ascii_case(name))
    });
}

/// How an answer relates to content codings.
#[derive(Clone, Copy)]
struct Coded {
    /// Clients that accept other codings may get another answer.
    varies: bool,
    /// The one this client gets.
    coding: Option<Coding>,
}

impl Coded {
    fn choose(
        request: &Request,
        steps: &AfterSteps,
        control: &Control,
        response: &Response,
    ) -> Coded {
        let varies = control.compress == Compress::AsConfigured && may_be_coded(steps, response);
        let mut coding = None;
        if varies && let Some(accept) = request.head().joined(Known::AcceptEncoding) {
            // One who refuses the answer as it is gets it all the same: it is made already.
            if let Negotiated::Coded(chosen) = negotiate::coding(Some(&accept), &steps.compress) {
                coding = Some(chosen);
                let name = negotiate::coding_name(chosen);
                request.tell(RequestStage::Step, format_args!("compressed: {name}"));
            }
        }
        Coded { varies, coding }
    }
}

/// Whether the route and the answer itself allow a coding.
fn may_be_coded(steps: &AfterSteps, response: &Response) -> bool {
    let status = response.status();
    if steps.compress.is_empty() || is_bodiless(status) || matches!(status, 205 | 206 | 416) {
        return false;
    }
    if response
        .body
        .len()
        .is_some_and(|len| len < steps.compress_min.max(1))
    {
        return false;
    }
    let mut media_type = None;
    for (name, value) in response.fields().iter() {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"Content-Type") {
            media_type = Some(value);
        } else if KEPT_AS_IT_IS.iter().any(|known| is(known))
            || (is(b"Cache-Control") && has_element(value, b"no-transform"))
        {
            return false;
        }
    }
    let name = media_type.and_then(|value| std::str::from_utf8(value).ok());
    name.is_some_and(|name| {
        let media_type = MediaType {
            name,
            charset: None,
        };
        media_type.is_one_of(steps.compress_types.iter().map(String::as_str))
    })
}

/// Fields that say what the body is byte by byte.
const KEPT_AS_IT_IS: &[&[u8]] = &[
    b"Content-Encoding",
    b"Content-Range",
    b"Content-MD5",
    b"Digest",
    b"Content-Digest",
    b"Repr-Digest",
];

/// What the request's conditions come to. One that asks for a validator the program does not give
/// is the program's own business.
//= rfc9110#13.2.1
fn verdict(request: &Request, fields: &Fields) -> PreconditionOutcome {
    let entity_tag = fields.value(b"ETag").filter(|tag| is_tag(tag));
    let modified_text = fields.value(b"Last-Modified");
    let head = request.head();
    if entity_tag.is_none() && modified_text.is_none() {
        return match head.value(Known::IfRange) {
            Some(_) => PreconditionOutcome::IgnoreRange,
            None => PreconditionOutcome::Proceed,
        };
    }
    let now = (request.record().started_unix_ms / 1000).cast_signed();
    let if_match = head.joined(Known::IfMatch);
    let if_none_match = head.joined(Known::IfNoneMatch);
    let by_date = head
        .value(Known::IfUnmodifiedSince)
        .filter(|_| if_match.is_none());
    let conditions = Conditions {
        if_match: if_match.as_deref().filter(|_| entity_tag.is_some()),
        if_none_match: if_none_match.as_deref(),
        if_modified_since: head.value(Known::IfModifiedSince),
        if_unmodified_since: by_date,
        if_range: head.value(Known::IfRange),
        range: head.value(Known::Range),
    };
    let current = Validators {
        entity_tag,
        modified: modified_text.and_then(|text| parse_http_date(text, now)),
        modified_text,
    };
    let method = match head.method() {
        b"HEAD" => ConditionalMethod::Head,
        _ => ConditionalMethod::Get,
    };
    conditional::evaluate(method, &conditions, &current, now)
}

/// The answer without its body: only what a cache needs to go on with the one it has.
//= rfc9110#15.4.5
fn not_modified(mut response: Response, coded: Coded) -> Response {
    let mut fields = std::mem::take(response.fields_mut());
    fields.retain(|name, _| {
        !ABOUT_CONTENT
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    });
    if coded.coding.is_some() {
        weaken_tag(&mut fields);
    }
    if coded.varies {
        add_vary(&mut fields);
    }
    response.head = ResponseHead::Fields(304, fields);
    response.body = Body::Empty;
    response
}

/// Fields of a body that is not there.
const ABOUT_CONTENT: &[&[u8]] = &[
    b"Content-Type",
    b"Content-Length",
    b"Content-Encoding",
    b"Content-Language",
    b"Content-Range",
    b"Content-Disposition",
    b"Content-MD5",
    b"Content-Digest",
    b"Accept-Ranges",
];

enum Ranged {
    /// A part, or that there is none (206, 416).
    Part(Response),
    /// The answer as it was.
    Whole(Response),
}

/// Cuts the one range out that is asked for. The answer's size must be known; of several ranges the
/// whole is sent.
//= rfc9110#14.2
fn one_range(request: &Request, mut response: Response, coded: Coded) -> Ranged {
    let head = request.head();
    let wanted = match head.value(Known::Range) {
        Some(wanted) if head.method() == b"GET" && !head.is_repeated(Known::Range) => wanted,
        _ => return Ranged::Whole(response),
    };
    let refuses = |value: &[u8]| has_element(value, b"none");
    let Some(len) = response.body.len() else {
        return Ranged::Whole(response);
    };
    if response
        .fields()
        .value(b"Accept-Ranges")
        .is_some_and(refuses)
        || response.fields().value(b"Content-Range").is_some()
    {
        return Ranged::Whole(response);
    }
    match range::select(wanted, len) {
        Selection::Whole | Selection::Many(_) => Ranged::Whole(response),
        Selection::Unsatisfiable => {
            let mut text = Vec::new();
            range::write_unsatisfied(len, &mut text);
            let mut refusal = plain::error(416);
            refusal.fields_mut().add(b"Content-Range", &text);
            Ranged::Part(refusal)
        }
        Selection::One(part) => {
            if coded.varies {
                add_vary(response.fields_mut());
            }
            Ranged::Part(partial(response, part, len))
        }
    }
}

fn partial(mut response: Response, part: ByteRange, len: u64) -> Response {
    let mut fields = std::mem::take(response.fields_mut());
    let mut text = Vec::new();
    part.write_content_range(len, &mut text);
    fields.set(b"Content-Range", &text);
    response.head = ResponseHead::Fields(206, fields);
    response.body = cut(response.body, part);
    response
}

/// Says that parts can be asked for, where they can and a validator makes them fit together.
//= rfc9110#14.3
fn offer_ranges(response: &mut Response, coded: Coded) {
    let fields = response.fields();
    let has_validator = fields.value(b"ETag").is_some() || fields.value(b"Last-Modified").is_some();
    if coded.coding.is_some()
        || !has_validator
        || fields.value(b"Accept-Ranges").is_some()
        || response.body.len().is_none()
    {
        return;
    }
    response.fields_mut().add(b"Accept-Ranges", b"bytes");
}

/// Puts the body into a coding: a short one at once, any other as it is made.
fn encode(response: &mut Response, coding: Coding, control: &Control) {
    let body = std::mem::replace(&mut response.body, Body::Empty);
    let encoded = match body {
        Body::Bytes(bytes) if bytes.len() <= AT_ONCE_BYTES_MAX => {
            match Encoder::whole(&bytes, coding) {
                Ok(coded) if coded.len() < bytes.len() => Body::Bytes(coded.into()),
                // Not smaller: it stays as it is.
                _ => {
                    response.body = Body::Bytes(bytes);
                    return;
                }
            }
        }
        body => {
            let flush = match control.buffer {
                Buffer::Never => Flush::EachPiece,
                Buffer::AsItComes | Buffer::Whole => Flush::WhenIdle,
            };
            match Encoded::new(body, coding, flush) {
                Ok(encoded) => Body::Stream(Box::new(encoded)),
                Err(error) => {
                    tracing::error!(%error, "an encoder could not be made");
                    *response = plain::error(500);
                    return;
                }
            }
        }
    };
    response.body = encoded;
    let fields = response.fields_mut();
    fields.remove(b"Accept-Ranges");
    fields.set(
        b"Content-Encoding",
        negotiate::coding_name(coding).as_bytes(),
    );
    weaken_tag(fields);
}

/// Largest body compressed in one go on a serving thread, in bytes.
const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// The same content in other bytes: a strong tag does not hold for both.
//= rfc9110#8.8.3.3
fn weaken_tag(fields: &mut Fields) {
    if let Some(tag) = fields.value(b"ETag").filter(|tag| tag.starts_with(b"\"")) {
        let weak = [b"W/", tag].concat();
        fields.set(b"ETag", &weak);
    }
}

//= rfc9110#12.5.5
fn add_vary(fields: &mut Fields) {
    let is_told = fields.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case(b"Vary")
            && (has_element(value, b"*") || has_element(value, b"Accept-Encoding"))
    });
    if !is_told {
        fields.add(b"Vary", b"Accept-Encoding");
    }
}

fn has_element(list: &[u8], wanted: &[u8]) -> bool {
    weighted(list).any(|element| element.value.eq_ignore_ascii_case(wanted))
}

//= rfc9110#8.8.3
fn is_tag(text: &[u8]) -> bool {
    let inner = text.strip_prefix(b"W/").unwrap_or(text);
    inner.len() >= 2 && inner.starts_with(b"\"") && inner.ends_with(b"\"")
}

#[cfg(test)]
mod tests;
