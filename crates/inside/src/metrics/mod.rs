//! The numbers of the server for Prometheus: of its routes with a token, and `/metrics` of the
//! admin API.
//!
//! `families` is the table of what there is, `gather` what it comes to at a moment, `process` the
//! part that the kernel knows, `times` the histograms. A page is made by a thread of the file pool:
//! nobody's request waits for it.

pub mod families;
mod gather;
mod process;
mod times;

use std::sync::Arc;

use hob_http::{Answered, Known, Request};
use hob_server::cache::disk_threads::Undone;
use hob_server::handle::metrics::ready;
use hob_server::handle::plain;
use hob_trace::exposition::ExpositionFormat;

use crate::admin::Admin;

pub use families::reference;

/// Jobs of the file pool stand in a lane of their own.
const LANE: u64 = u64::MAX;

/// The numbers, as the client wants them written; to whom is seen to elsewhere.
pub(crate) fn page(admin: &Arc<Admin>, request: &Request) -> Answered {
    let accept = request.head().joined(Known::Accept);
    let format = ExpositionFormat::for_accept(&accept.unwrap_or_default());
    let pool = admin.shared.pool.for_lane(LANE);
    let admin = Arc::clone(admin);
    let reactor = request.reactor().clone();
    match pool.run(move || gather::gather(&admin).write(format)) {
        Ok(made) => Answered::Later(Box::pin(async move {
            match made.in_time(&reactor).await {
                Ok(text) => ready(text, format),
                Err(Undone::Panicked) => plain::error(500),
                Err(Undone::Hangs) => plain::busy(),
            }
        })),
        Err(_) => Answered::Ready(plain::busy()),
    }
}
