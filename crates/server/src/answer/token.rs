//! Who signs in by a token (RFC 6750).

use std::rc::Rc;
use std::sync::Arc;

use hob_config::SignInRule;
use hob_http::{Request, Response, SignedIn};
use hob_trace::{Fault, RefusedBy};

use super::admission::{Admission, PASSWORD_LANE};
use super::{HandlerContext, note_fault};
use crate::handle::files::find::ELSEWHERE;
use crate::handle::plain;
use crate::step::auth;
use crate::step::auth::tokens::claims::SignedClaims;
use crate::step::auth::tokens::issuer::AGAIN;
use crate::step::auth::tokens::{GoodToken, ShownToken, TokenRefusal, TokenSource};

impl HandlerContext {
    /// Whether the token that a request shows lets in. Its signature is checked here, on the thread
    /// that serves, but for keys that take longer.
    pub(super) fn signing_in_by_token(
        self: &Rc<HandlerContext>,
        source: &Arc<TokenSource>,
        rule: &Arc<SignInRule>,
        request: &Request,
    ) -> Admission {
        let is_due = source.is_due(self.now_ms.get());
        if !is_due {
            let token = match self.shown_token(source, request) {
                Ok(token) => token,
                Err(refusal) => return Admission::No(*refusal),
            };
            if let Some(checked) = source.check_soon(token, hob_http::unix_ms())
                && !source.may_be_newer(&checked)
            {
                return match self.enter_by_token(source, rule, request, checked) {
                    None => Admission::Yes,
                    Some(refusal) => Admission::No(refusal),
                };
            }
        }
        let (desk, request) = (Rc::clone(self), request.clone());
        let (source, rule) = (Arc::clone(source), Arc::clone(rule));
        Admission::Later(Box::pin(async move {
            let checked = desk.check_token(&source, &request, is_due).await;
            match checked {
                Ok(checked) => desk.enter_by_token(&source, &rule, &request, checked),
                Err(refusal) => Some(*refusal),
            }
        }))
    }

    /// What comes of a token, by threads that may wait.
    async fn check_token(
        &self,
        source: &Arc<TokenSource>,
        request: &Request,
        is_due: bool,
    ) -> Result<Result<GoodToken, TokenRefusal>, Box<Response>> {
        if is_due {
            self.look_at_keys(source).await?;
        }
        let checked = self.check_token_now(source, request).await?;
        match source.fetching(&checked) {
            // It has ended either way.
            Some(fetched) => drop(fetched.await),
            // Others may have had the issuer asked meanwhile.
            None if source.may_be_newer(&checked) && source.has_changed() => {}
            None => return Ok(checked),
        }
        self.look_at_keys(source).await?;
        self.check_token_now(source, request).await
    }

    /// The same with the keys that there are.
    async fn check_token_now(
        &self,
        source: &Arc<TokenSource>,
        request: &Request,
    ) -> Result<Result<GoodToken, TokenRefusal>, Box<Response>> {
        let token = self.shown_token(source, request)?;
        if let Some(checked) = source.check_soon(token, hob_http::unix_ms()) {
            return Ok(checked);
        }
        let places = Arc::clone(&self.shared.password_places);
        let place = { places.acquire_owned().await }.map_err(|_| plain::error(500))?;
        let (checker, token) = (Arc::clone(source), token.to_vec());
        let pool = self.shared.pool.for_lane(PASSWORD_LANE);
        let check = pool.run(move || {
            let _place = place;
            checker.check(&token, hob_http::unix_ms())
        });
        let Ok(check) = check else {
            self.counters.disk_refused.add(1);
            return Err(Box::new(plain::busy()));
        };
        let checked = check.await;
        checked.ok_or_else(|| Box::new(plain::error(500)))
    }

    /// Has the file of keys looked at.
    async fn look_at_keys(&self, source: &Arc<TokenSource>) -> Result<(), Box<Response>> {
        let pool = self.shared.pool.for_lane(PASSWORD_LANE);
        let looked = Arc::clone(source);
        let Ok(look) = pool.run(move || looked.look()) else {
            self.counters.disk_refused.add(1);
            return Err(Box::new(plain::busy()));
        };
        let is_bad_news = { look.await }.ok_or_else(|| plain::error(500))?;
        if is_bad_news {
            self.counters.token_keys_kept.add(1);
        }
        Ok(())
    }

    /// The token of a request, or what its client gets instead.
    fn shown_token<'r>(
        &self,
        source: &TokenSource,
        request: &'r Request,
    ) -> Result<&'r [u8], Box<Response>> {
        let realm = &source.realm;
        match source.shown(request) {
            ShownToken::One(token) => Ok(token),
            ShownToken::None => {
                note_fault(request, Fault::Client, "require: nobody has signed in");
                Err(Box::new(plain::ask_for_token(401, realm, None)))
            }
            ShownToken::Several => {
                self.counters.tokens_refused.add(1);
                note_fault(request, Fault::Client, "require: there are several tokens");
                let refusal = ("invalid_request", "there are several tokens");
                Err(Box::new(plain::ask_for_token(400, realm, Some(refusal))))
            }
        }
    }

    /// Notes who has signed in; what they get if they have not, or may not.
    fn enter_by_token(
        &self,
        source: &TokenSource,
        rule: &SignInRule,
        request: &Request,
        checked: Result<GoodToken, TokenRefusal>,
    ) -> Option<Response> {
        let good = match checked {
            Ok(good) => good,
            Err(TokenRefusal::KeysAway) => {
                note_fault(request, Fault::Server, TokenRefusal::KeysAway.reason());
                return Some(plain::busy_for(AGAIN.as_secs()));
            }
            Err(refusal) => {
                self.counters.tokens_refused.add(1);
                if refusal == TokenRefusal::TooLong {
                    self.counters.limit_token.add(1);
                }
                if refusal.is_forged() {
                    request.record_mut().refused_by = RefusedBy::SignIn;
                }
                note_fault(request, Fault::Client, refusal.reason());
                let refusal = ("invalid_token", refusal.description());
                return Some(plain::ask_for_token(401, &source.realm, Some(refusal)));
            }
        };
        if good.is_new {
            self.counters.tokens_checked.add(1);
        }
        let account = &good.claims.account;
        // Who may is let in here; who may not is told so by the RFC's words.
        let refusal = self.enter_account(rule, account, signed_in(&good.claims), request)?;
        if refusal.status() == ELSEWHERE {
            return Some(refusal);
        }
        let text = auth::NOT_NAMED.trim_start_matches("require: ");
        let refusal = ("insufficient_scope", text);
        Some(plain::ask_for_token(403, &source.realm, Some(refusal)))
    }
}

/// Somebody who has signed in by a token.
fn signed_in(claims: &SignedClaims) -> SignedIn {
    SignedIn {
        user: Arc::clone(&claims.account.name),
        scheme: "Bearer",
        fields: Arc::clone(&claims.fields),
        cookies: Vec::new(),
    }
}
