//! Sites that are down for maintenance: an operator says so, and they answer 503 until told
//! otherwise. That outlives reloads; where there is a file to keep it in, upgrades and the server,
//! too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_trace::Mutex;

use super::sites::ServedSite;

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What all sites together are called.
pub const ALL: &str = "";

/// Which sites are down.
#[derive(Default)]
pub struct Maintenance {
    is_any: AtomicBool,
    state: Mutex<MaintenanceState>,
}

#[derive(Default)]
struct MaintenanceState {
    /// In how many seconds clients are to come again, by the sites' names.
    sites: BTreeMap<String, u64>,
    file: Option<File>,
}

impl Maintenance {
    /// Takes over what a file says, and says it there from now on.
    pub fn open(&self, mut file: File) {
        let mut text = String::new();
        // Servers share one place in it: the one before has left that at the end.
        let begun = file.rewind();
        let read =
            begun.and_then(|()| { (&mut file).take(FILE_BYTES_MAX) }.read_to_string(&mut text));
        let sites = match read {
            Ok(0) => Ok(BTreeMap::new()),
            Ok(_) => serde_json::from_str(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let mut state = self.state.lock();
        match sites {
            Ok(sites) => state.sites = sites,
            Err(error) => tracing::error!(%error, "the file of maintenance cannot be read"),
        }
        state.file = Some(file);
        self.is_any
            .store(!state.sites.is_empty(), Ordering::Release);
    }

    /// Takes a site down, or all of them ([`ALL`]); clients are to come again in so many seconds.
    /// Waits for a disk.
    ///
    /// # Errors
    /// It is down, but that cannot be written down: it ends with the server.
    pub fn begin(&self, site: &str, retry_s: u64) -> Result<(), String> {
        let mut state = self.state.lock();
        state.sites.insert(site.to_owned(), retry_s);
        self.is_any.store(true, Ordering::Release);
        state.write()
    }

    /// Has a site answer again, or all of them. False where it was not down. Waits for a disk.
    ///
    /// # Errors
    /// It answers, but that cannot be written down: it is down again after the server.
    pub fn end(&self, site: &str) -> Result<bool, String> {
        let mut state = self.state.lock();
        let was_down = match site {
            ALL => !std::mem::take(&mut state.sites).is_empty(),
            site => state.sites.remove(site).is_some(),
        };
        self.is_any
            .store(!state.sites.is_empty(), Ordering::Release);
        state.write().map(|()| was_down)
    }

    /// In how many seconds clients of a site are to come again, where it is down.
    pub fn retry_s(&self, site: &str) -> Option<u64> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let state = self.state.lock();
        let found = state.sites.get(site).or_else(|| state.sites.get(ALL));
        found.copied()
    }

    /// The same for a client, `None` of a Unix socket, unless it may see the site even then.
    pub fn refuses(&self, site: &ServedSite, client: Option<IpAddr>) -> Option<u64> {
        let retry_s = self.retry_s(&site.name)?;
        (!site.maintenance_allow.has_peer(client)).then_some(retry_s)
    }

    /// The names of the sites that are down.
    pub fn sites(&self) -> Vec<String> {
        self.state.lock().sites.keys().cloned().collect()
    }
}

impl MaintenanceState {
    fn write(&mut self) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Err("there is no folder for what is kept (`state`)".to_owned());
        };
        let text = serde_json::to_vec(&self.sites).map_err(|error| error.to_string())?;
        let written = file
            .rewind()
            .and_then(|()| file.write_all(&text))
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| file.sync_all());
        written.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_down_stays_down_for_who_opens_the_file_next() {
        let file = tempfile::tempfile().unwrap();
        let again = || {
            let file = file.try_clone().unwrap();
            let maintenance = Maintenance::default();
            maintenance.open(file);
            maintenance
        };
        let first = again();
        assert_eq!(first.retry_s("a.test"), None);
        first.begin("a.test", 60).unwrap();
        first.begin("bb.test", 7).unwrap();
        let second = again();
        assert_eq!(
            (second.retry_s("a.test"), second.retry_s("c.test")),
            (Some(60), None)
        );
        assert_eq!(second.end("a.test"), Ok(true));
        assert_eq!(second.end("a.test"), Ok(false));
        second.begin(ALL, 5).unwrap();
        let third = again();
        let all = ["a.test", "bb.test", "c.test"].map(|site| third.retry_s(site));
        assert_eq!(all, [Some(5), Some(7), Some(5)]);
        assert_eq!(third.sites(), ["", "bb.test"]);
        assert_eq!(third.end(ALL), Ok(true));
        assert!(third.sites().is_empty() && again().sites().is_empty());
    }

    #[test]
    fn without_a_file_or_with_a_broken_one_it_holds_and_that_is_told() {
        let maintenance = Maintenance::default();
        assert!(
            maintenance
                .begin("a.test", 60)
                .unwrap_err()
                .contains("state")
        );
        assert_eq!(maintenance.retry_s("a.test"), Some(60));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"{\"a.test\": ").unwrap();
        file.rewind().unwrap();
        let maintenance = Maintenance::default();
        maintenance.open(file);
        assert_eq!(maintenance.retry_s("a.test"), None);
        maintenance.begin("b.test", 60).unwrap();
    }
}
