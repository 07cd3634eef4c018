//! One certificate, from the wish to the chain.
//!
//! ```text
//! order --> proofs shown --> (a pause for dns-01) --> authority looks --> our request --> chain
//! ```
//!
//! An authority may refuse any request for its nonce; such a request is made again, and nothing
//! else is.

use std::future::Future;
use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, ChallengeHandle, ChallengeType, Error, Identifier, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, SanType};

use crate::acme::account::{AcmeSession, identifier, is_nonce, is_unknown};
use crate::acme::challenge::{Challenge, ChallengeMethod, Token};
use crate::acme::leaf::Leaf;
use crate::acme::trouble::{AcmeError, words};
use crate::acme::{NONCE_TRIES_MAX, POLL_TIME_MAX};
use crate::tls::pem;

/// A certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCertificate {
    /// Its names, the first of which names it.
    pub names: Vec<String>,
    /// How names are proved.
    pub method: ChallengeMethod,
    /// How long after the proofs are shown the authority is told to look.
    pub pause: Duration,
}

/// What came of an order.
pub struct Obtained {
    /// The chain, as PEM.
    pub chain: String,
    /// Its private key, as PEM.
    pub key: String,
}

/// Where proofs are shown.
pub trait ChallengePresenter {
    /// A proof being shown; it is taken away when this is dropped.
    type Shown;

    /// Shows a proof; ready when the authority would see it.
    fn show(&self, challenge: Challenge) -> impl Future<Output = Result<Self::Shown, String>>;
}

/// What may go wrong within an order.
enum Failed {
    /// To be told.
    Told(AcmeError),
    /// The authority does not know the account.
    Account,
}

/// Gets a certificate. `replaced` is the one whose place it takes. `Ok(None)` means that the
/// authority does not know the account: it is to be made anew.
///
/// # Errors
/// Everything that can go wrong on the way, with what to do.
pub async fn obtain<S: ChallengePresenter>(
    session: &AcmeSession,
    wanted: &WantedCertificate,
    replaced: Option<&Leaf>,
    stage: &S,
) -> Result<Option<Obtained>, AcmeError> {
    match attempt(session, wanted, replaced, stage).await {
        Ok(obtained) => Ok(Some(obtained)),
        Err(Failed::Account) => Ok(None),
        Err(Failed::Told(trouble)) => Err(trouble),
    }
}

async fn attempt<S: ChallengePresenter>(
    session: &AcmeSession,
    wanted: &WantedCertificate,
    replaced: Option<&Leaf>,
    stage: &S,
) -> Result<Obtained, Failed> {
    let directory = &session.authority.directory;
    let fail = |step| move |error: Error| told(error, step, directory);
    let mut order = begin(session, wanted, replaced).await?;
    let loaded = again(async || load(&mut order).await).await;
    loaded.map_err(fail(STEP_PROOF))?;
    let shown = show(&mut order, wanted, stage).await?;
    if wanted.method == ChallengeMethod::Dns && !shown.is_empty() {
        tokio::time::sleep(wanted.pause).await;
    }
    let polling = RetryPolicy::new().timeout(POLL_TIME_MAX);
    let looked = match tell(&mut order, wanted.method).await {
        Ok(()) => again(async || order.poll_ready(&polling).await).await,
        Err(error) => Err(error),
    };
    match looked {
        Ok(OrderStatus::Ready) => {}
        // A quick authority says in its answer to `tell` already what it did not find.
        Ok(_) | Err(Error::Api(_)) => {
            let found = again(async || find_failure(&mut order, wanted.method).await).await;
            let found = found.map_err(fail(STEP_PROOF))?;
            return Err(match (found, looked) {
                (Some(failure), _) => Failed::Told(failure),
                (None, Err(error)) => fail(STEP_PROOF)(error),
                (None, Ok(_)) => Failed::Told(refused(&mut order)),
            });
        }
        Err(error) => return Err(fail(STEP_PROOF)(error)),
    }
    drop(shown);
    let (request, key) = request(&wanted.names).map_err(Failed::Told)?;
    let finalized = again(async || order.finalize_csr(&request).await).await;
    finalized.map_err(fail(STEP_CERTIFICATE))?;
    let chain = again(async || order.poll_certificate(&polling).await).await;
    let chain = chain.map_err(fail(STEP_CERTIFICATE))?;
    Ok(Obtained { chain, key })
}

const STEP_PROOF: &str = "the proof of a name";
const STEP_CERTIFICATE: &str = "the certificate";

/// Does something again when the authority refused its nonce: then it has not been looked at.
async fn again<T>(mut action: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match action().await {
            Err(error) if is_nonce(&error) && tries < NONCE_TRIES_MAX => tries += 1,
            done => return done,
        }
    }
}

fn told(error: Error, step: &'static str, directory: &str) -> Failed {
    match is_unknown(&error) {
        true => Failed::Account,
        false => Failed::Told(AcmeError::of(error, step, directory)),
    }
}

async fn begin(
    session: &AcmeSession,
    wanted: &WantedCertificate,
    replaced: Option<&Leaf>,
) -> Result<Order, Failed> {
    let names = wanted.names.iter().cloned();
    let identifiers: Vec<Identifier> = names.map(Identifier::Dns).collect();
    let profile = session.authority.profile.as_deref();
    let wish = || match profile {
        Some(profile) => NewOrder::new(&identifiers).profile(profile),
        None => NewOrder::new(&identifiers),
    };
    let fail = |error| {
        told(
            error,
            "an order for these names",
            &session.authority.directory,
        )
    };
    if let Some(id) = replaced.and_then(identifier) {
        let wish = wish().replaces(id);
        match again(async || session.account.new_order(&wish).await).await {
            Ok(order) => return Ok(order),
            // It may not know the old one, or have replaced it already: then it is an order like
            // the first.
            Err(error) => match fail(error) {
                Failed::Told(trouble @ AcmeError::Refused { is_limit: true, .. }) => {
                    return Err(Failed::Told(trouble));
                }
                Failed::Told(_) => {}
                other => return Err(other),
            },
        }
    }
    let wish = wish();
    let order = again(async || session.account.new_order(&wish).await).await;
    order.map_err(fail)
}

/// Asks for every authorization of an order; what was asked for is remembered.
async fn load(order: &mut Order) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?;
    }
    Ok(())
}

/// Shows the proofs of all names that the authority has not seen lately.
async fn show<S: ChallengePresenter>(
    order: &mut Order,
    wanted: &WantedCertificate,
    stage: &S,
) -> Result<Vec<S::Shown>, Failed> {
    let mut shown = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let name = authorization.identifier().to_string();
        let Some(handle) = authorization.challenge(kind(wanted.method)) else {
            let method = wanted.method;
            return Err(Failed::Told(AcmeError::NoMethod { name, method }));
        };
        let Some(challenge) = proof(&handle, wanted.method) else {
            let reason = format!("the token for {name} is malformed");
            return Err(Failed::Told(AcmeError::Unfit(reason)));
        };
        let proof = stage.show(challenge).await;
        shown.push(proof.map_err(|reason| Failed::Told(AcmeError::Stage(reason)))?);
    }
    Ok(shown)
}

/// Tells the authority to look at the proofs; once it has begun to, it need not be told again.
async fn tell(order: &mut Order, method: ChallengeMethod) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status != AuthorizationStatus::Valid
            && let Some(mut handle) = authorization.challenge(kind(method))
        {
            again(async || handle.set_ready().await).await?;
        }
    }
    Ok(())
}

fn kind(method: ChallengeMethod) -> ChallengeType {
    match method {
        ChallengeMethod::Http => ChallengeType::Http01,
        ChallengeMethod::TlsAlpn => ChallengeType::TlsAlpn01,
        ChallengeMethod::Dns => ChallengeType::Dns01,
    }
}

/// What is shown for a challenge; `None` when what the authority sent makes no sense.
fn proof(handle: &ChallengeHandle<'_>, method: ChallengeMethod) -> Option<Challenge> {
    let token = Token::new(&handle.token)?;
    let authorization = handle.key_authorization();
    let Identifier::Dns(name) = handle.identifier().identifier else {
        return None;
    };
    let challenge = match method {
        ChallengeMethod::Http => Challenge::Http {
            token,
            answer: authorization.as_str().to_owned(),
        },
        ChallengeMethod::TlsAlpn => Challenge::TlsAlpn {
            name: name.clone(),
            digest: authorization.digest().as_ref().try_into().ok()?,
        },
        ChallengeMethod::Dns => Challenge::Dns {
            name: format!("_acme-challenge.{name}"),
            value: authorization.dns_value(),
        },
    };
    challenge.is_sound().then_some(challenge)
}

/// Which name was not proved, and why; `None` when no proof was looked for in vain.
async fn find_failure(
    order: &mut Order,
    method: ChallengeMethod,
) -> Result<Option<AcmeError>, Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        authorization.refresh().await?;
        let name = authorization.identifier().to_string();
        let failed = authorization
            .challenges
            .iter()
            .find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = failed {
            return Ok(Some(AcmeError::Challenge {
                name,
                method,
                reason: words(problem),
            }));
        }
    }
    Ok(None)
}

/// An order is refused, and no name is why.
fn refused(order: &mut Order) -> AcmeError {
    let reason = match &order.state().error {
        Some(problem) => words(problem),
        None => "no reason given".to_owned(),
    };
    AcmeError::Refused {
        step: "the order",
        reason,
        is_limit: false,
    }
}

/// The request for a certificate of these names, as DER, and its new key, as PEM.
fn request(names: &[String]) -> Result<(Vec<u8>, String), AcmeError> {
    let fail = |error: rcgen::Error| AcmeError::Stage(format!("no request was made: {error}"));
    let mut params = CertificateParams::default();
    for name in names {
        let name = name.as_str().try_into().map_err(fail)?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().map_err(fail)?;
    let request = params.serialize_request(&key).map_err(fail)?;
    let key = pem("PRIVATE KEY", key.serialized_der());
    Ok((request.der().to_vec(), key))
}
