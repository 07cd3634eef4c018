//! `hob config`: another text for a file of a config that is in force. It is checked first, put in
//! the file's place in one step, and taken back where the server refuses it.
//!
//! The file is the truth: the server is told no more than to read it again. So where root has
//! started hob, root alone changes its config, and nothing that root runs takes a text from the
//! server.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hob_inside::admin::{text_difference, text_hash};
use hob_server::config::{self, ConfigSources, SCHEMA, TEXT_BYTES_MAX, read_file};

use crate::args::{ConfigApplyOptions, ConfigCommand, Surroundings};
use crate::args::{ConfigChangeOptions, ControlOptions};
use crate::serve::USUAL_CONFIG;
use crate::{CommandFailure, control, output};

/// Changes a config, or takes the last change back.
pub(crate) fn run(
    command: &ConfigCommand,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    match command {
        ConfigCommand::Apply(options) => apply(options, surroundings),
        ConfigCommand::Rollback(options) => roll_back(options, surroundings),
    }
}

fn apply(options: &ConfigApplyOptions, surroundings: &Surroundings) -> Result<(), CommandFailure> {
    let change = Change::begin(&options.change)?;
    if let Some(base) = &options.base
        && *base != text_hash(&change.before)
    {
        let file = change.file.display();
        return Err(refused(format!(
            "{file} has changed since {base} was told of it; look at it again"
        )));
    }
    let text = new_text(&options.new)?;
    change.make(text, surroundings)
}

fn roll_back(
    options: &ConfigChangeOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let change = Change::begin(options)?;
    let kept = change.kept();
    let text = read_file(&kept).map_err(|error| {
        let kept = kept.display();
        refused(format!(
            "{kept}: {error}; nothing was applied that could be taken back"
        ))
    })?;
    change.make(text, surroundings)
}

/// A file of a config that is to have another text.
struct Change<'a> {
    options: &'a ConfigChangeOptions,
    sources: ConfigSources,
    file: PathBuf,
    before: String,
}

impl Change<'_> {
    fn begin(options: &ConfigChangeOptions) -> Result<Change<'_>, CommandFailure> {
        let ControlOptions { config, .. } = &options.control;
        let main = config.as_deref().unwrap_or(Path::new(USUAL_CONFIG));
        let sources =
            ConfigSources::read(&SCHEMA, main, &Surroundings::variable).map_err(|errors| {
                wrong(format!("{errors}\nhob: --config FILE names another config"))
            })?;
        let file = options.file.as_deref().unwrap_or(main);
        let unread = |error: io::Error| wrong(format!("{}: {error}", file.display()));
        let file = fs::canonicalize(file).map_err(unread)?;
        let is_that = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path == file);
        if !sources.files().any(|(path, _)| is_that(&path)) {
            let text = format!("{} is no file of {}", file.display(), main.display());
            return Err(wrong(text));
        }
        let before =
            read_file(&file).map_err(|error| refused(format!("{}: {error}", file.display())))?;
        Ok(Change {
            options,
            sources,
            file,
            before,
        })
    }

    /// Where the text from before a change is kept.
    fn kept(&self) -> PathBuf {
        let mut kept = self.file.clone().into_os_string();
        kept.push(".before");
        kept.into()
    }

    /// Shows it, makes it and has it come into force; else everything is as before.
    fn make(&self, text: String, surroundings: &Surroundings) -> Result<(), CommandFailure> {
        let name = self.file.display();
        let edited = self.sources.edited(&SCHEMA, &self.file, &text);
        match edited.and_then(|sources| config::load(&sources)) {
            Ok((_, warnings)) if warnings.is_empty() => {}
            Ok((_, warnings)) => eprintln!("{warnings}"),
            Err(errors) => return Err(wrong(format!("{name} is as it was:\n{errors}"))),
        }
        let is_json = self.options.control.json;
        if !is_json {
            output::write(&text_difference(&name.to_string(), &self.before, &text));
        }
        if self.options.dry_run {
            return Ok(());
        }
        // Who cannot be told has nothing changed.
        let mut hob = control::hob(&self.options.control, surroundings)?;
        let failed =
            |what: &Path, error: io::Error| refused(format!("{}: {error}", what.display()));
        let kept = self.kept();
        let kept_before = fs::read(&kept).ok();
        let mode = fs::metadata(&self.file).map_err(|error| failed(&self.file, error))?;
        crate::replace::replace(&kept, self.before.as_bytes())
            .and_then(|()| fs::set_permissions(&kept, mode.permissions()))
            .map_err(|error| failed(&kept, error))?;
        let put = |path: &Path, text: &[u8]| crate::replace::replace(path, text);
        put(&self.file, text.as_bytes()).map_err(|error| failed(&self.file, error))?;
        let outcome = hob
            .ask("POST", "/v1/reload")
            .and_then(|answer| control::tell(answer, &self.options.control));
        let Err(failure) = outcome else {
            return Ok(());
        };
        let restored = put(&self.file, self.before.as_bytes()).and_then(|()| match &kept_before {
            Some(text) => put(&kept, text),
            None => fs::remove_file(&kept),
        });
        let end = match restored {
            Ok(()) => format!("{name} is as it was before"),
            Err(error) => format!("{name} could not be put back: {error}; look at it"),
        };
        let text = [failure.text, end].join("\n");
        Err(CommandFailure {
            code: failure.code,
            text: text.trim_start().to_owned(),
        })
    }
}

/// The new text, from a file or, for `-`, from standard input.
fn new_text(path: &Path) -> Result<String, CommandFailure> {
    if path != Path::new("-") {
        return read_file(path).map_err(|error| wrong(format!("{}: {error}", path.display())));
    }
    let mut text = String::new();
    let mut input = io::stdin().lock().take(TEXT_BYTES_MAX + 1);
    let read = input.read_to_string(&mut text);
    read.map_err(|error| wrong(format!("standard input: {error}")))?;
    match text.len() as u64 > TEXT_BYTES_MAX {
        true => Err(wrong(
            "standard input is longer than a config may be".to_owned(),
        )),
        false => Ok(text),
    }
}

/// The arguments or the config are wrong.
fn wrong(text: String) -> CommandFailure {
    CommandFailure { code: 2, text }
}

/// The change is refused.
fn refused(text: String) -> CommandFailure {
    CommandFailure { code: 1, text }
}
