//! One run from plan to report: checks the plan, finds the server, starts the threads, looks at
//! the machine when the warm-up ends and when all is over.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arrive::Rate;
use crate::conduct::{Conduct, View};
use crate::environment::Environment;
use crate::error::LoadError;
use crate::expect::Expected;
use crate::limits::{
    BODY_BYTES_MAX, CONNECTION_COUNT_MAX, LANE_COUNT_MAX, OTHER_DESCRIPTOR_COUNT, STREAM_COUNT_MAX,
    THREAD_COUNT_MAX, URL_COUNT_MAX,
};
use crate::measure::{Cgroup, Live, Passed, Tally, moment, passed};
use crate::plan::{Pace, Plan, Protocol, Reuse};
use crate::report::Report;
use crate::request;
use crate::send::{Address, Gates, Prepared, Share, Thread, Trust, client_config, h2, h3};
use crate::watch::Watch;

/// How often it is looked whether a moment has come.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// A moment to begin at that is over by more than this is refused: others have begun long ago.
const BEGIN_LATE_MAX: Duration = Duration::from_secs(1);

/// Makes a run. Interrupted by SIGINT or SIGTERM, it reports what there is so far.
pub fn run(plan: Plan) -> Result<Report, LoadError> {
    run_with(plan, Conduct::default())
}

/// Makes a run, conducted and shown as it is asked for.
pub fn run_with(plan: Plan, conduct: Conduct) -> Result<Report, LoadError> {
    conducted(plan, conduct, stop_at_signals()?, (Probe::Always, None))
}

/// Makes a run, which ends early once the flag is set. A run that fails sets it too. Where the
/// server has one address alone, no connection is made only to see whether it is there: whoever
/// counts what the server does counts the run and nothing else.
pub fn run_until(plan: Plan, is_stopped: Arc<AtomicBool>) -> Result<Report, LoadError> {
    let how = (Probe::Between, None);
    conducted(plan, Conduct::default(), is_stopped, how)
}

/// Makes a run of a closed loop as [`run_until`] does, whose warm-up comes to rest before anything
/// is measured: once it is over, every connection has been open and every request has its answer,
/// it is called, and then the measured time begins, over the connections that there are. What a
/// server has used up to the call belongs to no request that is measured.
pub fn run_rested(
    plan: Plan,
    is_stopped: Arc<AtomicBool>,
    rested: &mut dyn FnMut(),
) -> Result<Report, LoadError> {
    if !matches!(plan.pace, Pace::Closed { .. }) {
        let text = "only a closed loop rests: other requests are due when they are";
        return Err(LoadError::Arguments(text.to_owned()));
    }
    let how = (Probe::Between, Some(rested));
    conducted(plan, Conduct::default(), is_stopped, how)
}

/// The same over whatever protocol to this address, whoever the URLs name: what listens there hands
/// on what comes, and counts it.
pub fn run_through(
    plan: Plan,
    relay: SocketAddr,
    is_stopped: Arc<AtomicBool>,
) -> Result<Report, LoadError> {
    let how = (Probe::Never(relay), None);
    conducted(plan, Conduct::default(), is_stopped, how)
}

/// When a connection is made first that carries nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Always, so that a server that is not there is told at once.
    Always,
    /// Only to choose between several addresses.
    Between,
    /// Never: this is the address.
    Never(SocketAddr),
}

/// A flag that SIGINT and SIGTERM set. The second one ends the program as if nobody had listened
/// to the first.
pub fn stop_at_signals() -> Result<Arc<AtomicBool>, LoadError> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, is_stopped.clone())
            .and_then(|_| signal_hook::flag::register(signal, is_stopped.clone()))
            .map_err(LoadError::system("cannot listen for signals"))?;
    }
    Ok(is_stopped)
}

fn conducted(
    whole: Plan,
    conduct: Conduct,
    is_stopped: Arc<AtomicBool>,
    (probe, rested): (Probe, Option<&mut dyn FnMut()>),
) -> Result<Report, LoadError> {
    let plan = part_of(&whole, &conduct);
    check(&plan)?;
    let cgroup = conduct.cgroup.as_deref().map(Cgroup::find);
    let cgroup = cgroup.transpose().map_err(LoadError::Arguments)?;
    let written = Written::new(&plan).map_err(LoadError::Arguments)?;
    let expected = Expected::new(&plan.expectations).map_err(LoadError::Arguments)?;
    raise_descriptors(plan.connections)?;
    let address = reach(&plan, probe)?;
    let tls = tls(&plan, &address)?;
    if let Some(moment) = conduct.start_at {
        wait_until(moment, &is_stopped)?;
    }
    let mut prepared = prepare(&plan, written, expected, address, is_stopped);
    if rested.is_some() {
        prepared.warm_ns = AtomicU64::new(u64::MAX);
    }
    prepared.live = Live::new(prepared.warm_up_ns, conduct.view != View::Nothing);
    prepared.tls = tls;
    let begun_at = SystemTime::now();
    let (tally, machine, stopped) = measure(&plan, &prepared, &conduct, (cgroup.as_ref(), rested))?;
    let is_interrupted = stopped.is_none() && prepared.is_stopped.load(Ordering::Relaxed);
    if tally.due > 0 && tally.answered == 0 && !is_interrupted && stopped.is_none() {
        let first = tally.failures.all().next();
        let (kind, _, example) = first.unwrap_or(("unanswered", 0, ""));
        return Err(LoadError::Server(format!(
            "{}: no request was answered; the first failure was {kind}: {example}",
            plan.urls[0].text
        )));
    }
    Ok(Report {
        plan: whole,
        conduct,
        environment: Environment::look(),
        stopped,
        address: prepared.address.to_string(),
        tally,
        machine,
        warm_ns: prepared.warm_ns(),
        end_ns: prepared.end_ns(),
        is_interrupted,
        begun_at,
    })
}

/// What a plan asks for together may make no sense, though each part does.
fn check(plan: &Plan) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    let Some(first) = plan.urls.first() else {
        return wrong("there is no URL to ask for".to_owned());
    };
    if plan.urls.len() > URL_COUNT_MAX {
        return wrong(format!("at most {URL_COUNT_MAX} URLs"));
    }
    if let Some(other) = plan.urls.iter().find(|url| url.origin() != first.origin()) {
        return wrong(format!(
            "{} and {} are of two servers; one run measures one server",
            first.text, other.text
        ));
    }
    if !(1..=CONNECTION_COUNT_MAX).contains(&plan.connections) {
        return wrong(format!("connections: from 1 to {CONNECTION_COUNT_MAX}"));
    }
    check_streams(plan)?;
    if !(1..=THREAD_COUNT_MAX.min(plan.connections)).contains(&plan.threads) {
        return wrong(format!(
            "threads: from 1 to {THREAD_COUNT_MAX}, each with a connection at least ({} {})",
            plan.connections,
            if plan.connections == 1 {
                "is asked for"
            } else {
                "are asked for"
            },
        ));
    }
    if plan.timeout.is_zero() {
        return wrong("the timeout must be longer than nothing".to_owned());
    }
    if plan.duration.is_none() && plan.count.is_none() {
        return wrong("a run ends after a time, a count or both".to_owned());
    }
    if plan.duration.is_some_and(|duration| duration.is_zero()) || plan.count == Some(0) {
        return wrong("a run of no length measures nothing".to_owned());
    }
    if let (Pace::Open { rate, .. }, None) = (&plan.pace, plan.duration)
        && !matches!(rate, Rate::Constant(_))
    {
        return wrong(format!(
            "the rate {} changes over a time: say --for how long",
            rate.text()
        ));
    }
    if plan
        .body
        .as_ref()
        .is_some_and(|body| body.len() as u64 > BODY_BYTES_MAX)
    {
        return wrong(format!("a body has at most {BODY_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// The part of a plan that is carried out here, where several machines share it.
fn part_of(whole: &Plan, conduct: &Conduct) -> Plan {
    let mut plan = whole.clone();
    if let Some(shard) = conduct.shard {
        plan.connections = shard.part(whole.connections as u64) as usize;
        plan.count = whole.count.map(|count| shard.part(count));
    }
    plan
}

/// Sleeps until a moment, or until the run is stopped before it began.
fn wait_until(moment: SystemTime, is_stopped: &AtomicBool) -> Result<(), LoadError> {
    if let Ok(late) = SystemTime::now().duration_since(moment)
        && late > BEGIN_LATE_MAX
    {
        return Err(LoadError::Arguments(format!(
            "the moment to begin was {:.0} s ago",
            late.as_secs_f64()
        )));
    }
    while let Ok(left) = moment.duration_since(SystemTime::now()) {
        if is_stopped.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(left.min(LOOK_PERIOD));
    }
    Ok(())
}

fn check_streams(plan: &Plan) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    if plan.protocol == Protocol::H3 && (!plan.urls[0].is_secure || plan.unix.is_some()) {
        return wrong(
            "HTTP/3 is spoken over QUIC alone: write https://, without --unix".to_owned(),
        );
    }
    if !(1..=STREAM_COUNT_MAX).contains(&plan.streams) {
        return wrong(format!("streams: from 1 to {STREAM_COUNT_MAX}"));
    }
    if plan.streams == 1 {
        return Ok(());
    }
    if plan.protocol == Protocol::H1 {
        return wrong(
            "a connection of HTTP/1.1 carries one request at a time; --streams needs --http 2 or 3"
                .to_owned(),
        );
    }
    if plan.reuse == Reuse::PerRequest {
        return wrong("with a connection for every request there is one stream on each".to_owned());
    }
    if plan.streams * plan.connections > LANE_COUNT_MAX {
        return wrong(format!(
            "{} connections with {} streams each are more than {LANE_COUNT_MAX} requests at once",
            plan.connections, plan.streams
        ));
    }
    Ok(())
}

/// The requests as the protocol has them.
#[derive(Default)]
struct Written {
    h1: Vec<request::Request>,
    fields: Vec<request::Fields>,
}

impl Written {
    fn new(plan: &Plan) -> Result<Written, String> {
        let mut written = Written::default();
        for url in &plan.urls {
            match plan.protocol {
                Protocol::H1 => written.h1.push(request::write(plan, url)?),
                _ => written.fields.push(request::fields(plan, url)?),
            }
        }
        Ok(written)
    }
}

fn prepare(
    plan: &Plan,
    written: Written,
    expected: Expected,
    address: Address,
    is_stopped: Arc<AtomicBool>,
) -> Prepared {
    let warm_ns = plan.warm_up.as_nanos() as u64;
    let (think, rate) = match &plan.pace {
        Pace::Closed { think } => (*think, None),
        Pace::Open { rate, .. } => (Duration::ZERO, Some(rate.clone())),
    };
    let is_head = plan.method == "HEAD";
    let h2 = (plan.protocol == Protocol::H2).then(|| {
        let fields: Vec<_> = written.fields.iter().map(Vec::as_slice).collect();
        h2::Common {
            requests: h2::Requests::new(&fields),
            body: plan.body.clone().unwrap_or_default(),
            known: h2::Known::new(&expected.fields),
            is_head,
            is_hashed: expected.hash.is_some(),
        }
    });
    let h3 = (plan.protocol == Protocol::H3).then(|| {
        let known = h3::Known::new(&expected.fields);
        let body = plan.body.clone().unwrap_or_default();
        h3::Common::new(
            &written.fields,
            body,
            known,
            (is_head, expected.hash.is_some()),
        )
    });
    Prepared {
        protocol: plan.protocol,
        streams: plan.streams,
        class_count: plan.urls.len(),
        requests: written.h1,
        h2,
        h3,
        address,
        expected,
        is_head,
        is_open: rate.is_some(),
        reuse: plan.reuse,
        tls: None,
        has_resumption: !plan.is_resumption_off,
        think_ns: think.as_nanos() as u64,
        timeout_ns: plan.timeout.as_nanos() as u64,
        warm_up_ns: warm_ns,
        measured_ns: plan
            .duration
            .map_or(u64::MAX, |duration| duration.as_nanos() as u64),
        warm_ns: AtomicU64::new(warm_ns),
        rate,
        begun: Instant::now(),
        is_stopped,
        live: Live::new(warm_ns, false),
    }
}

/// Lets this process have a descriptor for each connection.
fn raise_descriptors(connections: usize) -> Result<(), LoadError> {
    let needed = connections as u64 + OTHER_DESCRIPTOR_COUNT;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum.map_or(needed, |maximum| maximum.max(needed));
    let raised = [limit.maximum, Some(maximum)].into_iter().any(|maximum| {
        let enough = maximum.is_none_or(|maximum| maximum >= needed);
        let current = Some(needed);
        enough && setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok()
    });
    if raised {
        return Ok(());
    }
    let most = limit
        .maximum
        .unwrap_or(0)
        .saturating_sub(OTHER_DESCRIPTOR_COUNT);
    Err(LoadError::Arguments(format!(
        "{connections} connections need {needed} descriptors, and this user may have {}; use at \
         most {most} connections or raise the limit (ulimit -Hn)",
        limit.maximum.unwrap_or(0)
    )))
}

/// What clients say about TLS, where the URLs ask for it.
fn tls(
    plan: &Plan,
    address: &Address,
) -> Result<Option<(ClientConfig, ServerName<'static>)>, LoadError> {
    let url = &plan.urls[0];
    if !url.is_secure {
        return Ok(None);
    }
    let name = ServerName::try_from(url.host.clone()).map_err(|_| {
        LoadError::Arguments(format!("{}: {} is no name for TLS", url.text, url.host))
    })?;
    let trust = match plan.is_insecure || address.is_local() {
        true => Trust::Anybody,
        false => Trust::System,
    };
    let config = client_config(trust, &plan.terms, plan.protocol.alpn());
    let config = config.map_err(LoadError::Arguments)?;
    Ok(Some((config, name)))
}

/// Finds an address at which the server takes a connection now.
fn reach(plan: &Plan, probe: Probe) -> Result<Address, LoadError> {
    if let Probe::Never(address) = probe {
        return Ok(Address::Inet(address));
    }
    if let Some(path) = &plan.unix {
        if probe == Probe::Between {
            return Ok(Address::Unix(path.clone()));
        }
        return match UnixStream::connect(path) {
            Ok(_) => Ok(Address::Unix(path.clone())),
            Err(error) => Err(LoadError::Server(format!(
                "no server answers at {}: {error}",
                path.display()
            ))),
        };
    }
    let url = &plan.urls[0];
    let addresses = (url.host.as_str(), url.port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = match addresses {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            let text = format!(
                "{}: the name {} has no address: {error}",
                url.text, url.host
            );
            return Err(LoadError::Server(text));
        }
    };
    // Over QUIC only a handshake shows whether somebody is there.
    if let (Protocol::H3, Some(address)) = (plan.protocol, addresses.first()) {
        return Ok(Address::Inet(*address));
    }
    if let (Probe::Between, [address]) = (probe, &addresses[..]) {
        return Ok(Address::Inet(*address));
    }
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, plan.timeout) {
            Ok(_) => return Ok(Address::Inet(address)),
            Err(error) => last = Some((address, error)),
        }
    }
    Err(LoadError::Server(match last {
        Some((address, error)) => {
            format!(
                "{}: no server answers at {address}: {error} (is it running?)",
                url.text
            )
        }
        None => format!("{}: the name {} has no address", url.text, url.host),
    }))
}

/// Runs the threads and puts together what they counted.
fn measure(
    plan: &Plan,
    prepared: &Prepared,
    conduct: &Conduct,
    (cgroup, rested): (Option<&Cgroup>, Option<&mut dyn FnMut()>),
) -> Result<(Tally, Passed, Option<String>), LoadError> {
    let (ended, ends) = channel();
    let (gates, mut gate) = Gates::new(plan.threads);
    let has_rest = rested.is_some();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..plan.threads {
            let share = Share::of(plan, number, conduct.shard);
            let ended: Sender<()> = ended.clone();
            let gate = gate.pop().filter(|_| has_rest);
            let work = move || {
                let counted = Thread::new(prepared, share, gate).and_then(Thread::run);
                if counted.is_err() {
                    prepared.is_stopped.store(true, Ordering::Relaxed);
                }
                // Nobody listens any more when the main thread has failed.
                let _ = ended.send(());
                counted
            };
            let name = format!("hob-bench-{number}");
            let started = std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work);
            let started = started.map_err(|error| {
                prepared.is_stopped.store(true, Ordering::Relaxed);
                LoadError::system("cannot start a thread")(error)
            });
            threads.push(started?);
        }
        drop(ended);
        let mut watch = Watch::new(plan, prepared, conduct, &ends);
        match rested {
            Some(rested) => {
                gates.wait();
                rested();
                gates.open();
            }
            None => watch.until(Some(plan.warm_up)),
        }
        let before = moment(plan.pid, cgroup);
        watch.until(None);
        let after = moment(plan.pid, cgroup);
        let stopped = watch.finish();
        let mut whole = Tally::new(prepared.class_count, prepared.step_count(), 0);
        for thread in threads {
            let counted = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            whole.merge(counted.map_err(LoadError::system("cannot run a thread"))?);
        }
        Ok((whole, passed(&before, &after), stopped))
    })
}
