//! A process that runs for a request, wherever it came from.

use std::task::{Context, Poll};

use crate::handle::warm::Forked;
use crate::process::{Child, End, Exit};

/// A process, as its overseer sees it.
pub(super) enum Running {
    /// Started for the request.
    Started(Child),
    /// A fork of an interpreter that is kept.
    Forked(Forked),
}

impl Running {
    /// How it ended, once it has. One task may wait.
    pub(super) fn poll_exit(&self, cx: &mut Context<'_>) -> Poll<Exit> {
        match self {
            Running::Started(child) => child.poll_exit(cx),
            Running::Forked(forked) => forked.poll_exit(cx),
        }
    }

    /// Ends it with everything it started.
    pub(super) fn end(&self, how: End) {
        match self {
            Running::Started(child) => child.end(how),
            Running::Forked(forked) => forked.end(how),
        }
    }
}
