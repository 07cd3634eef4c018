//! Keys that an issuer has at a URL: a thread fetches them, now and then and when a token names one
//! that is not there. Who waits for that holds no thread.
//!
//! What cannot be fetched leaves what there was. An issuer is asked again after ten seconds at the
//! soonest, however many tokens with made-up names of keys come.

use std::sync::{Arc, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hob_config::TokenKeysUrl;
use hob_http::outbound::{OutboundClient, OutboundDestination};
use hob_trace::Mutex;
use tokio::sync::oneshot;

use super::keys::TEXT_BYTES_MAX;
use crate::authorities;

/// What the config calls the authorities of an issuer.
const CA_KEY: &str = "jwt.keys_ca";
/// Longest time an issuer is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest from one time that it is asked to the next.
pub const AGAIN: Duration = Duration::from_secs(10);
/// So many requests wait for its keys; others are refused at once.
pub const WAITING_MAX: usize = 1000;

/// Resolves when an issuer has been asked, whatever came of that.
pub type KeysFetched = oneshot::Receiver<()>;

/// Issuers whose keys are in use, over reloads.
#[derive(Default)]
pub struct Issuers(Mutex<Vec<Weak<IssuerKeys>>>);

/// The keys of one. When it is dropped, its thread ends.
pub struct IssuerKeys {
    settings: TokenKeysUrl,
    /// The text of `settings.ca`; empty without.
    roots: Vec<u8>,
    state: Arc<Mutex<FetchState>>,
    thread: Thread,
}

#[derive(Default)]
struct FetchState {
    /// What came last.
    text: Option<Arc<str>>,
    /// Why nothing did when it was asked last.
    fault: Option<String>,
    /// So often something came, and so often nothing.
    counts: (u64, u64),
    /// When it was asked last.
    asked: Option<Instant>,
    /// It is to be asked now, or is being asked.
    is_wanted: bool,
    waiting: Vec<oneshot::Sender<()>>,
    is_closing: bool,
}

impl Issuers {
    /// The keys at a URL, asked for from now on where nobody did.
    ///
    /// # Errors
    /// The file of authorities cannot be read, or the system lacks what is needed.
    pub fn find(&self, settings: &TokenKeysUrl) -> Result<Arc<IssuerKeys>, String> {
        let roots = match &settings.ca {
            Some(file) => authorities::read(file, CA_KEY)?,
            None => Vec::new(),
        };
        let mut known = self.0.lock();
        known.retain(|one| one.strong_count() > 0);
        let is_it = |one: &Arc<IssuerKeys>| one.settings == *settings && one.roots == roots;
        if let Some(one) = known.iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(one);
        }
        let one = Arc::new(IssuerKeys::start(settings.clone(), roots)?);
        known.push(Arc::downgrade(&one));
        Ok(one)
    }
}

impl IssuerKeys {
    fn start(settings: TokenKeysUrl, roots: Vec<u8>) -> Result<IssuerKeys, String> {
        let state = Arc::new(Mutex::new(FetchState {
            is_wanted: true,
            ..FetchState::default()
        }));
        let (of_thread, every) = (Arc::clone(&state), settings.every);
        let destination = OutboundDestination {
            url: settings.url.clone(),
            fields: Vec::new(),
            timeout: TIMEOUT,
        };
        let roots_of_thread = roots.clone();
        let thread = thread::Builder::new()
            .name("hob-jwks".to_owned())
            .spawn(move || {
                let url = destination.url.clone();
                let client = OutboundClient::new(destination, &roots_of_thread, CA_KEY);
                let fetch = || client.as_ref().map_err(String::clone).and_then(fetch);
                run(&of_thread, &url, every, fetch);
            });
        let thread = thread.map_err(|error| format!("no thread for {}: {error}", settings.url))?;
        Ok(IssuerKeys {
            settings,
            roots,
            state,
            thread: thread.thread().clone(),
        })
    }

    /// Where they are.
    pub fn url(&self) -> &str {
        &self.settings.url
    }

    /// How often keys came, and how often none did.
    pub fn counts(&self) -> (u64, u64) {
        self.state.lock().counts
    }

    /// What came last.
    ///
    /// # Errors
    /// Why nothing did when the issuer was asked last.
    pub fn text(&self) -> Result<String, String> {
        let state = self.state.lock();
        match (&state.fault, &state.text) {
            (None, Some(text)) => Ok(text.to_string()),
            (Some(fault), _) => Err(fault.clone()),
            (None, None) => Err(format!("{} has not been asked yet", self.settings.url)),
        }
    }

    /// Has the issuer asked, unless that was done just now or too many wait for it.
    pub fn fetch(&self) -> Option<KeysFetched> {
        let mut state = self.state.lock();
        let is_new = |asked: Instant| asked.elapsed() < AGAIN;
        if !state.is_wanted && state.asked.is_some_and(is_new) {
            return None;
        }
        state.waiting.retain(|waiting| !waiting.is_closed());
        if state.waiting.len() >= WAITING_MAX {
            return None;
        }
        let (sender, fetched) = oneshot::channel();
        state.waiting.push(sender);
        state.is_wanted = true;
        self.thread.unpark();
        Some(fetched)
    }
}

impl Drop for IssuerKeys {
    fn drop(&mut self) {
        self.state.lock().is_closing = true;
        self.thread.unpark();
    }
}

/// The thread: asks when it is time or wanted.
fn run(
    state: &Mutex<FetchState>,
    url: &str,
    every: Duration,
    fetch: impl Fn() -> Result<Arc<str>, String>,
) {
    let mut pause = every;
    loop {
        {
            let now = state.lock();
            if now.is_closing {
                return;
            }
            let passed = now.asked.map_or(Duration::MAX, |asked| asked.elapsed());
            if !now.is_wanted && passed < pause {
                drop(now);
                thread::park_timeout(pause - passed);
                continue;
            }
        }
        let fetched = fetch();
        let mut now = state.lock();
        match fetched {
            Ok(text) => {
                pause = every;
                now.fault = None;
                // The same again changes nothing.
                if now.text.as_ref() != Some(&text) {
                    now.text = Some(text);
                    now.counts.0 += 1;
                }
            }
            Err(fault) => {
                let first = AGAIN.min(every);
                pause = if now.fault.is_some() {
                    pause * 2
                } else {
                    first
                }
                .min(every);
                tracing::warn!(url, "keys of tokens could not be fetched: {fault}");
                now.fault = Some(format!("{url}: {fault}"));
                now.counts.1 += 1;
            }
        }
        now.asked = Some(Instant::now());
        now.is_wanted = false;
        for waiting in now.waiting.drain(..) {
            // Who has left needs no answer.
            let _ = waiting.send(());
        }
    }
}

/// The text that is there.
fn fetch(client: &OutboundClient) -> Result<Arc<str>, String> {
    let reply = client.get("application/jwk-set+json, application/json", TEXT_BYTES_MAX)?;
    if reply.status != 200 {
        return Err(format!("it was answered with {}", reply.status));
    }
    let text = std::str::from_utf8(&reply.body).map_err(|_| "this is no text".to_owned())?;
    Ok(text.into())
}
