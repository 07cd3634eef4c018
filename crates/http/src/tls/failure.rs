//! Why handshakes fail: reasons that can be counted, each with its words.

use hob_trace::{Fault, ThreadCounters};
use rustls::{AlertDescription, Error, PeerIncompatible};

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeFailure {
    /// The client went away, or its connection broke.
    Left,
    /// The client said that it does not want to go on.
    Refused,
    Version,
    Suite,
    Protocol,
    Certificate,
    /// What came is neither TLS nor HTTP.
    Foreign,
    /// The client broke the rules of TLS.
    Broken,
    /// It took longer than `limits.handshake_time`.
    Late,
    /// It took more bytes than `limits.handshake_bytes`.
    Long,
    /// There are as many handshakes as `limits.handshakes` allows.
    Full,
    /// The server stopped.
    Stopped,
    /// Something is wrong with the server's side.
    Own,
}

impl HandshakeFailure {
    /// What rustls says is wrong, as one of these.
    pub(crate) fn of(error: &Error) -> HandshakeFailure {
        use PeerIncompatible as Lacks;
        match error {
            Error::AlertReceived(AlertDescription::CloseNotify) => HandshakeFailure::Left,
            Error::AlertReceived(_) => HandshakeFailure::Refused,
            Error::PeerIncompatible(
                Lacks::Tls12NotOffered
                | Lacks::Tls12NotOfferedOrEnabled
                | Lacks::Tls13RequiredForQuic
                | Lacks::SupportedVersionsExtensionRequired
                | Lacks::ServerTlsVersionIsDisabledByOurConfig
                // Looked for before the version: what is older than TLS 1.2 does not have it.
                | Lacks::SignatureAlgorithmsExtensionRequired
                | Lacks::ServerDoesNotSupportTls12Or13,
            ) => HandshakeFailure::Version,
            Error::PeerIncompatible(_) => HandshakeFailure::Suite,
            Error::NoApplicationProtocol => HandshakeFailure::Protocol,
            Error::NoCertificatesPresented
            | Error::InvalidCertificate(_)
            | Error::InvalidCertRevocationList(_) => HandshakeFailure::Certificate,
            Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::InvalidEncryptedClientHello(_)
            | Error::InvalidMessage(_)
            | Error::DecryptError
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord => HandshakeFailure::Broken,
            // So rustls says, in TLS 1.2, that the client knows no signature of our key.
            Error::General(text) if text == "incompatible signing key" => HandshakeFailure::Suite,
            _ => HandshakeFailure::Own,
        }
    }

    /// The same of a code with which a handshake of QUIC ended: which side said it decides whose
    /// certificate is meant.
    //= rfc9001#4.8
    pub(crate) fn of_quic(code: u64, said_by: TlsSide) -> HandshakeFailure {
        const ALERTS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;
        if !ALERTS.contains(&code) {
            return match (code, said_by) {
                (0, _) => HandshakeFailure::Left,
                // A client that closes before the handshake is done cannot say why.
                //= rfc9000#10.2.3
                (0x0c, TlsSide::Client) => HandshakeFailure::Left,
                (_, TlsSide::Client) => HandshakeFailure::Refused,
                (_, TlsSide::Server) => HandshakeFailure::Broken,
            };
        }
        match (AlertDescription::from(code as u8), said_by) {
            (_, TlsSide::Client) => HandshakeFailure::Refused,
            (AlertDescription::ProtocolVersion, _) => HandshakeFailure::Version,
            (AlertDescription::HandshakeFailure, _) => HandshakeFailure::Suite,
            (AlertDescription::NoApplicationProtocol, _) => HandshakeFailure::Protocol,
            (
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied,
                _,
            ) => HandshakeFailure::Certificate,
            (AlertDescription::InternalError, _) => HandshakeFailure::Own,
            _ => HandshakeFailure::Broken,
        }
    }

    /// The reason in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            HandshakeFailure::Left => "the client left within the handshake",
            HandshakeFailure::Refused => {
                "the client gave up; it may not trust the certificate or its name"
            }
            HandshakeFailure::Version => "there is no version of TLS that both sides speak",
            HandshakeFailure::Suite => {
                "there is no cipher suite, key exchange or signature both sides know"
            }
            HandshakeFailure::Protocol => "there is no application protocol that both sides speak",
            HandshakeFailure::Certificate => "the client's certificate is missing or not accepted",
            HandshakeFailure::Foreign => "what came is neither TLS nor HTTP",
            HandshakeFailure::Broken => "the client broke the rules of TLS",
            HandshakeFailure::Late => "limits.handshake_time: it took too long",
            HandshakeFailure::Long => "limits.handshake_bytes: it took too many bytes",
            HandshakeFailure::Full => "limits.handshakes: as many as may are under way",
            HandshakeFailure::Stopped => "the server stopped",
            HandshakeFailure::Own => "the server's side of the handshake failed",
        }
    }

    /// Whose fault it was.
    pub(crate) fn fault(self) -> Fault {
        match self {
            HandshakeFailure::Full | HandshakeFailure::Stopped | HandshakeFailure::Own => {
                Fault::Server
            }
            _ => Fault::Client,
        }
    }

    /// The client did what no client has to do. One that leaves, or does not trust the server, may
    /// mean no harm.
    pub(crate) fn is_offence(self) -> bool {
        let may_be_innocent = matches!(self, HandshakeFailure::Left | HandshakeFailure::Refused);
        self.fault() == Fault::Client && !may_be_innocent
    }

    /// The connection just ended, whatever was said over it.
    pub(crate) fn is_an_end(self) -> bool {
        matches!(self, HandshakeFailure::Left | HandshakeFailure::Stopped)
    }

    /// Counts it, among all that fail and by its reason.
    pub(crate) fn count(self, counters: &ThreadCounters) {
        counters.tls_handshakes_failed.add(1);
        let reason = match self {
            HandshakeFailure::Left => &counters.tls_failed_left,
            HandshakeFailure::Refused => &counters.tls_failed_refused,
            HandshakeFailure::Version => &counters.tls_failed_version,
            HandshakeFailure::Suite => &counters.tls_failed_suite,
            HandshakeFailure::Protocol => &counters.tls_failed_protocol,
            HandshakeFailure::Certificate => &counters.tls_failed_certificate,
            HandshakeFailure::Foreign => &counters.tls_failed_foreign,
            HandshakeFailure::Broken => &counters.tls_failed_broken,
            HandshakeFailure::Late => &counters.limit_handshake_time,
            HandshakeFailure::Long => &counters.limit_handshake_bytes,
            HandshakeFailure::Full => &counters.limit_handshakes,
            HandshakeFailure::Stopped | HandshakeFailure::Own => &counters.tls_failed_server,
        };
        reason.add(1);
    }
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsSide {
    Client,
    Server,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_quic_are_told_by_who_said_them() {
        for (code, said_by, expected) in [
            (0, TlsSide::Client, HandshakeFailure::Left),
            (0x100 + 42, TlsSide::Client, HandshakeFailure::Refused),
            (0x100 + 42, TlsSide::Server, HandshakeFailure::Certificate),
            (0x100 + 116, TlsSide::Server, HandshakeFailure::Certificate),
            (0x100 + 120, TlsSide::Server, HandshakeFailure::Protocol),
            (0x100 + 70, TlsSide::Server, HandshakeFailure::Version),
            (0x100 + 40, TlsSide::Server, HandshakeFailure::Suite),
            (0x100 + 50, TlsSide::Server, HandshakeFailure::Broken),
            (0x0a, TlsSide::Server, HandshakeFailure::Broken),
            (u64::MAX, TlsSide::Client, HandshakeFailure::Refused),
        ] {
            assert_eq!(
                HandshakeFailure::of_quic(code, said_by),
                expected,
                "{code:#x}"
            );
        }
    }

    #[test]
    fn every_failure_counts_once_among_all_and_once_by_reason() {
        use hob_trace::block::CounterBlock;
        for failure in [
            HandshakeFailure::Left,
            HandshakeFailure::Refused,
            HandshakeFailure::Version,
            HandshakeFailure::Suite,
            HandshakeFailure::Protocol,
            HandshakeFailure::Certificate,
            HandshakeFailure::Foreign,
            HandshakeFailure::Broken,
            HandshakeFailure::Late,
            HandshakeFailure::Long,
            HandshakeFailure::Full,
            HandshakeFailure::Stopped,
            HandshakeFailure::Own,
        ] {
            let counters = ThreadCounters::default();
            failure.count(&counters);
            let mut sum = hob_trace::Snapshot::default();
            counters.add_to(&mut sum);
            let counted = sum.metrics().filter(|metric| metric.value > 0);
            assert_eq!(counted.count(), 2, "{failure:?}");
            assert_eq!(sum.tls_handshakes_failed, 1);
        }
    }
}
