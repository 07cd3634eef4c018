//! Sites, routes and handlers from their sections.

use super::address::check_host;
use super::build::Logs;
use super::build_after::{Answering, check_answering};
use super::cgi::{CgiSpots, build_cgi};
use super::check::{FilesSpots, RouteSpots, SiteSpots};
use super::fault::{Faults, Spot, listed};
use super::nearest::nearest;
use super::program::Programs;
use super::resident::{ResidentSpots, build_resident};
use super::schema::{FILES, HANDLERS, REDIRECT_STATUSES, RESPOND};
use super::text::{check_media_type, header_value_wrong, relative_name_wrong};
use super::tls::build_site_tls;
use super::tree::{Pair, Section};
use super::warm::build_warm;
use super::{
    CacheMode, Coding, Files, HalfClose, Handler, Limits, Redirect, Respond, Route, RouteMetrics,
    Site, Symlinks,
};
use crate::route::pattern::Pattern;
use crate::route::template::{Location, Rewrite, TemplateError, TemplateFault};

/// One `[[site]]`, and where its parts stand.
pub(crate) fn build_site(
    section: &Section,
    limits: &Limits,
    logs: &Logs,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Site, SiteSpots) {
    let default_files = Section::new(&FILES, section.header);
    let files = section.section("files").unwrap_or(&default_files);
    let mut names = Vec::new();
    let mut name_spots = Vec::new();
    for (name, spot) in section.texts("names") {
        if let Err((message, hint)) = check_host(name) {
            faults.error(spot, message).hint(hint);
            continue;
        }
        names.push(name.to_owned());
        name_spots.push(spot);
    }
    check_files(files, faults);
    check_answering(section, faults);
    let around = Around {
        site: section,
        files,
        limits,
        logs,
    };
    let mut routes = Vec::new();
    let mut route_spots = Vec::new();
    for route in section.sections("route") {
        let (route, spots) = around.route(route, programs, faults);
        routes.push(route);
        route_spots.push(spots);
    }
    let ends_open = routes.iter().any(|route: &Route| route.path == "/*");
    if section.optional_path("root").is_some() && !ends_open {
        let (route, spots) = around.root_route(faults);
        routes.push(route);
        route_spots.push(spots);
    }
    let (error_pages, error_page_spots) = error_pages(section, faults);
    let answering = Answering {
        site: section,
        route: None,
    };
    let (tls, tls_spots) = build_site_tls(section, &names, faults);
    let site = Site {
        names,
        routes,
        error_pages,
        headers: answering.headers(),
        https_only: section.flag("https_only"),
        tls,
        log: logs.choice(section, "log", faults),
        place: faults.sources().place(section.header),
    };
    let spots = SiteSpots {
        header: section.header,
        has_names: section.is_claimed("names") || !section.texts("names").is_empty(),
        names: name_spots,
        root: section.given("root").map(|given| given.spot),
        has_handlers: section.has("root") || section.has("route"),
        tls: tls_spots,
        error_pages: error_page_spots,
        routes: route_spots,
    };
    (site, spots)
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

/// Where the parts of a route's handler stand.
#[derive(Default)]
struct HandlerSpots {
    files: Option<FilesSpots>,
    cgi: Option<CgiSpots>,
    resident: Option<ResidentSpots>,
}

/// What the routes of a site inherit.
struct Around<'a> {
    site: &'a Section,
    files: &'a Section,
    limits: &'a Limits,
    logs: &'a Logs,
}

impl Around<'_> {
    /// The route for `/*` that a site's `root` is short for.
    fn root_route(&self, faults: &mut Faults<'_>) -> (Route, RouteSpots) {
        let spot = self.site.spot("root");
        let none = Section::new(&super::schema::ROUTE_FILES, spot);
        let answering = Answering {
            site: self.site,
            route: None,
        };
        let (files, files_spots) = self.files(&none, answering, faults);
        let route = Route {
            path: "/*".to_owned(),
            handler: Handler::Files(Files {
                keep_prefix: false,
                ..files
            }),
            rewrite: None,
            body: self.limits.body,
            headers: answering.headers(),
            after: answering.after(),
            server_timing: answering.server_timing(),
            sendfile: Vec::new(),
            internal: false,
            log: super::LogChoice::Inherit,
            half_close: HalfClose::Cancel,
            place: faults.sources().place(spot),
        };
        (
            route,
            RouteSpots {
                header: spot,
                path: None,
                files: Some(files_spots),
                cgi: None,
                resident: None,
                sendfile: Vec::new(),
            },
        )
    }

    fn route(
        &self,
        section: &Section,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (Route, RouteSpots) {
        let pattern = read_pattern(section, faults);
        check_answering(section, faults);
        let answering = Answering {
            site: self.site,
            route: Some(section),
        };
        let (handler, spots_of_handler) =
            self.handler(section, pattern.as_ref(), answering, programs, faults);
        let (sendfile, sendfile_spots) = self.sendfile(answering, faults);
        let rewrite = section.optional_text("rewrite");
        if let (Some(text), Some(pattern)) = (rewrite, &pattern)
            && let Err(error) = Rewrite::parse(text, pattern)
        {
            template_wrong(&error, text, section.spot("rewrite"), faults);
        }
        let route = Route {
            path: section.text("path").to_owned(),
            handler,
            rewrite: rewrite.map(str::to_owned),
            body: section.optional_size("body").unwrap_or(self.limits.body),
            headers: answering.headers(),
            after: answering.after(),
            server_timing: answering.server_timing(),
            sendfile,
            internal: section.flag("internal"),
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
                files: spots_of_handler.files,
                cgi: spots_of_handler.cgi,
                resident: spots_of_handler.resident,
                sendfile: sendfile_spots,
            },
        )
    }

    /// The route's one handler. Where it has none or several, that is told and some handler given.
    fn handler(
        &self,
        section: &Section,
        pattern: Option<&Pattern>,
        answering: Answering<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (Handler, HandlerSpots) {
        let given: Vec<_> = HANDLERS
            .iter()
            .filter_map(|name| section.given(name))
            .collect();
        let names: Vec<&str> = HANDLERS
            .iter()
            .copied()
            .filter(|name| section.has(name))
            .collect();
        if names.is_empty() {
            let message = "the route has no handler";
            let hint = format!("add one of {}", listed(HANDLERS.iter().copied(), " and "));
            faults.error(section.header, message).hint(hint);
        } else if let [first, second, ..] = given[..] {
            let message = format!("the route has several handlers: {}", listed(names, " and "));
            let see = faults
                .error(second.key, message)
                .see(first.key, "the first");
            see.hint("keep one; write a second `[[site.route]]` for the other");
        }
        if let Some(files) = section.section("files") {
            check_files(files, faults);
            let (files, spots) = self.files(files, answering, faults);
            let files_spots = Some(spots);
            let spots = HandlerSpots {
                files: files_spots,
                ..HandlerSpots::default()
            };
            return (Handler::Files(files), spots);
        }
        if let Some(cgi) = section.section("cgi") {
            let (cgi, spots) = build_cgi(cgi, self.site.optional_path("root"), programs, faults);
            let spots = HandlerSpots {
                cgi: Some(spots),
                ..HandlerSpots::default()
            };
            return (Handler::Cgi(Box::new(cgi)), spots);
        }
        if let Some(resident) = section.section("resident") {
            let site_root = self.site.optional_path("root");
            let (resident, spots) = build_resident(resident, site_root, programs, faults);
            let spots = HandlerSpots {
                resident: Some(spots),
                ..HandlerSpots::default()
            };
            return (Handler::Resident(Box::new(resident)), spots);
        }
        if let Some(warm) = section.section("warm") {
            let (warm, spots) = build_warm(warm, self.site.optional_path("root"), programs, faults);
            let spots = HandlerSpots {
                cgi: Some(spots),
                ..HandlerSpots::default()
            };
            return (Handler::Cgi(Box::new(warm)), spots);
        }
        if let Some(redirect) = section.section("redirect") {
            let redirect = build_redirect(redirect, pattern, faults);
            return (Handler::Redirect(redirect), HandlerSpots::default());
        }
        if let Some(metrics) = section.section("metrics") {
            let metrics = RouteMetrics::build(metrics);
            return (Handler::Metrics(metrics), HandlerSpots::default());
        }
        let none = Section::new(&RESPOND, section.header);
        let respond = section.section("respond").unwrap_or(&none);
        let respond = build_respond(respond, faults);
        (Handler::Respond(respond), HandlerSpots::default())
    }

    /// Folders of files that programs may have sent: any file by its exact name, otherwise as the
    /// site's files are.
    fn sendfile(
        &self,
        answering: Answering<'_>,
        faults: &mut Faults<'_>,
    ) -> (Vec<Files>, Vec<Spot>) {
        let folders = answering.sendfile(faults);
        let mut all = Vec::new();
        for (root, spot) in &folders {
            let mut named = Section::new(&super::schema::ROUTE_FILES, *spot);
            named.claim("root");
            let (files, _) = self.files(&named, answering, faults);
            all.push(Files {
                root: root.clone(),
                keep_prefix: false,
                index: Vec::new(),
                listing: false,
                fallback: None,
                dot_files: true,
                symlinks: Symlinks::Inside,
                cache: match files.cache {
                    CacheMode::Pin => CacheMode::Auto,
                    other => other,
                },
                ..files
            });
        }
        (all, folders.into_iter().map(|(_, spot)| spot).collect())
    }

    /// Files with what the route says, else what the site says.
    fn files(
        &self,
        route: &Section,
        answering: Answering<'_>,
        faults: &mut Faults<'_>,
    ) -> (Files, FilesSpots) {
        let from = |key: &str| {
            if route.given(key).is_some() {
                route
            } else {
                self.files
            }
        };
        // What is said of all answers is said of files, too, where their own keys say nothing.
        let of_answers = |key: &str| {
            let said_by = [Some(route), answering.route, Some(self.files)];
            let mut said_by = said_by.into_iter().flatten();
            let nearest = said_by.find(|section| section.given(key).is_some());
            nearest.unwrap_or(self.site)
        };
        let own_root = route.optional_path("root");
        let root = own_root.or(self.site.optional_path("root"));
        if root.is_none() && !route.has("root") && !self.site.has("root") {
            let message = "`files` has no `root`, and the site has none either";
            faults
                .error(route.header, message)
                .hint("add `root = \"FOLDER\"` to one of them");
        }
        let files = Files {
            root: root.cloned().unwrap_or_default(),
            keep_prefix: match from("keep_prefix").given("keep_prefix") {
                Some(_) => from("keep_prefix").flag("keep_prefix"),
                None => own_root.is_none(),
            },
            index: owned(&from("index").texts("index")),
            listing: from("listing").flag("listing"),
            fallback: from("fallback")
                .optional_text("fallback")
                .map(str::to_owned),
            precompressed: codings(&from("precompressed").texts("precompressed")),
            compress: codings(&of_answers("compress").texts("compress")),
            compress_min: of_answers("compress_min").size("compress_min"),
            compress_types: owned(&of_answers("compress_types").texts("compress_types")),
            dot_files: from("dot_files").flag("dot_files"),
            symlinks: match from("symlinks").word("symlinks") {
                "follow" => Symlinks::Follow,
                "refuse" => Symlinks::Refuse,
                _ => Symlinks::Inside,
            },
            charset: from("charset").text("charset").to_owned(),
            types: types(from("types").map("types")),
            cache_control: from("cache_control").text("cache_control").to_owned(),
            cache: match from("cache").word("cache") {
                "off" => CacheMode::Off,
                "pin" => CacheMode::Pin,
                _ => CacheMode::Auto,
            },
        };
        let spots = FilesSpots {
            root: if own_root.is_some() {
                route.spot("root")
            } else {
                self.site.spot("root")
            },
            fallback: from("fallback").spot("fallback"),
            cache: from("cache").spot("cache"),
        };
        (files, spots)
    }
}

pub(crate) fn owned(texts: &[(&str, Spot)]) -> Vec<String> {
    texts.iter().map(|(text, _)| (*text).to_owned()).collect()
}

pub(crate) fn codings(words: &[(&str, Spot)]) -> Vec<Coding> {
    let coding = |word: &str| match word {
        "br" => Coding::Brotli,
        "zst" | "zstd" => Coding::Zstd,
        _ => Coding::Gzip,
    };
    words.iter().map(|(word, _)| coding(word)).collect()
}

fn types(pairs: &[Pair]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|pair| (pair.name.clone(), pair.text.clone()))
        .collect()
}

/// What the keys of a files section say wrongly.
fn check_files(section: &Section, faults: &mut Faults<'_>) {
    let single = |name: &str| match relative_name_wrong(name) {
        None if name.contains('/') => Some("write a file name, without a folder"),
        wrong => wrong,
    };
    for (name, spot) in section.texts("index") {
        if let Some(hint) = single(name) {
            faults
                .error(spot, format!("{name:?} is no name of an index file"))
                .hint(hint);
        }
    }
    if let Some(fallback) = section.optional_text("fallback")
        && let Some(hint) = relative_name_wrong(fallback)
    {
        let message = format!("{fallback:?} is no file below the root");
        faults.error(section.spot("fallback"), message).hint(hint);
    }
    for (name, spot) in section.texts("compress_types") {
        check_media_type(
            name.strip_suffix("/*").map_or(name, |_| "text/plain"),
            name,
            spot,
            faults,
        );
    }
    for pair in section.map("types") {
        if !pair.name.starts_with('.') || pair.name.len() < 2 || pair.name.contains('/') {
            let message = format!("{:?} is no ending of file names", pair.name);
            let hint = format!("write `\".{}\"`", pair.name.trim_start_matches(['*', '.']));
            faults.error(pair.key, message).hint(hint);
        }
        check_media_type(&pair.text, &pair.text, pair.spot, faults);
    }
    let charset = section.text("charset");
    if !charset
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.:+".contains(c))
    {
        let message = format!("{charset:?} is no name of a charset");
        faults
            .error(section.spot("charset"), message)
            .hint("write `charset = \"utf-8\"`");
    }
    if let Some(hint) = header_value_wrong(section.text("cache_control")) {
        let message = "`cache_control` cannot stand in a header field";
        faults
            .error(section.spot("cache_control"), message)
            .hint(hint);
    }
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

fn build_redirect(
    section: &Section,
    pattern: Option<&Pattern>,
    faults: &mut Faults<'_>,
) -> Redirect {
    let to = section.text("to");
    if let (Some(given), Some(pattern)) = (section.given("to"), pattern)
        && let Err(error) = Location::parse(to, pattern)
    {
        template_wrong(&error, to, given.spot, faults);
    }
    let status: u16 = section.number("status");
    if !REDIRECT_STATUSES.contains(&status) {
        let message = format!("{status} is no status of a redirect");
        let hint = "use 301 or 308 (for good), 302, 303 or 307 (for now)";
        faults.error(section.spot("status"), message).hint(hint);
    }
    Redirect {
        to: to.to_owned(),
        status,
    }
}

fn build_respond(section: &Section, faults: &mut Faults<'_>) -> Respond {
    let status: u16 = section.number("status");
    let body = section.text("body");
    if [204, 205, 304].contains(&status) && !body.is_empty() {
        let message = format!("an answer with status {status} has no body");
        faults
            .error(section.spot("body"), message)
            .hint("remove `body`, or use another status");
    }
    let content_type = section.text("content_type");
    check_media_type(
        content_type,
        content_type,
        section.spot("content_type"),
        faults,
    );
    Respond {
        status,
        content_type: content_type.to_owned(),
        body: body.to_owned(),
    }
}

/// Tells what is wrong with the target of a redirect or a rewrite.
fn template_wrong(error: &TemplateError, text: &str, spot: Spot, faults: &mut Faults<'_>) {
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
