//! How commands find this server, and whom it finds in its way.

use super::turn::Keeper;
use super::{ControlChoice, KeeperFailure, KeeperOptions};
use crate::servers::{Company, NoSeat, Origin, Server, ServerRegistration, quoted};

/// Takes the place of what is served among the servers of this user. Where the system refuses one
/// the second value says so; where a server of this config has it, there is no second one.
pub(super) fn take(
    options: &KeeperOptions,
) -> Result<(Option<ServerRegistration>, Option<String>), KeeperFailure> {
    let Some(runtime) = &options.runtime else {
        return Ok((None, None));
    };
    let company = match (&options.origin, &options.control) {
        (Origin::Config(_), ControlChoice::Config) => Company::Alone,
        _ => Company::WithOthers,
    };
    match ServerRegistration::take(runtime, &options.origin, company) {
        Ok(seat) => Ok((Some(seat), None)),
        Err(NoSeat::Refused(reason)) => {
            let text = format!(
                "commands do not find this server by its config: {reason}; they reach it by a \
                 control socket that is named (`control`, --control)"
            );
            Ok((None, Some(text)))
        }
        Err(NoSeat::Taken(Some(other))) => Err(KeeperFailure::System(format!(
            "a hob serves this config already: {}\n  \
             `hob reload {flag}` has it take changes, `hob stop {flag}` ends it\n  \
             `hob serve {own} --control PATH` starts another one beside it, with that socket",
            other.told(),
            flag = other.flag(),
            own = format_args!("--config {}", quoted(options.origin.path())),
        ))),
        Err(NoSeat::Taken(None)) => Err(KeeperFailure::System(format!(
            "another hob is just starting with this config: {}; `hob servers` shows when it runs",
            options.origin.path().display()
        ))),
    }
}

impl Keeper {
    /// Tells of this server as it is now.
    pub(super) fn tell_of_itself(&mut self) {
        let origin = self.options.origin.clone();
        let started = self.started.duration_since(std::time::UNIX_EPOCH);
        let addresses = self.settings.listeners.iter();
        let server = Server {
            pid: std::process::id(),
            user_id: rustix::process::geteuid().as_raw(),
            real_path: origin.real_path(),
            origin,
            control: self
                .control
                .as_ref()
                .map(|control| control.file.path.clone()),
            addresses: addresses.map(|listener| listener.shown.clone()).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix: started.unwrap_or_default().as_secs(),
            generation: self.settings.generation,
        };
        if let Some(Err(error)) = self.seat.as_mut().map(|seat| seat.tell(&server)) {
            tracing::warn!(%error, "what `hob servers` tells of this server stays as it was");
        }
    }
}
