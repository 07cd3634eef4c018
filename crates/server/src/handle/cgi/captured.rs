//! Programs in a folder of which each account or host has another one, by a request's path or host.
//! Who they run as is the spawner's to find out and to check.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hob_config::AccountRule;
use hob_http::{Answered, Response};

use crate::cache::disk_threads::DiskThreads;
use crate::explain::{Explanation, OnExplained};
use crate::handle::cgi::Cgi;
use crate::handle::cgi::answer::{CgiRequest, begin, run};
use crate::handle::cgi::find::{Allowed, Interpreter, ProgramFolder, ProgramLookup};
use crate::handle::cgi::job::{AskedJob, ProgramJob};
use crate::handle::config::Symlinks;
use crate::handle::files::captured::{Opened, open, refuse_root};
use crate::handle::files::find::pool_is_full;
use crate::handle::files::open::{May, Root};
use crate::handle::plain;
use crate::serve::captured::{Captured, NameLookup};
use crate::serve::context::OnRoute;

/// Folders of programs, one for each account or host.
pub struct CapturedPrograms {
    /// Those that are open.
    pub folders: Captured<ProgramFolder>,
    /// Threads that may wait for the disk of them all.
    pub pool: DiskThreads,
    /// Programs that answer for a folder.
    pub index: Vec<String>,
    /// Who runs files that cannot run by themselves.
    pub interpreters: Vec<Interpreter>,
    /// Who they run as, where that is the account whose folder they are in.
    pub account: Option<AccountRule>,
}

impl CapturedPrograms {
    /// Where they are, for people.
    pub fn shown(&self) -> String {
        self.folders.template.to_string()
    }

    /// Answers a request.
    pub(super) fn answer(self: &Arc<Self>, ask: CgiRequest, on: &OnRoute<'_>) -> Answered {
        if let Some(refusal) = begin(&ask) {
            return Answered::Ready(refusal);
        }
        let Ok(name) = on.captured().name(&self.folders.template) else {
            return Answered::Ready(plain::error(404));
        };
        let (now_ms, recheck_ms) = (ask.now_ms, ask.shared.recheck_ms());
        match self.folders.find(&name, now_ms, recheck_ms) {
            NameLookup::Missing => return Answered::Ready(plain::error(404)),
            NameLookup::Open(folder) if !folder.root.is_gone() => {
                let wanted = &on.path[on.below..];
                let found = folder.find(wanted, now_ms, recheck_ms / 2, May::TouchMemoryOnly);
                if let Some(found) = found {
                    let asked = ask.asked();
                    let job = ask.cgi.settle(asked, &folder, found, on.path, on.below);
                    return match job {
                        Ok(job) => Answered::Later(Box::pin(run(ask, job))),
                        Err(response) => Answered::Ready(*response),
                    };
                }
            }
            NameLookup::Open(folder) => self.folders.forget(&name, &folder),
            NameLookup::Unknown => {}
        }
        let (programs, place) = (Arc::clone(self), (on.path.into(), on.below));
        Answered::Later(Box::pin(programs.find_and_run(ask, name, place)))
    }

    /// The pool looks what the path means, in a folder that it may have to open first; then the
    /// program runs.
    async fn find_and_run(
        self: Arc<Self>,
        ask: CgiRequest,
        name: Vec<u8>,
        (path, below): (Box<[u8]>, usize),
    ) -> Response {
        let started = Instant::now();
        let (programs, wanted): (_, Box<[u8]>) = (Arc::clone(&self), path[below..].into());
        let (of, now_ms, age_ms) = (name.clone(), ask.now_ms, ask.shared.recheck_ms() / 2);
        let job = self.pool.run(move || {
            let opened = programs.open(&of, now_ms);
            let found = match &opened {
                Opened::Open(folder, _) => folder.find(&wanted, now_ms, age_ms, May::Wait),
                _ => None,
            };
            (opened, found)
        });
        let Ok(job) = job else {
            return pool_is_full(&ask.counters, &ask.request);
        };
        let looked = job.await;
        ask.request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
        let (folder, found) = match looked {
            Some((Opened::Open(folder, closed), found)) => {
                ask.counters.limit_roots.add(closed);
                (folder, found.unwrap_or(ProgramLookup::Missing))
            }
            Some((Opened::Missing, _)) => return plain::error(404),
            Some((other, _)) => return refuse_root(&ask.request, &other, &self.folders, &name),
            None => return plain::error(500),
        };
        match ask.cgi.settle(ask.asked(), &folder, found, &path, below) {
            Ok(job) => run(ask, job).await,
            Err(response) => *response,
        }
    }

    /// The folder of a name. May wait for a disk.
    fn open(&self, name: &[u8], now_ms: u64) -> Opened<ProgramFolder> {
        if let NameLookup::Open(folder) = self.folders.find(name, now_ms, 0)
            && !folder.root.is_gone()
        {
            return Opened::Open(folder, 0);
        }
        // A program that a link leads to is somebody else's, perhaps.
        open(&self.folders, name, now_ms, Symlinks::Refuse, |root| {
            self.folder(root)
        })
    }

    /// Whose folder it is.
    fn account_of(&self, dir: &Path) -> Option<String> {
        let rule = self.account.as_ref()?;
        let capture = rule.name.capture.as_deref()?;
        let value = self.folders.template.value_of(capture, dir)?;
        Some(String::from_utf8_lossy(&rule.name.filled(value)).into_owned())
    }

    fn folder(&self, root: Arc<Root>) -> ProgramFolder {
        ProgramFolder {
            places: vec![Allowed::of(root.path())],
            root,
            pool: self.pool.clone(),
            index: self.index.clone(),
            interpreters: self.interpreters.clone(),
            is_captured: true,
        }
    }

    /// What would run for a request. May wait for a disk.
    pub(super) fn explain(
        &self,
        cgi: &Cgi,
        asked: AskedJob<'_>,
        on: &OnExplained<'_>,
        told: &mut Explanation,
    ) -> Result<ProgramJob, Box<Response>> {
        let missing = || Box::new(plain::error(404));
        let name = told.captured_name(on.captured(), &self.folders.template);
        let name = name.ok_or_else(missing)?;
        let dir = self.folders.template.whole(&name);
        let shown = dir.display();
        match self.open(&name, 0) {
            Opened::Open(folder, _) => {
                told.note(format!("`dir` is {shown} here"));
                if let Some(account) = self.account_of(&dir) {
                    told.note(format!("`user` is {account} here"));
                }
                let found = folder.find(&on.path[on.below..], 0, 0, May::Wait);
                let found = found.unwrap_or(ProgramLookup::Missing);
                cgi.settle(asked, &folder, found, on.path, on.below)
            }
            Opened::Missing => {
                told.note(format!(
                    "`dir` is {shown} here, and there is no such folder, or a link leads there"
                ));
                Err(missing())
            }
            other => {
                told.note(format!("`dir` is {shown} here, which cannot be used"));
                let response = refuse_root(on.way.request, &other, &self.folders, &name);
                Err(Box::new(response))
            }
        }
    }
}
