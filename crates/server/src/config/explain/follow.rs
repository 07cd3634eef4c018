//! The request's way through the decisions, in the order of `answer.rs`, each with its reason.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use hob_http::{Answered, Body, Fields, Request, Response};

use super::asked::{Address, Asked};
use super::disk;
use super::settings;
use super::told::{
    Answer, Explanation, Handler, Listener, Log, LogTarget, Path, Program, Rewrite, Route, Site,
};
use crate::answer::{dress, own_page};
use crate::cache::local::Local;
use crate::config::{Config, ListenAddress, LogChoice, LogSettings, Place};
use crate::handle::cgi::job::Kind;
use crate::handle::cgi::{self, Cgi, Runs};
use crate::handle::files::Files;
use crate::handle::files::find::{self, Ask};
use crate::handle::files::open::May;
use crate::handle::resident::Resident;
use crate::handle::{self, plain, redirect, respond};
use crate::route::host::{ChosenBy, normalise_host, without_port};
use crate::route::pattern::{Captures, Mismatch};
use crate::route::sites::{self, Sites};
use crate::route::target;
use crate::route::template::Facts;
use crate::serve::limits;
use crate::shared::Shared;

/// Says what would answer a request, and why. Opens the roots of the config and looks at the disk
/// as the server would.
///
/// # Errors
/// What is wrong with the request as it is written, or why this config could not be served.
pub fn explain(config: &Config, asked: &Asked) -> Result<Explanation, String> {
    let address = asked.address()?;
    let head = asked.head(&address)?;
    let shared = Arc::new(Shared::new(&config.cache, 1));
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
    let way = Way {
        config,
        sites: &sites,
        shared: &shared,
        request: &request,
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
            Answer {
                is_own_error_page: own_page(site, &response).is_some(),
                ..answer(&dress(site, route, response))
            }
        }
        None => answer(&response),
    };
    told.answer.reason = request.record().reason.map(str::to_owned);
    Ok(told)
}

struct Way<'a> {
    config: &'a Config,
    sites: &'a Sites,
    shared: &'a Arc<Shared>,
    request: &'a Request,
}

impl Way<'_> {
    fn follow(&self, told: &mut Explanation) -> Response {
        let head = self.request.head();
        told.host = shown(head.host());
        let chosen = self.sites.choose_site(head.host());
        let index = chosen.site as usize;
        let (Some(site), Some(settings)) =
            (self.sites.site(chosen.site), self.config.sites.get(index))
        else {
            return plain::error(404);
        };
        told.log = log(LogChoice::Inherit, settings.log, self.config);
        told.site = Some(Site {
            index,
            names: settings.names.clone(),
            by: match chosen.by {
                ChosenBy::Name => "name",
                ChosenBy::Wildcard { .. } => "wildcard",
                ChosenBy::Default => "default",
            },
            why: self.why_site(chosen.by, index),
            place: place(&settings.place),
        });
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
                Ok(normal) => Ok(shown(normal.path(raw, &room))),
                Err(bad) => Err(bad.reason().to_owned()),
            },
        });
        let Ok(normal) = normal else {
            return plain::error(400);
        };
        self.route(site, settings, normal.path(raw, &room), told)
    }

    fn route(
        &self,
        site: &sites::Site,
        settings: &crate::config::Site,
        path: &[u8],
        told: &mut Explanation,
    ) -> Response {
        let found = site.find(path);
        let tried = found.map_or(site.routes.len(), |(index, _)| index as usize + 1);
        let all = site.routes.iter().zip(&settings.routes).enumerate();
        told.routes = all
            .take(tried)
            .map(|(index, (route, settings))| compared(index, route, settings, path))
            .collect();
        let Some((index, below)) = found else {
            return plain::error(404);
        };
        let (route, written) = (
            &site.routes[index as usize],
            &settings.routes[index as usize],
        );
        told.handler = Some(Handler {
            name: route.handler.kind().word(),
            settings: settings::settings(written),
        });
        told.log = log(written.log, settings.log, self.config);
        if route.is_internal {
            self.request.record_mut().reason = Some("the route is internal");
            return plain::error(404);
        }
        told.body_bytes_max = Some(route.body_bytes_max);
        if !self.request.limit_body(route.body_bytes_max) {
            self.request.record_mut().reason = Some("the announced body is too large");
            return plain::error(413);
        }
        match &route.rewrite {
            None => self.handle(route, path, below, told),
            Some(rewrite) => {
                let Some(captures) = route.pattern.matches(path) else {
                    return plain::error(500);
                };
                let head = self.request.head();
                let facts = Facts {
                    path,
                    query: head.query(),
                    host: head.host(),
                    captures: &captures,
                };
                let mut rewritten = Vec::new();
                let made = rewrite.expand_path(&facts, &mut rewritten);
                told.rewrite = Some(Rewrite {
                    to: written.rewrite.clone().unwrap_or_default(),
                    path: match made {
                        Ok(()) => Ok(shown(&rewritten)),
                        Err(bad) => Err(bad.reason().to_owned()),
                    },
                });
                match made {
                    Ok(()) => self.handle(route, &rewritten, 1, told),
                    Err(_) => plain::error(400),
                }
            }
        }
    }

    fn handle(
        &self,
        route: &sites::Route,
        path: &[u8],
        below: usize,
        told: &mut Explanation,
    ) -> Response {
        match &route.handler {
            handle::Handler::Files(files) => self.files(files, path, below, told),
            handle::Handler::Cgi(cgi) => self.cgi(cgi, path, below, told),
            handle::Handler::Resident(resident) => self.resident(resident, path, below, told),
            handle::Handler::Redirect(redirect) => {
                let captures: Option<Captures> = route.pattern.matches(path);
                match captures {
                    Some(captures) => redirect::answer(redirect, self.request, path, &captures),
                    None => plain::error(500),
                }
            }
            handle::Handler::Respond(respond) => respond::answer(respond, self.request),
            handle::Handler::Metrics(metrics) => metrics.explain(self.request),
        }
    }

    fn files(
        &self,
        files: &Arc<Files>,
        path: &[u8],
        below: usize,
        told: &mut Explanation,
    ) -> Response {
        let below = if files.settings.keep_prefix { 1 } else { below };
        let path = path.get(below..).unwrap_or_default();
        if matches!(self.request.head().method(), b"GET" | b"HEAD") {
            told.disk = Some(disk::look(files, path));
        }
        let ask = Ask {
            files,
            request: self.request,
            shared: self.shared,
            counters: &Arc::default(),
            now_ms: 0,
        };
        wait(find::answer(
            &ask,
            path,
            &mut Local::default(),
            &mut Vec::new(),
        ))
    }

    /// What would run is told, and not started.
    fn cgi(&self, cgi: &Arc<Cgi>, path: &[u8], below: usize, told: &mut Explanation) -> Response {
        if let Some(refusal) = cgi::answer::refuse_method(cgi, self.request) {
            return refusal;
        }
        let found = match &cgi.runs {
            Runs::Folder(folder) => folder.find(&path[below..], 0, 0, May::Wait),
            Runs::Script(_) | Runs::Command(_) => None,
        };
        match cgi.job(self.request, found, path, below) {
            Err(response) => *response,
            Ok(job) => {
                told.program = Some(Program {
                    file: shown(&job.file),
                    arguments: job.arguments.iter().map(shown).collect(),
                    dir: shown(&job.dir),
                    parts: match &job.kind {
                        Kind::Program { name, path_info } => Some((shown(name), shown(path_info))),
                        Kind::Command(_) => None,
                    },
                });
                Response::new(0, Fields::new(), Body::Empty)
            }
        }
    }

    /// Who would be asked is told, and not asked.
    fn resident(
        &self,
        resident: &Resident,
        path: &[u8],
        below: usize,
        told: &mut Explanation,
    ) -> Response {
        if let Some(refusal) = handle::resident::answer::refuse_method(self.request) {
            return refusal;
        }
        let recipe = resident.recipe();
        let (name, path_info) = resident.split(path, below);
        told.program = Some(Program {
            file: shown(&resident.file),
            arguments: recipe.arguments().iter().map(shown).collect(),
            dir: shown(recipe.dir()),
            parts: Some((shown(name), shown(path_info))),
        });
        Response::new(0, Fields::new(), Body::Empty)
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
            ChosenBy::Default if self.config.sites.len() == 1 => "it is the only site".to_owned(),
            ChosenBy::Default => {
                let site = &self.config.sites[index];
                let default = match site.names.is_empty() {
                    true => "the site without names is the default",
                    false => "the first site is the default",
                };
                match normal {
                    Some(name) => format!("no site is called \"{}\"; {default}", shown(name)),
                    None if without_port(host).is_empty() => {
                        format!("the request names no host; {default}")
                    }
                    None => format!("\"{}\" is no host name; {default}", shown(host)),
                }
            }
        }
    }
}

fn compared(
    index: usize,
    route: &sites::Route,
    settings: &crate::config::Route,
    path: &[u8],
) -> Route {
    let compared = route.pattern.compare(path);
    let captures = match &compared {
        Ok(captures) => (0..)
            .zip(route.pattern.names())
            .filter_map(|(at, name)| Some((name.to_owned(), shown(captures.text(at, path)?))))
            .collect(),
        Err(_) => Vec::new(),
    };
    Route {
        index,
        path: settings.path.clone(),
        place: place(&settings.place),
        mismatch: compared.err().map(|mismatch| why_not(mismatch, path)),
        captures,
    }
}

fn why_not(mismatch: Mismatch<'_>, path: &[u8]) -> String {
    match mismatch {
        Mismatch::Segment { wanted, begin, end } if begin == end => {
            format!("the path has nothing where it has \"{}\"", shown(wanted))
        }
        Mismatch::Segment { wanted, begin, end } => format!(
            "the path has \"{}\" where it has \"{}\"",
            shown(&path[begin..end]),
            shown(wanted)
        ),
        Mismatch::Empty => "what it would capture is empty".to_owned(),
        Mismatch::Short => "the path ends before it does".to_owned(),
        Mismatch::Long { begin } if begin == path.len() => {
            "the path has a slash more at its end".to_owned()
        }
        Mismatch::Long { begin } => {
            format!("the path goes on with \"/{}\"", shown(&path[begin..]))
        }
        Mismatch::Suffix(suffix) => format!("the path does not end in \"{}\"", shown(suffix)),
    }
}

fn listeners(config: &Config, address: &Address) -> Vec<Listener> {
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
    let listener = |listener: &crate::config::Listener| Listener {
        address: listener.address.to_string(),
        is_direct: leads_to(&listener.address),
        log: match listener.log {
            LogChoice::Log(index) => config.logs.get(index).map(log_name),
            LogChoice::Off | LogChoice::Inherit => None,
        },
    };
    config.site_listeners().map(listener).collect()
}

fn note_listeners(told: &mut Explanation, address: &Address) {
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
        crate::config::LogTarget::File(path) => path.display().to_string(),
        crate::config::LogTarget::Stdout => "standard output".to_owned(),
    }
}

fn answer(response: &Response) -> Answer {
    let fields = response.fields().iter();
    Answer {
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
fn wait(answered: Answered) -> Response {
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

fn place(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
