//! What all orders share: the account, the ways to show proofs, and the room for so many at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hob_http::acme::{
    AcmeError, AcmeSession, Authority, Challenge, ChallengePresenter, ORDERS_MAX,
};
use tokio::sync::{Mutex, Notify, Semaphore};

use super::link::{KeeperLink, PublishedChallenge};
use crate::process::hook::{Action, Hook};

/// For so long nobody tries again to reach an authority that was not there.
const UNREACHED_TIME: Duration = Duration::from_secs(30);

/// What all orders share.
pub(super) struct AcmeContext {
    pub(super) link: Rc<KeeperLink>,
    pub(super) authority: Authority,
    hook: Option<Hook>,
    account: RefCell<Account>,
    /// Opened by the first who needs it; the others wait for that.
    session: Mutex<Option<Rc<AcmeSession>>>,
    /// When the authority was not reached, and why: who asks right after that need not try.
    unreached: RefCell<Option<(Instant, String)>>,
    pub(super) room: Semaphore,
    pub(super) removals: Rc<Removals>,
}

#[derive(Default)]
struct Account {
    text: Option<Vec<u8>>,
    is_kept: bool,
}

impl AcmeContext {
    pub(super) fn new(
        link: &Rc<KeeperLink>,
        authority: Authority,
        hook: Option<Hook>,
        account: Option<Vec<u8>>,
    ) -> Rc<AcmeContext> {
        Rc::new(AcmeContext {
            link: Rc::clone(link),
            authority,
            hook,
            account: RefCell::new(Account {
                is_kept: account.is_some(),
                text: account,
            }),
            session: Mutex::default(),
            unreached: RefCell::default(),
            room: Semaphore::new(ORDERS_MAX),
            removals: Rc::default(),
        })
    }

    /// The account in use. It is kept before anything is ordered with it.
    pub(super) async fn session(&self) -> Result<Rc<AcmeSession>, AcmeError> {
        let mut session = self.session.lock().await;
        let open = match &*session {
            Some(open) => Rc::clone(open),
            None => {
                let (open, new) = self.open().await?;
                if let Some(new) = new {
                    tracing::info!(directory = self.authority.directory, "a new ACME account");
                    *self.account.borrow_mut() = Account {
                        text: Some(new),
                        is_kept: false,
                    };
                }
                let open = Rc::new(open);
                *session = Some(Rc::clone(&open));
                open
            }
        };
        let unkept = {
            let account = self.account.borrow();
            account.text.clone().filter(|_| !account.is_kept)
        };
        if let Some(text) = unkept {
            let kept = self
                .link
                .keep_account(&self.authority.directory, &text)
                .await;
            kept.map_err(AcmeError::Store)?;
            self.account.borrow_mut().is_kept = true;
        }
        Ok(open)
    }

    async fn open(&self) -> Result<(AcmeSession, Option<Vec<u8>>), AcmeError> {
        if let Some((when, reason)) = &*self.unreached.borrow()
            && when.elapsed() < UNREACHED_TIME
        {
            return Err(AcmeError::Authority {
                directory: self.authority.directory.clone(),
                reason: reason.clone(),
            });
        }
        let kept = self.account.borrow().text.clone();
        let opened = AcmeSession::open(&self.authority, kept.as_deref()).await;
        if let Err(AcmeError::Authority { reason, .. }) = &opened {
            *self.unreached.borrow_mut() = Some((Instant::now(), reason.clone()));
        }
        opened
    }

    /// Somebody may have mended what was wrong.
    pub(super) fn forget_trouble(&self) {
        self.unreached.take();
    }

    /// The authority does not know the account any more.
    pub(super) async fn forget_account(&self) {
        *self.session.lock().await = None;
        *self.account.borrow_mut() = Account::default();
    }

    /// Begins anew with the authority's directory: after trouble it may have moved.
    pub(super) async fn forget_session(&self) {
        *self.session.lock().await = None;
    }
}

/// A proof being shown.
pub(super) enum Proof {
    /// By the server.
    Served(#[expect(dead_code, reason = "what counts is its drop")] PublishedChallenge),
    /// By a record.
    Record(#[expect(dead_code, reason = "what counts is its drop")] Record),
}

/// Records that are being removed.
#[derive(Default)]
pub(super) struct Removals {
    count: Cell<usize>,
    is_none: Notify,
}

impl Removals {
    /// Waits until there are none.
    pub(super) async fn finish(&self) {
        while self.count.get() > 0 {
            self.is_none.notified().await;
        }
    }
}

/// A record that is set until this is dropped.
pub(super) struct Record {
    removals: Rc<Removals>,
    hook: Hook,
    name: String,
    value: String,
}

impl Drop for Record {
    fn drop(&mut self) {
        let (hook, name, value) = (self.hook.clone(), self.name.clone(), self.value.clone());
        let removals = Rc::clone(&self.removals);
        removals.count.set(removals.count.get() + 1);
        // The order does not wait for it: it goes on, or has failed.
        tokio::task::spawn_local(async move {
            if let Err(error) = hook.run(Action::Remove, &name, &value).await {
                tracing::warn!("a record was not removed: {error}");
            }
            removals.count.set(removals.count.get() - 1);
            if removals.count.get() == 0 {
                removals.is_none.notify_one();
            }
        });
    }
}

impl ChallengePresenter for AcmeContext {
    type Shown = Proof;

    async fn show(&self, challenge: Challenge) -> Result<Proof, String> {
        let Challenge::Dns { name, value } = challenge else {
            let shown = PublishedChallenge::new(&self.link, challenge.clone());
            self.link.show(challenge).await?;
            return Ok(Proof::Served(shown));
        };
        let hook = self.hook.clone();
        let hook = hook.ok_or("`acme.dns` names no program that sets records")?;
        // Half an `add` is taken back too.
        let record = Record {
            removals: Rc::clone(&self.removals),
            hook: hook.clone(),
            name: name.clone(),
            value: value.clone(),
        };
        hook.run(Action::Add, &name, &value).await?;
        Ok(Proof::Record(record))
    }
}
