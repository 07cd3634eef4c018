//! Traces: which requests belong to one, and their spans on the way to a collector.
//!
//! ```text
//! serving thread: Tracer begins a trace --> request --> its ring --> thread `hob-otlp`: Exporter
//! spans, batches, OTLP over HTTP
//! ```
//!
//! `tracer` is what a serving thread does, `span` makes spans of records, `message` is OTLP's own
//! layout, `export` the thread that sends. Serving threads never wait for it: a full ring refuses,
//! and what is lost is counted.

mod export;
mod message;
mod span;
mod tracer;

pub use export::Exporter;
pub(crate) use tracer::Tracer;
