//! `hob compare`: servers side by side on this machine. Makes a plan of the arguments; everything
//! else is in `hob_compare`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hob_compare::{CompareError, ComparisonPlan, ControlPort, Scope, ServePlan, ServerTuning};

use crate::args::{CompareOptions, Surroundings};
use crate::{CommandFailure, output};

/// Where servers are that are not in everybody's PATH.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Compares, and prints what came of it.
pub(crate) fn run(
    options: CompareOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    if options.schema {
        output::line(&format!("{:#}", hob_compare::schema()));
        return Ok(());
    }
    if options.reference {
        output::write(&hob_compare::reference());
        return Ok(());
    }
    if let Some(port) = options.serve {
        return serve(port, from_anywhere(options.rival), surroundings);
    }
    let (json, html, list) = (options.json.clone(), options.html.clone(), options.list);
    let releases = options.releases.clone();
    let plan = plan(options, surroundings);
    if list {
        output::write(&hob_compare::list(&plan).map_err(refusal)?);
        return Ok(());
    }
    // Before minutes are spent on it.
    let json = json.map(|path| Pending::new("--json", path)).transpose()?;
    let html = html.map(|path| Pending::new("--html", path)).transpose()?;
    let known = releases.as_deref().map(known_text).transpose()?.flatten();
    let releases = releases.map(|path| Pending::new("--releases", path));
    let releases = releases.transpose()?;
    let report = hob_compare::compare(&plan).map_err(refusal)?;
    output::write(&report.table());
    if let Some(file) = json {
        file.write(&format!("{:#}\n", report.json()))?;
    }
    if let Some(file) = html {
        file.write(&report.html())?;
    }
    if let Some(file) = releases {
        file.write(&report.releases(known.as_deref()).map_err(refusal)?)?;
    }
    match report.lost() {
        None => Ok(()),
        Some(lost) => Err(CommandFailure {
            code: 1,
            text: format!("--target: {lost}"),
        }),
    }
}

/// Is the servers' machine until it is told to end.
fn serve(
    port: ControlPort,
    rivals: Vec<PathBuf>,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let token = hob_keeper::secret::new().ok_or_else(|| CommandFailure {
        code: 1,
        text: "--serve: the kernel gives no randomness for a token".to_owned(),
    })?;
    let plan = ServePlan {
        port,
        token,
        program: surroundings.program.clone(),
        rivals,
        folders: folders(),
        temporary: Surroundings::temporary_folder(),
    };
    let mut tell = |text: &str| {
        // Who reads it may have left; clients are heard all the same.
        let _ = output::line(text);
    };
    hob_compare::serve(&plan, &mut tell).map_err(refusal)
}

/// Where programs are looked for.
fn folders() -> Vec<PathBuf> {
    let folders = Surroundings::program_folders().into_iter();
    folders.chain(SYSTEM_FOLDERS.map(PathBuf::from)).collect()
}

/// The text of a file that a row is put into; none where it is not there yet.
fn known_text(path: &Path) -> Result<Option<String>, CommandFailure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandFailure {
            code: 2,
            text: format!("--releases {}: cannot read it: {error}", path.display()),
        }),
    }
}

/// A file to be written when there is a result. Until then one that is there stays as it is: what
/// comes is written beside it and takes its place at the end.
struct Pending {
    path: PathBuf,
    /// Empty, and removed when nothing comes of it; none where the path is no file, such as
    /// `/dev/stdout`.
    beside: Option<Beside>,
}

impl Pending {
    /// Sees that the file can be written.
    fn new(flag: &str, path: PathBuf) -> Result<Pending, CommandFailure> {
        // A link stays one.
        let path = path.canonicalize().unwrap_or(path);
        let refused = |why: String| CommandFailure {
            code: 2,
            text: format!("{flag} {}: cannot write it: {why}", path.display()),
        };
        if path.is_dir() {
            return Err(refused("that is a folder".to_owned()));
        }
        if path.exists() && !path.is_file() {
            return Ok(Pending { path, beside: None });
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let beside = Beside(path.with_file_name(name));
        let made = File::create_new(&beside.0);
        made.map_err(|error| refused(error.to_string()))?;
        Ok(Pending {
            path,
            beside: Some(beside),
        })
    }

    fn write(self, text: &str) -> Result<(), CommandFailure> {
        let path = &self.path;
        let written = match &self.beside {
            None => fs::write(path, text),
            Some(Beside(beside)) => fs::write(beside, text).and_then(|()| fs::rename(beside, path)),
        };
        written.map_err(|error| CommandFailure {
            code: 1,
            text: format!("cannot write {}: {error}", path.display()),
        })
    }
}

/// A file that goes unless it got another name.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The process that holds a server; started by `compare`.
pub(crate) fn run_supervisor() -> Result<(), CommandFailure> {
    hob_compare::supervise().map_err(|text| CommandFailure { code: 1, text })
}

/// The process that answers for a file system; started by a supervisor.
pub(crate) fn run_fuse(folder: &Path) -> Result<(), CommandFailure> {
    hob_compare::serve_folder(folder).map_err(|text| CommandFailure { code: 1, text })
}

fn plan(options: CompareOptions, surroundings: &Surroundings) -> ComparisonPlan {
    let target = options.target.map(|target| {
        let token = options.token.clone();
        let token = token.or_else(|| Surroundings::variable("HOB_COMPARE_TOKEN"));
        target.with_token(token.unwrap_or_default())
    });
    ComparisonPlan {
        scope: match (options.quick, options.full) {
            (true, _) => Scope::Quick,
            (_, true) => Scope::Full,
            _ => Scope::Usual,
        },
        only: options.only,
        servers: options.servers,
        rivals: from_anywhere(options.rival),
        settings: match options.tuned {
            true => ServerTuning::Tuned,
            false => ServerTuning::Usual,
        },
        program: surroundings.program.clone(),
        folders: folders(),
        temporary: Surroundings::temporary_folder(),
        round: options.round,
        rounds: options.rounds,
        is_sweep: options.sweep,
        is_of_releases: options.releases.is_some(),
        link: options.link,
        target,
    }
}

/// Paths that mean the same in another folder: servers are started in one of their own. A name
/// alone is looked for in PATH.
fn from_anywhere(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let absolute = |path: PathBuf| match path.components().count() {
        1 => path,
        _ => std::path::absolute(&path).unwrap_or(path),
    };
    paths.into_iter().map(absolute).collect()
}

fn refusal(error: CompareError) -> CommandFailure {
    let code = match error {
        CompareError::Arguments(_) => 2,
        CompareError::Subject(_)
        | CompareError::Link(_)
        | CompareError::Target(_)
        | CompareError::Interrupted
        | CompareError::System { .. } => 1,
    };
    CommandFailure {
        code,
        text: error.to_string(),
    }
}
