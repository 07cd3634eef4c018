//! `hob bench`: makes requests and measures how they are answered. Makes a plan of the arguments;
//! everything else is in `hob_load`.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use hob_load::arrive::Arrivals;
use hob_load::{LoadError, Pace, Plan, Protocol, Reuse, limits, parse_cpus};

use crate::Refusal;
use crate::args::{BenchOptions, Gaps, Handshake, HttpVersion};

/// Measured time when nothing was said.
const DURATION: Duration = Duration::from_secs(10);
/// Warm-up of a run over time.
const WARM_UP: Duration = Duration::from_secs(1);
/// Connections of a closed and of an open loop.
const CLOSED_CONNECTIONS: usize = 10;
const OPEN_CONNECTIONS: usize = 100;

/// Makes the run and prints what came of it.
pub(crate) fn run(options: BenchOptions) -> Result<(), Refusal> {
    if options.schema {
        println!("{:#}", hob_load::schema());
        return Ok(());
    }
    if options.reference {
        print!("{}", hob_load::reference());
        return Ok(());
    }
    let is_json = options.json;
    let report = hob_load::run(plan(options)?).map_err(refusal)?;
    if is_json {
        println!("{}", report.json());
    } else {
        print!("{}", report.table());
    }
    if report.has_failed() {
        // The report says which.
        let text = String::new();
        return Err(Refusal { code: 4, text });
    }
    Ok(())
}

fn plan(options: BenchOptions) -> Result<Plan, Refusal> {
    let is_open = options.rate.is_some();
    let protocol = protocol(&options);
    let pace = match options.rate {
        None => Pace::Closed {
            think: options.think.unwrap_or_default(),
        },
        Some(rate) => Pace::Open {
            rate,
            arrivals: match options.arrivals {
                Gaps::Constant => Arrivals::Constant,
                Gaps::Poisson => Arrivals::Poisson,
            },
            seed: options.seed,
        },
    };
    let usual = if is_open {
        OPEN_CONNECTIONS
    } else {
        CLOSED_CONNECTIONS
    };
    let cpus = options.cpus.as_deref().map(parse_cpus).transpose();
    let cpus = cpus
        .map_err(|text| wrong(format!("--cpus: {text}")))?
        .unwrap_or_default();
    let body = options.body.as_deref().map(body).transpose()?;
    let method = match (options.method, &body) {
        (Some(method), _) => method,
        (None, Some(_)) => "POST".to_owned(),
        (None, None) => "GET".to_owned(),
    };
    let is_timed = options.count.is_none() || options.duration.is_some();
    Ok(Plan {
        urls: options.urls,
        unix: options.unix,
        protocol,
        streams: options.streams,
        pace,
        connections: options.connections.unwrap_or(usual),
        reuse: if options.close {
            Reuse::PerRequest
        } else {
            Reuse::KeepAlive
        },
        is_insecure: options.insecure,
        is_resumption_off: options.full_handshakes || options.tls == Handshake::Full,
        threads: options.threads.unwrap_or(cpus.len().max(1)),
        cpus,
        warm_up: options.warm_up.unwrap_or(if options.count.is_none() {
            WARM_UP
        } else {
            Duration::ZERO
        }),
        duration: is_timed.then(|| options.duration.unwrap_or(DURATION)),
        count: options.count,
        timeout: options.timeout,
        method,
        fields: options
            .header
            .iter()
            .map(|text| field(text))
            .collect::<Result<_, _>>()?,
        body,
        expectations: options.expect,
        thresholds: options.fail_if,
        pid: options.pid,
    })
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

fn field(text: &str) -> Result<(String, String), Refusal> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| wrong(format!("--header {text:?}: write NAME:VALUE")))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body(path: &Path) -> Result<Vec<u8>, Refusal> {
    let unread = |error| {
        wrong(format!(
            "--body {}: cannot read it: {error}",
            path.display()
        ))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    // One byte more than allowed is enough to refuse it.
    let mut file = file.take(limits::BODY_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

fn refusal(error: LoadError) -> Refusal {
    let code = match error {
        LoadError::Arguments(_) => 2,
        LoadError::Server(_) | LoadError::System { .. } => 1,
    };
    Refusal {
        code,
        text: error.to_string(),
    }
}

fn wrong(text: String) -> Refusal {
    Refusal { code: 2, text }
}
