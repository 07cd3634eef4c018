//! Paths: what a route's pattern matches, and where a rewrite or a redirect leads.
//!
//! `target` turns a raw path into the one form everything else sees. `pattern` is a route's path as
//! written in the config; `template` fills captures into a redirect's or a rewrite's target;
//! `percent` says which bytes need escaping where.

#[cfg(test)]
mod dice;
pub mod pattern;
pub mod percent;
pub mod target;
pub mod template;
