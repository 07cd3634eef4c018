//! Fixed answers written in the config.

use bytes::Bytes;
use hob_http::{Body, Fields, Known, Request, Response};

use crate::config::{self, AfterSteps, Coding};
use crate::handle::files::media_type::MediaType;
use crate::handle::plain;
use crate::step::compress::{compress, default_level};
use crate::step::negotiate::{self, Negotiated};

/// A fixed answer, ready to give.
pub struct Respond {
    status: u16,
    /// Of every answer, whatever its coding.
    fields: Fields,
    body: Bytes,
    /// Codings in which the body is smaller, in order of preference.
    codings: Vec<Coding>,
    /// The body in each of them.
    coded: Vec<Bytes>,
}

impl Respond {
    /// Makes it ready, compressed as the route says for answers of its kind.
    pub fn new(settings: &config::Respond, steps: &AfterSteps) -> Respond {
        let media_type = MediaType {
            name: &settings.content_type,
            charset: None,
        };
        let may_be_coded = settings.body.len() as u64 >= steps.compress_min.max(1)
            && media_type.is_one_of(steps.compress_types.iter().map(String::as_str));
        let mut fields = plain::named();
        if !settings.body.is_empty() {
            fields.add(b"Content-Type", settings.content_type.as_bytes());
        }
        let mut respond = Respond {
            status: settings.status,
            fields,
            body: Bytes::from(settings.body.clone()),
            codings: Vec::new(),
            coded: Vec::new(),
        };
        for &coding in steps.compress.iter().filter(|_| may_be_coded) {
            let smaller = compress(&respond.body, coding, default_level(coding));
            if let Ok(Some(smaller)) = smaller {
                respond.codings.push(coding);
                respond.coded.push(smaller.into());
            }
        }
        if !respond.codings.is_empty() {
            respond.fields.add(b"Vary", b"Accept-Encoding");
        }
        respond
    }
}

/// Gives the answer.
pub fn answer(respond: &Respond, request: &Request) -> Response {
    let mut fields = respond.fields.clone();
    if respond.body.is_empty() {
        let mut response = Response::new(respond.status, fields, Body::Empty);
        // The config says a status and no more.
        response.is_stand_in = true;
        return response;
    }
    let mut body = &respond.body;
    if !respond.codings.is_empty()
        && let Some((coding, coded)) = chosen(respond, request)
    {
        let name = negotiate::coding_name(coding);
        fields.add(b"Content-Encoding", name.as_bytes());
        body = coded;
    }
    Response::new(respond.status, fields, Body::Bytes(body.clone()))
}

fn chosen<'r>(respond: &'r Respond, request: &Request) -> Option<(Coding, &'r Bytes)> {
    let accept = request.head().joined(Known::AcceptEncoding)?;
    let Negotiated::Coded(coding) = negotiate::coding(Some(&accept), &respond.codings) else {
        return None;
    };
    let index = respond.codings.iter().position(|one| *one == coding)?;
    Some((coding, &respond.coded[index]))
}
