//! `hob reload`, `upgrade` and `stop`, and the way to the running hob for every command that asks
//! it something: HTTP over its control socket.

mod event_stream;
mod exchange;
mod find;

use std::time::Duration;

use crate::args::{
    ControlOptions, MaintenanceCommand, RecycleOptions, Surroundings, UpstreamCommand, VisitCommand,
};
use crate::filter::push_encoded;
use crate::{CommandFailure, escape, output};

pub(crate) use event_stream::ServerSentEvent;
pub(crate) use exchange::{Came, ControlAnswer, Hob, Listening, NOBODY};

/// An upgrade may check for 30 s and wait for the new server for 10 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Has the running hob do something and says what came of it.
pub(crate) fn act(
    verb: &str,
    options: &ControlOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let answer = hob(options, surroundings)?.ask("POST", &format!("/v1/{verb}"))?;
    tell(answer, options)
}

/// Has new workers take the places of those of a route.
pub(crate) fn recycle(
    options: &RecycleOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let mut target = "/v1/programs/recycle?route=".to_owned();
    push_encoded(&mut target, &options.route);
    let answer = hob(&options.control, surroundings)?.ask("POST", &target)?;
    tell(answer, &options.control)
}

/// Has a member of an upstream get no new requests, or get them again.
pub(crate) fn upstream(
    command: &UpstreamCommand,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let (verb, options) = match command {
        UpstreamCommand::Drain(options) => ("drain", options),
        UpstreamCommand::Resume(options) => ("resume", options),
    };
    let mut target = format!("/v1/upstreams/{verb}?name=");
    push_encoded(&mut target, &options.name);
    target.push_str("&member=");
    push_encoded(&mut target, &options.member);
    let answer = hob(&options.control, surroundings)?.ask("POST", &target)?;
    tell(answer, &options.control)
}

/// Has sites be down for maintenance, or answer again.
pub(crate) fn maintenance(
    command: &MaintenanceCommand,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let (mut target, options) = match command {
        MaintenanceCommand::On {
            options,
            retry_after,
        } => {
            let retry_s = retry_after.as_secs();
            (format!("/v1/maintenance/on?retry_s={retry_s}&"), options)
        }
        MaintenanceCommand::Off(options) => ("/v1/maintenance/off?".to_owned(), options),
    };
    target.push_str("site=");
    push_encoded(&mut target, options.site.as_deref().unwrap_or_default());
    let answer = hob(&options.control, surroundings)?.ask("POST", &target)?;
    tell(answer, &options.control)
}

/// Ends a visit.
pub(crate) fn visit(
    command: &VisitCommand,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let VisitCommand::End(options) = command;
    let target = format!("/v1/visits/end?number={}", options.number);
    let answer = hob(&options.control, surroundings)?.ask("POST", &target)?;
    tell(answer, &options.control)
}

/// Says what came of it.
pub(crate) fn tell(answer: ControlAnswer, options: &ControlOptions) -> Result<(), CommandFailure> {
    if options.json {
        output::line(&escape::json(&answer.body));
        let text = String::new();
        return if answer.status == 200 {
            Ok(())
        } else {
            Err(CommandFailure { code: 1, text })
        };
    }
    let text = answer.text();
    answer.told()?;
    output::line(&text);
    Ok(())
}

/// The running hob that is meant.
pub(crate) fn hob(
    options: &ControlOptions,
    surroundings: &Surroundings,
) -> Result<Hob, CommandFailure> {
    let (path, user_id) = find::socket(options, surroundings)?;
    let runtime = surroundings.runtime.clone();
    let mut servers = runtime.servers().into_iter();
    let pid = servers.find_map(|one| (one.control.as_ref() == Some(&path)).then_some(one.pid));
    let is_now_at = move || {
        let mut servers = runtime.servers().into_iter();
        servers.find(|one| Some(one.pid) == pid)?.control
    };
    Ok(Hob::new(path, user_id, ANSWER_LIMIT).that_may_move(is_now_at))
}
