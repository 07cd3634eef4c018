//! What all threads of a server share, and what outlives a reload.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::cache::flight::Flights;
use crate::cache::pool::Pool;
use crate::cache::store::Store;
use crate::config::CacheSettings;
use crate::handle::files::find::Fetched;
use crate::handle::files::open::Root;
use crate::route::sites::Sites;

/// What all threads share.
pub struct Shared {
    /// Files that are known.
    pub store: Store,
    /// Threads that may wait for a disk.
    pub pool: Pool,
    /// Looks at the disk under way.
    pub flights: Flights<Fetched>,
    sites: ArcSwap<Sites>,
    generation: AtomicU64,
    /// Numbers of files handlers by their settings.
    handler_ids: Mutex<HashMap<String, u32>>,
    cache_bytes: AtomicU64,
    content_bytes_max: AtomicU64,
    recheck_ms: AtomicU64,
}

impl Shared {
    /// Nothing cached, no sites.
    pub fn new(cache: &CacheSettings) -> Shared {
        let shared = Shared {
            store: Store::new(cache.bytes),
            pool: Pool::default(),
            flights: Flights::default(),
            sites: ArcSwap::from_pointee(Sites::default()),
            generation: AtomicU64::new(0),
            handler_ids: Mutex::default(),
            cache_bytes: AtomicU64::new(0),
            content_bytes_max: AtomicU64::new(0),
            recheck_ms: AtomicU64::new(0),
        };
        shared.set_cache(cache);
        shared
    }

    /// Puts the cache's settings in force.
    pub fn set_cache(&self, cache: &CacheSettings) {
        self.cache_bytes.store(cache.bytes, Ordering::Relaxed);
        self.content_bytes_max
            .store(cache.max_file, Ordering::Relaxed);
        self.recheck_ms
            .store(cache.recheck.as_millis() as u64, Ordering::Relaxed);
        self.store.set_bytes_max(cache.bytes);
    }

    /// Puts sites in force; threads see them in their next turn.
    pub fn set_sites(&self, sites: Sites) {
        self.sites.store(Arc::new(sites));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The sites in force.
    pub fn sites(&self) -> Arc<Sites> {
        self.sites.load_full()
    }

    /// A number that moves whenever other sites come into force.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The number of a files handler with these settings.
    pub fn handler_id(&self, settings: String) -> u32 {
        let mut ids = self
            .handler_ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        *ids.entry(settings).or_insert(next)
    }

    /// True when there is a cache at all.
    pub fn is_cache_on(&self) -> bool {
        self.cache_bytes.load(Ordering::Relaxed) > 0
    }

    /// Largest file whose content is held, in bytes.
    pub fn content_bytes_max(&self) -> u64 {
        self.content_bytes_max.load(Ordering::Relaxed)
    }

    /// How old what is known of a file may get, in milliseconds.
    pub fn recheck_ms(&self) -> u64 {
        self.recheck_ms.load(Ordering::Relaxed)
    }

    /// Has a root looked at again by the pool when it is due.
    pub fn recheck_root(&self, root: &Arc<Root>, now_ms: u64) {
        if !root.begin_recheck(now_ms, self.recheck_ms() / 2) {
            return;
        }
        let again = Arc::clone(root);
        let job = self.pool.run(move || again.recheck(now_ms));
        if job.is_err() {
            root.recheck_later();
        }
    }
}
