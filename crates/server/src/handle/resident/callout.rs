//! What a program asks the server for in the middle of a request: `KEYWORD: parameters`, and an
//! answer of three digits and a text.

use std::time::Duration;

use hob_ipc::message::{self, MessageHead, MessageKind};
use hob_trace::watch::RequestStage;

use crate::handle::config::parse_duration;
use crate::handle::resident::driver::DrivenWorker;
use crate::handle::resident::termination::limit;
use crate::route::target;

/// Longest text of a program's own log line, in bytes.
const TEXT_BYTES_MAX: usize = 4 * 1024;

impl DrivenWorker {
    /// Answers a callout; `index` is the request it is about, if that is under way.
    pub(super) fn call_out(&mut self, head: MessageHead, payload: &[u8], index: Option<usize>) {
        let text = String::from_utf8_lossy(&payload[..payload.len().min(TEXT_BYTES_MAX)]);
        let (keyword, parameters) = text.split_once(':').unwrap_or((&text, ""));
        let answer = self.follow(keyword.trim(), parameters.trim(), index);
        if let Some(one) = index.and_then(|index| self.requests.iter().nth(index)) {
            self.tell(&one.exchange.name, RequestStage::Callout, |told| {
                told.push_str(&text);
                told.push_str(" -> ");
                told.push_str(&answer);
            });
        }
        if !head.has(message::QUIET) {
            let reply = MessageHead::new(MessageKind::Reply, head.request).small(head.small);
            self.answers.push((reply, answer.into_bytes()));
        }
    }

    fn follow(&mut self, keyword: &str, parameters: &str, index: Option<usize>) -> String {
        let keyword = keyword.to_ascii_uppercase();
        match (keyword.as_str(), index) {
            ("NOOP", _) => "200 ok".to_owned(),
            ("LOG", _) => self.log(parameters, index),
            ("TRACE", _) => {
                let text = parameters.escape_debug();
                tracing::debug!(program = self.pool.settings.runs.name(), "{text}");
                "200 ok".to_owned()
            }
            ("TIMEOUT", Some(index)) => match seconds(parameters) {
                Some(total) => {
                    let now_ms = self.home.reactor.now_ms();
                    self.requests.at(index).total_due_ms = limit(now_ms, total);
                    "200 ok".to_owned()
                }
                None => "400 TIMEOUT wants seconds, or a duration such as 10s".to_owned(),
            },
            ("TIMEOUT" | "MAP-PATH", None) => "409 no such request is under way".to_owned(),
            ("LIFETIME", _) if self.pool.is_bound() => {
                "403 a visit's answers say it, by HTTimeout".to_owned()
            }
            ("LIFETIME", _) => match parameters {
                "-1" => {
                    self.idle = Duration::ZERO;
                    "200 ok".to_owned()
                }
                parameters => match seconds(parameters) {
                    Some(idle) => {
                        self.idle = idle;
                        "200 ok".to_owned()
                    }
                    None => "400 LIFETIME wants seconds, or -1".to_owned(),
                },
            },
            ("MAP-PATH", _) => self.map_path(parameters),
            _ => "400 unknown callout".to_owned(),
        }
    }

    fn log(&self, parameters: &str, index: Option<usize>) -> String {
        let (level, text) = parameters.split_once(' ').unwrap_or(("info", parameters));
        let text = text.escape_debug();
        let program = self.pool.settings.runs.name();
        let request = match index {
            Some(index) => self.requests.iter().nth(index).map(|one| one.exchange.name),
            None => None,
        };
        let request = request.map(tracing::field::display);
        let now_ms = self.home.reactor.now_ms();
        if self.pool.pace.allows(now_ms).is_none() {
            self.home.counters.program_stderr_dropped.add(1);
            return "429 more than is logged".to_owned();
        }
        match level.to_ascii_lowercase().as_str() {
            "error" => tracing::error!(request, program, "{text}"),
            "warn" | "warning" => tracing::warn!(request, program, "{text}"),
            "debug" | "trace" => tracing::debug!(request, program, "{text}"),
            _ => tracing::info!(request, program, "{text}"),
        }
        "200 ok".to_owned()
    }

    /// The file that a path of the site would be, below the site's root.
    fn map_path(&self, path: &str) -> String {
        let mut room = Vec::new();
        let Ok(normal) = target::normalise(path.as_bytes(), &mut room) else {
            return "400 MAP-PATH wants a path that begins with a slash".to_owned();
        };
        let root = self.pool.settings.document_root.to_string_lossy();
        let path = normal.path(path.as_bytes(), &room);
        if path.contains(&target::ENCODED_SLASH) {
            return "400 MAP-PATH: no file has a slash in its name".to_owned();
        }
        let path = String::from_utf8_lossy(path);
        format!("200 {}{path}", root.strip_suffix('/').unwrap_or(&root))
    }
}

/// `10`, `10s` or `1m`.
fn seconds(text: &str) -> Option<Duration> {
    match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => parse_duration(text).ok(),
    }
}
