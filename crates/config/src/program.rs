//! How programs run: who they are, what they may use and reach, and what may be started at all.
//! `[program]` says it for all of them, a route's handler for that route.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::build::{account, account_spot};
use super::fault::{Faults, Spot};
use super::key::SchemaTable;
use super::route::template::{CapturedName, CapturedPath, HOST};
use super::schema::{GIDS, PROGRAM, UIDS};
use super::tree::{Argument, ConfigValue, Section};

/// One program of a route, with everything its start needs that no request decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramConfig {
    /// Account, when hob is started as root; `None` is the one for programs that name none.
    pub user: Option<String>,
    /// Group, instead of the user's own.
    pub group: Option<String>,
    /// The account is another one for each folder of `captured`, and `user` is `None`.
    pub account: Option<AccountRule>,
    /// Folders, one for each account or host: programs below them may be started, and they may be
    /// worked in.
    pub captured: Option<CapturedPath>,
    /// Variables besides those that a request has, sorted by name.
    pub env: Vec<(String, String)>,
    /// Permissions that new files do not get; `None` is hob's own.
    pub umask: Option<u32>,
    /// Nice level.
    pub nice: i32,
    /// How its disk access is served.
    pub io_class: IoClass,
    /// CPUs it may run on; empty is all.
    pub cpus: Vec<usize>,
    /// Limits of each process.
    pub limits: Rlimits,
    /// What it reaches.
    pub sandbox: Sandbox,
    /// Limits of all its processes together.
    pub cgroup: Cgroup,
    /// Folders, absolute: programs below them may be started, and they may be worked in.
    pub roots: Vec<PathBuf>,
    /// Folders, absolute: they may be worked in too, and nothing below them is started for that.
    pub folders: Vec<PathBuf>,
    /// Programs outside the roots that may be started by themselves. Absolute.
    pub files: Vec<PathBuf>,
    /// What else may be started, and with which arguments.
    pub command_lines: Vec<CommandLine>,
    /// Variables that hob sets for a program that stays; they stand above those of `env`.
    pub own_env: Vec<(String, String)>,
    /// Parameters of pages that are variables of these very names.
    pub values: Vec<String>,
}

/// Whose programs run as who they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRule {
    /// What the account of a capture is called.
    pub name: CapturedName,
    /// Its smallest and its largest number.
    pub uids: (u32, u32),
    /// The same of its main group.
    pub gids: (u32, u32),
}

/// A way to start an interpreter or a command: nothing else is ever passed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// What it is called in the config.
    pub name: String,
    /// The files that its name may mean. Absolute.
    pub executables: Vec<PathBuf>,
    /// Its arguments, without its name.
    pub arguments: Vec<Argument>,
    /// What follows them is a program with this ending, and words that are no options.
    pub file_ending: Option<String>,
    /// Its standard input is the source of this host.
    pub host: Option<HostSource>,
}

/// A language whose interpreters hob has hosts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python 3.
    Python,
    /// Perl 5.
    Perl,
}

impl Language {
    /// The language of an interpreter, by the name of its file: `/opt/python3.12` is Python.
    pub fn of_interpreter(name: &str) -> Option<Language> {
        let file = Path::new(name).file_name()?.to_str()?;
        let known = [
            ("python", Language::Python),
            ("pypy", Language::Python),
            ("perl", Language::Perl),
        ];
        let found = known.into_iter().find(|(begin, _)| file.starts_with(begin));
        found.map(|(_, language)| language)
    }

    /// The ending of its files, which need not be executable.
    pub fn ending(self) -> &'static str {
        match self {
            Language::Python => ".py",
            Language::Perl => ".pl",
        }
    }

    /// The usual name of its interpreter.
    pub fn usual_interpreter(self) -> &'static str {
        match self {
            Language::Python => "python3",
            Language::Perl => "perl",
        }
    }
}

/// The source of a host that hob brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSource {
    /// Forks a process for each request to a Python script.
    WarmPython,
    /// The same for Perl.
    WarmPerl,
    /// Keeps a Python program.
    ResidentPython,
    /// Keeps a Perl program.
    ResidentPerl,
}

impl HostSource {
    /// Every one; its place is its number in messages.
    pub const ALL: [HostSource; 4] = [
        HostSource::WarmPython,
        HostSource::WarmPerl,
        HostSource::ResidentPython,
        HostSource::ResidentPerl,
    ];
}

impl ProgramConfig {
    /// Folders in which programs are looked for.
    pub fn path(&self) -> &str {
        let own = self.env.iter().find(|(name, _)| name == "PATH");
        own.map_or(PATH, |(_, path)| path)
    }

    /// Variables that every process of it has, whatever the request, each once.
    pub fn variables(&self) -> Vec<(&str, &str)> {
        let has = |list: &[(String, String)], name: &str| list.iter().any(|(own, _)| own == name);
        let path = (!has(&self.env, "PATH")).then_some(("PATH", PATH));
        let given = self
            .env
            .iter()
            .filter(|(name, _)| !has(&self.own_env, name));
        let named = given
            .chain(&self.own_env)
            .map(|(name, value)| (&**name, &**value));
        path.into_iter().chain(named).collect()
    }
}

/// Whether a variable is one of a parameter of this name: its value, or a part of its table.
pub fn is_of_parameter(variable: &[u8], parameter: &str) -> bool {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let Some(rest) = variable.strip_prefix(parameter.as_bytes()) else {
        return false;
    };
    let mut parts = rest.split(|byte| *byte == b'_').skip(1);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        _ if rest.is_empty() => true,
        _ if rest[0] != b'_' => false,
        (Some(b"ROWS" | b"COLS"), None, ..) => true,
        (Some(b"N"), Some(column), None, _) => is_number(column),
        (Some(b"V"), Some(row), Some(column), None) => is_number(row) && is_number(column),
        _ => false,
    }
}

/// Folders in which programs are looked for that are named without one, unless `env` has a `PATH`.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The files a name of a program may mean, first found wins. One with a slash in it means itself.
pub fn candidates(name: &str, path: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    let folders = path.split(':').map(Path::new);
    let folders = folders.filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).collect()
}

/// The file a name of a program means.
///
/// # Errors
/// There is none that can be executed: a sentence.
pub fn resolve(name: &str, path: &str) -> Result<PathBuf, String> {
    let is_executable = |file: &PathBuf| {
        let found = std::fs::metadata(file);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = candidates(name, path).into_iter().find(is_executable);
    found.ok_or_else(|| match name.contains('/') {
        true => format!("{name} is no program: it is not there, or not executable"),
        false => format!("there is no program {name:?} in {path}; install it, or write its path"),
    })
}

/// Where the parts of a program stand that the machine may refuse.
pub struct ProgramSpots {
    /// The account.
    pub user: Spot,
    /// Its CPUs.
    pub cpus: Spot,
    /// Limits of each process, by their key.
    pub rlimits: Vec<(&'static str, Spot)>,
}

/// How disk access is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoClass {
    /// As everybody's.
    #[default]
    Normal,
    /// After that of others.
    Low,
    /// When nobody else wants the disk.
    Idle,
}

/// Limits of each process; `None` leaves a limit as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rlimits {
    /// Address space, in bytes.
    pub address_space: Option<u64>,
    /// Largest core file, in bytes.
    pub core: u64,
    /// CPU time; whole seconds.
    pub cpu: Option<Duration>,
    /// Data segment, in bytes.
    pub data: Option<u64>,
    /// Largest file, in bytes.
    pub file_size: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
    /// Processes and threads of the account.
    pub processes: Option<u64>,
    /// Stack, in bytes.
    pub stack: Option<u64>,
}

/// What a program reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Nothing it starts gains rights.
    pub no_new_privileges: bool,
    /// What may be read. If this and the next two are empty, files are not restricted.
    pub read: Vec<PathBuf>,
    /// What may be read, written, made and removed.
    pub write: Vec<PathBuf>,
    /// What may be read and executed.
    pub execute: Vec<PathBuf>,
    /// Namespaces of its own.
    pub namespaces: Vec<Namespace>,
}

/// A kind of namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Network.
    Net,
    /// System V IPC and message queues.
    Ipc,
    /// Host name.
    Uts,
    /// Processes.
    Pid,
    /// Mounts.
    Mount,
}

/// Limits of all processes of a program together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// The program has a group, with or without limits.
    pub is_wanted: bool,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Share of the CPUs, 1 to 10,000.
    pub cpu_weight: Option<u64>,
}

/// Nice levels end here.
const NICE_MAX: i32 = 19;

/// Tells what the keys of a program's section say wrongly: once for `[program]`, once for each
/// handler's own section.
pub fn check_program(section: &Section, faults: &mut Faults<'_>) {
    for key in ["user", "group"] {
        account(section, key, faults);
    }
    check_env(section, faults);
    if let Some(text) = section.optional_text("umask")
        && octal(text).is_none()
    {
        let hint = "write three octal digits, such as \"022\" or \"077\"";
        let message = format!("{text:?} is no umask");
        faults.error(section.spot("umask"), message).hint(hint);
    }
}

/// Tells what is wrong with accounts that are others for each request.
fn check_accounts(section: &Section, faults: &mut Faults<'_>) {
    check_account_name(section, faults);
    for key in ["uids", "gids"] {
        let range = section.table().key(key).and_then(|_| section.section(key));
        if let Some(range) = range
            && range.number::<u32>("min") > range.number("max")
        {
            let message = format!("`{key}` ends before it begins");
            let fault = faults.error(range.header, message);
            fault.hint("make `min` smaller, or `max` larger");
        }
    }
}

/// Tells what is wrong with a `user` that has a capture.
fn check_account_name(section: &Section, faults: &mut Faults<'_>) {
    let Some(text) = section.optional_text("user") else {
        return;
    };
    let spot = section.spot("user");
    match CapturedName::parse(text) {
        Err(error) => {
            faults
                .error(spot, format!("{text:?} is no name of an account"))
                .hint(error.to_string());
        }
        Ok(name) if name.capture.as_deref() == Some(HOST) => {
            faults
                .error(spot, "a host is no account")
                .hint("capture the account's name in the route's path: `path = \"/{user}/*\"`");
        }
        Ok(name) if name.capture.is_some() && section.has("group") => {
            faults
                .error(section.spot("group"), "each account has a group of its own")
                .see(spot, "the account is another one for each request")
                .hint("remove `group`");
        }
        Ok(_) => {}
    }
}

/// Tells what is wrong with variables that the config sets.
pub fn check_env(section: &Section, faults: &mut Faults<'_>) {
    for pair in section.map("env") {
        if pair.name.is_empty() || pair.name.contains(['=', '\0']) {
            let message = format!("{:?} is no name of a variable", pair.name);
            let hint = "write a name without `=`, such as `LANG`";
            faults.error(pair.key, message).hint(hint);
        }
        if pair.text.contains('\0') {
            let message = format!("the value of `{}` has a NUL character", pair.name);
            let hint = "a variable ends there: remove it";
            faults.error(pair.spot, message).hint(hint);
        }
    }
}

/// The programs of a config, while its routes are read.
pub struct Programs<'a> {
    root: &'a Section,
    list: Vec<ProgramConfig>,
    spots: Vec<ProgramSpots>,
    /// Places that were warned of: one of `[program]` concerns many programs.
    warned: Vec<Spot>,
}

impl<'a> Programs<'a> {
    /// None yet; `root` is the top level, whose `[program]` holds for all.
    pub(crate) fn new(root: &'a Section, faults: &mut Faults<'_>) -> Programs<'a> {
        if let Some(program) = root.section("program") {
            check_program(program, faults);
            check_accounts(program, faults);
        }
        Programs {
            root,
            list: Vec::new(),
            spots: Vec::new(),
            warned: Vec::new(),
        }
    }

    /// Adds the program of a handler's section, completed by `complete`; gives its index.
    pub fn add(
        &mut self,
        own: &Section,
        faults: &mut Faults<'_>,
        complete: impl FnOnce(&mut ProgramConfig),
    ) -> usize {
        let mut program = build_program(self.root, own, faults);
        self.check_sandbox(own, faults);
        check_accounts(own, faults);
        complete(&mut program);
        self.check_capture(own, &program, faults);
        self.spots.push(program_spots(self.root, own));
        self.list.push(program);
        self.list.len() - 1
    }

    /// Adds one that no handler has; gives its index.
    pub(crate) fn add_own(&mut self, program: ProgramConfig, spots: ProgramSpots) -> usize {
        self.spots.push(spots);
        self.list.push(program);
        self.list.len() - 1
    }

    /// The account of a capture is that whose folder its program is in.
    fn check_capture(&self, own: &Section, program: &ProgramConfig, faults: &mut Faults<'_>) {
        let capture = program.account.as_ref();
        let Some(capture) = capture.and_then(|account| account.name.capture.as_deref()) else {
            return;
        };
        let captured = program.captured.iter().flat_map(CapturedPath::captures);
        if { captured }.any(|known| known == capture) || capture == HOST {
            return;
        }
        let general = self.root.section("program").filter(|_| !own.has("user"));
        let spot = general.unwrap_or(own).spot("user");
        let message = format!("`user` has `{{{capture}}}`, and no folder of programs here has it");
        faults
            .error(spot, message)
            .see(own.header, "of this")
            .hint(format!(
                "only `cgi` runs programs as the account whose folder they are in: write `dir = \
             \"/home/{{{capture}}}/cgi-bin\"` there; here, name one account"
            ));
    }

    /// Landlock binds only who can gain no rights, so no_new_privs holds wherever files are named.
    fn check_sandbox(&mut self, own: &Section, faults: &mut Faults<'_>) {
        let none = Section::new(&PROGRAM, self.root.header);
        let general = self.root.section("program").unwrap_or(&none);
        let inner = LayeredSection::of(general, own, "sandbox");
        let wish = inner.from(NO_NEW_PRIVS);
        let names = ["read", "write", "execute"].into_iter();
        let mut lists = names.map(|name| (name, inner.from(name)));
        let Some((name, list)) = lists.find(|(name, from)| !from.texts(name).is_empty()) else {
            return;
        };
        if wish.flag(NO_NEW_PRIVS) {
            return;
        }
        let (wish, listed) = (wish.spot(NO_NEW_PRIVS), list.spot(name));
        // What `[program]` wishes may still hold for others.
        let is_for_others = inner.is_own(name) && !inner.is_own(NO_NEW_PRIVS);
        let (at, other, what) = match is_for_others {
            false => (wish, listed, "the program is confined to files here"),
            true => (listed, wish, "this does not hold here"),
        };
        if self.warned.contains(&at) {
            return;
        }
        self.warned.push(at);
        faults
            .warn(
                at,
                format!("`no_new_privs = false` does nothing beside `{name}`"),
            )
            .see(other, what)
            .hint("remove one of them: a program that is confined to files can gain no rights");
    }

    /// The programs, and where their parts stand.
    pub fn into_lists(self) -> (Vec<ProgramConfig>, Vec<ProgramSpots>) {
        (self.list, self.spots)
    }
}

const NO_NEW_PRIVS: &str = "no_new_privs";

/// A program as a handler's section says, where it says nothing as `[program]` does. The handler
/// adds what may be started, and where.
pub fn build_program(root: &Section, own: &Section, faults: &Faults<'_>) -> ProgramConfig {
    let none = Section::new(&PROGRAM, root.header);
    let general = root.section("program").unwrap_or(&none);
    let from = |key: &str| if own.has(key) { own } else { general };
    let text = |key: &str| from(key).optional_text(key).map(str::to_owned);
    let nice = from("nice");
    let io_class = match from("io_class").word("io_class") {
        "low" => IoClass::Low,
        "idle" => IoClass::Idle,
        _ => IoClass::Normal,
    };
    let user = text("user");
    let account = user.as_deref().and_then(|name| account_rule(own, name));
    ProgramConfig {
        user: user.filter(|_| account.is_none()),
        account,
        captured: None,
        // A group belongs to the user it is named with.
        group: match (own.has("user"), own.has("group")) {
            (true, false) => None,
            _ => text("group"),
        },
        env: variables(general, own),
        umask: from("umask").optional_text("umask").and_then(octal),
        nice: match nice.given("nice") {
            Some(_) => nice.number("nice"),
            None => (root.number::<i32>("nice") + 1).min(NICE_MAX),
        },
        io_class,
        cpus: from("cpus").cpus("cpus").to_vec(),
        limits: limits(general, own),
        sandbox: sandbox(general, own, faults),
        cgroup: cgroup(general, own),
        roots: Vec::new(),
        folders: Vec::new(),
        files: Vec::new(),
        command_lines: Vec::new(),
        own_env: Vec::new(),
        values: Vec::new(),
    }
}

fn program_spots(root: &Section, own: &Section) -> ProgramSpots {
    let none = Section::new(&PROGRAM, own.header);
    let general = root.section("program").unwrap_or(&none);
    let names_account = |section: &Section| section.has("user") || section.has("group");
    let names_cpus = if own.has("cpus") { own } else { general };
    let inner = LayeredSection::of(general, own, "rlimits");
    let given = |key| {
        let from = inner.from(key);
        from.has(key).then(|| (key, from.spot(key)))
    };
    ProgramSpots {
        user: match names_account(general) && !names_account(own) {
            true => account_spot(general),
            false => account_spot(own),
        },
        cpus: names_cpus.spot("cpus"),
        rlimits: RLIMITS.into_iter().filter_map(given).collect(),
    }
}

/// Limits of each process, as the config names them.
const RLIMITS: [&str; 8] = [
    "as", "core", "cpu", "data", "fsize", "nofile", "nproc", "stack",
];

/// Two sections of one inner table: the route's and the general one, by key.
struct LayeredSection<'a> {
    own: Option<&'a Section>,
    general: Option<&'a Section>,
    /// Neither is there.
    none: Section,
}

impl<'a> LayeredSection<'a> {
    fn of(general: &'a Section, own: &'a Section, name: &str) -> LayeredSection<'a> {
        let inner = PROGRAM.key(name).and_then(|key| key.kind.table());
        LayeredSection {
            own: own.section(name),
            general: general.section(name),
            none: Section::new(inner.unwrap_or(&PROGRAM), own.header),
        }
    }

    fn is_own(&self, key: &str) -> bool {
        self.own.is_some_and(|own| own.has(key))
    }

    fn from(&self, key: &str) -> &Section {
        let own = self.own.filter(|_| self.is_own(key));
        own.or(self.general).unwrap_or(&self.none)
    }

    fn integer(&self, key: &str) -> Option<u64> {
        match self.from(key).given(key)?.value {
            ConfigValue::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }
}

/// What a `user` with a capture means.
fn account_rule(own: &Section, name: &str) -> Option<AccountRule> {
    let name = CapturedName::parse(name).ok()?;
    name.capture.as_ref()?;
    let range = |key: &str, table: &'static SchemaTable| {
        let none = Section::new(table, own.header);
        let given = own.table().key(key).and_then(|_| own.section(key));
        let given = given.unwrap_or(&none);
        (given.number("min"), given.number("max"))
    };
    Some(AccountRule {
        name,
        uids: range("uids", &UIDS),
        gids: range("gids", &GIDS),
    })
}

fn limits(general: &Section, own: &Section) -> Rlimits {
    let inner = LayeredSection::of(general, own, "rlimits");
    let size = |key: &str| inner.from(key).optional_size(key);
    Rlimits {
        address_space: size("as"),
        core: inner.from("core").size("core"),
        cpu: inner.from("cpu").optional_time("cpu"),
        data: size("data"),
        file_size: size("fsize"),
        open_files: inner.integer("nofile"),
        processes: inner.integer("nproc"),
        stack: size("stack"),
    }
}

fn sandbox(general: &Section, own: &Section, faults: &Faults<'_>) -> Sandbox {
    let inner = LayeredSection::of(general, own, "sandbox");
    let paths = |key: &str| {
        let texts = inner.from(key).texts(key).into_iter();
        let path = |(text, spot): (&str, Spot)| faults.sources().resolve(spot.source, text);
        texts.map(path).collect()
    };
    let words = inner.from("namespaces").texts("namespaces").into_iter();
    Sandbox {
        no_new_privileges: inner.from(NO_NEW_PRIVS).flag(NO_NEW_PRIVS),
        read: paths("read"),
        write: paths("write"),
        execute: paths("execute"),
        namespaces: words.map(|(word, _)| namespace(word)).collect(),
    }
}

fn namespace(word: &str) -> Namespace {
    match word {
        "net" => Namespace::Net,
        "ipc" => Namespace::Ipc,
        "uts" => Namespace::Uts,
        "pid" => Namespace::Pid,
        _ => Namespace::Mount,
    }
}

fn cgroup(general: &Section, own: &Section) -> Cgroup {
    let inner = LayeredSection::of(general, own, "cgroup");
    Cgroup {
        is_wanted: inner.own.is_some() || inner.general.is_some(),
        memory: inner.from("memory").optional_size("memory"),
        pids: inner.integer("pids"),
        cpu_weight: inner.integer("cpu_weight"),
    }
}

/// The general variables and the route's own; of two with one name the route's own.
fn variables(general: &Section, own: &Section) -> Vec<(String, String)> {
    let pairs = general.map("env").iter().chain(own.map("env"));
    let named = pairs.map(|pair| (pair.name.clone(), pair.text.clone()));
    let sorted: BTreeMap<String, String> = named.collect();
    sorted.into_iter().collect()
}

fn octal(text: &str) -> Option<u32> {
    let is_octal = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let mask = u32::from_str_radix(text, 8).ok()?;
    (is_octal && mask <= 0o777).then_some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_has_the_variables_of_its_value_and_its_table() {
        for name in ["t", "t_ROWS", "t_COLS", "t_N_1", "t_V_12_3"] {
            assert!(is_of_parameter(name.as_bytes(), "t"), "{name}");
        }
        for name in [
            "",
            "tt",
            "t_",
            "t_rows",
            "t_N",
            "t_N_a",
            "t_V_1",
            "t_V_1_2_3",
            "T",
            "t_V_1_",
        ] {
            assert!(!is_of_parameter(name.as_bytes(), "t"), "{name}");
        }
    }
}
