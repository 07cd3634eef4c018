//! The request's way through the decisions, in the order of `answer.rs`, each with its reason.

use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use hob_http::{Answered, Request, Response, ToldOfClient};

use super::asked::{ExplainedRequest, ExplainedUrl};
use super::rules::{RuleOutcome, RulePlaces};
use super::settings;
use super::told::{
    ExplainedAnswer, ExplainedRoute, ExplainedSite, Explanation, Handler, Listener, Log, LogTarget,
    Path, Rewrite,
};
use super::when;
use crate::handle::config::{
    Config, ConfigSources, ListenAddress, LogChoice, LogSettings, SourceLocation, UnknownHost,
};
use crate::handle::files::find::ELSEWHERE;
use crate::handle::plain;
use crate::handle::script::control::REDIRECTS_MAX;
use crate::limits::limits;
use crate::route::host::{Chosen, ChosenBy, normalise_host};
use crate::route::pattern::Mismatch;
use crate::route::redirects::MovedTo;
use crate::route::target;
use crate::route::template::{Rewrite as RewriteTemplate, TemplateValues, without_port};
use crate::serve::ServerState;
use crate::serve::banned::{ban_of, until};
use crate::serve::bans::BY_HAND;
use crate::serve::captured::CapturedRequest;
use crate::serve::dress::{dress, own_page};
use crate::serve::site_tls::refuse_clear;
use crate::serve::sites::NO_SITE;
use crate::serve::sites::{self, Sites};
use crate::step::cors;
use crate::step::when::AskedRoute;

/// Says what would answer a request with a config that was made from these sources, and why. Opens
/// the roots of the config and looks at the disk as the server would. Who is banned, and which
/// sites are down, is asked of the server that is `running`; nothing is counted there.
///
/// # Errors
/// What is wrong with the request as it is written, or why this config could not be served.
pub fn explain(
    (config, sources): (&Config, &ConfigSources),
    asked: &ExplainedRequest,
    running: Option<&ServerState>,
) -> Result<Explanation, String> {
    let address = asked.address()?;
    let head = asked.head(&address)?;
    let shared = Arc::new(ServerState::new(&config.cache, 1));
    let log_ids: Vec<u16> = (1..).zip(&config.logs).map(|(id, _)| id).collect();
    let sites = Sites::build(config, 0, &log_ids, &shared)?;
    let mut told = Explanation {
        method: asked.method.clone(),
        url: asked.url.clone(),
        listeners: listeners(config, &address),
        ..Explanation::default()
    };
    note_listeners(&mut told, &address);
    let request = match Request::offline(&head, &limits(&config.limits)) {
        Ok(request) => request,
        Err(refusal) => {
            told.refused = Some(refusal.reason.to_owned());
            told.log = log(LogChoice::Inherit, LogChoice::Inherit, config);
            told.answer = answer(&plain::error(refusal.status));
            return Ok(told);
        }
    };
    let entrance = entrance(config, &told, &address);
    sites.number_listeners(numbers(config, entrance).into_iter());
    let told_of_client = ToldOfClient {
        is_secure: Some(is_secure(&asked.url, entrance)),
        field: Rc::from(""),
        variables: None,
    };
    request.believe(asked.from, told_of_client);
    let way = ExplainContext {
        config,
        places: &RulePlaces::new(sources),
        running,
        sites: &sites,
        shared: &shared,
        request: &request,
        user: asked.user.as_deref(),
        groups: &asked.groups,
        listener: entrance.map_or_else(String::new, |one| one.address.to_string()),
    };
    let response = way.follow(&mut told);
    told.answer = match told
        .site
        .as_ref()
        .and_then(|site| sites.site(site.index as u32))
    {
        Some(site) => {
            let route = told.routes.last().filter(|route| route.mismatch.is_none());
            let route = route.and_then(|route| site.routes.get(route.index));
            ExplainedAnswer {
                is_own_error_page: own_page(site, &response).is_some(),
                ..answer(&dress(site, route, response))
            }
        }
        None => answer(&response),
    };
    told.answer.reason = request.record().reason.map(str::to_owned);
    Ok(told)
}

/// What a request is followed with.
pub(crate) struct ExplainContext<'a> {
    pub(super) config: &'a Config,
    /// Where its rules stand.
    pub(super) places: &'a RulePlaces<'a>,
    /// The server that is asked what it alone knows.
    pub(super) running: Option<&'a ServerState>,
    pub(super) sites: &'a Sites,
    pub(crate) shared: &'a Arc<ServerState>,
    pub(crate) request: &'a Request,
    /// Who has signed in, where that is said.
    pub(super) user: Option<&'a str>,
    /// Groups that they are taken to be in.
    pub(super) groups: &'a [String],
    /// Address of the listener that the request is taken to come in by.
    listener: String,
}

/// A request that has come to its route, and whose handler is asked next.
pub(crate) struct OnExplained<'a> {
    pub(crate) way: &'a ExplainContext<'a>,
    /// The site, and what the config says of it.
    pub(crate) site: (&'a sites::ServedSite, &'a crate::handle::config::Site),
    pub(crate) route: &'a sites::ServedRoute,
    /// The path in its normal form by which the route was found.
    pub(crate) matched: &'a [u8],
    /// The same, rewritten where the route says so.
    pub(crate) path: &'a [u8],
    /// Where it leaves the route's fixed folder.
    pub(crate) below: usize,
}

impl OnExplained<'_> {
    /// What its captures make paths of.
    pub(crate) fn captured(&self) -> CapturedRequest<'_> {
        CapturedRequest {
            pattern: &self.route.pattern,
            matched: self.matched,
            host: self.way.request.head().host(),
        }
    }
}

impl ExplainContext<'_> {
    fn follow(&self, told: &mut Explanation) -> Response {
        let head = self.request.head();
        told.host = shown(head.host());
        self.note_country(told);
        if let Some(refusal) = self.refuse_banned(told) {
            return refusal;
        }
        let chosen = self.sites.choose_site(self.request);
        if let ChosenBy::Unknown = chosen.by {
            match self.config.unknown_host {
                UnknownHost::Refuse => {
                    self.request.record_mut().reason = Some(NO_SITE);
                    told.log = log(LogChoice::Inherit, LogChoice::Inherit, self.config);
                    told.notes.push(format!(
                        "{}; `unknown_host = \"first\"` has the first site answer",
                        self.no_site()
                    ));
                    return plain::error(421);
                }
                UnknownHost::First => {
                    return plain::for_now(self.site(chosen, told));
                }
            }
        }
        self.site(chosen, told)
    }

    /// The answer of a client that the running server has banned.
    fn refuse_banned(&self, told: &mut Explanation) -> Option<Response> {
        let (facts, now_ms) = (self.request.facts(), hob_http::unix_ms());
        let client = facts.peer?.ip();
        let known = ban_of(
            (self.sites, &self.running?.bans),
            client,
            facts.listener,
            now_ms,
        )?;
        let (ban, until) = (&known.ban, until(&known.ban));
        self.request.record_mut().reason = Some("ban: the client is banned");
        told.log = log(LogChoice::Inherit, LogChoice::Inherit, self.config);
        let (place, by) = match ban.rule.as_str() {
            BY_HAND => (None, "an operator"),
            rule => (self.places.of_ban(rule), rule),
        };
        let why = format!("{client} is banned by {by} until {until}");
        told.rule_at("ban", place, (RuleOutcome::Refuses, why));
        Some(plain::banned(ban.until_ms.saturating_sub(now_ms)))
    }

    /// The answer in the place of a site's that wants TLS, or is down.
    fn refuse_by_site(&self, site: &sites::ServedSite, told: &mut Explanation) -> Option<Response> {
        let is_secure = self.request.facts().is_secure();
        // Where only a path was given it is not known how it comes.
        let is_clear = told.url.trim().to_ascii_lowercase().starts_with("http:");
        if is_clear && let Some(answer) = refuse_clear(self.sites, site, self.request, true) {
            let (rule, why) = match answer.status() {
                403 => ("tls.client", "who comes in clear text shows no certificate"),
                _ => ("https_only", "clear text is sent to TLS"),
            };
            told.asked_rule(self.places, rule, (RuleOutcome::Refuses, why.to_owned()));
            return Some(answer);
        }
        if is_secure && site.requires_client {
            let provided = "the client has shown a certificate that is believed".to_owned();
            let why = "who has a certificate may connect".to_owned();
            told.asked_rule(
                self.places,
                "tls.client",
                (RuleOutcome::LetsInIf(provided), why),
            );
        }
        let peer = self.request.facts().peer.map(|peer| peer.ip());
        let retry_s = self.running?.maintenance.refuses(site, peer)?;
        self.request.record_mut().reason = Some("the site is down for maintenance");
        let why = format!("the site is down; clients come again in {retry_s} s");
        told.rule_at("maintenance", None, (RuleOutcome::Refuses, why));
        Some(plain::busy_for(retry_s))
    }

    fn site(&self, chosen: Chosen, told: &mut Explanation) -> Response {
        let head = self.request.head();
        let index = chosen.site as usize;
        let (Some(site), Some(settings)) =
            (self.sites.site(chosen.site), self.config.sites.get(index))
        else {
            return plain::error(404);
        };
        told.log = log(LogChoice::Inherit, settings.log, self.config);
        told.site = Some(ExplainedSite {
            index,
            names: settings.names.clone(),
            by: match chosen.by {
                ChosenBy::Name => "name",
                ChosenBy::Wildcard { .. } => "wildcard",
                ChosenBy::Default => "default",
                ChosenBy::Unknown => "first",
            },
            why: self.why_site(chosen.by, index),
            place: place(&settings.place),
        });
        if let Some(refusal) = self.refuse_by_site(site, told) {
            return refusal;
        }
        let raw = head.path();
        if raw == b"*" {
            return plain::options(plain::READING);
        }
        if head.method() == b"CONNECT" {
            return plain::wrong_method(b"CONNECT", plain::READING);
        }
        let mut room = Vec::new();
        let normal = target::normalise(raw, &mut room);
        told.path = Some(Path {
            raw: shown(raw),
            normal: match normal {
                Ok(normal) => Ok(shown_path(normal.path(raw, &room))),
                Err(bad) => Err(bad.reason().to_owned()),
            },
        });
        let Ok(normal) = normal else {
            return plain::error(400);
        };
        let path = normal.path(raw, &room);
        if let Some(form) = &site.address_form
            && let Some(location) = form.location(self.request, path)
        {
            told.note("`www` or `path_case`: the site uses another form of the address".to_owned());
            return plain::move_for_good(head.method(), &location);
        }
        match self.moved((site, settings), path, told) {
            Ok(path) => self.route(site, settings, path, told),
            Err(moved) => *moved,
        }
    }

    pub(crate) fn route(
        &self,
        site: &sites::ServedSite,
        settings: &crate::handle::config::Site,
        path: &[u8],
        told: &mut Explanation,
    ) -> Response {
        let found = site.find(path, self.request);
        self.found((site, settings), (path, None), found, told)
    }

    /// The same of the routes behind one that was found for a path, and has left it to them.
    pub(crate) fn route_behind(
        &self,
        (site, settings): (&sites::ServedSite, &crate::handle::config::Site),
        (path, before): (&[u8], u32),
        told: &mut Explanation,
    ) -> Response {
        let found = site.find_behind(path, before, self.request);
        self.found((site, settings), (path, Some(before)), found, told)
    }

    /// What a route does that was found for a path, behind another one perhaps.
    fn found(
        &self,
        (site, settings): (&sites::ServedSite, &crate::handle::config::Site),
        (path, before): (&[u8], Option<u32>),
        found: Option<(u32, usize)>,
        told: &mut Explanation,
    ) -> Response {
        told.looks += 1;
        if told.looks > REDIRECTS_MAX + 1 {
            self.request.record_mut().reason = Some("redirect: more than 10 internal redirects");
            return plain::error(500);
        }
        let tried = found.map_or(site.routes.len(), |(index, _)| index as usize + 1);
        let all = site.routes.iter().zip(&settings.routes).enumerate();
        told.routes = all
            .take(tried)
            .map(|(index, (route, settings))| self.tried(index, (site, route), settings, path))
            .collect();
        let passed = before.map_or(0, |before| before as usize + 1);
        for route in { told.routes.iter_mut() }.take(passed) {
            if route.mismatch.is_none() {
                let left = told.left.iter().find(|(index, _)| *index == route.index);
                let why = left.map_or("has no such file, and leaves the request on", |(_, why)| {
                    why
                });
                route.mismatch = Some(why.to_owned());
                route.is_skipped = true;
            }
        }
        let Some((index, below)) = found else {
            return match self.slash((site, settings), told) {
                true => plain::add_slash(self.request),
                false => plain::error(404),
            };
        };
        let (route, written) = (
            &site.routes[index as usize],
            &settings.routes[index as usize],
        );
        let site_index = told.site.as_ref().map_or(0, |site| site.index);
        told.handler = Some(Handler {
            name: route.handler.kind().word(),
            settings: settings::settings(self.places.tree(), (site_index, index as usize)),
        });
        told.log = log(written.log, settings.log, self.config);
        if route.is_internal && told.answered_as.is_none() {
            self.request.record_mut().reason = Some("the route is internal");
            return plain::error(404);
        }
        if before.is_none()
            && told.answered_as.is_none()
            && let Some(redirect) = site.slash_redirect(index, self.request, path)
        {
            told.note("`slash`: the route uses another form of the path".to_owned());
            return redirect;
        }
        match self.before_handler(route, path, told) {
            None => {}
            Some(left) if left.status() == ELSEWHERE => {
                return self.route_behind((site, settings), (path, index), told);
            }
            Some(answer) => return answer,
        }
        told.body_bytes_max = Some(route.body_bytes_max);
        if !self.request.limit_body(route.body_bytes_max) && !site.leads_on(route) {
            self.request.record_mut().reason = Some("the announced body is too large");
            return plain::error(413);
        }
        match &route.rewrite {
            None => self.handle((site, settings), route, (path, path, below), told),
            Some(rewrite) => self.rewritten((site, settings), (index, rewrite), path, told),
        }
    }

    /// What the route with this index does with the path that it rewrites another one to.
    fn rewritten(
        &self,
        (site, settings): (&sites::ServedSite, &crate::handle::config::Site),
        (index, rewrite): (u32, &RewriteTemplate),
        path: &[u8],
        told: &mut Explanation,
    ) -> Response {
        let route = &site.routes[index as usize];
        let Some(captures) = route.pattern.matches(path) else {
            return plain::error(500);
        };
        let head = self.request.head();
        let facts = TemplateValues {
            path,
            raw_path: head.path(),
            query: head.query(),
            host: head.host(),
            captures: &captures,
        };
        let mut rewritten = Vec::new();
        let made = rewrite.expand_path(&facts, &mut rewritten);
        let query = rewrite.expand_query(&facts).map(|query| {
            self.request.rewrite_query(&query);
            format!("?{}", shown(&query))
        });
        let query = query.unwrap_or_default();
        let written = &settings.routes[index as usize];
        told.rewrite = Some(Rewrite {
            to: written.rewrite.clone().unwrap_or_default(),
            path: match made {
                Ok(()) => Ok(shown_path(&rewritten) + &query),
                Err(bad) => Err(bad.reason().to_owned()),
            },
        });
        match made {
            Ok(()) => self.handle((site, settings), route, (path, &rewritten, 1), told),
            Err(_) => plain::error(400),
        }
    }

    /// A route held against the request: its path, then its `when`.
    fn tried(
        &self,
        index: usize,
        (site, route): (&sites::ServedSite, &sites::ServedRoute),
        settings: &crate::handle::config::Route,
        path: &[u8],
    ) -> ExplainedRoute {
        let mut route = compared(index, route, settings, path);
        if let (None, Some(conditions), Some(when)) =
            (&route.mismatch, &site.conditions, &settings.when)
            && let Some(unmet) = conditions.unmet(route.index as u32, &AskedRoute::of(self.request))
        {
            let why = when::why_not(unmet, when, self.request, (&self.listener, self.country()));
            route.mismatch = Some(why);
            route.is_skipped = true;
        }
        route
    }

    /// The path that is answered for a normal one; an error is the answer for one that has moved.
    fn moved<'p>(
        &self,
        (site, settings): (&'p sites::ServedSite, &crate::handle::config::Site),
        path: &'p [u8],
        told: &mut Explanation,
    ) -> Result<&'p [u8], Box<Response>> {
        let moved = { site.redirects.as_ref() }.and_then(|redirects| redirects.find(path));
        let (Some(moved), Some(list)) = (moved, &settings.redirects) else {
            return Ok(path);
        };
        let at = format!("{}:{}", list.file.display(), moved.line);
        match &moved.to {
            MovedTo::Redirect(target) => {
                told.note(format!(
                    "`redirects`: {at} says where the path has moved to"
                ));
                let location = target.location(self.request.head().query());
                Err(Box::new(plain::redirect(target.status, &location)))
            }
            MovedTo::Rewrite(path, query) => {
                self.request.rewrite_path(path);
                let mut to = shown_path(path);
                if let Some(query) = query {
                    self.request.rewrite_query(query);
                    to = format!("{to}?{}", shown(query));
                }
                told.note(format!("`redirects`: {at} has {to} answered"));
                Ok(path)
            }
        }
    }

    /// The answer to a browser that asks first. What another one's page may is told.
    fn preflight(&self, route: &sites::ServedRoute, told: &mut Explanation) -> Option<Response> {
        let cors = route.cors.as_ref()?;
        let may = match cors::may_read(cors, self.request) {
            None => return None,
            Some(true) => "`cors`: pages of this origin may read the answer",
            Some(false) => "`cors`: browsers let no page of this origin read the answer",
        };
        told.note(may.to_owned());
        cors::preflight(cors, self.request).map(|fields| plain::preflight(&fields))
    }

    /// The answer that comes before the handler's: to a browser that asks first, or to who may not
    /// have the route's.
    fn before_handler(
        &self,
        route: &sites::ServedRoute,
        path: &[u8],
        told: &mut Explanation,
    ) -> Option<Response> {
        let answer = self.preflight(route, told);
        answer.or_else(|| self.refuse_client((route, path), told))
    }

    fn handle(
        &self,
        site: (&sites::ServedSite, &crate::handle::config::Site),
        route: &sites::ServedRoute,
        (matched, path, below): (&[u8], &[u8], usize),
        told: &mut Explanation,
    ) -> Response {
        let on = OnExplained {
            way: self,
            site,
            route,
            matched,
            path,
            below,
        };
        route.handler.explain(&on, told)
    }

    /// Tells whether a path that nobody answers is sent to its slash.
    pub(crate) fn slash(
        &self,
        (site, settings): (&sites::ServedSite, &crate::handle::config::Site),
        told: &mut Explanation,
    ) -> bool {
        let slashes = site.slashes.as_ref();
        let Some(index) = slashes.and_then(|slashes| slashes.route(self.request)) else {
            return false;
        };
        let lacking = &settings.routes[index as usize];
        told.notes.push(format!(
            "nobody answers the path as it is: it is sent to its slash, for {} ({}), unless that \
             route says `strict = true`",
            lacking.path,
            place(&lacking.place)
        ));
        true
    }

    fn why_site(&self, by: ChosenBy, index: usize) -> String {
        let host = self.request.head().host();
        let mut buffer = [0; crate::route::host::HOST_BYTES_MAX];
        let normal = normalise_host(host, &mut buffer);
        match by {
            ChosenBy::Name => "the host is one of its names".to_owned(),
            ChosenBy::Wildcard { parent_bytes } => {
                let name = normal.unwrap_or_default();
                let parent = &name[name.len().saturating_sub(parent_bytes)..];
                format!("the host fits its name \"*{}\"", shown(parent))
            }
            ChosenBy::Unknown => format!(
                "{}; the first site answers, says `unknown_host`, and permanent redirects are \
                 sent as temporary ones",
                self.no_site()
            ),
            ChosenBy::Default if self.config.sites.len() == 1 => "it is the only site".to_owned(),
            ChosenBy::Default => {
                let site = &self.config.sites[index];
                let default = match site.names.is_empty() {
                    true => "the site without names is the default",
                    false => "the first site is the default",
                };
                format!("{}; {default}", self.no_site())
            }
        }
    }

    /// Why no site is the host's by name.
    fn no_site(&self) -> String {
        let host = self.request.head().host();
        let mut buffer = [0; crate::route::host::HOST_BYTES_MAX];
        match normalise_host(host, &mut buffer) {
            Some(name) => format!("no site is called \"{}\"", shown(name)),
            None if without_port(host).is_empty() => "the request names no host".to_owned(),
            None => format!("\"{}\" is no host name", shown(host)),
        }
    }
}

fn compared(
    index: usize,
    route: &sites::ServedRoute,
    settings: &crate::handle::config::Route,
    path: &[u8],
) -> ExplainedRoute {
    let compared = route.pattern.compare(path);
    let captures = match &compared {
        Ok(captures) => (0..)
            .zip(route.pattern.names())
            .filter_map(|(at, name)| Some((name.to_owned(), shown_path(captures.text(at, path)?))))
            .collect(),
        Err(_) => Vec::new(),
    };
    ExplainedRoute {
        index,
        path: settings.path.clone(),
        place: place(&settings.place),
        mismatch: compared.err().map(|mismatch| why_not(mismatch, path)),
        is_skipped: false,
        captures,
    }
}

fn why_not(mismatch: Mismatch<'_>, path: &[u8]) -> String {
    match mismatch {
        Mismatch::Segment { wanted, begin, end } if begin == end => {
            format!(
                "the path has nothing where it has \"{}\"",
                shown_path(wanted)
            )
        }
        Mismatch::Segment { wanted, begin, end } => format!(
            "the path has \"{}\" where it has \"{}\"",
            shown_path(&path[begin..end]),
            shown_path(wanted)
        ),
        Mismatch::Part {
            before,
            after,
            begin,
            end,
        } => format!(
            "the path has \"{}\" where it has \"{}{{..}}{}\"",
            shown_path(&path[begin..end]),
            shown_path(before),
            shown_path(after)
        ),
        Mismatch::Regex => "the regular expression is not found in the path".to_owned(),
        Mismatch::Empty => "what it would capture is empty".to_owned(),
        Mismatch::Short => "the path ends before it does".to_owned(),
        Mismatch::Long { begin } if begin == path.len() => {
            "the path has a slash more at its end".to_owned()
        }
        Mismatch::Long { begin } => {
            format!("the path goes on with \"/{}\"", shown_path(&path[begin..]))
        }
        Mismatch::Suffix(suffix) => format!("the path does not end in \"{}\"", shown_path(suffix)),
    }
}

fn listeners(config: &Config, address: &ExplainedUrl) -> Vec<Listener> {
    let leads_to = |listener: &ListenAddress| match (listener, address.port) {
        (_, None) => true,
        (ListenAddress::Tcp(own), Some(port)) => {
            let host = without_port(address.host.as_deref().unwrap_or_default().as_bytes());
            let host = shown(host);
            let wanted: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
            own.port() == port
                && wanted.is_none_or(|wanted| own.ip().is_unspecified() || own.ip() == wanted)
        }
        (ListenAddress::Unix(_) | ListenAddress::Inherited(_), Some(_)) => false,
    };
    let listener = |listener: &crate::handle::config::Listener| Listener {
        address: listener.address.to_string(),
        is_direct: leads_to(&listener.address),
        log: match listener.log {
            LogChoice::Log(index) => config.logs.get(index).map(log_name),
            LogChoice::Off | LogChoice::Inherit => None,
        },
    };
    config.site_listeners().map(listener).collect()
}

/// The listener that the request is taken to come in by: the first that the URL leads to, of those
/// that speak as it says; where only a path was given, the first.
fn entrance<'a>(
    config: &'a Config,
    told: &Explanation,
    address: &ExplainedUrl,
) -> Option<&'a crate::handle::config::Listener> {
    let is_https = told.url.trim().to_ascii_lowercase().starts_with("https:");
    let direct = told.listeners.iter().map(|one| one.is_direct);
    let has_direct = direct.clone().any(|is_direct| is_direct);
    let led_to = config.site_listeners().zip(direct);
    let led_to = led_to.filter(|(_, is_direct)| *is_direct || !has_direct);
    let mut all: Vec<_> = led_to.map(|(listener, _)| listener).collect();
    // What the URL does not say decides nothing.
    all.sort_by_key(|one| address.port.is_some() && one.tls.is_some() != is_https);
    all.first().copied()
}

/// Numbers of listeners, of which an explained request's is 0.
fn numbers(config: &Config, entrance: Option<&crate::handle::config::Listener>) -> Vec<u16> {
    let is_it = |one| entrance.is_some_and(|entrance| std::ptr::eq(one, entrance));
    let listeners = config.listeners.iter();
    listeners
        .map(|one| if is_it(one) { 0 } else { u16::MAX })
        .collect()
}

/// Whether a request is taken to come over TLS: the URL says so, or else the listener.
fn is_secure(url: &str, entrance: Option<&crate::handle::config::Listener>) -> bool {
    match url.split_once("://") {
        Some((scheme, _)) => scheme.trim().eq_ignore_ascii_case("https"),
        None => entrance.is_some_and(|listener| listener.tls.is_some()),
    }
}

fn note_listeners(told: &mut Explanation, address: &ExplainedUrl) {
    if address.port.is_some() && !told.listeners.iter().any(|listener| listener.is_direct) {
        let all: Vec<&str> = told
            .listeners
            .iter()
            .map(|one| one.address.as_str())
            .collect();
        told.notes.push(format!(
            "no listener is where the URL leads; they are {}. What follows holds when something in \
             front passes the request on with its host",
            all.join(", ")
        ));
    }
}

fn log(route: LogChoice, site: LogChoice, config: &Config) -> Option<Log> {
    let (choice, by) = match (route, site) {
        (LogChoice::Inherit, LogChoice::Inherit) => (LogChoice::Inherit, "listener"),
        (LogChoice::Inherit, choice) => (choice, "site"),
        (choice, _) => (choice, "route"),
    };
    let target = match choice {
        LogChoice::Off => LogTarget::Off,
        LogChoice::Inherit => LogTarget::ByListener,
        LogChoice::Log(index) => LogTarget::To(config.logs.get(index).map(log_name)?),
    };
    Some(Log { target, by })
}

fn log_name(log: &LogSettings) -> String {
    match &log.target {
        crate::handle::config::LogTarget::File(path) => path.display().to_string(),
        crate::handle::config::LogTarget::Stdout => "standard output".to_owned(),
        crate::handle::config::LogTarget::Syslog(syslog) => format!("syslog {}", syslog.address),
        crate::handle::config::LogTarget::Program(arguments) => {
            format!("program {}", arguments.join(" "))
        }
    }
}

fn answer(response: &Response) -> ExplainedAnswer {
    let fields = response.fields().iter();
    ExplainedAnswer {
        status: response.status(),
        fields: fields
            .map(|(name, value)| (shown(name), shown(value)))
            .collect(),
        body_bytes: response.body.len(),
        reason: None,
        is_own_error_page: false,
    }
}

/// The answer, waited for.
pub(crate) fn wait(answered: Answered) -> Response {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let future = match answered {
        Answered::Ready(response) => return response,
        Answered::Later(future) => future,
    };
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(response) => return response,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn place(place: &SourceLocation) -> String {
    format!("{}:{}", place.file, place.line)
}

/// A part of a normal path.
pub(crate) fn shown_path(path: &[u8]) -> String {
    target::PathDisplay(path).to_string()
}

pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
