//! The keeper's part in certificates that come from an authority: it has one process make the
//! orders while it holds the store's lock, keeps what that process gets, and has the server answer
//! its proofs and serve its certificates.
//!
//! ```text
//!             lock free                    plan in force gone, stop, upgrade
//!  Waiting ---------------> process runs ------------------------------------> no process
//!     ^  another hob holds it   |  dies: started again after a pause
//! ```
//!
//! The process ends when its channel does, which an upgrade's exec closes too: the new program has
//! its own, and the old one only takes back what it has set.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hob_http::acme::{
    AuthorityFolder, CHALLENGES_MAX, Challenge, Item, OrderLock, Store, certificates_only, check,
    leaf_of,
};
use rustix::process::Pid;

use super::backoff::{Backoff, LONGEST_SPAWNER};
use super::children::{self, Child, ChildRole, ChildState, pid_number};
use super::turn::{Keeper, KeeperPhase};
use crate::acme::CertificateState;
use crate::acme::message::{FromAcme, ToAcme, put_challenge};
use crate::acme::plan::{CertificatePlan, Kept};
use crate::acme::state;
use crate::channel::ToServer;
use crate::memory;
use crate::wire::WireWriter;

/// A process that is not ready after this is killed and started again.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How often the lock is tried while another hob holds it.
const LOCK_AGAIN: Duration = Duration::from_secs(5);
/// How long a process that is not wanted any more may take to end: it has records removed.
const DISMISS_LIMIT: Duration = Duration::from_secs(15);

/// What the keeper knows of orders.
pub(super) struct Orders {
    /// The process that makes them.
    current: Option<Pid>,
    lock: Option<OrderLock>,
    /// The generation whose plan was taken up.
    generation: u64,
    /// When to look again: for the lock, or to start another process.
    look_at: Option<Instant>,
    backoff: Backoff,
    /// Proofs being shown.
    challenges: Vec<Challenge>,
    /// Number of the last one.
    number: u64,
    states: BTreeMap<String, CertificateState>,
    /// Why nothing is ordered.
    trouble: Option<String>,
    /// The authority of the plan that was taken up.
    directory: Option<String>,
}

impl Default for Orders {
    fn default() -> Orders {
        Orders {
            current: None,
            lock: None,
            generation: 0,
            look_at: None,
            backoff: Backoff::new(LONGEST_SPAWNER),
            challenges: Vec::new(),
            number: 0,
            states: BTreeMap::new(),
            trouble: None,
            directory: None,
        }
    }
}

impl Keeper {
    /// Sees to it that one process makes the orders of the settings in force.
    pub(super) fn tend_orders(&mut self, now: Instant) {
        if self.change.is_some() || self.current.is_none() {
            return;
        }
        let is_new = self.orders.generation != self.settings.generation;
        if is_new {
            self.orders.generation = self.settings.generation;
            self.take_up_plan();
        }
        let is_due = self.orders.look_at.is_some_and(|at| at <= now);
        if !is_new && !is_due {
            return;
        }
        self.orders.look_at = None;
        let Some(plan) = self.settings.acme.clone() else {
            return;
        };
        if self.orders.lock.is_none() && !self.lock_store(&plan, now) {
            self.tell_states();
            return;
        }
        match self.orders.current {
            Some(pid) if is_new => self.send_plan(pid, &plan),
            Some(_) => {}
            None => self.start_orders(&plan, now),
        }
    }

    pub(super) fn orders_due(&self) -> Option<Instant> {
        let is_possible = self.phase == KeeperPhase::Running && self.change.is_none();
        self.orders
            .look_at
            .filter(|_| is_possible && self.current.is_some())
    }

    /// Another plan is in force: states of what is not wanted any more go, and so does the process
    /// with the lock when the authority is another.
    fn take_up_plan(&mut self) {
        let plan = self.settings.acme.as_ref();
        let is_wanted = |state: &CertificateState| {
            plan.is_some_and(|plan| plan.wanted.iter().any(|w| w.names == state.names))
        };
        self.orders.states.retain(|_, state| is_wanted(state));
        let directory = plan.map(|plan| plan.authority.directory.clone());
        if directory != self.orders.directory {
            self.dismiss_orders();
            self.orders.lock = None;
            self.orders.trouble = None;
        }
        self.orders.directory = directory;
        self.tell_states();
    }

    /// Tries to become the one who orders.
    fn lock_store(&mut self, plan: &CertificatePlan, now: Instant) -> bool {
        let store = self.store(plan);
        let locked = store.and_then(|store| store.lock().map_err(|error| error.to_string()));
        let trouble = match locked {
            Ok(Some(lock)) => {
                self.orders.lock = Some(lock);
                self.orders.trouble = None;
                self.orders.states.clear();
                return true;
            }
            Ok(None) => {
                let text = "another hob with the same `state` folder gets the certificates; what \
                            it gets is served here too";
                text.to_owned()
            }
            Err(error) => format!("no certificates are asked for: {error}"),
        };
        self.orders.look_at = now.checked_add(LOCK_AGAIN);
        if self.orders.trouble.as_ref() != Some(&trouble) {
            tracing::warn!("{trouble}");
        }
        for (index, wanted) in plan.wanted.iter().enumerate() {
            let chain = self.kept(plan, index);
            let state = CertificateState {
                names: wanted.names.clone(),
                method: wanted.method,
                until_unix_s: chain
                    .and_then(|chain| leaf_of(&chain))
                    .map(|leaf| leaf.not_after_unix_s),
                next_unix_s: None,
                is_ordering: false,
                error: Some(trouble.clone()),
            };
            self.orders.states.insert(wanted.names[0].clone(), state);
        }
        self.orders.trouble = Some(trouble);
        false
    }

    fn store(&self, plan: &CertificatePlan) -> Result<AuthorityFolder, String> {
        let state = self.settings.state.as_ref().map_err(Clone::clone)?;
        Ok(AuthorityFolder::new(state, &plan.authority.directory))
    }

    /// The chain that is kept for a certificate of a plan.
    fn kept(&self, plan: &CertificatePlan, index: usize) -> Option<Vec<u8>> {
        let name = plan.wanted.get(index)?.names.first()?;
        let text = self
            .store(plan)
            .ok()?
            .load(&Item::Certificate(name.clone()))
            .ok()??;
        // One whose key is another's is as good as none.
        hob_http::tls::Certificate::from_pem(&text, &text).ok()?;
        Some(certificates_only(&text))
    }

    fn start_orders(&mut self, plan: &CertificatePlan, now: Instant) {
        let name = self.options.arguments.first().cloned();
        let name = name.unwrap_or_else(|| "hob".into());
        let environment = &self.options.environment;
        match children::start_own(ChildRole::Acme, &name, environment, START_LIMIT) {
            Ok(child) => {
                let pid = child.pid;
                tracing::info!(pid = pid_number(pid), "process for certificates started");
                self.orders.current = Some(pid);
                self.children.add(child);
                self.send_plan(pid, plan);
            }
            Err(error) => {
                tracing::error!(%error, "no process for certificates started");
                let wait = self.orders.backoff.after_death(Duration::ZERO);
                self.orders.look_at = now.checked_add(wait);
            }
        }
    }

    fn send_plan(&mut self, pid: Pid, plan: &CertificatePlan) {
        let store = self.store(plan);
        let account = store.and_then(|store| {
            let account = store.load(&Item::Account);
            account.map_err(|error| error.to_string())
        });
        let kept = Kept {
            account: account.unwrap_or_else(|error| {
                tracing::warn!("the account is not known: {error}");
                None
            }),
            chains: (0..plan.wanted.len())
                .map(|index| self.kept(plan, index))
                .collect(),
        };
        match plan.to_memory(&kept) {
            Ok(memory) => self.order(pid, ToAcme::Plan(memory)),
            Err(error) => tracing::error!(%error, "no plan for certificates was made"),
        }
    }

    fn order(&mut self, pid: Pid, order: ToAcme) {
        if let Some(child) = self.children.find(pid) {
            child.post(order.encode());
        }
    }

    /// Ends the process, if there is one.
    pub(super) fn dismiss_orders(&mut self) {
        let Some(pid) = self.orders.current.take() else {
            return;
        };
        if let Some(child) = self.children.find(pid) {
            // It hears that, and ends.
            child.end = None;
            child.kill_at = Instant::now().checked_add(DISMISS_LIMIT);
        }
        self.forget_challenges();
    }

    pub(super) fn handle_orders_exit(&mut self, child: &Child, reason: &str) {
        if self.orders.current != Some(child.pid) {
            return tracing::debug!(
                pid = pid_number(child.pid),
                "process for certificates ended"
            );
        }
        self.orders.current = None;
        self.forget_challenges();
        if self.phase == KeeperPhase::Stopping {
            return;
        }
        let pid = pid_number(child.pid);
        tracing::error!(pid, reason, "process for certificates ended");
        let wait = self.orders.backoff.after_death(child.started.elapsed());
        self.orders.look_at = Instant::now().checked_add(wait);
    }

    pub(super) fn handle_orders_said(&mut self, pid: Pid, said: FromAcme) {
        if self.orders.current != Some(pid) {
            return;
        }
        match said {
            FromAcme::Ready => {
                if let Some(child) = self.children.find(pid) {
                    child.state = ChildState::Serving;
                    child.kill_at = None;
                }
            }
            FromAcme::Show { number, challenge } => {
                if self.orders.challenges.len() < CHALLENGES_MAX {
                    self.orders.challenges.push(challenge);
                }
                self.orders.number = number;
                self.tell_challenges();
            }
            FromAcme::Hide { challenge } => {
                let known = &mut self.orders.challenges;
                if let Some(at) = known.iter().position(|known| *known == challenge) {
                    known.remove(at);
                    self.tell_challenges();
                }
            }
            FromAcme::Account {
                number,
                directory,
                text,
            } => {
                let error = self.keep(&directory, &Item::Account, &text).err();
                self.order(pid, ToAcme::Kept { number, error });
            }
            FromAcme::Certificate {
                number,
                directory,
                name,
                chain,
                key,
            } => {
                let error = self.take_certificate(&directory, name, &chain, &key).err();
                self.order(pid, ToAcme::Kept { number, error });
            }
            FromAcme::State(state) => self.take_state(state),
        }
    }

    fn keep(&self, directory: &str, item: &Item, bytes: &[u8]) -> Result<(), String> {
        let plan = self.settings.acme.as_ref();
        let plan = plan.filter(|plan| plan.authority.directory == directory);
        let plan = plan.ok_or("the config has another authority now")?;
        self.store(plan)?
            .save(item, bytes)
            .map_err(|error| error.to_string())
    }

    /// Keeps a certificate and serves it, if it is one to be served.
    fn take_certificate(
        &mut self,
        directory: &str,
        name: String,
        chain: &[u8],
        key: &[u8],
    ) -> Result<(), String> {
        let plan = self.settings.acme.as_ref();
        let wanted = plan.and_then(|plan| {
            let mut all = plan.wanted.iter();
            all.find(|wanted| wanted.names.first() == Some(&name))
        });
        let wanted = wanted.ok_or("the config does not want it any more")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = i64::try_from(now.unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
        check(chain, key, &wanted.names, now).map_err(|unfit| unfit.to_string())?;
        let both = [chain, b"\n", key].concat();
        self.keep(directory, &Item::Certificate(name.clone()), &both)?;
        tracing::info!(name, "a new certificate is kept");
        if let Err(text) = self.read_keys_again() {
            // It is tried again every few seconds.
            tracing::error!("the new certificate is not served yet: {text}");
        }
        Ok(())
    }

    fn take_state(&mut self, state: CertificateState) {
        let plan = self.settings.acme.as_ref();
        let is_wanted = plan.is_some_and(|plan| {
            let mut all = plan.wanted.iter();
            all.any(|wanted| wanted.names == state.names)
        });
        if is_wanted && let Some(name) = state.names.first().cloned() {
            self.orders.states.insert(name, state);
            self.tell_states();
        }
    }

    /// The server answers proofs up to this number.
    pub(super) fn handle_challenged(&mut self, pid: Pid, number: u64) {
        if self.current == Some(pid)
            && let Some(orders) = self.orders.current
        {
            self.order(orders, ToAcme::Shown { number });
        }
    }

    fn forget_challenges(&mut self) {
        if !self.orders.challenges.is_empty() {
            self.orders.challenges.clear();
            self.tell_challenges();
        }
    }

    /// Tells every server what to answer.
    fn tell_challenges(&mut self) {
        let servers: Vec<Pid> = self
            .children
            .iter()
            .filter(|child| child.role == ChildRole::Server)
            .map(|child| child.pid)
            .collect();
        for pid in servers {
            self.tell_challenges_to(pid);
        }
    }

    /// The proofs that are shown, for a server that starts; none most of the time.
    pub(super) fn challenges_shown(&self) -> io::Result<Option<OwnedFd>> {
        match self.orders.challenges.is_empty() {
            true => Ok(None),
            false => self.challenges_in_memory().map(Some),
        }
    }

    fn challenges_in_memory(&self) -> io::Result<OwnedFd> {
        let mut writer = WireWriter::default();
        writer.count(self.orders.challenges.len());
        for challenge in &self.orders.challenges {
            put_challenge(&mut writer, challenge);
        }
        memory::sealed("hob-challenges", &writer.finish())
    }

    fn tell_challenges_to(&mut self, pid: Pid) {
        let number = self.orders.number;
        match self.challenges_in_memory() {
            Ok(memory) => {
                if let Some(child) = self.children.find(pid) {
                    child.send(ToServer::Challenges { number, memory });
                }
            }
            Err(error) => tracing::error!(%error, "a server does not hear of challenges"),
        }
    }

    /// Tells the server how it stands with certificates.
    fn tell_states(&mut self) {
        let states = self.orders.states.values();
        match state::to_memory(states) {
            Ok(memory) => {
                if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
                    child.send(ToServer::Certificates { memory });
                }
            }
            Err(error) => tracing::error!(%error, "`hob status` does not hear of certificates"),
        }
    }

    /// A new server hears what the others know; that it answers for proofs it has to say itself.
    pub(super) fn tell_orders(&mut self, server: Pid) {
        if !self.orders.challenges.is_empty() {
            self.tell_challenges_to(server);
        }
        if !self.orders.states.is_empty() {
            self.tell_states();
        }
    }
}
