//! Asking the members of an upstream, one after the other where one fails.
//!
//! A request is made once. It is made again only where nothing of it was sent, or where doing it
//! twice does the same and all of its body is here; and never once its answer has begun.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use hob_http::{HandlerPhase, Request, Response};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;

use crate::handle::script::body::ProgramRequestBody;
use crate::handle::script::gate::Permit;
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::{Connection, MemberLink, may_be_twice};
use crate::handle::upstream::member::Member;
use crate::handle::upstream::members::{MemberUse, MemberWish, NobodyFree, Upstream};

/// One protocol in which members are asked.
pub(crate) trait AsksMember {
    /// What can go wrong.
    type Failure: From<UpstreamFailure>;
    /// What a request has of a member.
    type Link: MemberLink;

    /// Takes a connection. Where there is none, who was to use it gets back what it came with.
    async fn open(
        &self,
        used: MemberUse,
        permit: Permit,
        connection: Connection,
    ) -> Result<Self::Link, (UpstreamFailure, MemberUse, Permit)>;

    /// Sends the request, and makes an answer of what comes back. With `retry`, one of a status
    /// that it names is a failure.
    async fn ask(
        &self,
        link: Self::Link,
        body: ProgramRequestBody,
        retry: Option<&RetryRules>,
    ) -> Result<Response, Box<AskFailure<Self::Failure, Self::Link>>>;

    /// What a failure is that speaks against the member.
    fn cause(&self, failure: &Self::Failure) -> Option<RetryCause>;
}

/// What is left where a member gave no answer.
pub(crate) struct AskFailure<F, L> {
    pub(crate) failure: F,
    /// The connection, if the request had not ended.
    pub(crate) link: Option<L>,
    /// Nothing came back.
    pub(crate) is_unheard: bool,
    /// The member has said that it did nothing.
    pub(crate) is_undone: bool,
    /// What there is to explain it, for people.
    pub(crate) printed: Vec<u8>,
}

/// Who failed last, and why.
pub(crate) struct AskedInVain<F> {
    pub(crate) failure: F,
    pub(crate) printed: Vec<u8>,
    /// The member's address; empty where none could be asked.
    pub(crate) member: Arc<str>,
}

/// What a request needs to be asked.
#[derive(Clone, Copy)]
pub(crate) struct AskTerms<'a> {
    pub(crate) upstream: &'a Arc<Upstream>,
    pub(crate) request: &'a Request,
    pub(crate) counters: &'a ThreadCounters,
    pub(crate) retry: &'a RetryRules,
    /// How long is waited until somebody is known.
    pub(crate) connect: Duration,
}

/// Asks a member, and others where that may be.
pub(crate) async fn ask<P: AsksMember>(
    protocol: &P,
    on: AskTerms<'_>,
    permit: Permit,
    body: ProgramRequestBody,
) -> Result<Response, AskedInVain<P::Failure>> {
    on.upstream.count_request(on.retry.budget_percent);
    let own = on.upstream.own_member(on.request);
    let mut tries = Tries {
        on,
        tried: Vec::new(),
        connection: Connection::Any,
        key: on.upstream.hash_key(on.request),
        own: own.as_ref(),
    };
    let mut left = (permit, body);
    let mut last = None;
    loop {
        let used = match tries.pick().await {
            Ok(used) => used,
            Err(failure) => {
                return Err(last.unwrap_or_else(|| AskedInVain {
                    failure: failure.into(),
                    printed: Vec::new(),
                    member: Arc::from(""),
                }));
            }
        };
        let member = Arc::clone(used.member_arc());
        match tries.ask_one(protocol, used, left).await {
            Ok(mut response) => {
                if own.as_ref().is_none_or(|own| !Arc::ptr_eq(own, &member)) {
                    on.upstream.keep_member(&member, on.request, &mut response);
                }
                return Ok(response);
            }
            Err((vain, None)) => return Err(vain),
            Err((vain, Some(again))) => {
                tries.on.counters.upstream_retries.add(1);
                tries.on.request.tell(
                    RequestStage::Program,
                    format_args!("{} gave no answer: it is asked for again", vain.member),
                );
                left = again;
                last = Some(vain);
            }
        }
    }
}

/// What a request has been through.
struct Tries<'a> {
    on: AskTerms<'a>,
    /// Members that failed.
    tried: Vec<Arc<Member>>,
    connection: Connection,
    /// What it has in common with others that are to come to the same member.
    key: Option<u64>,
    /// The member that its client was with before.
    own: Option<&'a Arc<Member>>,
}

/// What another try begins with.
type Again = (Permit, ProgramRequestBody);

impl Tries<'_> {
    /// The next member. Where each has as many requests as it may, one is waited for.
    async fn pick(&self) -> Result<MemberUse, UpstreamFailure> {
        let AskTerms {
            upstream, request, ..
        } = self.on;
        let wish = MemberWish {
            tried: &self.tried,
            key: self.key,
            own: self.own,
        };
        if upstream.is_unsought() {
            self.await_servers().await?;
        }
        let pick = || upstream.pick(&wish, request.reactor().now_ms());
        let nobody = || match upstream.why_nobody() {
            Some(why) => UpstreamFailure::Unreachable(why),
            None => UpstreamFailure::AllOut,
        };
        match pick() {
            Ok(used) => return Ok(used),
            Err(NobodyFree::Out) => return Err(nobody()),
            Err(NobodyFree::Full) => {}
        }
        request.set_phase(HandlerPhase::Queued);
        let (started, limit) = (Instant::now(), request.reactor().timer());
        limit.set(upstream.settings.wait);
        let picked = poll_fn(|cx| {
            // Before it is looked again: what becomes free meanwhile wakes this.
            upstream.wait(cx.waker());
            match pick() {
                Ok(used) => Poll::Ready(Ok(used)),
                Err(NobodyFree::Out) => Poll::Ready(Err(nobody())),
                Err(NobodyFree::Full) => {
                    let late = limit.poll_elapsed(cx);
                    late.map(|()| Err(UpstreamFailure::MembersFull))
                }
            }
        });
        let picked = picked.await;
        request.set_phase(HandlerPhase::Program);
        request.record_mut().queue_us += started.elapsed().as_micros() as u64;
        if let Err(UpstreamFailure::MembersFull) = picked {
            self.on.counters.limit_upstream_member.add(1);
        }
        picked
    }

    /// Waits until it is known who offers a service.
    async fn await_servers(&self) -> Result<(), UpstreamFailure> {
        let AskTerms {
            upstream, request, ..
        } = self.on;
        let limit = request.reactor().timer();
        limit.set(self.on.connect);
        let is_known = poll_fn(|cx| {
            upstream.wait(cx.waker());
            match upstream.is_unsought() {
                true => limit.poll_elapsed(cx).map(|()| false),
                false => Poll::Ready(true),
            }
        });
        match is_known.await {
            true => Ok(()),
            false => Err(UpstreamFailure::late_to_connect(self.on.counters)),
        }
    }

    /// Asks one member. Where it fails, what there is for another try, if there may be one.
    async fn ask_one<P: AsksMember>(
        &mut self,
        protocol: &P,
        used: MemberUse,
        (permit, body): Again,
    ) -> Result<Response, (AskedInVain<P::Failure>, Option<Again>)> {
        let asked = Arc::clone(used.member_arc());
        let member = || Arc::clone(&asked.text);
        let request = self.on.request;
        let opened = protocol.open(used, permit, self.connection).await;
        let link = match opened {
            Ok(link) => link,
            Err((failure, used, permit)) => {
                self.blame(&used);
                let vain = AskedInVain {
                    failure: failure.into(),
                    printed: Vec::new(),
                    member: member(),
                };
                let goes_on = self.takes_retry(&asked, RetryCause::Connect);
                return Err((vain, goes_on.then_some((permit, body))));
            }
        };
        let (held, is_kept) = (held_again(&body), link.is_kept());
        let is_harmless = may_be_twice(request);
        let may_retry = is_harmless && held.is_some() && self.has_another();
        let retry = Some(self.on.retry).filter(|_| may_retry);
        let failed = match protocol.ask(link, body, retry).await {
            Ok(response) => return Ok(response),
            Err(failed) => *failed,
        };
        let again = held.filter(|_| is_harmless || failed.is_undone);
        // A member that did not get all of the body is not to blame.
        let is_own = self.on.request.body_error().is_none();
        let cause = protocol.cause(&failed.failure).filter(|_| is_own);
        // The other side had closed it meanwhile, or was about to.
        let is_untouched = failed.is_unheard || failed.is_undone;
        let may_be_stale = is_kept || failed.is_undone && self.connection == Connection::Any;
        let was_stale = may_be_stale && is_untouched && cause == Some(RetryCause::Closed);
        if let (Some(link), Some(_), false) = (&failed.link, cause, was_stale) {
            self.blame(link.used());
        }
        let vain = AskedInVain {
            failure: failed.failure,
            printed: failed.printed,
            member: member(),
        };
        let (Some(link), Some(body), Some(cause)) = (failed.link, again, cause) else {
            return Err((vain, None));
        };
        let goes_on = match was_stale {
            true => {
                self.connection = Connection::New;
                true
            }
            false => self.takes_retry(&asked, cause),
        };
        Err((vain, goes_on.then(|| (link.into_permit(), body))))
    }

    /// Whether there is another member to ask, and it may be.
    fn has_another(&self) -> bool {
        self.tried.len() < self.on.retry.times && self.tried.len() + 1 < self.on.upstream.len()
    }

    /// After this cause somebody else is asked; the budget has one retry less then.
    fn takes_retry(&mut self, asked: &Arc<Member>, cause: RetryCause) -> bool {
        let is_taken =
            self.on.retry.has(cause) && self.has_another() && self.on.upstream.take_retry();
        if is_taken {
            self.tried.push(Arc::clone(asked));
        }
        is_taken
    }

    fn blame(&self, used: &MemberUse) {
        if used.failed(self.on.request.reactor().now_ms()) {
            self.on.counters.upstream_out.add(1);
        }
    }
}

/// How long the program or server behind took to begin its answer.
pub(crate) fn note_time(request: &Request, started: Instant) {
    let mut record = request.record_mut();
    if record.program_us == 0 {
        record.program_us = started.elapsed().as_micros() as u64;
    }
}

/// The same body once more, where all of it is here.
fn held_again(body: &ProgramRequestBody) -> Option<ProgramRequestBody> {
    match body {
        ProgramRequestBody::None => Some(ProgramRequestBody::None),
        ProgramRequestBody::Held(bytes) => Some(ProgramRequestBody::Held(bytes.clone())),
        // It is read from where it begins, by each.
        ProgramRequestBody::Spooled(file, len) => {
            Some(ProgramRequestBody::Spooled(file.try_clone().ok()?, *len))
        }
        ProgramRequestBody::Coming(..) | ProgramRequestBody::Begun(..) => None,
    }
}
