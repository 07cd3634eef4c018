//! `page` of a route: which pages, with which database, and within which limits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_keeper::preflight::{ProgramCheck, Want};
use hob_odbc::OdbcOptions;
use hob_page::escape::EscapeMode;
use hob_page::sql::postgres::PostgresOptions;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, ConfigSources, Faults, PathStatus, Route, Spot};
use crate::handle::page::Pages;
use crate::handle::page::keys::{DATABASE, PAGE, VISITOR_QUEUE, escape_mode};
use crate::handle::page::program::{self, CalledProgram};
use crate::handle::page::visits::home::PageVisitSettings;
use crate::handle::script::build::half_close;
use crate::handle::script::visits::config::VisitSettings;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::route::table::{RouteAnswer, RouteTable};
use crate::serve::sites::SitesBuildContext;

/// What is to be done where there is no ODBC.
const NO_ODBC: &str = "install unixODBC and a driver for the database: on Debian `libodbc2` and, for \
                       example, `odbc-postgresql`";

/// Pages of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagesSettings {
    /// Their folder.
    pub dir: PathBuf,
    /// How their names end.
    pub endings: Vec<String>,
    /// Their database.
    pub database: Option<DatabaseSettings>,
    /// Others that they may name.
    pub others: Vec<DatabaseSettings>,
    /// Programs that they may call.
    pub programs: Vec<CalledProgram>,
    /// What one may print for a call, in bytes.
    pub program_output: usize,
    /// The initialization file.
    pub ini: Option<PathBuf>,
    /// Folder of flat files.
    pub files: Option<PathBuf>,
    /// Pages may write them.
    pub writes_files: bool,
    /// Folder of registries.
    pub registries: Option<PathBuf>,
    /// How data is escaped.
    pub escape: EscapeMode,
    /// They may say who logs in to a database.
    pub has_page_logins: bool,
    /// Runs at once that may wait.
    pub threads: usize,
    /// Requests that wait for one of them.
    pub queue: usize,
    /// How long a run may take, with waiting.
    pub time: Duration,
    /// What is wrong is shown to clients.
    pub is_dev: bool,
    /// How pages keep visits, where they do.
    pub session: Option<PageVisitSettings>,
}

/// Where a database is.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabasePlace {
    /// A file of SQLite.
    File(PathBuf),
    /// A server of PostgreSQL, by its URL.
    Server(String),
    /// What ODBC knows of.
    Odbc(OdbcOptions),
}

impl fmt::Debug for DatabasePlace {
    /// A server without who asks, and with which password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabasePlace::File(file) => write!(f, "{file:?}"),
            DatabasePlace::Odbc(options) => write!(f, "{options:?}"),
            DatabasePlace::Server(url) => {
                let place = url.rsplit_once('@').map_or(&**url, |(_, place)| place);
                let place = place.strip_prefix("postgres://").unwrap_or(place);
                write!(f, "{:?}", format!("postgres://{place}"))
            }
        }
    }
}

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// What pages call it.
    pub name: String,
    /// Where it is.
    pub place: DatabasePlace,
    /// A file with the password for it.
    pub password_file: Option<PathBuf>,
    /// Nothing is written.
    pub is_read_only: bool,
    /// It is made where it is not there.
    pub creates: bool,
    /// Connections at once.
    pub connections: usize,
    /// Memory of a process with a driver of ODBC, in bytes.
    pub memory_bytes: u64,
    /// How long a statement waits for another writer.
    pub busy: Duration,
    /// From when on a statement is slow.
    pub slow: Duration,
    /// The plan of a slow statement is asked for.
    pub tells_plan: bool,
}

/// Where the parts of a `page` stand.
pub struct PagesSpots {
    dir: Spot,
    ini: Spot,
    files: Spot,
    registries: Spot,
    database: Spot,
    /// Of each other database, in their order.
    others: Vec<Spot>,
    /// Of each program, in their order.
    programs: Vec<Spot>,
}

impl HasSettings for Pages {
    type Settings = PagesSettings;
    type Spots = PagesSpots;
}

impl Configured for Pages {
    const KEY: SchemaKey =
        SchemaKey::new("page", ValueType::OrText("dir", &PAGE), Nothing("")).aka(&["macro"]);

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        _: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (PagesSettings, PagesSpots) {
        let dir = section.given("dir").and(section.optional_path("dir"));
        let endings = section.texts("endings");
        for (ending, spot) in &endings {
            if !ending.starts_with('.') || ending.len() < 2 || ending.contains('/') {
                faults
                    .error(*spot, format!("{ending:?} is no ending of a file's name"))
                    .hint("write a point and letters: `\".page\"`");
            }
        }
        let named = on.around.root.sections("database");
        let sources = faults.sources();
        let named = named.iter().filter_map(|one| {
            let known = of_named(one, sources)?.ok()?;
            Some((known, one.spot("url")))
        });
        let (mut others, mut urls): (Vec<_>, Vec<_>) = named.unzip();
        let database = own_database(section, &others, faults);
        if let Some(own) = others.iter().position(|one| Some(one) == database.as_ref()) {
            others.remove(own);
            urls.remove(own);
        }
        let programs = program::read(section, on.around.root, faults);
        let settings = PagesSettings {
            dir: dir.cloned().unwrap_or_default(),
            endings: endings.iter().map(|(one, _)| (*one).to_owned()).collect(),
            database,
            others,
            programs: programs.iter().map(|(one, _)| one.clone()).collect(),
            program_output: section.size_usize("program_output"),
            ini: section.optional_path("ini").cloned(),
            files: section.optional_path("files").cloned(),
            writes_files: section.flag("files_write"),
            registries: section.optional_path("registries").cloned(),
            escape: escape_mode(section.word("escape")),
            has_page_logins: section.flag("logins"),
            threads: section.number("threads"),
            queue: section.number("queue"),
            time: section.time("time"),
            is_dev: section.flag("dev"),
            session: read_session(section, on, faults),
        };
        let spots = PagesSpots {
            dir: section.spot("dir"),
            ini: section.spot("ini"),
            files: section.spot("files"),
            registries: section.spot("registries"),
            database: section.spot("database"),
            others: urls,
            programs: programs.iter().map(|(_, spot)| *spot).collect(),
        };
        (settings, spots)
    }

    fn build(
        settings: &PagesSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<Pages>, String> {
        Pages::new(settings, (&route.path, half_close(route)), around).map(Arc::new)
    }

    fn check(
        settings: &PagesSettings,
        spots: &PagesSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        if !settings.dir.as_os_str().is_empty() {
            looked.folder(&settings.dir, spots.dir, faults);
            settings.check_readers(config, spots.dir, faults);
        }
        if let Some(ini) = &settings.ini {
            looked.file(ini, spots.ini, "a file of settings is needed", faults);
        }
        for (folder, spot, is_written) in settings.flat_folders(spots) {
            looked.folder(folder, spot, faults);
            let is_within = folder.starts_with(&settings.dir) || settings.dir.starts_with(folder);
            if is_written && is_within {
                faults
                    .warn(
                        spot,
                        "pages could write pages here, and whatever a page says is done",
                    )
                    .hint("name a folder that is neither in `dir` nor around it");
            }
        }
        for (called, spot) in settings.programs.iter().zip(&spots.programs) {
            called.check(config, *spot, faults);
        }
        for (database, spot) in settings.databases(spots) {
            check_database(database, spot, looked, faults);
        }
    }

    fn look(settings: &PagesSettings, spots: &PagesSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        look.server_enters(&settings.dir, spots.dir);
        if let Some(ini) = &settings.ini {
            look.needs(ini, Want::Read, spots.ini);
        }
        for (folder, spot, is_written) in settings.flat_folders(spots) {
            if look.server_enters(folder, spot) && is_written {
                look.server_writes(folder, spot);
            }
        }
        for (database, spot) in settings.databases(spots) {
            if let Some(file) = &database.password_file {
                look.needs(file, Want::Read, spot);
            }
            match &database.place {
                DatabasePlace::File(file) => look.needs(file, Want::Read, spot),
                DatabasePlace::Odbc(_) => look.loads("libodbc.so.2", NO_ODBC, spot),
                DatabasePlace::Server(_) => {}
            }
        }
    }

    fn calls(settings: &PagesSettings) -> Vec<(usize, usize)> {
        settings.programs.iter().map(|called| called.at).collect()
    }

    fn runs(settings: &PagesSettings) -> String {
        settings.dir.display().to_string()
    }
}

/// Tells once what is wrong with where a database is, however many routes have it.
fn check_database(
    database: &DatabaseSettings,
    spot: Spot,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let mut missing = Vec::new();
    if let DatabasePlace::File(file) = &database.place
        && !database.creates
    {
        let hint = "make it with `sqlite3`, or add `create = true` to its `[[database]]`";
        missing.push((file, "database", hint));
    }
    if let Some(file) = &database.password_file {
        let hint = "write the password into it, on one line: nobody is let in without it";
        missing.push((file, "password file", hint));
    }
    missing.retain(|(file, ..)| looked.look(file) == PathStatus::Nothing);
    if missing.is_empty() || !looked.is_first(spot) {
        return;
    }
    for (file, what, hint) in missing {
        faults
            .warn(spot, format!("there is no {what} {}", file.display()))
            .hint(hint);
    }
}

/// How pages keep visits.
fn read_session(
    section: &Section,
    on: &OnSection<'_>,
    faults: &mut Faults<'_>,
) -> Option<PageVisitSettings> {
    let session = section.section("session")?;
    let queue = session.inner("queue", &VISITOR_QUEUE, |queue| queue.number("max"));
    Some(PageVisitSettings {
        visits: VisitSettings::read(session, on, faults),
        queue,
    })
}

/// The database of a route.
fn own_database(
    section: &Section,
    named: &[DatabaseSettings],
    faults: &mut Faults<'_>,
) -> Option<DatabaseSettings> {
    let wanted = section.optional_text("database")?;
    let spot = section.spot("database");
    if wanted.contains(':') {
        let presets = Section::new(&DATABASE, spot);
        let read = settings(&presets, wanted, (wanted, spot), faults.sources());
        return read.map_err(|wrong| wrong.tell(spot, faults)).ok();
    }
    let found = named.iter().find(|one| one.name == wanted);
    if found.is_none() {
        let known: Vec<_> = named.iter().map(|one| &*one.name).collect();
        let hint = match known[..] {
            [] => format!("add `[[database]]` with `name = {wanted:?}`, or write `sqlite:FILE`"),
            _ => format!("those that there are: {}", known.join(", ")),
        };
        faults
            .error(spot, format!("there is no `[[database]]` {wanted:?}"))
            .hint(hint);
    }
    found.cloned()
}

/// What a `[[database]]` says; `None` where something is missing, which is told already.
fn of_named(
    section: &Section,
    sources: &ConfigSources,
) -> Option<Result<DatabaseSettings, WrongUrl>> {
    section.given("name").and(section.given("url"))?;
    let (name, url) = (section.text("name"), section.text("url"));
    Some(settings(section, name, (url, section.spot("url")), sources))
}

/// What is wrong with where a database is.
enum WrongUrl {
    Kind(String),
    NoFile,
    Server(String),
    Odbc(String),
}

impl WrongUrl {
    fn tell(self, spot: Spot, faults: &mut Faults<'_>) {
        match self {
            WrongUrl::Kind(kind) => faults
                .error(spot, format!("{kind:?} is no kind of database"))
                .hint("write `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `odbc:DSN=NAME`"),
            WrongUrl::NoFile => faults
                .error(spot, "there is no file behind `sqlite:`")
                .hint("write `sqlite:stock.db`"),
            WrongUrl::Server(why) => faults
                .error(spot, format!("this is no URL of PostgreSQL: {why}"))
                .hint("write `postgres://USER@HOST/DATABASE`"),
            WrongUrl::Odbc(why) => faults
                .error(spot, format!("this is no source of ODBC: {why}"))
                .hint("write `odbc:DSN=stock`, or `odbc:Driver=NAME;Server=HOST;Database=stock`"),
        };
    }
}

fn settings(
    section: &Section,
    name: &str,
    (url, spot): (&str, Spot),
    sources: &ConfigSources,
) -> Result<DatabaseSettings, WrongUrl> {
    let place = match url.split_once(':') {
        Some(("sqlite", "" | "//")) => return Err(WrongUrl::NoFile),
        Some(("sqlite", file)) => {
            let file = file.strip_prefix("//").unwrap_or(file);
            DatabasePlace::File(sources.resolve(spot.source, file))
        }
        Some(("postgres" | "postgresql", _)) => {
            PostgresOptions::parse(url).map_err(WrongUrl::Server)?;
            DatabasePlace::Server(url.to_owned())
        }
        Some(("odbc", _)) => DatabasePlace::Odbc(OdbcOptions::parse(url).map_err(WrongUrl::Odbc)?),
        Some((kind, _)) => return Err(WrongUrl::Kind(kind.to_owned())),
        None => return Err(WrongUrl::Kind(url.to_owned())),
    };
    let is_inline = section.given("name").is_none();
    let named = match (&place, is_inline) {
        // It may have a password in it.
        (DatabasePlace::Server(_), true) => "postgres",
        (DatabasePlace::Odbc(_), true) => "odbc",
        _ => name,
    };
    Ok(DatabaseSettings {
        name: named.to_owned(),
        place,
        password_file: section.optional_path("password_file").cloned(),
        is_read_only: section.flag("readonly"),
        creates: section.flag("create"),
        connections: section.number("connections"),
        memory_bytes: section.size("memory"),
        busy: section.time("busy"),
        slow: section.time("slow"),
        tells_plan: section.flag("plan"),
    })
}

/// Tells what is wrong with each `[[database]]`, and names that two have.
pub(in crate::handle) fn check_named(root: &Section, faults: &mut Faults<'_>) {
    let all = root.sections("database");
    for (at, one) in all.iter().enumerate() {
        let name = one.text("name");
        if let Some(first) = all[..at]
            .iter()
            .find(|first| first.text("name").eq_ignore_ascii_case(name))
        {
            faults
                .error(
                    one.spot("name"),
                    format!("there are two databases {name:?}"),
                )
                .see(first.spot("name"), "the first")
                .hint("give one another name");
        }
        if let Some(Err(wrong)) = of_named(one, faults.sources()) {
            wrong.tell(one.spot("url"), faults);
        }
    }
}

impl PagesSettings {
    /// Tells of a route that sends pages as they are, as files: their source is for nobody.
    fn check_readers(&self, config: &Config, spot: Spot, faults: &mut Faults<'_>) {
        let routes = config.sites.iter().flat_map(|site| {
            let all = site.routes.iter().enumerate();
            all.map(move |(at, route)| (site, at, route))
        });
        for (site, at, route) in routes {
            let Some(files) = route.handler.files().filter(|_| !route.internal) else {
                continue;
            };
            let Ok(rest) = self.dir.strip_prefix(&files.root) else {
                continue;
            };
            let patterns = site.routes.iter().map(|route| Pattern::parse(&route.path));
            let Ok(patterns) = patterns.collect::<Result<Vec<_>, _>>() else {
                continue;
            };
            let folder = match route.path.find(['*', '{']) {
                Some(end) if !files.keep_prefix && route.path.starts_with('/') => {
                    &route.path[..end]
                }
                _ => "/",
            };
            let table = RouteTable::build(patterns.iter());
            let is_sent = |ending: &String| {
                let page = rest.join(format!("page{ending}"));
                let path = format!("{folder}{}", page.display());
                // Others with a `when` leave some requests to this one.
                let answers = |route: u32| {
                    let other = site.routes.get(route as usize);
                    let is_asked =
                        route as usize == at || other.is_some_and(|other| other.when.is_none());
                    match is_asked {
                        true => RouteAnswer::Yes,
                        false => RouteAnswer::No(table.next(route)),
                    }
                };
                let found = table.find_where(path.as_bytes(), answers);
                found.is_some_and(|found| found.route as usize == at)
            };
            if self.endings.iter().any(is_sent) {
                let (path, root) = (&route.path, files.root.display());
                let text = format!(
                    "the pages lie in {root}, which the route {path:?} sends as files: whoever \
                     asks for one there reads its source"
                );
                let hint = "move them out of that folder, or give this route the path by which \
                            they lie there";
                faults.warn(spot, text).hint(hint);
            }
        }
    }

    /// The databases that pages may name, and where they stand: their own, and all others.
    fn databases(&self, spots: &PagesSpots) -> impl Iterator<Item = (&DatabaseSettings, Spot)> {
        let own = self.database.iter().map(|own| (own, spots.database));
        own.chain(self.others.iter().zip(spots.others.iter().copied()))
    }

    /// Folders of flat files and registries, and whether pages write there.
    fn flat_folders(&self, spots: &PagesSpots) -> impl Iterator<Item = (&Path, Spot, bool)> {
        let files = self.files.as_deref();
        let files = files.map(move |folder| (folder, spots.files, self.writes_files));
        let registries = self.registries.as_deref();
        let registries = registries.map(move |folder| (folder, spots.registries, true));
        files.into_iter().chain(registries)
    }

    /// Runs at once that may wait.
    pub(super) fn runs_max(&self) -> usize {
        let connections = self.database.as_ref().map(|database| database.connections);
        connections.unwrap_or(self.threads)
    }

    /// The folder that paths of the initialization file are relative to.
    pub(super) fn ini_folder(&self) -> Option<&Path> {
        self.ini.as_deref().and_then(Path::parent)
    }
}
