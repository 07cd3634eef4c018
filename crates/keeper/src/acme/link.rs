//! The process's end of the channel to the keeper: what is said, and the answers that are waited
//! for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use hob_http::acme::Challenge;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot};

use super::message::{FromAcme, PEM_BYTES_MAX, ToAcme};
use super::state::CertificateState;
use crate::channel::ChannelEnd;
use crate::parcel::NotReceived;

/// The end.
pub(super) struct KeeperLink {
    end: RefCell<ChannelEnd>,
    watch: AsyncFd<OwnedFd>,
    /// What was sent and is not out yet.
    has_more: Notify,
    last_number: Cell<u64>,
    waiting: RefCell<HashMap<u64, Wait>>,
}

enum Wait {
    Shown(oneshot::Sender<()>),
    Kept(oneshot::Sender<Result<(), String>>),
}

/// How long an answer may take: a server may just be starting again.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);

/// Nobody answers any more: the process is about to end.
const KEEPER_GONE: &str = "the keeper is gone";

impl KeeperLink {
    /// Takes over an end, within a runtime.
    pub(super) fn new(end: ChannelEnd) -> io::Result<KeeperLink> {
        let watch = watch(end.socket().try_clone_to_owned()?)?;
        Ok(KeeperLink {
            end: RefCell::new(end),
            watch,
            has_more: Notify::new(),
            last_number: Cell::new(0),
            waiting: RefCell::default(),
        })
    }

    /// The next plan, while answers go where they are waited for. `None` when the keeper is gone.
    pub(super) async fn next_plan(&self) -> Option<OwnedFd> {
        loop {
            let received = self.end.borrow_mut().receive();
            match received.map(ToAcme::decode) {
                Ok(Ok(ToAcme::Plan(memory))) => return Some(memory),
                Ok(Ok(ToAcme::Shown { number })) => self.hear_shown(number),
                Ok(Ok(ToAcme::Kept { number, error })) => {
                    let wait = self.waiting.borrow_mut().remove(&number);
                    if let Some(Wait::Kept(wait)) = wait {
                        // Who waited may have been given up.
                        let _ = wait.send(error.map_or(Ok(()), Err));
                    }
                }
                Err(NotReceived::Nothing) => match self.watch.readable().await {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => return None,
                },
                Ok(Err(malformed)) | Err(NotReceived::Malformed(malformed)) => {
                    tracing::error!(%malformed, "the keeper's message makes no sense");
                    return None;
                }
                Err(NotReceived::Gone | NotReceived::NoRoom) => return None,
            }
        }
    }

    /// A server answers every proof up to this number.
    fn hear_shown(&self, number: u64) {
        let mut waiting = self.waiting.borrow_mut();
        let is_due =
            |(known, wait): (&u64, &Wait)| *known <= number && matches!(wait, Wait::Shown(_));
        let due: Vec<u64> = waiting
            .iter()
            .filter(|entry| is_due(*entry))
            .map(|(known, _)| *known)
            .collect();
        for number in due {
            if let Some(Wait::Shown(wait)) = waiting.remove(&number) {
                let _ = wait.send(());
            }
        }
    }

    /// Sends what the socket did not take at once, for ever.
    pub(super) async fn keep_flushing(&self) {
        loop {
            self.has_more.notified().await;
            while self.end.borrow().has_waiting() {
                let Ok(mut ready) = self.watch.writable().await else {
                    return pending().await;
                };
                ready.clear_ready();
                // An end that is gone shows when it is read.
                let _ = self.end.borrow_mut().flush();
            }
        }
    }

    pub(super) fn say(&self, said: &FromAcme) {
        let sent = self.end.borrow_mut().send(said.encode());
        if let Err(reason) = sent {
            tracing::warn!(?reason, "a message to the keeper was lost");
        }
        self.has_more.notify_one();
    }

    pub(super) fn report(&self, state: CertificateState) {
        self.say(&FromAcme::State(state));
    }

    /// Has a proof answered by the server; ready when it is.
    pub(super) async fn show(&self, challenge: Challenge) -> Result<(), String> {
        let (sender, receiver) = oneshot::channel();
        let number = self.wait(Wait::Shown(sender));
        self.say(&FromAcme::Show { number, challenge });
        match tokio::time::timeout(ANSWER_TIME_MAX, receiver).await {
            Ok(shown) => shown.map_err(|_| KEEPER_GONE.to_owned()),
            Err(_) => {
                self.waiting.borrow_mut().remove(&number);
                Err("no server of this hob answers for the proof; look at its log".to_owned())
            }
        }
    }

    pub(super) fn hide(&self, challenge: Challenge) {
        self.say(&FromAcme::Hide { challenge });
    }

    pub(super) async fn keep_account(&self, directory: &str, text: &[u8]) -> Result<(), String> {
        let directory = directory.to_owned();
        let text = text.to_vec();
        self.keep(|number| FromAcme::Account {
            number,
            directory,
            text,
        })
        .await
    }

    pub(super) async fn keep_certificate(
        &self,
        directory: &str,
        name: &str,
        chain: &[u8],
        key: &[u8],
    ) -> Result<(), String> {
        if chain.len().max(key.len()) > PEM_BYTES_MAX {
            return Err(format!("the chain for {name} is longer than any"));
        }
        let (directory, name) = (directory.to_owned(), name.to_owned());
        let (chain, key) = (chain.to_vec(), key.to_vec());
        self.keep(|number| FromAcme::Certificate {
            number,
            directory,
            name,
            chain,
            key,
        })
        .await
    }

    async fn keep(&self, said: impl FnOnce(u64) -> FromAcme) -> Result<(), String> {
        let (sender, receiver) = oneshot::channel();
        let number = self.wait(Wait::Kept(sender));
        self.say(&said(number));
        match tokio::time::timeout(ANSWER_TIME_MAX, receiver).await {
            Ok(kept) => kept.map_err(|_| KEEPER_GONE.to_owned())?,
            Err(_) => {
                self.waiting.borrow_mut().remove(&number);
                Err("the first process does not answer; look at its log".to_owned())
            }
        }
    }

    fn wait(&self, wait: Wait) -> u64 {
        let number = self.last_number.get() + 1;
        self.last_number.set(number);
        self.waiting.borrow_mut().insert(number, wait);
        number
    }
}

#[expect(
    deprecated,
    reason = "an owned descriptor keeps what the unsafe constructor wants promised"
)]
fn watch(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(socket)
}

/// A proof that the server answers until this is dropped.
pub(super) struct PublishedChallenge {
    link: Rc<KeeperLink>,
    challenge: Option<Challenge>,
}

impl PublishedChallenge {
    pub(super) fn new(link: &Rc<KeeperLink>, challenge: Challenge) -> PublishedChallenge {
        PublishedChallenge {
            link: Rc::clone(link),
            challenge: Some(challenge),
        }
    }
}

impl Drop for PublishedChallenge {
    fn drop(&mut self) {
        if let Some(challenge) = self.challenge.take() {
            self.link.hide(challenge);
        }
    }
}
