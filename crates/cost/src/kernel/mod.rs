//! What needs `unsafe`: starting a process in a way that is chosen, what the kernel counted of a
//! connection, and the CPU time of a process.

pub(crate) mod clock;
pub(crate) mod segments;
pub(crate) mod start;
