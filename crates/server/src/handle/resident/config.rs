//! `resident` of a route: which program stays for its requests, how many processes it has, and
//! within which limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::captured::{plain_root, refuse_captures};
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::{
    CommandLine, HostSource, PATH, ProgramConfig, Programs, candidates,
};
use crate::handle::config::tree::{Argument, Section};
use crate::handle::config::{Config, Route, SourceLocation};
use crate::handle::resident;
use crate::handle::resident::keys::{QUEUE, RESIDENT, SHARED, TIMEOUT, WORKERS};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::{ProgramCheck, Want};

/// A program that stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Resident {
    /// What runs.
    pub runs: ResidentRuns,
    /// Where what runs is named, for messages.
    pub place: SourceLocation,
    /// How it runs: an index into [`crate::handle::config::Config::programs`].
    pub program: usize,
    /// The folder it works in.
    pub dir: PathBuf,
    /// What it is told is the site's root.
    pub document_root: PathBuf,
    /// `Authorization` is passed.
    pub pass_authorization: bool,
    /// Failures are explained to the client.
    pub dev: bool,
    /// Files below `dir` whose change replaces the workers, as patterns.
    pub watch: Vec<String>,
    /// How requests travel.
    pub carrier: CarrierChoice,
    /// What lies in shared memory.
    pub shared: SharedSizes,
    /// How many workers there are.
    pub workers: Workers,
    /// Most requests that wait (503).
    pub queue: usize,
    /// How long a request waits (503).
    pub wait: Duration,
    /// Time limits.
    pub timeout: Timeouts,
    /// Between the request to end and the end by force.
    pub grace: Duration,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResidentRuns {
    /// A program that speaks a carrier, and its arguments.
    Command(Vec<String>),
    /// A program in a host of ours.
    Hosted {
        /// What the host makes of it.
        host: ApplicationKind,
        /// Module, file or folder.
        what: String,
        /// Who runs the host.
        interpreter: String,
    },
}

/// What a host makes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationKind {
    /// A WSGI application of a Python module.
    Wsgi,
    /// An ASGI application of a Python module.
    Asgi,
    /// A PSGI application in a file.
    Psgi,
    /// A Python program with a loop.
    Python,
    /// A Perl program with a loop.
    Perl,
    /// A folder of Perl CGI scripts.
    Scripts,
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierChoice {
    /// In shared memory if the program can, else over a socket.
    Auto,
    /// In shared memory if the program can, else over a socket: offered alike.
    Shm,
    /// Over a socket.
    Stream,
    /// As lines.
    Lines,
}

/// Chunks of the memory that is shared with a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSizes {
    /// How many.
    pub chunk_count: usize,
    /// How many bytes each has.
    pub chunk_bytes: usize,
}

/// How many workers there are, and when they are replaced; zero is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// There without a request, too.
    pub min: usize,
    /// Most; `None` is what half of the memory holds.
    pub max: Option<usize>,
    /// Requests of one worker at a time.
    pub concurrency: u16,
    /// How long one above `min` stays idle.
    pub idle_timeout: Duration,
    /// Requests after which one is replaced.
    pub max_requests: u64,
    /// Age at which one is replaced.
    pub max_age: Duration,
    /// Memory above which one is replaced, in bytes.
    pub max_memory: u64,
}

/// Time limits; zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a worker is ready.
    pub start: Duration,
    /// Until the head of an answer (504).
    pub first_byte: Duration,
    /// Until the end of an answer (504).
    pub total: Duration,
    /// Between two pieces of an answer.
    pub progress: Duration,
    /// Between two pieces of a stream of events.
    pub events: Duration,
    /// Between two pieces of a tunnel, whichever way they go.
    pub tunnel: Duration,
}

/// Where the parts of a `resident` stand.
pub struct ResidentSpots {
    pub(crate) what: Spot,
    pub(crate) dir: Spot,
    pub(crate) interpreter: Spot,
}

impl ApplicationKind {
    /// Every one, in the order of the reference.
    pub const ALL: [ApplicationKind; 6] = [
        ApplicationKind::Wsgi,
        ApplicationKind::Asgi,
        ApplicationKind::Psgi,
        ApplicationKind::Python,
        ApplicationKind::Perl,
        ApplicationKind::Scripts,
    ];

    /// Its key.
    pub fn key(self) -> &'static str {
        match self {
            ApplicationKind::Wsgi => "wsgi",
            ApplicationKind::Asgi => "asgi",
            ApplicationKind::Psgi => "psgi",
            ApplicationKind::Python => "python",
            ApplicationKind::Perl => "perl",
            ApplicationKind::Scripts => "scripts",
        }
    }

    /// What it is told to do.
    fn verb(self) -> &'static str {
        match self {
            ApplicationKind::Wsgi => "wsgi",
            ApplicationKind::Asgi => "asgi",
            ApplicationKind::Psgi => "psgi",
            ApplicationKind::Python | ApplicationKind::Perl => "loop",
            ApplicationKind::Scripts => "scripts",
        }
    }

    /// The host runs in Python, else in Perl.
    pub fn is_python(self) -> bool {
        matches!(
            self,
            ApplicationKind::Wsgi | ApplicationKind::Asgi | ApplicationKind::Python
        )
    }

    fn is_file(self) -> bool {
        matches!(
            self,
            ApplicationKind::Psgi | ApplicationKind::Python | ApplicationKind::Perl
        )
    }
}

impl CarrierChoice {
    /// The word of the config.
    pub fn word(self) -> &'static str {
        match self {
            CarrierChoice::Auto => "auto",
            CarrierChoice::Shm => "shm",
            CarrierChoice::Stream => "stream",
            CarrierChoice::Lines => "lines",
        }
    }
}

impl ResidentRuns {
    /// What is executed, as the config names it.
    pub fn program(&self) -> &str {
        match self {
            ResidentRuns::Command(words) => words.first().map_or("", String::as_str),
            ResidentRuns::Hosted { interpreter, .. } => interpreter,
        }
    }

    /// The arguments, without the program's name. A host reads itself from standard input.
    pub fn words(&self) -> Vec<String> {
        match self {
            ResidentRuns::Command(words) => words.iter().skip(1).cloned().collect(),
            ResidentRuns::Hosted { host, what, .. } => {
                vec!["-".to_owned(), host.verb().to_owned(), what.clone()]
            }
        }
    }

    /// The name for people: the program, or what its host runs.
    pub fn name(&self) -> &str {
        match self {
            ResidentRuns::Command(words) => words.first().map_or("", String::as_str),
            ResidentRuns::Hosted { what, .. } => what,
        }
    }
}

impl HasSettings for resident::Resident {
    type Settings = Resident;
    type Spots = ResidentSpots;
}

impl Configured for resident::Resident {
    const KEY: SchemaKey = SchemaKey::new("resident", ValueType::Table(&RESIDENT), Nothing(""))
        .aka(&["pool", "worker"]);

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (Resident, ResidentSpots) {
        let site_root = plain_root(on.around.site);
        build_resident(section, site_root, programs, faults)
    }

    fn build(
        settings: &Resident,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<resident::Resident>, String> {
        around.resident(settings, route, pattern)
    }

    fn check(
        settings: &Resident,
        spots: &ResidentSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        on_disk(config, settings, spots, looked, faults);
    }

    fn look(settings: &Resident, spots: &ResidentSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        look.enters(&settings.dir, spots.dir);
        match &settings.runs {
            ResidentRuns::Command(_) => look.runs(settings.runs.program(), spots.what),
            ResidentRuns::Hosted { host, what, .. } => {
                look.runs(settings.runs.program(), spots.interpreter);
                match host {
                    ApplicationKind::Wsgi | ApplicationKind::Asgi => {}
                    ApplicationKind::Scripts => {
                        look.enters(Path::new(what), spots.what);
                    }
                    ApplicationKind::Psgi | ApplicationKind::Python | ApplicationKind::Perl => {
                        look.needs(Path::new(what), Want::Read, spots.what);
                    }
                }
            }
        }
    }

    fn program(settings: &Resident) -> Option<usize> {
        Some(settings.program)
    }

    fn grace(settings: &Resident) -> Duration {
        settings.grace
    }

    fn runs(settings: &Resident) -> String {
        settings.runs.name().to_owned()
    }
}

/// The program that stays, its folder and its interpreter are there.
fn on_disk(
    config: &Config,
    resident: &Resident,
    spots: &ResidentSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let program = config.programs.get(resident.program);
    let path = program.map_or(PATH, ProgramConfig::path);
    let interpreter = match &resident.runs {
        ResidentRuns::Command(_) => spots.what,
        ResidentRuns::Hosted { host, what, .. } => {
            let file = Path::new(what);
            match host {
                ApplicationKind::Wsgi | ApplicationKind::Asgi => {}
                _ if what.is_empty() => {}
                ApplicationKind::Scripts => looked.folder(file, spots.what, faults),
                ApplicationKind::Psgi | ApplicationKind::Python | ApplicationKind::Perl => {
                    looked.file(file, spots.what, "write the file's own path", faults);
                }
            }
            spots.interpreter
        }
    };
    looked.program(resident.runs.program(), path, interpreter, faults);
    // A folder of scripts that is not there was named just now.
    let is_told = match &resident.runs {
        ResidentRuns::Hosted { host, what, .. } => {
            *host == ApplicationKind::Scripts && Path::new(what) == resident.dir
        }
        ResidentRuns::Command(_) => false,
    };
    if !is_told {
        looked.folder(&resident.dir, spots.dir, faults);
    }
}

/// One `resident`. `site_root` is the site's, if it has one.
pub(crate) fn build_resident(
    section: &Section,
    site_root: Option<&PathBuf>,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Resident, ResidentSpots) {
    let watch = watch(section, faults);
    let (read, spots) = build_program(section, site_root, !watch.is_empty(), programs, faults);
    let resident = Resident {
        watch,
        workers: workers(section, &read.runs, read.carrier, faults),
        queue: section.inner("queue", &QUEUE, |queue| queue.number("max")),
        wait: section.inner("queue", &QUEUE, |queue| queue.time("wait")),
        ..read
    };
    (resident, spots)
}

/// Why workers are not those of many accounts.
const ONE_ACCOUNT: &str = "workers stay and run as one account, and some for each would stay for \
                           each: `cgi` takes captures, and starts a process for each request";

/// What runs, and how: one worker, for which nobody waits, unless more is said.
pub(crate) fn build_program(
    section: &Section,
    site_root: Option<&PathBuf>,
    is_watched: bool,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Resident, ResidentSpots) {
    crate::handle::config::program::check_program(section, faults);
    refuse_captures(section, &["dir"], ONE_ACCOUNT, faults);
    let runs = runs(section, faults);
    let dir = match section.optional_path("dir") {
        Some(dir) => dir.clone(),
        None => usual_dir(&runs, section, faults),
    };
    let key = match &runs {
        ResidentRuns::Command(_) => "run",
        ResidentRuns::Hosted { host, .. } => host.key(),
    };
    let spots = ResidentSpots {
        what: section.spot(key),
        dir: section.spot("dir"),
        interpreter: section.spot("interpreter"),
    };
    let carrier = match section.word("carrier") {
        "shm" => CarrierChoice::Shm,
        "stream" => CarrierChoice::Stream,
        "lines" => CarrierChoice::Lines,
        _ => CarrierChoice::Auto,
    };
    if carrier == CarrierChoice::Lines && !matches!(runs, ResidentRuns::Command(_)) {
        let message = format!("the host of `{key}` does not speak lines");
        let hint = "remove `carrier`, or name the program with `run`";
        faults.error(section.spot("carrier"), message).hint(hint);
    }
    let program = programs.add(section, faults, |program| {
        allow(&runs, &dir, program);
        program.own_env = own_env(carrier, &runs, is_watched);
    });
    let resident = Resident {
        place: faults.sources().place(spots.what),
        program,
        document_root: site_root.unwrap_or(&dir).clone(),
        pass_authorization: section.flag("pass_authorization"),
        dev: section.flag("dev"),
        watch: Vec::new(),
        carrier,
        shared: shared(section, carrier, faults),
        workers: Workers {
            min: 1,
            max: Some(1),
            concurrency: 1,
            idle_timeout: Duration::ZERO,
            max_requests: 0,
            max_age: Duration::ZERO,
            max_memory: 0,
        },
        queue: 0,
        wait: Duration::ZERO,
        timeout: section.inner("timeout", &TIMEOUT, |timeout| Timeouts {
            start: timeout.time("start"),
            first_byte: timeout.time("first_byte"),
            total: timeout.time("total"),
            progress: timeout.time("progress"),
            events: timeout.time("events"),
            tunnel: timeout.time("tunnel"),
        }),
        grace: section.time("grace"),
        runs,
        dir,
    };
    (resident, spots)
}

fn runs(section: &Section, faults: &mut Faults<'_>) -> ResidentRuns {
    let keys = ["run"]
        .into_iter()
        .chain(ApplicationKind::ALL.map(ApplicationKind::key));
    let given: Vec<&str> = keys.filter(|key| section.has(key)).collect();
    let name = section.table().name;
    match given[..] {
        [] => {
            let hint = "add `run = [\"PROGRAM\"]`, or one of `wsgi`, `asgi`, `psgi`, `python`, \
                        `perl` and `scripts`";
            faults
                .error(section.header, format!("`{name}` does not say what runs"))
                .hint(hint);
        }
        [_] => {}
        [first, second, ..] => {
            let message = format!("`{name}` has both `{first}` and `{second}`");
            let hint = "keep one; write a second `[[site.route]]` for the other";
            faults
                .error(section.spot(second), message)
                .see(section.spot(first), "the first")
                .hint(hint);
        }
    }
    let host = ApplicationKind::ALL
        .into_iter()
        .find(|host| section.has(host.key()));
    let Some(host) = host else {
        return command(section, faults);
    };
    let what = match host {
        ApplicationKind::Wsgi | ApplicationKind::Asgi => application(section, host.key(), faults),
        _ => text_of(
            section
                .optional_path(host.key())
                .map_or(Path::new(""), |path| path),
        ),
    };
    let usual = if host.is_python() { "python3" } else { "perl" };
    let interpreter = match section.optional_text("interpreter") {
        Some(name) if name.contains('/') => {
            let source = section.spot("interpreter").source;
            text_of(&faults.sources().resolve(source, name))
        }
        Some(name) => name.to_owned(),
        None => usual.to_owned(),
    };
    ResidentRuns::Hosted {
        host,
        what,
        interpreter,
    }
}

/// `module:name`; without a name, the usual one.
fn application(section: &Section, key: &str, faults: &mut Faults<'_>) -> String {
    let text = section.optional_text(key).unwrap_or_default();
    let is_name = |name: &str| {
        let parts = || name.split('.');
        parts().all(|part| {
            let is_letter = |c: char| c == '_' || c.is_alphanumeric();
            part.chars().all(is_letter) && part.chars().next().is_some_and(|c| !c.is_numeric())
        })
    };
    let (module, name) = text.split_once(':').unwrap_or((text, "application"));
    if section.given(key).is_some() && !(is_name(module) && is_name(name)) {
        let message = format!("{text:?} names no application");
        let hint = "write module and name, such as \"api:application\" for `application` in api.py";
        faults.error(section.spot(key), message).hint(hint);
    }
    format!("{module}:{name}")
}

fn command(section: &Section, faults: &mut Faults<'_>) -> ResidentRuns {
    if let Some(given) = section.given("interpreter") {
        faults
            .warn(given.key, "`interpreter` does nothing here")
            .hint("write the interpreter as the first word of `run`");
    }
    let mut words = Vec::new();
    for (word, spot) in section.texts("run") {
        let is_path = words.is_empty() && word.contains('/');
        words.push(match is_path {
            true => text_of(&faults.sources().resolve(spot.source, word)),
            false => word.to_owned(),
        });
        if word.contains('\0') {
            let hint = "an argument ends there: remove it";
            faults
                .error(spot, "an argument has a NUL character")
                .hint(hint);
        }
    }
    let is_named = words.first().is_some_and(|name| !name.is_empty());
    if !is_named && section.given("run").is_some() {
        let hint = "write the program and its arguments: `run = [\"./stock\"]`";
        faults
            .error(section.spot("run"), "`run` is empty")
            .hint(hint);
    }
    ResidentRuns::Command(words)
}

fn usual_dir(runs: &ResidentRuns, section: &Section, faults: &Faults<'_>) -> PathBuf {
    match runs {
        ResidentRuns::Hosted {
            host: ApplicationKind::Scripts,
            what,
            ..
        } => PathBuf::from(what),
        ResidentRuns::Hosted { host, what, .. } if host.is_file() => folder_of(what),
        ResidentRuns::Command(words) if words.first().is_some_and(|name| name.contains('/')) => {
            folder_of(&words[0])
        }
        _ => faults.sources().dir(section.header.source).to_path_buf(),
    }
}

/// What may be started, and where it may work.
fn allow(runs: &ResidentRuns, dir: &Path, program: &mut ProgramConfig) {
    program.folders.push(dir.to_path_buf());
    let host = match runs {
        ResidentRuns::Command(_) => None,
        ResidentRuns::Hosted { host, .. } if host.is_python() => Some(HostSource::ResidentPython),
        ResidentRuns::Hosted { .. } => Some(HostSource::ResidentPerl),
    };
    program.command_lines.push(CommandLine {
        name: runs.program().to_owned(),
        executables: candidates(runs.program(), program.path()),
        arguments: runs.words().into_iter().map(Argument::Text).collect(),
        file_ending: None,
        host,
    });
}

/// Variables that a worker has besides those of the config.
fn own_env(carrier: CarrierChoice, runs: &ResidentRuns, is_watched: bool) -> Vec<(String, String)> {
    let (channel, is_python) = match (carrier, runs) {
        (CarrierChoice::Lines, _) => (("CGIPLUSIN", "/dev/fd/3"), false),
        (_, ResidentRuns::Hosted { host, .. }) => (("HOB_FD", "3"), host.is_python()),
        (_, ResidentRuns::Command(_)) => (("HOB_FD", "3"), false),
    };
    // Compiled files know their source by second and size: two changes in a second look alike.
    let compiles_nothing = (is_python && is_watched).then_some(("PYTHONDONTWRITEBYTECODE", "1"));
    let all = compiles_nothing.into_iter().chain([channel]);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Patterns of files below `dir`.
fn watch(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    let mut patterns = Vec::new();
    for (pattern, spot) in section.texts("watch") {
        let is_below = !pattern
            .split('/')
            .any(|part| matches!(part, "" | "." | ".."));
        if is_below && !pattern.contains('\0') {
            patterns.push(pattern.to_owned());
        } else {
            let hint = "write names below `dir`, such as \"*.py\" or \"templates/**\"";
            faults
                .error(spot, format!("{pattern:?} names no files below `dir`"))
                .hint(hint);
        }
    }
    patterns
}

/// A chunk has whole pages.
const CHUNK_STEP_BYTES: usize = 4096;

fn shared(section: &Section, carrier: CarrierChoice, faults: &mut Faults<'_>) -> SharedSizes {
    let sizes = section.inner("shared", &SHARED, |shared| SharedSizes {
        chunk_count: shared.number("chunks"),
        chunk_bytes: shared.size_usize("chunk"),
    });
    let Some(given) = section.section("shared") else {
        return sizes;
    };
    if !sizes.chunk_bytes.is_multiple_of(CHUNK_STEP_BYTES) {
        faults
            .error(given.spot("chunk"), "`chunk` is no multiple of 4 KiB")
            .hint("write \"4KiB\", \"16KiB\" or \"64KiB\", for example");
    }
    if matches!(carrier, CarrierChoice::Stream | CarrierChoice::Lines) {
        let message = format!("the carrier \"{}\" shares no memory", carrier.word());
        faults
            .error(given.header, message)
            .hint("remove `shared`, or `carrier`");
    }
    sizes
}

fn workers(
    section: &Section,
    runs: &ResidentRuns,
    carrier: CarrierChoice,
    faults: &mut Faults<'_>,
) -> Workers {
    let workers = section.inner("workers", &WORKERS, |workers| Workers {
        min: workers.number("min"),
        max: workers.given("max").map(|_| workers.number("max")),
        concurrency: workers.number("concurrency"),
        idle_timeout: workers.time("idle_timeout"),
        max_requests: workers.number("max_requests"),
        max_age: workers.time("max_age"),
        max_memory: workers.size("max_memory"),
    });
    let spot = |key: &str| section.section("workers").map(|one| one.spot(key));
    if let Some(max) = workers.max
        && workers.min > max
    {
        let spot = spot("min").unwrap_or(section.header);
        faults
            .error(spot, "`min` is more than `max`")
            .hint("make `max` larger, or `min` smaller");
    }
    let alone = match runs {
        ResidentRuns::Hosted { host, .. } if !host.is_python() => Some("a program in Perl"),
        _ if carrier == CarrierChoice::Lines => Some("a program that speaks lines"),
        _ => None,
    };
    if let Some(who) = alone
        && workers.concurrency > 1
    {
        let spot = spot("concurrency").unwrap_or(section.header);
        faults
            .error(spot, format!("{who} has one request at a time"))
            .hint("remove `concurrency`; more `workers` do more at a time");
    }
    workers
}

fn folder_of(file: &str) -> PathBuf {
    let folder = Path::new(file).parent().unwrap_or(Path::new("/"));
    folder.to_path_buf()
}

/// Config texts are UTF-8, and so are paths made of them.
fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
