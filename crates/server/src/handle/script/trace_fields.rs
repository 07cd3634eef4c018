//! What a program is told of its request's trace: the server's span is its parent.

use hob_http::Request;
use hob_trace::traceparent::is_tracestate;

use crate::handle::script::variables::{Present, ProgramRequest};

/// True for fields that requests with a trace do not pass as they came.
pub(crate) fn is_of_trace(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"traceparent") || name.eq_ignore_ascii_case(b"tracestate")
}

/// Writes what the program is to take for the request's `traceparent`, if it has a trace.
pub(crate) fn traceparent(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    present(push_traceparent(asked.request, out))
}

/// Writes the request's `tracestate`, if it belongs to the trace that it came with, and can be one.
pub(crate) fn tracestate(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    present(push_tracestate(asked.request, out))
}

fn present(is_written: bool) -> Present {
    match is_written {
        true => Present::Yes,
        false => Present::No,
    }
}

/// Appends the `traceparent` that a request is passed on with; false where it has no trace.
pub(crate) fn push_traceparent(request: &Request, out: &mut Vec<u8>) -> bool {
    let trace = request.record().trace;
    if !trace.is_some() {
        return false;
    }
    out.extend_from_slice(&trace.traceparent());
    true
}

/// The same for `tracestate`; false where none goes with it.
//= w3c-trace-context#tracestate-header
pub(crate) fn push_tracestate(request: &Request, out: &mut Vec<u8>) -> bool {
    let trace = request.record().trace;
    if !trace.is_some() || trace.parent == [0; 8] {
        return false;
    }
    let before = out.len();
    for value in request.head().values(b"tracestate") {
        if out.len() > before {
            out.push(b',');
        }
        out.extend_from_slice(value);
    }
    let is_one = is_tracestate(&out[before..]);
    if !is_one {
        out.truncate(before);
    }
    is_one
}
