//! What handlers of programs share (`cgi`, `warm`, `resident`, `fastcgi`, `scgi`,
//! `uwsgi`): none of them knows how
//! the others run theirs.
//!
//! - `variables`, `fields`, `trace_fields` the request as a program sees it, `body` its body
//! - `carried` what goes along with a request for a program of another machine
//! - `head`, `dechunk`, `reply` the answer that is made of what it prints
//! - `control` what it asks the server for in fields of that answer
//! - `stderr`, `fail` what it says when something goes wrong, and who is told
//! - `call` the same for a page, which waits for what comes of it
//! - `gate` how many may be at work at once, and who waits
//! - `lives` what holds for processes that stay
//! - `keys` keys of several, `build` what is made of settings, `limits` what nobody needs to set

pub(crate) mod body;
pub(crate) mod build;
pub(crate) mod call;
pub mod carried;
pub mod control;
pub(crate) mod dechunk;
pub(crate) mod fail;
pub(crate) mod fields;
pub mod gate;
pub mod head;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod lives;
pub(crate) mod reply;
pub mod stderr;
pub(crate) mod trace_fields;
pub mod used;
pub mod variables;
pub mod visits;
