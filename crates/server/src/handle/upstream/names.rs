//! Where a member is whose address is a name: looked up off the serving threads, and again once the
//! answer no longer holds, when somebody needs it. Connections that rest at an address which the
//! name has left are closed.
//!
//! A service (SRV) has several servers, which are one member here: those of the lowest priority are
//! tried first, each as often as its weight says, and the next where one takes no connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hob_http::Reactor;
use hob_trace::Mutex;

use crate::cache::disk_threads::DiskThreads;
use crate::dns::lookup::{self, HOLDS_UNTOLD, ServicePlace};
use crate::handle::upstream::balance;
use crate::handle::upstream::kept::KeptConnections;

/// The lane of the file pool in which names are looked up: name servers that do not answer hold up
/// no file.
const LANE: u64 = u64::MAX;

/// A name and a port, or a service.
#[derive(Debug)]
pub(crate) struct ServerName {
    name: String,
    /// `None` of a service, whose servers have their own.
    port: Option<u16>,
    /// Name servers of its own; none is what the machine has.
    resolver: Vec<SocketAddr>,
    /// Connections that were made to it.
    kept: Arc<KeptConnections>,
    found: Mutex<Found>,
    /// Then it is looked up again, when somebody needs it; until that is done, the last answer
    /// holds.
    until_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Found {
    places: Vec<ServicePlace>,
    /// Somebody looks.
    is_sought: bool,
    /// Addresses are used in turn.
    turn: usize,
}

impl ServerName {
    pub(crate) fn new(
        (name, port): (&str, Option<u16>),
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
    fn look_up(&self) -> Result<(Vec<ServicePlace>, Duration), String> {
        let Some(port) = self.port else {
            return lookup::services(&self.name, &self.resolver);
        };
        let found = lookup::addresses(&self.name, &self.resolver)?;
        let places = found.addresses.into_iter().map(|address| ServicePlace {
            priority: 0,
            weight: 1,
            address: SocketAddr::new(address, port),
        });
        Ok((places.collect(), found.holds))
    }

    /// Takes over what was found.
    fn take(
        &self,
        looked: Result<(Vec<ServicePlace>, Duration), String>,
        now_ms: u64,
    ) -> Result<Vec<SocketAddr>, String> {
        let mut found = self.found.lock();
        found.is_sought = false;
        let hold = |time: Duration| {
            let until_ms = now_ms + time.as_millis() as u64;
            self.until_ms.store(until_ms, Ordering::Relaxed);
        };
        let (places, holds) = match looked {
            Ok(found) => found,
            Err(why) => {
                hold(HOLDS_UNTOLD);
                return Err(why);
            }
        };
        hold(holds);
        let is_same = places.len() == found.places.len()
            && places.iter().all(|one| found.places.contains(one));
        if !is_same {
            let addresses: Vec<_> = places.iter().map(|place| place.address).collect();
            self.kept.lead_to(&addresses);
        }
        found.places = places;
        Ok(found.in_turn())
    }
}

impl Found {
    fn in_turn(&mut self) -> Vec<SocketAddr> {
        let mut all = self.places.clone();
        if all.is_empty() {
            return Vec::new();
        }
        let turn = self.turn % all.len();
        all.rotate_left(turn);
        self.turn = self.turn.wrapping_add(1);
        let weights = all.iter().map(|place| place.weight);
        if weights.clone().max() != weights.min() {
            // Who has more weight is first more often: the larger of as many numbers as it has.
            all.sort_by_cached_key(|place| std::cmp::Reverse(drawn(place.weight)));
        }
        all.sort_by_key(|place| place.priority);
        all.into_iter().map(|place| place.address).collect()
    }
}

/// A number by chance, in the order of which this weight is first as often as it should be: `u`
/// to the power of one over the weight, for `u` between 0 and 1, of which the logarithm is taken.
fn drawn(weight: u16) -> i64 {
    // Who has none is asked seldom (RFC 2782).
    let weight = f64::from(weight).max(0.01);
    let number = (f64::from(balance::random()) + 1.0) / (f64::from(u32::MAX) + 2.0);
    (number.ln() / weight * 1e9) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::upstream::kept::KeepLimits;

    fn place(address: &str, priority: u16, weight: u16) -> ServicePlace {
        ServicePlace {
            priority,
            weight,
            address: address.parse().unwrap(),
        }
    }

    fn found(addresses: &[&str], holds_s: u64) -> Result<(Vec<ServicePlace>, Duration), String> {
        let places = addresses.iter().map(|one| place(one, 0, 1));
        Ok((places.collect(), Duration::from_secs(holds_s)))
    }

    #[test]
    fn servers_of_a_service_come_by_priority_and_weight() {
        let mut found = Found {
            places: vec![
                place("10.0.0.9:1", 2, 9),
                place("10.0.0.1:1", 1, 3),
                place("10.0.0.2:1", 1, 1),
            ],
            ..Found::default()
        };
        let mut first = 0;
        for _ in 0..4_000 {
            let told = found.in_turn();
            assert_eq!(
                (told.len(), told[2].to_string().as_str()),
                (3, "10.0.0.9:1")
            );
            first += usize::from(told[0].to_string() == "10.0.0.1:1");
        }
        // Three of four.
        assert!((2_700..3_300).contains(&first), "{first}");
    }

    #[test]
    fn answer_holds_as_long_as_it_says_and_the_last_one_where_none_comes() {
        let limits = KeepLimits {
            requests: 0,
            time: Duration::ZERO,
            idle: Duration::from_secs(1),
        };
        let kept = KeptConnections::new(1, limits);
        let name = ServerName::new(("app.test", Some(80)), &[], &kept);
        let told = name.take(found(&["10.0.0.1:80", "10.0.0.2:80"], 30), 1_000);
        assert_eq!(told.unwrap()[0].to_string(), "10.0.0.1:80");
        assert_eq!(name.until_ms.load(Ordering::Relaxed), 31_000);
        assert!(name.take(Err("nobody".to_owned()), 31_000).is_err());
        let known = name.found.lock().in_turn();
        assert_eq!(known[0].to_string(), "10.0.0.2:80");
        assert_eq!(name.until_ms.load(Ordering::Relaxed), 41_000);
    }
}
