//! Bytes to requests and answers to bytes.

pub mod listen;
