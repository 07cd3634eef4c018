//! Who is at work and who waits, of all programs of the server.

use crate::handle::admin::Admin;

/// Processes of programs, and requests that wait for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Workers {
    /// Those that have a request.
    pub(crate) busy: usize,
    /// Those that stay and have none.
    pub(crate) idle: usize,
    /// Those that are not ready yet.
    pub(crate) starting: usize,
    /// Most there may be.
    pub(crate) max: usize,
    /// Requests that wait.
    pub(crate) queued: usize,
    /// Process ids of those that stay, interpreters that scripts are forked from included.
    pub(crate) pids: Vec<u32>,
}

impl Workers {
    /// As it is now.
    pub(crate) fn of(admin: &Admin) -> Workers {
        let mut workers = Workers::default();
        let shared = &admin.shared;
        for pool in shared.fleet.pools() {
            pool.add_to(&mut workers);
        }
        shared.add_gates_to(&mut workers);
        workers.pids.extend(shared.hosts.pids());
        workers
    }
}
