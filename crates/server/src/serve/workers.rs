//! Who is at work and who waits, of all programs of the server.

use crate::serve::ServerState;

/// Processes of programs, and requests that wait for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    /// Those that have a request.
    pub busy: usize,
    /// Those that stay and have none.
    pub idle: usize,
    /// Those that are not ready yet.
    pub starting: usize,
    /// Most there may be.
    pub max: usize,
    /// Requests that wait.
    pub queued: usize,
    /// Process ids of those that stay, interpreters that scripts are forked from included.
    pub pids: Vec<u32>,
}

impl Workers {
    /// As it is now.
    pub fn of(shared: &ServerState) -> Workers {
        let mut workers = Workers::default();
        for pool in shared.fleet.pools() {
            pool.add_to(&mut workers);
        }
        shared.add_gates_to(&mut workers);
        workers.pids.extend(shared.hosts.pids());
        let runs = shared.runs.pids().into_iter();
        workers.pids.extend(runs.flat_map(|(_, pids)| pids));
        workers
    }
}
