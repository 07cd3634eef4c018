//! Why there is no certificate, whose fault that is, and what to do.

use std::fmt;
use std::time::Duration;

use crate::acme::challenge::ChallengeMethod;

/// Why an order failed.
#[derive(Debug)]
pub enum AcmeError {
    /// The authority was not reached, or did not answer as one.
    Authority {
        /// Address of its directory.
        directory: String,
        /// What happened.
        reason: String,
    },
    /// The authority does not want the account.
    Account(String),
    /// The authority refused an order for these names, or a step of it.
    Refused {
        /// What it was asked.
        step: &'static str,
        /// Its words.
        reason: String,
        /// It is asked too often.
        is_limit: bool,
    },
    /// The authority looked and did not find what it should.
    Challenge {
        /// The name it looked at.
        name: String,
        /// How.
        method: ChallengeMethod,
        /// Its words.
        reason: String,
    },
    /// The authority does not offer this way for a name.
    NoMethod {
        /// The name.
        name: String,
        /// The way.
        method: ChallengeMethod,
    },
    /// A challenge could not be shown.
    Stage(String),
    /// What came back cannot be served.
    Unfit(String),
    /// It was not kept: the file system's fault.
    Store(String),
    /// The authority takes too long.
    TooSlow(&'static str),
}

impl AcmeError {
    /// How long the authority wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            AcmeError::Refused { is_limit: true, .. } => Some(Duration::from_secs(60 * 60)),
            _ => None,
        }
    }

    /// What an answer of the authority, or none, means for a step.
    pub(crate) fn of(error: instant_acme::Error, step: &'static str, directory: &str) -> AcmeError {
        match error {
            instant_acme::Error::Api(problem) => {
                let kind = short_type(&problem).to_owned();
                let is_account = matches!(
                    &*kind,
                    "accountDoesNotExist" | "unauthorized" | "externalAccountRequired"
                );
                let reason = words(&problem);
                match kind.as_str() {
                    _ if is_account && step == STEP_ACCOUNT => AcmeError::Account(reason),
                    _ => AcmeError::Refused {
                        step,
                        reason,
                        is_limit: kind == "rateLimited",
                    },
                }
            }
            instant_acme::Error::Timeout(_) => AcmeError::TooSlow(step),
            instant_acme::Error::Str(reason) => AcmeError::Refused {
                step,
                reason: reason.to_owned(),
                is_limit: false,
            },
            other => AcmeError::Authority {
                directory: directory.to_owned(),
                reason: chain(&other),
            },
        }
    }
}

/// The step that gets an account.
pub(crate) const STEP_ACCOUNT: &str = "an account";

/// The type of a problem without its name space.
pub(crate) fn short_type(problem: &instant_acme::Problem) -> &str {
    let full = problem.r#type.as_deref().unwrap_or_default();
    full.strip_prefix("urn:ietf:params:acme:error:")
        .unwrap_or(full)
}

/// What an authority says, on one line.
pub(crate) fn words(problem: &instant_acme::Problem) -> String {
    let mut text = problem.detail.clone().unwrap_or_default();
    for part in &problem.subproblems {
        text.push_str(&format!("; {part}"));
    }
    let kind = short_type(problem);
    if !kind.is_empty() {
        text.push_str(&format!(" ({kind})"));
    }
    one_line(&text)
}

/// An error with what is behind it: the reason is often the last.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    one_line(&text)
}

/// Text of others, fit for a log line and a status.
pub fn one_line(text: &str) -> String {
    const CHARS_MAX: usize = 1000;
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let clean: String = clean.take(CHARS_MAX).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcmeError::Authority { directory, reason } => {
                write!(
                    f,
                    "the authority at {directory} cannot be asked: {reason}; is `acme.directory` \
                     right, and can this machine reach it?"
                )?;
                if reason.contains("UnknownIssuer") || reason.contains("invalid peer certificate") {
                    f.write_str(" `acme.ca` names the file of who signed its certificate")?;
                }
                Ok(())
            }
            AcmeError::Account(reason) => write!(
                f,
                "the authority gives no account: {reason}; look at `acme.contact` and \
                 `acme.external_account`"
            ),
            AcmeError::Refused {
                step,
                reason,
                is_limit,
            } => {
                write!(f, "the authority refuses {step}: {reason}")?;
                match is_limit {
                    true => f.write_str("; it is asked too often, so wait"),
                    false => Ok(()),
                }
            }
            AcmeError::Challenge {
                name,
                method,
                reason,
            } => {
                let todo = match method {
                    ChallengeMethod::Http => {
                        "port 80 of that name must lead to a listener of this server"
                    }
                    ChallengeMethod::TlsAlpn => {
                        "port 443 of that name must lead to a TLS listener of this server"
                    }
                    ChallengeMethod::Dns => {
                        "the program of `acme.dns` must return when the record is seen"
                    }
                };
                let method = method.name();
                write!(
                    f,
                    "the authority did not find the proof for {name} ({method}): {reason}; {todo}"
                )
            }
            AcmeError::NoMethod { name, method } => write!(
                f,
                "the authority does not offer {} for {name}; set another `acme.challenge`",
                method.name()
            ),
            AcmeError::Stage(reason) => f.write_str(reason),
            AcmeError::Unfit(reason) => {
                write!(f, "what the authority sent cannot be served: {reason}")
            }
            AcmeError::Store(reason) => f.write_str(reason),
            AcmeError::TooSlow(step) => {
                write!(
                    f,
                    "the authority did not get {step} done in time; it is tried again"
                )
            }
        }
    }
}

impl std::error::Error for AcmeError {}
