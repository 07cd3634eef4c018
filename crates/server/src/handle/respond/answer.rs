//! The answer, in the coding that its client takes.

use std::sync::Arc;

use bytes::Bytes;
use hob_http::{Answered, Body, Known, Request, Response};

use crate::handle::AnswersRoute;
use crate::handle::config::Coding;
use crate::handle::respond::Respond;
use crate::serve::context::OnRoute;
use crate::step::negotiate::{self, Negotiated};

impl AnswersRoute for Respond {
    fn answer(self: &Arc<Respond>, on: &OnRoute<'_>) -> Answered {
        Answered::Ready(answer(self, on.request))
    }
}

/// Gives the answer.
pub(super) fn answer(respond: &Respond, request: &Request) -> Response {
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
