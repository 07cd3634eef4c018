//! What is said when a page gives no answer, or no whole one: to its client, the record, the log.

use hob_http::{Body, Bytes, Fields, Request, Response};
use hob_page::fault::{PageFault, PageFaultKind};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::handle::page::Pages;
use crate::handle::page::files::FileLookupError;
use crate::handle::page::output::RunEnd;
use crate::handle::script::fail::explain_page;
use crate::handle::script::visits::refuse as refuse_visit;
use crate::handle::{html, plain, script};

/// The key that has clients told what is wrong.
const DEV: &str = "page.dev";

/// A failure in the words of a record: the status that tells of it, whose fault it is, and why.
struct PageFailure {
    status: u16,
    fault: Fault,
    reason: &'static str,
    details: String,
}

impl PageFailure {
    fn of(end: &RunEnd) -> Option<PageFailure> {
        let failure = |status, fault, reason, details| PageFailure {
            status,
            fault,
            reason,
            details,
        };
        Some(match end {
            RunEnd::Done(_) => return None,
            RunEnd::NoBlock => failure(
                404,
                Fault::Client,
                "the page has no such block",
                String::new(),
            ),
            RunEnd::Writes => failure(
                405,
                Fault::Client,
                "the page writes: it is asked for by POST",
                String::new(),
            ),
            RunEnd::NoPage(error) => match error {
                FileLookupError::Missing => {
                    failure(404, Fault::Client, "there is no such page", String::new())
                }
                FileLookupError::Forbidden => failure(
                    403,
                    Fault::Server,
                    "the server may not read the page",
                    String::new(),
                ),
                FileLookupError::WouldWait => {
                    failure(500, Fault::Server, "the page is not read", String::new())
                }
                FileLookupError::Failed(why) => {
                    failure(500, Fault::Server, "the page cannot be read", why.clone())
                }
            },
            RunEnd::Fault(fault) => {
                let (status, reason) = of_fault(fault);
                let whose = match fault.kind {
                    PageFaultKind::Crash => Fault::Upstream,
                    _ => Fault::Script,
                };
                failure(status, whose, reason, fault.to_string())
            }
            RunEnd::Unbegun => failure(
                503,
                Fault::Server,
                "limits: page.time: no thread was free in time",
                String::new(),
            ),
            RunEnd::VisitOver => failure(410, Fault::Client, refuse_visit::STALE, String::new()),
            RunEnd::Lost => failure(500, Fault::Server, "the page's run is lost", String::new()),
        })
    }
}

fn of_fault(fault: &PageFault) -> (u16, &'static str) {
    match fault.kind {
        PageFaultKind::Syntax => (500, "the page is not of the language"),
        PageFaultKind::Page => (500, "the page cannot go on"),
        PageFaultKind::Include => (500, "a file that the page includes is not there"),
        PageFaultKind::Limit("time") => (504, "limits: page.time: the page took too long"),
        PageFaultKind::Limit("fields_max") => (413, "limits: the request has too many fields"),
        PageFaultKind::Limit(_) => (500, "limits: the page uses more than a page may"),
        PageFaultKind::Crash => (502, "the driver of a database crashed"),
        PageFaultKind::Gone => (500, "what the page prints cannot be kept"),
    }
}

/// Tells the record, the log and the counters how a run ended that is not whole.
pub(super) fn note(request: &Request, counters: &ThreadCounters, end: &RunEnd) {
    let Some(failure) = PageFailure::of(end) else {
        return;
    };
    script::fail::note(request, failure.fault, failure.reason);
    match end {
        RunEnd::Unbegun => counters.limit_page_time.add(1),
        RunEnd::VisitOver => counters.session_stale.add(1),
        RunEnd::Fault(fault) => match fault.kind {
            PageFaultKind::Limit("time") => counters.limit_page_time.add(1),
            PageFaultKind::Limit(_) => counters.limit_page_use.add(1),
            PageFaultKind::Crash => counters.page_driver_deaths.add(1),
            _ => {}
        },
        _ => {}
    }
    if failure.details.is_empty() {
        return;
    }
    request.set_detail(failure.details.as_bytes());
    hob_trace::warn_seldom!("page: {}: {}", failure.reason, failure.details);
}

/// The answer where there is none of the page's own.
pub(super) fn respond(
    pages: &Pages,
    request: &Request,
    counters: &ThreadCounters,
    end: &RunEnd,
) -> Response {
    note(request, counters, end);
    let failure = PageFailure::of(end);
    let status = failure.as_ref().map_or(500, |failure| failure.status);
    let mut response = match status {
        503 => plain::busy(),
        _ => plain::error(status),
    };
    if matches!(end, RunEnd::Writes) {
        response.fields_mut().add(b"Allow", b"POST, OPTIONS");
    }
    let Some(failure) = failure.filter(|failure| !failure.details.is_empty()) else {
        return response;
    };
    if pages.settings.is_dev {
        let about = (status, failure.reason);
        let page = explain_page(about, failure.details.as_bytes(), "", None, DEV);
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
        return response;
    }
    match pages.waiting.ini.value("DTW_DEFAULT_ERROR_MESSAGE") {
        Some(message) if status >= 500 => own_message(status, message),
        _ => response,
    }
}

/// What the initialization file has said in the place of an error.
fn own_message(status: u16, message: &str) -> Response {
    let mut fields: Fields = plain::named();
    fields.add(b"Content-Type", html::CONTENT_TYPE.as_bytes());
    let body = Bytes::copy_from_slice(message.as_bytes());
    Response::new(status, fields, Body::Bytes(body))
}

/// A request that is not run at all.
pub(super) fn refuse(request: &Request, status: u16, reason: &'static str) -> Response {
    let fault = match status {
        503 => Fault::Server,
        500.. => Fault::Script,
        _ => Fault::Client,
    };
    script::fail::note(request, fault, reason);
    match status {
        503 => plain::busy(),
        _ => plain::error(status),
    }
}
