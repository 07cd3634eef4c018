//! Who answers: one folder per handler, one enum of them all (`handler`, made of the list
//! `hob_trace::handlers`), and the short answers they share.

pub mod cgi;
pub mod config;
pub mod error_page;
pub mod fastcgi;
pub mod files;
mod handler;
pub mod html;
pub mod metrics;
pub mod page;
pub mod plain;
pub mod proxy;
pub mod redirect;
pub mod remote;
pub mod resident;
pub mod respond;
pub mod scgi;
pub mod script;
pub mod session;
pub mod upstream;
pub mod uwsgi;
pub mod warm;

pub(crate) use handler::{AnswersRoute, Configured, ExplainsRoute, HANDLER_KEYS, HANDLERS};
pub use handler::{Handler, HandlerSettings, HandlerSpots, HasSettings, cost_class};
