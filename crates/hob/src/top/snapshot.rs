//! What the running hob told at one look.

use serde_json::{Value, json};

use crate::Refusal;
use crate::control::Hob;
use crate::facts::Facts;

/// What is asked for beside the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) programs: bool,
    pub(crate) running: bool,
    pub(crate) routes: bool,
}

impl Wanted {
    pub(crate) const ALL: Wanted = Wanted {
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
    pub(crate) fn take(hob: &mut Hob, wanted: Wanted) -> Result<Snapshot, Refusal> {
        let mut part = |is_wanted: bool, name: &str| match is_wanted {
            false => Ok(Value::Null),
            true => {
                let told = hob.get(&format!("/v1/{name}"))?;
                let list = told.get(if name == "running" { "requests" } else { name });
                Ok(list.cloned().unwrap_or(Value::Null))
            }
        };
        let (programs, running, routes) = (
            part(wanted.programs, "programs")?,
            part(wanted.running, "running")?,
            part(wanted.routes, "routes")?,
        );
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
    pub(crate) fn overview(&self) -> Facts<'_> {
        Facts(&self.overview)
    }
}
