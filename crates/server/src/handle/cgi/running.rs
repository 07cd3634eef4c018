//! A process that runs for a request, wherever it came from.

use std::task::{Context, Poll};

use crate::handle::warm::Forked;
use hob_keeper::process::{Child, EndSignal, Exit};

/// A process, as its overseer sees it.
pub(super) enum RunningProcess {
    /// Started for the request.
    Started(Child),
    /// A fork of an interpreter that is kept.
    Forked(Forked),
}

impl RunningProcess {
    /// How it ended, once it has. One task may wait.
    pub(super) fn poll_exit(&self, cx: &mut Context<'_>) -> Poll<Exit> {
        match self {
            RunningProcess::Started(child) => child.poll_exit(cx),
            RunningProcess::Forked(forked) => forked.poll_exit(cx),
        }
    }

    /// Ends it with everything it started.
    pub(super) fn end(&self, how: EndSignal) {
        match self {
            RunningProcess::Started(child) => child.end(how),
            RunningProcess::Forked(forked) => forked.end(how),
        }
    }
}
