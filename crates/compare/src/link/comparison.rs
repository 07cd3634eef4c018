//! The link between the client and the servers of a comparison, each in a network namespace.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::frames::FrameCounter;
use super::machine::{LinkedMachine, ip};
use super::namespace::{NamespaceVisit, NetworkNamespace};
use super::settings::LinkSettings;

/// The servers' machine, and the client's, which this thread is on until this is dropped.
pub(crate) struct ComparisonLink {
    /// Fields are dropped in this order: back home first, the link before the client's namespace.
    _visit: NamespaceVisit,
    servers: LinkedMachine,
    _client: NetworkNamespace,
}

impl ComparisonLink {
    /// Makes it. Packets wait on this CPU.
    ///
    /// # Errors
    /// What is missing for it, and what to do, as a sentence.
    pub(crate) fn make(settings: LinkSettings, cpu: usize) -> Result<Self, String> {
        let tell = |what: String| {
            format!(
                "--link: {what}; it needs root, `ip`, `unshare`, `nsenter` and /dev/net/tun: run it \
                 where they are, or without --link, over the loopback"
            )
        };
        let client = NetworkNamespace::make()
            .map_err(|error| tell(format!("no network namespace, by `unshare --net`: {error}")))?;
        let servers = LinkedMachine::make(settings, cpu, Some(&client)).map_err(tell)?;
        let enter = client.enter();
        ip(&enter, &["link", "set", "lo", "up"]).map_err(tell)?;
        let visit = NamespaceVisit::begin(&client)
            .map_err(|error| tell(format!("the client's namespace cannot be entered: {error}")))?;
        // As over the loopback, where the kernel does so by itself: a port whose connection has
        // ended is free for the next, else those of a row with a connection each run out.
        let reuse = "/proc/sys/net/ipv4/tcp_tw_reuse";
        std::fs::write(reuse, "1").map_err(|error| tell(format!("{reuse}: {error}")))?;
        Ok(ComparisonLink {
            _visit: visit,
            servers,
            _client: client,
        })
    }

    /// Where the servers listen.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.servers.address
    }

    /// What counts its frames.
    pub(crate) fn counter(&self) -> Arc<FrameCounter> {
        self.servers.counter()
    }

    /// The servers' namespace.
    pub(crate) fn servers(&self) -> &NetworkNamespace {
        self.servers.namespace()
    }
}
