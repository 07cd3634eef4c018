//! What a program is told of its request's trace: the server's span is its parent.

use hob_trace::traceparent::is_tracestate;

use crate::handle::script::variables::{Present, ProgramRequest};

/// True for fields that requests with a trace do not pass as they came.
pub(crate) fn is_of_trace(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"traceparent") || name.eq_ignore_ascii_case(b"tracestate")
}

/// Writes what the program is to take for the request's `traceparent`, if it has a trace.
pub(crate) fn traceparent(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    let trace = asked.request.record().trace;
    if !trace.is_some() {
        return Present::No;
    }
    out.extend_from_slice(&trace.traceparent());
    Present::Yes
}

/// Writes the request's `tracestate`, if it belongs to the trace that it came with, and can be one.
//= w3c-trace-context#tracestate-header
pub(crate) fn tracestate(asked: &ProgramRequest<'_>, out: &mut Vec<u8>) -> Present {
    let trace = asked.request.record().trace;
    if !trace.is_some() || trace.parent == [0; 8] {
        return Present::No;
    }
    let before = out.len();
    for value in asked.request.head().values(b"tracestate") {
        if out.len() > before {
            out.push(b',');
        }
        out.extend_from_slice(value);
    }
    if is_tracestate(&out[before..]) {
        return Present::Yes;
    }
    out.truncate(before);
    Present::No
}
