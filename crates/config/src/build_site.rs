//! Sites, routes and handlers from their sections.

use std::sync::Arc;

use super::access::{AccessRules, read_access};
use super::address::check_host;
use super::auth::{SignInRule, read_require, rule_of_route};
use super::bandwidth::read_bandwidth;
use super::build::Logs;
use super::build_after::{Answering, KnownAfter, check_answering};
use super::check::{RouteSpots, SiteSpots};
use super::clients::ClientSet;
use super::concurrency::read_concurrency;
use super::cors::{CorsSettings, read_cors};
use super::fault::{Faults, Spot, listed};
use super::nearest::nearest;
use super::program::Programs;
use super::rate::read_rate;
use super::redirects::read_redirects;
use super::route::pattern::Pattern;
use super::route::template::{Rewrite, TemplateError, TemplateFault};
use super::tls::{SiteTls, build_site_tls};
use super::tree::{ConfigValue, Section};
use super::when::{read_listeners, read_when};
use super::{
    AfterSteps, Coding, HalfClose, Handlers, LimitSettings, RouteConfig, SiteConfig, WwwForm,
};

/// One `[[site]]`, and where its parts stand.
pub(crate) fn build_site<H: Handlers>(
    section: &Section,
    after: &mut KnownAfter,
    (root, limits, logs): (&Section, &LimitSettings, &Logs),
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (SiteConfig<H>, SiteSpots<H>) {
    let (names, name_spots) = read_names(section, faults);
    H::check_site_keys(section, faults);
    check_answering(section, faults);
    let answering = Answering::of_site(section);
    let (access, site_asks) = read_access(root, section, faults);
    let around = SiteDefaults {
        root,
        site: section,
        access,
        require: read_require(root, section, faults).flatten(),
        cors: read_cors(section, faults),
        after: after.of_site(section),
        limits,
        logs,
    };
    let (mut routes, mut route_spots) = (Vec::new(), Vec::new());
    let mut asks: Vec<Spot> = site_asks.into_iter().collect();
    for route in section.sections("route") {
        let (access, route_asks) = read_access(root, route, faults);
        asks.extend(route_asks);
        let (route, spots) = around.route(route, access, programs, faults);
        routes.push(route);
        route_spots.push(spots);
    }
    let takes_rest = |route: &RouteConfig<H>| route.path == "/*" && route.when.is_none();
    if section.optional_path("root").is_some() && !routes.iter().any(takes_rest) {
        let (route, spots) = around.root_route(faults);
        routes.push(route);
        route_spots.push(spots);
    }
    let (error_pages, error_page_spots) = error_pages(section, faults);
    let (tls, tls_spots) = build_site_tls(section, &names, faults);
    miss_certificates(&tls, asks, faults);
    miss_access(section, &routes, faults);
    let (listeners, listener_spots) = read_listeners(section, faults);
    let (redirects, redirects_spot) = read_redirects(section, faults).unzip();
    let site = SiteConfig {
        names,
        listeners,
        rate: read_rate(section, None, faults),
        concurrency: read_concurrency(section, None, faults),
        bandwidth: read_bandwidth(section, faults),
        routes,
        error_pages,
        headers: answering.headers(),
        https_only: section.flag("https_only"),
        www: read_www(section, faults),
        lower_paths: section.word("path_case") == "lower",
        redirects,
        maintenance_allow: ClientSet::read(section, "maintenance_allow", false, faults),
        tls,
        log: logs.choice(section, "log", faults),
        place: faults.sources().place(section.header),
    };
    let spots = SiteSpots {
        header: section.header,
        has_names: section.is_claimed("names") || !section.texts("names").is_empty(),
        names: name_spots,
        listeners: listener_spots,
        root: section.given("root").map(|given| given.spot),
        https_only: section
            .given("https_only")
            .map_or(section.header, |given| given.key),
        redirects: redirects_spot,
        has_handlers: section.has("root") || section.has("route"),
        tls: tls_spots,
        error_pages: error_page_spots,
        routes: route_spots,
    };
    (site, spots)
}

/// Which name a site's clients use; told where no two of its names differ so.
fn read_www(section: &Section, faults: &mut Faults<'_>) -> WwwForm {
    let form = match section.word("www") {
        "drop" => WwwForm::Drop,
        "add" => WwwForm::Add,
        _ => return WwwForm::Keep,
    };
    let names = section.texts("names");
    let is_named = |name: &str| names.iter().any(|(known, _)| *known == name);
    let mut bare = names
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("www."));
    if let (Some(given), false) = (section.given("www"), bare.any(is_named)) {
        let hint = match names.first() {
            Some((name, _)) => {
                let bare = name.strip_prefix("www.").unwrap_or(name);
                format!("write `names = [{bare:?}, \"www.{bare}\"]`")
            }
            None => "give the site `names`".to_owned(),
        };
        faults
            .warn(
                given.spot,
                "no two of the site's `names` differ by `www.` alone",
            )
            .hint(hint);
    }
    form
}

/// Tells of a `satisfy`, of a site or its routes, that leaves no choice.
fn miss_access<H: Handlers>(site: &Section, routes: &[RouteConfig<H>], faults: &mut Faults<'_>) {
    miss_users(site, routes, faults);
    miss_choice(site, routes, faults);
    for (section, route) in site.sections("route").iter().zip(routes) {
        miss_choice(section, std::slice::from_ref(route), faults);
    }
}

/// None of these routes may be had by `access` alone.
fn miss_choice<H: Handlers>(section: &Section, routes: &[RouteConfig<H>], faults: &mut Faults<'_>) {
    let given = section
        .section("require")
        .and_then(|rule| rule.given("satisfy"));
    let asks = |route: &RouteConfig<H>| route.access.as_deref().is_some_and(AccessRules::asks_who);
    if let Some(given) = given
        && matches!(given.value, ConfigValue::Word("any"))
        && !routes.iter().any(asks)
    {
        let message = "`satisfy = \"any\"` has no `access` beside it that says who may";
        faults
            .warn(given.spot, message)
            .hint("add `access = { allow = [\"10.0.0.0/8\"] }`, or remove it: all have to sign in");
    }
}

/// Tells of limits by who has signed in, of a site or its routes, where nobody does.
fn miss_users<H: Handlers>(site: &Section, routes: &[RouteConfig<H>], faults: &mut Faults<'_>) {
    let mut look = |section: &Section, routes: &[RouteConfig<H>]| {
        let mut limits = ["rate", "concurrency"]
            .into_iter()
            .filter_map(|name| section.section(name)?.given("by"));
        let by_user =
            limits.find(|given| matches!(&given.value, ConfigValue::Text(by) if by == "user"));
        if let Some(given) = by_user
            && routes.iter().all(|route| route.require.is_none())
        {
            faults
                .warn(
                    given.spot,
                    "nobody signs in here: clients go by their addresses",
                )
                .hint("add `require = \"NAME\"` of an `[[auth]]`, or write `by = \"client\"`");
        }
    };
    look(site, routes);
    for (section, route) in site.sections("route").iter().zip(routes) {
        look(section, std::slice::from_ref(route));
    }
}

/// Tells of names of certificates where no client is asked for one.
fn miss_certificates(tls: &SiteTls, asks: Vec<Spot>, faults: &mut Faults<'_>) {
    for spot in asks.into_iter().filter(|_| tls.client.is_none()) {
        faults
            .error(spot, "no client of this site is asked for a certificate")
            .hint("add `client = \"ask\"` and `client_ca` to its `tls`, or remove these names");
    }
}

/// The names of a site that are right, and where they stand.
fn read_names(section: &Section, faults: &mut Faults<'_>) -> (Vec<String>, Vec<Spot>) {
    let mut names = Vec::new();
    for (name, spot) in section.texts("names") {
        match check_host(name) {
            Ok(()) => names.push((name.to_owned(), spot)),
            Err((message, hint)) => {
                faults.error(spot, message).hint(hint);
            }
        }
    }
    names.into_iter().unzip()
}

fn error_pages(
    section: &Section,
    faults: &mut Faults<'_>,
) -> (Vec<(u16, std::path::PathBuf)>, Vec<Spot>) {
    let mut pages = Vec::new();
    let mut spots = Vec::new();
    for pair in section.map("error_pages") {
        match pair.name.parse::<u16>() {
            Ok(status @ 400..=599) if pair.name.len() == 3 => {
                pages.push((
                    status,
                    faults.sources().resolve(pair.spot.source, &pair.text),
                ));
                spots.push(pair.spot);
            }
            _ => {
                let message = format!("`{}` is no status of an error", pair.name);
                faults
                    .error(pair.key, message)
                    .hint("error pages are for 400 to 599");
            }
        }
    }
    let mut both: Vec<_> = pages.into_iter().zip(spots).collect();
    both.sort_by_key(|((status, _), _)| *status);
    both.into_iter().unzip()
}

/// What the section of a handler is read with.
pub struct OnSection<'a> {
    /// What it inherits.
    pub around: &'a SiteDefaults<'a>,
    /// Its route's section.
    pub route: &'a Section,
    /// Its route's pattern; `None` for a wrong one.
    pub pattern: Option<&'a Pattern>,
    /// What is said of its answers.
    pub answering: Answering<'a>,
}

/// What the routes of a site inherit.
pub struct SiteDefaults<'a> {
    /// The top level.
    pub root: &'a Section,
    /// The site's section.
    pub site: &'a Section,
    after: Arc<AfterSteps>,
    access: Option<Arc<AccessRules>>,
    require: Option<Arc<SignInRule>>,
    cors: Option<Arc<CorsSettings>>,
    limits: &'a LimitSettings,
    logs: &'a Logs,
}

impl SiteDefaults<'_> {
    /// The route for `/*` that a site's `root` is short for.
    fn root_route<H: Handlers>(&self, faults: &mut Faults<'_>) -> (RouteConfig<H>, RouteSpots<H>) {
        let spot = self.site.spot("root");
        let answering = Answering {
            site: self.site,
            route: None,
        };
        let (handler, handler_spots) = H::of_root(self.site, faults);
        let route = RouteConfig {
            path: "/*".to_owned(),
            when: None,
            name: None,
            handler,
            rewrite: None,
            body: self.limits.body,
            headers: answering.headers(),
            after: Arc::clone(&self.after),
            server_timing: answering.server_timing(),
            early_hints: answering.early_hints(),
            priority: answering.priority(),
            sendfile: Vec::new(),
            strict: false,
            slash: answering.slash(),
            internal: false,
            access: self.access.clone(),
            require: self.require.clone(),
            cors: self.cors.clone(),
            rate: None,
            concurrency: None,
            bandwidth: None,
            log: super::LogChoice::Inherit,
            half_close: HalfClose::Cancel,
            place: faults.sources().place(spot),
        };
        (
            route,
            RouteSpots {
                header: spot,
                path: None,
                has_when: false,
                listeners: Vec::new(),
                handler: handler_spots,
                sendfile: Vec::new(),
            },
        )
    }

    fn route<H: Handlers>(
        &self,
        section: &Section,
        access: Option<Arc<AccessRules>>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (RouteConfig<H>, RouteSpots<H>) {
        let pattern = read_pattern(section, faults);
        check_answering(section, faults);
        let answering = Answering {
            site: self.site,
            route: Some(section),
        };
        let (handler, handler_spots) =
            self.handler(section, pattern.as_ref(), answering, programs, faults);
        let (sendfile, sendfile_spots) = self.sendfile::<H>(answering, faults);
        let rewrite = section.optional_text("rewrite");
        if let (Some(text), Some(pattern)) = (rewrite, &pattern)
            && let Err(error) = Rewrite::parse(text, pattern)
        {
            template_wrong(&error, text, section.spot("rewrite"), faults);
        }
        if let Some(text) = rewrite {
            warn_literal(text, section.text("path"), section.spot("rewrite"), faults);
        }
        let (when, listeners) = read_when(self.root, section, faults);
        let rule = read_require(self.root, section, faults);
        let rule = rule.unwrap_or_else(|| self.require.clone());
        let require = rule_of_route(self.root, section, (rule, when.as_ref()), faults);
        let route = RouteConfig {
            path: section.text("path").to_owned(),
            when,
            name: section.optional_text("name").map(str::to_owned),
            handler,
            rewrite: rewrite.map(str::to_owned),
            body: section.optional_size("body").unwrap_or(self.limits.body),
            headers: answering.headers(),
            after: answering.after(&self.after),
            server_timing: answering.server_timing(),
            early_hints: answering.early_hints(),
            priority: answering.priority(),
            sendfile,
            strict: section.flag("strict"),
            slash: answering.slash(),
            internal: section.flag("internal"),
            access: access.or_else(|| self.access.clone()),
            require,
            cors: read_cors(section, faults).or_else(|| self.cors.clone()),
            rate: read_rate(section, pattern.as_ref(), faults),
            concurrency: read_concurrency(section, pattern.as_ref(), faults),
            bandwidth: read_bandwidth(section, faults),
            log: self.logs.choice(section, "log", faults),
            half_close: match section.word("half_close") {
                "serve" => HalfClose::Serve,
                _ => HalfClose::Cancel,
            },
            place: faults.sources().place(section.header),
        };
        let path = pattern.map(|pattern| (section.spot("path"), pattern));
        (
            route,
            RouteSpots {
                header: section.header,
                path,
                has_when: section.has("when"),
                listeners,
                handler: handler_spots,
                sendfile: sendfile_spots,
            },
        )
    }

    /// The route's one handler. Where it has none or several, that is told and some handler given.
    fn handler<H: Handlers>(
        &self,
        section: &Section,
        pattern: Option<&Pattern>,
        answering: Answering<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (H, H::Spots) {
        let handlers = H::schema().handlers;
        let given: Vec<_> = handlers
            .iter()
            .filter_map(|name| section.given(name))
            .collect();
        let names: Vec<&str> = handlers
            .iter()
            .copied()
            .filter(|name| section.has(name))
            .collect();
        if names.is_empty() {
            let message = "the route has no handler";
            let first = handlers.iter().copied().take(HANDLERS_TOLD);
            let mut hint = format!("add one of {}", listed(first, ", "));
            if handlers.len() > HANDLERS_TOLD {
                hint.push_str("; `hob check --explain site.route` has all");
            }
            faults.error(section.header, message).hint(hint);
        } else if let [first, second, ..] = given[..] {
            let message = format!("the route has several handlers: {}", listed(names, " and "));
            let see = faults
                .error(second.key, message)
                .see(first.key, "the first");
            see.hint("keep one; write a second `[[site.route]]` for the other");
        }
        let on = OnSection {
            around: self,
            route: section,
            pattern,
            answering,
        };
        H::read(&on, programs, faults)
    }

    /// Folders of files that programs may have sent.
    fn sendfile<H: Handlers>(
        &self,
        answering: Answering<'_>,
        faults: &mut Faults<'_>,
    ) -> (Vec<H::Folder>, Vec<Spot>) {
        let folders = answering.sendfile(faults).into_iter();
        folders
            .map(|(root, spot)| (H::sent_from(root, spot, answering, faults), spot))
            .unzip()
    }
}

/// Handlers that are named where a route has none: more would be a wall of words.
const HANDLERS_TOLD: usize = 8;

/// The texts of a list.
pub fn owned(texts: &[(&str, Spot)]) -> Vec<String> {
    texts.iter().map(|(text, _)| (*text).to_owned()).collect()
}

/// The codings of a list of their words.
pub fn codings(words: &[(&str, Spot)]) -> Vec<Coding> {
    let coding = |word: &str| match word {
        "br" => Coding::Brotli,
        "zst" | "zstd" => Coding::Zstd,
        _ => Coding::Gzip,
    };
    words.iter().map(|(word, _)| coding(word)).collect()
}

fn read_pattern(section: &Section, faults: &mut Faults<'_>) -> Option<Pattern> {
    let given = section.given("path")?;
    let text = section.text("path");
    match Pattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let spot = within_segment(text, error.at, given.spot, faults);
            let message = format!("{text:?} is no path of a route");
            faults.error(spot, message).hint(error.to_string());
            None
        }
    }
}

/// The segment of a path in which something is wrong.
fn within_segment(text: &str, at: usize, spot: Spot, faults: &Faults<'_>) -> Spot {
    let rest = text.get(at..).unwrap_or("");
    let len = rest.find('/').filter(|len| *len > 0).unwrap_or(rest.len());
    faults.sources().inside(spot, text, at..at + len)
}

/// Warns of what means something in targets of other servers and stands for itself here.
pub fn warn_literal(target: &str, path: &str, spot: Spot, faults: &mut Faults<'_>) {
    /// Variables of nginx and Apache that have a word here.
    const KNOWN: [(&str, &str); 7] = [
        ("request_uri", "{uri}"),
        ("document_uri", "{path}"),
        ("uri", "{path}"),
        ("query_string", "{query}"),
        ("args", "{query}"),
        ("http_host", "{host}"),
        ("host", "{host}"),
    ];
    let (at, hint) = if let Some(kept) = target.strip_suffix("/*") {
        let from = path.strip_suffix("/*").unwrap_or("/old");
        let hint = format!(
            "capture the rest of the path: `path = \"{from}/{{rest*}}\"`, and lead to \
             `{kept}/{{rest}}`"
        );
        (kept.len() + 1..target.len(), hint)
    } else if let Some(at) = target.find('$') {
        let behind = &target[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
        let name = &behind[..len];
        if name.is_empty() {
            return;
        }
        let hint = match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, word)) => format!("write `{word}`"),
            None if path.starts_with('~') => format!("write `{{{name}}}`"),
            None => "name a part of the route's path, as in `/user/{name}` or `/old/{rest*}`, and \
                     write that name here in braces"
                .to_owned(),
        };
        (at..at + 1 + len, hint)
    } else {
        return;
    };
    let message = format!("`{}` stands for itself here", &target[at.clone()]);
    let spot = faults.sources().inside(spot, target, at);
    faults.warn(spot, message).hint(hint);
}

/// Tells what is wrong with the target of a redirect or a rewrite.
pub fn template_wrong(error: &TemplateError, text: &str, spot: Spot, faults: &mut Faults<'_>) {
    let TemplateFault::Unknown { name, known } = &error.fault else {
        let spot = within_segment(text, error.at, spot, faults);
        faults
            .error(spot, format!("{text:?} leads nowhere"))
            .hint(error.to_string());
        return;
    };
    // They are quoted for printing.
    let bare = known.iter().map(|word| word.trim_matches(['`', '{', '}']));
    let hint = match nearest(name, bare) {
        Some(meant) => format!("did you mean `{{{meant}}}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    let spot = faults
        .sources()
        .inside(spot, text, error.at..error.at + name.len() + 2);
    faults
        .error(
            spot,
            format!("the route's path does not capture `{{{name}}}`"),
        )
        .hint(hint);
}
