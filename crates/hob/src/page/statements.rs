//! `hob page run` of a page of statements: a file of SQL whose first line says that it is a page.

use std::os::unix::ffi::OsStrExt;

use hob_page::fault::PageFaultKind;
use hob_page::limits::PageLimits;
use hob_page::sql_page::{SqlPage, SqlPageEnd, SqlPageRequest, run as run_page};
use hob_server::step::negotiate::sql_page_format;

use crate::args::{PageRunOptions, Surroundings};
use crate::{CommandFailure, escape};

use super::host::Terminal;
use super::run::{PagePrinter, fields};
use super::told::RunTold;
use super::{database, failure};

/// Runs all its statements. Without `REQUEST_METHOD=POST` they only read, as on a server.
pub(super) fn run(
    name: &str,
    source: &[u8],
    options: &PageRunOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let page = SqlPage::parse(name, source).map_err(|fault| failure(1, fault.to_string()))?;
    let words = options.block.iter().chain(&options.fields);
    let words: Vec<&str> = words.map(String::as_str).collect();
    let fields = fields(&words, name, options.trace)?;
    let variable = |wanted: &str| {
        let mut variables = surroundings.environment.iter();
        let found = variables.find(|(name, _)| name == wanted);
        found.map_or(&b""[..], |(_, value)| value.as_bytes())
    };
    let database = database::open(options, &surroundings.environment)?;
    if variable("REQUEST_METHOD") != b"POST" {
        database
            .read_only()
            .map_err(|fault| failure(1, fault.message))?;
    }
    let request = SqlPageRequest {
        fields: &fields,
        query: b"",
        format: sql_page_format(Some(variable("HTTP_ACCEPT"))),
        style: "",
        limits: &PageLimits::default(),
    };
    let terminal = Terminal::new();
    let mut printer = PagePrinter::new(options.trace);
    let mut told = RunTold::new(options.trace);
    let trace = Some(&mut told as _);
    let ended = run_page(&page, request, &*database, &terminal, &mut printer, trace);
    printer.end();
    match ended {
        Ok(SqlPageEnd::Done(_)) => Ok(()),
        Ok(SqlPageEnd::Writes) => {
            let text = "it writes, and a GET only reads: REQUEST_METHOD=POST before the command";
            Err(failure(1, format!("{name}: {text}")))
        }
        // A reader that has left is no fault.
        Err(fault) if fault.kind == PageFaultKind::Gone => Ok(()),
        Err(fault) => Err(failure(1, escape::line(&fault.to_string()))),
    }
}
