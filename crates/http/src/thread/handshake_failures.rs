//! Handshakes that failed: counted by reason, and told to those who watch.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use hob_trace::Record;
use hob_trace::watch::{Pen, RequestStage, TextPart};

use crate::clock::clock_us;
use crate::request::ConnectionFacts;
use crate::response::Responder;
use crate::thread::run::Thread;
use crate::tls::failure::HandshakeFailure;

/// A handshake that was tried.
pub(super) struct Attempt<'a> {
    /// When its connection began.
    pub(super) started_us: u64,
    /// The host it was for, as far as that was said.
    pub(super) server_name: Option<&'a str>,
    /// `TCP` or `QUIC`.
    pub(super) over: &'static str,
}

impl<A: Responder + 'static> Thread<A> {
    /// Books a handshake that failed; `detail` is what there is to say beside the reason.
    pub(super) fn book_failure(
        &self,
        facts: &ConnectionFacts,
        attempt: &Attempt<'_>,
        failure: HandshakeFailure,
        detail: &dyn Display,
    ) {
        self.crew.handshakes.fetch_sub(1, Ordering::Relaxed);
        failure.count(&self.counters);
        tracing::debug!(reason = failure.words(), %detail, "a TLS handshake failed");
        if failure.is_offence() {
            self.answer.handshake_failed(facts, failure.words());
        }
        if self.reactor.station().is_on() {
            self.tell_failure(facts, attempt, failure, detail);
        }
    }

    #[cold]
    fn tell_failure(
        &self,
        facts: &ConnectionFacts,
        attempt: &Attempt<'_>,
        failure: HandshakeFailure,
        detail: &dyn Display,
    ) {
        let mut record = Record::empty();
        record.started_us = attempt.started_us;
        record.total_us = clock_us().saturating_sub(attempt.started_us);
        record.connection = facts.number;
        if let Some(peer) = facts.peer {
            (record.client, record.client_port) = (peer.ip(), peer.port());
        }
        let (detail, client) = (detail.to_string(), record.client.to_string());
        let write = |pen: &mut Pen<'_>| {
            let parts = [
                "the handshake over ",
                attempt.over,
                " failed: ",
                failure.words(),
            ];
            pen.parts("text", parts.map(TextPart::Word));
            pen.text("outcome", b"failed");
            pen.text("reason", failure.words().as_bytes());
            pen.text("fault", failure.fault().word().as_bytes());
            pen.text_if_any("detail", detail.as_bytes());
            pen.text("client", client.as_bytes());
            pen.number("client_port", record.client_port.into());
            pen.number("listener", facts.listener.into());
            pen.text_if_any(
                "server_name",
                attempt.server_name.unwrap_or_default().as_bytes(),
            );
        };
        let station = self.reactor.station();
        station.tell_of_connection(&record, RequestStage::Tls, write);
    }
}
