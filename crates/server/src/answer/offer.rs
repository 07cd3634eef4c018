//! The other side of `remote`: a hob of another machine asks for a program of this one.
//!
//! It comes over a listener of offers, with a certificate that was checked, and what it says of its
//! client in `hob-request` is believed where the program is offered to it. Rules of sites, pages
//! and what is done to answers are the other machine's: here is only the program. The server after
//! this one asks in the same way for visits that are kept here, and for what people want of them.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Answered, Body, Bytes, Request, Response, ToldOfClient};
use hob_trace::Fault;

use super::programs::ProgramDispatch;
use super::{HandlerContext, listener_log, note_fault, watch};
use crate::handle::plain;
use crate::handle::script::carried::{self, CarriedRequest};
use crate::serve::context::OnRoute;
use crate::serve::old_visits::{VISITS, VisitsAsked};
use crate::serve::sites::Sites;

/// A request for a program that is offered to who asks.
struct AskedOffer {
    /// The site of the program's route, and that route.
    at: (u32, u32),
    carried: CarriedRequest,
}

impl HandlerContext {
    /// The answer to what came over a listener of offers.
    pub(super) fn answer_offered(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        request: &Request,
    ) -> Answered {
        request.record_mut().log = listener_log(sites, request);
        match self.accept(sites, request) {
            Ok(asked) => self.ask_offered(sites, &asked, request),
            Err(refusal) => Answered::Ready(pack(request, *refusal, Speaker::Offers)),
        }
    }

    /// The answer to what the server after this one asks for: a visit that is kept here.
    pub(super) fn answer_successor(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        request: &Request,
    ) -> Answered {
        let mut fields = request.head().values(carried::REQUEST);
        let asked = request.head().values(VISITS).next();
        let carried = fields.next();
        if let (None, Some(asked)) = (carried, asked) {
            return self.answer_on_visits(asked);
        }
        let carried = carried.and_then(|field| carried::parse(field).ok());
        let asked = carried.and_then(|carried| {
            let at = sites.find_route(&carried.program)?;
            Some(AskedOffer { at, carried })
        });
        match asked {
            Some(asked) => self.ask_offered(sites, &asked, request),
            // Here no visit of it can be.
            None => Answered::Ready(pack(request, plain::error(410), Speaker::Program)),
        }
    }

    /// What the server after this one asks for, for people.
    fn answer_on_visits(&self, asked: &[u8]) -> Answered {
        let Some(asked) = VisitsAsked::parse(asked) else {
            return Answered::Ready(plain::error(400));
        };
        let shared = Arc::clone(&self.shared);
        let job = self.shared.pool.run(move || match asked {
            VisitsAsked::List => serde_json::to_vec(&shared.visits_for_successor()).ok(),
            VisitsAsked::End(number) => shared.end_any_visit(number).then(Vec::new),
        });
        let Ok(job) = job else {
            self.counters.disk_refused.add(1);
            return Answered::Ready(plain::busy());
        };
        Answered::Later(Box::pin(async move {
            match job.await.flatten() {
                Some(told) => {
                    let mut fields = plain::named();
                    fields.add(b"Content-Type", b"application/json");
                    Response::new(200, fields, Body::Bytes(told.into()))
                }
                None => plain::error(404),
            }
        }))
    }

    /// Whom the request is from, and what is asked for.
    fn accept(&self, sites: &Sites, request: &Request) -> Result<AskedOffer, Box<Response>> {
        let refuse = |status, reason, text: &str| {
            self.counters.offer_refused.add(1);
            note_fault(request, Fault::Client, reason);
            request.set_detail(text.as_bytes());
            Err(Box::new(told(status, &format!("{reason}: {text}"))))
        };
        let facts = request.facts();
        let shown = facts.tls.as_ref();
        let Some((tls, peer)) = shown.and_then(|tls| Some((tls, tls.client.as_ref()?))) else {
            return refuse(
                403,
                "programs are offered to no one without a certificate",
                "",
            );
        };
        if !sites.offers.admits(facts.listener, tls) {
            let reason = "nobody who may sign for others any more has signed this certificate";
            return refuse(403, reason, &peer.subject);
        }
        let head = request.head();
        let mut fields = head.values(carried::REQUEST);
        let carried = match (fields.next(), fields.next()) {
            (Some(field), None) => carried::parse(field),
            (Some(_), Some(_)) => Err("there are two"),
            (None, _) if sites.offers.has_any_for(peer) => {
                // Health checks come here.
                return Err(Box::new(told(200, "hob offers programs here")));
            }
            (None, _) => {
                return refuse(403, "nothing is offered to this certificate", &peer.subject);
            }
        };
        let carried = match carried {
            Ok(carried) => carried,
            Err(why) => return refuse(400, "the field `hob-request` cannot be understood", why),
        };
        let Some(offer) = sites.offers.find(&carried.program, peer) else {
            let program = carried.program.escape_ascii();
            let text = format!(
                "{program} to {} (sha256:{})",
                peer.subject, peer.fingerprint
            );
            return refuse(403, "the program is not offered to this certificate", &text);
        };
        let at = (
            u32::try_from(offer.site).unwrap_or(u32::MAX),
            u32::try_from(offer.route).unwrap_or(u32::MAX),
        );
        Ok(AskedOffer { at, carried })
    }

    fn ask_offered(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        asked: &AskedOffer,
        request: &Request,
    ) -> Answered {
        let AskedOffer { at, carried } = asked;
        let Some((site, route)) = sites.route(at.0, at.1) else {
            return Answered::Ready(pack(request, plain::error(404), Speaker::Offers));
        };
        {
            let mut record = request.record_mut();
            record.site = u16::try_from(at.0).unwrap_or(u16::MAX - 1);
            (record.route, record.tally) = (at.1, site.tally);
            (record.series, record.handler) = (route.series, route.handler.kind());
            record.log = route.log.unwrap_or_else(|| listener_log(sites, request));
        }
        believe(request, carried);
        if request.reactor().station().is_on() {
            watch::begin(request, sites, site, route, at.1);
        }
        let is_tunnel = request.head().connect_protocol().is_some();
        let refusal = if !request.limit_body(route.body_bytes_max) {
            Some((413, "limits.body: the announced body is too large"))
        } else if is_tunnel && !route.handler.opens_tunnels() {
            Some((501, "no tunnels are opened here"))
        } else {
            None
        };
        if let Some((status, reason)) = refusal {
            note_fault(request, Fault::Client, reason);
            return Answered::Ready(pack(request, plain::error(status), Speaker::Program));
        }
        let answered = route.handler.answer(&OnRoute {
            desk: self,
            sites,
            site,
            route,
            request,
            matched: &carried.path,
            path: &carried.path,
            below: carried.below,
            call: None,
        });
        let way = ProgramDispatch::new(self, sites, request, *at);
        let request = request.clone();
        Answered::Later(Box::pin(async move {
            let response = way.finish_for_other(answered).await;
            pack(&request, response, Speaker::Program)
        }))
    }
}

/// Believes what is said of the client.
fn believe(request: &Request, carried: &CarriedRequest) {
    let said = |name: &[u8]| {
        let mut all = carried.variables.iter();
        let found = all.find(|(known, _)| **known == *name);
        found.map(|(_, value)| &**value)
    };
    let client = said(b"REMOTE_ADDR").and_then(|text| std::str::from_utf8(text).ok());
    let told = ToldOfClient {
        is_secure: Some(said(b"HTTPS").is_some()),
        field: Rc::from("hob-request"),
        variables: Some(Arc::clone(&carried.variables)),
    };
    request.believe(client.and_then(|text| text.parse::<IpAddr>().ok()), told);
}

/// An answer of this hob's own, in words.
fn told(status: u16, text: &str) -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"text/plain; charset=utf-8");
    let mut response = Response::new(
        status,
        fields,
        Body::Bytes(Bytes::from(format!("{text}\n"))),
    );
    response.is_stand_in = status >= 400;
    response
}

/// Whose answer it is.
enum Speaker {
    /// The program's, or hob's where that has none.
    Program,
    /// Hob's, to who asks for what is not there for it.
    Offers,
}

/// An answer as it goes to the other machine.
fn pack(request: &Request, mut response: Response, speaker: Speaker) -> Response {
    let failed = response.is_stand_in.then(|| {
        let record = request.record();
        let fault = match speaker {
            Speaker::Program => record.fault.word(),
            Speaker::Offers => carried::OF_OFFERS,
        };
        let reason = record.reason.unwrap_or("there is nothing of this name");
        let detail = request.detail();
        match String::from_utf8_lossy(&detail) {
            detail if detail.is_empty() => format!("{fault}: {reason}"),
            detail => format!("{fault}: {reason}: {detail}"),
        }
    });
    carried::pack(response.fields_mut(), failed.as_deref());
    response
}
