//! One run from plan to report: checks the plan, finds the server, starts the threads, looks at
//! the machine when the warm-up ends and when all is over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use hob_machine::Cgroup;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::acts::mixed;
use crate::browse::{Asker, Base};
use crate::check::{check, check_reached};
use crate::conduct::{Conduct, ProgressDisplay};
use crate::draw::Draw;
use crate::entry::{RequestSpec, ResultRows};
use crate::environment::Environment;
use crate::error::LoadError;
use crate::expect::{Expected, expected_of};
use crate::limits::{
    BODY_BYTES_MAX, LOG_WAIT, OTHER_DESCRIPTOR_COUNT, VISITOR_CONNECTION_COUNT,
    VISITOR_STREAM_COUNT,
};
use crate::measure::{Live, Passed, RequestTally, moment, passed};
use crate::plan::{BenchPlan, LoadModel, Protocol, Visit};
use crate::reach::{Probe, reach, tls};
use crate::replay::{AccessLogReader, AccessLogReading, Counts, Feed};
use crate::report::BenchReport;
use crate::request;
use crate::send::{
    Choice, Gates, Pages, PreparedRun, RequestKind, ServerAddress, Share, Thread, h2, h3,
};
use crate::watch::ThreadMonitor;

/// How often it is looked whether a moment has come.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// A moment to begin at that is over by more than this is refused: others have begun long ago.
const BEGIN_LATE_MAX: Duration = Duration::from_secs(1);

/// Makes a run. Interrupted by SIGINT or SIGTERM, it reports what there is so far.
pub fn run(plan: BenchPlan) -> Result<BenchReport, LoadError> {
    run_with(plan, Conduct::default())
}

/// Makes a run, conducted and shown as it is asked for.
pub fn run_with(plan: BenchPlan, conduct: Conduct) -> Result<BenchReport, LoadError> {
    conducted(plan, conduct, stop_at_signals()?, (Probe::Always, None))
}

/// Makes a run, which ends early once the flag is set. A run that fails sets it too. Where the
/// server has one address alone, no connection is made only to see whether it is there: whoever
/// counts what the server does counts the run and nothing else.
pub fn run_until(plan: BenchPlan, is_stopped: Arc<AtomicBool>) -> Result<BenchReport, LoadError> {
    let how = (Probe::Between, None);
    conducted(plan, Conduct::default(), is_stopped, how)
}

/// Makes a run of a closed loop as [`run_until`] does, whose warm-up comes to rest before anything
/// is measured: once it is over, every connection has been open and every request has its answer,
/// it is called, and then the measured time begins, over the connections that there are. What a
/// server has used up to the call belongs to no request that is measured.
pub fn run_rested(
    plan: BenchPlan,
    is_stopped: Arc<AtomicBool>,
    rested: &mut dyn FnMut(),
) -> Result<BenchReport, LoadError> {
    if !matches!(plan.pace, LoadModel::Closed { .. }) {
        let text = "only a closed loop rests: other requests are due when they are";
        return Err(LoadError::Arguments(text.to_owned()));
    }
    if plan.page.is_some() {
        let text = "only single requests rest: a visitor comes back when its page is there";
        return Err(LoadError::Arguments(text.to_owned()));
    }
    let how = (Probe::Between, Some(rested));
    conducted(plan, Conduct::default(), is_stopped, how)
}

/// The same over whatever protocol to this address, whoever the URLs name: what listens there hands
/// on what comes, and counts it.
pub fn run_through(
    plan: BenchPlan,
    relay: SocketAddr,
    is_stopped: Arc<AtomicBool>,
) -> Result<BenchReport, LoadError> {
    let how = (Probe::Never(relay), None);
    conducted(plan, Conduct::default(), is_stopped, how)
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
    whole: BenchPlan,
    conduct: Conduct,
    is_stopped: Arc<AtomicBool>,
    (probe, rested): (Probe, Option<&mut dyn FnMut()>),
) -> Result<BenchReport, LoadError> {
    let (whole, plan) = plans(whole, &conduct)?;
    let cgroup = conduct.cgroup.as_deref().map(Cgroup::find);
    let cgroup = cgroup.transpose().map_err(LoadError::Arguments)?;
    let written = EncodedRequests::new(&plan).map_err(LoadError::Arguments)?;
    let own = plan.entries.iter().map(|entry| &entry.expectations[..]);
    let expected = expected_of(&plan.expectations, own).map_err(LoadError::Arguments)?;
    let log = match &plan.pace {
        LoadModel::Log(replay) => {
            let opened = AccessLogReader::open(replay, plan.threads, conduct.shard);
            Some(opened.map_err(LoadError::Arguments)?)
        }
        _ => None,
    };
    raise_descriptors(&plan)?;
    let address = reach(&plan, probe)?;
    check_reached(&plan, &address)?;
    let tls = tls(&plan, &address)?;
    // Before the run begins: whoever waits for the first lines is not late with them.
    let log = log.map(begin_log).transpose()?;
    if let Some(moment) = conduct.start_at {
        wait_until(moment, &is_stopped)?;
    }
    let mut prepared = prepare(&plan, written, expected, address, is_stopped);
    if rested.is_some() {
        prepared.warm_ns = AtomicU64::new(u64::MAX);
    }
    prepared.live = Live::new(
        prepared.warm_up_ns,
        conduct.view != ProgressDisplay::Nothing,
    );
    prepared.tls = tls;
    let begun_at = SystemTime::now();
    let watched = (cgroup.as_ref(), rested);
    let measured = measure(&plan, &prepared, &conduct, watched, log)?;
    let RunMeasurement {
        tally,
        machine,
        stopped,
        log,
    } = measured;
    let is_interrupted = stopped.is_none() && prepared.is_stopped.load(Ordering::Relaxed);
    if let (Some(counts), LoadModel::Log(replay), 0) = (&log, &plan.pace, tally.due)
        && !is_interrupted
        && conduct.shard.is_none()
    {
        return Err(LoadError::Arguments(replay.nothing(counts)));
    }
    if tally.due > 0 && tally.is_unheard() && !is_interrupted && stopped.is_none() {
        let first = tally.failures.all().next();
        let (kind, _, example) = first.unwrap_or(("unanswered", 0, ""));
        return Err(LoadError::Server(format!(
            "{}: no request was answered; the first failure was {kind}: {example}",
            plan.entries[0].url.text
        )));
    }
    Ok(BenchReport {
        plan: whole,
        conduct,
        environment: Environment::look(),
        stopped,
        address: prepared.address.to_string(),
        tally,
        machine,
        log,
        warm_ns: prepared.warm_ns(),
        end_ns: prepared.end_ns(),
        is_interrupted,
        begun_at,
    })
}

/// Begins to read a log, and waits for its first lines.
fn begin_log(
    (reader, mut feeds): (AccessLogReader, Vec<Feed>),
) -> Result<(AccessLogReading, Vec<Feed>), LoadError> {
    let reading =
        AccessLogReading::begin(reader).map_err(LoadError::system("cannot start a thread"))?;
    let until = Instant::now() + LOG_WAIT;
    feeds.iter_mut().for_each(|feed| feed.begin(until));
    Ok((reading, feeds))
}

/// The whole plan with all that is asked for, and the part of it that is carried out here.
fn plans(whole: BenchPlan, conduct: &Conduct) -> Result<(BenchPlan, BenchPlan), LoadError> {
    let whole = mixed(whole)?;
    let plan = part_of(&whole, conduct);
    check(&plan)?;
    Ok((whole, plan))
}

/// The part of a plan that is carried out here, where several machines share it.
fn part_of(whole: &BenchPlan, conduct: &Conduct) -> BenchPlan {
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

/// The requests as the protocol has them.
#[derive(Default)]
struct EncodedRequests {
    h1: Vec<request::H1Request>,
    fields: Vec<request::Fields>,
}

impl EncodedRequests {
    fn new(plan: &BenchPlan) -> Result<EncodedRequests, String> {
        let mut written = EncodedRequests::default();
        let mut body_bytes = 0;
        for entry in &plan.entries {
            let own = plan.body_of(entry).map_or(0, <[u8]>::len) as u64;
            body_bytes += own;
            if own > BODY_BYTES_MAX || body_bytes > BODY_BYTES_MAX {
                return Err(format!(
                    "the bodies of all requests have at most {BODY_BYTES_MAX} bytes together"
                ));
            }
            match plan.protocol {
                Protocol::H1 => written.h1.push(request::write(plan, entry)?),
                _ => written.fields.push(request::fields(plan, entry)?),
            }
        }
        Ok(written)
    }
}

fn prepare(
    plan: &BenchPlan,
    written: EncodedRequests,
    expected: Vec<Arc<Expected>>,
    address: ServerAddress,
    is_stopped: Arc<AtomicBool>,
) -> PreparedRun {
    let warm_ns = plan.warm_up.as_nanos() as u64;
    let (think, rate) = match &plan.pace {
        LoadModel::Closed { think } => (*think, None),
        LoadModel::Open { rate, .. } => (Duration::ZERO, Some(rate.clone())),
        LoadModel::Log(_) => (Duration::ZERO, None),
    };
    let rows = ResultRows::of(&plan.entries);
    let kinds = kinds(plan, &rows, expected);
    let fields_wanted = kinds[0].expected.fields.clone();
    let h2 = (plan.protocol == Protocol::H2).then(|| {
        let fields: Vec<_> = written.fields.iter().map(Vec::as_slice).collect();
        h2::Common {
            requests: h2::H2Requests::new(&fields),
            asks: asks(plan, &kinds),
            known: match plan.page {
                None => h2::HpackContext::new(&fields_wanted),
                Some(_) => h2::HpackContext::new(&[]).keeping(),
            },
        }
    });
    let h3 = (plan.protocol == Protocol::H3).then(|| {
        let known = match plan.page {
            None => h3::QpackContext::new(&fields_wanted),
            Some(_) => h3::QpackContext::new(&[]).keeping(),
        };
        h3::Common::new(&written.fields, asks(plan, &kinds), known)
    });
    PreparedRun {
        protocol: plan.protocol,
        streams: match (plan.page, plan.protocol) {
            (Some(_), Protocol::H2 | Protocol::H3) => VISITOR_STREAM_COUNT,
            _ => plan.streams,
        },
        pages: plan.page.map(|visit| Pages {
            bases: plan
                .entries
                .iter()
                .map(|entry| Base::of(&entry.url))
                .collect(),
            asker: Asker::new(plan),
            has_cache: visit == Visit::Warm,
        }),
        choice: choice(plan),
        kinds,
        class_count: rows.first.len(),
        requests: written.h1,
        h2,
        h3,
        address,
        is_open: !matches!(plan.pace, LoadModel::Closed { .. }),
        reuse: plan.reuse,
        tls: None,
        has_resumption: !plan.is_resumption_off,
        think_ns: think.as_nanos() as u64,
        acts: plan.acts.clone(),
        seed: plan.seed,
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

fn kinds(plan: &BenchPlan, rows: &ResultRows, expected: Vec<Arc<Expected>>) -> Vec<RequestKind> {
    let all = plan.entries.iter().zip(&rows.of_entry).zip(expected);
    all.map(|((entry, row), expected)| RequestKind {
        class: *row,
        is_head: plan.method_of(entry) == "HEAD",
        expected,
    })
    .collect()
}

/// What connections that carry several requests need to know of each kind.
fn asks(plan: &BenchPlan, kinds: &[RequestKind]) -> Vec<request::RequestProfile> {
    let of_plan: Arc<[u8]> = plan.body.as_deref().unwrap_or_default().into();
    let ask = |(entry, kind): (&RequestSpec, &RequestKind)| request::RequestProfile {
        body: match (&entry.body, plan.body_of(entry)) {
            (Some(own), _) => own.clone(),
            (None, Some(_)) => of_plan.clone(),
            (None, None) => Arc::new([]),
        },
        is_head: kind.is_head,
        is_hashed: kind.expected.hash.is_some(),
    };
    plan.entries.iter().zip(kinds).map(ask).collect()
}

/// In turn, unless some are to come more often than others.
fn choice(plan: &BenchPlan) -> Choice {
    let weights: Vec<f64> = plan.entries.iter().map(|entry| entry.weight).collect();
    // What is HEAD is drawn, also where half of all is.
    let is_mixed = plan.acts.head_percent > 0.0;
    match !is_mixed && weights.iter().all(|weight| *weight == weights[0]) {
        true => Choice::InTurn,
        false => Choice::Drawn(Draw::new(&weights), plan.seed),
    }
}

/// Lets this process have a descriptor for each connection.
fn raise_descriptors(plan: &BenchPlan) -> Result<(), LoadError> {
    let each = match (plan.page, plan.protocol) {
        (Some(_), Protocol::H1) => VISITOR_CONNECTION_COUNT,
        _ => 1,
    };
    let connections = plan.connections * each;
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

/// What came of the threads.
struct RunMeasurement {
    tally: RequestTally,
    machine: Passed,
    stopped: Option<String>,
    log: Option<Counts>,
}

/// Runs the threads and puts together what they counted.
fn measure(
    plan: &BenchPlan,
    prepared: &PreparedRun,
    conduct: &Conduct,
    (cgroup, rested): (Option<&Cgroup>, Option<&mut dyn FnMut()>),
    log: Option<(AccessLogReading, Vec<Feed>)>,
) -> Result<RunMeasurement, LoadError> {
    let (ended, ends) = channel();
    let (gates, mut gate) = Gates::new(plan.threads);
    let has_rest = rested.is_some();
    std::thread::scope(|scope| {
        let (reading, feeds) = log.unzip();
        let mut feeds = feeds.unwrap_or_default().into_iter();
        let mut threads = Vec::new();
        for number in 0..plan.threads {
            let share = Share::of(plan, number, conduct.shard, feeds.next());
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
        let mut watch = ThreadMonitor::new(plan, prepared, conduct, &ends);
        let before = match rested {
            Some(rested) => {
                gates.wait();
                rested();
                let before = moment(plan.pid, cgroup);
                gates.open();
                before
            }
            None => {
                watch.until(Some(plan.warm_up));
                moment(plan.pid, cgroup)
            }
        };
        watch.until(None);
        let after = moment(plan.pid, cgroup);
        let stopped = watch.finish();
        let mut whole = RequestTally::new(prepared.class_count, prepared.step_count(), 0);
        for thread in threads {
            let counted = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            whole.merge(counted.map_err(LoadError::system("cannot run a thread"))?);
        }
        Ok(RunMeasurement {
            tally: whole,
            machine: passed(&before, &after),
            stopped,
            log: reading.map(AccessLogReading::end),
        })
    })
}
