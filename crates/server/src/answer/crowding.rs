//! What holds for requests because of others: `rate`, and `concurrency`, at which a request may
//! wait for a place that it keeps until its answer has left.

use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Request, Response};
use hob_trace::{Fault, RefusedBy};

use super::admission::Admission;
use super::{HandlerContext, note_fault};
use crate::handle::plain;
use crate::handle::script::gate::{GateWaiter, wait_for};
use crate::serve::concurrency::{ConcurrencyLimit, GateSeat, ServiceAdmission, ServicePlace};
use crate::serve::sites::{ServedRoute, Sites};
use crate::step::rate::RateOutcome;
use crate::step::request_key::CountedRequest;
use hob_config::{OverloadSettings, RateKey};
use hob_trace::metric::ThreadCounters;

/// A request that has come to a route, and the route that has sent it on: a limit that this one
/// had, too, is not asked twice.
pub(super) struct LimitedRequest<'a> {
    pub(super) route: &'a ServedRoute,
    pub(super) counted: CountedRequest<'a>,
    pub(super) before: Option<&'a ServedRoute>,
}

/// When a rate is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateMoment {
    /// Before somebody signs in: passwords cost more than the rest.
    Early,
    /// When it is known who asks.
    Late,
}

/// A request that waits, until its client leaves or its wait is over.
struct Waiting(Arc<ThreadCounters>);

impl HandlerContext {
    /// Whether a request that a program sends on to a route may have what that answers, by limits
    /// alone.
    pub(super) fn admission_by_limits(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        ask: &LimitedRequest<'_>,
    ) -> Admission {
        let admission = match self.refuse_rate(ask, RateMoment::Early) {
            Some(refusal) => Admission::No(refusal),
            None => Admission::Yes,
        };
        match ask.route.is_limited_late() {
            false => admission,
            true => self.limit_late(sites, at, admission, ask),
        }
    }

    /// The answer of a route while others come first.
    #[cold]
    pub(super) fn refuse_for_overload(
        &self,
        settings: &OverloadSettings,
        request: &Request,
    ) -> Response {
        self.counters.overload_refused.add(1);
        request.record_mut().refused_by = RefusedBy::Overload;
        let reason = "overload: requests wait too long, and routes of a higher priority come first";
        note_fault(request, Fault::Server, reason);
        plain::busy_for(settings.retry_after.as_secs().max(1))
    }

    /// The limits of a route that hold for who has been let in by all its rules.
    pub(super) fn limit_late(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        admission: Admission,
        ask: &LimitedRequest<'_>,
    ) -> Admission {
        let checked = match admission {
            Admission::No(refusal) => return Admission::No(refusal),
            Admission::Yes => return self.enter_service(ask),
            Admission::Later(checked) => checked,
        };
        let (desk, sites) = (Rc::clone(self), Arc::clone(sites));
        let (request, path) = (ask.counted.request.clone(), ask.counted.path.to_vec());
        let before = ask.before.map(|before| before.index);
        Admission::Later(Box::pin(async move {
            if let Some(refusal) = checked.await {
                return Some(refusal);
            }
            let (site, route) = sites.route(at.0, at.1)?;
            let ask = LimitedRequest {
                route,
                counted: route.counted(&request, &path),
                before: before.and_then(|index| site.routes.get(index as usize)),
            };
            match desk.enter_service(&ask) {
                Admission::Yes => None,
                Admission::No(refusal) => Some(refusal),
                Admission::Later(entered) => entered.await,
            }
        }))
    }

    /// The answer for who asks the route too often.
    pub(super) fn refuse_rate(
        &self,
        ask: &LimitedRequest<'_>,
        moment: RateMoment,
    ) -> Option<Response> {
        let (request, route) = (ask.counted.request, ask.route);
        let rate = route.rate.as_ref()?;
        let asked = match rate.settings.by {
            RateKey::User => RateMoment::Late,
            _ => RateMoment::Early,
        };
        if asked != moment
            || ask
                .before
                .is_some_and(|before| has_same_rate(before, route))
        {
            return None;
        }
        let (outcome, is_alone) = rate.take(&ask.counted);
        if !is_alone {
            self.counters.limit_rate_keys.add(1);
        }
        let RateOutcome::Above(wait) = outcome else {
            return None;
        };
        if rate.settings.dry_run {
            self.counters.rate_dry_run.add(1);
            request.record_mut().note = Some("rate: without `dry_run` this would be refused");
            return None;
        }
        self.counters.limit_rate.add(1);
        request.record_mut().refused_by = RefusedBy::Rate;
        note_fault(
            request,
            Fault::Client,
            "rate: more requests than are answered in the time",
        );
        Some(plain::too_many(&rate.settings, wait))
    }

    /// Lets a request into service, unless it asks too often for who sends it.
    fn enter_service(self: &Rc<HandlerContext>, ask: &LimitedRequest<'_>) -> Admission {
        if let Some(refusal) = self.refuse_rate(ask, RateMoment::Late) {
            return Admission::No(refusal);
        }
        let (request, route) = (ask.counted.request, ask.route);
        let Some(limit) = &route.concurrency else {
            return Admission::Yes;
        };
        // Who has a place and is sent on keeps that one.
        if request.holds(|place: &ServicePlace| place.is_of(&limit.gates)) {
            return Admission::Yes;
        }
        let (admission, is_alone) = limit.enter(&ask.counted, &self.counters);
        if !is_alone {
            self.counters.limit_concurrency_keys.add(1);
        }
        match admission {
            ServiceAdmission::Place(place) => {
                if limit.settings.dry_run {
                    self.note_dry_run(limit, &place, request);
                }
                request.hold(Box::new(place));
                Admission::Yes
            }
            ServiceAdmission::Wait(seat, waiter) => {
                self.counters.concurrency_queued.add(1);
                let waiting = Waiting(Arc::clone(&self.counters));
                let desk = Rc::clone(self);
                let (limit, request) = (Arc::clone(limit), request.clone());
                Admission::Later(Box::pin(async move {
                    desk.await_service(&limit, (seat, waiter), waiting, &request)
                        .await
                }))
            }
            ServiceAdmission::Full => {
                self.counters.limit_concurrency.add(1);
                let reason = "concurrency: as many requests are in service and wait as may";
                Admission::No(refuse_service(limit, request, reason))
            }
        }
    }

    /// Waits for a place; what the client gets if there is none in time.
    async fn await_service(
        &self,
        limit: &ConcurrencyLimit,
        (seat, waiter): (GateSeat, GateWaiter),
        waiting: Waiting,
        request: &Request,
    ) -> Option<Response> {
        let before_us = request.record().queue_us;
        let entered = wait_for(&seat.gate, waiter, request, limit.settings.wait).await;
        drop(waiting);
        {
            let mut record = request.record_mut();
            record.concurrency_us += record.queue_us - before_us;
        }
        match entered {
            Ok(permit) => {
                request.hold(Box::new(ServicePlace::new(permit, seat, &self.counters)));
                None
            }
            Err(_) => {
                self.counters.limit_concurrency_wait.add(1);
                let reason = "concurrency: no request in service ended in time";
                Some(refuse_service(limit, request, reason))
            }
        }
    }

    /// Notes what would have become of a request that has a place because this is a dry run.
    fn note_dry_run(&self, limit: &ConcurrencyLimit, place: &ServicePlace, request: &Request) {
        let above = place.running().saturating_sub(limit.settings.requests);
        if above == 0 {
            return;
        }
        self.counters.concurrency_dry_run.add(1);
        request.record_mut().note = Some(match above > limit.settings.queue {
            true => "concurrency: without `dry_run` this would be refused",
            false => "concurrency: without `dry_run` this would wait",
        });
    }
}

/// The answer for who finds no place: by a key of its own it asks for too much itself.
//= rfc6585#4
//= rfc9110#15.6.4
fn refuse_service(limit: &ConcurrencyLimit, request: &Request, reason: &'static str) -> Response {
    request.record_mut().refused_by = RefusedBy::Concurrency;
    let (status, fault) = match limit.settings.by.is_of_client() {
        true => (429, Fault::Client),
        false => (503, Fault::Server),
    };
    note_fault(request, fault, reason);
    plain::crowded(status, limit.settings.wait)
}

fn has_same_rate(before: &ServedRoute, route: &ServedRoute) -> bool {
    match (&before.rate, &route.rate) {
        (Some(before), Some(rate)) => Arc::ptr_eq(&before.clients, &rate.clients),
        _ => false,
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.concurrency_unqueued.add(1);
    }
}
