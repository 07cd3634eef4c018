//! What watchers are told of a request, and when.
//!
//! - `moments` when watchers are asked, at a request's begin and end
//! - `told` the events of every request, from what is known of it
//! - `tap` the answer's head and the bytes of its body, for those who want to see them

mod moments;
mod tap;
mod told;

pub(super) use moments::{begin, finish};
pub(super) use tap::tap;
