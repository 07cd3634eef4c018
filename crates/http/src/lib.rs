//! Bytes to requests and answers to bytes.
