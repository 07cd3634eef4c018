//! What every family comes to at this moment. May read files below `/proc`.

use std::collections::BTreeMap;

use hob_ipc::message::Carrier;
use hob_machine::process::resident_bytes;
use hob_trace::Snapshot;
use hob_trace::exposition::{Exposition, Family};
use hob_trace::tally::CLASSES;

use super::families::{self, OfCounter, of_counter};
use super::process::ProcessMetrics;
use super::times;
use crate::admin::{Admin, limits};
use hob_server::handle::resident::status::PoolLoad;

/// The label of programs that have no numbers of their own.
const OTHER: &str = "other";

/// All numbers.
pub(super) fn gather(admin: &Admin) -> Exposition {
    let mut all = Exposition::new();
    let mut counters = admin.shared.counts.merged();
    counters.cache_evictions = admin.shared.store.holdings().evictions;
    put_process(&mut all, admin);
    put_requests(&mut all, admin);
    put_connections(&mut all, admin, &counters);
    put_crowding(&mut all, &counters);
    put_certificates(&mut all, admin);
    put_limits(&mut all, &counters, admin);
    put_cache(&mut all, admin);
    put_programs(&mut all, admin);
    times::put(&mut all, &admin.shared);
    put_counters(&mut all, &counters);
    all
}

fn put_process(all: &mut Exposition, admin: &Admin) {
    all.whole(&families::BUILD, &[env!("CARGO_PKG_VERSION")], 1);
    let process = ProcessMetrics::own();
    let mut real = |family: &Family, value: Option<f64>| {
        if let Some(value) = value {
            all.real(family, &[], value);
        }
    };
    real(&families::PROCESS_CPU, process.cpu_s);
    real(&families::PROCESS_STARTED, process.started_unix_s);
    for (family, value) in [
        (&families::PROCESS_RESIDENT, process.resident_bytes),
        (&families::PROCESS_VIRTUAL, process.virtual_bytes),
        (&families::PROCESS_FDS, process.descriptors),
        (&families::PROCESS_FDS_MAX, process.descriptors_max),
        (&families::PROCESS_THREADS, process.threads),
    ] {
        if let Some(value) = value {
            all.whole(family, &[], value);
        }
    }
    let report = admin.report.lock();
    all.whole(&families::GENERATION, &[], report.generation);
    all.whole(&families::SERVERS, &[], report.servers_started);
}

fn put_requests(all: &mut Exposition, admin: &Admin) {
    let sums = admin.shared.counts.tallies.merged();
    for sum in &sums {
        for (class, count) in CLASSES.iter().zip(sum.by_class) {
            if count > 0 {
                let labels = [&sum.site, sum.handler.word(), class];
                all.whole(&families::REQUESTS, &labels, count);
            }
        }
    }
    for (family, value) in [
        (&families::REQUEST_BYTES, 0),
        (&families::RESPONSE_BYTES, 1),
    ] {
        for sum in &sums {
            let bytes = [sum.bytes_in, sum.bytes_out][value];
            all.whole(family, &[&sum.site, sum.handler.word()], bytes);
        }
    }
}

fn put_crowding(all: &mut Exposition, counters: &Snapshot) {
    let (running, waiting) = counters.in_service();
    all.whole(&families::CONCURRENCY, &["running"], running);
    all.whole(&families::CONCURRENCY, &["waiting"], waiting);
    all.whole(&families::OVERLOAD, &[], counters.overload_level());
}

fn put_connections(all: &mut Exposition, admin: &Admin, counters: &Snapshot) {
    all.whole(&families::CONNECTIONS, &[], counters.connections_open());
    for (index, count) in admin.crew.connections_by_thread().into_iter().enumerate() {
        let thread = index.to_string();
        all.whole(&families::THREAD_CONNECTIONS, &[&thread], count as u64);
    }
    let listeners = admin.shared.listeners();
    for (name, visits) in &*listeners {
        all.whole(&families::LISTENER_OPEN, &[name], visits.open());
    }
    for (name, visits) in &*listeners {
        all.whole(&families::LISTENER_ACCEPTED, &[name], visits.accepted());
    }
    let (done, resumed) = (counters.tls_handshakes, counters.tls_resumed);
    let (done_12, resumed_12) = (counters.tls_handshakes_12, counters.tls_resumed_12);
    for (version, kind, count) in [
        ("1.2", "full", done_12.saturating_sub(resumed_12)),
        ("1.2", "resumed", resumed_12),
        (
            "1.3",
            "full",
            (done + resumed_12).saturating_sub(done_12 + resumed),
        ),
        ("1.3", "resumed", resumed.saturating_sub(resumed_12)),
    ] {
        all.whole(&families::TLS_HANDSHAKES, &[version, kind], count);
    }
}

fn put_certificates(all: &mut Exposition, admin: &Admin) {
    let names_max = admin.config().metrics.sites;
    let held = admin.certificates.lock();
    let ends = held.iter().map(|one| {
        let expiry = one.expiry();
        (expiry.name, CertificateEnd(expiry.until_unix_s))
    });
    let ends = by_label(ends, names_max);
    drop(held);
    for (name, end) in ends {
        let until_unix_s = end.0.max(0).cast_unsigned();
        all.whole(&families::CERTIFICATE_ENDS, &[&name], until_unix_s);
    }
    let report = admin.report.lock();
    let ordered = report.certificates.iter().map(|state| {
        let name = state.names.first().cloned().unwrap_or_default();
        (name, FailedOrders(u64::from(state.error.is_some())))
    });
    let ordered = by_label(ordered, names_max);
    drop(report);
    for (name, failed) in ordered {
        all.whole(&families::CERTIFICATE_FAILS, &[&name], failed.0);
    }
}

fn put_limits(all: &mut Exposition, counters: &Snapshot, admin: &Admin) {
    for metric in counters.metrics() {
        if let OfCounter::Limit(limit) = of_counter(&metric) {
            all.whole(&families::LIMITS, &[limit], metric.value);
        }
    }
    for limit in limits::LIMITS {
        let label = limit.name.trim_start_matches("limit_");
        all.whole(&families::LIMITS, &[label], limit.count(admin));
    }
}

fn put_cache(all: &mut Exposition, admin: &Admin) {
    let holdings = admin.shared.store.holdings();
    let banned = admin.shared.bans.count(hob_http::unix_ms());
    all.whole(&families::BANS, &[], banned as u64);
    all.whole(&families::CACHE_ENTRIES, &[], holdings.entries as u64);
    all.whole(&families::CACHE_BYTES, &[], holdings.bytes);
    all.whole(&families::CACHE_PINNED, &[], holdings.pinned_bytes);
    all.whole(&families::CACHE_MAX, &[], holdings.bytes_max);
    let load = admin.shared.pool.load();
    let busy = load.threads.saturating_sub(load.idle);
    all.whole(&families::FILE_POOL, &["busy"], busy as u64);
    all.whole(&families::FILE_POOL, &["idle"], load.idle as u64);
    all.whole(&families::FILE_POOL_QUEUE, &[], load.queued as u64);
}

fn put_programs(all: &mut Exposition, admin: &Admin) {
    let names_max = admin.shared.program_labels();
    let pools: Vec<PoolLoad> = admin
        .shared
        .fleet
        .pools()
        .iter()
        .map(|p| p.load())
        .collect();
    let pools = by_label(
        pools.into_iter().map(|load| (load.name.clone(), load)),
        names_max,
    );
    for (program, load) in &pools {
        for (state, count) in load.by_state() {
            all.whole(&families::WORKERS, &[program, state], count);
        }
    }
    for (program, load) in &pools {
        all.whole(&families::WORKERS_MAX, &[program], load.workers_max);
    }
    for (program, load) in &pools {
        let bytes = load
            .pids
            .iter()
            .filter_map(|pid| resident_bytes(*pid))
            .sum();
        all.whole(&families::WORKER_MEMORY, &[program], bytes);
    }
    for (word, carrier) in [
        ("shm", Some(Carrier::Shm)),
        ("stream", Some(Carrier::Stream)),
        ("lines", None),
    ] {
        let has = pools.values().flat_map(|load| &load.carriers);
        let count = has.filter(|one| **one == carrier).count();
        all.whole(&families::WORKERS_BY_CARRIER, &[word], count as u64);
    }
    let gates = admin.shared.gate_loads().into_iter();
    let gates = by_label(
        gates.map(|(name, load)| (name, GateLoad(load.0, load.1))),
        names_max,
    );
    for (program, load) in &gates {
        all.whole(&families::PROCESSES, &[program], load.0 as u64);
    }
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    for (program, load) in &pools {
        *waiting.entry(program).or_default() += load.waiting;
    }
    for (program, load) in &gates {
        *waiting.entry(program).or_default() += load.1 as u64;
    }
    for (program, count) in waiting {
        all.whole(&families::QUEUE, &[program], count);
    }
    put_upstreams(all, admin);
    put_hosts(all, admin);
}

fn put_upstreams(all: &mut Exposition, admin: &Admin) {
    let upstreams = admin.shared.upstreams();
    let members = || {
        let each = upstreams.iter().take(admin.shared.program_labels());
        each.flat_map(|upstream| upstream.members.iter().map(|one| (&*upstream.name, one)))
    };
    for (name, member) in members() {
        let is_in = u64::from(member.state == "in");
        all.whole(&families::MEMBER_IN, &[name, &member.address], is_in);
    }
    for (name, member) in members() {
        let requests = member.requests as u64;
        all.whole(
            &families::MEMBER_REQUESTS,
            &[name, &member.address],
            requests,
        );
    }
    for (name, member) in members() {
        all.whole(
            &families::MEMBER_ANSWERS,
            &[name, &member.address],
            member.answers,
        );
    }
    for (name, member) in members() {
        all.whole(
            &families::MEMBER_FAILURES,
            &[name, &member.address],
            member.failures,
        );
    }
}

fn put_hosts(all: &mut Exposition, admin: &Admin) {
    let (states, running) = admin.shared.hosts.load();
    for (state, count) in states {
        all.whole(&families::HOSTS, &[state], count);
    }
    all.whole(&families::HOST_RUNS, &[], running);
}

fn put_counters(all: &mut Exposition, counters: &Snapshot) {
    for metric in counters.metrics() {
        if let OfCounter::Own(family) = of_counter(&metric) {
            match families::is_time(&metric) {
                true => all.real(&family, &[], metric.value as f64 / 1.0e6),
                false => all.whole(&family, &[], metric.value),
            }
        }
    }
}

/// What can be one number with another of its kind.
trait Summable {
    fn add(&mut self, other: Self);
}

/// How many run, and how many wait.
struct GateLoad(usize, usize);

impl Summable for GateLoad {
    fn add(&mut self, other: GateLoad) {
        self.0 += other.0;
        self.1 += other.1;
    }
}

/// When a certificate ends, as Unix time in seconds: of several the first.
struct CertificateEnd(i64);

impl Summable for CertificateEnd {
    fn add(&mut self, other: CertificateEnd) {
        self.0 = self.0.min(other.0);
    }
}

/// Certificates that an authority did not give.
struct FailedOrders(u64);

impl Summable for FailedOrders {
    fn add(&mut self, other: FailedOrders) {
        self.0 += other.0;
    }
}

impl Summable for PoolLoad {
    fn add(&mut self, other: PoolLoad) {
        PoolLoad::add(self, other);
    }
}

/// One of each label; programs of one name on several sites are one, and so are those beyond the
/// most that have numbers of their own.
fn by_label<T: Summable>(
    all: impl Iterator<Item = (String, T)>,
    names_max: usize,
) -> BTreeMap<String, T> {
    let mut labels: BTreeMap<String, T> = BTreeMap::new();
    let mut beyond: Option<T> = None;
    for (name, one) in all {
        let has_room = labels.len() < names_max;
        match labels.get_mut(&name) {
            Some(sum) => sum.add(one),
            None if has_room => {
                labels.insert(name, one);
            }
            None => match &mut beyond {
                Some(sum) => sum.add(one),
                None => beyond = Some(one),
            },
        }
    }
    if let Some(beyond) = beyond {
        match labels.get_mut(OTHER) {
            Some(sum) => sum.add(beyond),
            None => {
                labels.insert(OTHER.to_owned(), beyond);
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_name_are_one_and_those_beyond_the_limit_are_other() {
        let loads = ["a", "b", "a", "c", "d"].map(|name| (name.to_owned(), GateLoad(1, 10)));
        let labels = by_label(loads.into_iter(), 2);
        let told: Vec<_> = labels
            .iter()
            .map(|(name, load)| (&**name, load.0, load.1))
            .collect();
        assert_eq!(told, [("a", 2, 20), ("b", 1, 10), ("other", 2, 20)]);
    }
}
