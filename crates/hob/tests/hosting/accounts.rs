//! A machine with accounts of its own.
