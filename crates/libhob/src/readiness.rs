//! One descriptor for a program's own event loop: an epoll set of the socket and the bell.

use std::os::fd::AsRawFd;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::connection::HobConnection;
use crate::failure::CallFailure;

impl HobConnection {
    /// The descriptor, made when it is first asked for.
    pub(crate) fn readiness(&self) -> Result<i32, CallFailure> {
        if let Some(set) = self.readiness.get() {
            return Ok(set.as_raw_fd());
        }
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&set, &self.socket, EventData::new_u64(0), EventFlags::IN)?;
        if let Some(end) = &self.lock().inner().link.shm {
            epoll::add(&set, end.bell(), EventData::new_u64(1), EventFlags::IN)?;
        }
        Ok(self.readiness.get_or_init(|| set).as_raw_fd())
    }
}
