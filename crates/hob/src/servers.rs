//! `hob servers`: those that run, and what commands reach each by.

use std::time::SystemTime;

use hob_keeper::servers::{Origin, Server};
use hob_load::layout;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::args::{ServersOptions, Surroundings};
use crate::table::{TextCell, TextTable, numbers, texts, words};
use crate::{CommandFailure, escape, output};

/// Result of `hob servers --json`.
#[derive(Serialize, JsonSchema)]
struct Servers {
    /// Those that run: of this user, for root of all; first the user's own, the oldest first.
    servers: Vec<Server>,
}

/// Lists them.
pub(crate) fn run(
    options: &ServersOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    if options.schema {
        let schema = layout::schema::<Servers>("result of `hob servers --json`");
        output::line(&format!("{schema:#}"));
        return Ok(());
    }
    if options.reference {
        output::write(&reference());
        return Ok(());
    }
    let servers = surroundings.runtime.servers();
    if options.json {
        output::line(&escape::json(&json!(Servers { servers })));
        return Ok(());
    }
    if servers.is_empty() {
        output::line("none");
        return Ok(());
    }
    output::write(&table(&servers).text(output::width()));
    Ok(())
}

fn table(servers: &[Server]) -> TextTable {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.unwrap_or_default().as_secs();
    let mut table = TextTable::new(&[
        words("pid"),
        words("user"),
        texts("config"),
        texts("addresses"),
        words("version"),
        numbers("up"),
        numbers("generation"),
        texts("control"),
    ]);
    for server in servers {
        let path = server.origin.path().display().to_string();
        let path = match server.origin {
            Origin::Config(_) => path,
            Origin::Folder(_) => format!("{path}/"),
        };
        let control = server.control.as_ref();
        table.push(vec![
            TextCell::text(Some(&server.pid.to_string())),
            TextCell::text(Some(&server.user_id.to_string())),
            TextCell::text(Some(&path)),
            TextCell::text(Some(&server.addresses.join(" "))),
            TextCell::text(Some(&server.version)),
            TextCell::age(Some(now_s.saturating_sub(server.started_unix))),
            TextCell::count(Some(server.generation)),
            TextCell::text(control.map(|path| path.display().to_string()).as_deref()),
        ]);
    }
    table
}

/// The reference page, in Markdown.
fn reference() -> String {
    format!(
        "# The list of servers\n\n\
         `hob servers --json` prints one JSON object with these fields; `hob servers --schema` \
         prints its JSON schema. Every field is always there; those marked *or null* hold null \
         where there is nothing to tell. New fields may be added.\n\n{}",
        layout::table::<Servers>()
    )
}
