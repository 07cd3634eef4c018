//! `hob bench`: makes requests and measures how they are answered. Makes a plan of the arguments;
//! everything else is in `hob_load`.

mod list;
mod tell;

use std::io::IsTerminal;
use std::time::Duration;

use hob_load::arrive::Arrivals;
use hob_load::{
    BenchPlan, ClientActs, ClientTlsOffer, Conduct, LoadError, LoadModel, ProgressDisplay,
    Protocol, Replay, Reuse, Threshold, Visit, limits, parse_cpus,
};

use crate::args::{BenchCommand, BenchOptions, Gaps, Handshake, HttpVersion, Surroundings};
use crate::request::{body, field, wrong};
use crate::{CommandFailure, output};
use tell::ResultFiles;

/// Measured time when nothing was said.
const DURATION: Duration = Duration::from_secs(10);
/// Warm-up of a run over time.
const WARM_UP: Duration = Duration::from_secs(1);
/// Connections of a closed and of an open loop.
const CLOSED_CONNECTIONS: usize = 10;
const OPEN_CONNECTIONS: usize = 100;

/// Exit codes beside those of all commands.
const CROSSED: u8 = 4;
const STOPPED: u8 = 5;
/// How often a line says how far a run is, where nobody watches and where somebody asks for lines.
const LOG_PERIOD: Duration = Duration::from_secs(10);
const PLAIN_PERIOD: Duration = Duration::from_secs(1);

/// Makes the run and prints what came of it.
pub(crate) fn run(
    options: BenchOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    if let Some(BenchCommand::Merge(merge)) = &options.command {
        return tell::merge(merge);
    }
    if let Some(files) = &options.compare {
        return tell::compare(files, &options.fail_if, options.json);
    }
    if options.schema {
        output::line(&format!("{:#}", hob_load::schema()));
        return Ok(());
    }
    if options.reference {
        output::write(&hob_load::reference());
        return Ok(());
    }
    let is_json = options.json;
    let files = ResultFiles::new(options.html.as_deref(), options.hdr.as_deref())?;
    let conduct = conduct(&options, surroundings);
    let report = hob_load::run_with(plan(options)?, conduct).map_err(refusal)?;
    if is_json {
        output::line(&report.json().to_string());
    } else {
        output::write(&report.table());
    }
    files.write(&report.written())?;
    // The report says why.
    let failed = |code| {
        let text = String::new();
        Err(CommandFailure { code, text })
    };
    match (report.is_stopped(), report.has_failed()) {
        (true, _) => failed(STOPPED),
        (false, true) => failed(CROSSED),
        (false, false) => Ok(()),
    }
}

fn conduct(options: &BenchOptions, surroundings: &Surroundings) -> Conduct {
    let arguments = surroundings.arguments.iter();
    let view = match (options.plain, std::io::stderr().is_terminal()) {
        (true, _) => ProgressDisplay::Lines(PLAIN_PERIOD),
        (false, true) => ProgressDisplay::Screen,
        (false, false) => ProgressDisplay::Lines(LOG_PERIOD),
    };
    Conduct {
        command: arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        cgroup: options.cgroup.clone(),
        stops: options.stop_if.clone(),
        shard: options.shard,
        start_at: options.start_at,
        view,
    }
}

fn plan(options: BenchOptions) -> Result<BenchPlan, CommandFailure> {
    let is_open = options.rate.is_some() || options.replay.is_some();
    let is_log = options.replay.is_some();
    let protocol = protocol(&options);
    let pace = pace(&options);
    let page = page(&options);
    let warm_up = warm_up(&options);
    let usual = if is_open {
        OPEN_CONNECTIONS
    } else {
        CLOSED_CONNECTIONS
    };
    let cpus = options.cpus.as_deref().map(parse_cpus).transpose();
    let cpus = cpus
        .map_err(|text| wrong(format!("--cpus: {text}")))?
        .unwrap_or_default();
    let body = options
        .body
        .as_deref()
        .map(|path| body(path, limits::BODY_BYTES_MAX))
        .transpose()?;
    let method = match (options.method.clone(), &body) {
        (Some(method), _) => method,
        (None, Some(_)) => "POST".to_owned(),
        (None, None) => "GET".to_owned(),
    };
    let fields = options.header.iter().map(|text| field(text));
    let fields = fields.collect::<Result<_, _>>()?;
    // A log has an end of its own.
    let is_timed = (options.count.is_none() && !is_log) || options.duration.is_some();
    let entries = match &pace {
        LoadModel::Log(replay) => list::of_log(&options, replay, body.as_deref())?,
        _ => list::entries(&options)?,
    };
    let thresholds = thresholds(&options)?;
    Ok(BenchPlan {
        entries,
        seed: options.seed,
        acts: acts(&options),
        page,
        unix: options.unix,
        protocol,
        streams: options.streams,
        pace,
        connections: options.connections.unwrap_or(usual),
        sources: options.sources,
        reuse: if options.close {
            Reuse::PerRequest
        } else {
            Reuse::KeepAlive
        },
        is_insecure: options.insecure,
        terms: ClientTlsOffer::default(),
        is_resumption_off: options.full_handshakes || options.tls == Handshake::Full,
        threads: options.threads.unwrap_or(cpus.len().max(1)),
        cpus,
        warm_up,
        duration: is_timed.then(|| options.duration.unwrap_or(DURATION)),
        count: options.count,
        timeout: options.timeout,
        method,
        fields,
        body,
        expectations: options.expect,
        thresholds,
        pid: options.pid,
    })
}

fn acts(options: &BenchOptions) -> ClientActs {
    ClientActs {
        head_percent: options.head,
        break_percent: options.break_off,
        read_rate: options.read_rate,
        is_varied: options.vary,
    }
}

fn thresholds(options: &BenchOptions) -> Result<Vec<Threshold>, CommandFailure> {
    let parsed = |text: &String| {
        text.parse()
            .map_err(|text| wrong(format!("--fail-if: {text}")))
    };
    options.fail_if.iter().map(parsed).collect()
}

/// Whoever is to come again must have been there first, also where pages are counted.
fn warm_up(options: &BenchOptions) -> Duration {
    let is_usual = options.count.is_none() && options.replay.is_none();
    let is_needed = is_usual || options.warm && options.rate.is_some();
    let usual = if is_needed { WARM_UP } else { Duration::ZERO };
    options.warm_up.unwrap_or(usual)
}

fn page(options: &BenchOptions) -> Option<Visit> {
    options.page.then_some(match options.warm {
        true => Visit::Warm,
        false => Visit::Cold,
    })
}

fn pace(options: &BenchOptions) -> LoadModel {
    if let Some(file) = &options.replay {
        return LoadModel::Log(Replay {
            file: file.clone(),
            speed_up: options.speed_up,
            methods: options.replay_methods.clone(),
        });
    }
    match options.rate.clone() {
        None => LoadModel::Closed {
            think: options.think.unwrap_or_default(),
        },
        Some(rate) => LoadModel::Open {
            rate,
            arrivals: match options.arrivals {
                Gaps::Constant => Arrivals::Constant,
                Gaps::Poisson => Arrivals::Poisson,
            },
        },
    }
}

fn protocol(options: &BenchOptions) -> Protocol {
    match options.http {
        _ if options.http2 => Protocol::H2,
        _ if options.http3 => Protocol::H3,
        HttpVersion::One => Protocol::H1,
        HttpVersion::Two => Protocol::H2,
        HttpVersion::Three => Protocol::H3,
    }
}

fn refusal(error: LoadError) -> CommandFailure {
    let code = match error {
        LoadError::Arguments(_) => 2,
        LoadError::Server(_) | LoadError::System { .. } => 1,
    };
    CommandFailure {
        code,
        text: error.to_string(),
    }
}
