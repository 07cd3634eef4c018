//! Who answers: one folder per handler, one enum of them all, and the short answers they share.

pub mod admin;
pub mod cgi;
pub mod error_page;
mod fields;
pub mod files;
pub mod html;
pub mod metrics;
pub mod plain;
pub mod redirect;
pub mod resident;
pub mod respond;
pub mod script_control;
mod trace_fields;
pub mod variables;
pub mod warm;

use std::sync::Arc;

use hob_trace::HandlerKind;

/// Who answers a route.
pub enum Handler {
    /// Static files.
    Files(Arc<files::Files>),
    /// A process for each request, started or forked.
    Cgi(Arc<cgi::Cgi>),
    /// A program that stays.
    Resident(Arc<resident::Resident>),
    /// Another place.
    Redirect(redirect::Redirect),
    /// A fixed answer.
    Respond(respond::Respond),
    /// The numbers of the server.
    Metrics(metrics::Metrics),
}

impl Handler {
    /// Its kind, for records.
    pub fn kind(&self) -> HandlerKind {
        match self {
            Handler::Files(_) => HandlerKind::Files,
            Handler::Cgi(cgi) if cgi.warm.is_some() => HandlerKind::Warm,
            Handler::Cgi(_) => HandlerKind::Cgi,
            Handler::Resident(_) => HandlerKind::Resident,
            Handler::Redirect(_) => HandlerKind::Redirect,
            Handler::Respond(_) => HandlerKind::Respond,
            Handler::Metrics(_) => HandlerKind::Metrics,
        }
    }

    /// True when programs make its answers: they are asked for what they want done with them, and
    /// narrowed to what the request asks for.
    pub fn runs_programs(&self) -> bool {
        match self {
            Handler::Cgi(_) | Handler::Resident(_) => true,
            Handler::Files(_)
            | Handler::Redirect(_)
            | Handler::Respond(_)
            | Handler::Metrics(_) => false,
        }
    }
}
