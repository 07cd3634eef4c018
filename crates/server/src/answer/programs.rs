//! The steps after a handler that runs programs: what the program asks the server to do with its
//! answer, then what the request asks for.
//!
//! A program may have another path of the site answered in its place, or a file sent; what it said
//! in fields of its own goes along. Each handler that runs programs gets the same.

use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Answered, Body, BodyError, Fields, Preconditions, Request, Response, ResponseHead};
use hob_trace::Fault;
use hob_trace::watch::RequestStage;

use super::admission::{Admission, AfterAdmission};
use super::after::{self, narrow};
use super::crowding::LimitedRequest;
use super::{HandlerContext, note_fault};
use crate::handle::files::find::ELSEWHERE;
use crate::handle::plain;
use crate::handle::script::control::{Buffer, Control, Instead, REDIRECTS_MAX};
use crate::route::target;
use crate::serve::dress::{dress, is_prepared};
use crate::serve::sites::{ServedRoute, ServedSite, Sites};
use crate::step::collect::{Collected, collect, look_ahead};
use crate::step::headers;

/// A request on its way through programs.
pub(super) struct ProgramDispatch {
    desk: Rc<HandlerContext>,
    sites: Arc<Sites>,
    request: Request,
    site: u32,
    /// The route that answers now.
    route: u32,
    /// The path by which it does, as it would be sent, where that is not the request's own.
    led_to: Option<Vec<u8>>,
    redirects: usize,
    /// Times a file turned out to be another route's to answer for.
    led_on: usize,
    /// What programs said that do not answer themselves.
    said: Vec<ReplacedHead>,
}

/// Status and fields of an answer that something else is sent for.
struct ReplacedHead {
    status: u16,
    fields: Fields,
}

/// What follows from a program's answer.
enum ProgramFollowUp {
    Done(Response),
    /// Its body decides how it goes on.
    Read(Response, Control),
    /// Another route has been asked.
    Asked(Answered),
    /// A file has been asked for.
    File(Answered),
}

impl ProgramDispatch {
    /// A request that the route of the site, both by their index, answers first.
    pub(super) fn new(
        desk: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        request: &Request,
        (site, route): (u32, u32),
    ) -> ProgramDispatch {
        ProgramDispatch {
            desk: Rc::clone(desk),
            sites: Arc::clone(sites),
            request: request.clone(),
            site,
            route,
            led_to: None,
            redirects: 0,
            led_on: 0,
            said: Vec::new(),
        }
    }

    /// From what the handler gives to what is sent.
    pub(super) async fn finish(mut self, mut answered: Answered) -> Response {
        let sites = Arc::clone(&self.sites);
        loop {
            let response = answered.wait().await;
            let Some((site, route)) = sites.route(self.site, self.route) else {
                return response;
            };
            if response.status() == ELSEWHERE {
                match self.go_on(site, &response) {
                    Ok(next) => answered = next,
                    Err(status) => return self.dress(site, route, plain::error(status)),
                }
                continue;
            }
            if !route.handler.runs_programs() || response.is_stand_in {
                return self.dress(site, route, response);
            }
            answered = match self.step(site, route, response) {
                ProgramFollowUp::Done(response) => return self.dress(site, route, response),
                // Seldom, and much to hold: few requests wait in it.
                ProgramFollowUp::Read(response, control) => {
                    let read = Box::pin(self.read(site, route, control, response));
                    let response = read.await;
                    return self.dress(site, route, response);
                }
                ProgramFollowUp::Asked(answered) => answered,
                ProgramFollowUp::File(answered) => {
                    let mut response = answered.wait().await;
                    if response.is_stand_in {
                        self.blame("sendfile: the file cannot be sent");
                    }
                    // Its rules are to be followed after the program's own fields are there.
                    response.fields_mut();
                    return self.dress(site, route, response);
                }
            };
        }
    }

    /// What another machine's hob gets, which has the client: the program's own answer, what it
    /// asks of the server in it. Only a file is sent from here.
    pub(super) async fn finish_for_other(mut self, answered: Answered) -> Response {
        let mut response = answered.wait().await;
        let sites = Arc::clone(&self.sites);
        let Some((_, route)) = sites.route(self.site, self.route) else {
            return response;
        };
        if response.is_stand_in {
            return response;
        }
        let control = Control::read(response.fields());
        let Some(Instead::SendFile(path)) = &control.instead else {
            return response;
        };
        let status = response.status();
        let mut fields = std::mem::take(response.fields_mut());
        Control::take(&mut fields);
        drop(response);
        self.said.push(ReplacedHead { status, fields });
        let mut file = match self.send_file(route, path) {
            Ok(answered) => answered.wait().await,
            Err(status) => return plain::error(status),
        };
        for said in &self.said {
            if file.is_stand_in {
                self.blame("sendfile: the file cannot be sent");
                add_cookies(said, &mut file);
            } else {
                say(said, &mut file);
            }
        }
        if !file.is_stand_in {
            // It is as it is to be sent.
            file.fields_mut().add(b"Script-Control", b"compress=off");
        }
        file
    }

    fn step(
        &mut self,
        site: &ServedSite,
        route: &ServedRoute,
        mut response: Response,
    ) -> ProgramFollowUp {
        let control = Control::take(response.fields_mut());
        if let Some(note) = control.note {
            self.request.record_mut().note = Some(note);
        }
        let Some(instead) = &control.instead else {
            return match self.must_read(site, &control, &response) {
                true => ProgramFollowUp::Read(response, control),
                false => {
                    let steps = &route.after;
                    ProgramFollowUp::Done(narrow(&self.request, steps, &control, response))
                }
            };
        };
        let status = match instead {
            Instead::SendFile(_) => response.status(),
            // The other path's answer has its own.
            Instead::Redirect(_) => 200,
        };
        let fields = std::mem::take(response.fields_mut());
        // Its output is not wanted: the program is told before anything else begins.
        drop(response);
        self.said.push(ReplacedHead { status, fields });
        let asked = match instead {
            Instead::Redirect(target) => self.redirect(site, target).map(ProgramFollowUp::Asked),
            Instead::SendFile(path) => self.send_file(route, path).map(ProgramFollowUp::File),
        };
        asked.unwrap_or_else(|status| ProgramFollowUp::Done(plain::error(status)))
    }

    /// Another route has to answer, with all that came: the one of the file that was found, a
    /// folder's index or a fallback, or the next one where none was. The error is a status.
    fn go_on(&mut self, site: &ServedSite, response: &Response) -> Result<Answered, u16> {
        self.led_on += 1;
        self.check_redirects()?;
        let location = response.fields().value(b"Location");
        if let Some(location) = location {
            self.led_to = Some(location.to_vec());
        }
        let head = self.request.head();
        let raw = self.led_to.as_deref().unwrap_or(head.path());
        let mut room = Vec::new();
        let normal = target::normalise(raw, &mut room).map_err(|_| 404u16)?;
        let mut path = normal.path(raw, &room);
        let found = match location {
            Some(_) => {
                let shown = target::PathDisplay(path);
                let text = format_args!("answered as {shown:#}");
                self.request.tell(RequestStage::Step, text);
                site.find(path, &self.request)
            }
            None => {
                let text = format_args!("the next route answers");
                self.request.tell(RequestStage::Step, text);
                if self.led_to.is_none() {
                    path = self.request.rewritten_path().unwrap_or(path);
                }
                site.find_behind(path, self.route, &self.request)
            }
        };
        let Some((index, below)) = found else {
            let slashes = site.slashes.as_ref().filter(|_| location.is_none());
            let redirect = slashes.and_then(|slashes| slashes.redirect(&self.request));
            return redirect.map(Answered::Ready).ok_or(404);
        };
        if location.is_none() && site.routes[index as usize].is_internal && self.redirects == 0 {
            note_fault(&self.request, Fault::Client, "the route is internal");
            return Err(404);
        }
        let route = enter(&self.request, site, index);
        let before = std::mem::replace(&mut self.route, index);
        let admission = self.admission(site, path, before);
        if let Admission::No(refusal) = admission {
            return Ok(Answered::Ready(refusal));
        }
        // After an internal redirect there is no body any more.
        if self.redirects == 0 && !self.request.limit_body(route.body_bytes_max) {
            note_fault(
                &self.request,
                Fault::Client,
                "limits.body: the announced body is too large",
            );
            return Err(413);
        }
        Ok(self.ask(admission, (path, below)))
    }

    /// Whether the client may have what the route answers that is asked now, after another one.
    fn admission(&self, site: &ServedSite, path: &[u8], before: u32) -> Admission {
        let before = site.routes.get(before as usize);
        let at = (self.site, self.route);
        self.desk
            .admission(&self.sites, at, &self.request, path, before)
    }

    /// What the route gives that is asked now, once the client is let in.
    fn ask(&self, admission: Admission, place: (&[u8], usize)) -> Answered {
        let ask: AfterAdmission = |desk, sites, at, request, place| match sites.route(at.0, at.1) {
            Some((site, route)) => desk.ask(sites, site, route, request, place),
            None => Answered::Ready(plain::error(404)),
        };
        let at = (self.site, self.route);
        self.desk
            .when_admitted(&self.sites, at, &self.request, place, (admission, ask))
    }

    /// That it does not go on and on. The error is a status.
    fn check_redirects(&mut self) -> Result<(), u16> {
        if self.redirects + self.led_on > REDIRECTS_MAX {
            self.desk.counters.limit_redirects.add(1);
            self.blame("redirect: more than 10 internal redirects");
            return Err(500);
        }
        Ok(())
    }

    /// Has the site answer another path. The error is a status.
    fn redirect(&mut self, site: &ServedSite, target: &[u8]) -> Result<Answered, u16> {
        self.redirects += 1;
        self.led_to = None;
        self.check_redirects()
            .inspect_err(|_| self.request.set_detail(target))?;
        let shown = target.escape_ascii();
        self.request.tell(
            RequestStage::Step,
            format_args!("internal redirect to {shown}"),
        );
        self.request.detour(target, Preconditions::Kept);
        let raw = self.request.head().path();
        let mut room = self.desk.path.borrow_mut();
        let normal = target::normalise(raw, &mut room).map_err(|bad| {
            self.request.set_detail(target);
            self.blame(bad.reason());
            502u16
        })?;
        let path = normal.path(raw, &room);
        let (index, below) = site.find(path, &self.request).ok_or(404u16)?;
        let route = enter(&self.request, site, index);
        let before = std::mem::replace(&mut self.route, index);
        // What is internal is there for programs that have asked who it is themselves.
        let admission = match route.is_internal {
            true => {
                let before = site.routes.get(before as usize);
                let ask = LimitedRequest {
                    route,
                    counted: route.counted(&self.request, path),
                    before,
                };
                let at = (self.site, self.route);
                self.desk.admission_by_limits(&self.sites, at, &ask)
            }
            false => self.admission(site, path, before),
        };
        Ok(self.ask(admission, (path, below)))
    }

    /// Has a file sent, if it lies below one of the route's folders. The error is a status.
    fn send_file(&self, route: &ServedRoute, path: &[u8]) -> Result<Answered, u16> {
        let shown = path.escape_ascii();
        self.request.tell(
            RequestStage::Step,
            format_args!("the program has {shown} sent"),
        );
        let mut room = Vec::new();
        let found = file_path(path, &mut room).and_then(|path| {
            route.sendfile.iter().find_map(|files| {
                let below = below(files.settings.root.as_os_str().as_encoded_bytes(), path)?;
                Some((files, below))
            })
        });
        let Some((files, below)) = found else {
            self.request.set_detail(path);
            self.blame("sendfile: the file is below no folder of `sendfile`");
            return Err(502);
        };
        let is_whole = self.said.last().is_some_and(|said| said.status != 200);
        let head = self.request.head();
        if is_whole || !matches!(head.method(), b"GET" | b"HEAD") {
            let preconditions = match is_whole {
                true => Preconditions::Dropped,
                false => Preconditions::Kept,
            };
            let target = head.target().to_vec();
            self.request.detour(&target, preconditions);
        }
        Ok(self.desk.file(files, &self.request, below, None, None))
    }

    /// Whether some of the program's own output is read before its head is sent: that of an error
    /// for which there is a page, and one that is to be collected.
    fn must_read(&self, site: &ServedSite, control: &Control, response: &Response) -> bool {
        let has_page = response.status() >= 400 && site.error_page(response.status()).is_some();
        has_page || control.buffer == Buffer::Whole
    }

    /// The program's own output: a page for an error without words, then collected if it is to be,
    /// then narrowed.
    async fn read(
        &self,
        site: &ServedSite,
        route: &ServedRoute,
        control: Control,
        mut response: Response,
    ) -> Response {
        let is_head = self.request.head().method() == b"HEAD";
        let steps = &route.after;
        if response.status() >= 400 && site.error_page(response.status()).is_some() {
            if !is_head && !steps.intercept_errors {
                match look_ahead(response.body).await {
                    Ok(body) => response.body = body,
                    Err(error) => return self.broken(error),
                }
            }
            if steps.intercept_errors || matches!(response.body, Body::Empty) {
                after::make_stand_in(&mut response);
                return response;
            }
        }
        if control.buffer == Buffer::Whole && !is_head && !matches!(response.body, Body::Tunnel(_))
        {
            match collect(response.body, steps.buffer_max).await {
                Ok(Collected::Whole(bytes)) => response.body = Body::Bytes(bytes),
                Ok(Collected::TooLarge(body)) => {
                    self.desk.counters.limit_buffer.add(1);
                    let mut record = self.request.record_mut();
                    record.note = Some("buffer_max: the answer is larger, it is sent as it comes");
                    response.body = body;
                }
                Err(error) => return self.broken(error),
            }
        }
        narrow(&self.request, steps, &control, response)
    }

    /// The program broke before anything was sent: the client can be told.
    fn broken(&self, error: BodyError) -> Response {
        if let BodyError::Source(fault, reason) = error {
            note_fault(&self.request, fault, reason);
        }
        plain::error(error.status())
    }

    /// Adds what programs said whose output is not sent, and dresses the answer.
    fn dress(&self, site: &ServedSite, route: &ServedRoute, mut response: Response) -> Response {
        if self.said.is_empty() {
            return dress(site, Some(route), response);
        }
        let was_prepared = is_prepared(&response);
        let is_last_word = route.handler.runs_programs() && self.redirects == self.said.len();
        for said in &self.said {
            if is_last_word || response.is_stand_in {
                add_cookies(said, &mut response);
            } else {
                say(said, &mut response);
            }
        }
        response = dress(site, Some(route), response);
        if was_prepared {
            // It had followed them before the program's fields came in.
            headers::follow_again(&route.headers, response.fields_mut());
        }
        response
    }

    fn blame(&self, reason: &'static str) {
        note_fault(&self.request, Fault::Script, reason);
    }
}

/// Tells the record that this route of the site answers from here on.
fn enter<'s>(request: &Request, site: &'s ServedSite, index: u32) -> &'s ServedRoute {
    let route = &site.routes[index as usize];
    let mut record = request.record_mut();
    record.route = index;
    record.series = route.series;
    record.handler = route.handler.kind();
    route
}

/// Puts a program's fields into the answer that is sent for its own. They win, but for those that
/// say which bytes are sent.
fn say(said: &ReplacedHead, response: &mut Response) {
    let media_type = response.fields().value(b"Content-Type");
    // Of a 304 there is no content, and several parts are of a type of their own.
    let has_own_type = response.status() == 304
        || media_type.is_some_and(|name| name.starts_with(b"multipart/byteranges"));
    let is_kept = |name: &[u8]| {
        let is = |known: &&[u8]| known.eq_ignore_ascii_case(name);
        let gives_way = has_own_type && is(&&b"Content-Type"[..]);
        !gives_way && !ABOUT_BYTES.iter().any(is)
    };
    let is_added = |name: &[u8]| {
        name.eq_ignore_ascii_case(b"Set-Cookie") || name.eq_ignore_ascii_case(b"Vary")
    };
    let fields = response.fields_mut();
    for (name, _) in said.fields.iter() {
        if is_kept(name) && !is_added(name) {
            fields.remove(name);
        }
    }
    for (name, value) in said.fields.iter() {
        if is_kept(name) {
            fields.add(name, value);
        }
    }
    if said.status != 200 && response.status() == 200 {
        let fields = std::mem::take(response.fields_mut());
        response.head = ResponseHead::Fields(said.status, fields);
    }
}

/// Fields that belong to the bytes a program does not send.
const ABOUT_BYTES: &[&[u8]] = &[
    b"Accept-Ranges",
    b"Content-Digest",
    b"Content-Encoding",
    b"Content-Length",
    b"Content-MD5",
    b"Content-Range",
    b"Date",
    b"Digest",
    b"ETag",
    b"Last-Modified",
    b"Location",
    b"Repr-Digest",
    b"Server",
    b"Transfer-Encoding",
];

fn add_cookies(said: &ReplacedHead, response: &mut Response) {
    for (name, value) in said.fields.iter() {
        if name.eq_ignore_ascii_case(b"Set-Cookie") {
            response.fields_mut().add(name, value);
        }
    }
}

/// The path of a file without dot segments and double slashes; `None` when it leads above the root.
fn file_path<'p>(path: &'p [u8], room: &'p mut Vec<u8>) -> Option<&'p [u8]> {
    let normal = target::collapse(path, room).ok()?;
    Some(normal.path(path, room))
}

/// What follows a folder's path in that of a file.
fn below<'p>(folder: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    let rest = path.strip_prefix(folder)?.strip_prefix(b"/")?;
    (!rest.is_empty() && !rest.ends_with(b"/")).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in lines {
            assert!(fields.add(name.as_bytes(), value.as_bytes()));
        }
        fields
    }

    fn said(status: u16) -> ReplacedHead {
        let fields = fields(&[
            ("Content-Type", "application/pdf"),
            ("Content-Length", "3"),
            ("ETag", "\"script\""),
            ("Vary", "Cookie"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
            ("Link", "</a>"),
            ("Link", "</b>"),
        ]);
        ReplacedHead { status, fields }
    }

    fn file(status: u16) -> Response {
        let fields = fields(&[
            ("Server", "hob"),
            ("Content-Type", "text/plain"),
            ("ETag", "\"file\""),
            ("Link", "</own>"),
            ("Vary", "Accept-Encoding"),
        ]);
        Response::new(status, fields, Body::Empty)
    }

    #[test]
    fn fields_of_a_program_win_but_for_those_of_its_bytes() {
        let mut response = file(200);
        say(&said(200), &mut response);
        let expected = "Server: hob\r\nETag: \"file\"\r\nVary: Accept-Encoding\r\n\
                        Content-Type: application/pdf\r\nVary: Cookie\r\nSet-Cookie: a=1\r\n\
                        Set-Cookie: b=2\r\nLink: </a>\r\nLink: </b>\r\n";
        assert_eq!(response.fields().lines(), expected.as_bytes());
        assert_eq!(response.status(), 200);
    }

    #[test]
    fn status_of_a_program_is_that_of_a_whole_file() {
        for (program, file_status, expected) in [(404, 200, 404), (200, 206, 206), (200, 304, 304)]
        {
            let mut response = file(file_status);
            say(&said(program), &mut response);
            assert_eq!(response.status(), expected);
            let media_type = response.fields().value(b"Content-Type");
            let is_own = media_type == Some(b"application/pdf");
            assert_eq!(is_own, file_status != 304);
        }
    }

    #[test]
    fn only_files_below_a_folder_are_found_there() {
        let found = |path: &str| {
            let mut room = Vec::new();
            let path = file_path(path.as_bytes(), &mut room)?.to_vec();
            below(b"/var/files", &path).map(<[u8]>::to_vec)
        };
        for (path, expected) in [
            ("/var/files/a.pdf", "a.pdf"),
            ("/var/files/a/b c", "a/b c"),
            ("/var//files/./a/../b", "b"),
            ("/var/files/.hidden", ".hidden"),
            ("/x/../var/files/a%20b", "a%20b"),
        ] {
            assert_eq!(found(path).as_deref(), Some(expected.as_bytes()), "{path}");
        }
        for path in [
            "/var/files",
            "/var/files/",
            "/var/filesystem/a",
            "/var/files/../a",
            "/var/files/a/",
            "/etc/passwd",
            "/../var/files/a",
        ] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
