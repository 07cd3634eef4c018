//! The spawner: a small process with one thread that starts programs, ends them, reaps them, and
//! tells the server thread that asked. It reads no config and no request.
//!
//! ```text
//!  keeper's channel   policies, ends of servers          stdin
//!  a server's end     ends of its threads
//!  a thread's end     start, kill  ->   <- exited, failed
//!  signals            a child ended
//! ```
//!
//! `turn` is the loop, `starts` a start from packet to process, `asked` what of it a server may
//! choose, `refusals` how the operator hears of what it may not, `prepare` what is made of a policy
//! when it comes, `cgroup` the control group of a program, `ending` the end of one with everything
//! it started, `tree` who that is.

mod asked;
mod cgroup;
mod ending;
mod links;
mod prepare;
mod refusals;
mod running;
mod starts;
mod tree;
mod turn;

pub use asked::OF_REQUESTS;
pub(crate) use tree::end_session;
pub use turn::run;

#[cfg(test)]
mod tests;

/// Most links of server threads at once; more are closed when they come.
const LINKS_MAX: usize = 4096;
/// Most programs that run at once; a start beyond is refused.
const RUNNING_MAX: usize = 16 * 1024;
/// Children on their way to their program that share our memory; more are forked.
const SLOTS_MAX: usize = 64;
/// Policies that are kept: an old server may still drain on an old one.
const POLICIES_MAX: usize = 32;
