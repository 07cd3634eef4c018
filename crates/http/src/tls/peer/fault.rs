//! Why there is no TLS with another server, or no more of it.

use std::fmt;
use std::io;

use hob_trace::calendar::UtcDateTime;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFault {
    /// As one of few.
    pub kind: PeerFaultKind,
    /// In words.
    pub text: String,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFaultKind {
    /// Its certificate has expired, or is not good yet.
    Expired,
    /// Its certificate is for other names.
    WrongName,
    /// Nobody who is believed has signed its certificate.
    UnknownAuthority,
    /// What it sent is no TLS.
    ClearText,
    /// It wants a certificate of ours, or another one.
    OursRefused,
    /// Anything else.
    Other,
}

impl PeerFault {
    fn new(kind: PeerFaultKind, text: impl Into<String>) -> PeerFault {
        let text = text.into();
        PeerFault { kind, text }
    }

    /// One that rustls has found.
    pub(super) fn of(error: &Error) -> PeerFault {
        match error {
            Error::InvalidCertificate(error) => PeerFault::of_certificate(error),
            Error::AlertReceived(alert) => PeerFault::of_alert(*alert),
            error => PeerFault::other(error.to_string()),
        }
    }

    pub(super) fn other(text: impl Into<String>) -> PeerFault {
        PeerFault::new(PeerFaultKind::Other, text)
    }

    /// The connection ended, or broke, within the handshake.
    pub(super) fn ended(error: Option<&io::Error>) -> PeerFault {
        PeerFault::other(match error {
            None => "it closed the connection within the handshake".to_owned(),
            Some(error) => format!("the connection broke within the handshake: {error}"),
        })
    }

    pub(super) fn clear_text() -> PeerFault {
        let text = "what it sent first is no TLS";
        PeerFault::new(PeerFaultKind::ClearText, text)
    }

    fn of_certificate(error: &CertificateError) -> PeerFault {
        use CertificateError as Wrong;
        match error {
            Wrong::ExpiredContext { not_after, .. } => PeerFault::new(
                PeerFaultKind::Expired,
                format!("its certificate expired on {}", day(*not_after)),
            ),
            Wrong::NotValidYetContext { not_before, .. } => PeerFault::new(
                PeerFaultKind::Expired,
                format!("its certificate is not good before {}", day(*not_before)),
            ),
            Wrong::NotValidForNameContext {
                expected,
                presented,
            } => {
                let names = match presented.is_empty() {
                    true => "nobody".to_owned(),
                    false => presented.join(", "),
                };
                let asked = expected.to_str();
                let text = format!("its certificate is for {names}, not for {asked}");
                PeerFault::new(PeerFaultKind::WrongName, text)
            }
            Wrong::UnknownIssuer | Wrong::BadSignature => PeerFault::new(
                PeerFaultKind::UnknownAuthority,
                "nobody who is believed has signed its certificate",
            ),
            // So the library says that an authority shows its own certificate.
            Wrong::Other(error) if error.to_string() == "CaUsedAsEndEntity" => PeerFault::new(
                PeerFaultKind::UnknownAuthority,
                "its certificate is that of an authority which is not believed",
            ),
            error => PeerFault::other(format!("its certificate is no good: {error}")),
        }
    }

    /// It gave up.
    pub(super) fn of_alert(alert: AlertDescription) -> PeerFault {
        use AlertDescription as Alert;
        let told = format!("it gave up: {alert:?} ({})", u8::from(alert));
        let kind = match alert {
            Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied => PeerFaultKind::OursRefused,
            // An older TLS has no other word for a certificate that is missing.
            Alert::HandshakeFailure => {
                return PeerFault::other(format!(
                    "{told}; there is no version or cipher suite that both sides know, or it \
                     wants a certificate of ours"
                ));
            }
            Alert::UnrecognisedName => {
                return PeerFault::other(format!("{told}; it has no host of that name"));
            }
            _ => PeerFaultKind::Other,
        };
        PeerFault::new(kind, told)
    }
}

fn day(time: UnixTime) -> String {
    let unix_s = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let UtcDateTime {
        year, month, day, ..
    } = UtcDateTime::from_unix_s(unix_s);
    format!("{year}-{month:02}-{day:02}")
}

impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PeerFault {}

impl From<PeerFault> for io::Error {
    fn from(fault: PeerFault) -> io::Error {
        io::Error::other(fault)
    }
}
