//! A whole run of mischief: sees whether the server may be exercised and what it usually answers,
//! has acts made beside requests that behave, and asks once more afterwards.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_load::parts::{RequestTally, ServerAddress, addresses, fields, h3, tls};
use hob_load::{
    BenchPlan, BenchReport, ClientActs, ClientTlsOffer, Expectation, LoadError, LoadModel,
    Protocol, Reuse, Url, run_through, run_until, stop_at_signals,
};

use super::act::{Kind, draw, kinds};
use super::line::Target;
use super::perform::perform;
use super::report::{Done, Exercised};
use crate::limits::{
    ACT_COUNT_MAX, ACT_PAUSE, ACT_TIMEOUT_MAX, ACTOR_COUNT, EXERCISE_DURATION_MAX,
    EXERCISED_BODY_BYTES_MAX,
};

/// Connections with requests beside the acts, and how long each rests between two.
const BESIDE_CONNECTION_COUNT: usize = 4;
const BESIDE_PAUSE: Duration = Duration::from_millis(80);
/// Time in which they are due, before all are waited for.
const BESIDE_STRETCH: Duration = Duration::from_millis(500);
/// How often it is looked whether somebody wants the end.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// What is to be exercised, and how.
#[derive(Debug, Clone)]
pub struct Exercise {
    /// What is asked for.
    pub url: Url,
    /// A Unix socket to connect to instead of the URL's host.
    pub unix: Option<PathBuf>,
    /// What is spoken.
    pub protocol: Protocol,
    /// What all acts follow from.
    pub seed: u64,
    /// How many acts are made.
    pub count: u64,
    /// The one act that is made, of those that follow from the seed.
    pub only: Option<u64>,
    /// After this time no act begins.
    pub duration: Duration,
    /// Longest wait for what comes of an act, and for answers beside it.
    pub timeout: Duration,
    /// Whoever asks for it answers for a server that is not on this machine.
    pub is_owned: bool,
}

/// Exercises a server. Interrupted by SIGINT or SIGTERM, it reports what there is so far.
pub fn exercise(exercise: Exercise) -> Result<Exercised, LoadError> {
    check(&exercise)?;
    let address = reach(&exercise)?;
    let is_stopped = stop_at_signals()?;
    let usual = usual(&exercise, &address)?;
    let whole = beside(&exercise, &usual);
    let secure = tls(&whole, &address)?;
    let target = Target {
        h3_head: h3_head(&whole)?,
        address: address.clone(),
        tls: secure.map(|(config, name)| (Arc::new(config), name)),
        timeout: exercise.timeout,
    };
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (done, (beside, beside_fault)) = std::thread::scope(|scope| {
        let ask = || ask_beside(&whole, &address, &is_over, &is_stopped);
        let asking = scope.spawn(ask);
        let done = acts(&exercise, &target, &usual, &is_stopped);
        is_over.store(true, Ordering::Relaxed);
        let beside = asking
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, beside)
    });
    let elapsed = begun.elapsed();
    Ok(Exercised {
        usual: usual.status,
        address: address.to_string(),
        elapsed,
        beside,
        beside_fault,
        afterwards: ask(&exercise, &address).map(|usual| usual.status),
        is_interrupted: is_stopped.load(Ordering::Relaxed),
        done,
        exercise,
    })
}

/// Asks until the acts are over, in stretches at whose end every answer is waited for.
fn ask_beside(
    plan: &BenchPlan,
    address: &ServerAddress,
    is_over: &AtomicBool,
    is_stopped: &Arc<AtomicBool>,
) -> (RequestTally, Option<LoadError>) {
    let mut whole = RequestTally::new(1, 1, BESIDE_CONNECTION_COUNT);
    while !is_over.load(Ordering::Relaxed) && !is_stopped.load(Ordering::Relaxed) {
        match run_at(plan.clone(), address, is_stopped.clone()) {
            Ok(report) => whole.merge(report.tally),
            Err(fault) => return (whole, Some(fault)),
        }
    }
    (whole, None)
}

/// A run that goes to this address, whatever others the name has.
fn run_at(
    plan: BenchPlan,
    address: &ServerAddress,
    is_stopped: Arc<AtomicBool>,
) -> Result<BenchReport, LoadError> {
    match address {
        ServerAddress::Inet(address) => run_through(plan, *address, is_stopped),
        // The plan names it.
        ServerAddress::Unix(_) => run_until(plan, is_stopped),
    }
}

fn check(exercise: &Exercise) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    let is_quic = exercise.url.is_secure && exercise.unix.is_none();
    if exercise.protocol == Protocol::H3 && !is_quic {
        let text = "HTTP/3 is spoken over QUIC alone: write https://, without --unix";
        return wrong(text.to_owned());
    }
    if !(1..=ACT_COUNT_MAX).contains(&exercise.count) {
        return wrong(format!("acts: from 1 to {ACT_COUNT_MAX}"));
    }
    if exercise.only.is_some_and(|only| only >= ACT_COUNT_MAX) {
        return wrong(format!("acts are numbered from 0 to {}", ACT_COUNT_MAX - 1));
    }
    let seconds = |limit: Duration| limit.as_secs();
    if exercise.duration.is_zero() || exercise.duration > EXERCISE_DURATION_MAX {
        let most = seconds(EXERCISE_DURATION_MAX);
        return wrong(format!(
            "acts are made for {most} s at most, and not for no time"
        ));
    }
    if exercise.timeout.is_zero() || exercise.timeout > ACT_TIMEOUT_MAX {
        let most = seconds(ACT_TIMEOUT_MAX);
        return wrong(format!(
            "the timeout of acts is {most} s at most, and longer than nothing"
        ));
    }
    Ok(())
}

/// Finds an address that may be exercised, such as a Unix socket. Of a host, all that the name has
/// must be of this machine, or their owner must have said so. Nothing else is connected to
/// afterwards.
fn reach(exercise: &Exercise) -> Result<ServerAddress, LoadError> {
    let url = &exercise.url;
    if let Some(path) = &exercise.unix {
        return match UnixStream::connect(path) {
            Ok(_) => Ok(ServerAddress::Unix(path.clone())),
            Err(error) => Err(LoadError::Server(format!(
                "{}: no server answers at {}: {error} (is it running?)",
                url.text,
                path.display()
            ))),
        };
    }
    let addresses = addresses(url)?;
    let is_own = |address: &&SocketAddr| address.ip().to_canonical().is_loopback();
    if let (Some(other), false) = (
        addresses.iter().find(|address| !is_own(address)),
        exercise.is_owned,
    ) {
        return Err(LoadError::Arguments(format!(
            "{}: {} is not an address of this machine alone (loopback), and mischief may harm \
             whoever is there; add --i-own-this-host if that is you",
            url.text,
            other.ip()
        )));
    }
    let mut last = None;
    for address in addresses {
        if exercise.protocol == Protocol::H3 {
            return Ok(ServerAddress::Inet(address));
        }
        match TcpStream::connect_timeout(&address, exercise.timeout) {
            Ok(_) => return Ok(ServerAddress::Inet(address)),
            Err(error) => last = Some((address, error)),
        }
    }
    Err(LoadError::Server(match last {
        Some((address, error)) => {
            let url = &url.text;
            format!("{url}: no server answers at {address}: {error} (is it running?)")
        }
        None => format!("{}: the name {} has no address", url.text, url.host),
    }))
}

/// What a well-behaved request is answered with.
pub(crate) struct Usual {
    pub(crate) status: u16,
    /// None where answers differ in it.
    body_bytes: Option<u64>,
}

/// Asks twice, before anything else.
fn usual(exercise: &Exercise, address: &ServerAddress) -> Result<Usual, LoadError> {
    let url = &exercise.url.text;
    let (first, second) = (ask(exercise, address)?, ask(exercise, address)?);
    if !(200..500).contains(&first.status) || first.status != second.status {
        return Err(LoadError::Server(format!(
            "{url}: answered with {}, then with {}: exercise a URL that is well",
            first.status, second.status
        )));
    }
    if first.body_bytes > Some(EXERCISED_BODY_BYTES_MAX) {
        return Err(LoadError::Arguments(format!(
            "{url}: the answer has more than {EXERCISED_BODY_BYTES_MAX} bytes; exercise a URL with \
             a shorter one, every act may read it"
        )));
    }
    let is_same = first.body_bytes == second.body_bytes;
    Ok(Usual {
        body_bytes: first.body_bytes.filter(|_| is_same),
        ..first
    })
}

/// Asks once.
fn ask(exercise: &Exercise, address: &ServerAddress) -> Result<Usual, LoadError> {
    let mut plan = plan(exercise);
    plan.count = Some(1);
    plan.expectations = expectations(&["status=100-599".to_owned()]);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let report = run_at(plan, address, is_stopped)?;
    let status = report.tally.statuses.iter().position(|count| *count > 0);
    Ok(Usual {
        status: status.map_or(0, |place| place as u16 + 100),
        body_bytes: Some(report.tally.body_bytes),
    })
}

/// A request as HTTP/3 has it on a stream.
fn h3_head(plan: &BenchPlan) -> Result<Vec<u8>, LoadError> {
    let fields = fields(plan, &plan.entries[0]).map_err(LoadError::Arguments)?;
    Ok(h3::pack_alone(&fields))
}

/// Requests of the one URL, one after the other on one connection.
fn plan(exercise: &Exercise) -> BenchPlan {
    BenchPlan {
        entries: vec![exercise.url.clone().into()],
        seed: exercise.seed,
        acts: ClientActs::default(),
        page: None,
        unix: exercise.unix.clone(),
        protocol: exercise.protocol,
        streams: 1,
        pace: LoadModel::Closed {
            think: Duration::ZERO,
        },
        connections: 1,
        sources: 1,
        reuse: Reuse::KeepAlive,
        // Nothing secret is sent, and whoever exercises a server is sure whose it is.
        is_insecure: true,
        terms: ClientTlsOffer::default(),
        is_resumption_off: false,
        threads: 1,
        cpus: Vec::new(),
        warm_up: Duration::ZERO,
        duration: None,
        count: None,
        timeout: exercise.timeout,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        expectations: Vec::new(),
        thresholds: Vec::new(),
        pid: None,
    }
}

/// A stretch of the requests beside the acts.
fn beside(exercise: &Exercise, usual: &Usual) -> BenchPlan {
    let mut wanted = vec![format!("status={}", usual.status)];
    wanted.extend(usual.body_bytes.map(|bytes| format!("size={bytes}")));
    BenchPlan {
        pace: LoadModel::Closed {
            think: BESIDE_PAUSE,
        },
        connections: BESIDE_CONNECTION_COUNT,
        duration: Some(BESIDE_STRETCH),
        expectations: expectations(&wanted),
        ..plan(exercise)
    }
}

fn expectations(texts: &[String]) -> Vec<Expectation> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Has the acts made by a few threads, in order of their numbers.
fn acts(exercise: &Exercise, target: &Target, usual: &Usual, is_stopped: &AtomicBool) -> Vec<Done> {
    let kinds = kinds(exercise.protocol, exercise.url.is_secure);
    let first = exercise.only.unwrap_or(0);
    let last = exercise.only.map_or(exercise.count, |only| only + 1);
    let next = AtomicU64::new(first);
    let done = Mutex::new(Vec::new());
    let begun = Instant::now();
    let actor = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = begun + ACT_PAUSE * (number - first) as u32;
            while Instant::now() < due && !is_stopped.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_PERIOD.min(due - Instant::now()));
            }
            let is_late = begun.elapsed() > exercise.duration;
            if number >= last || is_late || is_stopped.load(Ordering::Relaxed) {
                return;
            }
            let one = one(exercise, &kinds, number, target, usual);
            // Nobody panics while the list is locked.
            if let Ok(mut done) = done.lock() {
                done.push(one);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..ACTOR_COUNT {
            scope.spawn(actor);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|one| one.act.number);
    done
}

fn one(exercise: &Exercise, kinds: &[Kind], number: u64, target: &Target, usual: &Usual) -> Done {
    let act = draw(kinds, exercise.seed, number, &exercise.url);
    let begun = Instant::now();
    let seen = perform(&act, target);
    let fault = seen.fault(&act.script.allowed, usual.status);
    Done {
        act,
        seen,
        fault,
        took: begun.elapsed(),
    }
}
