//! One request to the admin API, as its handlers see it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use hob_http::{BodyError, Request, Response};
use serde_json::Value;

use super::query::{pairs_of, value_of};
use super::{Admin, reply};
use hob_server::cache::disk_threads::{self, DiskQueueFull, Undone};
use hob_server::config::AdminRole;

/// Largest body of a request to the API, in bytes (413).
const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// A request whose sender is known.
#[derive(Clone)]
pub struct AdminRequest {
    /// What the API tells and steers.
    pub admin: Arc<Admin>,
    /// The request.
    pub request: Request,
    /// Who asks.
    pub visitor: Visitor,
    /// What the part in braces of the endpoint's path stands for.
    pub part: String,
    /// What the audit log says of it beside its path.
    note: Rc<RefCell<String>>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Name, for the audit log.
    pub name: String,
    /// Where they are: an address, or `control socket`.
    pub from: String,
    /// What they may do.
    pub role: AdminRole,
    /// Number of the session; none on the control socket.
    pub session: Option<u64>,
}

impl Visitor {
    /// Someone who is not known yet.
    pub(super) fn nobody(request: &Request) -> Visitor {
        let from = request.facts().peer.map(|peer| peer.ip().to_string());
        Visitor {
            name: "-".to_owned(),
            from: from.unwrap_or_else(|| "-".to_owned()),
            role: AdminRole::Look,
            session: None,
        }
    }
}

impl AdminRequest {
    /// What a visitor asks for.
    pub(super) fn new(admin: &Arc<Admin>, request: &Request, visitor: Visitor) -> AdminRequest {
        AdminRequest {
            admin: Arc::clone(admin),
            request: request.clone(),
            visitor,
            part: String::new(),
            note: Rc::default(),
        }
    }

    /// Says what the audit log is to say of it beside its path: what it is done to.
    pub fn note(&self, text: impl Into<String>) {
        *self.note.borrow_mut() = text.into();
    }

    /// What was noted.
    pub(super) fn noted(&self) -> String {
        self.note.borrow().clone()
    }

    /// The same, at an endpoint whose part in braces is this.
    pub(super) fn at(mut self, part: &str) -> AdminRequest {
        self.part = part.to_owned();
        self
    }

    /// The value of a key of the query, its percent codes decoded; the first, where there are more.
    pub fn query(&self, key: &str) -> Option<String> {
        let head = self.request.head();
        value_of(head.query()?, key)
    }

    /// Every key of the query and its value, their percent codes decoded, in order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        pairs_of(self.request.head().query().unwrap_or_default())
    }

    /// A number of the query; `usual` where it is not there or is no number.
    pub fn number(&self, key: &str, usual: u64) -> u64 {
        let value = self.query(key);
        value.and_then(|value| value.parse().ok()).unwrap_or(usual)
    }

    /// What a job of the file pool found; an answer that says why not, where it did not run or does
    /// not end. One that does not end is left to itself.
    pub(super) async fn done<T>(
        &self,
        job: Result<disk_threads::DiskJobHandle<T>, DiskQueueFull>,
    ) -> Result<T, Response> {
        let job = job.map_err(|DiskQueueFull| reply::busy())?;
        match job.in_time(self.request.reactor()).await {
            Ok(done) => Ok(done),
            Err(Undone::Panicked) => Err(reply::busy()),
            Err(Undone::Hangs) => Err(reply::text(503, "the disk does not answer; try again")),
        }
    }

    /// The request's body, which must be a JSON object; an answer that refuses, where it is not.
    pub async fn json(&self) -> Result<Value, Response> {
        self.json_up_to(BODY_BYTES_MAX).await
    }

    /// The same with another limit than usual, in bytes.
    pub(super) async fn json_up_to(&self, bytes_max: u64) -> Result<Value, Response> {
        let refusal = || {
            self.admin.door.count_large_body();
            reply::text(413, format!("the body is larger than {bytes_max} bytes"))
        };
        if !self.request.limit_body(bytes_max) {
            return Err(refusal());
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = self.request.next_body().await {
            match chunk {
                Ok(chunk) => bytes.extend_from_slice(&chunk),
                Err(BodyError::TooLarge) => return Err(refusal()),
                Err(error) => {
                    let text = format!("the body cannot be read: {error}");
                    return Err(reply::text(400, text));
                }
            }
        }
        if bytes.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_slice(&bytes) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err(reply::text(400, "the body is no JSON object")),
            Err(error) => Err(reply::text(400, format!("the body is no JSON: {error}"))),
        }
    }
}
