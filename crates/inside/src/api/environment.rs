//! `GET /v1/environment`: where the server runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Program, machine, kernel, limits, and what programs are held to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Environment {
    /// Version of the program.
    pub version: String,
    /// How it was built.
    pub build: BuildFacts,
    /// Name of the machine.
    pub hostname: String,
    /// Time zone of the machine, as far as its files say; times of the API are UTC.
    pub time_zone: String,
    /// The kernel.
    pub kernel: KernelFacts,
    /// The machine as the server has it.
    pub machine: MachineFacts,
    /// The server.
    pub server: ServerFacts,
    /// Limits of the server, by the names that the config has for those of programs.
    pub limits: BTreeMap<String, LimitPair>,
    /// Addresses listened on.
    pub listeners: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// File systems that the folders of sites stand on.
    pub file_systems: Vec<RootFileSystem>,
    /// Network interfaces.
    pub interfaces: Vec<InterfaceFacts>,
    /// Routes with a program, and what that is held to.
    pub programs: Vec<ConfinedProgram>,
}

/// What a folder stands on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RootFileSystem {
    /// The folder, as configured.
    pub folder: String,
    /// The kind of its file system, as `mount` has it; null where the kernel does not say.
    pub kind: Option<String>,
    /// It answers from memory what is in memory; others are asked by threads that may wait.
    pub local: bool,
}

/// A network interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// Bytes of its longest packet; null where the kernel does not say. Fewer packets carry an
    /// answer where it is larger, on both sides.
    pub mtu: Option<u64>,
    /// Packets that passed it since the server began, either way, for each request of that time;
    /// null before the first. What others on this machine sent and received is in it.
    pub packets_per_request: Option<f64>,
}

/// How the program was built.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BuildFacts {
    /// Profile of the build.
    pub profile: String,
    /// Level of optimisation.
    pub opt_level: String,
    /// The compiler.
    pub rustc: String,
    /// What it was built for.
    pub target: String,
    /// Checks for developers are in it.
    pub has_assertions: bool,
}

/// The kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KernelFacts {
    /// What it is.
    pub name: String,
    /// Its release.
    pub release: String,
    /// Its version.
    pub version: String,
    /// What it runs on.
    pub machine: String,
    /// Version of Landlock; null where the kernel has none.
    pub landlock: Option<u32>,
    /// Longest backlog of a listener.
    pub backlog_max: Option<u64>,
    /// What may be done with `io_uring`, in words.
    pub io_uring: String,
}

/// The machine as the server has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineFacts {
    /// What its processor is called.
    pub cpu: String,
    /// Processors.
    pub cpus: usize,
    /// Those that the server may use.
    pub cpus_usable: usize,
    /// Those that it may run on, as in `0-3,6`.
    pub affinity: String,
    /// Processors' worth of time that control groups leave; null for no limit.
    pub cpu_quota: Option<f64>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Memory that control groups leave; null for no limit.
    pub memory_limit_bytes: Option<u64>,
    /// Processes and threads that control groups leave; null for no limit.
    pub pids_limit: Option<u64>,
    /// What it is a guest of; null where it does not say that it is one.
    pub hypervisor: Option<String>,
}

/// The server.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerFacts {
    /// Its process.
    pub process: ProcessFacts,
    /// Its threads that serve.
    pub threads: usize,
    /// Programs have another user than it.
    pub scripts_separated: bool,
    /// Descriptors that it has open.
    pub descriptors: u64,
}

/// What the kernel says of a process; null where it says nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessFacts {
    /// Its id.
    pub pid: u32,
    /// Its user.
    pub user_id: Option<u64>,
    /// Its group.
    pub group_id: Option<u64>,
    /// Nothing that it starts gains rights.
    pub no_new_privileges: Option<bool>,
    /// `off`, `strict` or `filter`.
    pub seccomp: Option<String>,
    /// Capabilities in effect, in hexadecimal.
    pub capabilities: Option<String>,
    /// Its control group.
    pub cgroup: Option<String>,
}

/// A limit of a process; null for no limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LimitPair {
    /// What holds.
    pub soft: Option<u64>,
    /// What it could be raised to.
    pub hard: Option<u64>,
}

/// What the program of a route is held to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfinedProgram {
    /// Site of the route.
    pub site: String,
    /// Its path.
    pub route: String,
    /// User that the config names; null for the usual one.
    pub user: Option<String>,
    /// Nothing that it starts gains rights.
    pub no_new_privileges: bool,
    /// What it may do with files, in words.
    pub files: String,
    /// Namespaces of its own.
    pub namespaces: Vec<String>,
    /// Limits of its control group; null where it has none of its own.
    pub cgroup: Option<GroupLimits>,
    /// Some of its processes that stay, as the kernel has them.
    pub running: Vec<ProcessFacts>,
}

/// Limits of a control group; null for no limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GroupLimits {
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Share of the CPUs, 1 to 10,000.
    pub cpu_weight: Option<u64>,
}
