//! `hob serve`: what to serve becomes config text, and the keeper takes over. Also the hidden
//! server process, and the answer to a program that wants to upgrade to this one.

mod logs;
mod old_logs;
mod process;
mod threads;

use std::io::Read;
use std::path::{Path, PathBuf};

use hob_keeper::preflight::{self, Extent};
use hob_keeper::servers::Origin;
use hob_keeper::{ControlChoice, KeeperFailure, KeeperOptions};
use hob_server::config::{self, ConfigSources, Errors, RealDisk, SCHEMA};

use crate::CommandFailure;
use crate::args::{ServeOptions, Surroundings};

/// Where a folder is served when nobody says where.
const USUAL_ADDRESS: &str = "127.0.0.1:8080";
/// The config that is used when it is there and nothing else is said.
pub(crate) const USUAL_CONFIG: &str = "hob.toml";

/// Serves until stopped.
pub(crate) fn run(options: ServeOptions, surroundings: Surroundings) -> Result<(), CommandFailure> {
    if let Some(version) = options.handover_check {
        return check_handover(version, options.control.is_none());
    }
    let control = match &options.control {
        Some(path) if path.as_os_str() == "off" => ControlChoice::Off,
        Some(path) => ControlChoice::At(path.clone()),
        None => ControlChoice::Config,
    };
    let result = hob_keeper::run(KeeperOptions {
        sources: sources(&options)?,
        load: hob_keeper::loads::<config::Handler>(&RealDisk),
        origin: origin(&options)?,
        runtime: (!options.unlisted).then_some(surroundings.runtime),
        control,
        usual_state: surroundings.usual_state,
        program: surroundings.program,
        arguments: surroundings.arguments,
        environment: surroundings.environment,
        inherited: surroundings.inherited,
        notify: surroundings.notify,
        is_resumed: options.resume,
    });
    result.map_err(refusal)
}

/// The process that serves.
pub(crate) fn run_server() -> Result<(), CommandFailure> {
    // The keeper says why, with everything else it knows.
    process::run().map_err(|failure| CommandFailure {
        code: failure.exit_code(),
        text: String::new(),
    })
}

/// The process that starts programs.
pub(crate) fn run_spawner() -> Result<(), CommandFailure> {
    hob_keeper::process::spawner::run().map_err(|failure| CommandFailure {
        code: failure.exit_code(),
        text: failure.to_string(),
    })
}

/// The process that gets certificates.
pub(crate) fn run_acme() -> Result<(), CommandFailure> {
    hob_keeper::acme::run().map_err(|failure| CommandFailure {
        code: failure.exit_code(),
        text: failure.to_string(),
    })
}

fn refusal(failure: KeeperFailure) -> CommandFailure {
    let code = failure.exit_code();
    let text = match failure {
        KeeperFailure::System(text) => text,
        // Errors with a place stand on lines of their own, as `hob check` prints them.
        KeeperFailure::Config(text) | KeeperFailure::Refused(text) => {
            eprintln!("{}", text.trim_end());
            String::new()
        }
    };
    CommandFailure { code, text }
}

/// What the config is read from, now and at every reload.
pub(crate) fn sources(
    options: &ServeOptions,
) -> Result<Box<dyn Fn() -> Result<ConfigSources, Errors>>, CommandFailure> {
    if let Some(file) = config_file(options) {
        return Ok(Box::new(move || {
            ConfigSources::read(&SCHEMA, &file, &Surroundings::variable)
        }));
    }
    if let Some(dir) = &options.dir {
        check_folder(dir).map_err(|text| CommandFailure { code: 2, text })?;
    }
    let text = folder_config(options).map_err(|text| CommandFailure { code: 2, text })?;
    let folder = Surroundings::current_folder().map_err(|error| CommandFailure {
        code: 1,
        text: format!("no current folder: {error}"),
    })?;
    Ok(Box::new(move || {
        ConfigSources::from_text(
            &SCHEMA,
            config::COMMAND_LINE,
            &text,
            &folder,
            &Surroundings::variable,
        )
    }))
}

/// The config that is read, unless a folder is served without one.
fn config_file(options: &ServeOptions) -> Option<PathBuf> {
    let is_bare = options.dir.is_none() && options.listen.is_empty() && options.log.is_none();
    match &options.config {
        Some(file) => Some(file.clone()),
        None if is_bare && Path::new(USUAL_CONFIG).exists() => Some(PathBuf::from(USUAL_CONFIG)),
        None => None,
    }
}

/// What commands know this server by.
fn origin(options: &ServeOptions) -> Result<Origin, CommandFailure> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| CommandFailure {
            code: 1,
            text: format!("no current folder: {error}"),
        })
    };
    Ok(match config_file(options) {
        Some(file) => Origin::Config(absolute(&file)?),
        None => Origin::Folder(absolute(options.dir.as_deref().unwrap_or(Path::new(".")))?),
    })
}

/// What is served without a config is a folder that is there.
fn check_folder(dir: &Path) -> Result<(), String> {
    let shown = dir.display();
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) if dir.extension().is_some_and(|end| end == "toml") => Err(format!(
            "{shown} is a file; a config is named with `--config {shown}`"
        )),
        Ok(_) => Err(format!("{shown} is a file; name the folder it is in")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("there is no folder {shown}"))
        }
        Err(error) => Err(format!("{shown} cannot be looked at: {error}")),
    }
}

/// The config of a folder that is served without one.
fn folder_config(options: &ServeOptions) -> Result<String, String> {
    let usual = [USUAL_ADDRESS.to_owned()];
    let addresses = if options.listen.is_empty() {
        &usual[..]
    } else {
        &options.listen
    };
    let mut text = String::new();
    if let Some(log) = &options.log {
        text.push_str(&format!(
            "default_log = \"access\"\n\n[[log]]\nname = \"access\"\nfile = {}\n\n",
            quoted(log)?
        ));
    }
    for address in addresses {
        let is_port = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_digit());
        let address = if is_port {
            format!("127.0.0.1:{address}")
        } else {
            address.clone()
        };
        text.push_str(&format!(
            "[[listen]]\naddress = {}\n\n",
            ConfigSources::quote(&address)
        ));
    }
    let dir = options.dir.as_deref().unwrap_or(Path::new("."));
    text.push_str(&format!(
        "[[site]]\nroot = {}\n\n[site.files]\nlisting = true\n",
        quoted(dir)?
    ));
    Ok(text)
}

/// A path as the text of a config.
fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str();
    let text = text.ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(ConfigSources::quote(text))
}

/// Says by the exit code whether this program understands another one's handover and the sources
/// on standard input; that the arguments made sense was seen before. The config may say where the
/// control socket is.
fn check_handover(version: u32, is_by_config: bool) -> Result<(), CommandFailure> {
    let refuse = |text: String| CommandFailure { code: 2, text };
    if version != hob_keeper::HANDOVER_VERSION {
        let own = hob_keeper::HANDOVER_VERSION;
        return Err(refuse(format!(
            "the running hob hands over version {version}, this one takes {own}; restart it"
        )));
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(error.to_string()))?;
    let sources = ConfigSources::decode(&bytes)
        .ok_or_else(|| refuse("the running hob's sources make no sense here".to_owned()))?;
    let extent = Extent {
        opens_control: is_by_config,
        runtime: None,
        running: None,
        starts: false,
    };
    preflight::load::<config::Handler>(&sources, &RealDisk, &extent)
        .map_err(|errors| refuse(errors.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ServeOptions {
        ServeOptions {
            dir: None,
            config: None,
            listen: vec![],
            control: None,
            log: None,
            resume: false,
            unlisted: false,
            handover_check: None,
        }
    }

    #[test]
    fn nothing_said_serves_the_current_folder_on_loopback() {
        assert_eq!(
            folder_config(&options()).unwrap(),
            "[[listen]]\naddress = \"127.0.0.1:8080\"\n\n[[site]]\nroot = \".\"\n\n[site.files]\nlisting = true\n"
        );
    }

    #[test]
    fn flags_become_tables_and_odd_names_survive() {
        let text = folder_config(&ServeOptions {
            dir: Some("a \"${b}\"\\".into()),
            listen: vec!["8081".to_owned(), "[::1]:80".to_owned()],
            log: Some("access.log".into()),
            ..options()
        });
        assert_eq!(
            text.unwrap(),
            "default_log = \"access\"\n\n[[log]]\nname = \"access\"\nfile = \"access.log\"\n\n\
             [[listen]]\naddress = \"127.0.0.1:8081\"\n\n\
             [[listen]]\naddress = \"[::1]:80\"\n\n\
             [[site]]\nroot = 'a \"$${b}\"\\'\n\n[site.files]\nlisting = true\n"
        );
    }
}
