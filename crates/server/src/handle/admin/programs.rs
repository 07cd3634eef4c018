//! Programs that stay: what their workers do, and what an operator has them do.

use hob_http::Answered;
use serde_json::{Value, json};

use super::ask::Ask;
use super::{Admin, reply};
use crate::handle::resident::operate::Operation;
use crate::handle::resident::status::programs;
use crate::handle::warm::status::hosts;

/// `GET /v1/programs`
pub(super) fn answer(ask: &Ask) -> Answered {
    Answered::Ready(reply::object(200, &told(&ask.admin)))
}

/// Every program that stays.
pub(super) fn told(admin: &Admin) -> Value {
    let shared = &admin.shared;
    let told = programs(&shared.fleet);
    let pools = told["pools"].as_array().cloned().unwrap_or_default();
    let list: Vec<Value> = pools.iter().map(program).collect();
    json!({
        "programs": list, "hosts": hosts(&shared.hosts),
        "workers": told["workers"], "workers_max": told["workers_max"],
    })
}

/// One program in the words of the API.
fn program(pool: &Value) -> Value {
    let workers = pool["workers"].as_array().cloned().unwrap_or_default();
    let busy = workers.iter().filter(|one| one["state"] == "busy").count();
    let carrier = workers.iter().find_map(|one| one["carrier"].as_str());
    let worker = |one: &Value| {
        json!({
            "pid": one["pid"], "state": one["state"], "requests": one["served"],
            "age_s": one["age_s"], "memory_bytes": one["memory_bytes"],
            "running": one["requests"], "cpu_us": null,
        })
    };
    json!({
        "name": pool["name"], "runs": pool["runs"], "handler": "resident", "carrier": carrier,
        "workers": workers.iter().map(worker).collect::<Vec<_>>(),
        "min": pool["min"], "max": pool["max"], "queued": pool["waiting"], "busy": busy,
        "restarts": pool["crashed"], "started": pool["started"], "growth": pool["growth"],
        "last_error": pool["last_failure"].as_str().filter(|text| !text.is_empty()),
    })
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
