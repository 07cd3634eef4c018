//! The two moments of every request that watchers are asked at: its route is known, and it is over.

use hob_http::Request;
use hob_trace::Record;
use hob_trace::watch::{Hidden, Stage, Subject, Trail};

use super::told;
use crate::route::host::ChosenBy;
use crate::route::sites::{Route, Site, Sites};

/// Decides who watches a request whose route was just found, and tells them how it began.
#[cold]
pub(crate) fn begin(request: &Request, sites: &Sites, site: &Site, route: &Route, why: Found) {
    let station = request.reactor().station();
    let record = *request.record();
    let (live, held) =
        station.match_begin(&subject(request, &record, &site.name), record.started_us);
    if live | held == 0 {
        return;
    }
    request.set_marks(live, held);
    let trail = request.trail();
    let known = told::Known::new(request, &record, Some(site), Some(route));
    station.push(&trail, |out, hidden| {
        told::opening(station, &trail, &known, out, hidden)
    });
    if station.shows_head(&trail) {
        let head = request.sent_head();
        station.tell(
            &trail,
            Stage::RequestHead,
            request.reactor().now_us(),
            |pen, hidden| {
                let lines = told::lines(told::request_line(head, hidden), head.fields(), hidden);
                pen.dump(&lines, told::HEAD_BYTES_MAX);
            },
        );
    }
    let by = sites.choose_site(request.head().host()).by;
    request.tell(
        Stage::Route,
        format_args!(
            "{}",
            Why {
                site,
                route,
                found: why,
                by
            }
        ),
    );
}

/// How a route was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Its number among those of its site, from 0.
    pub(crate) index: u32,
}

/// Why a site and a route answer, in words.
struct Why<'a> {
    site: &'a Site,
    route: &'a Route,
    found: Found,
    by: ChosenBy,
}

impl std::fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Site { name, routes, .. } = self.site;
        let by = match self.by {
            ChosenBy::Name => "the host is one of its names",
            ChosenBy::Wildcard { .. } => "the host is below one of its names",
            ChosenBy::Default => "no site has a name for the host",
        };
        let (number, count) = (self.found.index + 1, routes.len());
        let (path, kind) = (&self.route.path, self.route.handler.kind().word());
        write!(
            f,
            "site {name}: {by}; route {path} ({kind}): the first of its {count} that fits is \
             number {number}"
        )
    }
}

/// Tells those who watch a request that it is over. `record` is complete.
#[cold]
pub(crate) fn finish(request: &Request, record: &Record, sites: &Sites) {
    let station = request.reactor().station();
    let site = sites.site(record.site.into());
    let mut trail = request.trail();
    let was_decided = record.route != Record::NO_ROUTE;
    if !was_decided {
        // It came to no route: nobody has been asked yet.
        let name = site.map_or("", |site| &site.name);
        let (live, held) = station.match_begin(&subject(request, record, name), record.started_us);
        (trail.live, trail.held) = (0, live | held);
    }
    if !trail.is_watched() {
        return;
    }
    let route = site.and_then(|site| site.routes.get(record.route as usize));
    let known = told::Known::new(request, record, site, route);
    let before = |out: &mut Vec<u8>, hidden: Option<&Hidden>| {
        told::opening(station, &trail, &known, out, hidden);
    };
    let after = |out: &mut Vec<u8>, _: Option<&Hidden>| told::ending(station, &trail, &known, out);
    station.end(&trail, record, before, after);
    request.set_marks(0, 0);
}

fn subject<'a>(request: &'a Request, record: &Record, site: &'a str) -> Subject<'a> {
    let head = request.sent_head();
    Subject {
        client: record.client,
        site,
        path: head.path(),
        method: head.method(),
        handler: record.handler,
        fields: head,
    }
}

/// Who watches, without a request at hand.
pub(crate) fn trail_of(request: &Request) -> Trail {
    match request.is_watched() {
        true => request.trail(),
        false => Trail::default(),
    }
}
