//! What the running hob told at one look.

use serde_json::{Value, json};

use crate::CommandFailure;
use crate::control::Hob;
use crate::facts::JsonView;
use crate::status::programs::visits_name;

/// What is asked for beside the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotSelection {
    pub(crate) programs: bool,
    pub(crate) running: bool,
    pub(crate) routes: bool,
}

impl SnapshotSelection {
    pub(crate) const ALL: SnapshotSelection = SnapshotSelection {
        programs: true,
        running: true,
        routes: true,
    };
}

/// One look. What was not asked for, or is not told, is null.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) overview: Value,
    pub(crate) programs: Value,
    pub(crate) running: Value,
    pub(crate) routes: Value,
}

impl Snapshot {
    /// Asks for it.
    pub(crate) fn take(
        hob: &mut Hob,
        wanted: SnapshotSelection,
    ) -> Result<Snapshot, CommandFailure> {
        let running = part(hob, wanted.running, "running", "requests")?;
        let routes = part(hob, wanted.routes, "routes", "routes")?;
        let programs = programs(hob, wanted.programs)?;
        Ok(Snapshot {
            overview: hob.get("/v1/overview")?,
            programs,
            running,
            routes,
        })
    }

    /// All of it as one document.
    pub(crate) fn json(&self) -> Value {
        json!({
            "overview": self.overview,
            "programs": self.programs,
            "running": self.running,
            "routes": self.routes,
        })
    }

    /// The overview.
    pub(crate) fn overview(&self) -> JsonView<'_> {
        JsonView(&self.overview)
    }
}

/// A list of the API. One that this server does not have is null.
fn part(hob: &mut Hob, is_wanted: bool, path: &str, field: &str) -> Result<Value, CommandFailure> {
    if !is_wanted {
        return Ok(Value::Null);
    }
    let told = hob.ask("GET", &format!("/v1/{path}"))?;
    if told.status == 404 {
        return Ok(Value::Null);
    }
    let mut told = told.told()?;
    let list = told.get_mut(field).map(Value::take);
    Ok(list.unwrap_or(Value::Null))
}

/// Programs; those of visitors, and interpreters that are kept warm, in the same words.
fn programs(hob: &mut Hob, is_wanted: bool) -> Result<Value, CommandFailure> {
    if !is_wanted {
        return Ok(Value::Null);
    }
    let told = hob.ask("GET", "/v1/programs")?;
    if told.status == 404 {
        return Ok(Value::Null);
    }
    let told = told.told()?;
    let mut list = JsonView(&told).list("programs").to_vec();
    list.extend(JsonView(&told).each("visits").map(visits));
    list.extend(JsonView(&told).each("hosts").map(host));
    Ok(list.into())
}

/// A program with a worker for each visitor.
fn visits(visits: JsonView<'_>) -> Value {
    let of = |name| visits.0.get(name).cloned().unwrap_or(Value::Null);
    let is_busy = |visit: &JsonView<'_>| visit.text("state") == Some("busy");
    json!({
        "name": visits_name(visits),
        "handler": "session",
        "busy": visits.each("visits").filter(is_busy).count(),
        "workers": of("visits"),
        "max": of("max"),
    })
}

/// An interpreter as a program of one worker.
fn host(host: JsonView<'_>) -> Value {
    let names = ["interpreter", "dir"];
    let names: Vec<&str> = names.iter().filter_map(|name| host.text(name)).collect();
    let of = |name| host.0.get(name).cloned().unwrap_or(Value::Null);
    let worker = json!({
        "pid": of("pid"),
        "state": of("state"),
        "requests": of("served"),
        "age_s": of("age_s"),
        "memory_bytes": of("memory_bytes"),
        "running": of("running"),
    });
    json!({
        "name": names.join(" in "),
        "handler": "warm",
        "busy": of("running"),
        "workers": [worker],
        "restarts": of("crashes"),
        "last_error": of("last_failure"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_workers_of_their_program() {
        let told = json!({
            "name": "/shop/* shop.py", "max": 100, "peak": 2, "count": 2,
            "visits": [{ "number": 1, "state": "busy" }, { "number": 2, "state": "idle" }],
        });
        let program = visits(JsonView(&told));
        assert_eq!(
            (&program["name"], &program["max"]),
            (&told["name"], &told["max"])
        );
        assert_eq!(program["workers"], told["visits"]);
        assert_eq!(program["busy"], 1);
        let mut old = told;
        old["server_pid"] = 4123.into();
        let name = "/shop/* shop.py, kept by server 4123 of before an upgrade";
        assert_eq!(visits(JsonView(&old))["name"], name);
    }

    #[test]
    fn interpreters_are_programs_of_one_worker() {
        let told = json!({
            "interpreter": "/usr/bin/perl", "dir": "/srv", "state": "ready", "pid": 7,
            "served": 5, "running": 1, "crashes": 2, "last_failure": null,
        });
        let program = host(JsonView(&told));
        assert_eq!(program["name"], "/usr/bin/perl in /srv");
        assert_eq!(program["workers"][0]["requests"], 5);
        assert_eq!(
            (&program["busy"], &program["restarts"]),
            (&json!(1), &json!(2))
        );
    }
}
