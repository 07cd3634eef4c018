//! A call of a program for something in this server that waits for what comes of it: a page. There
//! is no answer to a client in it; arguments and values go in, output and values come back.
//!
//! ```text
//!  started, forked:  arguments, variables DTW_...  -->  output, exit code, values by DTWPIPE
//!  resident:         a GET with values as query    -->  body; an object in JSON is values
//! ```
//!
//! `DTWPIPE` names the program's descriptor 0: a pipe that is open for writing. Whatever started
//! or forked the program passes that one on anyway, and a program that is called so has no input.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Answered, Request};
use hob_trace::Fault;

use crate::handle::script::fail::note;
use crate::route::percent::{UrlPart, encode};
use crate::serve::context::{HandlerContext, OnRoute};
use crate::serve::sites::{ServedRoute, Sites};
use crate::step::collect::{Collected, collect};

/// What names of variables that are given begin with; the spawner passes them.
pub(crate) const PREFIX: &str = "DTW_";
/// The variable with the place that values are written to.
pub(crate) const PIPE: &[u8] = b"DTWPIPE";
/// That place: the program's own descriptor 0, opened again.
pub(crate) const PIPE_PLACE: &[u8] = b"/proc/self/fd/0";

/// What a program is called with, and what comes of it beside its output.
pub(crate) struct ProgramCall {
    /// What stands behind its name.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// Names and values that it is told.
    pub(crate) values: Vec<(String, Vec<u8>)>,
    /// Most bytes of its output, and as many of values that it sets.
    pub(crate) output_bytes_max: usize,
    pub(crate) came: RefCell<CameOfCall>,
}

/// What came of a call beside output.
#[derive(Default)]
pub(crate) struct CameOfCall {
    /// The exit code.
    pub(crate) code: i32,
    /// What it wrote to set values.
    pub(crate) values: Vec<u8>,
}

/// What came of a call.
pub(crate) enum CallEnd {
    /// It ran to its end.
    Ran {
        output: Vec<u8>,
        /// Its exit code, or the status of an answer that tells of a failure.
        code: i64,
        /// What it wrote to set values.
        values: Vec<u8>,
        /// The output is an object of JSON.
        is_json: bool,
    },
    /// It did not, and the record says why.
    Failed(String),
}

/// Where a program stands, and what is called.
pub(crate) struct CallPlace<'a> {
    /// Index of its site, and of its route there.
    pub(crate) at: (u32, u32),
    /// What follows the route's folder.
    pub(crate) rest: &'a [u8],
}

/// Calls a program. Dropped before it is ready, it ends the program.
pub(crate) async fn call(
    desk: &Rc<HandlerContext>,
    sites: &Arc<Sites>,
    request: &Request,
    place: CallPlace<'_>,
    call: ProgramCall,
) -> CallEnd {
    let Some((site, route)) = sites.route(place.at.0, place.at.1) else {
        return CallEnd::Failed("the program's route is not there".to_owned());
    };
    let Some(path) = path(route, place.rest) else {
        let path = &route.path;
        return CallEnd::Failed(format!(
            "the program's route {path:?} is one for other paths"
        ));
    };
    let below = route
        .pattern
        .matches(&path)
        .map_or(path.len(), |of| of.below());
    let call = Rc::new(call);
    let is_asked = route.handler.resident().is_some();
    if is_asked {
        request.call(&target(&path, &call));
    }
    let answered = route.handler.answer(&OnRoute {
        desk,
        sites,
        site,
        route,
        request,
        matched: &path,
        path: &path,
        below,
        call: Some(&call),
    });
    end(desk, request, answered, &call, is_asked).await
}

/// From an answer to what came of it.
async fn end(
    desk: &HandlerContext,
    request: &Request,
    answered: Answered,
    call: &ProgramCall,
    has_status: bool,
) -> CallEnd {
    let response = answered.wait().await;
    let status = response.status();
    if response.is_stand_in || status != 200 && !has_status {
        return CallEnd::Failed(told(request, status));
    }
    let media_type = response.fields().value(b"Content-Type").unwrap_or_default();
    let media_type = media_type.split(|&byte| byte == b';').next();
    let media_type = media_type.unwrap_or_default().trim_ascii();
    let is_json = media_type.eq_ignore_ascii_case(b"application/json");
    let output = match collect(response.body, call.output_bytes_max as u64).await {
        Ok(Collected::Whole(bytes)) => bytes.to_vec(),
        Ok(Collected::TooLarge(_)) => {
            desk.counters.limit_page_program_output.add(1);
            note(request, Fault::Script, TOO_LONG);
            return CallEnd::Failed(TOO_LONG.to_owned());
        }
        Err(error) => {
            note(request, Fault::Script, "the program's answer broke off");
            return CallEnd::Failed(error.to_string());
        }
    };
    let came = call.came.take();
    CallEnd::Ran {
        output,
        code: match status {
            ..400 => came.code.into(),
            failed => failed.into(),
        },
        values: came.values,
        is_json,
    }
}

/// Why a program is ended that has printed too much.
pub(crate) const TOO_LONG: &str =
    "limits: page.program_output: the program prints more than a page takes";

/// What the record has of a failure.
fn told(request: &Request, status: u16) -> String {
    let record = request.record();
    let reason = record.reason.unwrap_or("there is no program of this name");
    let detail = request.detail();
    match String::from_utf8_lossy(&detail) {
        detail if detail.is_empty() => format!("{reason} ({status})"),
        detail => format!("{reason}: {detail}"),
    }
}

/// The path by which a route is asked for what is behind its folder.
fn path(route: &ServedRoute, rest: &[u8]) -> Option<Vec<u8>> {
    if !route.path.starts_with(['/', '*']) {
        // What a regular expression is found in cannot be told from it.
        return None;
    }
    let fixed = route.path.find(['*', '{']).unwrap_or(route.path.len());
    let mut path = route.path.as_bytes()[..fixed].to_vec();
    path.extend_from_slice(rest);
    route.pattern.matches(&path).is_some().then_some(path)
}

/// What a resident program is asked for: its path, and the values as a query.
fn target(path: &[u8], call: &ProgramCall) -> Vec<u8> {
    let mut target = Vec::with_capacity(256);
    encode(path, UrlPart::Path, &mut target);
    let mut mark = b'?';
    let arguments = call.arguments.iter().map(|argument| (ARGUMENT, argument));
    let values = call.values.iter().map(|(name, value)| (&**name, value));
    for (name, value) in values.chain(arguments) {
        target.push(mark);
        mark = b'&';
        encode(name.as_bytes(), UrlPart::Value, &mut target);
        target.push(b'=');
        encode(value, UrlPart::Value, &mut target);
    }
    target
}

/// What the arguments of a call are in a query.
const ARGUMENT: &str = "argument";
