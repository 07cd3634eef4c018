//! Who signs in by a token (RFC 6750).

use std::rc::Rc;
use std::sync::Arc;

use hob_config::SignInRule;
use hob_http::{Request, Response, SignedIn};
use hob_trace::Fault;

use super::admission::{Admission, PASSWORD_LANE};
use super::{HandlerContext, note_fault};
use crate::handle::plain;
use crate::step::auth;
use crate::step::auth::tokens::claims::SignedClaims;
use crate::step::auth::tokens::{ShownToken, TokenRefusal, TokenSource};

impl HandlerContext {
    /// Whether the token that a request shows lets in. Its signature is checked here, on the thread
    /// that serves.
    pub(super) fn signing_in_by_token(
        self: &Rc<HandlerContext>,
        source: &Arc<TokenSource>,
        rule: &Arc<SignInRule>,
        request: &Request,
    ) -> Admission {
        if !source.is_due(self.now_ms.get()) {
            return match self.check_token(source, rule, request) {
                None => Admission::Yes,
                Some(refusal) => Admission::No(refusal),
            };
        }
        let (desk, request) = (Rc::clone(self), request.clone());
        let (source, rule) = (Arc::clone(source), Arc::clone(rule));
        Admission::Later(Box::pin(async move {
            if let Err(refusal) = desk.look_at_keys(&source).await {
                return Some(refusal);
            }
            desk.check_token(&source, &rule, &request)
        }))
    }

    /// Has the file of keys looked at.
    async fn look_at_keys(&self, source: &Arc<TokenSource>) -> Result<(), Response> {
        let pool = self.shared.pool.for_lane(PASSWORD_LANE);
        let looked = Arc::clone(source);
        let Ok(look) = pool.run(move || looked.look()) else {
            self.counters.disk_refused.add(1);
            return Err(plain::busy());
        };
        let is_bad_news = look.await.ok_or_else(|| plain::error(500))?;
        if is_bad_news {
            self.counters.token_keys_kept.add(1);
        }
        Ok(())
    }

    /// What a client gets instead, if its token does not let in.
    fn check_token(
        &self,
        source: &TokenSource,
        rule: &SignInRule,
        request: &Request,
    ) -> Option<Response> {
        let realm = &source.realm;
        let token = match source.shown(request) {
            ShownToken::One(token) => token,
            ShownToken::None => {
                note_fault(request, Fault::Client, "require: nobody has signed in");
                return Some(plain::ask_for_token(401, realm, None));
            }
            ShownToken::Several => {
                self.counters.tokens_refused.add(1);
                note_fault(request, Fault::Client, "require: there are several tokens");
                let refusal = ("invalid_request", "there are several tokens");
                return Some(plain::ask_for_token(400, realm, Some(refusal)));
            }
        };
        let good = match source.check(token, hob_http::unix_ms()) {
            Ok(good) => good,
            Err(refusal) => {
                self.counters.tokens_refused.add(1);
                if refusal == TokenRefusal::TooLong {
                    self.counters.limit_token.add(1);
                }
                note_fault(request, Fault::Client, refusal.reason());
                let refusal = ("invalid_token", refusal.description());
                return Some(plain::ask_for_token(401, realm, Some(refusal)));
            }
        };
        if good.is_new {
            self.counters.tokens_checked.add(1);
        }
        let account = &good.claims.account;
        self.enter_account(rule, account, signed_in(&good.claims), request)?;
        let text = auth::NOT_NAMED.trim_start_matches("require: ");
        let refusal = ("insufficient_scope", text);
        Some(plain::ask_for_token(403, realm, Some(refusal)))
    }
}

/// Somebody who has signed in by a token.
fn signed_in(claims: &SignedClaims) -> SignedIn {
    SignedIn {
        user: Arc::clone(&claims.account.name),
        scheme: "Bearer",
        fields: claims.fields.iter().cloned().collect(),
    }
}
