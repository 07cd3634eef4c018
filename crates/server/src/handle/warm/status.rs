//! What `hob status --programs` tells of interpreters that are kept.

use std::sync::atomic::Ordering;

use hob_machine::process::resident_bytes;

use crate::handle::config::Language;
use crate::handle::warm::host::{Hosts, WarmHost};
use crate::handle::warm::told;

/// All hosts.
pub fn hosts(hosts: &Hosts) -> Vec<told::Host> {
    hosts.all().iter().map(|host| told(host)).collect()
}

impl Hosts {
    /// Hosts by what they are at, and how many scripts forked from them run.
    pub fn load(&self) -> ([(&'static str, u64); STATES.len()], u64) {
        let mut states = STATES.map(|state| (state, 0));
        let mut running = 0;
        for host in self.all() {
            let name = host.condition().name;
            running += host.tally.running.load(Ordering::Relaxed) as u64;
            if let Some((_, count)) = states.iter_mut().find(|(state, _)| *state == name) {
                *count += 1;
            }
        }
        (states, running)
    }
}

/// What a host can be at.
const STATES: [&str; 5] = ["off", "starting", "ready", "failed", "restarting"];

/// Process ids of interpreters that are kept, by what they are.
pub fn pids(hosts: &Hosts) -> Vec<(String, Vec<u32>)> {
    let all = hosts.all();
    let of = all.iter().map(|host| {
        let interpreter = String::from_utf8_lossy(&host.birth.interpreter);
        let dir = String::from_utf8_lossy(&host.birth.dir);
        let pid = host.tally.pid.load(Ordering::Relaxed);
        let pids = Some(pid).filter(|pid| *pid != 0).into_iter().collect();
        (format!("warm {interpreter} in {dir}"), pids)
    });
    of.collect()
}

fn told(host: &WarmHost) -> told::Host {
    let (birth, tally, condition) = (&host.birth, &host.tally, host.condition());
    let pid = Some(tally.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0);
    let language = match birth.language {
        Language::Python => "python",
        Language::Perl => "perl",
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    told::Host {
        interpreter: text(&birth.interpreter),
        language: language.to_owned(),
        version: condition.what,
        preload: birth.preload.clone(),
        compile: birth.compiles,
        dir: text(&birth.dir),
        state: condition.name.to_owned(),
        pid,
        age_s: condition.age.map(|age| age.as_secs()),
        served: tally.ends.load(Ordering::Relaxed),
        running: tally.running.load(Ordering::Relaxed),
        memory_bytes: pid.and_then(resident_bytes),
        starts: tally.starts.load(Ordering::Relaxed),
        failures: tally.failures.load(Ordering::Relaxed),
        crashes: tally.crashes.load(Ordering::Relaxed),
        last_failure: condition.last_failure.map(|text| text.to_string()),
    }
}
