//! Who we are at an authority: an account, made once and kept.

use instant_acme::{
    Account, AccountCredentials, CertificateIdentifier, ExternalAccountKey, NewAccount,
};
use rustls::pki_types::Der;

use crate::acme::NONCE_TRIES_MAX;
use crate::acme::client::AcmeClient;
use crate::acme::leaf::Leaf;
use crate::acme::renewal::Window;
use crate::acme::trouble::{AcmeError, STEP_ACCOUNT, short_type};

/// An authority and how we present ourselves there.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// Address of its directory.
    pub directory: String,
    /// Roots to believe besides the system's, as PEM.
    pub roots: Vec<u8>,
    /// Whom it may write to: URLs, usually `mailto:`.
    pub contact: Vec<String>,
    /// An account that was agreed on elsewhere.
    pub external_account: Option<ExternalAccount>,
    /// Which of its kinds of certificates, if not the usual one.
    pub profile: Option<String>,
}

/// An account that was agreed on elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Its name.
    pub id: String,
    /// Its key: the bytes that the base64 text stands for.
    pub key: Vec<u8>,
}

/// An account in use.
pub struct AcmeSession {
    pub(crate) account: Account,
    pub(crate) authority: Authority,
}

impl AcmeSession {
    /// Begins with the account that was kept, else with a new one, whose credentials are returned
    /// to be kept.
    ///
    /// # Errors
    /// When the authority is not there, or gives no account.
    pub async fn open(
        authority: &Authority,
        kept: Option<&[u8]>,
    ) -> Result<(AcmeSession, Option<Vec<u8>>), AcmeError> {
        let directory = &authority.directory;
        let client = AcmeClient::new(&authority.roots).map_err(|reason| AcmeError::Authority {
            directory: directory.clone(),
            reason,
        })?;
        let kept = kept.and_then(|kept| serde_json::from_slice::<AccountCredentials>(kept).ok());
        let fail = |error| AcmeError::of(error, STEP_ACCOUNT, directory);
        let (account, new) = match kept {
            Some(kept) => {
                let builder = Account::builder_with_http(Box::new(client));
                (builder.from_credentials(kept).await.map_err(fail)?, None)
            }
            None => {
                let (account, credentials) = create(authority, client).await.map_err(fail)?;
                let text = serde_json::to_vec(&credentials)
                    .map_err(|error| AcmeError::Account(error.to_string()))?;
                (account, Some(text))
            }
        };
        let authority = authority.clone();
        Ok((AcmeSession { account, authority }, new))
    }

    /// When the authority would like this certificate to be renewed, and in how many seconds it
    /// wants to be asked again; `None` when it does not say.
    pub async fn window(&self, leaf: &Leaf) -> Option<(Window, u64)> {
        let id = identifier(leaf)?;
        let (info, again) = self.account.renewal_info(&id).await.ok()?;
        let window = info.suggested_window;
        let window = Window {
            start_unix_s: window.start.unix_timestamp(),
            end_unix_s: window.end.unix_timestamp(),
        };
        Some((window, again.as_secs()))
    }
}

/// Makes an account, again when the authority refuses a nonce.
async fn create(
    authority: &Authority,
    client: AcmeClient,
) -> Result<(Account, AccountCredentials), instant_acme::Error> {
    let contact: Vec<&str> = authority.contact.iter().map(String::as_str).collect();
    let wish = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let external = authority.external_account.as_ref();
    let external = external.map(|known| ExternalAccountKey::new(known.id.clone(), &known.key));
    let mut tries = 0;
    loop {
        tries += 1;
        let builder = Account::builder_with_http(Box::new(client.clone()));
        let made = builder.create(&wish, authority.directory.clone(), external.as_ref());
        match made.await {
            Err(error) if is_nonce(&error) && tries < NONCE_TRIES_MAX => {}
            made => return made,
        }
    }
}

/// The authority refused a nonce, several times.
pub(crate) fn is_nonce(error: &instant_acme::Error) -> bool {
    let instant_acme::Error::Api(problem) = error else {
        return false;
    };
    short_type(problem) == "badNonce"
}

/// What a certificate is called when its renewal is asked about.
//= rfc9773#4.1
pub(crate) fn identifier(leaf: &Leaf) -> Option<CertificateIdentifier<'static>> {
    let key = leaf.authority_key.as_deref()?;
    let (key, serial) = (Der::from_slice(key), Der::from_slice(&leaf.serial));
    Some(CertificateIdentifier::new(key, serial).into_owned())
}

/// The authority does not know the account, although it was kept.
pub(crate) fn is_unknown(error: &instant_acme::Error) -> bool {
    let instant_acme::Error::Api(problem) = error else {
        return false;
    };
    short_type(problem) == "accountDoesNotExist"
}
