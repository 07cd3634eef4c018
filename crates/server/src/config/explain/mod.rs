//! `hob explain`: what would answer a request, and why, without serving it.
//!
//! The decisions are made by the code that serves: the engine reads the head, the sites choose, the
//! route's handler answers. What is added here is the reason for each.
//!
//! - `asked` from a method and a URL to a request's head
//! - `follow` the request's way through the decisions, as `answer.rs` makes them
//! - `disk` what stands on the disk, and what stands in the way
//! - `settings` a route's settings by their names
//! - `told` the explanation as data
//! - `text`, `json` the explanation for people and for programs

mod asked;
mod disk;
mod follow;
mod json;
mod settings;
mod text;
mod told;

pub use asked::Asked;
pub use follow::explain;
pub use told::Explanation;
