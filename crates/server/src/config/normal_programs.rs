//! Handlers that run programs, and the programs, as text in one normal form.

use std::fmt::{self, Display};
use std::path::PathBuf;

use super::normal::{or_none, quoted};
use super::units::{duration_text, size_text};
use super::{Argument, Cgi, CgiRuns, IoClass, Namespace, Program};

impl Cgi {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.warm.is_some() { "warm" } else { "cgi" };
        match &self.runs {
            CgiRuns::Folder {
                dir,
                index,
                interpreters,
            } => {
                writeln!(f, "{name}.dir = {}", quoted(dir.display()))?;
                writeln!(f, "{name}.index = {index:?}")?;
                self.fmt_interpreters(interpreters, f)?;
            }
            CgiRuns::Script { file, interpreters } => {
                writeln!(f, "{name}.script = {}", quoted(file.display()))?;
                self.fmt_interpreters(interpreters, f)?;
            }
            CgiRuns::Command {
                dir,
                arguments,
                output,
                parameters,
            } => {
                let words: Vec<_> = arguments.iter().map(Argument::to_string).collect();
                writeln!(f, "{name}.command = {words:?}")?;
                writeln!(f, "{name}.dir = {}", quoted(dir.display()))?;
                writeln!(f, "{name}.output = {}", quoted(output))?;
                for (of, pattern) in parameters {
                    writeln!(f, "{name}.parameters.{} = {}", quoted(of), quoted(pattern))?;
                }
            }
        }
        writeln!(
            f,
            "{name}.document_root = {}",
            quoted(self.document_root.display())
        )?;
        writeln!(f, "{name}.pass_authorization = {}", self.pass_authorization)?;
        writeln!(f, "{name}.dev = {}", self.dev)?;
        let limits = &self.limits;
        writeln!(f, "{name}.concurrent = {}", limits.concurrent)?;
        writeln!(f, "{name}.queue = {}", limits.queue)?;
        writeln!(
            f,
            "{name}.queue_time = {}",
            duration_text(limits.queue_time)
        )?;
        writeln!(
            f,
            "{name}.first_byte = {}",
            duration_text(limits.first_byte)
        )?;
        writeln!(f, "{name}.total = {}", duration_text(limits.total))?;
        writeln!(f, "{name}.head = {}", size_text(limits.head as u64))?;
        writeln!(f, "{name}.linger = {}", duration_text(limits.linger))?;
        writeln!(f, "{name}.grace = {}", duration_text(limits.grace))
    }

    fn fmt_interpreters(
        &self,
        interpreters: &[(String, Vec<String>)],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let Some(warm) = &self.warm else {
            for (ending, words) in interpreters {
                writeln!(f, "cgi.interpreters.{} = {words:?}", quoted(ending))?;
            }
            return Ok(());
        };
        writeln!(f, "warm.interpreter = {}", quoted(&warm.interpreter))?;
        writeln!(f, "warm.preload = {:?}", warm.preload)?;
        writeln!(f, "warm.hosts = {}", warm.hosts)?;
        writeln!(f, "warm.compile = {}", warm.compile)?;
        writeln!(f, "warm.cpu = {}", or_none(warm.cpu.map(duration_text)))
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Text(text) => f.write_str(text),
            Argument::Query(name) => write!(f, "${{query.{name}}}"),
        }
    }
}

impl Program {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: Option<u64>| or_none(bytes.map(size_text));
        let number = |number: Option<u64>| or_none(number.map(|number| number.to_string()));
        writeln!(f, "user = {}", or_none(self.user.as_ref().map(quoted)))?;
        writeln!(f, "group = {}", or_none(self.group.as_ref().map(quoted)))?;
        for (name, value) in &self.env {
            writeln!(f, "env.{name} = {}", quoted(value))?;
        }
        let umask = self.umask.map(|mask| format!("{mask:03o}"));
        writeln!(f, "umask = {}", or_none(umask))?;
        writeln!(f, "nice = {}", self.nice)?;
        let io_class = match self.io_class {
            IoClass::Normal => "normal",
            IoClass::Low => "low",
            IoClass::Idle => "idle",
        };
        writeln!(f, "io_class = {io_class:?}")?;
        writeln!(f, "cpus = {:?}", self.cpus)?;
        let limits = &self.limits;
        writeln!(f, "rlimits.as = {}", size(limits.address_space))?;
        writeln!(f, "rlimits.core = {}", size_text(limits.core))?;
        writeln!(
            f,
            "rlimits.cpu = {}",
            or_none(limits.cpu.map(duration_text))
        )?;
        writeln!(f, "rlimits.data = {}", size(limits.data))?;
        writeln!(f, "rlimits.fsize = {}", size(limits.file_size))?;
        writeln!(f, "rlimits.nofile = {}", number(limits.open_files))?;
        writeln!(f, "rlimits.nproc = {}", number(limits.processes))?;
        writeln!(f, "rlimits.stack = {}", size(limits.stack))?;
        let sandbox = &self.sandbox;
        writeln!(f, "sandbox.no_new_privs = {}", sandbox.no_new_privileges)?;
        writeln!(f, "sandbox.read = {:?}", sandbox.read)?;
        writeln!(f, "sandbox.write = {:?}", sandbox.write)?;
        writeln!(f, "sandbox.execute = {:?}", sandbox.execute)?;
        let namespaces: Vec<_> = sandbox.namespaces.iter().map(|one| word(*one)).collect();
        writeln!(f, "sandbox.namespaces = {namespaces:?}")?;
        let cgroup = &self.cgroup;
        writeln!(f, "cgroup = {}", cgroup.is_wanted)?;
        writeln!(f, "cgroup.memory = {}", size(cgroup.memory))?;
        writeln!(f, "cgroup.pids = {}", number(cgroup.pids))?;
        writeln!(f, "cgroup.cpu_weight = {}", number(cgroup.cpu_weight))?;
        fmt_paths("roots", &self.roots, f)?;
        fmt_paths("folders", &self.folders, f)?;
        fmt_paths("executables", &self.executables, f)
    }
}

fn word(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Net => "net",
        Namespace::Ipc => "ipc",
        Namespace::Uts => "uts",
        Namespace::Pid => "pid",
        Namespace::Mount => "mount",
    }
}

fn fmt_paths(name: &str, paths: &[PathBuf], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for path in paths {
        writeln!(f, "{name} = {}", quoted(path.display()))?;
    }
    Ok(())
}
