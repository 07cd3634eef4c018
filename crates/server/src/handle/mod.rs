//! Who answers: one folder per handler, one enum of them all, and the short answers they share.

pub mod admin;
pub mod error_page;
pub mod files;
pub mod html;
pub mod plain;
pub mod redirect;
pub mod respond;
pub mod script_control;

use std::sync::Arc;

use hob_trace::HandlerKind;

/// Who answers a route.
pub enum Handler {
    /// Static files.
    Files(Arc<files::Files>),
    /// Another place.
    Redirect(redirect::Redirect),
    /// A fixed answer.
    Respond(respond::Respond),
}

impl Handler {
    /// Its kind, for records.
    pub fn kind(&self) -> HandlerKind {
        match self {
            Handler::Files(_) => HandlerKind::Files,
            Handler::Redirect(_) => HandlerKind::Redirect,
            Handler::Respond(_) => HandlerKind::Respond,
        }
    }

    /// True when the config says the answer's body word for word: no error page takes its place.
    pub fn has_own_body(&self) -> bool {
        matches!(self, Handler::Respond(respond) if !respond.body.is_empty())
    }
}
