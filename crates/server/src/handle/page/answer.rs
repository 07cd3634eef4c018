//! From a request to its answer.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use hob_http::{Answered, Body, Bytes, HandlerPhase, Known, Request, Response};
use hob_page::host::{OwnHeader, PageHead};
use hob_page::limits::PageUse;
use hob_page::request::{Invocation, PageRequest};
use hob_page::sql_page::SqlPageFormat;
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::files::open::May;
use crate::handle::page::calls::CallServer;
use crate::handle::page::fail::{refuse, respond};
use crate::handle::page::files::{
    FileLookupError, FileUse, KnownFile, LookMoment, PageSource, is_sql_name,
};
use crate::handle::page::output::{Begun, OutputReader, PageBody, PageOutput, RunEnd};
use crate::handle::page::request::{CopiedEnvironment, RequestEnvironment, is_form};
use crate::handle::page::run::{SqlRun, WaitingRun};
use crate::handle::page::threads::PageQueueFull;
use crate::handle::page::visits::turns::PageVisit;
use crate::handle::page::{FORM_BYTES_MAX, Pages, request, run};
use crate::handle::script::body::BodyCollectError;
use crate::handle::script::fail::broken_body;
use crate::handle::script::head::{CgiHead, CgiHeadProgress, HeadReader};
use crate::handle::script::reply;
use crate::handle::{AnswersRoute, html, plain};
use crate::serve::context::{HandlerContext, OnRoute};
use crate::serve::sites::Sites;
use crate::step::negotiate;
use crate::step::origin::foreign_page;

/// Longest head that a page prints itself, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

const MISSING_HEADER: &str = "the page says that it prints its own header (DTW_PRINT_HEADER is \
     \"NO\") and prints none: it got the usual one";

/// What a path below the route asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AskedPage<'a> {
    /// This block of a page.
    Block(Invocation<'a>),
    /// A page, and no block of it.
    Page(&'a str),
    /// Nothing (404).
    Nothing,
}

/// What this path asks for, without its first slash.
pub(super) fn asked<'a>(pages: &Pages, rest: &'a [u8]) -> AskedPage<'a> {
    let Ok(rest) = std::str::from_utf8(rest) else {
        return AskedPage::Nothing;
    };
    if let Some(invocation) = Invocation::parse(rest)
        && pages.files.is_page_name(invocation.page)
        && !is_sql_name(invocation.page)
    {
        return AskedPage::Block(invocation);
    }
    let page = match is_sql_name(rest) {
        true => rest,
        false => rest.trim_end_matches('/'),
    };
    match pages.files.is_page_name(page) && !page.contains('\0') {
        true => AskedPage::Page(page),
        false => AskedPage::Nothing,
    }
}

impl AnswersRoute for Pages {
    fn answer(self: &Arc<Pages>, on: &OnRoute<'_>) -> Answered {
        let request = on.request;
        match request.head().method() {
            b"GET" | b"HEAD" | b"POST" => {}
            b"OPTIONS" => return Answered::Ready(plain::options(plain::COMMANDS)),
            other => return Answered::Ready(plain::wrong_method(other, plain::COMMANDS)),
        }
        let below = self.page_begin(request, on.path, on.below);
        let rest = on.path.get(below..).unwrap_or_default();
        let (name, block) = match asked(self, rest) {
            AskedPage::Block(Invocation { page, block }) => (page, Some(block)),
            AskedPage::Page(page) if is_sql_name(page) => (page, None),
            AskedPage::Page(page) if request.head().method() != b"POST" => (page, None),
            AskedPage::Page(_) | AskedPage::Nothing => return Answered::Ready(plain::error(404)),
        };
        if is_sql_name(name)
            && request.head().method() == b"POST"
            && let Some(reason) = foreign_page(request)
        {
            return Answered::Ready(refuse(request, 403, reason));
        }
        let visit = match self.asked_visit(on, name) {
            Ok(visit) => visit,
            Err(elsewhere) => return *elsewhere,
        };
        let asked = PageAsk {
            pages: Arc::clone(self),
            request: request.clone(),
            counters: Arc::clone(&on.desk.counters),
            pool: on.desk.shared.pool.clone(),
            desk: Rc::clone(on.desk),
            sites: Arc::clone(on.sites),
            name: name.to_owned(),
            block: block.map(str::to_owned),
            path: on.path.into(),
            below,
            visit,
            moment: LookMoment {
                now_ms: on.desk.now_ms.get(),
                recheck_ms: on.desk.shared.recheck_ms(),
                may: May::TouchMemoryOnly,
            },
        };
        if request.body_len() != Some(0) && is_form(request) {
            return Answered::Later(Box::pin(asked.collect()));
        }
        asked.begin(&[])
    }
}

/// One request for a page.
pub(super) struct PageAsk {
    pub(super) pages: Arc<Pages>,
    pub(super) request: Request,
    pub(super) counters: Arc<ThreadCounters>,
    pool: DiskThreads,
    /// Who calls programs for it, and of which sites.
    desk: Rc<HandlerContext>,
    sites: Arc<Sites>,
    pub(super) name: String,
    /// The first one of the page where there is none.
    block: Option<String>,
    /// In normal form, and where it leaves the route.
    pub(super) path: Box<[u8]>,
    pub(super) below: usize,
    /// The visit that it is of, if there is one already.
    pub(super) visit: Option<Arc<PageVisit>>,
    moment: LookMoment,
}

impl PageAsk {
    /// Takes the form that comes, and runs the page.
    async fn collect(self) -> Response {
        let mut form = Vec::new();
        let mut is_long = self.request.body_len() > Some(FORM_BYTES_MAX as u64);
        while !is_long && let Some(piece) = self.request.next_body().await {
            match piece {
                Ok(piece) => form.extend_from_slice(&piece),
                Err(error) => return broken_body(&self.request, BodyCollectError::Broken(error)),
            }
            is_long = form.len() > FORM_BYTES_MAX;
        }
        if is_long {
            self.counters.limit_page_form.add(1);
            return refuse(&self.request, 413, "limits: the form is longer than 1 MiB");
        }
        match self.begin(&form) {
            Answered::Ready(response) => response,
            Answered::Later(later) => later.await,
        }
    }

    /// Runs the page here, or has it run where it may wait.
    fn begin(self, form: &[u8]) -> Answered {
        if is_sql_name(&self.name) {
            return match self.told("", form) {
                Ok(told) => Answered::Later(Box::pin(self.wait(told, None, form.len()))),
                Err(end) => Answered::Ready(self.failed(&end)),
            };
        }
        if self.visit.is_some() && self.block.is_some() {
            // It keeps the page, whatever has become of the file.
            return self.begin_with(None, form);
        }
        let found = self
            .pages
            .files
            .find(&self.name, FileUse::Page, self.moment);
        let file = match found {
            Ok(file) => Some(file),
            Err(FileLookupError::WouldWait) => None,
            Err(error) => return Answered::Ready(self.failed(&RunEnd::NoPage(error))),
        };
        if file.is_none() && self.block.is_some() && self.pages.keeps_visits() {
            // Whether the page lasts is known only then.
            return Answered::Later(Box::pin(self.find_and_begin(form.to_vec())));
        }
        self.begin_with(file, form)
    }

    async fn find_and_begin(self, form: Vec<u8>) -> Response {
        let file = match self.find().await {
            Ok(file) => file,
            Err(response) => return *response,
        };
        match self.begin_with(Some(file), &form) {
            Answered::Ready(response) => response,
            Answered::Later(later) => later.await,
        }
    }

    fn begin_with(self, file: Option<Arc<KnownFile>>, form: &[u8]) -> Answered {
        let Some(block) = self.block.as_deref() else {
            return self.redirect(file);
        };
        let told = match self.told(block, form) {
            Ok(told) => told,
            Err(end) => return Answered::Ready(self.failed(&end)),
        };
        let is_in_visit =
            || self.visit.is_some() || file.as_ref().is_some_and(|file| file.asks_to_last());
        if let Some(home) = self.pages.visits.clone()
            && is_in_visit()
        {
            return self.ask_in_visit(home, told, file, form);
        }
        let printed = file.as_ref().and_then(|file| {
            let environment = self.environment(form.len());
            run::inline(&self.pages, file, &told, &environment, self.moment)
        });
        Answered::Ready(match printed {
            None => return Answered::Later(Box::pin(self.wait(told, file, form.len()))),
            Some(Err(fault)) => self.failed(&RunEnd::Fault(fault)),
            Some(Ok(printed)) => match printed.used {
                None => self.failed(&RunEnd::NoBlock),
                Some(used) => {
                    self.counters.page_inline.add(1);
                    self.whole(&printed.head, printed.bytes.into(), &used)
                }
            },
        })
    }

    fn told(&self, block: &str, form: &[u8]) -> Result<PageRequest, RunEnd> {
        let environment = self.environment(form.len());
        request::of(&self.request, &environment, block, form).map_err(RunEnd::Fault)
    }

    fn environment(&self, form_bytes: usize) -> RequestEnvironment<'_> {
        let script = self.path.split_at(self.below.saturating_sub(1));
        RequestEnvironment::new(&self.request, script, form_bytes)
    }

    fn failed(&self, end: &RunEnd) -> Response {
        respond(&self.pages, &self.request, &self.counters, end)
    }

    /// Leads to the first block of a page, so that its links are right.
    fn redirect(self, file: Option<Arc<KnownFile>>) -> Answered {
        let Some(file) = file else {
            return Answered::Later(Box::pin(self.find_and_redirect()));
        };
        Answered::Ready(self.to_first_block(&file))
    }

    async fn find_and_redirect(self) -> Response {
        match self.find().await {
            Ok(file) => self.to_first_block(&file),
            Err(response) => *response,
        }
    }

    /// The file, looked for where that may wait.
    async fn find(&self) -> Result<Arc<KnownFile>, Box<Response>> {
        let (pages, name) = (Arc::clone(&self.pages), self.name.clone());
        let moment = LookMoment {
            may: May::Wait,
            ..self.moment
        };
        let job = move || pages.files.find(&name, FileUse::Page, moment);
        let Ok(found) = self.pool.run(job) else {
            self.counters.disk_refused.add(1);
            return Err(Box::new(plain::busy()));
        };
        let end = match found.await {
            Some(Ok(file)) => return Ok(file),
            Some(Err(error)) => RunEnd::NoPage(error),
            None => RunEnd::Lost,
        };
        Err(Box::new(self.failed(&end)))
    }

    fn to_first_block(&self, file: &KnownFile) -> Response {
        let page = match &file.page {
            Ok(PageSource::Macro(page)) => page,
            Ok(PageSource::Sql(_)) => return self.failed(&RunEnd::NoBlock),
            Err(fault) => return self.failed(&RunEnd::Fault(fault.clone())),
        };
        let entries = page.entries();
        let is_plain = |name: &&&str| {
            let mut bytes = name.bytes();
            bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        let Some(first) = entries.first().filter(is_plain) else {
            return self.failed(&RunEnd::NoBlock);
        };
        let head = self.request.sent_head();
        let path = head.path();
        let mut location = path.strip_suffix(b"/").unwrap_or(path).to_vec();
        // Two slashes at the start would name another host.
        while location.starts_with(b"//") {
            location.remove(0);
        }
        location.push(b'/');
        location.extend_from_slice(first.as_bytes());
        if let Some(query) = head.query() {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        plain::redirect(302, &location)
    }

    /// Calls programs for a run, beside its answer: that may begin before the run has ended.
    fn serve_calls(&self, output: &PageOutput) {
        let server = CallServer {
            desk: Rc::clone(&self.desk),
            sites: Arc::clone(&self.sites),
            request: self.request.clone(),
            settings: Arc::clone(&self.pages.settings),
            calls: Arc::clone(&output.calls),
            deadline: output.deadline,
        };
        self.request.reactor().spawn(server.serve());
    }

    /// Has a thread run the page that may wait: this file, if it is known.
    pub(super) async fn wait(
        self,
        told: PageRequest,
        file: Option<Arc<KnownFile>>,
        form_bytes: usize,
    ) -> Response {
        let time = self.pages.time();
        let output = PageOutput::new(Instant::now() + time);
        let reader = OutputReader(Arc::clone(&output));
        let is_asked_for = match file.as_ref().map(|file| &file.page) {
            Some(Ok(PageSource::Macro(page))) => page.may_ask_environment(),
            _ => !is_sql_name(&self.name),
        };
        let environment = match is_asked_for {
            true => self.environment(form_bytes).copy(),
            false => CopiedEnvironment::default(),
        };
        let asked = WaitingRun {
            name: self.name.clone(),
            file,
            request: told,
            environment,
            moment: self.moment,
            sql: self.sql(),
            is_watched: self.request.is_traced(),
        };
        if !self.pages.settings.programs.is_empty() {
            self.serve_calls(&output);
        }
        if let Err(refusal) = self.queue(asked, output) {
            return *refusal;
        }
        self.counters.page_waiting.add(1);
        self.request.set_phase(HandlerPhase::Program);
        self.request.set_half_close(self.pages.half_close);
        let timer = self.request.reactor().timer();
        timer.set(time);
        let begun = poll_fn(|cx| match reader.poll_begun(cx) {
            Poll::Ready(begun) => Poll::Ready(Some(begun)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        });
        let begun = begun.await;
        self.request.set_phase(HandlerPhase::Server);
        reader.tell_slow(&self.request);
        for event in reader.take_events() {
            self.request
                .tell(RequestStage::Program, format_args!("{event}"));
        }
        match begun {
            Some(Begun::Whole(head, pieces, RunEnd::Done(used))) => {
                self.whole(&head, joined(pieces), &used)
            }
            Some(Begun::Whole(_, _, RunEnd::VisitOver)) => self.refuse_stale(),
            Some(Begun::Whole(_, _, end)) => self.failed(&end),
            Some(Begun::Part(head)) => self.part(&head, reader),
            None if reader.has_begun() => {
                self.counters.limit_page_time.add(1);
                let reason = "limits: page.time: the page took too long";
                refuse(&self.request, 504, reason)
            }
            None => self.failed(&RunEnd::Unbegun),
        }
    }

    /// Has the run wait for a thread, and before that for its turn in a visit.
    fn queue(&self, asked: WaitingRun, output: Arc<PageOutput>) -> Result<(), Box<Response>> {
        if let Some(visit) = &self.visit {
            return self.queue_turn(visit, asked, output);
        }
        let pages = Arc::clone(&self.pages);
        let queued = self.pages.threads.run(move |connections| {
            run::waiting(&pages, &asked, connections, &output);
        });
        queued.map_err(|full| self.refuse_full(full))
    }

    pub(super) fn refuse_full(&self, _: PageQueueFull) -> Box<Response> {
        self.counters.limit_page_queue.add(1);
        let reason = "limits: page.queue: as many requests as may wait for a run";
        Box::new(refuse(&self.request, 503, reason))
    }

    /// How the page's statements are run, where it is statements.
    fn sql(&self) -> Option<SqlRun> {
        let head = self.request.head();
        is_sql_name(&self.name).then(|| SqlRun {
            format: self.format(),
            query: self.request.query().unwrap_or_default().to_vec(),
            reads_only: head.method() != b"POST",
        })
    }

    fn format(&self) -> SqlPageFormat {
        let accept = self.request.head().joined(Known::Accept);
        negotiate::sql_page_format(accept.as_deref())
    }

    /// An answer without a head of its own.
    fn with_head(&self, head: &PageHead, body: Body) -> Response {
        let mut fields = plain::named();
        let content_type = match head.is_xml {
            true => "text/xml; charset=utf-8",
            false => html::CONTENT_TYPE,
        };
        if !is_sql_name(&self.name) {
            fields.add(b"Content-Type", content_type.as_bytes());
            return with_cookies(Response::new(200, fields, body), head);
        }
        let format = self.format();
        fields.add(b"Content-Type", format.content_type().as_bytes());
        fields.add(b"Vary", b"Accept");
        if format == SqlPageFormat::Html {
            let policy = html::CONTENT_SECURITY_POLICY;
            fields.add(b"Content-Security-Policy", policy.as_bytes());
        }
        Response::new(200, fields, body)
    }

    /// The answer of a run that has ended.
    fn whole(&self, head: &PageHead, bytes: Bytes, used: &PageUse) -> Response {
        count(&self.counters, used);
        if head.header != OwnHeader::Printed {
            self.tell_missing_header(head);
            let body = match bytes.is_empty() {
                true => Body::Empty,
                false => Body::Bytes(bytes),
            };
            return self.with_head(head, body);
        }
        let (own, begin) = match self.own_head(&bytes) {
            Ok(own) => own,
            Err(response) => return *response,
        };
        let body = bytes[begin..].to_vec();
        let whole = match own.local {
            Some(_) => Some(reply::head_alone(own)),
            None => reply::whole(&self.request, own, body, true),
        };
        with_cookies(whole.unwrap_or_else(|| self.headless()), head)
    }

    /// The answer of a run that goes on.
    fn part(&self, head: &PageHead, reader: OutputReader) -> Response {
        let mut first = reader.take_held();
        let own = match head.header {
            OwnHeader::Unannounced | OwnHeader::Missing => {
                self.tell_missing_header(head);
                None
            }
            OwnHeader::Printed => {
                let mut bytes = Bytes::from(first.concat());
                match self.own_head(&bytes) {
                    Err(response) => return *response,
                    Ok((own, begin)) => {
                        first = vec![bytes.split_off(begin)];
                        Some(own)
                    }
                }
            }
        };
        let counters = Arc::clone(&self.counters);
        let body = PageBody::new(reader, first, &self.request, counters, &self.pool);
        let body = Body::Stream(Box::new(body));
        let Some(own) = own else {
            return self.with_head(head, body);
        };
        if own.local.is_some() {
            return with_cookies(reply::head_alone(own), head);
        }
        let (status, mut fields) = (own.status, own.fields);
        fields.set(b"Server", plain::SERVER);
        reply::say_type(&mut fields);
        with_cookies(Response::new(status, fields, body), head)
    }

    /// The head that a page prints itself, and where its body begins.
    fn own_head(&self, bytes: &[u8]) -> Result<(CgiHead, usize), Box<Response>> {
        match HeadReader::new(HEAD_BYTES_MAX).read(bytes) {
            CgiHeadProgress::Head(head, begin) => Ok((head, begin)),
            CgiHeadProgress::NeedMore => {
                let first = bytes.split(|&byte| byte == b'\n').next();
                self.request.set_detail(first.unwrap_or_default());
                Err(Box::new(self.headless()))
            }
            CgiHeadProgress::Refused(bad) => {
                self.request.set_detail(bad.to_string().as_bytes());
                Err(Box::new(self.headless()))
            }
        }
    }

    /// The record of a page that says that it prints its header, and does not.
    fn tell_missing_header(&self, head: &PageHead) {
        if head.header == OwnHeader::Missing {
            self.request.set_detail(MISSING_HEADER.as_bytes());
        }
    }

    fn headless(&self) -> Response {
        refuse(
            &self.request,
            500,
            "the page does not begin with the header that it says it has",
        )
    }
}

/// What runs used, in the counters.
pub(super) fn count(counters: &ThreadCounters, used: &PageUse) {
    counters.page_statements.add(used.statements.into());
    counters.page_rows.add(used.rows);
    counters.page_files.add(used.files.into());
    counters.limit_page_files.add(used.refused_files.into());
    counters
        .page_refused_values
        .add(used.refused_outputs.into());
}

/// What was held, in one piece.
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        1 => pieces.remove(0),
        _ => pieces.concat().into(),
    }
}

fn with_cookies(mut response: Response, head: &PageHead) -> Response {
    for cookie in &head.cookies {
        // One that does not fit into a field is none.
        response.fields_mut().add(b"Set-Cookie", cookie.as_bytes());
    }
    response
}

impl Pages {
    /// The file of a page, for who explains.
    pub(super) fn known(&self, name: &str) -> Result<Arc<KnownFile>, FileLookupError> {
        let moment = LookMoment {
            now_ms: 0,
            recheck_ms: 0,
            may: May::Wait,
        };
        self.files.find(name, FileUse::Page, moment)
    }
}
