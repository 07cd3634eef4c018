//! Which site and which route a request belongs to, and where redirects and rewrites lead.
//!
//! `target` turns a raw path into the one form everything else sees. `pattern` is a route's path as
//! written in the config, `table` finds the first route that matches a path, `host` the site that a
//! host name means. `template` fills captures into a redirect's or a rewrite's target; `percent`
//! says which bytes need escaping where.

#[cfg(test)]
mod dice;
pub mod host;
pub mod pattern;
pub mod percent;
pub mod sites;
pub mod table;
pub mod target;
pub mod template;
