//! The pure core: bytes in, events out.

mod control;
mod sections;
mod streams;

use crate::h3::frame::{push_frame, push_integer};

/// A frame.
fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(kind, payload, &mut out);
    out
}

/// An integer.
fn integer(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    push_integer(value, &mut out);
    out
}
