//! Programs of other machines: a hob there offers them to this one. What a request costs and how
//! it travels is otherwise as with `proxy`, whose code does all of that: one stream of HTTP/2 for
//! each, over TLS in which both sides show a certificate.
//!
//! - `keys` its keys, `config` what they say; `answer` and `explain` hand on to `proxy`
//!
//! What goes along with the request is `script/carried`; `answer/offer` is the other side.

mod answer;
pub mod config;
mod explain;
pub(crate) mod keys;

use std::sync::Arc;

use crate::handle::proxy::Proxy;

/// A handler of this kind, ready to answer: `proxy`, of another hob, for one of its programs.
pub struct Remote(pub Arc<Proxy>);
