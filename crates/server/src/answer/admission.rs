//! Whether a client may have what a route answers: by `access`, by `rate`, by signing in, and by
//! `concurrency`. The first two are known at once; a password that is not remembered is checked by
//! threads that serve nobody, a route that knows accounts takes its time (`forward`), and a place
//! in service is waited for (`crowding`).

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hob_http::{Answered, Known, Request, Response, SignedIn};
use hob_trace::watch::RequestStage;
use hob_trace::{Fault, RefusedBy};

use super::crowding::{LimitedRequest, RateMoment};
use super::{HandlerContext, note_fault};
use crate::handle::files::find::next_route;
use crate::handle::plain;
use crate::serve::accounts::open_accounts;
use crate::serve::captured::{CapturedRequest, NameLookup};
use crate::serve::fleet::now_ms;
use crate::serve::sites::{ServedRoute, Sites};
use crate::step::access::{self, AccessRefusal};
use crate::step::auth::accounts::AuthAccount;
use crate::step::auth::captured::CapturedAuth;
use crate::step::auth::failures::SignInAttempt;
use crate::step::auth::remembered::RememberedPasswords;
use crate::step::auth::{self, AuthSource, GivenPassword, ServedAuth, ShownCredentials};
use hob_config::{AccessRules, SignInRule};

/// The lane of the pool that passwords are checked in; folders have other numbers.
pub(super) const PASSWORD_LANE: u64 = u64::MAX - 8;
/// After so long whoever finds too many passwords waited for may come again.
const AGAIN: Duration = Duration::from_secs(10);

/// Whether a client may have what a route answers.
pub(super) enum Admission {
    Yes,
    /// What it gets instead.
    No(Response),
    /// It turns out; what it gets instead if it may not.
    Later(Pin<Box<dyn Future<Output = Option<Response>>>>),
}

/// What a route does with a request that it has let in, at a path.
pub(super) type AfterAdmission =
    fn(&Rc<HandlerContext>, &Arc<Sites>, (u32, u32), &Request, (&[u8], usize)) -> Answered;

/// Who knows whether passwords are right.
pub(super) trait PasswordSource: Send + Sync + 'static {
    /// What browsers show.
    fn realm(&self) -> &str;

    /// Those that were right a moment ago.
    fn passwords(&self) -> &RememberedPasswords;

    /// True once a second, for one that has to [`PasswordSource::look`].
    fn is_due(&self, now_ms: u64) -> bool;

    /// Looks whether accounts have changed. Waits for a disk.
    fn look(&self);

    /// The account of a name and a password, if they are right; what its client gets if not.
    async fn check(
        this: &Arc<Self>,
        desk: &Rc<HandlerContext>,
        given: GivenPassword,
        request: &Request,
    ) -> Result<Arc<AuthAccount>, Response>;
}

impl PasswordSource for AuthSource {
    fn realm(&self) -> &str {
        &self.realm
    }

    fn passwords(&self) -> &RememberedPasswords {
        &self.passwords
    }

    fn is_due(&self, now_ms: u64) -> bool {
        AuthSource::is_due(self, now_ms)
    }

    fn look(&self) {
        AuthSource::look(self);
    }

    async fn check(
        this: &Arc<AuthSource>,
        desk: &Rc<HandlerContext>,
        given: GivenPassword,
        request: &Request,
    ) -> Result<Arc<AuthAccount>, Response> {
        desk.check_password(this, given, request).await
    }
}

impl HandlerContext {
    /// Whether the client may have what a route answers, which is named by its site's index and its
    /// own, for a path. A limit that the route before had, too, is not asked twice.
    pub(super) fn admission(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        request: &Request,
        path: &[u8],
        before: Option<&ServedRoute>,
    ) -> Admission {
        let Some((_, route)) = sites.route(at.0, at.1) else {
            return Admission::No(plain::error(404));
        };
        if before.is_none()
            && let Some(settings) = &sites.overload
            && self.shared.overload.refuses(route.priority)
        {
            return Admission::No(self.refuse_for_overload(settings, request));
        }
        let ask = LimitedRequest {
            route,
            counted: route.counted(request, path),
            before,
        };
        let admission = self.admission_by_rules(sites, at.0, &ask);
        match route.is_limited_late() {
            false => admission,
            true => self.limit_late(sites, at, admission, &ask),
        }
    }

    /// The same by all rules but those that hold for who has signed in.
    fn admission_by_rules(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        site: u32,
        ask: &LimitedRequest<'_>,
    ) -> Admission {
        let (request, route) = (ask.counted.request, ask.route);
        let rule = route.require.as_ref();
        let is_alternative = rule.is_some_and(|rule| rule.is_alternative);
        let refusal = route.access.as_deref().and_then(|rules| {
            let refusal = check_access(rules, sites, request).err()?;
            Some((rules, refusal))
        });
        if let Some((rules, refusal)) = refusal
            && !(is_alternative && refusal != AccessRefusal::Method)
        {
            request.record_mut().refused_by = RefusedBy::Access;
            note_fault(request, Fault::Client, refusal.reason());
            self.counters.access_refused.add(1);
            let method = request.head().method();
            return Admission::No(plain::refuse_access(refusal, rules, method));
        }
        if let Some(refusal) = self.refuse_rate(ask, RateMoment::Early) {
            return Admission::No(refusal);
        }
        let Some(rule) = rule else {
            return Admission::Yes;
        };
        // What a client says of itself is not passed on, also where it need not sign in.
        if request.signed_in().is_none() {
            request.sign_in(nobody(sites.auth.get(rule.auth)));
        }
        match refusal.is_none() && has_alternative(rule, route) {
            true if rule.when.is_some() => Admission::No(next_route()),
            true => Admission::Yes,
            false => self.signing_in(sites, (site, route), rule, (request, ask.counted.path)),
        }
    }

    /// What a route does with a request once it is let in.
    pub(super) fn when_admitted(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        request: &Request,
        place: (&[u8], usize),
        (admission, then): (Admission, AfterAdmission),
    ) -> Answered {
        let checked = match admission {
            Admission::Yes => return then(self, sites, at, request, place),
            Admission::No(refusal) => return Answered::Ready(refusal),
            Admission::Later(checked) => checked,
        };
        let (desk, sites, request) = (Rc::clone(self), Arc::clone(sites), request.clone());
        let (path, below) = (place.0.to_vec(), place.1);
        Answered::Later(Box::pin(async move {
            let mut answer = match checked.await {
                Some(refusal) => refusal,
                None => {
                    let answered = then(&desk, &sites, at, &request, (&path, below));
                    answered.wait().await
                }
            };
            for cookie in request.take_cookies() {
                answer.fields_mut().add(b"Set-Cookie", &cookie);
            }
            answer
        }))
    }

    /// Whether the one who sends a request to a site has signed in.
    fn signing_in(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        (site, route): (u32, &ServedRoute),
        rule: &Arc<SignInRule>,
        (request, path): (&Request, &[u8]),
    ) -> Admission {
        match sites.auth.get(rule.auth) {
            Some(ServedAuth::Captured(auth)) => {
                self.signing_in_by_captures(auth, route, rule, (request, path))
            }
            Some(ServedAuth::Files(source)) => self.signing_in_by_password(source, rule, request),
            Some(ServedAuth::Route(asked)) => {
                let (desk, sites, request) = (Rc::clone(self), Arc::clone(sites), request.clone());
                let (asked, rule) = (Arc::clone(asked), Arc::clone(rule));
                Admission::Later(Box::pin(async move {
                    match desk.ask_route(&sites, site, &asked, &request).await {
                        Ok((account, signed_in)) => {
                            desk.enter_account(&rule, &account, signed_in, &request)
                        }
                        Err(answer) => Some(*answer),
                    }
                }))
            }
            Some(ServedAuth::SignedUrls(keys)) => {
                let target = request.sent_head().target();
                match keys.check(target, hob_http::unix_ms() / 1000) {
                    Ok(()) => Admission::Yes,
                    Err(refusal) => {
                        self.counters.sign_in_refused.add(1);
                        request.record_mut().refused_by = RefusedBy::SignIn;
                        note_fault(request, Fault::Client, refusal.reason());
                        Admission::No(plain::error(403))
                    }
                }
            }
            Some(ServedAuth::Tokens(source)) => self.signing_in_by_token(source, rule, request),
            Some(ServedAuth::Pam(source)) => self.signing_in_by_password(source, rule, request),
            None => Admission::No(plain::error(500)),
        }
    }

    /// Whether the one who sends a request shows a password that its source knows.
    pub(super) fn signing_in_by_password<S: PasswordSource>(
        self: &Rc<HandlerContext>,
        source: &Arc<S>,
        rule: &Arc<SignInRule>,
        request: &Request,
    ) -> Admission {
        let is_due = source.is_due(self.now_ms.get());
        if !is_due {
            let shown = request.head().value(Known::Authorization);
            match source.passwords().shown(shown, self.now_ms.get()) {
                ShownCredentials::None => {
                    return Admission::No(self.ask_who(source.realm(), request));
                }
                ShownCredentials::Known(account) => {
                    return match self.enter_account(rule, &account, basic(&account), request) {
                        None => Admission::Yes,
                        Some(refusal) => Admission::No(refusal),
                    };
                }
                ShownCredentials::Password(_) => {}
            }
        }
        let (desk, request) = (Rc::clone(self), request.clone());
        let (source, rule) = (Arc::clone(source), Arc::clone(rule));
        Admission::Later(Box::pin(async move {
            if is_due && let Err(refusal) = desk.look_at_accounts(&source).await {
                return Some(refusal);
            }
            let shown = request.head().value(Known::Authorization);
            let account = match source.passwords().shown(shown, now_ms()) {
                ShownCredentials::None => return Some(desk.ask_who(source.realm(), &request)),
                ShownCredentials::Known(account) => account,
                ShownCredentials::Password(given) => {
                    match S::check(&source, &desk, given, &request).await {
                        Ok(account) => account,
                        Err(refusal) => return Some(refusal),
                    }
                }
            };
            desk.enter_account(&rule, &account, basic(&account), &request)
        }))
    }

    /// The same with the file that the route's captures give; where there is none, nobody has an
    /// account.
    fn signing_in_by_captures(
        self: &Rc<HandlerContext>,
        auth: &Arc<CapturedAuth>,
        route: &ServedRoute,
        rule: &Arc<SignInRule>,
        (request, path): (&Request, &[u8]),
    ) -> Admission {
        let Some(files) = &route.accounts else {
            return Admission::No(plain::error(500));
        };
        let asked = CapturedRequest {
            pattern: &route.pattern,
            matched: path,
            host: request.head().host(),
        };
        let nobody = || Admission::No(self.ask_who(&auth.realm, request));
        let Ok(name) = asked.name(&files.template) else {
            return nobody();
        };
        let now_ms = self.now_ms.get();
        match files.find(&name, now_ms, self.shared.recheck_ms()) {
            NameLookup::Open(source) if !source.is_gone() => {
                return self.signing_in_by_password(&source, rule, request);
            }
            NameLookup::Open(source) => files.forget(&name, &source),
            NameLookup::Missing => return nobody(),
            NameLookup::Unknown => {}
        }
        let (auth, files) = (Arc::clone(auth), Arc::clone(files));
        let (desk, rule, request) = (Rc::clone(self), Arc::clone(rule), request.clone());
        Admission::Later(Box::pin(async move {
            let pool = desk.shared.pool.for_lane(files.fixed.lane());
            let opened = Arc::clone(&auth);
            let Ok(job) = pool.run(move || open_accounts(&opened, &files, &name, now_ms)) else {
                desk.counters.disk_refused.add(1);
                return Some(plain::busy());
            };
            let source = match job.await {
                Some(Ok(Some((source, closed)))) => {
                    desk.counters.limit_roots.add(closed);
                    source
                }
                Some(Ok(None)) => return Some(desk.ask_who(&auth.realm, &request)),
                Some(Err(_)) | None => return Some(plain::error(500)),
            };
            match desk.signing_in_by_password(&source, &rule, &request) {
                Admission::Yes => None,
                Admission::No(refusal) => Some(refusal),
                Admission::Later(checked) => checked.await,
            }
        }))
    }

    /// Has the files of accounts looked at.
    async fn look_at_accounts<S: PasswordSource>(&self, source: &Arc<S>) -> Result<(), Response> {
        let pool = self.shared.pool.for_lane(PASSWORD_LANE);
        let looked = Arc::clone(source);
        let Ok(look) = pool.run(move || looked.look()) else {
            self.counters.disk_refused.add(1);
            return Err(plain::busy());
        };
        look.await.ok_or_else(|| plain::error(500))
    }

    /// The account of a name and a password, if they are right; what its client gets if not.
    async fn check_password(
        &self,
        source: &Arc<AuthSource>,
        given: GivenPassword,
        request: &Request,
    ) -> Result<Arc<AuthAccount>, Response> {
        let _turn = source.passwords.alone(&given).await;
        if let Some(account) = source.passwords.known(&given, now_ms()) {
            return Ok(account);
        }
        let attempt = self.begin_attempt((&source.name, &given.name), request);
        let attempt = attempt.await?;
        let places = Arc::clone(&self.shared.password_places);
        let Ok(place) = places.acquire_owned().await else {
            return Err(plain::error(500));
        };
        self.counters.passwords_checked.add(1);
        let pool = self.shared.pool.for_lane(PASSWORD_LANE);
        let checked = Arc::clone(source);
        let check = pool.run(move || {
            // Both go when it is done, also where nobody waits for it any more.
            let (_place, attempt) = (place, attempt);
            let found = checked.check(&given, now_ms());
            match &found {
                Ok(Some(_)) => attempt.succeeded(),
                Ok(None) => attempt.failed(now_ms()),
                Err(_) => {}
            }
            found
        });
        let Ok(check) = check else {
            self.counters.disk_refused.add(1);
            return Err(plain::busy());
        };
        match check.await {
            Some(Ok(Some(account))) => Ok(account),
            Some(Ok(None)) => Err(self.refuse_password(&source.realm, auth::WRONG, request)),
            Some(Err(text)) => {
                request.set_detail(text.as_bytes());
                note_fault(
                    request,
                    Fault::Server,
                    "require: the accounts cannot be read",
                );
                Err(plain::error(503))
            }
            None => Err(plain::error(500)),
        }
    }

    /// Begins to check a password of an `[[auth]]` for a name, when its time has come; what its
    /// client gets where too many are waited for already.
    pub(super) async fn begin_attempt(
        &self,
        account: (&str, &str),
        request: &Request,
    ) -> Result<SignInAttempt, Response> {
        let peer = request.facts().peer.map(|peer| peer.ip());
        let Some(attempt) = self.shared.sign_ins.begin(account, peer) else {
            self.counters.limit_sign_ins.add(1);
            note_fault(
                request,
                Fault::Client,
                "require: too many passwords are waited for",
            );
            return Err(plain::come_again(AGAIN));
        };
        let wait = attempt.wait(now_ms());
        if !wait.is_zero() {
            self.counters.sign_ins_delayed.add(1);
            let timer = request.reactor().timer();
            timer.set(wait);
            timer.elapsed().await;
        }
        Ok(attempt)
    }

    /// The answer for a name and a password that let nobody in, with the reason in the record.
    pub(super) fn refuse_password(
        &self,
        realm: &str,
        reason: &'static str,
        request: &Request,
    ) -> Response {
        self.counters.sign_ins_failed.add(1);
        request.record_mut().refused_by = RefusedBy::SignIn;
        note_fault(request, Fault::Client, reason);
        plain::ask_who(realm)
    }

    /// The answer for who has not said who it is.
    pub(super) fn ask_who(&self, realm: &str, request: &Request) -> Response {
        note_fault(request, Fault::Client, "require: nobody has signed in");
        plain::ask_who(realm)
    }

    /// Notes who has signed in; what they get if they may not, which is the next route's where this
    /// one is not for them.
    pub(super) fn enter_account(
        &self,
        rule: &SignInRule,
        account: &AuthAccount,
        signed_in: SignedIn,
        request: &Request,
    ) -> Option<Response> {
        request.sign_in(signed_in);
        if !auth::answers(rule, account) {
            let text = format_args!("`when` does not have {:?}", account.name);
            request.tell(RequestStage::Step, text);
            return Some(next_route());
        }
        if auth::may(rule, account) {
            return None;
        }
        self.counters.sign_in_refused.add(1);
        note_fault(request, Fault::Client, auth::NOT_NAMED);
        Some(plain::error(403))
    }
}

/// Nobody has signed in yet, with whom these accounts are asked for.
fn nobody(auth: Option<&ServedAuth>) -> SignedIn {
    let none = |name: &String| (name.as_bytes().into(), [].into());
    let fields = match auth {
        Some(ServedAuth::Route(asked)) => asked.fields.iter().map(none).collect(),
        Some(ServedAuth::Tokens(source)) if !source.rules.fields.is_empty() => {
            let fields = source.rules.fields.iter();
            fields.map(|(name, _)| none(name)).collect()
        }
        _ => Arc::default(),
    };
    SignedIn {
        user: Arc::default(),
        scheme: "",
        fields,
        cookies: Vec::new(),
    }
}

/// Somebody who has signed in with a password.
pub(super) fn basic(account: &AuthAccount) -> SignedIn {
    SignedIn {
        user: Arc::clone(&account.name),
        scheme: "Basic",
        fields: Arc::default(),
        cookies: Vec::new(),
    }
}

fn check_access(
    rules: &AccessRules,
    sites: &Sites,
    request: &Request,
) -> Result<(), AccessRefusal> {
    let facts = request.facts();
    let peer = facts.peer.map(|peer| peer.ip());
    let shown = facts.tls.as_ref().and_then(|tls| tls.client.as_ref());
    access::check_address(rules, peer, || sites.country(peer))
        .and_then(|()| access::check_certificate(rules, shown))
        .and_then(|()| access::check_method(rules, request.head().method()))
}

/// Whether whom `access` lets in has not to sign in.
fn has_alternative(rule: &SignInRule, route: &ServedRoute) -> bool {
    rule.is_alternative && route.access.as_deref().is_some_and(AccessRules::asks_who)
}
