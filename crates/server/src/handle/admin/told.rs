//! One request in JSON, running or finished, as every part of the API tells it.

use hob_trace::verdict::{Split, Verdict};
use hob_trace::{CacheOutcome, Fault, Record, Texts, TlsHandshake, TlsVersion};
use serde_json::{Map, Value, json};

use crate::names::ClientNames;

/// What is told of a request.
pub(super) struct Told<'a> {
    /// Number of the server process, which counts from 1.
    pub(super) server: u64,
    /// What is known.
    pub(super) record: &'a Record,
    /// Its texts.
    pub(super) texts: Texts<'a>,
    /// Name of the site; empty where none was chosen.
    pub(super) site: &'a str,
    /// Path pattern of the route; empty where none was chosen.
    pub(super) route: &'a str,
}

impl Told<'_> {
    /// The JSON object. What is not known is left out.
    pub(super) fn json(&self) -> Map<String, Value> {
        let record = self.record;
        let mut map = Map::new();
        let mut add = |key: &str, value: Value| {
            map.insert(key.to_owned(), value);
        };
        let (connection, request) = (record.connection, record.request);
        add(
            "id",
            format!("{}.{connection}.{request}", self.server).into(),
        );
        add("started_unix_ms", record.started_unix_ms.into());
        if !record.client.is_unspecified() {
            add("client", record.client.to_string().into());
            add("client_port", record.client_port.into());
        }
        add("protocol", record.protocol.word().into());
        if record.tls_version != TlsVersion::None {
            add("tls_version", record.tls_version.word().into());
        }
        if record.tls_handshake != TlsHandshake::None {
            add("tls_handshake", record.tls_handshake.word().into());
        }
        let texts = &self.texts;
        for (key, text) in [
            ("method", texts.method),
            ("target", texts.target),
            ("host", texts.host),
            ("referer", texts.referer),
            ("user_agent", texts.user_agent),
            ("user", texts.user),
            ("detail", texts.detail),
        ] {
            if !text.is_empty() {
                add(key, String::from_utf8_lossy(text).into());
            }
        }
        for (key, text) in [("site", self.site), ("route", self.route)] {
            if !text.is_empty() {
                add(key, text.into());
            }
        }
        add("handler", record.handler.word().into());
        for (key, text) in [("reason", record.reason), ("note", record.note)] {
            if let Some(text) = text {
                add(key, text.into());
            }
        }
        if record.status != 0 {
            add("status", record.status.into());
        }
        if record.cache != CacheOutcome::None {
            add("cache", record.cache.word().into());
        }
        if record.fault != Fault::None {
            add("fault", record.fault.word().into());
        }
        self.add_numbers(&mut map);
        map
    }

    fn add_numbers(&self, map: &mut Map<String, Value>) {
        let record = self.record;
        for (key, number) in [
            ("bytes_in", record.bytes_in),
            ("head_bytes_out", record.head_bytes_out),
            ("body_bytes_out", record.body_bytes_out),
            ("queue_us", record.queue_us),
            ("start_us", record.start_us),
            ("program_us", record.program_us),
            ("cpu_us", record.cpu_us),
            ("disk_wait_us", record.disk_wait_us),
            ("client_take_us", record.client_take_us),
            ("client_body_us", record.client_body_us),
            ("handshake_us", record.handshake_us.into()),
        ] {
            map.insert(key.to_owned(), number.into());
        }
        if !record.is_start_known() {
            map.remove("start_us");
        }
        if record.rtt_us > 0 {
            map.insert("rtt_us".to_owned(), record.rtt_us.into());
            map.insert("retransmits".to_owned(), record.retransmits.into());
            map.insert("window_bytes".to_owned(), record.window_bytes.into());
        }
    }

    /// The same of a request that is over.
    pub(super) fn finished(&self) -> Value {
        let record = self.record;
        let mut map = self.json();
        map.insert("outcome".to_owned(), record.outcome.word().into());
        map.insert("first_byte_us".to_owned(), record.first_byte_us.into());
        map.insert("total_us".to_owned(), record.total_us.into());
        let split = Split::of(record);
        map.insert("server_us".to_owned(), split.server_us().into());
        if let Some(verdict) = Verdict::of(record) {
            map.insert("verdict".to_owned(), verdict.to_string().into());
        }
        Value::Object(map)
    }
}

/// A request with its client's name, where that is known; else it is looked up for the next time.
pub(super) fn named(names: &ClientNames, mut told: Value) -> Value {
    let client = told["client"].as_str().and_then(|text| text.parse().ok());
    if let Some(name) = client.and_then(|client| names.name_of(client)) {
        told["client_name"] = json!(&*name);
    }
    told
}

/// The same of a request under way.
pub(super) fn running(told: &Told<'_>, state: &str, age_us: u64, worker_pid: Option<u32>) -> Value {
    let mut map = told.json();
    map.insert("state".to_owned(), state.into());
    map.insert("age_us".to_owned(), age_us.into());
    map.insert("worker_pid".to_owned(), json!(worker_pid));
    Value::Object(map)
}
