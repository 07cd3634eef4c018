//! The two moments of every request that watchers are asked at: its route is known, and it is over.

use hob_http::Request;
use hob_trace::Record;
use hob_trace::watch::{Hidden, Pen, RequestStage, Trail, WatchCandidate};

use super::told;
use crate::serve::sites::{ServedRoute, ServedSite, Sites};

/// Decides who watches a request whose route was just found, the `index`th of its site from 0, and
/// tells them how it began.
#[cold]
pub(crate) fn begin(
    request: &Request,
    sites: &Sites,
    site: &ServedSite,
    route: &ServedRoute,
    index: u32,
) {
    let station = request.reactor().station();
    let record = *request.record();
    let (live, held) = station.match_begin(&subject(request, &record, &site.name));
    if live | held == 0 {
        return;
    }
    request.set_marks(live, held);
    let trail = request.trail();
    let known = told::RequestContext::new(request, &record, Some(site), Some(route));
    let by = sites.choose_site(request).by;
    let now_us = record.started_us + request.age_us();
    let why = |pen: &mut Pen<'_>| told::route(pen, by, (index, site.routes.len()));
    station.push(&trail, |out, hidden| {
        told::opening(station, &trail, &known, out, hidden);
        station.write(&trail, RequestStage::Route, now_us, out, |pen| why(pen));
    });
    if held != 0 {
        let waiting = Trail { live: 0, ..trail };
        station.tell(&waiting, RequestStage::Route, now_us, |pen, _| why(pen));
    }
    if station.shows_head(&trail) {
        let head = request.sent_head();
        station.tell(&trail, RequestStage::RequestHead, now_us, |pen, hidden| {
            let fields = head.fields().map(|(name, value)| {
                let is_referer = name.eq_ignore_ascii_case(b"Referer");
                (
                    name,
                    if is_referer {
                        request.shown_referer()
                    } else {
                        value
                    },
                )
            });
            let lines = told::lines(told::request_line(request, hidden), fields, hidden);
            pen.dump(&lines, told::HEAD_BYTES_MAX);
        });
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
        let (live, held) = station.match_begin(&subject(request, record, name));
        (trail.live, trail.held) = (0, live | held);
        trail.generation = station.generation();
    }
    if !trail.is_traced() {
        return;
    }
    let route = site.and_then(|site| site.routes.get(record.route as usize));
    let known = told::RequestContext::new(request, record, site, route);
    let before = |out: &mut Vec<u8>, hidden: Option<&Hidden>| {
        told::opening(station, &trail, &known, out, hidden);
    };
    let after = |out: &mut Vec<u8>, _: Option<&Hidden>| told::ending(station, &trail, &known, out);
    station.end(&trail, record, before, after);
    request.set_marks(0, 0);
}

fn subject<'a>(request: &'a Request, record: &Record, site: &'a str) -> WatchCandidate<'a> {
    let head = request.sent_head();
    WatchCandidate {
        client: record.client,
        site,
        path: head.path(),
        method: head.method(),
        handler: record.handler,
        fields: head,
    }
}
