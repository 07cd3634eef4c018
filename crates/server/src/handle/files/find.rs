//! From a request's path to an answer: this thread's view first, then memory, then the file pool.
//!
//! [`answer`] does all that can be done without waiting; what is left is a [`FileStep`] for
//! [`finish_later`], which may wait for the pool and take several steps.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use hob_http::{Answered, Body, Fields, Known, Request, Response};
use hob_trace::metric::ThreadCounters;
use hob_trace::{CacheOutcome, Fault};

use crate::cache::entry::{CachedFile, Key, OpenFile, Representation, write_key};
use crate::cache::local::{CachedFileView, Local};
use crate::handle::config::{CacheMode, Coding, Files as FilesSettings};
use crate::handle::files::listing::{self, Sort};
use crate::handle::files::load::{self, Loaded};
use crate::handle::files::open::{FileOpenError, May};
use crate::handle::files::respond::{self, Choice};
use crate::handle::files::{Files, folder};
use crate::handle::{html, plain};
use crate::route::percent::{UrlPart, encode};
use crate::serve::ServerState;
use crate::serve::claims::Claims;
use crate::serve::sites::{ServedRoute, ServedSite, Slashes};
use crate::step::negotiate::{self, ListingForm};
use hob_keeper::process::is_lack;

/// One request for a file. Counting references costs as much as a look-up: an answer at hand
/// borrows.
#[derive(Clone, Copy)]
pub struct FileRequest<'a> {
    /// The handler.
    pub files: &'a Arc<Files>,
    /// The request.
    pub request: &'a Request,
    /// What all threads share.
    pub shared: &'a Arc<ServerState>,
    /// The thread's own counters.
    pub counters: &'a Arc<ThreadCounters>,
    /// Loop time, in milliseconds.
    pub now_ms: u64,
    /// Who else of the site may answer for the file that is found.
    pub others: Option<Others<'a>>,
    /// Paths of the site that are sent to a slash where there is no file.
    pub slashes: Option<&'a Arc<Slashes>>,
}

/// What finds out whether a file is another route's to answer for.
#[derive(Clone, Copy)]
pub struct Others<'a> {
    /// Which paths their own routes have to answer.
    pub claims: &'a Arc<Claims>,
    /// The index of the route that is asked.
    pub index: u32,
    /// The path that was asked for, or that it was rewritten to.
    pub path: &'a [u8],
    /// Where it leaves the part that stands for the handler's root.
    pub below: usize,
    /// The route was found by this path: the file at it is the route's to send.
    pub is_routed: bool,
}

impl<'a> Others<'a> {
    /// What else a site has for a path on one of its routes, if some of its files are claimed;
    /// and where the path leaves what stands for the root of `files`.
    pub(super) fn on(
        files: &Files,
        (site, route): (&'a ServedSite, &ServedRoute),
        path: &'a [u8],
        below: usize,
    ) -> (Option<Others<'a>>, usize) {
        let below = match files.settings.keep_prefix {
            true => 1,
            false => below,
        };
        let others = site.claims.as_ref().map(|claims| Others {
            claims,
            index: route.index,
            path,
            below,
            is_routed: route.rewrite.is_none(),
        });
        (others, below)
    }
}

/// The status of an answer that another route gives: it is never sent. Its `Location` is the path,
/// encoded; without one it is the next route that the request's own path has.
pub const ELSEWHERE: u16 = 0;

/// The same for an answer that comes later.
struct LaterAsk {
    files: Arc<Files>,
    request: Request,
    shared: Arc<ServerState>,
    counters: Arc<ThreadCounters>,
    now_ms: u64,
    others: Option<LaterOthers>,
    slashes: Option<Arc<Slashes>>,
}

/// [`Others`] likewise.
struct LaterOthers {
    claims: Arc<Claims>,
    index: u32,
    path: Box<[u8]>,
    below: usize,
    is_routed: bool,
}

impl FileRequest<'_> {
    fn keep(&self) -> LaterAsk {
        LaterAsk {
            files: Arc::clone(self.files),
            request: self.request.clone(),
            shared: Arc::clone(self.shared),
            counters: Arc::clone(self.counters),
            now_ms: self.now_ms,
            others: self.others.map(|others| LaterOthers {
                claims: Arc::clone(others.claims),
                index: others.index,
                path: others.path.into(),
                below: others.below,
                is_routed: others.is_routed,
            }),
            slashes: self.slashes.cloned(),
        }
    }

    /// The way to the slash that the path lacks, where that is all it lacks.
    fn slash(&self) -> Option<Response> {
        self.slashes?.redirect(self.request)
    }

    /// True for methods that files answer.
    fn is_reading(&self) -> bool {
        matches!(self.request.head().method(), b"GET" | b"HEAD")
    }

    /// The answer when another route answers for this file: a folder's index, or a fallback.
    fn elsewhere(&self, entry: &CachedFile) -> Option<Response> {
        let others = self.others?;
        let (file, index) = entry.file_path();
        let (above, below) = others.path.split_at_checked(others.below)?;
        if others.is_routed && index.is_empty() && file == below {
            return None;
        }
        let path = [above, file, index].concat();
        let claims = others.claims;
        let is_of_another = claims.is_of_another(&path, others.index, self.request);
        is_of_another.then(|| {
            let (mut fields, mut location) = (Fields::new(), Vec::new());
            encode(&path, UrlPart::Path, &mut location);
            fields.add(b"Location", &location);
            Response::new(ELSEWHERE, fields, Body::Empty)
        })
    }
}

impl LaterAsk {
    fn ask(&self) -> FileRequest<'_> {
        FileRequest {
            files: &self.files,
            request: &self.request,
            shared: &self.shared,
            counters: &self.counters,
            now_ms: self.now_ms,
            others: self.others.as_ref().map(|others| Others {
                claims: &others.claims,
                index: others.index,
                path: &others.path,
                below: others.below,
                is_routed: others.is_routed,
            }),
            slashes: self.slashes.as_ref(),
        }
    }
}

/// A name that is looked for.
pub struct FileTry {
    /// The path that was asked for, with an ending for all but the first.
    path: Box<[u8]>,
    /// Its place among the names that are looked for.
    at: usize,
    /// A folder stands at the path itself.
    is_folder: bool,
}

impl FileTry {
    fn place(&self) -> (&[u8], usize, bool) {
        (&self.path, self.at, self.is_folder)
    }
}

/// What is left to do for an answer.
pub enum FileStep {
    /// It is there.
    Done(Response),
    /// The file pool must look.
    Fetch(FileTry),
    /// Another name is looked for.
    Try(FileTry),
    /// The fallback answers, if the pool finds it.
    FallBack(Box<[u8]>),
    /// A coding must be made.
    Make(Rc<CachedFileView>, Coding),
    /// The folder must be read.
    List(Box<[u8]>),
}

/// What a look at the disk gave, shared by all who waited for it.
#[derive(Clone)]
pub enum Fetched {
    /// A file.
    File(Arc<CachedFile>),
    /// A folder asked for without its slash.
    FolderWithoutSlash,
    /// A folder without an index.
    Folder,
    /// Nothing (404).
    Missing,
    /// Not to be read (403).
    Forbidden,
    /// The system failed (500), or something is used up (503).
    Failed {
        /// Something is used up.
        is_lack: bool,
    },
}

/// Answers a request for `path`, which is normal and below the handler's root, without its first
/// slash.
pub fn answer(
    ask: &FileRequest<'_>,
    path: &[u8],
    local: &mut Local,
    key: &mut Vec<u8>,
) -> Answered {
    if let Some(refusal) = refuse(ask, path) {
        return Answered::Ready(refusal);
    }
    let mut step = look_now(ask, (path, 0, false), (local, key));
    while let FileStep::Try(next) = step {
        step = look_now(ask, next.place(), (local, key));
    }
    match step {
        FileStep::Done(response) => Answered::Ready(response),
        step => Answered::Later(Box::pin(finish_later(ask.keep(), step))),
    }
}

/// The same with files that are known later; an error is the answer without them.
pub(super) fn answer_later(
    ask: &FileRequest<'_>,
    path: &[u8],
    opening: impl Future<Output = Result<Arc<Files>, Response>> + 'static,
) -> Answered {
    if let Some(refusal) = refuse(ask, path) {
        return Answered::Ready(refusal);
    }
    let (mut kept, path): (_, Box<[u8]>) = (ask.keep(), path.into());
    Answered::Later(Box::pin(async move {
        match opening.await {
            Ok(files) => kept.files = files,
            Err(response) => return response,
        }
        let wanted = FileTry {
            path,
            at: 0,
            is_folder: false,
        };
        finish_later(kept, FileStep::Fetch(wanted)).await
    }))
}

/// The answer for what no file is looked for.
fn refuse(ask: &FileRequest<'_>, path: &[u8]) -> Option<Response> {
    match ask.request.head().method() {
        b"GET" | b"HEAD" => {}
        // Whatever is no file here may take it.
        _ if ask.files.settings.try_next => {}
        b"OPTIONS" => return Some(plain::options(plain::READING)),
        // A program may take it, when the path leads to one, or only lacks a slash to lead there.
        _ if ask.others.is_some() || ask.slashes.is_some() => {}
        method => return Some(plain::wrong_method(method, plain::READING)),
    }
    let is_hidden = !ask.files.settings.dot_files && has_dot_name(path);
    is_hidden.then(|| match ask.files.settings.try_next {
        true => next_route(),
        false => plain::error(404),
    })
}

/// What follows from a name that is looked for, as far as that needs no disk: its path, its place
/// among the names, and whether a folder stands at the path that was asked for.
fn look_now(
    ask: &FileRequest<'_>,
    (path, at, is_folder): (&[u8], usize, bool),
    (local, key): (&mut Local, &mut Vec<u8>),
) -> FileStep {
    write_key(ask.files.id, path, key);
    match at_hand(ask, path, local, key) {
        Some(view) => serve(ask, view),
        None => load_now(ask, (path, at, is_folder), key),
    }
}

/// The next route that the request's own path has is to answer.
pub(crate) fn next_route() -> Response {
    Response::new(ELSEWHERE, Fields::new(), Body::Empty)
}

/// A name in the path begins with a dot; `.well-known` at the top is no secret.
//= rfc8615#3
pub fn has_dot_name(path: &[u8]) -> bool {
    let rest = path.strip_prefix(b".well-known/").unwrap_or(path);
    memchr::memchr_iter(b'.', rest).any(|at| at == 0 || rest[at - 1] == b'/')
}

/// The entry if it is in memory and fresh, or can be made fresh without waiting.
fn at_hand(
    ask: &FileRequest<'_>,
    path: &[u8],
    local: &mut Local,
    key: &[u8],
) -> Option<Rc<CachedFileView>> {
    let view = match local.find(key) {
        Some(view) => Rc::clone(view),
        None => local.insert(ask.shared.store.find(key)?),
    };
    let entry = &view.entry;
    if is_fresh(ask, entry, path) && entry.open_files_stand() {
        entry.warm_up();
        view.count_hit();
        ask.request.record_mut().cache = CacheOutcome::Hit;
        return Some(view);
    }
    let moment = ask.shared.moment(ask.now_ms);
    match load::survey(ask.files, path, moment, May::TouchMemoryOnly) {
        Ok(found) if entry.is_settled && entry.has_stamps(&found.stamps) => {
            entry.set_looked(found.as_of_ms);
            entry.warm_up();
            view.count_hit();
            ask.request.record_mut().cache = CacheOutcome::Revalidated;
            Some(view)
        }
        Err(FileOpenError::WouldWait) => None,
        _ => {
            ask.shared.store.remove(entry);
            None
        }
    }
}

/// True when the file was looked at a moment ago, or has not changed since.
fn is_fresh(ask: &FileRequest<'_>, entry: &CachedFile, path: &[u8]) -> bool {
    let recheck_ms = ask.shared.recheck_ms();
    let is_within = |moment_ms: u64| ask.now_ms.saturating_sub(moment_ms) < recheck_ms;
    if is_within(entry.checked_ms()) {
        return true;
    }
    let moment = ask.shared.moment(ask.now_ms);
    let until_ms = load::unchanged_until_ms(ask.files, entry, path, moment);
    until_ms.is_some_and(|until_ms| {
        entry.set_checked(until_ms);
        is_within(until_ms)
    })
}

/// Loads the file if that needs no disk.
fn load_now(
    ask: &FileRequest<'_>,
    (path, at, is_folder): (&[u8], usize, bool),
    key: &[u8],
) -> FileStep {
    ask.request.record_mut().cache = CacheOutcome::Miss;
    let key: Key = key.into();
    let moment = ask.shared.moment(ask.now_ms);
    match load::load(ask.files, &key, path, moment, May::TouchMemoryOnly) {
        Err(FileOpenError::WouldWait) => FileStep::Fetch(FileTry {
            path: path.into(),
            at,
            is_folder,
        }),
        Ok(Loaded::File(entry)) => {
            keep(ask.files, ask.shared, &entry);
            // A thread has views of what is asked for again: a crawl leaves them alone.
            serve(ask, passing_view(entry))
        }
        other => settle(ask, (path, at, is_folder), fetched(other, ask.files)),
    }
}

/// Puts an entry into the store if the route wants that and there is room.
pub fn keep(files: &Files, shared: &ServerState, entry: &Arc<CachedFile>) -> bool {
    files.settings.cache != CacheMode::Off
        && shared.is_cache_on()
        && shared.store.insert(Arc::clone(entry))
}

/// A view for one answer.
fn passing_view(entry: Arc<CachedFile>) -> Rc<CachedFileView> {
    Rc::new(CachedFileView::new(entry))
}

fn fetched(loaded: Result<Loaded, FileOpenError>, files: &Files) -> Fetched {
    match loaded {
        Ok(Loaded::File(entry)) => Fetched::File(entry),
        Ok(Loaded::FolderWithoutSlash) => Fetched::FolderWithoutSlash,
        Ok(Loaded::Folder) => Fetched::Folder,
        Err(FileOpenError::Missing | FileOpenError::WouldWait) => Fetched::Missing,
        Err(FileOpenError::Forbidden) => Fetched::Forbidden,
        Err(FileOpenError::Failed(error)) => {
            hob_trace::warn_seldom!(root = %files.root.path().display(), %error, "a file could not be read");
            Fetched::Failed {
                is_lack: error.raw_os_error().is_some_and(is_lack),
            }
        }
    }
}

fn serve(ask: &FileRequest<'_>, view: Rc<CachedFileView>) -> FileStep {
    if let Some(response) = ask.elsewhere(&view.entry) {
        return FileStep::Done(response);
    }
    if !ask.is_reading() {
        return FileStep::Done(wrong_method(ask));
    }
    match respond::choose(ask.files, &view.entry, ask.request.head()) {
        Choice::Send(coding) => {
            if !respond::can_sendfile(ask.request) {
                copy_if_hot(ask, &view.entry, coding);
            }
            let pool = &ask.files.pool;
            FileStep::Done(respond::respond(
                ask.files,
                &view,
                coding,
                ask.request,
                pool,
            ))
        }
        Choice::Make(coding) => FileStep::Make(view, coding),
        Choice::NotAcceptable => {
            let mut response = plain::error(406);
            response.fields_mut().add(b"Vary", b"Accept-Encoding");
            FileStep::Done(response)
        }
    }
}

/// What follows from what was found at `path`, the name that is looked for at this place.
fn settle(
    ask: &FileRequest<'_>,
    (path, at, is_folder): (&[u8], usize, bool),
    found: Fetched,
) -> FileStep {
    let settings = &ask.files.settings;
    let is_folder = is_folder || matches!(found, Fetched::FolderWithoutSlash) && at == 0;
    let found = match found {
        Fetched::FolderWithoutSlash | Fetched::Missing => {
            if let Some(next) = next_try(settings, path, at) {
                let at = at + 1;
                return FileStep::Try(FileTry {
                    path: next.into(),
                    at,
                    is_folder,
                });
            }
            match is_folder {
                true => Fetched::FolderWithoutSlash,
                false => Fetched::Missing,
            }
        }
        other => other,
    };
    match found {
        Fetched::Missing if settings.try_next => FileStep::Done(next_route()),
        Fetched::Folder if settings.try_next && !settings.listing => FileStep::Done(next_route()),
        Fetched::FolderWithoutSlash | Fetched::Folder if settings.try_next && !ask.is_reading() => {
            FileStep::Done(next_route())
        }
        Fetched::File(entry) => serve(ask, passing_view(entry)),
        Fetched::FolderWithoutSlash | Fetched::Folder | Fetched::Forbidden if !ask.is_reading() => {
            FileStep::Done(wrong_method(ask))
        }
        Fetched::FolderWithoutSlash => FileStep::Done(plain::add_slash(ask.request)),
        Fetched::Folder if settings.listing => FileStep::List(path.into()),
        Fetched::Folder | Fetched::Forbidden => FileStep::Done(plain::error(403)),
        Fetched::Missing => match (ask.slash(), &settings.fallback) {
            (Some(redirect), _) => FileStep::Done(redirect),
            (None, Some(fallback)) if fallback.as_bytes() != path => {
                FileStep::FallBack(fallback.as_bytes().into())
            }
            _ if !ask.is_reading() => FileStep::Done(wrong_method(ask)),
            _ => FileStep::Done(plain::error(404)),
        },
        Fetched::Failed { is_lack } => {
            let mut record = ask.request.record_mut();
            record.fault = Fault::Server;
            record.reason = Some("the file could not be read");
            FileStep::Done(plain::failed(is_lack))
        }
    }
}

/// The name behind the one at this place that is looked for. Folders have none.
fn next_try(settings: &FilesSettings, path: &[u8], at: usize) -> Option<Vec<u8>> {
    let endings = &settings.try_endings;
    let ending = endings.get(at)?;
    let before = at.checked_sub(1).map_or(0, |before| endings[before].len());
    let asked = &path[..path.len() - before];
    let is_file = !asked.is_empty() && !asked.ends_with(b"/");
    is_file.then(|| [asked, ending.as_bytes()].concat())
}

/// Does what has to wait, step by step.
async fn finish_later(kept: LaterAsk, mut step: FileStep) -> Response {
    let mut ask = kept.ask();
    loop {
        step = match step {
            FileStep::Done(response) => return response,
            FileStep::Fetch(wanted) | FileStep::Try(wanted) => {
                match fetch(&ask, &wanted.path).await {
                    Some(found) => settle(&ask, wanted.place(), found),
                    None => return no_room(&ask),
                }
            }
            FileStep::FallBack(wanted) => {
                ask.files = kept.files.fallback.as_ref().unwrap_or(&kept.files);
                match fetch(&ask, &wanted).await {
                    Some(Fetched::Missing) => return plain::error(404),
                    Some(found) => settle(&ask, (&wanted, 0, false), found),
                    None => return no_room(&ask),
                }
            }
            FileStep::Make(view, coding) => {
                let coding = make(&ask, &view, coding).await;
                let pool = &ask.files.pool;
                return respond::respond(ask.files, &view, coding, ask.request, pool);
            }
            FileStep::List(wanted) => return list(&ask, wanted).await,
        };
    }
}

fn wrong_method(ask: &FileRequest<'_>) -> Response {
    match ask.request.head().method() {
        b"OPTIONS" => plain::options(plain::READING),
        method => plain::wrong_method(method, plain::READING),
    }
}

fn no_room(ask: &FileRequest<'_>) -> Response {
    pool_is_full(ask.counters, ask.request)
}

/// The answer where the file pool has no room.
pub(in crate::handle) fn pool_is_full(counters: &ThreadCounters, request: &Request) -> Response {
    counters.disk_refused.add(1);
    counters.limit_disk_queue.add(1);
    let mut record = request.record_mut();
    record.fault = Fault::Server;
    record.reason = Some("limits: the file pool's queue is full");
    plain::busy()
}

/// Has the pool look at a path; requests for the same path wait for one look together. `None` when
/// the pool has no room.
async fn fetch(ask: &FileRequest<'_>, path: &[u8]) -> Option<Fetched> {
    let mut key = Vec::new();
    write_key(ask.files.id, path, &mut key);
    let key: Key = key.into();
    let (files, shared) = (Arc::clone(ask.files), Arc::clone(ask.shared));
    let (wanted, now_ms, job_key): (Box<[u8]>, _, _) = (path.into(), ask.now_ms, key.clone());
    let waiting = ask.shared.flights.join(&ask.files.pool, key, move || {
        let loaded = load::load(&files, &job_key, &wanted, shared.moment(now_ms), May::Wait);
        let found = fetched(loaded, &files);
        if let Fetched::File(entry) = &found {
            keep(&files, &shared, entry);
        }
        found
    });
    timed(ask, waiting.ok()?).await
}

/// Awaits the pool and notes how long that took.
async fn timed<T>(ask: &FileRequest<'_>, waiting: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let answer = waiting.await;
    ask.request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
    answer
}

/// Has the pool compress the file and keep the copy, also when the client leaves meanwhile. Gives
/// the coding that can be sent now.
async fn make(ask: &FileRequest<'_>, view: &Rc<CachedFileView>, coding: Coding) -> Option<Coding> {
    let (entry, shared) = (Arc::clone(&view.entry), Arc::clone(ask.shared));
    let job = ask.files.pool.run(move || {
        let made = compressed(&entry, coding);
        let fits = |made: &Representation| shared.store.has_room_for(&entry, made.len);
        let Some(made) = made.filter(fits) else {
            entry.gave_up_making(coding);
            return false;
        };
        let grown = entry.keep_made(made);
        shared.store.grew(&entry, grown);
        true
    });
    let Ok(job) = job else {
        ask.counters.disk_refused.add(1);
        view.entry.may_be_made_later(coding);
        return None;
    };
    timed(ask, job).await?.then_some(coding)
}

/// Has the pool copy a file into memory that is asked for again and again where its bytes must go
/// through our memory anyway: they are read once then, and not for each answer.
fn copy_if_hot(ask: &FileRequest<'_>, entry: &Arc<CachedFile>, coding: Option<Coding>) {
    let one = entry.representation(coding);
    let Some(file) = &one.file else { return };
    let is_worth_it = one.len <= ask.shared.copy_bytes_max() && entry.is_settled && entry.is_hot();
    if !is_worth_it || entry.is_retired() || !file.begin_copying() {
        return;
    }
    if !ask.shared.store.has_room_for(entry, one.len) {
        // Begun, and never ended: it is not tried again.
        return;
    }
    let (entry, file, shared) = (Arc::clone(entry), Arc::clone(file), Arc::clone(ask.shared));
    let job = ask.files.pool.run(move || match whole_file(&file) {
        Some(bytes) => {
            let grown = entry.keep_copy(&file, bytes);
            shared.store.grew(&entry, grown);
        }
        None => file.may_be_copied_later(),
    });
    if job.is_err() {
        ask.counters.disk_refused.add(1);
        if let Some(file) = &one.file {
            file.may_be_copied_later();
        }
    }
}

/// The file in a coding; `None` when that is not smaller, or the file does not stand still.
fn compressed(entry: &CachedFile, coding: Coding) -> Option<Representation> {
    let identity = entry.identity();
    let content = match (&identity.content, &identity.file) {
        (Some(content), _) => content.clone(),
        (None, Some(file)) => whole_file(file)?,
        (None, None) => return None,
    };
    let tag = load::coded_tag(&identity.entity_tag, Some(coding));
    respond::made(&content, coding, (identity.stamp, tag))
        .ok()
        .flatten()
}

/// The bytes of an open file, when they are still those of the state it was found in.
fn whole_file(file: &OpenFile) -> Option<bytes::Bytes> {
    let mut bytes = vec![0; usize::try_from(file.stamp.size).ok()?];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], filled as u64) {
            Ok(count) if count > 0 => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            _ => return None,
        }
    }
    file.keeps_its_bytes().then(|| bytes.into())
}

/// The folder's listing, as a page or as JSON. The pool writes it too: a large one takes a while.
async fn list(ask: &FileRequest<'_>, path: Box<[u8]>) -> Response {
    let head = ask.request.head();
    let sort = Sort::from_query(head.query());
    let mut room = Vec::new();
    let raw = head.path();
    let normal = crate::route::target::normalise(raw, &mut room);
    let shown: Box<[u8]> = normal.map_or(raw, |normal| normal.path(raw, &room)).into();
    let accept = head.joined(Known::Accept);
    let form = negotiate::listing_form(accept.as_deref());
    let files = Arc::clone(ask.files);
    let job = ask.files.pool.run(move || {
        let contents = folder::read(&files, &path)?;
        Ok::<_, std::io::Error>(match form {
            ListingForm::Json => listing::json(contents, sort),
            ListingForm::Html => listing::html(&shown, contents, sort),
        })
    });
    let Ok(job) = job else { return no_room(ask) };
    let Some(Ok(body)) = timed(ask, job).await else {
        return plain::error(403);
    };
    let mut fields = plain::named();
    fields.add(b"Vary", b"Accept");
    match form {
        ListingForm::Json => fields.add(b"Content-Type", b"application/json"),
        ListingForm::Html => {
            fields.add(
                b"Content-Security-Policy",
                html::CONTENT_SECURITY_POLICY.as_bytes(),
            );
            fields.add(b"Content-Type", html::CONTENT_TYPE.as_bytes())
        }
    };
    Response::new(200, fields, Body::Bytes(body.into()))
}
