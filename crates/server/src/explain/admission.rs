//! Whether the client would be let in, as `answer/admission` decides it, and why not.

use std::sync::Arc;

use hob_http::Response;

use super::follow::ExplainContext;
use super::told::Explanation;
use crate::handle::plain;
use crate::serve::accounts::open_accounts;
use crate::serve::captured::CapturedRequest;
use crate::serve::sites;
use crate::step::access::AccessRefusal;
use crate::step::auth::captured::CapturedAuth;
use crate::step::auth::pam::PamSource;
use crate::step::auth::tokens::issuer::AGAIN;
use crate::step::auth::tokens::{ShownToken, TokenRefusal, TokenSource};
use crate::step::auth::{AuthSource, ServedAuth};
use crate::step::{access, auth};
use hob_config::{AccessRules, RateKey, RoutePriority, SignInRule, duration_text, size_text};

impl ExplainContext<'_> {
    /// The answer for who may not have the route's.
    pub(super) fn refuse_client(
        &self,
        (route, path): (&sites::ServedRoute, &[u8]),
        told: &mut Explanation,
    ) -> Option<Response> {
        let refusal = self.refuse_access(route, told);
        self.note_limits(route, told);
        let Some(rule) = &route.require else {
            return refusal.map(|(_, response)| response);
        };
        let is_way = |(refusal, _): &(AccessRefusal, Response)| *refusal == AccessRefusal::Method;
        if !rule.is_alternative || refusal.as_ref().is_some_and(is_way) {
            let refusal = refusal.map(|(_, response)| response);
            return refusal.or_else(|| self.refuse_user(rule, (route, path), told));
        }
        let asks_who = route.access.as_deref().is_some_and(AccessRules::asks_who);
        if asks_who && refusal.is_none() && self.request.facts().peer.is_some() {
            told.note("`satisfy = \"any\"`: whom `access` lets in has not to sign in".to_owned());
            return None;
        }
        let refused = self.refuse_user(rule, (route, path), told);
        if refused.is_none() {
            self.request.record_mut().reason = None;
        }
        refused
    }

    /// Tells of limits that the request counts for. How far they are used up is known to the
    /// running server alone.
    fn note_limits(&self, route: &sites::ServedRoute, told: &mut Explanation) {
        if !self.config.bans.is_empty() {
            told.note(
                "`[[ban]]`: who is banned is known to the running server alone: `hob ban list`"
                    .to_owned(),
            );
        }
        if let Some(overload) = &self.config.overload {
            let when = match route.priority {
                RoutePriority::Low => "is refused first",
                RoutePriority::Normal => "is refused where it was not enough to refuse low ones",
                RoutePriority::High => "answers on",
            };
            told.note(format!(
                "`overload`: this route {when} while requests wait longer than {}",
                duration_text(overload.queue)
            ));
        }
        let of_dry_run = |dry_run| if dry_run { ", in a dry run" } else { "" };
        if let Some(rate) = &route.rate {
            let settings = &rate.settings;
            let period = duration_text(settings.period);
            told.note(format!(
                "`rate`: {} in {period} {}, {} at once{}; how many it has had is known to the \
                 running server alone",
                requests(settings.count as usize),
                alike(&settings.by, route),
                settings.burst,
                of_dry_run(settings.dry_run),
            ));
        }
        if let Some(limit) = &route.concurrency {
            let settings = &limit.settings;
            let wait = duration_text(settings.wait);
            told.note(format!(
                "`concurrency`: {} in service at once {}, {} more wait {wait} at most{}; how many \
                 there are is known to the running server alone",
                requests(settings.requests),
                alike(&settings.by, route),
                settings.queue,
                of_dry_run(settings.dry_run),
            ));
        }
        if let Some(limit) = &route.bandwidth {
            let settings = &limit.settings;
            let speeds = [
                ("an answer", settings.answer),
                ("all of a client", settings.client),
                ("all of the route, or of its site", settings.all),
            ];
            let speeds = speeds.into_iter().filter_map(|(whose, speed)| {
                let speed = size_text(speed?);
                Some(format!("{whose} at {speed} a second"))
            });
            let speeds: Vec<_> = speeds.collect();
            told.note(format!("`bandwidth`: {} at most", speeds.join(", ")));
        }
    }

    /// The answer for who has not signed in, or may not.
    fn refuse_user(
        &self,
        rule: &SignInRule,
        (route, path): (&sites::ServedRoute, &[u8]),
        told: &mut Explanation,
    ) -> Option<Response> {
        let opened;
        let source = match self.sites.auth.get(rule.auth)? {
            ServedAuth::Files(source) => source,
            ServedAuth::Captured(auth) => match self.accounts_of(auth, route, path, told) {
                Some(source) => {
                    opened = source;
                    &opened
                }
                None => {
                    self.request.record_mut().reason = Some("require: nobody has signed in");
                    return Some(plain::ask_who(&auth.realm));
                }
            },
            ServedAuth::Route(asked) => {
                let path = &asked.path;
                told.note(format!(
                    "`require` asks the route of {path}, which is not asked here"
                ));
                return None;
            }
            ServedAuth::SignedUrls(keys) => {
                let target = self.request.sent_head().target();
                let refusal = keys.check(target, hob_http::unix_ms() / 1000).err()?;
                self.request.record_mut().reason = Some(refusal.reason());
                return Some(plain::error(403));
            }
            ServedAuth::Tokens(source) => return self.refuse_token(source, rule, told),
            ServedAuth::Pam(source) => return self.refuse_system_user(source, rule, told),
        };
        let name = &source.name;
        let mut refuse = |reason: &'static str, text: String, response: Response| {
            self.request.record_mut().reason = Some(reason);
            told.note(text);
            Some(response)
        };
        let asks = || plain::ask_who(&source.realm);
        let Some(user) = self.user else {
            let text = format!("`require`: --user NAME tries an account of {name:?}");
            return refuse("require: nobody has signed in", text, asks());
        };
        let accounts = source.accounts().ok()?;
        let Some(account) = accounts.find(user) else {
            let text = format!("`require`: {user:?} is no account of {name:?}");
            return refuse(auth::WRONG, text, asks());
        };
        let groups = account.groups.join(", ");
        let groups = match groups.as_str() {
            "" => "in no group".to_owned(),
            groups => format!("in {groups}"),
        };
        if !auth::may(rule, account) {
            let text = format!("`require`: {user:?}, {groups}, may not");
            return refuse(auth::NOT_NAMED, text, plain::error(403));
        }
        told.note(format!(
            "`require`: {user:?}, {groups}, may, with the right password"
        ));
        None
    }

    /// The answer for who has no account that PAM would let in. It is not asked here, so groups are
    /// not known.
    fn refuse_system_user(
        &self,
        source: &PamSource,
        rule: &SignInRule,
        told: &mut Explanation,
    ) -> Option<Response> {
        let (name, service) = (&source.name, &source.rules.service);
        let mut refuse = |reason: &'static str, text: String, response: Response| {
            self.request.record_mut().reason = Some(reason);
            told.note(text);
            Some(response)
        };
        let Some(user) = self.user else {
            let text = format!("`require`: --user NAME tries an account of {name:?}");
            let response = plain::ask_who(&source.realm);
            return refuse("require: nobody has signed in", text, response);
        };
        let is_named = rule.users.iter().any(|name| name == user);
        let is_any = rule.users.is_empty() && rule.groups.is_empty();
        let all_groups = match &rule.all_groups[..] {
            [] => String::new(),
            all => format!(" and is in all of {}", all.join(", ")),
        };
        let groups = match rule.groups.join(", ") {
            _ if is_named || is_any => all_groups,
            groups if groups.is_empty() => {
                let text = format!("`require`: {user:?} may not");
                return refuse(auth::NOT_NAMED, text, plain::error(403));
            }
            groups => format!(" and is in one of {groups}{all_groups}"),
        };
        told.note(format!(
            "`require`: {user:?} may, where PAM (service {service:?}), which is not asked here, \
             lets it in{groups}"
        ));
        None
    }

    /// The accounts of the file that the route's captures give, which is told; `None` where there
    /// is none.
    fn accounts_of(
        &self,
        auth: &CapturedAuth,
        route: &sites::ServedRoute,
        path: &[u8],
        told: &mut Explanation,
    ) -> Option<Arc<AuthSource>> {
        let files = route.accounts.as_ref()?;
        let asked = CapturedRequest {
            pattern: &route.pattern,
            matched: path,
            host: self.request.head().host(),
        };
        let name = told.captured_name(asked, &files.template)?;
        let file = files.template.whole(&name);
        let opened = open_accounts(auth, files, &name, 0).ok()?;
        told.note(match &opened {
            Some(_) => format!("`htpasswd` is {} here", file.display()),
            None => format!(
                "`htpasswd` is {} here, and there is no such file, or a link leads there: nobody \
                 can sign in",
                file.display()
            ),
        });
        opened.map(|(source, _)| source)
    }

    /// The answer for who brings no token that is good here, or one of somebody who may not.
    fn refuse_token(
        &self,
        source: &TokenSource,
        rule: &SignInRule,
        told: &mut Explanation,
    ) -> Option<Response> {
        let refuse = |reason: &'static str, status: u16| {
            self.request.record_mut().reason = Some(reason);
            Some(plain::ask_for_token(status, &source.realm, None))
        };
        let issuer = &source.rules.issuer;
        match (source.shown(self.request), self.user) {
            (ShownToken::One(token), _) => match source.check_waiting(token, hob_http::unix_ms()) {
                Err(TokenRefusal::KeysAway) => {
                    self.request.record_mut().reason = Some(TokenRefusal::KeysAway.reason());
                    Some(plain::busy_for(AGAIN.as_secs()))
                }
                Err(refusal) => refuse(refusal.reason(), 401),
                Ok(good) if auth::may(rule, &good.claims.account) => None,
                Ok(_) => refuse(auth::NOT_NAMED, 403),
            },
            (ShownToken::Several, _) => refuse("require: there are several tokens", 400),
            (ShownToken::None, None) => {
                told.note(format!(
                    "`require`: a token of {issuer:?} is asked for; --user NAME tries whose it is, \
                     --header 'Authorization: Bearer TOKEN' one that you have"
                ));
                refuse("require: nobody has signed in", 401)
            }
            (ShownToken::None, Some(user)) => {
                let is_named = rule.users.iter().any(|name| name == user);
                let (claim, groups) = (&source.rules.groups, rule.groups.join(", "));
                let is_any = rule.users.is_empty() && rule.groups.is_empty();
                let asked = match (is_named || is_any, groups.as_str(), &rule.all_groups[..]) {
                    (true, _, []) => Some(String::new()),
                    (true, _, all) => {
                        Some(format!(" whose {claim:?} has all of {}", all.join(", ")))
                    }
                    (false, "", _) => None,
                    (false, groups, []) => Some(format!(" whose {claim:?} has one of {groups}")),
                    (false, groups, all) => Some(format!(
                        " whose {claim:?} has one of {groups}, and all of {}",
                        all.join(", ")
                    )),
                };
                if let Some(asked) = asked {
                    told.note(format!(
                        "`require`: {user:?} may, with a token of {issuer:?}{asked}"
                    ));
                } else {
                    told.note(format!("`require`: {user:?} may not"));
                    return refuse(auth::NOT_NAMED, 403);
                }
                None
            }
        }
    }

    /// The answer for who may not have the route's. What is not known of the client is not held
    /// against it, but told.
    fn refuse_access(
        &self,
        route: &sites::ServedRoute,
        told: &mut Explanation,
    ) -> Option<(AccessRefusal, Response)> {
        let rules = route.access.as_ref()?;
        let method = self.request.head().method();
        let by_address = match self.request.facts().peer {
            Some(peer) => access::check_address(rules, Some(peer.ip())),
            None => Ok(()),
        };
        let has_addresses = rules.allow.is_some() || !rules.deny.is_empty();
        if has_addresses && self.request.facts().peer.is_none() {
            told.note(
                "`access` asks for the client's address: --from ADDRESS tries one".to_owned(),
            );
        }
        if !rules.certificates.is_empty() {
            told.note(
                "`access` asks for the client's certificate, which is not known here".to_owned(),
            );
        }
        let refusal = by_address
            .and_then(|()| access::check_method(rules, method))
            .err()?;
        self.request.record_mut().reason = Some(refusal.reason());
        Some((refusal, plain::refuse_access(refusal, rules, method)))
    }
}

fn requests(count: usize) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    }
}

/// What requests have in common that are counted together, in words.
fn alike(by: &RateKey, route: &sites::ServedRoute) -> String {
    match by {
        RateKey::Client => "of one client".to_owned(),
        RateKey::All => "of all clients together".to_owned(),
        RateKey::Field(name) => format!("with the same {name:?}"),
        RateKey::Cookie(name) => format!("with the same cookie {name:?}"),
        RateKey::User => "of one user".to_owned(),
        RateKey::Path => "of the route".to_owned(),
        RateKey::Capture(index) => {
            let name = route.pattern.names().nth(*index).unwrap_or_default();
            format!("with the same {{{name}}} in their path")
        }
    }
}
