//! Sites and routes as they run: everything decided at load time, found in one look-up.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hob_http::tls::{ClientRule, NO_RULE};
use hob_http::{Request, Response};
use hob_trace::HandlerKind;
use hob_trace::series::SeriesName;

use crate::handle::Handler;
use crate::handle::config::{
    self, AfterSteps, ClientNeed, Config, HeaderRules, LogChoice, UnknownHost,
};
use crate::handle::files::Files;
use crate::handle::files::media_type::MediaTypes;
use crate::handle::files::open::Root;
use crate::handle::plain;
use crate::route::host::Chosen;
use crate::route::pattern::Pattern;
use crate::route::redirects::{REDIRECTS_BYTES_MAX, Redirects};
use crate::route::table::{RouteAnswer, RouteTable};
use crate::route::target;
use crate::route::template::Rewrite;
use crate::serve::ServerState;
use crate::serve::address_form::AddressForm;
use crate::serve::bans::{BY_HAND, Bans};
use crate::serve::captured::Captured;
use crate::serve::claims::{Claims, find, find_behind};
use crate::serve::concurrency::ConcurrencyLimit;
use crate::serve::fleet::now_ms;
use crate::serve::hosts::ListenerHosts;
use crate::serve::log_values::LogValues;
use crate::serve::offers::{OfferReport, Offers};
use crate::serve::predecessor::route_name;
use crate::step::auth::{AuthSource, ServedAuth};
use crate::step::bandwidth::BandwidthLimit;
use crate::step::country::CountrySource;
use crate::step::early_hints::EarlyHints;
use crate::step::offences::BanRule;
use crate::step::rate::RateLimit;
use crate::step::when::{AskedRoute, RouteConditions};
use hob_config::{
    AccessRules, ClientSet, ClientTrust, CorsSettings, Country, Handlers, OverloadSettings,
    RedirectList, RoutePriority, SignInRule, SlashForm,
};

pub(crate) use super::building::SitesBuildContext;

/// Why a host is refused.
pub(crate) const NO_SITE: &str = "no site has the host's name";

/// All sites.
#[derive(Default)]
pub struct Sites {
    hosts: ListenerHosts,
    sites: Vec<ServedSite>,
    /// Access log of each listener, by its number; 0 is none.
    pub listener_logs: HashMap<u16, u16, foldhash::fast::RandomState>,
    /// What the formats of access logs ask for beside what every record has.
    pub log_values: LogValues,
    /// Whose word on its clients each listener believes, by its number.
    pub trusts: HashMap<u16, ClientTrust, foldhash::fast::RandomState>,
    /// Programs that are offered to other machines, and at which listeners.
    pub offers: Offers,
    /// Accounts that people sign in with, by the index that rules name.
    pub auth: Vec<ServedAuth>,
    /// Rules that ban clients.
    pub bans: Vec<BanRule>,
    /// The port that clients in clear text are sent to.
    pub https_port: u16,
    /// What is done for hosts that no site names, where each has names.
    pub unknown_host: UnknownHost,
    /// Paths of requests may have handles of visits.
    pub has_handles: bool,
    /// When low priorities are refused.
    pub overload: Option<OverloadSettings>,
    /// Which addresses are of which country, where a file says it.
    pub countries: Option<Arc<CountrySource>>,
    /// Answers of some route leave no faster than a `bandwidth` lets them.
    pub has_bandwidth: bool,
    /// Folders that files, pages and programs are looked for in, by their paths.
    pub roots: Vec<Arc<Root>>,
}

/// One site.
pub struct ServedSite {
    /// Its name for people; `*` for a site without one.
    pub name: String,
    /// Its number among series, for what no route answers.
    pub series: u16,
    table: Arc<RouteTable>,
    /// What routes ask of requests besides their paths; `None` where none asks anything.
    pub conditions: Option<Arc<RouteConditions>>,
    /// Which paths their own routes have to answer; `None` where any may be answered by another.
    pub claims: Option<Arc<Claims>>,
    /// Which paths only lack a slash; `None` where none does.
    pub slashes: Option<Arc<Slashes>>,
    /// Its routes, in order.
    pub routes: Vec<ServedRoute>,
    /// Bodies for error statuses.
    pub error_pages: Vec<ErrorPage>,
    /// Header rules for what no route answers.
    pub headers: HeaderRules,
    /// Access log of what no route answers; `None` is the listener's.
    pub log: Option<u16>,
    /// Requests in clear text are sent to TLS.
    pub https_only: bool,
    /// The form in which its addresses are used, where it cares.
    pub address_form: Option<AddressForm>,
    /// Paths that have moved.
    pub redirects: Option<Redirects>,
    /// Who may see it while it is down for maintenance.
    pub maintenance_allow: ClientSet,
    /// The number of the rule for certificates of clients.
    pub client_rule: u64,
    /// It says that they must have one.
    pub requires_client: bool,
    /// Its number in the table of counts.
    pub tally: u16,
}

/// Paths that lack nothing but a slash: `/notes`, where a route has `/notes/*`. Asked for paths
/// that nobody answers, and only for them.
pub struct Slashes {
    table: RouteTable,
    routes: Vec<u32>,
    conditions: Option<Arc<RouteConditions>>,
}

impl Slashes {
    fn of(
        conditions: Option<&Arc<RouteConditions>>,
        routes: &[ServedRoute],
        site: &config::Site,
    ) -> Option<Arc<Slashes>> {
        let lacking = (0..).zip(routes.iter().zip(&site.routes));
        let lacking = lacking.filter(|(_, (route, said))| !route.is_internal && !said.strict);
        let lacking =
            lacking.filter_map(|(index, (route, _))| Some((index, route.pattern.without_star()?)));
        let (routes, patterns): (Vec<u32>, Vec<Pattern>) = lacking.unzip();
        (!routes.is_empty()).then(|| {
            Arc::new(Slashes {
                table: RouteTable::build(&patterns),
                routes,
                conditions: conditions.cloned(),
            })
        })
    }

    /// Index of the route that would match the request's path if it ended in a slash.
    pub fn route(&self, request: &Request) -> Option<u32> {
        let (raw, mut room) = (request.head().path(), Vec::new());
        let normal = target::normalise(raw, &mut room).ok()?;
        let asked = AskedRoute::of(request);
        let answers = |index: u32| match (&self.conditions, self.routes.get(index as usize)) {
            (Some(conditions), Some(route)) if conditions.unmet(*route, &asked).is_some() => {
                RouteAnswer::No(self.table.next(index))
            }
            _ => RouteAnswer::Yes,
        };
        let found = self.table.find_where(normal.path(raw, &room), answers)?;
        self.routes.get(found.route as usize).copied()
    }

    /// Where a request is sent that nobody answers as it came.
    pub fn redirect(&self, request: &Request) -> Option<Response> {
        self.route(request).map(|_| plain::add_slash(request))
    }
}

/// One route.
pub struct ServedRoute {
    /// Its place among its site's.
    pub index: u32,
    /// Its pattern, as the config has it.
    pub path: String,
    /// What it is called among its site's: its pattern, and its `when`, if it has one.
    pub label: String,
    /// Its number among series.
    pub series: u16,
    /// Its pattern.
    pub pattern: Pattern,
    /// Who answers.
    pub handler: Handler,
    /// The rewritten path, if there is one.
    pub rewrite: Option<Rewrite>,
    /// Largest request body, in bytes.
    pub body_bytes_max: u64,
    /// Header rules.
    pub headers: HeaderRules,
    /// What is done to a program's answers.
    pub after: Arc<AfterSteps>,
    /// Folders of files that a program may have sent.
    pub sendfile: Vec<Arc<Files>>,
    /// Answers tell their clients how long they took.
    pub server_timing: bool,
    /// What browsers are told while an answer is made.
    pub early_hints: Option<EarlyHints>,
    /// Only reached by internal redirects.
    pub is_internal: bool,
    /// Whether its paths end in a slash.
    pub slash: SlashForm,
    /// Who may ask; `None` is everybody, with any method.
    pub access: Option<Arc<AccessRules>>,
    /// Who has to sign in.
    pub require: Option<Arc<SignInRule>>,
    /// Their accounts, where each account or host has a file of its own.
    pub accounts: Option<Arc<Captured<AuthSource>>>,
    /// Which pages elsewhere may ask.
    pub cors: Option<Arc<CorsSettings>>,
    /// How many requests are answered in a time; routes of a site may have one together.
    pub rate: Option<Arc<RateLimit>>,
    /// How many are in service at once; likewise.
    pub concurrency: Option<Arc<ConcurrencyLimit>>,
    /// How fast answers leave; likewise.
    pub bandwidth: Option<Arc<BandwidthLimit>>,
    /// Whether it is refused before others when there is too much to do.
    pub priority: RoutePriority,
    /// Nothing is done to what its handler gives: neither rules nor pages can apply.
    pub is_final: bool,
    /// Access log; `None` is the listener's.
    pub log: Option<u16>,
}

/// A page for an error status.
pub struct ErrorPage {
    /// Status code.
    pub status: u16,
    /// Media type.
    pub content_type: String,
    /// The page.
    pub body: Bytes,
}

/// Largest error page, in bytes.
const ERROR_PAGE_BYTES_MAX: u64 = 256 * 1024;

impl Sites {
    /// Makes sites of a config, the `generation`th of this server. `log_ids` are the numbers of its
    /// access logs. May wait for a disk.
    pub fn build(
        config: &Config,
        generation: u64,
        log_ids: &[u16],
        shared: &ServerState,
    ) -> Result<Sites, String> {
        let countries = countries(config, shared)?;
        let mut around = SitesBuildContext {
            shared,
            countries: countries.clone(),
            log_ids,
            generation,
            programs: &config.programs,
            auth: &config.auth,
            workers_max: config.limits.workers,
            roots_max: config.limits.roots,
            listeners: config.listeners.iter().map(|one| &one.address).collect(),
            site: String::new(),
            roots: HashMap::new(),
        };
        let sites = config
            .sites
            .iter()
            .map(|site| ServedSite::build(site, &mut around))
            .collect::<Result<Vec<_>, _>>()?;
        let auth = config.auth.iter();
        let auth = auth
            .map(|settings| ServedAuth::open(settings, &shared.issuers, (generation, now_ms())));
        let auth = auth.collect::<Result<Vec<_>, _>>()?;
        check_asked_routes(&sites, &auth, config)?;
        let mut routes = sites.iter().flat_map(|site: &ServedSite| &site.routes);
        let mut roots: Vec<_> = around.roots.into_values().collect();
        roots.sort_by(|one, other| one.path().cmp(other.path()));
        Ok(Sites {
            roots,
            overload: config.overload.clone(),
            has_bandwidth: routes.clone().any(|route| route.bandwidth.is_some()),
            has_handles: routes.any(|route| route.handler.has_handles()),
            hosts: ListenerHosts::of(config),
            sites,
            countries,
            auth,
            bans: config.bans.iter().map(|one| shared.ban_rule(one)).collect(),
            listener_logs: HashMap::default(),
            log_values: LogValues::default(),
            trusts: HashMap::default(),
            offers: Offers::of(&config.offers, &shared.sites().offers),
            https_port: 443,
            unknown_host: config.unknown_host,
        })
    }

    /// Ends bans that no rule would make any more.
    pub fn end_bans(&self, bans: &Bans) {
        bans.lift_where(|ban| {
            let mut rules = self.bans.iter().map(|rule| &rule.settings);
            let rule = rules.find(|rule| rule.name == ban.rule);
            let first = ban.network.first();
            let is_so = rule.is_some_and(|rule| !rule.dry_run && !rule.except.has(first));
            ban.rule != BY_HAND && !is_so
        });
    }

    /// Sets the rule for certificates of clients of each site, in their order.
    pub fn set_client_rules(&mut self, rules: &[Option<ClientRule>]) {
        for (site, rule) in self.sites.iter_mut().zip(rules) {
            site.client_rule = rule.as_ref().map_or(NO_RULE, ClientRule::number);
        }
    }

    /// Sets the numbers of listeners, in the order of the config, for routes that ask by which a
    /// request came in.
    pub fn number_listeners(&self, numbers: impl Iterator<Item = u16> + Clone) {
        self.hosts.number(numbers.clone());
        for conditions in self
            .sites
            .iter()
            .filter_map(|site| site.conditions.as_ref())
        {
            conditions.number_listeners(numbers.clone());
        }
    }

    /// The site for a request by its index, and what decided it.
    pub fn choose_site(&self, request: &Request) -> Chosen {
        let host = request.head().host();
        self.hosts.choose(host, request.facts().listener)
    }

    /// The country of a client; none is known where no file says it.
    pub fn country(&self, peer: Option<IpAddr>) -> Country {
        let countries = self.countries.as_ref();
        countries.map_or(Country::UNKNOWN, |countries| countries.find(peer))
    }

    /// A site by its index.
    pub fn site(&self, index: u32) -> Option<&ServedSite> {
        self.sites.get(index as usize)
    }

    /// A route and its site, by their indexes.
    pub fn route(&self, site: u32, route: u32) -> Option<(&ServedSite, &ServedRoute)> {
        let site = self.site(site)?;
        Some((site, site.routes.get(route as usize)?))
    }

    /// The indexes of a site and its route that servers call so among themselves.
    pub(crate) fn find_route(&self, name: &[u8]) -> Option<(u32, u32)> {
        let mut found = (0..).zip(&self.sites).flat_map(|(at, site)| {
            let routes = (0..).zip(&site.routes);
            routes.map(move |(index, route)| ((at, index), route_name(&site.name, &route.label)))
        });
        let (at, _) = found.find(|(_, known)| known.as_bytes() == name)?;
        Some(at)
    }

    /// Programs that hobs of other machines may ask for.
    pub fn offered(&self) -> Vec<OfferReport> {
        self.offers.told(|site, route| {
            let site = self.sites.get(site);
            let route = site.and_then(|site| site.routes.get(route));
            route.map(|route| route.path.clone()).unwrap_or_default()
        })
    }

    /// The names of all sites, as people call them.
    pub fn names(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.name.clone()).collect()
    }

    /// Every route with its site.
    pub fn each_route(&self) -> impl Iterator<Item = (&ServedSite, &ServedRoute)> {
        let sites = self.sites.iter();
        sites.flat_map(|site| site.routes.iter().map(move |route| (site, route)))
    }

    /// Every files handler with the index of its site.
    pub fn files_by_site(&self) -> impl Iterator<Item = (usize, &Arc<Files>)> {
        let sites = self.sites.iter().enumerate();
        sites.flat_map(|(index, site)| {
            let routes = site.routes.iter().flat_map(files_of);
            routes.map(move |files| (index, files))
        })
    }

    /// Every files handler, those of files that programs may have sent too.
    pub fn files_handlers(&self) -> impl Iterator<Item = &Arc<Files>> {
        self.files_by_site().map(|(_, files)| files)
    }
}

/// The file of countries; the one that is in force where it has not changed.
fn countries(config: &Config, shared: &ServerState) -> Result<Option<Arc<CountrySource>>, String> {
    let Some(file) = &config.countries else {
        return Ok(None);
    };
    let opened = CountrySource::open(file, shared.sites().countries.as_ref());
    opened
        .map(Some)
        .map_err(|text| format!("`countries`: {text}"))
}

/// Each site has the routes that are asked who may have what its others answer.
fn check_asked_routes(
    sites: &[ServedSite],
    auth: &[ServedAuth],
    config: &Config,
) -> Result<(), String> {
    for (site, said) in sites.iter().zip(&config.sites) {
        for (route, said) in site.routes.iter().zip(&said.routes) {
            let rule = route.require.as_ref();
            if let Some(ServedAuth::Route(asked)) = rule.and_then(|rule| auth.get(rule.auth))
                && site.table.find(asked.path.as_bytes()).is_none()
            {
                let text = format!("`require` asks {}, which no route answers", asked.path);
                return Err(told_at(said, &text));
            }
        }
    }
    Ok(())
}

/// A route's files handlers, those of a fallback and of files that its program may have sent too.
fn files_of(route: &ServedRoute) -> impl Iterator<Item = &Arc<Files>> {
    let own = route.handler.files();
    let fallback = own.and_then(|files| files.fallback.as_ref());
    own.into_iter().chain(fallback).chain(&route.sendfile)
}

/// What the routes of a site ask of requests, where some do.
fn conditions(
    site: &config::Site,
    table: &RouteTable,
    around: &SitesBuildContext<'_>,
) -> Option<Arc<RouteConditions>> {
    let whens = site.routes.iter().map(|route| route.when.as_ref());
    let conditions = RouteConditions::of(whens, table, &around.listeners)?;
    Some(Arc::new(
        conditions.with_countries(around.countries.clone()),
    ))
}

/// The path that a route's handler sees, where the config has one.
fn rewrite(route: &config::Route, pattern: &Pattern) -> Result<Option<Rewrite>, String> {
    let text = route.rewrite.as_deref();
    let rewrite = text.map(|text| Rewrite::parse(text, pattern));
    rewrite.transpose().map_err(|error| error.to_string())
}

/// Nothing is done to what a route's handler gives.
fn is_final(handler: &Handler, site: &config::Site, route: &config::Route) -> bool {
    let is_bare = site.error_pages.is_empty() && route.headers.is_empty();
    is_bare && !handler.runs_programs() && !route.server_timing
}

/// What browsers are told meanwhile; the next route tells it where requests are left to that.
fn early_hints(route: &config::Route) -> Option<EarlyHints> {
    let is_left = Handlers::leaves_to_next(&route.handler);
    EarlyHints::of(&route.early_hints).filter(|_| !is_left)
}

/// What is wrong with a route, and where it stands.
fn told_at(route: &config::Route, text: &str) -> String {
    let config::Route { place, path, .. } = route;
    format!("{}:{}: route \"{path}\": {text}", place.file, place.line)
}

/// The number of the access log that is chosen, 0 for none; `None` is the listener's.
fn log_of(choice: LogChoice, log_ids: &[u16], inherited: Option<u16>) -> Option<u16> {
    match choice {
        LogChoice::Off => Some(0),
        LogChoice::Log(index) => Some(log_ids.get(index).copied().unwrap_or(0)),
        LogChoice::Inherit => inherited,
    }
}

impl ServedSite {
    fn build(
        site: &config::Site,
        around: &mut SitesBuildContext<'_>,
    ) -> Result<ServedSite, String> {
        let site_log = log_of(site.log, around.log_ids, None);
        let name = site.name();
        around.site.clone_from(&name);
        let numbers = &around.shared.series;
        let series = |route: &str, handler: HandlerKind, program: String| {
            numbers.number(SeriesName {
                site: name.clone(),
                route: route.to_owned(),
                handler,
                program,
            })
        };
        let limits_of_site = around.limits_of_site(site);
        let own_series = series("", HandlerKind::None, String::new());
        let mut routes = Vec::with_capacity(site.routes.len());
        for (index, route) in (0..).zip(&site.routes) {
            let at = |text: String| told_at(route, &text);
            let pattern = Pattern::parse(&route.path).map_err(|error| at(error.to_string()))?;
            let rewrite = rewrite(route, &pattern).map_err(&at)?;
            let handler = Handler::build(&route.handler, around, (route, &pattern)).map_err(&at)?;
            let limits = around.limits(route, &limits_of_site);
            routes.push(ServedRoute {
                index,
                is_final: is_final(&handler, site, route),
                series: series(&route.label(), handler.kind(), route.handler.runs()),
                path: route.path.clone(),
                label: route.label(),
                accounts: around.accounts(route, &pattern).map_err(&at)?,
                pattern,
                sendfile: around.sendfile(route, &handler).map_err(&at)?,
                handler,
                rewrite,
                body_bytes_max: route.body,
                headers: route.headers.clone(),
                after: Arc::clone(&route.after),
                server_timing: route.server_timing,
                early_hints: early_hints(route),
                is_internal: route.internal,
                slash: route.slash,
                access: route.access.clone(),
                require: route.require.clone(),
                cors: route.cors.clone(),
                rate: limits.rate,
                concurrency: limits.concurrency,
                bandwidth: limits.bandwidth,
                priority: route.priority,
                log: log_of(route.log, around.log_ids, site_log),
            });
        }
        let table = Arc::new(RouteTable::build(routes.iter().map(|route| &route.pattern)));
        let conditions = conditions(site, &table, around);
        Ok(ServedSite {
            claims: Claims::of(&table, conditions.as_ref(), &routes),
            slashes: Slashes::of(conditions.as_ref(), &routes, site),
            conditions,
            tally: around.shared.counts.tallies.number(&name),
            series: own_series,
            name,
            table,
            routes,
            error_pages: error_pages(site)?,
            headers: site.headers.clone(),
            log: site_log,
            https_only: site.https_only,
            address_form: AddressForm::of(site),
            redirects: site.redirects.as_ref().map(redirects).transpose()?,
            maintenance_allow: site.maintenance_allow.clone(),
            client_rule: NO_RULE,
            requires_client: matches!(site.tls.client, Some((ClientNeed::Require, _))),
        })
    }

    /// Whether files of the route may be another's to answer for.
    pub fn leads_on(&self, route: &ServedRoute) -> bool {
        let files = route.handler.files();
        files.is_some_and(|files| self.claims.is_some() || files.settings.try_next)
    }

    /// Index of the route that answers a request for a normal path, and where the path leaves its
    /// fixed folder.
    pub fn find(&self, path: &[u8], request: &Request) -> Option<(u32, usize)> {
        let found = find(&self.table, self.conditions.as_deref(), path, request);
        found.map(|found| (found.route, found.below))
    }

    /// The same of the routes behind this one.
    pub fn find_behind(&self, path: &[u8], before: u32, request: &Request) -> Option<(u32, usize)> {
        let routes = (&*self.table, self.conditions.as_deref());
        let found = find_behind(routes, (path, before), request);
        found.map(|found| (found.route, found.below))
    }

    /// The site's own page for a status.
    pub fn error_page(&self, status: u16) -> Option<&ErrorPage> {
        self.error_pages.iter().find(|page| page.status == status)
    }
}

/// The paths of a file that have moved.
fn redirects(list: &RedirectList) -> Result<Redirects, String> {
    let file = list.file.display();
    let told = |text: String| format!("redirects {file}: {text}");
    let found = std::fs::metadata(&list.file).map_err(|error| told(error.to_string()))?;
    if found.len() > REDIRECTS_BYTES_MAX {
        return Err(told(format!(
            "it has more than {REDIRECTS_BYTES_MAX} bytes"
        )));
    }
    let text = std::fs::read_to_string(&list.file).map_err(|error| told(error.to_string()))?;
    Redirects::parse(&text, list.status).map_err(told)
}

fn error_pages(site: &config::Site) -> Result<Vec<ErrorPage>, String> {
    let types = MediaTypes::new([], "utf-8");
    let pages = site.error_pages.iter();
    pages
        .map(|(status, path)| error_page(*status, path, &types))
        .collect()
}

fn error_page(status: u16, path: &Path, types: &MediaTypes) -> Result<ErrorPage, String> {
    use std::os::unix::ffi::OsStrExt;
    let fail = |text: String| format!("error page {}: {text}", path.display());
    let size = std::fs::metadata(path)
        .map_err(|error| fail(error.to_string()))?
        .len();
    if size > ERROR_PAGE_BYTES_MAX {
        return Err(fail(format!(
            "it has {size} bytes; at most {ERROR_PAGE_BYTES_MAX} are allowed"
        )));
    }
    let body = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let media = types.of(path.file_name().unwrap_or_default().as_bytes());
    let content_type = match media.charset {
        Some(charset) => format!("{}; charset={charset}", media.name),
        None => media.name.to_owned(),
    };
    Ok(ErrorPage {
        status,
        content_type,
        body: body.into(),
    })
}
