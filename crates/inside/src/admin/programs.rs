//! Programs: what they do and use, and what an operator has their workers do.

mod shown;

use std::sync::Arc;

use hob_http::Answered;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::reply;
use crate::api::OperationOutcome;
use hob_server::handle::resident::operate::Operation;
use hob_server::handle::resident::pool::Pool;

pub(super) use shown::told;

/// The lane of the file pool in which `/proc` is read.
pub(super) const LANE: u64 = u64::MAX - 7;

/// `GET /v1/programs`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let admin = Arc::clone(&ask.admin);
    let job = admin.shared.pool.for_lane(LANE);
    let job = job.run(move || told(&admin));
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let done = ask.done(job).await;
        done.map_or_else(|refusal| refusal, |value| reply::object(200, &value))
    }))
}

/// `POST /v1/programs/recycle`
pub(super) fn recycle(ask: &AdminRequest) -> Answered {
    operate(ask, Operation::Recycle)
}

/// `POST /v1/programs/stop`
pub(super) fn stop(ask: &AdminRequest) -> Answered {
    operate(ask, Operation::Stop)
}

/// `POST /v1/programs/stack`
pub(super) fn stack(ask: &AdminRequest) -> Answered {
    operate(ask, Operation::Stack)
}

/// `POST /v1/visits/end`
pub(super) fn end_visit(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let said = ask.query("number").and_then(|text| text.parse().ok());
        let Some(number) = body["number"].as_u64().or(said) else {
            return reply::text(400, "give the `number` of a visit");
        };
        ask.note(number.to_string());
        let shared = Arc::clone(&ask.admin.shared);
        let job = shared.pool.for_lane(LANE);
        // It may be with a server before this one.
        match ask
            .done(job.run(move || shared.end_any_visit(number)))
            .await
        {
            Ok(true) => reply::text(200, format!("visit {number} ends")),
            Ok(false) => reply::text(404, format!("there is no visit {number}")),
            Err(refusal) => refusal,
        }
    }))
}

/// The number of a process; what is none does not mean all of them.
fn pid_of(told: &Value) -> Option<u32> {
    u32::try_from(told.as_u64()?).ok()
}

fn operate(ask: &AdminRequest, operation: Operation) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let route = ask.query("route");
        let pools = ask.admin.shared.fleet.pools();
        let chosen: Vec<_> = match (body["name"].as_str(), &route) {
            (Some(name), _) => pools.iter().filter(|pool| pool.name() == name).collect(),
            (None, Some(route)) => pools.iter().filter(|pool| pool.is_of(route)).collect(),
            (None, None) => {
                let wanted = "give the `name` of a program, and perhaps a `pid`, or a `route`";
                return reply::text(400, wanted);
            }
        };
        let pid = match body.get("pid").map(pid_of) {
            None => None,
            Some(Some(pid)) => Some(pid),
            Some(None) => return reply::text(400, "`pid` is the number of a worker's process"),
        };
        let name = body["name"].as_str().or(route.as_deref());
        let name = name.unwrap_or_default();
        let shared = &ask.admin.shared;
        // Nothing else is done to programs of `run`, and that to all of their processes.
        let runs = match operation {
            Operation::Recycle if pid.is_none() => shared.runs.recycle(name, &shared.fleet),
            _ => Vec::new(),
        };
        ask.note(match pid {
            Some(pid) => format!("{name} {pid}"),
            None => name.to_owned(),
        });
        if chosen.is_empty() && runs.is_empty() {
            let text = nobody_meant(&ask, &pools, operation);
            return reply::text(404, text);
        }
        let told = chosen.iter().map(|pool| pool.operate(operation, pid));
        let pids = match told_pids(told.flatten().collect(), runs) {
            Ok(pids) => pids,
            Err(why) => return reply::text(409, why),
        };
        let all = pids
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let text = match operation {
            Operation::Recycle => format!("others take the places of {all} once they are ready"),
            Operation::Stop => format!("{all} take no more requests and end when they are done"),
            Operation::Stack => format!(
                "{all} were sent SIGTERM: hosts of hob print their stacks to the log and end, and \
                 others take their places"
            ),
        };
        reply::object(200, &json!(OperationOutcome { text, pids }))
    }))
}

/// The ids of workers that were told, and of processes of `run`; else why there are none.
fn told_pids(mut pids: Vec<u32>, runs: Vec<Result<Vec<u32>, String>>) -> Result<Vec<u32>, String> {
    let mut why = "no worker of it is there to be told that now".to_owned();
    for recycled in runs {
        match recycled {
            Ok(more) => pids.extend(more),
            Err(refused) => why = refused,
        }
    }
    match pids.is_empty() {
        true => Err(why),
        false => Ok(pids),
    }
}

/// Who could have been meant.
fn nobody_meant(ask: &AdminRequest, pools: &[Arc<Pool>], operation: Operation) -> String {
    let of_runs = match operation {
        Operation::Recycle => ask.admin.shared.runs.names(),
        Operation::Stop | Operation::Stack => Vec::new(),
    };
    let names = pools.iter().map(|pool| pool.name());
    let names: Vec<_> = names.chain(of_runs.iter().map(String::as_str)).collect();
    match names[..] {
        [] => "there is no such program: none stays (`resident`)".to_owned(),
        _ => format!(
            "there is no such program; those that stay are {}",
            names.join(", ")
        ),
    }
}
