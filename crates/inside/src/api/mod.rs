//! What the admin API answers: the server writes these types, commands read them, and schemas,
//! reference pages and the types of the admin pages are made of them and of what is said of each
//! field. A field may be missing where a server of another version answers.

mod access;
mod audit;
mod bans;
mod cache;
mod certificates;
mod config;
mod environment;
mod logs;
mod overview;
mod programs;
mod remark;
mod requests;
mod resources;
mod routes;
mod session;
mod statistics;
mod status;

use schemars::JsonSchema;
use serde::Serialize;

pub use access::{Access, AccessTerms, BanTerms, LimitTerms, RouteAccess, SignInTerms, SiteAccess};
pub use audit::{AuditEntry, AuditLog};
pub use bans::{BanOutcome, Banned, BannedClient};
pub use cache::{CacheContents, CacheEntry, CacheTotals, PurgeOutcome};
pub use certificates::{Certificate, Certificates};
pub use config::{
    ConfigChange, ConfigDifference, ConfigFault, ConfigFile, ConfigFiles, ConfigRejection,
    ConfigVerdict,
};
pub use environment::{
    BuildFacts, ConfinedProgram, Environment, GroupLimits, InterfaceFacts, KernelFacts, LimitPair,
    MachineFacts, ProcessFacts, RootFileSystem, ServerFacts,
};
pub use hob_server::explain::answer::{
    CompressedCopy, ExplainedAnswer, ExplainedFile, ExplainedHandler, ExplainedListener,
    ExplainedLog, ExplainedPath, ExplainedProgram, ExplainedRewrite, ExplainedRoute, ExplainedRule,
    ExplainedSite, ExplainedVerdict, Explanation, HeaderField, Setting,
};
pub use hob_server::handle::resident::told::{Pool, Worker, WorkerRequest};
pub use hob_server::handle::script::visits::told::{ProgramVisits, ToldVisit};
pub use hob_server::handle::warm::told::Host;
pub use logs::{AccessLogs, LogFile, LogLines};
pub use overview::{
    Alert, CacheUse, CpuUse, Level, MemoryUse, Overview, Rates, Series, WorkersUse,
};
pub use programs::{
    AllPrograms, MemberOutcome, OperationOutcome, Program, ProgramRoute, ProgramWorker, RecentUse,
    ScriptSaving, ScriptUse, SpanUse,
};
pub use remark::Remark;
pub use requests::{Connection, Connections, History, Request, Running};
pub use resources::{InterfaceSpeed, ResourceSeries};
pub use routes::{Quantiles, Route, Routes};
pub use session::{LoginUrls, Role, Session};
pub use statistics::{
    ByteCounts, ConnectionCounts, HandshakeCounts, SpanCounts, Statistics, WorkerCounts,
};
pub use status::{
    AdminPages, Cache, KeeperProcess, Names, Order, Programs, ServerProcess, SpawnerProcess,
    Status, Threads,
};

/// What a server that ends says to who would watch it; another one follows, or none.
pub const SERVER_ENDS: &str = "this server ends; ask the one that follows";

/// What each request of the API is answered with.
#[derive(Serialize, JsonSchema)]
pub struct Answers {
    /// `GET /v1/status`
    pub status: Status,
    /// `GET /v1/environment`
    pub environment: Environment,
    /// `GET /v1/statistics`
    pub statistics: Statistics,
    /// `GET /v1/resources`
    pub resources: ResourceSeries,
    /// `GET /v1/overview`
    pub overview: Overview,
    /// `GET /v1/activity`
    pub activity: Series,
    /// `GET /v1/history`
    pub history: History,
    /// `GET /v1/history/{id}`
    pub request: Request,
    /// `GET /v1/routes`
    pub routes: Routes,
    /// `GET /v1/running`
    pub running: Running,
    /// `GET /v1/connections`
    pub connections: Connections,
    /// `GET /v1/programs`
    pub programs: AllPrograms,
    /// `POST /v1/programs/recycle`, `/v1/programs/stop` and `/v1/programs/stack`
    pub operation: OperationOutcome,
    /// `POST /v1/upstreams/drain`
    pub member: MemberOutcome,
    /// `GET /v1/bans`
    pub banned: Banned,
    /// `POST /v1/bans/add` and `/v1/bans/lift`
    pub ban: BanOutcome,
    /// `GET /v1/access`
    pub access: Access,
    /// `GET /v1/cache`
    pub cache: CacheContents,
    /// `POST /v1/cache/purge`
    pub purge: PurgeOutcome,
    /// `GET /v1/certificates`
    pub certificates: Certificates,
    /// `GET /v1/logs`
    pub logs: AccessLogs,
    /// `GET /v1/logs/{id}`
    pub log: LogLines,
    /// `GET /v1/explain`
    pub explain: Explanation,
    /// `GET /v1/config`
    pub config: ConfigFiles,
    /// `POST /v1/config/check`
    pub verdict: ConfigVerdict,
    /// `POST /v1/config/diff`
    pub difference: ConfigDifference,
    /// `POST /v1/config/apply` and `/v1/config/rollback`
    pub change: ConfigChange,
    /// `POST /v1/config/apply` and `/v1/config/rollback`, with status 422
    pub rejection: ConfigRejection,
    /// `GET /v1/audit`
    pub audit: AuditLog,
    /// `GET /v1/session` and `POST /v1/login`
    pub session: Session,
    /// `POST /v1/admin-url`
    pub urls: LoginUrls,
    /// `POST /v1/reload`, all others, and every refusal
    pub remark: Remark,
}
