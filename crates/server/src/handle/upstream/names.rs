//! Where a member is whose address is a name: looked up off the serving threads, and again from
//! time to time. The system looks, by what it has for that (`/etc/hosts`, name servers); it does
//! not tell how long an answer holds.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use hob_http::Reactor;
use hob_trace::Mutex;

use crate::cache::disk_threads::DiskThreads;

/// What was found is looked up again after so long, when somebody needs it; until that is done, it
/// holds.
const HOLDS_MS: u64 = 10_000;
/// The lane of the file pool in which names are looked up: name servers that do not answer hold up
/// no file.
const LANE: u64 = u64::MAX;

/// A name and a port.
#[derive(Debug)]
pub(crate) struct ServerName {
    name: String,
    port: u16,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    addresses: Vec<SocketAddr>,
    as_of_ms: u64,
    /// Somebody looks.
    is_sought: bool,
    /// Addresses are used in turn.
    turn: usize,
}

impl ServerName {
    pub(crate) fn new(name: &str, port: u16) -> Arc<ServerName> {
        Arc::new(ServerName {
            name: name.to_owned(),
            port,
            found: Mutex::default(),
        })
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
        let now_ms = reactor.now_ms();
        let (known, is_old) = {
            let mut found = self.found.lock();
            let known = found.in_turn();
            let is_old = now_ms >= found.as_of_ms + HOLDS_MS && !found.is_sought;
            found.is_sought |= is_old || known.is_empty();
            (known, is_old)
        };
        if known.is_empty() {
            return self.look(reactor, pool).await;
        }
        if is_old {
            let (name, own, pool) = (Arc::clone(self), reactor.clone(), pool.clone());
            reactor.spawn(async move {
                // What was known goes on holding where nothing is found.
                let _ = name.look(&own, &pool).await;
            });
        }
        Ok(known)
    }

    async fn look(
        self: &Arc<Self>,
        reactor: &Reactor,
        pool: &DiskThreads,
    ) -> Result<Vec<SocketAddr>, String> {
        let name = Arc::clone(self);
        let job = pool.for_lane(LANE).run(move || {
            let looked = (&*name.name, name.port).to_socket_addrs();
            looked.map(Iterator::collect::<Vec<_>>)
        });
        let looked = match job {
            Ok(job) => job.in_time(reactor).await.ok(),
            Err(_) => None,
        };
        let mut found = self.found.lock();
        (found.is_sought, found.as_of_ms) = (false, reactor.now_ms());
        match looked {
            Some(Ok(addresses)) if !addresses.is_empty() => {
                found.addresses = addresses;
                Ok(found.in_turn())
            }
            Some(Ok(_)) => Err(format!("{} has no address", self.name)),
            Some(Err(error)) => Err(format!("{} was not found: {error}", self.name)),
            None => Err(format!("{} was not found in time", self.name)),
        }
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
