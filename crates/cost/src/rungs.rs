//! The rungs of the ladder for a script, and for the built-in echo: which there are, the route that
//! has each, and why the others are not possible.

use std::path::{Path, PathBuf};

use crate::echo::{self, EchoKind};
use crate::error::CostError;
use crate::load::MeasuredRequest;
use crate::private::TemporaryFolder;
use crate::script::{MeasuredScript, ScriptLanguage, Stays};

/// Whose program a rung runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RungProgram {
    Script,
    Echo,
}

impl RungProgram {
    pub(crate) fn word(self) -> &'static str {
        match self {
            RungProgram::Script => "script",
            RungProgram::Echo => "echo",
        }
    }
}

/// One way of running one program.
#[derive(Debug, Clone)]
pub(crate) struct Rung {
    /// `cgi`, `warm`, `resident`.
    pub(crate) handler: &'static str,
    /// How a resident program's requests travel.
    pub(crate) carrier: Option<&'static str>,
    pub(crate) subject: RungProgram,
    pub(crate) language: ScriptLanguage,
    pub(crate) file: PathBuf,
    /// The handler's part of the route in the config, or why there is none.
    pub(crate) route: Result<String, String>,
}

impl Rung {
    /// As people are told: `resident over shm`.
    pub(crate) fn name(&self) -> String {
        match self.carrier {
            Some(carrier) => format!("{} over {carrier}", self.handler),
            None => self.handler.to_owned(),
        }
    }

    /// Where requests for it begin.
    pub(crate) fn path(&self, index: usize) -> String {
        let is_kept = self.carrier.is_some() && self.is_kept();
        match is_kept.then(|| self.file.file_name()).flatten() {
            Some(name) => format!("/{index}/{}", percent(&name.to_string_lossy())),
            None => format!("/{index}/"),
        }
    }

    fn is_kept(&self) -> bool {
        let route = self.route.as_ref();
        route.is_ok_and(|route| route.contains("scripts ="))
    }
}

/// Every rung of a script, possible or not.
pub(crate) fn of_script(script: &MeasuredScript) -> Result<Vec<Rung>, CostError> {
    let rung = |handler, carrier, route| Rung {
        handler,
        carrier,
        subject: RungProgram::Script,
        language: script.language,
        file: script.path.clone(),
        route,
    };
    let mut all = vec![
        rung("cgi", None, cgi_route(script)?),
        rung("warm", None, warm_route(script)?),
    ];
    for carrier in ["stream", "shm", "lines"] {
        let route = resident_route(script, carrier)?;
        // One line is enough to say that a script is not written to stay.
        let is_told = all
            .last()
            .is_some_and(|last| last.route == route && route.is_err());
        if !is_told {
            all.push(rung("resident", Some(carrier), route));
        }
    }
    if let Some(last) = all
        .last_mut()
        .filter(|last| last.route.is_err() && script.stays == Stays::No)
    {
        last.carrier = None;
    }
    Ok(all)
}

/// The rungs of the built-in echo that this machine can run, of one language or of all.
pub(crate) fn of_echo(
    folder: &TemporaryFolder,
    path: &str,
    asked: &MeasuredRequest,
    wanted: impl Fn(ScriptLanguage) -> bool,
) -> Result<Vec<Rung>, CostError> {
    let mut all = Vec::new();
    let table = [
        (ScriptLanguage::Compiled, EchoKind::Cgi, "cgi", None),
        (ScriptLanguage::Shell, EchoKind::Cgi, "cgi", None),
        (ScriptLanguage::Perl, EchoKind::Cgi, "cgi", None),
        (ScriptLanguage::Python, EchoKind::Cgi, "cgi", None),
        (ScriptLanguage::Perl, EchoKind::Cgi, "warm", None),
        (ScriptLanguage::Python, EchoKind::Cgi, "warm", None),
        (
            ScriptLanguage::Shell,
            EchoKind::Lines,
            "resident",
            Some("lines"),
        ),
        (
            ScriptLanguage::Perl,
            EchoKind::Loop,
            "resident",
            Some("stream"),
        ),
        (
            ScriptLanguage::Perl,
            EchoKind::Loop,
            "resident",
            Some("shm"),
        ),
        (
            ScriptLanguage::Python,
            EchoKind::Loop,
            "resident",
            Some("stream"),
        ),
        (
            ScriptLanguage::Python,
            EchoKind::Loop,
            "resident",
            Some("shm"),
        ),
    ];
    for (language, kind, handler, carrier) in table {
        if !wanted(language) {
            continue;
        }
        let Some(file) = echo::write(folder, language, kind, path, asked)? else {
            continue;
        };
        let place = quoted(&file)?;
        let route = match (handler, carrier) {
            ("cgi", _) => format!("cgi = {{ script = {place} }}"),
            ("warm", _) => format!("warm = {{ script = {place} }}"),
            (_, Some("lines")) => {
                format!("resident = {{ run = [{place}], carrier = \"lines\", {WORKERS} }}")
            }
            (_, carrier) => looping(language, &place, carrier.unwrap_or("stream")),
        };
        all.push(Rung {
            handler,
            carrier,
            subject: RungProgram::Echo,
            language,
            file,
            route: Ok(route),
        });
    }
    Ok(all)
}

/// One worker: requests come one after the other.
const WORKERS: &str = "workers = { min = 1, max = 1 }";
/// Why most scripts cannot stay.
const NOT_LOOPING: &str = "it answers one request and ends; a loop over requests, or an application \
     (WSGI, ASGI, PSGI), could stay";

fn cgi_route(script: &MeasuredScript) -> Result<Result<String, String>, CostError> {
    if !script.is_cgi {
        return Ok(Err(
            "it is written to stay, not to answer one request".to_owned()
        ));
    }
    let place = quoted(&script.path)?;
    let is_started = script.is_executable
        && (script.first_line.is_some() || script.language == ScriptLanguage::Compiled);
    let interpreters = match (
        is_started,
        script.usual_interpreter(),
        script.path.extension(),
    ) {
        (false, Some(name), Some(ending)) => format!(
            ", interpreters = {{ {} = {} }}",
            text(&format!(".{}", ending.to_string_lossy()))?,
            text(name)?
        ),
        _ => String::new(),
    };
    let env = env(script, None)?;
    Ok(Ok(format!(
        "cgi = {{ script = {place}{interpreters}{env} }}"
    )))
}

fn warm_route(script: &MeasuredScript) -> Result<Result<String, String>, CostError> {
    if !script.is_cgi {
        return Ok(Err(
            "it is written to stay, not to answer one request".to_owned()
        ));
    }
    match (script.language, script.usual_interpreter()) {
        (ScriptLanguage::Python | ScriptLanguage::Perl, Some(interpreter)) => Ok(Ok(format!(
            "warm = {{ script = {}, interpreter = {}{}{} }}",
            quoted(&script.path)?,
            text(interpreter)?,
            preload(script)?,
            env(script, None)?
        ))),
        (ScriptLanguage::Compiled, _) => Ok(Err(
            "it is a compiled program: there is no interpreter to keep".to_owned(),
        )),
        (language, _) => Ok(Err(format!(
            "there is no warm host for {}, only for Python and Perl",
            match language {
                ScriptLanguage::Unknown => "this interpreter",
                language => language.word(),
            }
        ))),
    }
}

fn resident_route(
    script: &MeasuredScript,
    carrier: &str,
) -> Result<Result<String, String>, CostError> {
    let place = quoted(&script.path)?;
    let interpreter = match (&script.interpreter, script.language) {
        (Some(name), ScriptLanguage::Python | ScriptLanguage::Perl) => {
            format!(", interpreter = {}", text(name)?)
        }
        _ => String::new(),
    };
    let dir = script.path.parent().unwrap_or(Path::new("/"));
    let native = (carrier == "stream").then_some(("HOB_NATIVE", "off"));
    let env = env(script, native)?;
    let rest = format!("{interpreter}{env}, carrier = \"{carrier}\", {WORKERS}");
    Ok(match (script.stays, carrier) {
        (Stays::No, _) => Err(NOT_LOOPING.to_owned()),
        (Stays::Lines, "lines") => Ok(format!(
            "resident = {{ run = [{place}], dir = {}{env}, carrier = \"lines\", {WORKERS} }}",
            quoted(dir)?
        )),
        (Stays::Lines, _) => Err("it speaks lines".to_owned()),
        (_, "lines") => Err("it does not speak lines".to_owned()),
        (Stays::Kept, _) => Ok(format!("resident = {{ scripts = {}{rest} }}", quoted(dir)?)),
        (Stays::Loop, _) => Ok(format!(
            "resident = {{ {} = {place}{rest} }}",
            script.language.word()
        )),
    })
}

/// The variables its route has, and one of ours.
fn env(script: &MeasuredScript, more: Option<(&str, &str)>) -> Result<String, CostError> {
    let known = script.settings.env.iter();
    let known = known.map(|(name, value)| (name.as_str(), value.as_str()));
    let known = known.filter(|(name, _)| more.is_none_or(|(more, _)| more != *name));
    let pairs = known.chain(more).map(|(name, value)| {
        let pair = (text(name)?, text(value)?);
        Ok(format!("{} = {}", pair.0, pair.1))
    });
    let pairs = pairs.collect::<Result<Vec<_>, CostError>>()?;
    Ok(match pairs.is_empty() {
        true => String::new(),
        false => format!(", env = {{ {} }}", pairs.join(", ")),
    })
}

/// The modules its route loads beforehand.
fn preload(script: &MeasuredScript) -> Result<String, CostError> {
    let names = script.settings.preload.iter().map(|name| text(name));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    Ok(match names.is_empty() {
        true => String::new(),
        false => format!(", preload = [{}]", names.join(", ")),
    })
}

fn looping(language: ScriptLanguage, place: &str, carrier: &str) -> String {
    let native = if carrier == "stream" {
        "env = { HOB_NATIVE = \"off\" }, "
    } else {
        ""
    };
    let word = language.word();
    format!("resident = {{ {word} = {place}, {native}carrier = \"{carrier}\", {WORKERS} }}")
}

/// A path in a config.
pub(crate) fn quoted(path: &Path) -> Result<String, CostError> {
    match path.to_str() {
        Some(path) => text(path),
        None => Err(CostError::Arguments(format!(
            "{} is not UTF-8, which a config has to be",
            path.display()
        ))),
    }
}

/// A string in a config. JSON writes it as TOML does, but for the letter 127 and for `${`.
fn text(text: &str) -> Result<String, CostError> {
    if text.chars().any(char::is_control) {
        return Err(CostError::Arguments(format!(
            "{text:?} has control characters in it, which a config cannot have"
        )));
    }
    let quoted = serde_json::Value::from(text).to_string();
    Ok(quoted.replace("${", "$${"))
}

/// A name as a part of a URL.
fn percent(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let bytes = name.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str, name: &str) -> MeasuredScript {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, open).unwrap();
        MeasuredScript::look(&path).unwrap()
    }

    fn told(rungs: &[Rung]) -> Vec<(String, bool)> {
        let one = |rung: &Rung| (rung.name(), rung.route.is_ok());
        rungs.iter().map(one).collect()
    }

    #[test]
    fn rungs_are_those_that_a_script_can_stand_on() {
        let rungs = |text: &str, name: &str| told(&of_script(&script(text, name)).unwrap());
        let told = |all: &[(&str, bool)]| -> Vec<(String, bool)> {
            all.iter()
                .map(|(name, is)| ((*name).to_owned(), *is))
                .collect()
        };
        assert_eq!(
            rungs("#!/usr/bin/python3\nprint()\n", "a"),
            told(&[("cgi", true), ("warm", true), ("resident", false)])
        );
        assert_eq!(
            rungs("#!/bin/sh\necho\n", "a"),
            told(&[("cgi", true), ("warm", false), ("resident", false)])
        );
        assert_eq!(
            rungs("#!/usr/bin/perl\nprint 1;\n", "a"),
            told(&[
                ("cgi", true),
                ("warm", true),
                ("resident over stream", true),
                ("resident over shm", true),
                ("resident over lines", false),
            ])
        );
        assert_eq!(
            rungs("#!/bin/sh\nprintf $CGIPLUSEOF\n", "a"),
            told(&[
                ("cgi", false),
                ("warm", false),
                ("resident over stream", false),
                ("resident over lines", true),
            ])
        );
    }

    #[test]
    fn names_are_safe_in_a_config_and_in_a_url() {
        assert_eq!(text("a\"b\\${c}").unwrap(), r#""a\"b\\$${c}""#);
        assert!(text("a\nb").is_err());
        assert_eq!(percent("a b/ä.pl"), "a%20b%2F%C3%A4.pl");
    }
}
