//! What the admin API answers: the server writes these types, commands read them, and schemas,
//! reference pages and the types of the admin pages are made of them and of what is said of each
//! field. A field may be missing where a server of another version answers.

mod overview;
mod requests;
mod routes;
mod status;

use schemars::JsonSchema;
use serde::Serialize;

pub use overview::{
    Alert, CacheUse, CpuUse, Level, MemoryUse, Overview, Rates, Series, WorkersUse,
};
pub use requests::{Connection, Connections, History, Request, Running};
pub use routes::{Quantiles, Route, Routes};
pub use status::{
    AdminPages, Cache, Host, KeeperProcess, Names, Order, Pool, Programs, ServerProcess,
    SpawnerProcess, Status, Threads, Worker, WorkerRequest,
};

/// What a server that ends says to who would watch it; another one follows, or none.
pub const SERVER_ENDS: &str = "this server ends; ask the one that follows";

/// What each request of the API is answered with, as far as it has a type.
#[derive(Serialize, JsonSchema)]
pub struct Answers {
    /// `GET /v1/status`
    pub status: Status,
    /// `GET /v1/overview`
    pub overview: Overview,
    /// `GET /v1/routes`
    pub routes: Routes,
    /// `GET /v1/running`
    pub running: Running,
    /// `GET /v1/history`
    pub history: History,
    /// `GET /v1/connections`
    pub connections: Connections,
}
