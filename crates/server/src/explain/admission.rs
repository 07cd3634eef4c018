//! Whether the client would be let in, as `answer/admission` decides it, and why not.

use std::sync::Arc;

use hob_http::Response;

use super::follow::{ExplainContext, shown};
use super::rules::RuleOutcome;
use super::told::Explanation;
use crate::handle::files::find::next_route;
use crate::handle::plain;
use crate::serve::accounts::open_accounts;
use crate::serve::captured::CapturedRequest;
use crate::serve::sites;
use crate::step::access::AccessRefusal;
use crate::step::auth::accounts::AuthAccount;
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
        if asks_who && refusal.is_none() {
            if self.request.facts().peer.is_some() {
                if rule.when.is_some() {
                    return leave(route, "who has not signed in", told);
                }
                let why = "`satisfy = \"any\"`: whom `access` lets in has not to sign in";
                self.rule(told, "require.satisfy", RuleOutcome::LetsIn, why.to_owned());
                return None;
            }
            // Then it is not `access` that has let it in.
            if let Some(rule) = told.rules.last_mut() {
                (rule.lets_in, rule.provided) = (false, None);
            }
        }
        let refused = self.refuse_user(rule, (route, path), told);
        if refused.is_none() {
            self.request.record_mut().reason = None;
        }
        refused
    }

    /// Adds a rule of the route that was asked.
    fn rule(&self, told: &mut Explanation, rule: &str, outcome: RuleOutcome, why: String) {
        told.asked_rule(self.places, rule, (outcome, why));
    }

    /// Tells of limits that the request counts for. How far they are used up is known to the
    /// running server alone.
    fn note_limits(&self, route: &sites::ServedRoute, told: &mut Explanation) {
        if !self.config.bans.is_empty() && self.running.is_none() {
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
        for (limit, text, is_known_elsewhere) in limits_of(route) {
            let rest = match is_known_elsewhere {
                true => "; how far it is used up is known to the running server alone",
                false => "",
            };
            told.note(format!("`{limit}`: {text}{rest}"));
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
                    let why = "nobody has an account for this path".to_owned();
                    let answer = plain::ask_who(&auth.realm);
                    return self.refuse_for(told, NOBODY, Some(why), answer);
                }
            },
            ServedAuth::Route(asked) => {
                return self.refuse_forwarded(&asked.path, (rule, route), told);
            }
            ServedAuth::SignedUrls(keys) => {
                let target = self.request.sent_head().target();
                let Err(refusal) = keys.check(target, hob_http::unix_ms() / 1000) else {
                    let why = "the link is signed with a key of `signed_urls`".to_owned();
                    self.rule(told, "require", RuleOutcome::LetsIn, why);
                    return None;
                };
                return self.refuse_for(told, refusal.reason(), None, plain::error(403));
            }
            ServedAuth::Tokens(source) => return self.refuse_token(source, (rule, route), told),
            ServedAuth::Pam(source) => return self.refuse_system_user(source, (rule, route), told),
        };
        self.refuse_account(source, (rule, route), told)
    }

    /// Adds that `require` refuses, and gives the answer for it.
    fn refuse_for(
        &self,
        told: &mut Explanation,
        reason: &'static str,
        why: Option<String>,
        answer: Response,
    ) -> Option<Response> {
        self.request.record_mut().reason = Some(reason);
        let why = why.unwrap_or_else(|| reason.replace("require: ", ""));
        self.rule(told, "require", RuleOutcome::Refuses, why);
        Some(answer)
    }

    /// The answer for who has no account in files, or one that may not.
    fn refuse_account(
        &self,
        source: &AuthSource,
        (rule, route): (&SignInRule, &sites::ServedRoute),
        told: &mut Explanation,
    ) -> Option<Response> {
        let name = &source.name;
        let asks = || plain::ask_who(&source.realm);
        let Some(user) = self.user else {
            let why = format!("nobody has signed in; --user NAME tries an account of {name:?}");
            return self.refuse_for(told, NOBODY, Some(why), asks());
        };
        let Ok(accounts) = source.accounts() else {
            let why = format!("the accounts of {name:?} cannot be read");
            return self.refuse_for(told, NOBODY, Some(why), plain::error(500));
        };
        let Some(account) = accounts.find(user) else {
            let why = format!("{user:?} is no account of {name:?}");
            return self.refuse_for(told, auth::WRONG, Some(why), asks());
        };
        let supposed = self.supposed(user);
        let tried = match self.groups {
            [] => account,
            _ => &supposed,
        };
        let who = format!("{user:?}, {}", in_groups(&tried.groups));
        let who = match self.groups {
            [] => who,
            _ => format!(
                "{who} as is said here ({} in the files)",
                in_groups(&account.groups)
            ),
        };
        if !auth::answers(rule, tried) {
            return leave(route, &who, told);
        }
        if !auth::may(rule, tried) {
            let why = format!("{who}, may not");
            return self.refuse_for(told, auth::NOT_NAMED, Some(why), plain::error(403));
        }
        let outcome = RuleOutcome::LetsInIf("the password is right".to_owned());
        let why = format!("{who}, may, with the right password");
        self.rule(told, "require", outcome, why);
        None
    }

    /// An account of this name in the groups that it is taken to be in.
    fn supposed(&self, user: &str) -> AuthAccount {
        AuthAccount::of_route(user, self.groups.iter().map(String::as_str))
    }

    /// The answer for who may not, whatever the route says of them that is asked who they are.
    fn refuse_forwarded(
        &self,
        path: &str,
        (rule, route): (&SignInRule, &sites::ServedRoute),
        told: &mut Explanation,
    ) -> Option<Response> {
        let asked = format!("the route of {path}, which is not asked here,");
        let Some(user) = self.user else {
            let provided = format!("{asked} lets them in");
            let why = format!("asks {asked} who they are");
            self.rule(told, "require", RuleOutcome::LetsInIf(provided), why);
            return None;
        };
        let provided = format!("{asked} says that they are {user:?}");
        let why = format!("{user:?} may, if {asked} says so");
        let may = (provided, why, "it has them in".to_owned());
        self.refuse_supposed((rule, route, user), told, may, plain::error(403))
    }

    /// The answer for a user whose groups are not known here, if it may not. Of one that may: what
    /// is taken to be so, why it is let in, and how it shows its groups.
    fn refuse_supposed(
        &self,
        (rule, route, user): (&SignInRule, &sites::ServedRoute, &str),
        told: &mut Explanation,
        (provided, why, shown): (String, String, String),
        answer: Response,
    ) -> Option<Response> {
        let supposed = self.supposed(user);
        if !auth::answers(rule, &supposed) {
            let asks_groups = rule
                .when
                .as_ref()
                .is_some_and(|when| !when.groups.is_empty());
            if asks_groups && self.groups.is_empty() {
                told.note(format!(
                    "the groups of {user:?} are not known here: --group NAME supposes one"
                ));
            }
            let who = format!("{user:?}, {}", in_groups(self.groups));
            return leave(route, &who, told);
        }
        let (provided, why) = if auth::may(rule, &supposed) {
            (format!("{provided}{}", and_in(self.groups)), why)
        } else if let Some(groups) = self.groups_that_would_do(rule, user) {
            (
                format!("{provided}, and {shown} {groups}"),
                format!("{why}, and {shown} {groups}"),
            )
        } else {
            let why = format!("{user:?}, {}, may not", in_groups(self.groups));
            return self.refuse_for(told, auth::NOT_NAMED, Some(why), answer);
        };
        self.rule(told, "require", RuleOutcome::LetsInIf(provided), why);
        None
    }

    /// Groups with which a user would be let in who is supposed to be in none; `None` where no
    /// group would do, and where some are supposed.
    fn groups_that_would_do(&self, rule: &SignInRule, user: &str) -> Option<String> {
        let is_any = rule.users.is_empty() && rule.groups.is_empty();
        let is_named = is_any || rule.users.iter().any(|name| name == user);
        if !self.groups.is_empty() || (!is_named && rule.groups.is_empty()) {
            return None;
        }
        let one = (!is_named).then(|| format!("one of {}", rule.groups.join(", ")));
        let all =
            (!rule.all_groups.is_empty()).then(|| format!("all of {}", rule.all_groups.join(", ")));
        let both: Vec<String> = one.into_iter().chain(all).collect();
        (!both.is_empty()).then(|| both.join(" and "))
    }

    /// The answer for who has no account that PAM would let in. It is not asked here, so groups are
    /// not known.
    fn refuse_system_user(
        &self,
        source: &PamSource,
        (rule, route): (&SignInRule, &sites::ServedRoute),
        told: &mut Explanation,
    ) -> Option<Response> {
        let asked = format!(
            "PAM (service {:?}), which is not asked here,",
            source.rules.service
        );
        let Some(user) = self.user else {
            let name = &source.name;
            let why = format!("nobody has signed in; --user NAME tries an account of {name:?}");
            return self.refuse_for(told, NOBODY, Some(why), plain::ask_who(&source.realm));
        };
        let provided = format!("{asked} lets {user:?} in");
        let why = format!("{user:?} may, where {asked} lets it in");
        let may = (provided, why, "it is in".to_owned());
        self.refuse_supposed((rule, route, user), told, may, plain::error(403))
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
        (rule, route): (&SignInRule, &sites::ServedRoute),
        told: &mut Explanation,
    ) -> Option<Response> {
        let answer = |status: u16| plain::ask_for_token(status, &source.realm, None);
        let issuer = &source.rules.issuer;
        let token = match source.shown(self.request) {
            ShownToken::One(token) => token,
            ShownToken::Several => {
                return self.refuse_for(
                    told,
                    "require: there are several tokens",
                    None,
                    answer(400),
                );
            }
            ShownToken::None => return self.refuse_tokenless(source, (rule, route), told),
        };
        match source.check_waiting(token, hob_http::unix_ms()) {
            Err(TokenRefusal::KeysAway) => {
                let reason = TokenRefusal::KeysAway.reason();
                self.refuse_for(told, reason, None, plain::busy_for(AGAIN.as_secs()))
            }
            Err(refusal) => self.refuse_for(told, refusal.reason(), None, answer(401)),
            Ok(good) if !auth::answers(rule, &good.claims.account) => {
                let account = &good.claims.account;
                let who = format!("{:?}, {}", account.name, in_groups(&account.groups));
                leave(route, &who, told)
            }
            Ok(good) if auth::may(rule, &good.claims.account) => {
                let why = format!(
                    "the token is of {issuer:?}, for {:?}",
                    good.claims.account.name
                );
                self.rule(told, "require", RuleOutcome::LetsIn, why);
                None
            }
            Ok(_) => self.refuse_for(told, auth::NOT_NAMED, None, answer(403)),
        }
    }

    /// The answer for who shows no token, and could have none that is good here.
    fn refuse_tokenless(
        &self,
        source: &TokenSource,
        (rule, route): (&SignInRule, &sites::ServedRoute),
        told: &mut Explanation,
    ) -> Option<Response> {
        let answer = |status: u16| plain::ask_for_token(status, &source.realm, None);
        let issuer = &source.rules.issuer;
        let Some(user) = self.user else {
            let why = format!(
                "a token of {issuer:?} is asked for; --user NAME tries whose it is, --header \
                 'Authorization: Bearer TOKEN' one that you have"
            );
            return self.refuse_for(told, NOBODY, Some(why), answer(401));
        };
        let provided = format!("a token of {issuer:?} is shown that is good, for {user:?}");
        let why = format!("{user:?} may, with a token of {issuer:?}");
        let may = (provided, why, format!("its {:?} has", source.rules.groups));
        self.refuse_supposed((rule, route, user), told, may, answer(403))
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
        let peer = self.request.facts().peer.map(|peer| peer.ip());
        let by_address = match peer {
            Some(peer) => access::check_address(rules, Some(peer), || self.country()),
            None => Ok(()),
        };
        let checked = by_address.and_then(|()| access::check_method(rules, method));
        if let Err(refusal) = checked {
            self.request.record_mut().reason = Some(refusal.reason());
            let why = match (refusal, peer) {
                (AccessRefusal::Denied, Some(peer)) => format!("it has {peer}"),
                (AccessRefusal::NotAllowed, Some(peer)) => format!("it does not have {peer}"),
                (AccessRefusal::DeniedCountry, Some(peer)) => {
                    format!("it has the country of {peer}, {}", self.country())
                }
                (AccessRefusal::NotAllowedCountry, Some(peer)) => {
                    format!("it has neither {peer} nor its country, {}", self.country())
                }
                _ => format!("it does not have {}", shown(method)),
            };
            self.rule(told, refusal.key(), RuleOutcome::Refuses, why);
            return Some((refusal, plain::refuse_access(refusal, rules, method)));
        }
        let mut provided = Vec::new();
        let asks_address = rules.allow.is_some() || !rules.deny.is_empty();
        if (asks_address || rules.asks_country()) && peer.is_none() {
            provided.push("the client's address is one that `access` lets in");
            told.note(
                "`access` asks for the client's address: --from ADDRESS tries one".to_owned(),
            );
        }
        if !rules.certificates.is_empty() {
            provided.push("the client's certificate is one of `access.certificates`");
            told.note(
                "`access` asks for the client's certificate, which is not known here".to_owned(),
            );
        }
        let outcome = match provided.is_empty() {
            true => RuleOutcome::LetsIn,
            false => RuleOutcome::LetsInIf(provided.join(", and ")),
        };
        let from = peer.map_or_else(String::new, |peer| format!("{peer} may ask, "));
        let why = format!("{from}with {}", shown(method));
        self.rule(told, "access", outcome, why);
        None
    }
}

/// In the words of the record.
const NOBODY: &str = "require: nobody has signed in";

/// A route's `when` does not have somebody: the next one answers.
fn leave(route: &sites::ServedRoute, who: &str, told: &mut Explanation) -> Option<Response> {
    let why = format!("it is not for {who}");
    told.left.push((route.index as usize, why));
    Some(next_route())
}

fn in_groups(groups: &[String]) -> String {
    match groups {
        [] => "in no group".to_owned(),
        groups => format!("in {}", groups.join(", ")),
    }
}

fn and_in(groups: &[String]) -> String {
    match groups {
        [] => String::new(),
        groups => format!(", in {}", groups.join(", ")),
    }
}

/// The limits of a route in words, by their keys.
pub fn limit_texts(route: &sites::ServedRoute) -> Vec<(&'static str, String)> {
    let limits = limits_of(route).into_iter();
    limits.map(|(limit, text, _)| (limit, text)).collect()
}

/// The same, and whether it is the running server that knows how far they are used up.
fn limits_of(route: &sites::ServedRoute) -> Vec<(&'static str, String, bool)> {
    let of_dry_run = |dry_run| if dry_run { ", in a dry run" } else { "" };
    let mut limits = Vec::new();
    if let Some(rate) = &route.rate {
        let settings = &rate.settings;
        let text = format!(
            "{} in {} {}, {} at once{}",
            requests(settings.count as usize),
            duration_text(settings.period),
            alike(&settings.by, route),
            settings.burst,
            of_dry_run(settings.dry_run),
        );
        limits.push(("rate", text, true));
    }
    if let Some(limit) = &route.concurrency {
        let settings = &limit.settings;
        let text = format!(
            "{} in service at once {}, {} more wait {} at most{}",
            requests(settings.requests),
            alike(&settings.by, route),
            settings.queue,
            duration_text(settings.wait),
            of_dry_run(settings.dry_run),
        );
        limits.push(("concurrency", text, true));
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
        limits.push(("bandwidth", format!("{} at most", speeds.join(", ")), false));
    }
    limits
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
