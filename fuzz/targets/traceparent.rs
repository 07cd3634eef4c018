//! Trace context: what is read is written as it was, and nothing else is taken for a trace.
#![no_main]

use hob_trace::traceparent::{Caller, TRACESTATE_BYTES_MAX, Trace, is_tracestate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if is_tracestate(text) {
        assert!(text.len() <= TRACESTATE_BYTES_MAX);
        assert!(
            text.iter()
                .all(|byte| (b' '..=b'~').contains(byte) || *byte == b'\t')
        );
    }
    let Some(caller) = Caller::parse(text) else {
        return;
    };
    let trace = Trace {
        id: caller.trace,
        parent: caller.span,
        is_sampled: caller.is_sampled,
        ..Trace::NONE
    };
    let told = trace.traceparent();
    assert_eq!(told[2..53], text[2..53]);
    assert_eq!(Caller::parse(&told), Some(caller));
});
