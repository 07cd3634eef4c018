//! What needs `unsafe`: starting a process in a way that is chosen, and what the kernel counted of
//! a connection.

pub(crate) mod segments;
pub(crate) mod start;
