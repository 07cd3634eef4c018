//! Steps before and after a handler: who may ask, what a request's conditions, ranges and
//! preferences mean, and what is done to an answer before it leaves.
//!
//! Most take header values as bytes (several lines of one field joined by commas) and the time as
//! an argument; none does I/O. `answer/after` does to a program's answer what all of them together
//! ask for: `conditional`, `range` with `cut`, `negotiate` with `compress` for whole buffers and
//! `encode` for streams; `collect` reads a body ahead. `headers` are the rules of sites and routes.
//! `when` says which requests a route answers, `access` who may ask, `auth` who signs in, `rate`
//! how often, `cors` which pages. `cookie` and `query` find a request's, `date` reads HTTP dates,
//! `weights` lists with quality values, `origin` tells whose page asks.

pub mod access;
pub mod auth;
pub mod bandwidth;
pub mod banned_network;
pub mod collect;
pub mod compress;
pub mod conditional;
pub mod cookie;
pub mod cors;
pub mod country;
pub mod cut;
pub mod date;
pub mod early_hints;
pub mod encode;
pub mod headers;
pub mod negotiate;
pub mod offences;
pub mod origin;
pub mod query;
pub mod range;
pub mod rate;
pub(crate) mod request_key;
pub mod weights;
pub mod when;
