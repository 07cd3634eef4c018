//! The config in force as the API shows and changes it.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use hob_http::Answered;
use rustix::process::geteuid;
use serde_json::{Value, json};
use similar::TextDiff;

use super::ask::AdminRequest;
use super::{Admin, audit, door, reply};
use crate::api::{ConfigDifference, ConfigFault, ConfigFile, ConfigFiles, ConfigVerdict, Remark};
use hob_keeper::servers::quoted;
use hob_server::cache::disk_threads::DiskThreads;
use hob_server::config::{
    AdminRole, Config, ConfigSources, Diagnostic, SCHEMA, load, read_file, without_secrets,
};

/// The lane of the file pool in which config files are read and written.
const LANE: u64 = u64::MAX - 6;
/// Lines around a difference.
const CONTEXT_LINES: usize = 3;

/// The config in force, and what can be gone back to.
#[derive(Clone)]
pub struct Configured {
    /// The config.
    pub config: Arc<Config>,
    /// What it was made from.
    pub sources: Arc<ConfigSources>,
    /// Changes that were made from here, the newest last.
    pub(super) changes: Vec<ConfigFileChange>,
    /// A change is being made.
    pub(super) is_changing: bool,
}

impl Configured {
    /// A config that nobody has changed from here.
    pub fn new(config: &Arc<Config>, sources: &ConfigSources) -> Configured {
        Configured {
            config: Arc::clone(config),
            sources: Arc::new(sources.clone()),
            changes: Vec::new(),
            is_changing: false,
        }
    }
}

impl Admin {
    /// The file of a config's audit log, open.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn audit_file(config: &Config) -> Result<Option<File>, String> {
        let table = config.admin.as_ref();
        let path = table.and_then(|table| table.audit.as_deref());
        path.map(audit::open).transpose()
    }

    /// A config comes into force; `addresses` are those of its listeners.
    pub fn configure(
        &self,
        config: &Arc<Config>,
        sources: &ConfigSources,
        addresses: &[String],
        audit: Option<File>,
    ) {
        self.audit.set_file(audit);
        self.door.set(door::DoorSettings::of(config, addresses));
        let mut configured = self.configured.lock();
        configured.config = Arc::clone(config);
        configured.sources = Arc::new(sources.clone());
    }
}

/// One change of a file.
#[derive(Clone)]
pub(super) struct ConfigFileChange {
    pub(super) path: PathBuf,
    /// The text before.
    pub(super) before: String,
    /// What the text was that it was changed to.
    pub(super) after_hash: String,
}

/// `GET /v1/config`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let sources = Arc::clone(&ask.admin.configured.lock().sources);
    let why_not = why_not(ask);
    let (is_operator, generation) = (
        ask.visitor.role == AdminRole::Operate,
        ask.admin.report.lock().generation,
    );
    let can_go_back = !ask.admin.configured.lock().changes.is_empty();
    let command = (is_operator && why_not.is_some())
        .then(|| command(ask, &sources))
        .flatten();
    run(ask, move || {
        let files = sources.files().map(|(path, in_force)| {
            let on_disk = read_file(&path).ok();
            let text = on_disk.as_deref().unwrap_or(in_force);
            ConfigFile {
                path: path.display().to_string(),
                text: match is_operator {
                    true => text.to_owned(),
                    false => without_secrets(text),
                },
                hash: text_hash(text),
                in_force: text == in_force,
                on_disk: on_disk.is_some(),
                command: command.as_ref().map(|command| {
                    let file = quoted(&path);
                    format!(
                        "{command} --file {file} --base {} new.toml",
                        text_hash(text)
                    )
                }),
            }
        });
        let answer = ConfigFiles {
            files: files.collect(),
            generation,
            editable: why_not.is_none(),
            why_not,
            can_roll_back: can_go_back,
        };
        (200, json!(answer))
    })
}

/// The begin of what changes the config where hob runs, if it stands in a file.
fn command(ask: &AdminRequest, sources: &ConfigSources) -> Option<String> {
    let (main, _) = sources.files().next().filter(|(path, _)| path.is_file())?;
    let sudo = match ask.admin.report.lock().keeper_uid {
        0 => "sudo ",
        _ => "",
    };
    Some(format!("{sudo}hob config apply --config {}", quoted(&main)))
}

/// Why the visitor may not change the config; `None` when they may.
pub(super) fn why_not(ask: &AdminRequest) -> Option<String> {
    let admin = &ask.admin;
    let configured = admin.configured.lock();
    let may_edit = configured
        .config
        .admin
        .as_ref()
        .is_some_and(|table| table.may_edit);
    let keeper_uid = admin.report.lock().keeper_uid;
    let files = configured.sources.files();
    let why = match () {
        () if ask.visitor.role < AdminRole::Operate => "your role may look and not change things",
        () if ask.visitor.session.is_some() && !may_edit => {
            "the config does not allow it; `edit = true` in `[admin]` would"
        }
        () if keeper_uid == 0 || geteuid().is_root() => {
            "hob was started by root: whoever changed its config could have root run anything. \
             `hob config apply` changes it where hob runs"
        }
        () if !files.into_iter().any(|(path, _)| path.is_file()) => {
            "it stands in no file: hob was told on the command line what to serve"
        }
        () => return None,
    };
    Some(why.to_owned())
}

/// `POST /v1/config/check`
pub(super) fn check(ask: &AdminRequest) -> Answered {
    let is_operator = ask.visitor.role == AdminRole::Operate;
    with_text(ask, move |sources, path, text| {
        let edited = match is_operator {
            true => sources.edited(&SCHEMA, path, text),
            false => sources.edited_by_visitor(&SCHEMA, path, text),
        };
        let edited = edited.and_then(|sources| load(&sources));
        let verdict = match edited {
            Ok((_, warnings)) => ConfigVerdict {
                ok: true,
                faults: Vec::new(),
                warnings: faults(warnings.faults()),
            },
            Err(errors) => ConfigVerdict {
                ok: false,
                faults: faults(errors.faults()),
                warnings: Vec::new(),
            },
        };
        (200, json!(verdict))
    })
}

/// `POST /v1/config/diff`
pub(super) fn diff(ask: &AdminRequest) -> Answered {
    let is_operator = ask.visitor.role == AdminRole::Operate;
    with_text(ask, move |_, path, text| match read_file(path) {
        Ok(before) => {
            let before = match is_operator {
                true => before,
                false => without_secrets(&before),
            };
            let diff = text_difference(&path.display().to_string(), &before, text);
            (200, json!(ConfigDifference { diff }))
        }
        Err(error) => {
            let text = format!("{}: {error}", path.display());
            (409, json!(Remark { text }))
        }
    })
}

/// Does something with the `path` and `text` of the body, where waiting for a disk is allowed.
fn with_text(
    ask: &AdminRequest,
    job: impl FnOnce(&ConfigSources, &std::path::Path, &str) -> (u16, Value) + Send + 'static,
) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let (Some(path), Some(text)) = (body["path"].as_str(), body["text"].as_str()) else {
            return reply::text(400, "give the `path` of a file and its new `text`");
        };
        let sources = Arc::clone(&ask.admin.configured.lock().sources);
        let (path, text) = (PathBuf::from(path), text.to_owned());
        if !sources.files().any(|(known, _)| known == path) {
            return reply::text(404, "this file is no part of the config");
        }
        match run(&ask, move || job(&sources, &path, &text)) {
            Answered::Ready(response) => response,
            Answered::Later(future) => future.await,
        }
    }))
}

/// Runs a job in the file pool; its status and object are the answer.
fn run(ask: &AdminRequest, job: impl FnOnce() -> (u16, Value) + Send + 'static) -> Answered {
    let (ask, job) = (ask.clone(), pool(ask).run(job));
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok((status, value)) => reply::object(status, &value),
            Err(refusal) => refusal,
        }
    }))
}

pub(super) fn pool(ask: &AdminRequest) -> DiskThreads {
    ask.admin.shared.pool.for_lane(LANE)
}

/// Mistakes as the API tells them.
pub(super) fn faults(found: &[Diagnostic]) -> Vec<ConfigFault> {
    found.iter().map(told).collect()
}

fn told(fault: &Diagnostic) -> ConfigFault {
    let text = match fault.hint.is_empty() {
        true => fault.message.clone(),
        false => format!("{} ({})", fault.message, fault.hint),
    };
    let place = &fault.place;
    ConfigFault {
        file: place.file.to_string(),
        line: place.line,
        column: place.column,
        text,
    }
}

/// What would change in a file by another text: a unified diff, empty where nothing does.
pub fn text_difference(name: &str, before: &str, text: &str) -> String {
    let diff = TextDiff::from_lines(before, text);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT_LINES);
    unified.header(name, "changed").to_string()
}

/// What tells one text from another, so that nobody overwrites what they have not seen.
pub fn text_hash(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}-{:x}", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tells_texts_apart() {
        assert_eq!(text_hash("a"), text_hash("a"));
        assert_ne!(text_hash("a"), text_hash("b"));
        assert_ne!(text_hash(""), text_hash("\0"));
    }
}
