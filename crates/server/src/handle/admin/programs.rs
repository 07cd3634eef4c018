//! Programs: what they do and use, and what an operator has their workers do.

mod shown;

use std::sync::Arc;

use hob_http::Answered;
use serde_json::json;

use super::ask::Ask;
use super::reply;
use crate::handle::resident::operate::Operation;

pub(super) use shown::told;

/// The lane of the file pool in which `/proc` is read.
const LANE: u64 = u64::MAX - 7;

/// `GET /v1/programs`
pub(super) fn answer(ask: &Ask) -> Answered {
    let admin = Arc::clone(&ask.admin);
    let job = admin.shared.pool.for_lane(LANE);
    let job = job.run(move || told(&admin));
    Answered::Later(Box::pin(async move {
        match job {
            Ok(job) => match job.await {
                Some(value) => reply::object(200, &value),
                None => reply::busy(),
            },
            Err(_) => reply::busy(),
        }
    }))
}

/// `POST /v1/programs/recycle`
pub(super) fn recycle(ask: &Ask) -> Answered {
    operate(ask, Operation::Recycle)
}

/// `POST /v1/programs/stop`
pub(super) fn stop(ask: &Ask) -> Answered {
    operate(ask, Operation::Stop)
}

/// `POST /v1/programs/stack`
pub(super) fn stack(ask: &Ask) -> Answered {
    operate(ask, Operation::Stack)
}

fn operate(ask: &Ask, operation: Operation) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let Some(name) = body["name"].as_str() else {
            return reply::text(400, "give the `name` of a program, and perhaps a `pid`");
        };
        let pid = body["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        ask.note(match pid {
            Some(pid) => format!("{name} {pid}"),
            None => name.to_owned(),
        });
        let pools = ask.admin.shared.fleet.pools();
        let Some(pool) = pools.iter().find(|pool| pool.name() == name) else {
            return reply::text(404, "there is no such program");
        };
        let pids = pool.operate(operation, pid);
        if pids.is_empty() {
            return reply::text(409, "no worker of it is there to be told that now");
        }
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
        reply::object(200, &json!({ "text": text, "pids": pids }))
    }))
}
