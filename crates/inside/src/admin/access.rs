//! `GET /v1/access`: who may what, by the config in force. A request is tried with
//! `GET /v1/explain` (`explained`).

use std::sync::Arc;

use hob_http::Answered;
use hob_server::config::{
    AccessRules, AccountSource, BanSettings, Config, SignInRule, duration_text,
};
use hob_server::explain::{RulePlaces, limit_texts};
use hob_server::serve::ServerState;
use hob_server::serve::sites::{ServedRoute, ServedSite};
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api::{Access, AccessTerms, BanTerms, LimitTerms, RouteAccess, SignInTerms, SiteAccess};

/// The lane of the file pool in which the config is gone through.
const LANE: u64 = u64::MAX - 12;
/// Routes of one answer.
const LIMIT_MAX: u64 = 10_000;

/// `GET /v1/access?site=example.org&limit=1000`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let shared = Arc::clone(&ask.admin.shared);
    let site = ask.query("site").filter(|site| !site.is_empty());
    if let Some(site) = &site
        && !shared.sites().names().contains(site)
    {
        return Answered::Ready(reply::text(404, format!("there is no site {site:?}")));
    }
    let limit = ask.number("limit", LIMIT_MAX).min(LIMIT_MAX) as usize;
    let (config, sources) = {
        let configured = ask.admin.configured.lock();
        (
            Arc::clone(&configured.config),
            Arc::clone(&configured.sources),
        )
    };
    let pool = Arc::clone(&shared);
    let job = pool.pool.for_lane(LANE).run(move || {
        let looked = WhoMay {
            shared: &shared,
            config: &config,
            places: RulePlaces::new(&sources),
        };
        json!(looked.all(site.as_deref(), limit))
    });
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok(told) => reply::object(200, &told),
            Err(refusal) => refusal,
        }
    }))
}

/// What it is read from: the sites in force, and how the config says it.
struct WhoMay<'a> {
    shared: &'a ServerState,
    config: &'a Config,
    places: RulePlaces<'a>,
}

impl WhoMay<'_> {
    fn all(&self, wanted: Option<&str>, limit: usize) -> Access {
        let sites = self.shared.sites();
        let mut left = limit;
        let mut told = Access::default();
        for index in 0..self.config.sites.len() {
            let Some(site) = sites.site(index as u32) else {
                break;
            };
            if wanted.is_some_and(|wanted| wanted != site.name) {
                continue;
            }
            if left == 0 {
                told.more = true;
                break;
            }
            let site_told = self.site(index, site, left);
            told.more |= site_told.routes.len() < site.routes.len();
            left -= site_told.routes.len().min(left);
            told.sites.push(site_told);
        }
        let bans = self.config.bans.iter();
        told.bans = bans.map(|ban| self.ban(ban)).collect();
        told
    }

    fn site(&self, index: usize, site: &ServedSite, limit: usize) -> SiteAccess {
        let written = &self.config.sites[index];
        let routes = site.routes.iter().enumerate().take(limit);
        SiteAccess {
            site: site.name.clone(),
            names: written.names.clone(),
            place: format!("{}:{}", written.place.file, written.place.line),
            down: self.shared.maintenance.retry_s(&site.name).is_some(),
            https_only: site.https_only,
            requires_certificate: site.requires_client,
            routes: routes
                .filter_map(|(at, route)| self.route((index, at), site, route))
                .collect(),
        }
    }

    fn route(
        &self,
        at: (usize, usize),
        site: &ServedSite,
        route: &ServedRoute,
    ) -> Option<RouteAccess> {
        // Sites of another config than this one are in force while it is being changed.
        let written = self.config.sites.get(at.0)?.routes.get(at.1)?;
        let place = |key: &str| self.places.of_route((at.0, Some(at.1)), key);
        let access = route.access.as_deref().map(|rules| AccessTerms {
            place: place("access"),
            allow: rules.allow.as_ref().map(|allow| allow.texts()),
            deny: rules.deny.texts(),
            methods: rules.methods.clone(),
            certificates: rules.certificates.iter().map(ToString::to_string).collect(),
        });
        let rule = route.require.as_deref();
        let sign_in = rule.and_then(|rule| self.sign_in(rule, place("require")));
        let is_any = rule.is_some_and(|rule| rule.is_alternative);
        let both = access.is_some() && sign_in.is_some();
        let limits = limit_texts(route)
            .into_iter()
            .map(|(limit, text)| LimitTerms {
                limit: limit.to_owned(),
                text,
                place: place(limit),
            });
        let is_free = !asks(route.access.as_deref()) && sign_in.is_none();
        Some(RouteAccess {
            index: at.1,
            path: route.path.clone(),
            when: written.when.as_ref().map(ToString::to_string),
            handler: route.handler.kind().word().to_owned(),
            place: format!("{}:{}", written.place.file, written.place.line),
            internal: route.is_internal,
            open: is_free && !route.is_internal && !site.requires_client,
            who: who(
                route,
                (access.as_ref(), sign_in.as_ref()),
                is_any,
                site.requires_client,
            ),
            satisfy: both.then(|| if is_any { "any" } else { "all" }.to_owned()),
            access,
            sign_in,
            limits: limits.collect(),
        })
    }

    fn sign_in(&self, rule: &SignInRule, place: Option<String>) -> Option<SignInTerms> {
        let auth = self.config.auth.get(rule.auth)?;
        Some(SignInTerms {
            place,
            auth: auth.name.clone(),
            kind: match &auth.source {
                AccountSource::Files(_) => "htpasswd",
                AccountSource::Route(_) => "forward",
                AccountSource::SignedUrls(_) => "signed_urls",
                AccountSource::Tokens(_) => "jwt",
                AccountSource::Pam(_) => "pam",
            }
            .to_owned(),
            users: rule.users.clone(),
            groups: rule.groups.clone(),
            all_groups: rule.all_groups.clone(),
        })
    }

    fn ban(&self, ban: &BanSettings) -> BanTerms {
        let mut what: Vec<String> = { ban.statuses.iter() }
            .map(|range| match (range.start(), range.end()) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first} to {last}"),
            })
            .collect();
        what.extend(ban.refusals.iter().map(|cause| cause.word().to_owned()));
        let dry = if ban.dry_run { ", in a dry run" } else { "" };
        BanTerms {
            name: ban.name.clone(),
            text: format!(
                "{} in {} of {} ban for {}{dry}",
                ban.count,
                duration_text(ban.window),
                what.join(", "),
                duration_text(ban.time)
            ),
            place: self.places.of_ban(&ban.name),
        }
    }
}

/// Something is asked of who comes.
fn asks(rules: Option<&AccessRules>) -> bool {
    rules.is_some_and(|rules| rules.asks_who() || !rules.methods.is_empty())
}

/// Who may, in words.
fn who(
    route: &ServedRoute,
    (access, sign_in): (Option<&AccessTerms>, Option<&SignInTerms>),
    is_any: bool,
    needs_certificate: bool,
) -> String {
    if route.is_internal {
        return "only other routes".to_owned();
    }
    let from = access.and_then(by_connection);
    let mut text = match (from, sign_in.map(signed_in)) {
        (None, None) if needs_certificate => "who has a certificate".to_owned(),
        (None, None) => "everybody".to_owned(),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(from), Some(who)) if is_any => format!("{from}, or {who}"),
        (Some(from), Some(who)) => format!("{from}, and {who}"),
    };
    let methods = access.map(|access| access.methods.join(", "));
    if let Some(methods) = methods.filter(|methods| !methods.is_empty()) {
        text = format!("{text}, with {methods}");
    }
    text
}

/// Who may by address and certificate; `None` is everybody.
fn by_connection(access: &AccessTerms) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(allow) = &access.allow {
        parts.push(format!("from {}", allow.join(", ")));
    }
    if !access.deny.is_empty() {
        parts.push(format!("not from {}", access.deny.join(", ")));
    }
    if !access.certificates.is_empty() {
        let names = access.certificates.join(", ");
        parts.push(format!("with the certificate of {names}"));
    }
    (!parts.is_empty()).then(|| format!("who comes {}", parts.join(", ")))
}

fn signed_in(terms: &SignInTerms) -> String {
    let auth = &terms.auth;
    if terms.kind == "signed_urls" {
        return format!("who has a link signed for {auth}");
    }
    let mut whom = Vec::new();
    if !terms.users.is_empty() {
        whom.push(terms.users.join(", "));
    }
    if !terms.groups.is_empty() {
        whom.push(format!("members of {}", terms.groups.join(", ")));
    }
    let mut text = match whom.is_empty() {
        true => format!("who signs in to {auth}"),
        false => format!("{} signed in to {auth}", whom.join(" and ")),
    };
    if !terms.all_groups.is_empty() {
        text.push_str(&format!(" and in all of {}", terms.all_groups.join(", ")));
    }
    text
}
