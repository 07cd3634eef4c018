//! `hob page run`: runs a block of a page and prints it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use hob_page::fault::PageFaultKind;
use hob_page::host::{Host, PageHead, Sink, SinkGone};
use hob_page::request::{PageRequest, is_for_clients};
use hob_page::run::{PageSettings, run as run_page};
use hob_page::sql_page::SqlPage;
use hob_page::tree::Page;

use crate::CommandFailure;
use crate::args::{PageRunOptions, Surroundings};
use crate::{escape, output};

use super::folder::PageFolders;
use super::host::{Terminal, flat_files};
use super::programs::TerminalPrograms;
use super::told::RunTold;
use super::{PageIni, database, failure, read, statements};

/// Runs the block.
pub(super) fn run(
    options: &PageRunOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let ini = PageIni::read(options.ini.as_deref())?;
    let name = options.file.to_string_lossy();
    let source = read(&options.file).map_err(|text| failure(1, text))?;
    if SqlPage::is_one(&source) {
        return statements::run(&name, &source, options, surroundings);
    }
    let page = Page::parse(&name, &source).map_err(|fault| failure(1, fault.to_string()))?;
    let page = Arc::new(page);
    let request = request(&page, options)?;
    let folders = PageFolders::of(&options.file, &ini).map_err(|text| failure(1, text))?;
    let database = database::open(options, &surroundings.environment)?;
    let (files, registries) = flat_files(options, &ini);
    let programs = TerminalPrograms::of(&options.programs)?;
    let settings = PageSettings {
        ini: ini.ini,
        ..PageSettings::default()
    };
    let environment = told_environment(&surroundings.environment);
    let terminal = Terminal::new();
    let host = Host {
        environment: &environment,
        sources: &folders,
        database: Some(&*database),
        programs: &programs,
        files: &files,
        registries: &registries,
        visits: &terminal,
        clock: &terminal,
    };
    answer(&page, &request, &settings, host, &terminal, options)
}

fn answer(
    page: &Arc<Page>,
    request: &PageRequest,
    settings: &PageSettings,
    host: Host<'_>,
    terminal: &Terminal,
    options: &PageRunOptions,
) -> Result<(), CommandFailure> {
    let mut printer = PagePrinter::new(options.trace);
    let mut told = RunTold::new(options.trace);
    let outcome = run_page(
        page,
        request,
        settings,
        None,
        host,
        &mut printer,
        Some(&mut told),
    );
    let outcome = match outcome {
        Ok(outcome) => outcome,
        // A reader that has left is no fault.
        Err(fault) if fault.kind == PageFaultKind::Gone => return Ok(()),
        Err(fault) => {
            printer.end();
            let text = fault.to_string();
            return Err(failure(1, escape::line(&text)));
        }
    };
    printer.end();
    if !outcome.has_block {
        let text = format!("there is no block {:?} in {}", request.block, page.file());
        return Err(failure(2, format!("{text}; {}", blocks(page))));
    }
    if terminal.lasts() {
        eprintln!(
            "hob: the page waits for another request of its visit, which ends here: what it wrote \
             since its last commit is undone"
        );
    }
    match told.has_failed {
        true => Err(failure(1, "")),
        false => Ok(()),
    }
}

/// The request that the command line stands for.
fn request(page: &Page, options: &PageRunOptions) -> Result<PageRequest, CommandFailure> {
    let mut words: Vec<&str> = options.fields.iter().map(String::as_str).collect();
    let block = match &options.block {
        Some(word) if word.contains('=') => {
            words.insert(0, word);
            None
        }
        block => block.as_deref(),
    };
    let block = match (block, &page.entries()[..]) {
        (Some(block), _) => block,
        (None, [only]) => only,
        (None, _) => return Err(failure(2, format!("say which block; {}", blocks(page)))),
    };
    Ok(PageRequest {
        block: block.to_owned(),
        fields: fields(&words, page.file(), options.trace)?,
        ..PageRequest::default()
    })
}

/// The environment that a run is told of: the command's own, with what a server always says.
fn told_environment(own: &[(OsString, OsString)]) -> Vec<(String, Vec<u8>)> {
    let mut told: Vec<(String, Vec<u8>)> = own
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.as_bytes().to_vec())))
        .collect();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("REQUEST_METHOD", "GET"),
        ("SERVER_NAME", "localhost"),
        ("SERVER_SOFTWARE", "hob"),
    ] {
        if told.iter().all(|(known, _)| known != name) {
            told.push((name.to_owned(), value.into()));
        }
    }
    told
}

/// Fields of the request, and what is told of them.
pub(super) fn fields(
    words: &[&str],
    file: &str,
    is_told: bool,
) -> Result<Vec<(String, Vec<u8>)>, CommandFailure> {
    let mut fields = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(failure(2, format!("{word}: write NAME=VALUE")));
        };
        if !is_for_clients(name) {
            eprintln!("hob: {name} is not a client's to set, and is left out");
            continue;
        }
        if is_told {
            let text = format!("{file}: {name} = {value:?}  (data of the client)");
            eprintln!("{}", escape::line(&text));
        }
        fields.push((name.to_owned(), value.into()));
    }
    Ok(fields)
}

/// Which blocks there are.
fn blocks(page: &Page) -> String {
    match page.entries().join(", ") {
        blocks if blocks.is_empty() => "there is none outside of %IF and included files".to_owned(),
        blocks => format!("there are: {blocks}"),
    }
}

/// Writes the page to standard output. Where that is a terminal, nothing in the page steers it.
pub(super) struct PagePrinter {
    is_terminal: bool,
    /// Tell of what goes into the head of the answer.
    is_told: bool,
    /// The begin of a character whose end is still to come.
    cut: Vec<u8>,
}

impl PagePrinter {
    pub(super) fn new(is_told: bool) -> PagePrinter {
        PagePrinter {
            is_terminal: output::is_terminal(),
            is_told,
            cut: Vec::new(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !self.is_terminal {
            return out.write_all(bytes);
        }
        self.cut.extend_from_slice(bytes);
        let whole = match str::from_utf8(&self.cut) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.cut.len(),
        };
        let rest = self.cut.split_off(whole);
        let text = String::from_utf8_lossy(&self.cut).replace("\r\n", "\n");
        let lines: Vec<_> = text.split('\t').map(escape::lines).collect();
        self.cut = rest;
        out.write_all(lines.join("\t").as_bytes())
    }

    /// The last line ends, and the shell's next one begins.
    pub(super) fn end(&mut self) {
        let mut out = io::stdout().lock();
        if self.is_terminal {
            let _ = out.write_all(b"\n");
        }
        let _ = out.flush();
    }
}

impl Sink for PagePrinter {
    fn begin(&mut self, head: &PageHead) -> Result<(), SinkGone> {
        if self.is_told {
            for cookie in &head.cookies {
                eprintln!("{}", escape::line(&format!("Set-Cookie: {cookie}")));
            }
        }
        Ok(())
    }

    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), SinkGone> {
        let written = self.write(bytes);
        bytes.clear();
        written.map_err(|_| SinkGone)
    }
}
