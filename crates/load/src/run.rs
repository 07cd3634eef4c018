//! One run from plan to report: checks the plan, finds the server, starts the threads, looks at
//! the machine when the warm-up ends and when all is over.

use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arrive::Rate;
use crate::error::LoadError;
use crate::expect::Expected;
use crate::limits::{
    BODY_BYTES_MAX, CONNECTION_COUNT_MAX, OTHER_DESCRIPTOR_COUNT, THREAD_COUNT_MAX, URL_COUNT_MAX,
};
use crate::measure::{Tally, moment, passed};
use crate::plan::{Pace, Plan};
use crate::report::Report;
use crate::request;
use crate::send::{Address, Prepared, Share, Thread, Trust, client_config};

/// How often whoever watches is told how far the run is.
const PROGRESS_PERIOD: Duration = Duration::from_millis(500);
/// Runs shorter than this say nothing before they end.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);

/// Makes a run. Interrupted by SIGINT or SIGTERM, it reports what there is so far.
pub fn run(plan: Plan) -> Result<Report, LoadError> {
    run_until(plan, stop_at_signals()?)
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

/// Makes a run, which ends early once the flag is set. A run that fails sets it too.
pub fn run_until(plan: Plan, is_stopped: Arc<AtomicBool>) -> Result<Report, LoadError> {
    check(&plan)?;
    let requests = plan.urls.iter().map(|url| request::write(&plan, url));
    let requests = requests
        .collect::<Result<_, _>>()
        .map_err(LoadError::Arguments)?;
    let expected = Expected::new(&plan.expectations).map_err(LoadError::Arguments)?;
    raise_descriptors(plan.connections)?;
    let address = reach(&plan)?;
    let tls = tls(&plan, &address)?;
    let mut prepared = prepare(&plan, requests, expected, address, is_stopped);
    prepared.tls = tls;
    let begun_at = SystemTime::now();
    let (tally, machine) = measure(&plan, &prepared)?;
    let is_interrupted = prepared.is_stopped.load(Ordering::Relaxed);
    if tally.due > 0 && tally.answered == 0 && !is_interrupted {
        let first = tally.failures.all().next();
        let (kind, _, example) = first.unwrap_or(("unanswered", 0, ""));
        return Err(LoadError::Server(format!(
            "{}: no request was answered; the first failure was {kind}: {example}",
            plan.urls[0].text
        )));
    }
    Ok(Report {
        plan,
        address: prepared.address.to_string(),
        tally,
        machine,
        warm_ns: prepared.warm_ns,
        end_ns: prepared.end_ns,
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

fn prepare(
    plan: &Plan,
    requests: Vec<request::Request>,
    expected: Expected,
    address: Address,
    is_stopped: Arc<AtomicBool>,
) -> Prepared {
    let warm_ns = plan.warm_up.as_nanos() as u64;
    let (think, rate) = match &plan.pace {
        Pace::Closed { think } => (*think, None),
        Pace::Open { rate, .. } => (Duration::ZERO, Some(rate.clone())),
    };
    Prepared {
        requests,
        address,
        expected,
        is_head: plan.method == "HEAD",
        is_open: rate.is_some(),
        reuse: plan.reuse,
        tls: None,
        has_resumption: !plan.is_resumption_off,
        think_ns: think.as_nanos() as u64,
        timeout_ns: plan.timeout.as_nanos() as u64,
        warm_ns,
        end_ns: plan
            .duration
            .map_or(u64::MAX, |duration| warm_ns + duration.as_nanos() as u64),
        rate,
        begun: Instant::now(),
        is_stopped,
        answered: AtomicU64::new(0),
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
    let config = client_config(trust, b"http/1.1").map_err(LoadError::Arguments)?;
    Ok(Some((config, name)))
}

/// Finds an address at which the server takes a connection now.
fn reach(plan: &Plan) -> Result<Address, LoadError> {
    if let Some(path) = &plan.unix {
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
fn measure(plan: &Plan, prepared: &Prepared) -> Result<(Tally, crate::measure::Passed), LoadError> {
    let (ended, ends) = channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..plan.threads {
            let share = Share::of(plan, number);
            let ended: Sender<()> = ended.clone();
            let work = move || {
                let counted = Thread::new(prepared, share).and_then(Thread::run);
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
        let mut watch = Watch::new(plan, prepared, &ends);
        watch.until(Some(plan.warm_up));
        let before = moment(plan.pid);
        watch.until(None);
        let after = moment(plan.pid);
        watch.clear();
        let classes = prepared.requests.len();
        let mut whole = Tally::new(classes, prepared.step_count(), 0);
        for thread in threads {
            let counted = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            whole.merge(counted.map_err(LoadError::system("cannot run a thread"))?);
        }
        Ok((whole, passed(&before, &after)))
    })
}

/// Waits for the threads and shows how far they are, where a person watches.
struct Watch<'a> {
    plan: &'a Plan,
    prepared: &'a Prepared,
    ends: &'a Receiver<()>,
    ended_count: usize,
    is_shown: bool,
}

impl Watch<'_> {
    fn new<'a>(plan: &'a Plan, prepared: &'a Prepared, ends: &'a Receiver<()>) -> Watch<'a> {
        Watch {
            plan,
            prepared,
            ends,
            ended_count: 0,
            is_shown: false,
        }
    }

    /// Waits until so much of the run is over, or until all threads have ended.
    fn until(&mut self, limit: Option<Duration>) {
        let is_watched = io::stderr().is_terminal();
        while self.ended_count < self.plan.threads {
            let passed = self.prepared.begun.elapsed();
            let left = limit.map(|limit| limit.saturating_sub(passed));
            if left == Some(Duration::ZERO) {
                return;
            }
            let wait = left.unwrap_or(PROGRESS_PERIOD).min(PROGRESS_PERIOD);
            match self.ends.recv_timeout(wait) {
                Ok(()) => self.ended_count += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if is_watched && passed >= PROGRESS_AFTER {
                self.show(passed);
            }
        }
    }

    fn show(&mut self, passed: Duration) {
        let whole = self
            .plan
            .duration
            .map(|duration| duration + self.plan.warm_up);
        let answered = self.prepared.answered.load(Ordering::Relaxed);
        let of_time = whole.map(|whole| format!(" of {:.0} s", whole.as_secs_f64()));
        let of_count = self.plan.count.map(|count| format!(" of {count}"));
        let line = format!(
            "\r\x1b[K{:.0} s{}, {answered}{} answers",
            passed.as_secs_f64(),
            of_time.unwrap_or_default(),
            of_count.unwrap_or_default(),
        );
        // A terminal that is gone is no reason to end the run.
        let _ = io::stderr().write_all(line.as_bytes());
        self.is_shown = true;
    }

    /// Takes the line away again.
    fn clear(&mut self) {
        if self.is_shown {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
