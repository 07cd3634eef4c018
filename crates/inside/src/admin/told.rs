//! One request, running or finished, as every part of the API tells it.

use hob_http::thread::InFlightRequest;
use hob_trace::verdict::{SlownessVerdict, Split};
use hob_trace::watch::Hidden;
use hob_trace::{CacheOutcome, Fault, ProgramEnd, Record, Texts, TlsHandshake, TlsVersion};

use crate::api::Request;
use crate::names::ClientNameResolver;

/// What is told of a request.
pub(super) struct RequestReport<'a> {
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
    /// What is not shown of it: secrets in queries.
    pub(super) hidden: &'a Hidden,
}

impl RequestReport<'_> {
    /// What is the same of running and of finished requests.
    fn request(&self) -> Request {
        let (record, texts) = (self.record, &self.texts);
        let (connection, request) = (record.connection, record.request);
        let url = |text: &[u8]| {
            let mut shown = Vec::with_capacity(text.len());
            self.hidden.push_target(text, &mut shown);
            known(&shown)
        };
        let client = Some(record.client).filter(|client| !client.is_unspecified());
        let has_network = record.rtt_us > 0;
        let [rtt_us, retransmits, window_bytes] =
            [record.rtt_us, record.retransmits, record.window_bytes]
                .map(|number| has_network.then_some(number));
        Request {
            id: format!("{}.{connection}.{request}", self.server),
            started_unix_ms: record.started_unix_ms,
            client: client.map(|client| client.to_string()),
            client_port: client.map(|_| record.client_port),
            protocol: record.protocol.word().to_owned(),
            tls_version: (record.tls_version != TlsVersion::None)
                .then(|| record.tls_version.word().to_owned()),
            tls_handshake: (record.tls_handshake != TlsHandshake::None)
                .then(|| record.tls_handshake.word().to_owned()),
            method: known(texts.method),
            target: url(texts.target),
            host: known(texts.host),
            referer: url(texts.referer),
            user_agent: known(texts.user_agent),
            user: known(texts.user),
            detail: known(texts.detail),
            site: known(self.site.as_bytes()),
            route: known(self.route.as_bytes()),
            handler: record.handler.word().to_owned(),
            reason: record.reason.map(str::to_owned),
            note: record.note.map(str::to_owned),
            status: Some(record.status).filter(|status| *status != 0),
            cache: (record.cache != CacheOutcome::None).then(|| record.cache.word().to_owned()),
            fault: (record.fault != Fault::None).then(|| record.fault.word().to_owned()),
            rtt_us,
            retransmits,
            window_bytes,
            ..self.numbers()
        }
    }

    fn numbers(&self) -> Request {
        let record = self.record;
        Request {
            bytes_in: record.bytes_in,
            head_bytes_out: record.head_bytes_out,
            body_bytes_out: record.body_bytes_out,
            queue_us: record.queue_us,
            start_us: Some(record.start_us).filter(|_| record.is_start_known()),
            program_us: record.program_us,
            cpu_us: record.cpu_us,
            disk_wait_us: record.disk_wait_us,
            client_take_us: record.client_take_us,
            client_body_us: record.client_body_us,
            handshake_us: record.handshake_us.into(),
            pid: Some(record.pid).filter(|pid| *pid > 0),
            program_end: (record.program_end != ProgramEnd::Unknown)
                .then(|| record.program_end.word().to_owned()),
            exit_code: record.exit_code(),
            signal: record.signal(),
            ..Request::default()
        }
    }

    /// A request that is over.
    pub(super) fn finished(&self) -> Request {
        let record = self.record;
        Request {
            outcome: Some(record.outcome.word().to_owned()),
            first_byte_us: Some(record.first_byte_us),
            total_us: Some(record.total_us),
            server_us: Some(Split::of(record).server_us()),
            verdict: SlownessVerdict::of(record).map(|verdict| verdict.to_string()),
            ..self.request()
        }
    }

    /// A request under way.
    pub(super) fn running(&self, running: &InFlightRequest) -> Request {
        Request {
            state: Some(running.state.word().to_owned()),
            age_us: Some(running.age_us),
            worker_pid: Some(running.worker_pid),
            ..self.request()
        }
    }
}

/// A text that is not empty.
pub(super) fn known(text: &[u8]) -> Option<String> {
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// The name of a client, where it is known; else it is looked up for the next time.
pub(super) fn name_of(names: &ClientNameResolver, client: Option<&String>) -> Option<String> {
    let name = names.name_of(client?.parse().ok()?)?;
    Some(name.to_string())
}
