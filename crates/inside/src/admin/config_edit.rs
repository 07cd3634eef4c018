//! Changing the config's files: checked first, written in one step, put in force by a reload, and
//! taken back when that is refused. Comments and all else of a file are the visitor's: the text is
//! written as it was given.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_http::{Answered, Response};
use rustix::process::geteuid;
use serde_json::json;

use super::ask::AdminRequest;
use super::configured::{ConfigFileChange, faults, pool, text_hash, why_not};
use super::helm::WishOutcome;
use super::{Admin, reply};
use crate::api::{ConfigChange, ConfigRejection};
use hob_keeper::Wish;
use hob_server::config::{ConfigSources, SCHEMA, load, read_file};

/// Changes that can be gone back to; at one more the oldest is forgotten.
const CHANGES_MAX: usize = 10;

/// `POST /v1/config/apply`
pub(super) fn apply(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let parts = (
            body["path"].as_str(),
            body["text"].as_str(),
            body["base_hash"].as_str(),
        );
        let (Some(path), Some(text), Some(base_hash)) = parts else {
            let text = "give the `path` of a file, its new `text`, and as `base_hash` the `hash` \
                        of the text that was changed";
            return reply::text(400, text);
        };
        ask.note(path);
        let edit = Edit {
            path: PathBuf::from(path),
            text: text.to_owned(),
            base_hash: base_hash.to_owned(),
        };
        match change(&ask, edit).await {
            Ok((text, done)) => {
                let mut configured = ask.admin.configured.lock();
                if configured.changes.len() >= CHANGES_MAX {
                    configured.changes.remove(0);
                }
                configured.changes.push(done);
                drop(configured);
                told(&ask.admin, text)
            }
            Err(refusal) => refusal,
        }
    }))
}

/// `POST /v1/config/rollback`
pub(super) fn roll_back(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let Some(last) = ask.admin.configured.lock().changes.last().cloned() else {
            return reply::text(
                409,
                "nothing was changed from here since the server started",
            );
        };
        ask.note(last.path.display().to_string());
        let edit = Edit {
            path: last.path,
            text: last.before,
            base_hash: last.after_hash,
        };
        match change(&ask, edit).await {
            Ok((text, _)) => {
                ask.admin.configured.lock().changes.pop();
                told(&ask.admin, format!("went back by one change: {text}"))
            }
            Err(refusal) => refusal,
        }
    }))
}

/// A file's new text, and what the old one was.
struct Edit {
    path: PathBuf,
    text: String,
    base_hash: String,
}

/// Why a change is not made: status and words.
type No = (u16, String);

/// Makes a change and has it come into force; else everything is as before.
async fn change(ask: &AdminRequest, edit: Edit) -> Result<(String, ConfigFileChange), Response> {
    if let Some(why) = why_not(ask) {
        return Err(reply::text(403, why));
    }
    let admin = Arc::clone(&ask.admin);
    let Some(_turn) = ConfigEditGuard::take(&admin) else {
        return Err(reply::text(
            409,
            "another change is being made; look at it first",
        ));
    };
    let sources = Arc::clone(&admin.configured.lock().sources);
    let (path, after_hash) = (edit.path.clone(), text_hash(&edit.text));
    let job = pool(ask).run(move || write_checked(&sources, &edit));
    let before = match ask.done(job).await? {
        Ok(before) => before,
        Err(ConfigEditError::No((status, text))) => return Err(reply::text(status, text)),
        Err(ConfigEditError::Faults(rejection)) => {
            return Err(reply::object(422, &json!(rejection)));
        }
    };
    let WishOutcome { is_ok, text } = admin.helm.ask(Wish::Reload).await;
    if is_ok {
        let done = ConfigFileChange {
            path,
            before,
            after_hash,
        };
        return Ok((text, done));
    }
    let restored = pool(ask).run(move || replace(&path, &before));
    let restored = matches!(ask.done(restored).await, Ok(Ok(())));
    let end = match restored {
        true => "the file is as it was before",
        false => "the file could not be put back: look at it",
    };
    Err(reply::text(409, format!("{text}\n{end}")))
}

enum ConfigEditError {
    No(No),
    /// The new text is wrong.
    Faults(ConfigRejection),
}

/// Writes a file whose new text makes a config that is right. Returns the old text.
fn write_checked(sources: &ConfigSources, edit: &Edit) -> Result<String, ConfigEditError> {
    let no = |status: u16, text: String| ConfigEditError::No((status, text));
    if !sources.files().any(|(known, _)| known == edit.path) {
        return Err(no(404, "this file is no part of the config".to_owned()));
    }
    let shown = edit.path.display();
    let fail = |error: std::io::Error| no(409, format!("{shown}: {error}"));
    let found = edit.path.metadata().map_err(fail)?;
    if found.uid() != geteuid().as_raw() {
        let text = format!("{shown} belongs to another user than hob's");
        return Err(no(403, text));
    }
    let before = read_file(&edit.path).map_err(|text| no(409, format!("{shown}: {text}")))?;
    if text_hash(&before) != edit.base_hash {
        let text = format!("{shown} has changed meanwhile; look at it again");
        return Err(no(409, text));
    }
    let edited = sources.edited(&SCHEMA, &edit.path, &edit.text);
    if let Err(errors) = edited.and_then(|sources| load(&sources)) {
        return Err(ConfigEditError::Faults(ConfigRejection {
            text: errors.to_string(),
            faults: faults(errors.faults()),
        }));
    }
    replace(&edit.path, &edit.text).map_err(fail)?;
    Ok(before)
}

/// Puts another text in a file's place, in one step: nobody reads half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize()?;
    let mode = path.metadata()?.mode() & 0o777;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{}.new", std::process::id()));
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        // What the umask took is given back.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        file.sync_all()?;
        std::fs::rename(&beside, &path)?;
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

fn told(admin: &Admin, text: String) -> Response {
    let generation = admin.report.lock().generation;
    reply::object(200, &json!(ConfigChange { text, generation }))
}

/// The one change that may be made at a time.
struct ConfigEditGuard<'a>(&'a Admin);

impl ConfigEditGuard<'_> {
    fn take(admin: &Admin) -> Option<ConfigEditGuard<'_>> {
        let mut configured = admin.configured.lock();
        if configured.is_changing {
            return None;
        }
        configured.is_changing = true;
        drop(configured);
        Some(ConfigEditGuard(admin))
    }
}

impl Drop for ConfigEditGuard<'_> {
    fn drop(&mut self) {
        self.0.configured.lock().is_changing = false;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o606)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o606);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(replace(&folder.path().join("none"), "x").is_err());
    }
}
