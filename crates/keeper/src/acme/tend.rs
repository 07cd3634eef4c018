//! One certificate's life: asked for when there is none, renewed when it is time, tried again after
//! a failure. What works is never given up for something that does not.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hob_http::acme::{
    AcmeError, Leaf, Obtained, OrderPacing, WantedCertificate, Window, check, due_unix_s, leaf_of,
    obtain, seed_of,
};
use tokio::sync::Notify;

use super::desk::AcmeContext;
use super::state::CertificateState;

/// One certificate.
pub(super) struct Tended {
    desk: Rc<AcmeContext>,
    wanted: WantedCertificate,
    has: Rc<Has>,
    pace: OrderPacing,
    /// When the authority would like it to be renewed, and when it is asked again.
    window: Option<Window>,
    ask_unix_s: i64,
    last_try_unix_s: i64,
    /// After a failure.
    retry_unix_s: Option<i64>,
    error: Option<String>,
}

/// What there is of a certificate.
#[derive(Default)]
pub(super) struct Has {
    /// The one that is served.
    leaf: RefCell<Option<Leaf>>,
    /// One that was got and could not be kept.
    unkept: RefCell<Option<Obtained>>,
}

impl Has {
    /// What is kept is what is known of here, but for what could not be kept.
    pub(super) fn is_what_is_kept(&self, chain: Option<&[u8]>) -> bool {
        let kept = chain.and_then(leaf_of);
        self.unkept.borrow().is_some() || *self.leaf.borrow() == kept
    }
}

/// The clock is looked at again after this: it may be set, and the machine may sleep.
const SLEEP_MAX: Duration = Duration::from_secs(60 * 60);
/// Between two questions about a window, when the authority does not say.
const ASK_AGAIN_S: i64 = 6 * 60 * 60;
const ASK_AGAIN_S_MIN: i64 = 60;
const ASK_AGAIN_S_MAX: i64 = 24 * 60 * 60;

impl Tended {
    pub(super) fn new(
        desk: &Rc<AcmeContext>,
        wanted: WantedCertificate,
        chain: Option<&[u8]>,
    ) -> Tended {
        Tended {
            desk: Rc::clone(desk),
            wanted,
            has: Rc::new(Has {
                leaf: RefCell::new(chain.and_then(leaf_of)),
                unkept: RefCell::default(),
            }),
            pace: OrderPacing::default(),
            window: None,
            ask_unix_s: 0,
            last_try_unix_s: 0,
            retry_unix_s: None,
            error: None,
        }
    }

    /// What there is of it, for others to see.
    pub(super) fn has(&self) -> Rc<Has> {
        Rc::clone(&self.has)
    }

    fn leaf(&self) -> Option<Leaf> {
        self.has.leaf.borrow().clone()
    }

    /// Goes on for ever. `urge` is an operator who wants everything looked at now.
    pub(super) async fn tend(mut self, urge: Rc<Notify>) {
        loop {
            let now = now_unix_s();
            self.ask_for_window(now).await;
            let due = self.due(now);
            if due <= now {
                self.try_now().await;
                continue;
            }
            self.report(due, false);
            let next = match self.leaf() {
                Some(_) => due.min(self.ask_unix_s),
                None => due,
            };
            let left = u64::try_from(next.saturating_sub(now)).unwrap_or(0);
            let sleep = Duration::from_secs(left).clamp(Duration::from_millis(100), SLEEP_MAX);
            if tokio::time::timeout(sleep, urge.notified()).await.is_ok() {
                let now = now_unix_s();
                self.ask_unix_s = now;
                if self.pace.may_urge(self.last_try_unix_s, now) {
                    self.retry_unix_s = self.retry_unix_s.map(|_| now);
                }
            }
        }
    }

    /// When the next one is asked for.
    fn due(&mut self, now: i64) -> i64 {
        if let Some(retry) = self.retry_unix_s {
            return retry;
        }
        let Some(leaf) = &self.leaf() else {
            return now;
        };
        if !self.wanted.names.iter().all(|name| leaf.covers(name)) {
            return now;
        }
        let seed = seed_of(leaf);
        let usual = due_unix_s(leaf, None, seed);
        let due = due_unix_s(leaf, self.window, seed);
        if self.window.is_some() && due <= now && usual > now {
            if self.pace.may_renew_early(now) {
                tracing::info!(
                    name = self.name(),
                    "the authority asks for an early renewal"
                );
                return now;
            }
            self.window = None;
            return usual;
        }
        due
    }

    /// Asks when the authority would like the certificate to be renewed.
    async fn ask_for_window(&mut self, now: i64) {
        let Some(leaf) = self.leaf().filter(|_| self.ask_unix_s <= now) else {
            return;
        };
        self.ask_unix_s = now + ASK_AGAIN_S;
        let session = match self.desk.session().await {
            Ok(session) => session,
            Err(trouble) => {
                tracing::debug!(name = self.name(), "no renewal window: {trouble}");
                return;
            }
        };
        if let Some((window, again_s)) = session.window(&leaf).await {
            self.window = Some(window);
            let again_s = i64::try_from(again_s).unwrap_or(ASK_AGAIN_S_MAX);
            self.ask_unix_s = now + again_s.clamp(ASK_AGAIN_S_MIN, ASK_AGAIN_S_MAX);
        }
    }

    async fn try_now(&mut self) {
        let desk = Rc::clone(&self.desk);
        let Ok(_room) = desk.room.acquire().await else {
            return;
        };
        let now = now_unix_s();
        self.last_try_unix_s = now;
        self.report(now, true);
        match self.order().await {
            Ok(leaf) => {
                tracing::info!(name = self.name(), "a certificate was got");
                *self.has.leaf.borrow_mut() = Some(leaf);
                self.window = None;
                self.ask_unix_s = 0;
                self.pace.worked();
                self.retry_unix_s = None;
                self.error = None;
            }
            Err(trouble) => {
                let leaf = self.leaf();
                let seed = leaf.as_ref().map_or(now.cast_unsigned() << 32, seed_of);
                let pause = self.pace.failed(trouble.retry_after(), seed);
                let pause_s = i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
                self.retry_unix_s = Some(now_unix_s().saturating_add(pause_s));
                let text = trouble.to_string();
                let failures = self.pace.failures();
                tracing::error!(
                    name = self.name(),
                    failures,
                    pause_s,
                    "no certificate: {text}"
                );
                self.error = Some(text);
                if matches!(trouble, AcmeError::Authority { .. }) {
                    desk.forget_session().await;
                }
            }
        }
    }

    async fn order(&mut self) -> Result<Leaf, AcmeError> {
        let unkept = self.has.unkept.borrow_mut().take();
        let obtained = match unkept {
            Some(obtained) => obtained,
            None => self.obtain().await?,
        };
        let (chain, key) = (obtained.chain.as_bytes(), obtained.key.as_bytes());
        let leaf = check(chain, key, &self.wanted.names, now_unix_s())
            .map_err(|unfit| AcmeError::Unfit(unfit.to_string()))?;
        let directory = &self.desk.authority.directory;
        let link = &self.desk.link;
        let kept = link.keep_certificate(directory, self.name(), chain, key);
        if let Err(reason) = kept.await {
            // Another one would not be kept either, and orders are counted.
            *self.has.unkept.borrow_mut() = Some(obtained);
            return Err(AcmeError::Store(reason));
        }
        Ok(leaf)
    }

    async fn obtain(&self) -> Result<Obtained, AcmeError> {
        for _ in 0..2 {
            let session = self.desk.session().await?;
            let replaced = self.leaf();
            match obtain(&session, &self.wanted, replaced.as_ref(), &*self.desk).await? {
                Some(obtained) => return Ok(obtained),
                None => {
                    tracing::warn!("the authority does not know the account; making another");
                    self.desk.forget_account().await;
                }
            }
        }
        Err(AcmeError::Account(
            "it does not know the account it has just made".to_owned(),
        ))
    }

    fn name(&self) -> &str {
        self.wanted.names.first().map_or("", String::as_str)
    }

    fn report(&self, next_unix_s: i64, is_ordering: bool) {
        self.desk.link.report(CertificateState {
            names: self.wanted.names.clone(),
            method: self.wanted.method,
            until_unix_s: self.leaf().map(|leaf| leaf.not_after_unix_s),
            next_unix_s: (!is_ordering).then_some(next_unix_s),
            is_ordering,
            error: self.error.clone(),
        });
    }
}

pub(super) fn now_unix_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}
