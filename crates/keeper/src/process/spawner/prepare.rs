//! What is made of a policy when it comes, so that a start has nothing left to look up.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hob_machine::OwnGroups;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, geteuid, getpriority_process, getrlimit, setpriority_process};

use super::asked::{HostSourceFiles, PolicyCommandLine};
use super::cgroup::ProgramCgroup;
use super::starts;
use crate::process::kernel::{self, right};
use crate::process::policy::Rules;
use crate::process::recipe::{ChildCredentials, Recipe};
use hob_config::program::is_of_parameter;
use hob_config::route::template::CapturedPath;
use hob_config::{AccountRule, IoClass, Namespace, Rlimits, Sandbox};

/// Soft limit of open files unless the config says otherwise: what programs expect, and what old
/// ones can bear.
const OPEN_FILES_USUAL: u64 = 1024;
/// Processes of an account that is not ours, unless the config says otherwise.
const PROCESSES_USUAL: u64 = 4096;
/// CPU time of a bare start, in seconds.
const BARE_CPU_S_MAX: u64 = 2;
/// The nice level behind all others.
const NICE_LAST: i32 = 19;

/// One program, ready to be started.
#[derive(Debug)]
pub(super) struct PreparedProgram {
    pub(super) recipe: Rc<Recipe>,
    /// Who its pipes are given to.
    pub(super) owner: Option<u32>,
    /// The standard input of programs that get nothing to read, one for all of them. It stays
    /// root's and can be read only: opened again for writing, from `/proc/self/fd`, it would no
    /// longer end for the others. `None` where they run as who we are, and each needs one of its
    /// own.
    pub(super) no_input: Option<OwnedFd>,
    /// The control group of its processes.
    pub(super) group: Option<Rc<ProgramCgroup>>,
    /// Each of its programs becomes the account whose folder it is in.
    pub(super) account: Option<AccountRule>,
    roots: Vec<PathBuf>,
    pub(super) captured: Option<CapturedPath>,
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
    pub(super) lines: Vec<PolicyCommandLine>,
    /// Names of the variables that the policy has.
    variables: Vec<String>,
    /// Parameters of pages that are variables.
    values: Vec<String>,
}

impl PreparedProgram {
    /// Prepares the program called `name`; `trouble` gets what the operator should know.
    pub(super) fn of(
        rules: &Rules,
        name: &str,
        (places, sources): (&OwnGroups, &mut HostSourceFiles),
        trouble: &mut dyn FnMut(String),
    ) -> PreparedProgram {
        let identity = rules.identity.as_ref();
        let is_other_account = identity.is_some() || rules.account.is_some();
        let namespaces = rules.sandbox.namespaces.as_slice();
        let has = |namespace| namespaces.contains(&namespace);
        let is_user_needed = !namespaces.is_empty() && !is_other_account;
        let mut flags = namespaces
            .iter()
            .fold(0, |flags, namespace| flags | flag(*namespace));
        if is_user_needed {
            flags |= libc::CLONE_NEWUSER as u64;
        }
        let files = sandbox(&rules.sandbox, trouble);
        let recipe = Recipe {
            namespaces: flags,
            maps: is_user_needed.then(maps),
            mount_tmp: has(Namespace::Mount),
            mount_proc: has(Namespace::Mount) && has(Namespace::Pid),
            limits: limits(&rules.limits, is_other_account),
            nice: nice(rules.nice),
            io_priority: io_priority(rules.io_class),
            cpus: cpu_bits(&rules.cpus),
            umask: rules.umask,
            identity: identity.map(|identity| ChildCredentials {
                uid: identity.uid,
                gid: identity.gid,
                groups: identity.groups.clone(),
            }),
            // Landlock demands it: otherwise a program that gains rights would be confused by it.
            no_new_privileges: rules.sandbox.no_new_privileges || files.is_some(),
            sandbox: files,
            variables: block(&rules.variables),
            must_fork: is_other_account && is_shared_memory_exposed(),
        };
        PreparedProgram {
            recipe: Rc::new(recipe),
            owner: identity.map(|identity| identity.uid),
            no_input: match (identity, &rules.account) {
                (Some(identity), _) => shared_input(identity.uid),
                // It is root's, and none of theirs.
                (None, Some(account)) => shared_input(account.uids.0),
                (None, None) => None,
            },
            group: match rules.cgroup.is_wanted {
                true => ProgramCgroup::make(places, name, &rules.cgroup, trouble),
                false => None,
            },
            account: rules.account.clone(),
            roots: rules.roots.clone(),
            captured: rules.captured.clone(),
            folders: rules.folders.clone(),
            files: rules.files.clone(),
            lines: rules
                .command_lines
                .iter()
                .map(|line| PolicyCommandLine::of(line, sources, trouble))
                .collect(),
            variables: rules
                .variables
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            values: rules.values.clone(),
        }
    }

    /// The same for an interpreter that is started only to see what that costs: behind everything
    /// else, and not for long. `None` when there is no descriptor left for its sandbox.
    pub(super) fn bare(&self) -> Option<Rc<Recipe>> {
        let recipe = &self.recipe;
        let sandbox = recipe.sandbox.as_ref().map(OwnedFd::try_clone);
        let mut limits = recipe.limits.clone();
        limits.retain(|(resource, _)| *resource != libc::RLIMIT_CPU);
        limits.push((libc::RLIMIT_CPU, [BARE_CPU_S_MAX; 2]));
        Some(Rc::new(Recipe {
            namespaces: recipe.namespaces,
            maps: recipe.maps.clone(),
            mount_tmp: recipe.mount_tmp,
            mount_proc: recipe.mount_proc,
            limits,
            nice: Some(NICE_LAST),
            io_priority: io_priority(IoClass::Idle),
            cpus: recipe.cpus.clone(),
            umask: recipe.umask,
            identity: recipe.identity.clone(),
            no_new_privileges: recipe.no_new_privileges,
            sandbox: sandbox.transpose().ok()?,
            variables: Vec::new(),
            must_fork: recipe.must_fork,
        }))
    }

    /// Whether this is a program of the route.
    pub(super) fn may_run(&self, path: &[u8]) -> bool {
        is_below(path, &self.roots, Itself::No)
            || self.is_captured(path, Itself::No)
            || self.files.iter().any(|known| bytes(known) == path)
    }

    /// Whether it is one, or who runs one.
    pub(super) fn is_named(&self, path: &[u8]) -> bool {
        let mut named = self.lines.iter().flat_map(|line| &line.line.executables);
        self.may_run(path) || named.any(|known| bytes(known) == path)
    }

    /// Whether the policy has a variable of this name.
    pub(super) fn has_variable(&self, name: &[u8]) -> bool {
        self.variables.iter().any(|own| own.as_bytes() == name)
    }

    /// Whether a page may set this variable.
    pub(super) fn has_value(&self, name: &[u8]) -> bool {
        self.values.iter().any(|known| is_of_parameter(name, known))
    }

    /// Whether a program may be started in this folder.
    pub(super) fn may_work_in(&self, folder: &[u8]) -> bool {
        is_below(folder, &self.roots, Itself::Yes)
            || self.is_captured(folder, Itself::Yes)
            || is_below(folder, &self.folders, Itself::Yes)
    }

    /// Whether this is below a folder that captures give.
    fn is_captured(&self, path: &[u8], itself: Itself) -> bool {
        let found = self
            .captured
            .as_ref()
            .and_then(|captured| captured.read(path));
        found.is_some_and(|(_, rest)| is_below(rest, &[PathBuf::new()], itself))
    }
}

/// Whether the root itself counts as below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Itself {
    Yes,
    No,
}

/// A root may have a way up in it, which the config put there; what follows it may not.
fn is_below(path: &[u8], roots: &[PathBuf], itself: Itself) -> bool {
    let goes_up = |rest: &[u8]| rest.split(|byte| *byte == b'/').any(|part| part == b"..");
    roots.iter().any(|root| {
        let root = bytes(root);
        let root = root.strip_suffix(b"/").unwrap_or(root);
        match path.strip_prefix(root) {
            Some([]) => itself == Itself::Yes,
            Some([b'/', rest @ ..]) => {
                !goes_up(rest) && (itself == Itself::Yes || !rest.is_empty())
            }
            _ => false,
        }
    })
}

/// Variables, each with its NUL.
fn block(variables: &[(String, String)]) -> Vec<u8> {
    let lines = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}\0"));
    lines.collect::<String>().into_bytes()
}

pub(super) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn flag(namespace: Namespace) -> u64 {
    let flag = match namespace {
        Namespace::Net => libc::CLONE_NEWNET,
        Namespace::Ipc => libc::CLONE_NEWIPC,
        Namespace::Uts => libc::CLONE_NEWUTS,
        Namespace::Pid => libc::CLONE_NEWPID,
        Namespace::Mount => libc::CLONE_NEWNS,
    };
    flag as u64
}

/// An empty pipe that programs of this user can read but never open for writing. What they can
/// still do to it changes nothing: its end is its end, whether reads would wait or not.
fn shared_input(uid: u32) -> Option<OwnedFd> {
    let input = starts::empty_pipe().ok()?;
    let is_safe = rustix::fs::fstat(&input).is_ok_and(|stat| stat.st_uid != uid);
    let for_all = Mode::RUSR | Mode::RGRP | Mode::ROTH;
    (is_safe && rustix::fs::fchmod(&input, for_all).is_ok()).then_some(input)
}

/// In a user namespace of its own a program is who it was outside.
fn maps() -> (Vec<u8>, Vec<u8>) {
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let map = |id: u32| format!("{id} {id} 1").into_bytes();
    (map(uid), map(gid))
}

fn limits(limits: &Rlimits, is_other_account: bool) -> Vec<(u32, [u64; 2])> {
    let mut list = Vec::new();
    let mut add = |resource: libc::__rlimit_resource_t, limit: Option<u64>| {
        if let Some(limit) = limit {
            list.push((resource, [limit; 2]));
        }
    };
    add(libc::RLIMIT_AS, limits.address_space);
    add(libc::RLIMIT_CORE, Some(limits.core));
    add(libc::RLIMIT_CPU, limits.cpu.map(|time| time.as_secs()));
    add(libc::RLIMIT_DATA, limits.data);
    add(libc::RLIMIT_FSIZE, limits.file_size);
    add(
        libc::RLIMIT_NPROC,
        limits
            .processes
            .or(is_other_account.then_some(PROCESSES_USUAL)),
    );
    add(libc::RLIMIT_STACK, limits.stack);
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let open_files = match limits.open_files {
        Some(limit) => [limit; 2],
        None => [OPEN_FILES_USUAL.min(hard), hard],
    };
    list.push((libc::RLIMIT_NOFILE, open_files));
    list
}

/// Takes the nice level that most programs have, when that is one step behind ours and we could set
/// others all the same: who inherits it need not be scheduled anew for it.
pub(super) fn step_back(programs: &[Rules]) {
    let own = getpriority_process(None).unwrap_or(0);
    let lowest = programs.iter().map(|rules| rules.nice).min();
    if geteuid().is_root() && lowest == Some(own + 1) {
        let _ = setpriority_process(None, own + 1);
    }
}

/// The nice level to set; none when it is ours already. Who is not root cannot go below its own,
/// as when hob itself was started with one: then it is still one step behind hob.
fn nice(wanted: i32) -> Option<i32> {
    let own = getpriority_process(None).unwrap_or(0);
    let wanted = match wanted < own && !geteuid().is_root() {
        true => (own + 1).min(19),
        false => wanted,
    };
    (wanted != own).then_some(wanted)
}

fn io_priority(class: IoClass) -> Option<i32> {
    const BEST_EFFORT_LAST: i32 = (2 << 13) | 7;
    const IDLE: i32 = 3 << 13;
    match class {
        IoClass::Normal => None,
        IoClass::Low => Some(BEST_EFFORT_LAST),
        IoClass::Idle => Some(IDLE),
    }
}

fn cpu_bits(cpus: &[usize]) -> Vec<u64> {
    let Some(last) = cpus.iter().max() else {
        return Vec::new();
    };
    let mut bits = vec![0u64; last / 64 + 1];
    for cpu in cpus {
        bits[cpu / 64] |= 1 << (cpu % 64);
    }
    bits
}

/// Whether a child that changes its user must not share our memory: that makes the memory as
/// dumpable as `fs.suid_dumpable` says. With 1 its new owner may look into it. With 2 a signal of
/// its new owner makes a core of it, which only root can read, but before Linux 5.16 that ends
/// whoever shares the memory: us, and with us all programs.
fn is_shared_memory_exposed() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/fs/suid_dumpable").unwrap_or_default();
    let release = rustix::system::uname();
    exposes_shared_memory(setting.trim(), &release.release().to_string_lossy())
}

fn exposes_shared_memory(suid_dumpable: &str, release: &str) -> bool {
    const DUMPS_ALONE: (u32, u32) = (5, 16);
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match suid_dumpable {
        "1" => true,
        "2" => version < DUMPS_ALONE,
        _ => false,
    }
}

/// Landlock rules; `None` when files are not restricted, or cannot be.
fn sandbox(sandbox: &Sandbox, trouble: &mut dyn FnMut(String)) -> Option<OwnedFd> {
    let Sandbox {
        read,
        write,
        execute,
        ..
    } = sandbox;
    if [read, write, execute].iter().all(|list| list.is_empty()) {
        return None;
    }
    let version = match kernel::landlock_version() {
        Ok(version) => version,
        Err(error) => {
            trouble(format!(
                "`sandbox` restricts no files: this kernel has no Landlock ({error})"
            ));
            return None;
        }
    };
    let from = |first: u32, rights: u64| if version >= first { rights } else { 0 };
    let to_read = right::READ_FILE | right::READ_DIR;
    let to_write = right::WRITE_FILE
        | right::CHANGE_DIR
        | from(2, right::REFER)
        | from(3, right::TRUNCATE)
        | from(5, right::IOCTL_DEV);
    let handled = to_read | to_write | right::EXECUTE;
    let rules = match kernel::landlock_rules(handled) {
        Ok(rules) => rules,
        Err(error) => {
            trouble(format!(
                "`sandbox` restricts no files: no rules made: {error}"
            ));
            return None;
        }
    };
    let lists = [
        (read, to_read),
        (write, to_read | to_write),
        (execute, to_read | right::EXECUTE),
    ];
    for (paths, rights) in lists {
        for path in paths {
            if let Err(error) = grant(&rules, path, rights) {
                trouble(format!(
                    "`sandbox`: {} stays out of reach: {error}",
                    path.display()
                ));
            }
        }
    }
    Some(rules)
}

fn grant(rules: &OwnedFd, path: &Path, rights: u64) -> std::io::Result<()> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
    let rights = match kind {
        rustix::fs::FileType::Directory => rights,
        _ => rights & right::OF_FILES,
    };
    kernel::landlock_grant(rules.as_fd(), place.as_fd(), rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared() -> PreparedProgram {
        PreparedProgram {
            recipe: Rc::default(),
            owner: None,
            no_input: None,
            group: None,
            account: None,
            roots: vec!["/srv/cgi".into(), "/opt/x/".into()],
            captured: None,
            folders: vec!["/var/jobs".into()],
            files: vec!["/usr/bin/python3".into()],
            lines: Vec::new(),
            variables: Vec::new(),
            values: vec!["kind".to_owned()],
        }
    }

    #[test]
    fn parameters_that_the_policy_names_may_be_variables() {
        let prepared = prepared();
        assert!(prepared.has_value(b"kind") && prepared.has_value(b"kind_V_1_2"));
        assert!(!prepared.has_value(b"LD_PRELOAD") && !prepared.has_value(b"kinds"));
    }

    #[test]
    fn only_what_the_policy_names_may_run() {
        let prepared = prepared();
        for path in [
            "/srv/cgi/a",
            "/srv/cgi/a/b.pl",
            "/opt/x/y",
            "/usr/bin/python3",
        ] {
            assert!(prepared.may_run(path.as_bytes()), "{path}");
        }
        for path in [
            "",
            "srv/cgi/a",
            "/srv/cgi",
            "/srv/cgi/",
            "/srv/cgix",
            "/srv/cgi/../x",
            "/bin/sh",
            "/usr/bin/python3/",
            "/usr/bin/../bin/python3",
            "/opt/x",
            "/var/jobs/a",
            "/",
        ] {
            assert!(!prepared.may_run(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn way_up_that_the_config_names_is_taken_and_no_other() {
        let prepared = PreparedProgram {
            roots: vec!["/srv/site/../cgi".into()],
            folders: vec!["/srv/site/../jobs".into()],
            files: vec!["/srv/site/../run".into()],
            ..prepared()
        };
        assert!(prepared.may_run(b"/srv/site/../cgi/a") && prepared.may_run(b"/srv/site/../run"));
        assert!(prepared.may_work_in(b"/srv/site/../jobs"));
        for path in [
            "/srv/site/../cgi/../a",
            "/srv/site/../run/..",
            "/srv/site/../x",
        ] {
            assert!(!prepared.may_run(path.as_bytes()), "{path}");
            assert!(!prepared.may_work_in(path.as_bytes()), "{path}");
        }
        assert!(!prepared.may_work_in(b"/srv/site/../jobs/.."));
    }

    #[test]
    fn folders_of_captures_are_roots() {
        let captured = CapturedPath::parse(Path::new("/people/{user}/cgi")).unwrap();
        let prepared = PreparedProgram {
            captured,
            ..prepared()
        };
        assert!(prepared.may_run(b"/people/ann/cgi/a") && prepared.may_run(b"/people/a.b/cgi/x/y"));
        assert!(prepared.may_work_in(b"/people/ann/cgi"));
        for path in [
            "/people/ann/cgi/",
            "/people/ann/cgi/../a",
            "/people/ann/cgi/x/../../a",
            "/people/../cgi/a",
            "/people/.a/cgi/b",
            "/people/ann/cgix/b",
            "/people/ann/b",
            "/people/x/ann/cgi/b",
        ] {
            assert!(!prepared.may_run(path.as_bytes()), "{path}");
        }
        assert!(
            !prepared.may_work_in(b"/people/ann") && !prepared.may_work_in(b"/people/ann/cgi/..")
        );
    }

    #[test]
    fn folders_to_work_in_are_roots_and_what_is_below() {
        let prepared = prepared();
        for folder in [
            "/srv/cgi",
            "/srv/cgi/",
            "/srv/cgi/a",
            "/opt/x",
            "/var/jobs/a",
        ] {
            assert!(prepared.may_work_in(folder.as_bytes()), "{folder}");
        }
        assert!(!prepared.may_run(b"/var/jobs/x"), "only worked in");
        for folder in ["", "/", "/srv", "/var/x", "/srv/cgi/..", "/srv/cgix", "cgi"] {
            assert!(!prepared.may_work_in(folder.as_bytes()), "{folder}");
        }
        let everything = PreparedProgram {
            roots: vec!["/".into()],
            ..prepared
        };
        assert!(everything.may_run(b"/bin/sh") && everything.may_work_in(b"/"));
    }

    #[test]
    fn memory_is_not_shared_where_a_program_could_see_it_or_end_all_with_a_core() {
        for (setting, release, is_exposed) in [
            ("0", "5.10.0", false),
            ("1", "6.8.0-45-generic", true),
            ("2", "5.15.0-117-generic", true),
            ("2", "4.19.0", true),
            ("2", "5.16.0", false),
            ("2", "6.1.0-18-amd64", false),
            ("2", "unknown", true),
            ("", "5.10.0", false),
        ] {
            let got = exposes_shared_memory(setting, release);
            assert_eq!(got, is_exposed, "{setting} {release}");
        }
    }

    #[test]
    fn cpus_are_bits_and_open_files_have_a_usual_limit() {
        assert_eq!(cpu_bits(&[0, 3, 64]), [0b1001, 1]);
        assert_eq!(cpu_bits(&[]), Vec::<u64>::new());
        let usual = limits(&Rlimits::default(), true);
        let find = |resource| {
            usual
                .iter()
                .find(|(known, _)| *known == resource)
                .unwrap()
                .1
        };
        assert_eq!(find(libc::RLIMIT_NOFILE)[0], OPEN_FILES_USUAL);
        assert_eq!(find(libc::RLIMIT_CORE), [0, 0]);
        assert_eq!(find(libc::RLIMIT_NPROC), [PROCESSES_USUAL; 2]);
        assert_eq!(limits(&Rlimits::default(), false).len(), 2);
    }
}
