//! Servers of other people that answer for routes: who they are and how they are reached. Knows no
//! protocol that is spoken there.
//!
//! - `members` who is asked, `member` what is known of one, and whether it is left out; `roster`
//!   who there is at a moment; `balance` who of them is asked next, by their `latency` for one;
//!   `sticky` who stays with whom; `check` looking at them from time to time
//! - `address` where one is, as the config has it
//! - `names` where a name leads, `services` who offers a service
//! - `connect` a connection to it, `proxy_protocol` what one begins with that tells whose it is,
//!   `stream` its bytes, clear or over TLS on its upstream's `terms`, `kept` those that stay open
//!   between requests
//! - `http2` many requests over one connection
//! - `ask` asking one after the other where one fails, `link` a connection while a request has it
//! - `sending` a request on its way, `patience` how long its answer is waited for, `fail` what goes
//!   wrong
//! - `buffer` bodies held, so that slow clients do not occupy members
//! - `run` a program that hob starts itself to ask it
//! - `program` programs that answer as CGI programs do, whatever is spoken with them
//! - `keys`, `config` what the config says of all this, `told` what is told of it

pub mod address;
pub(crate) mod ask;
pub mod balance;
pub mod buffer;
pub(crate) mod check;
pub mod config;
pub(crate) mod connect;
pub(crate) mod fail;
pub mod http2;
pub mod kept;
pub(crate) mod keys;
pub(crate) mod latency;
pub(crate) mod link;
pub mod member;
pub mod members;
pub(crate) mod names;
pub mod patience;
pub mod program;
pub(crate) mod proxy_protocol;
pub(crate) mod roster;
pub mod run;
pub(crate) mod sending;
pub(crate) mod services;
pub(crate) mod sticky;
pub(crate) mod stream;
pub(crate) mod terms;
pub mod told;
