//! A spawner beside a server's, for whoever tries programs before they are served.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hob_config::ProgramConfig;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::launcher::{ProgramRef, end_for_thread};
use super::orders::{SpawnerOrder, SpawnerReport};
use super::policy::{Policy, Rules};
use crate::channel::ChannelEnd;
use crate::parcel::{self, NotReceived};
use crate::privileges::UserIdentity;

/// A spawner that is not ready after this will not be.
const SPAWNER_LIMIT: Duration = Duration::from_secs(10);
/// There is one policy alone.
const GENERATION: u64 = 1;

/// A spawner of our own, with a policy for programs that are tried.
pub struct TrialSpawner {
    process: std::process::Child,
    keeper: ChannelEnd,
    server: Option<OwnedFd>,
}

impl TrialSpawner {
    /// Starts one that may start these, and waits until it is ready.
    ///
    /// # Errors
    /// The system gives no process or no descriptors, or it does not get ready.
    pub fn start<'p>(
        programs: impl Iterator<Item = (&'p ProgramConfig, Option<UserIdentity>)>,
    ) -> io::Result<TrialSpawner> {
        let (ours, theirs) = parcel::pair()?;
        let process = Command::new("/proc/self/exe")
            .arg0("hob")
            .arg("spawner")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut spawner = TrialSpawner {
            process,
            keeper: ChannelEnd::of_keeper(ours),
            server: None,
        };
        spawner.wait_until_ready()?;
        let policy = Policy {
            generation: GENERATION,
            programs: programs
                .map(|(program, account)| Rules::of(program, account))
                .collect(),
        };
        let (server, theirs) = parcel::pair()?;
        for order in [
            SpawnerOrder::Policy(policy.to_memory()?),
            SpawnerOrder::Server(theirs),
        ] {
            let sent = spawner.keeper.send(order.encode());
            sent.map_err(|reason| io::Error::other(format!("{reason:?}")))?;
        }
        spawner.server = Some(server);
        Ok(spawner)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let until = Instant::now() + SPAWNER_LIMIT;
        loop {
            match self.keeper.receive() {
                Ok(parcel) if SpawnerReport::decode(&parcel) == Ok(SpawnerReport::Ready) => {
                    return Ok(());
                }
                Ok(_) => {}
                Err(NotReceived::Nothing) => {
                    if !wait(&[(self.keeper.socket(), PollFlags::IN)], until)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(reason) => return Err(io::Error::other(format!("{reason:?}"))),
            }
        }
    }

    /// What it knows a program by: its place among those it was started with.
    pub fn program(index: u16) -> ProgramRef {
        ProgramRef {
            generation: GENERATION,
            index,
        }
    }

    /// An end over which programs are started.
    ///
    /// # Errors
    /// There are no descriptors.
    pub fn link(&self) -> io::Result<OwnedFd> {
        let server = self.server.as_ref();
        end_for_thread(server.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Ends it: without keeper and server it goes, with all that it started.
    pub fn end(self) {
        let TrialSpawner {
            mut process,
            keeper,
            server,
        } = self;
        drop((keeper, server));
        let _ = process.wait();
    }
}

/// Waits for one of these; false when the time is up.
pub fn wait(ends: &[(BorrowedFd<'_>, PollFlags)], until: Instant) -> io::Result<bool> {
    let mut polled: Vec<_> = ends
        .iter()
        .map(|(end, flags)| PollFd::from_borrowed_fd(*end, *flags))
        .collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
