//! What runs for a request: the program, its arguments, where it works, what it is told. Nothing is
//! started here.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

use hob_http::{Request, Response};
use hob_trace::Fault;

use crate::handle::cgi::fail::{self, CgiFailure};
use crate::handle::cgi::find::{FoundProgram, Interpreter, ProgramFolder, ProgramLookup};
use crate::handle::cgi::{Cgi, RouteProgram, Runs, arguments};
use crate::handle::config::program::is_of_parameter;
use crate::handle::plain;
use crate::handle::script::call::{self, ProgramCall};
use crate::handle::script::variables::{self, ProgramRequest};
use crate::route::target::{PathDisplay, rest_as_sent, told};
use hob_keeper::process::{HasNul, Strings};

/// Why what a link names is not run.
const LEADS_OUT: &str = "a symbolic link leads out of the folder of programs; name the folder it \
                         leads into in `symlinks_to`";

/// A program that is to run for a request.
pub(crate) struct ProgramJob {
    /// What is executed: the program, or its interpreter.
    pub(crate) path: Vec<u8>,
    /// The program's file.
    pub(crate) file: Vec<u8>,
    /// Where it works.
    pub(crate) dir: Vec<u8>,
    /// Its arguments, its name first.
    pub(crate) arguments: Strings,
    /// What it is.
    pub(crate) kind: JobKind,
    /// What it is told is the site's root, where that is not the same for all.
    pub(crate) document_root: Option<Vec<u8>>,
}

/// What runs.
pub(crate) enum JobKind {
    /// A CGI program, and the parts of the path.
    Program {
        /// What names it.
        name: Vec<u8>,
        /// What follows.
        path_info: Vec<u8>,
    },
    /// A command, and the media type of what it prints.
    Command(String),
}

/// Who asks for a program.
#[derive(Clone, Copy)]
pub(crate) struct AskedJob<'a> {
    pub(crate) request: &'a Request,
    /// A page does, and not the client.
    pub(crate) call: Option<&'a ProgramCall>,
}

impl AskedJob<'_> {
    /// What follows a program in the path, from there on.
    fn path_info<'p>(&self, path: &'p [u8], named: usize) -> Cow<'p, [u8]> {
        told(match self.call {
            Some(_) => path[named..].into(),
            None => rest_as_sent(self.request.head().path(), path, named),
        })
    }

    /// The words behind the program's name.
    fn words(&self) -> Vec<Vec<u8>> {
        match (self.call, self.request.head().method()) {
            (Some(call), _) => call.arguments.clone(),
            (None, b"GET" | b"HEAD") => {
                arguments::of_query(self.request.query().unwrap_or_default())
            }
            (None, _) => Vec::new(),
        }
    }
}

impl Cgi {
    /// What is to run for a request, once it is known what its path means: `found` is that for a
    /// folder of programs, and nothing for others. The error is the answer.
    pub(crate) fn job(
        &self,
        asked: AskedJob<'_>,
        found: Option<ProgramLookup>,
        path: &[u8],
        below: usize,
    ) -> Result<ProgramJob, Box<Response>> {
        match (&self.runs, found) {
            (Runs::Folder(folder), Some(found)) => self.settle(asked, folder, found, path, below),
            (Runs::Folder(_) | Runs::Captured(_), _) => Err(Box::new(plain::error(404))),
            (Runs::Script(script), _) => self.script(asked, script, path, below),
            (Runs::Command(_), _) => self.command(asked.request),
        }
    }

    pub(super) fn settle(
        &self,
        asked: AskedJob<'_>,
        folder: &ProgramFolder,
        found: ProgramLookup,
        path: &[u8],
        below: usize,
    ) -> Result<ProgramJob, Box<Response>> {
        let request = asked.request;
        match found {
            ProgramLookup::Program(place) => self.program(asked, folder, &place, path, below),
            ProgramLookup::FolderWithoutSlash => Err(Box::new(plain::add_slash(request))),
            ProgramLookup::Missing => Err(Box::new(plain::error(404))),
            ProgramLookup::Outside(target) => {
                request.record_mut().reason = Some(LEADS_OUT);
                request.set_detail(&target);
                Err(Box::new(plain::error(404)))
            }
            ProgramLookup::Refused(reason) => {
                Err(self.refuse_path(request, path, &CgiFailure::Refused(reason)))
            }
            ProgramLookup::Failed { error, is_lack } => {
                let path = PathDisplay(path);
                hob_trace::warn_seldom!(%path, %error, "a program could not be looked for");
                let mut record = request.record_mut();
                record.fault = Fault::Server;
                record.reason = Some("the program could not be looked for");
                Err(Box::new(plain::failed(is_lack)))
            }
        }
    }

    fn program(
        &self,
        asked: AskedJob<'_>,
        folder: &ProgramFolder,
        place: &FoundProgram,
        path: &[u8],
        below: usize,
    ) -> Result<ProgramJob, Box<Response>> {
        let name = told([&path[..below], &place.path].concat().into());
        let named = below + place.named_bytes;
        let path_info = asked.path_info(path, named);
        let interpreter = place.interpreter.map(|index| &folder.interpreters[index]);
        // One that is kept has started already.
        let interpreter = interpreter.filter(|_| self.warm.is_none());
        let parts = (name.into_owned(), path_info.into_owned());
        let root = folder.root.path().as_os_str().as_bytes();
        ProgramJob::program(asked, folder.file(place), interpreter, parts)
            .map(|job| ProgramJob {
                document_root: folder.is_captured.then(|| root.to_vec()),
                ..job
            })
            .map_err(|_| self.refuse_path(asked.request, path, &CgiFailure::Unpassable))
    }

    fn script(
        &self,
        asked: AskedJob<'_>,
        script: &RouteProgram,
        path: &[u8],
        below: usize,
    ) -> Result<ProgramJob, Box<Response>> {
        let split = match script.splits_path {
            // The slash before the rest belongs to it.
            true => below.saturating_sub(1),
            false => path.len(),
        };
        let name = told(path[..split].into());
        let path_info = asked.path_info(path, split);
        let parts = (name.into_owned(), path_info.into_owned());
        let interpreter = script.interpreter.as_ref().filter(|_| self.warm.is_none());
        ProgramJob::program(asked, script.file.clone(), interpreter, parts)
            .map_err(|_| self.refuse_path(asked.request, path, &CgiFailure::Unpassable))
    }

    fn command(&self, request: &Request) -> Result<ProgramJob, Box<Response>> {
        let Runs::Command(command) = &self.runs else {
            return Err(Box::new(plain::error(500)));
        };
        let query = request.query().unwrap_or_default();
        let words = command.arguments(query).map_err(|(misfit, name)| {
            let mut record = request.record_mut();
            record.fault = Fault::Client;
            record.reason = Some(misfit.reason());
            request.set_detail(name.as_bytes());
            Box::new(plain::error(400))
        })?;
        let mut arguments = Strings::new();
        for word in words {
            let pushed = arguments.push(&word);
            pushed.map_err(|_| self.refuse(request, &command.program, &CgiFailure::Unpassable))?;
        }
        Ok(ProgramJob {
            path: command.program.clone(),
            file: command.program.clone(),
            dir: command.dir.clone(),
            arguments,
            kind: JobKind::Command(command.output.clone()),
            document_root: None,
        })
    }

    /// `path` is the request's, in normal form.
    fn refuse_path(&self, request: &Request, path: &[u8], failure: &CgiFailure) -> Box<Response> {
        self.refuse(request, PathDisplay(path).to_string().as_bytes(), failure)
    }

    fn refuse(&self, request: &Request, file: &[u8], failure: &CgiFailure) -> Box<Response> {
        Box::new(fail::respond(self, request, file, failure, b""))
    }
}

impl ProgramJob {
    /// A CGI program. `interpreter` runs it when it cannot run by itself; the parts of the path are
    /// what names it, and what follows.
    fn program(
        asked: AskedJob<'_>,
        file: Vec<u8>,
        interpreter: Option<&Interpreter>,
        (name, path_info): (Vec<u8>, Vec<u8>),
    ) -> Result<ProgramJob, HasNul> {
        let mut words = Strings::new();
        let mut path = None;
        for word in interpreter
            .iter()
            .flat_map(|interpreter| &interpreter.words)
        {
            path.get_or_insert_with(|| word.clone());
            words.push(word)?;
        }
        words.push(&file)?;
        for word in asked.words() {
            words.push(&word)?;
        }
        Ok(ProgramJob {
            path: path.unwrap_or_else(|| file.clone()),
            dir: folder_of(&file).to_vec(),
            file,
            arguments: words,
            kind: JobKind::Program { name, path_info },
            document_root: None,
        })
    }

    /// The environment, for a request with a body of so many bytes; what every run has is in it for
    /// scripts that are forked, and the spawner's to add for others.
    pub(super) fn environment(
        &self,
        cgi: &Cgi,
        AskedJob { request, call }: AskedJob<'_>,
        body_bytes: u64,
    ) -> Result<Strings, HasNul> {
        let mut environment = match cgi.warm {
            Some(_) => cgi.environment.clone(),
            None => Strings::new(),
        };
        let JobKind::Program { name, path_info } = &self.kind else {
            return Ok(environment);
        };
        let told = ProgramRequest {
            request,
            body_bytes: Some(body_bytes),
            script: variables::ScriptLocation {
                name,
                path_info,
                file: &self.file,
                document_root: self.document_root.as_ref().unwrap_or(&cgi.document_root),
            },
            passes_authorization: cgi.settings.pass_authorization,
            may_tunnel: false,
        };
        let mut outcome = Ok(());
        let mut add = |name: &[u8], value: &[u8]| {
            // What the config sets stays: programs find either the first or the last of two.
            if outcome.is_ok() && !cgi.sets(name) {
                outcome = environment.push_pair(name, value);
            }
        };
        variables::each(&told, &mut add);
        if let Some(call) = call {
            add(call::PIPE, call::PIPE_PLACE);
            for (name, value) in &call.values {
                add(format!("{}{name}", call::PREFIX).as_bytes(), value);
                let mut own = cgi.settings.values.iter();
                if own.any(|known| is_of_parameter(name.as_bytes(), known)) {
                    add(name.as_bytes(), value);
                }
            }
        }
        outcome.map(|()| environment)
    }
}

fn folder_of(file: &[u8]) -> &[u8] {
    match memchr::memrchr(b'/', file) {
        None | Some(0) => b"/",
        Some(slash) => &file[..slash],
    }
}
