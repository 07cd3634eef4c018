//! Which running hob a command means: the one whose control socket is named, the one of the config
//! or folder that is named, the one of `./hob.toml`, the only one that runs. Never a guess.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_keeper::servers::{Server, quoted, servers_of};
use hob_server::config::{self, ConfigSources, Errors, SCHEMA};

use super::Hob;
use crate::CommandFailure;
use crate::args::{ControlOptions, Surroundings};
use crate::serve::USUAL_CONFIG;

/// How long a server may take to say which config it serves.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A control socket, and who must have started what answers there.
type Socket = (PathBuf, Option<u32>);

/// The control socket of the hob that is meant.
pub(super) fn socket(
    options: &ControlOptions,
    surroundings: &Surroundings,
) -> Result<Socket, CommandFailure> {
    if let Some(path) = &options.control {
        return Ok((path.clone(), own_user()));
    }
    let servers = surroundings.runtime.servers();
    if let Some(path) = &options.config {
        return match of(path, &servers)? {
            Some(found) => Ok(found),
            None => named_by_config(path, &servers)?.ok_or_else(|| none_of(path, &servers)),
        };
    }
    let usual = Path::new(USUAL_CONFIG);
    if usual.exists() {
        if let Some(found) = of(usual, &servers)? {
            return Ok(found);
        }
        // A config that is just being edited must not keep us from the server that runs.
        if let Ok(Some(found)) = named_by_config(usual, &servers) {
            return Ok(found);
        }
    }
    only(&servers, usual.exists())
}

/// A user's own, except for root.
fn own_user() -> Option<u32> {
    let user = rustix::process::geteuid();
    (!user.is_root()).then(|| user.as_raw())
}

/// The one that was started with this config or folder.
fn of(path: &Path, servers: &[Server]) -> Result<Option<Socket>, CommandFailure> {
    let found = servers_of(servers, path);
    match found[..] {
        [] => Ok(None),
        [one] => match &one.control {
            Some(control) => Ok(Some((control.clone(), Some(one.user_id)))),
            None => Err(refusal(
                3,
                format!(
                    "the hob of {} has no control socket (`control`, --control): {}; its signals are \
                 HUP (reload), USR2 (upgrade), TERM (stop)",
                    quoted(path),
                    one.told()
                ),
            )),
        },
        _ => {
            let text = format!("several hobs run with {}; say which:", quoted(path));
            Err(refusal(2, format!("{text}{}", choices(&found))))
        }
    }
}

/// A server that tells of itself elsewhere, as one that another account started, is known by the
/// socket that its config names, if it says that it serves just this config.
fn named_by_config(path: &Path, servers: &[Server]) -> Result<Option<Socket>, CommandFailure> {
    if path.is_dir() {
        return Ok(None);
    }
    let refused = |errors: Errors| refusal(2, errors.to_string());
    let sources = ConfigSources::read(&SCHEMA, path, &Surroundings::variable).map_err(refused)?;
    if !sources.sets("control") {
        return Ok(None);
    }
    let (config, _) = config::load(&sources).map_err(refused)?;
    let Some(control) = config.control else {
        return Ok(None);
    };
    let mut hob = Hob::new(control.clone(), own_user(), ANSWER_LIMIT);
    let Ok(answer) = hob.ask("GET", "/v1/status") else {
        return Ok(None);
    };
    let told = answer.told()?;
    let served = told["config"].as_str().unwrap_or("another config");
    let real = std::fs::canonicalize(path).ok();
    if real.is_some_and(|real| real.display().to_string() == served) {
        return Ok(Some((control, own_user())));
    }
    let text = format!(
        "the hob at {}, the control socket of {}, serves {served}",
        control.display(),
        quoted(path)
    );
    Err(refusal(3, format!("{text}{}", choices_beside(servers))))
}

/// The only one that can be asked.
fn only(servers: &[Server], has_config: bool) -> Result<Socket, CommandFailure> {
    let reachable = servers.iter().filter(|server| server.control.is_some());
    let reachable: Vec<&Server> = reachable.collect();
    match reachable[..] {
        [] if !servers.is_empty() => Err(refusal(
            3,
            format!(
                "no hob that runs has a control socket:{}",
                choices_beside(servers)
            ),
        )),
        [] => Err(refusal(
            3,
            match own_user() {
                None => "no hob runs on this machine; `hob serve` starts one".to_owned(),
                Some(_) => {
                    "no hob of yours runs; `hob serve` starts one, `sudo hob servers` lists those \
                        of other users"
                        .to_owned()
                }
            },
        )),
        [one] => {
            if has_config {
                eprintln!(
                    "hob: no hob runs with ./{USUAL_CONFIG}; this is about the only one: {}",
                    one.told()
                );
            }
            let control = one.control.clone().unwrap_or_default();
            Ok((control, Some(one.user_id)))
        }
        _ => {
            let text = "several hobs run; say which one is meant:";
            Err(refusal(2, format!("{text}{}", choices(&reachable))))
        }
    }
}

fn none_of(path: &Path, servers: &[Server]) -> CommandFailure {
    let flag = match path.is_dir() {
        true => "",
        false => "--config ",
    };
    let path = quoted(path);
    let text = format!("no hob runs with {path}; `hob serve {flag}{path}` starts one");
    refusal(3, format!("{text}{}", choices_beside(servers)))
}

fn choices_beside(servers: &[Server]) -> String {
    let others: Vec<&Server> = servers.iter().collect();
    match others.is_empty() {
        true => String::new(),
        false => format!("\nthese run:{}", choices(&others)),
    }
}

/// What is to be typed for each, a line each.
fn choices(servers: &[&Server]) -> String {
    let is_one = |server: &Server| {
        let path = server.origin.path();
        servers
            .iter()
            .filter(|other| other.origin.path() == path)
            .count()
            == 1
    };
    let line = |server: &&Server| {
        let flag = match &server.control {
            Some(control) if !is_one(server) => format!("--control {}", quoted(control)),
            _ => server.flag(),
        };
        let addresses = server.addresses.join(", ");
        format!("\n  {flag}  (process {} on {addresses})", server.pid)
    };
    servers.iter().map(line).collect()
}

fn refusal(code: u8, text: String) -> CommandFailure {
    CommandFailure { code, text }
}
