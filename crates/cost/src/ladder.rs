//! The rungs measured: each answers the same request so many times, one after the other, over one
//! connection.

use serde_json::Value;

use crate::ask;
use crate::error::CostError;
use crate::load::{ConnectionReuse, MeasuredRequest, ResponseTimes, series};
use crate::private::Private;
use crate::processes::CpuUs;
use crate::rungs::{Rung, RungProgram};
use crate::site::{PLAIN, Records, TIMED};
use crate::stop::InterruptFlag;

/// A rung with what came of it, or why nothing did.
#[derive(Debug, Clone)]
pub(crate) struct RungMeasurement {
    pub(crate) rung: Rung,
    pub(crate) figures: Result<Figures, String>,
}

/// What one request costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) times: ResponseTimes,
    pub(crate) cpu: CpuUs,
}

/// Measures all rungs of a running hob, in their order.
pub(crate) fn measure(
    hob: &Private,
    records: &Records,
    rungs: &[Rung],
    asked: &MeasuredRequest,
    count: u64,
    stop: &InterruptFlag,
) -> Result<Vec<RungMeasurement>, CostError> {
    let mut all = Vec::new();
    for (index, rung) in rungs.iter().enumerate() {
        stop.check()?;
        stop.tell(&format!("as {}, {}", rung.name(), rung.language.word()));
        let path = rung.path(index);
        let figures = match &rung.route {
            Err(reason) => Err(reason.clone()),
            Ok(_) => match refused(hob, records, &path, asked)? {
                Some(reason) => Err(reason),
                None => match missing_carrier(hob, rung) {
                    Some(reason) => Err(reason),
                    None => Ok(figures(hob, &path, asked, count, stop)?),
                },
            },
        };
        if let (Err(reason), "cgi", RungProgram::Script, Ok(_)) =
            (&figures, rung.handler, rung.subject, &rung.route)
        {
            return Err(CostError::Script(format!(
                "{} fails as a CGI program: {reason}",
                rung.file.display()
            )));
        }
        all.push(RungMeasurement {
            rung: rung.clone(),
            figures,
        });
    }
    Ok(all)
}

/// Asks once; says why the answer is none that could be measured.
pub(crate) fn refused(
    hob: &Private,
    records: &Records,
    path: &str,
    asked: &MeasuredRequest,
) -> Result<Option<String>, CostError> {
    let before = records.count();
    let status = ask::status_of(hob.ports[TIMED], path, asked)?;
    Ok(match status {
        200..400 => None,
        status => Some(format!("answered {status}: {}", records.reason(before))),
    })
}

/// Asks so many times.
pub(crate) fn figures(
    hob: &Private,
    path: &str,
    asked: &MeasuredRequest,
    count: u64,
    stop: &InterruptFlag,
) -> Result<Figures, CostError> {
    let url = hob.url(PLAIN, path);
    // The first requests find files that are not in memory, and hosts that have not run the script.
    series(
        &url,
        asked,
        ConnectionReuse::Keep,
        1,
        count.div_ceil(20),
        stop,
    )?;
    let running = hob.resting_programs();
    let before = hob.family.used()?;
    let series = series(&url, asked, ConnectionReuse::Keep, 1, count, stop)?;
    hob.settle(running);
    let cpu = hob.family.used()?.since(&before, series.answered);
    Ok(Figures {
        times: series.times,
        cpu,
    })
}

/// A program that was to take requests over shared memory and has no library for it takes them
/// over a socket: that is another rung.
fn missing_carrier(hob: &Private, rung: &Rung) -> Option<String> {
    let wanted = rung.carrier.filter(|carrier| *carrier == "shm")?;
    let status = ask::programs(&hob.control)?;
    let pools = status["resident"]["pools"]
        .as_array()
        .or(status["pools"].as_array())?;
    let is_served = |worker: &&Value| worker["served"].as_u64().unwrap_or(0) > 0;
    let carries = |pool: &Value| {
        let workers = pool["workers"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let served: Vec<&Value> = workers.iter().filter(is_served).collect();
        served.iter().any(|worker| worker["carrier"] == wanted)
    };
    let name = rung.file.file_name()?.to_str()?;
    let is_its = |pool: &&Value| {
        pool["name"]
            .as_str()
            .is_some_and(|pool| pool.contains(name))
    };
    let its: Vec<&Value> = pools.iter().filter(is_its).collect();
    let is_carried = its.is_empty() || its.iter().any(|pool| carries(pool));
    (!is_carried).then(|| {
        "hob's native parts for this interpreter are not there (make build), so it would be the socket"
            .to_owned()
    })
}
