//! Fixed answers written in the config.
//!
//! - `config` its keys
//! - `answer` the answer, in the coding that its client takes
//! - `explain` the same, for whoever asks what would be answered

mod answer;
pub mod config;
mod explain;

use bytes::Bytes;
use hob_http::Fields;

use crate::handle::config::{AfterSteps, Coding};
use crate::handle::files::media_type::MediaType;
use crate::handle::plain;
use crate::handle::respond::config::RespondSettings;
use crate::step::compress::{compress, default_level};

/// A fixed answer, ready to give.
pub struct Respond {
    status: u16,
    /// Of every answer, whatever its coding.
    fields: Fields,
    body: Bytes,
    /// Codings in which the body is smaller, in order of preference.
    codings: Vec<Coding>,
    /// The body in each of them.
    coded: Vec<Bytes>,
}

impl Respond {
    /// Makes it ready, compressed as the route says for answers of its kind.
    pub fn new(settings: &RespondSettings, steps: &AfterSteps) -> Respond {
        let media_type = MediaType {
            name: &settings.content_type,
            charset: None,
        };
        let may_be_coded = settings.body.len() as u64 >= steps.compress_min.max(1)
            && media_type.is_one_of(steps.compress_types.iter().map(String::as_str));
        let mut fields = plain::named();
        if !settings.body.is_empty() {
            fields.add(b"Content-Type", settings.content_type.as_bytes());
        }
        let mut respond = Respond {
            status: settings.status,
            fields,
            body: Bytes::from(settings.body.clone()),
            codings: Vec::new(),
            coded: Vec::new(),
        };
        for &coding in steps.compress.iter().filter(|_| may_be_coded) {
            let smaller = compress(&respond.body, coding, default_level(coding));
            if let Ok(Some(smaller)) = smaller {
                respond.codings.push(coding);
                respond.coded.push(smaller.into());
            }
        }
        if !respond.codings.is_empty() {
            respond.fields.add(b"Vary", b"Accept-Encoding");
        }
        respond
    }
}
