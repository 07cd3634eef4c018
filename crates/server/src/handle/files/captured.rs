//! Files whose root a request's path or host decides: one [`Files`] for each, made when it is first
//! asked for. All that comes behind it is as with any other root.

use std::io;
use std::sync::Arc;

use hob_http::{Answered, Request, Response};
use hob_trace::Fault;

use crate::handle::config;
use crate::handle::files::Files;
use crate::handle::files::find::{self, FileRequest, Others};
use crate::handle::files::open::Root;
use crate::handle::plain;
use crate::handle::script::fail::note;
use crate::serve::ServerState;
use crate::serve::captured::{Captured, NameLookup};
use crate::serve::context::OnRoute;
use hob_keeper::process::is_lack;

/// What came of opening a root.
pub(in crate::handle) enum Opened<T> {
    /// It is there; and how many others were closed for it.
    Open(Arc<T>, u64),
    /// Nothing is (404).
    Missing,
    /// The server may not enter it (403).
    Forbidden,
    /// The system failed (500), or something is used up (503).
    Failed(io::Error),
}

impl Files {
    /// A file below the root that the request gives.
    pub(super) fn answer_from(
        self: &Arc<Files>,
        captured: &Arc<Captured<Files>>,
        on: &OnRoute<'_>,
    ) -> Answered {
        let Ok(name) = on.captured().name(&captured.template) else {
            return Answered::Ready(self.no_root());
        };
        let (desk, now_ms) = (on.desk, on.desk.now_ms.get());
        match captured.find(&name, now_ms, desk.shared.recheck_ms()) {
            NameLookup::Open(files) if !files.root.is_gone() => return files.answer_from_root(on),
            NameLookup::Open(files) => captured.forget(&name, &files),
            NameLookup::Missing => return Answered::Ready(self.no_root()),
            NameLookup::Unknown => {}
        }
        let (files, shared) = (Arc::clone(self), Arc::clone(&desk.shared));
        let (wanted, roots) = (name.clone(), Arc::clone(captured));
        let opening = self
            .pool
            .run(move || files.open_root(&roots, &wanted, &shared, now_ms));
        let (files, request) = (Arc::clone(self), on.request.clone());
        let (counters, roots) = (Arc::clone(&desk.counters), Arc::clone(captured));
        let opening = async move {
            let Ok(opening) = opening else {
                return Err(find::pool_is_full(&counters, &request));
            };
            match opening.await {
                Some(Opened::Open(files, closed)) => {
                    counters.limit_roots.add(closed);
                    Ok(files)
                }
                Some(Opened::Missing) => Err(files.no_root()),
                Some(other) => Err(refuse_root(&request, &other, &roots, &name)),
                None => Err(plain::error(500)),
            }
        };
        let (others, below) = Others::on(self, (on.site, on.route), on.path, on.below);
        let ask = FileRequest {
            files: self,
            request: on.request,
            shared: &desk.shared,
            counters: &desk.counters,
            now_ms,
            others,
            slashes: on.site.slashes.as_ref(),
        };
        let path = on.path.get(below..).unwrap_or_default();
        find::answer_later(&ask, path, opening)
    }

    /// The answer where no root is.
    pub(super) fn no_root(&self) -> Response {
        match self.settings.try_next {
            true => find::next_route(),
            false => plain::error(404),
        }
    }

    /// Opens the root of a name and keeps it. May wait for a disk.
    pub(super) fn open_root(
        &self,
        captured: &Captured<Files>,
        name: &[u8],
        shared: &ServerState,
        now_ms: u64,
    ) -> Opened<Files> {
        open(captured, name, now_ms, self.settings.symlinks, |root| {
            let fallback = self.fallback.as_deref();
            let fallback = fallback.map(|fallback| Arc::new(fallback.at(&root, None, shared)));
            self.at(&root, fallback, shared)
        })
    }

    /// The same files at another root.
    fn at(&self, root: &Arc<Root>, fallback: Option<Arc<Files>>, shared: &ServerState) -> Files {
        Files {
            id: shared.new_handler_id(),
            settings: config::Files {
                root: root.path().to_owned(),
                captured: None,
                ..self.settings.clone()
            },
            types: self.types.clone(),
            kinds: Arc::clone(&self.kinds),
            root: Arc::clone(root),
            pool: self.pool.clone(),
            headers: self.headers.clone(),
            fallback,
            captured: None,
        }
    }
}

/// Opens the root of a name and keeps what is made of it. May wait for a disk.
pub(in crate::handle) fn open<T>(
    captured: &Captured<T>,
    name: &[u8],
    now_ms: u64,
    symlinks: config::Symlinks,
    make: impl FnOnce(Arc<Root>) -> T,
) -> Opened<T> {
    // The fixed folder may be another one by now; where it is gone, so is all below it.
    let may = crate::handle::files::open::May::Wait;
    let _ = captured.fixed.refresh(now_ms, 0, may);
    match captured.fixed.open_below(name, symlinks) {
        Ok(root) => {
            let (open, closed) = captured.keep(name, Arc::new(make(Arc::new(root))));
            Opened::Open(open, closed)
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Opened::Forbidden,
            // A link on the way to it, or one that leads out, is not told apart from nothing.
            Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EXDEV | libc::ENAMETOOLONG) => {
                captured.keep_missing(name, now_ms);
                Opened::Missing
            }
            _ => Opened::Failed(error),
        },
    }
}

/// The answer for a root that is there and cannot be used.
pub(in crate::handle) fn refuse_root<T>(
    request: &Request,
    opened: &Opened<T>,
    captured: &Captured<T>,
    name: &[u8],
) -> Response {
    let path = captured.template.whole(name);
    request.set_detail(path.as_os_str().as_encoded_bytes());
    match opened {
        Opened::Failed(error) => {
            hob_trace::warn_seldom!(root = %path.display(), %error, "a root could not be opened");
            note(request, Fault::Server, "the root could not be opened");
            plain::failed(error.raw_os_error().is_some_and(is_lack))
        }
        _ => {
            let reason = "the server's user may not enter the root; `chmod o+x` the folders to it";
            note(request, Fault::Server, reason);
            plain::error(403)
        }
    }
}
