//! What looks at a server from inside: the admin API and its pages, and the server's numbers. Who
//! starts a server hands it in; nothing here knows what it is.

use std::sync::Arc;

use hob_http::{Answered, Request};

/// How names of the admin pages' cookies begin; the port follows. No program sees them.
pub const ADMIN_COOKIE: &[u8] = b"hob-admin-";

/// Whoever tells of the server and steers it.
pub trait AnswersInside: Send + Sync {
    /// Answers a request that came to the control socket or the admin listener.
    fn answer(self: Arc<Self>, request: &Request) -> Answered;

    /// The server's numbers, as the client wants them written; who may see them is decided.
    fn metrics(self: Arc<Self>, request: &Request) -> Answered;
}
