//! Where a member is whose address is a name: looked up off the serving threads, and again once the
//! answer no longer holds, when somebody needs it. Connections that rest at an address which the
//! name has left are closed. Servers of a service (SRV) are looked up with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hob_http::Reactor;
use hob_trace::Mutex;

use crate::cache::disk_threads::DiskThreads;
use crate::dns::lookup::{self, HOLDS_UNTOLD};
use crate::handle::upstream::kept::KeptConnections;

/// The lane of the file pool in which names are looked up: name servers that do not answer hold up
/// no file.
pub(super) const LANE: u64 = u64::MAX;

/// A name and a port.
#[derive(Debug)]
pub(crate) struct ServerName {
    name: String,
    port: u16,
    /// Name servers of its own; none is what the machine has.
    resolver: Vec<SocketAddr>,
    /// Connections that were made to it.
    kept: Arc<KeptConnections>,
    found: Mutex<Found>,
    /// Then it is looked up again, when somebody needs it; until that is done, the last answer
    /// holds.
    until_ms: AtomicU64,
}

/// It is never looked up by itself.
const FOR_EVER: u64 = u64::MAX;

#[derive(Debug, Default)]
struct Found {
    addresses: Vec<SocketAddr>,
    /// Somebody looks.
    is_sought: bool,
    /// Addresses are used in turn.
    turn: usize,
}

impl ServerName {
    pub(crate) fn new(
        (name, port): (&str, u16),
        resolver: &[SocketAddr],
        kept: &Arc<KeptConnections>,
    ) -> Arc<ServerName> {
        Arc::new(ServerName {
            name: name.to_owned(),
            port,
            resolver: resolver.to_vec(),
            kept: Arc::clone(kept),
            found: Mutex::default(),
            until_ms: AtomicU64::new(0),
        })
    }

    /// The name of a server of a service.
    pub(super) fn of_server(
        (name, port): (&str, u16),
        kept: &Arc<KeptConnections>,
        addresses: Vec<SocketAddr>,
    ) -> Arc<ServerName> {
        let name = ServerName::new((name, port), &[], kept);
        name.until_ms.store(FOR_EVER, Ordering::Relaxed);
        name.lead_to(addresses);
        name
    }

    /// Whether these are asked for it.
    pub(crate) fn asks(&self, resolver: &[SocketAddr]) -> bool {
        self.resolver == resolver
    }

    /// Its addresses, the one to be tried first at the begin.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) async fn addresses(
        self: &Arc<Self>,
        reactor: &Reactor,
        pool: &DiskThreads,
    ) -> Result<Vec<SocketAddr>, String> {
        let known = self.found.lock().in_turn();
        if known.is_empty() {
            self.found.lock().is_sought = true;
            return self.look(reactor, pool).await;
        }
        self.keep_current(reactor, pool);
        Ok(known)
    }

    /// Has it looked up again where what was found holds no more.
    pub(crate) fn keep_current(self: &Arc<Self>, reactor: &Reactor, pool: &DiskThreads) {
        let is_old = || reactor.now_ms() >= self.until_ms.load(Ordering::Relaxed);
        if !is_old() || std::mem::replace(&mut self.found.lock().is_sought, true) {
            return;
        }
        let (name, own, pool) = (Arc::clone(self), reactor.clone(), pool.clone());
        reactor.spawn(async move {
            // What was known goes on holding where nothing is found.
            let _ = name.look(&own, &pool).await;
        });
    }

    async fn look(
        self: &Arc<Self>,
        reactor: &Reactor,
        pool: &DiskThreads,
    ) -> Result<Vec<SocketAddr>, String> {
        let name = Arc::clone(self);
        let job = pool.for_lane(LANE).run(move || name.look_up());
        let looked = match job {
            Ok(job) => job.in_time(reactor).await.ok(),
            Err(_) => None,
        };
        let late = || Err(format!("{} was not found in time", self.name));
        self.take(looked.unwrap_or_else(late), reactor.now_ms())
    }

    /// Looks it up, which may take a while.
    fn look_up(&self) -> Result<(Vec<SocketAddr>, Duration), String> {
        let found = lookup::addresses(&self.name, &self.resolver)?;
        let there = found.addresses.into_iter();
        let addresses = there.map(|address| SocketAddr::new(address, self.port));
        Ok((addresses.collect(), found.holds))
    }

    /// Takes over what was found.
    fn take(
        &self,
        looked: Result<(Vec<SocketAddr>, Duration), String>,
        now_ms: u64,
    ) -> Result<Vec<SocketAddr>, String> {
        self.found.lock().is_sought = false;
        let hold = |time: Duration| {
            let until_ms = now_ms + time.as_millis() as u64;
            self.until_ms.store(until_ms, Ordering::Relaxed);
        };
        let (addresses, holds) = match looked {
            Ok(found) => found,
            Err(why) => {
                hold(HOLDS_UNTOLD);
                return Err(why);
            }
        };
        hold(holds);
        self.lead_to(addresses);
        Ok(self.found.lock().in_turn())
    }

    /// It has these addresses from now on.
    pub(super) fn lead_to(&self, addresses: Vec<SocketAddr>) {
        let mut found = self.found.lock();
        let is_same = addresses.len() == found.addresses.len()
            && addresses.iter().all(|one| found.addresses.contains(one));
        if !is_same {
            self.kept.lead_to(&addresses);
        }
        found.addresses = addresses;
    }
}

impl Found {
    fn in_turn(&mut self) -> Vec<SocketAddr> {
        let mut all = self.addresses.clone();
        if !all.is_empty() {
            let turn = self.turn % all.len();
            all.rotate_left(turn);
            self.turn = self.turn.wrapping_add(1);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::upstream::kept::KeepLimits;

    fn found(addresses: &[&str], holds_s: u64) -> Result<(Vec<SocketAddr>, Duration), String> {
        let addresses = addresses.iter().map(|one| one.parse().unwrap());
        Ok((addresses.collect(), Duration::from_secs(holds_s)))
    }

    #[test]
    fn answer_holds_as_long_as_it_says_and_the_last_one_where_none_comes() {
        let limits = KeepLimits {
            requests: 0,
            time: Duration::ZERO,
            idle: Duration::from_secs(1),
        };
        let kept = KeptConnections::new(1, limits);
        let name = ServerName::new(("app.test", 80), &[], &kept);
        let told = name.take(found(&["10.0.0.1:80", "10.0.0.2:80"], 30), 1_000);
        assert_eq!(told.unwrap()[0].to_string(), "10.0.0.1:80");
        assert_eq!(name.until_ms.load(Ordering::Relaxed), 31_000);
        assert!(name.take(Err("nobody".to_owned()), 31_000).is_err());
        let known = name.found.lock().in_turn();
        assert_eq!(known[0].to_string(), "10.0.0.2:80");
        assert_eq!(name.until_ms.load(Ordering::Relaxed), 41_000);
    }
}
