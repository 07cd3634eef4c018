//! The keeper's loop: signals, messages, exits, time; then wait for the next of them.

use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use hob_http::h3::ResetSecret;
use hob_http::listen::nameless::NamelessSocket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketFlags;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open,
    set_child_subreaper, set_dumpable_behavior, setrlimit,
};

use super::PreflightScope;
use super::acme::Orders;
use super::backoff::{Backoff, LONGEST_SERVER};
use super::change::KeeperChange;
use super::children::{self, Child, ChildRole, Children, pid_number};
use super::control::{self, KeptControl};
use super::key_watch::KeyWatch;
use super::listeners::{KeptListener, announcement};
use super::logs::Rotations;
use super::settings::OpenedConfig;
use super::spawners::Spawners;
use super::{KeeperFailure, KeeperOptions, handover, seat};
use crate::channel::{ChannelEnd, Resets, ToServer, VisitSockets};
use crate::localhost;
use crate::notify::Notify;
use crate::papers::KeeperFacts;
use crate::secret;
use crate::servers::{Origin, ServerRegistration};
use crate::signals::{self, RegisteredSignals};
use hob_config::Purpose;

/// A server that is not ready after this is killed and started again.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Where the keeper is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeeperPhase {
    Starting,
    Running,
    Stopping,
}

/// The first process.
pub(super) struct Keeper {
    /// How it was started: an upgrade and a reload begin with these.
    pub(super) options: KeeperOptions,
    /// Signals as bytes of a pipe, taken in the order they came.
    pub(super) signals: RegisteredSignals,
    /// Tells systemd how it stands.
    pub(super) notify: Notify,
    /// The config in force with what was opened for it: listeners, logs, certificates.
    pub(super) settings: OpenedConfig,
    /// Where this server tells of itself.
    pub(super) seat: Option<ServerRegistration>,
    /// The control socket, which servers accept from.
    pub(super) control: Option<Rc<KeptControl>>,
    /// Said at the start and again by `hob status`.
    pub(super) control_warning: Option<String>,
    /// Every process it has started: servers, spawners, the acme process.
    pub(super) children: Children,
    /// The server that serves, or will.
    pub(super) current: Option<Pid>,
    /// Starting, running, stopping: what a death or a signal means hangs on it.
    pub(super) phase: KeeperPhase,
    /// The one change under way.
    pub(super) change: Option<KeeperChange>,
    /// Changes that signals asked for while another was under way.
    pub(super) is_reload_wanted: bool,
    /// Likewise by SIGUSR2.
    pub(super) is_upgrade_wanted: bool,
    /// Which spawner is in use, and what ended ones have left.
    pub(super) spawners: Spawners,
    /// How long to wait before the next server, after deaths in a row.
    pub(super) backoff: Backoff,
    /// When the next server is started, while one is due.
    pub(super) restart_at: Option<Instant>,
    /// Logs that were rotated, and old ones that are to be compressed or removed.
    pub(super) rotations: Rotations,
    /// Looks whether files of certificates have changed.
    pub(super) key_watch: KeyWatch,
    /// What the acme process was asked for, and what it has brought.
    pub(super) orders: Orders,
    /// When the first process of this server started; an upgrade hands it on.
    pub(super) started: SystemTime,
    /// Servers so far: records name theirs by this number.
    pub(super) servers_started: u64,
    /// What servers end connections over QUIC with that one before them had.
    pub(super) reset_secret: ResetSecret,
    /// For one login to the admin pages; none once it was printed.
    pub(super) admin_token: Option<String>,
    /// How it ends, once that is decided.
    pub(super) finished: Option<Result<(), KeeperFailure>>,
}

/// Runs the first process until it is stopped.
///
/// # Errors
/// When it cannot start, or its first server does not; `KeeperFailure::exit_code` says which.
pub fn run(options: KeeperOptions) -> Result<(), KeeperFailure> {
    let signals =
        RegisteredSignals::register(signals::OF_KEEPER).map_err(system("handle signals"))?;
    adopt_orphans();
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(system("hide memory"))?;
    raise_descriptor_limit();
    let mut keeper = match options.is_resumed {
        true => handover::take_over(options, signals)?,
        false => begin(options, signals)?,
    };
    keeper.turn_until_finished()
}

fn begin(options: KeeperOptions, signals: RegisteredSignals) -> Result<Keeper, KeeperFailure> {
    let sources =
        (options.sources)().map_err(|errors| KeeperFailure::Config(errors.to_string()))?;
    // Before listeners are opened: who runs already has their addresses.
    let (seat, unseated) = seat::take(&options)?;
    let settings = OpenedConfig::build(sources, 1, &[], &options, PreflightScope::Machine)
        .inspect_err(|_| {
            seat.iter().for_each(ServerRegistration::leave);
        })?;
    let own = seat.as_ref().map(ServerRegistration::socket);
    let opened = control::open(&options.control, &settings.config, own);
    let (control, control_warning) = opened.inspect_err(|_| {
        super::listeners::give_up_new(&settings.listeners, &[]);
    })?;
    let control_warning = control_warning.or(unseated);
    for warning in settings.warnings.iter().chain(&control_warning) {
        tracing::warn!("{warning}");
    }
    let mut keeper = Keeper {
        notify: Notify::to(options.notify.as_ref()),
        options,
        signals,
        settings,
        seat,
        control,
        control_warning,
        children: Children::default(),
        current: None,
        phase: KeeperPhase::Starting,
        change: None,
        is_reload_wanted: false,
        is_upgrade_wanted: false,
        spawners: Spawners::default(),
        backoff: Backoff::new(LONGEST_SERVER),
        restart_at: None,
        rotations: Rotations::default(),
        key_watch: KeyWatch::default(),
        orders: Orders::default(),
        started: SystemTime::now(),
        servers_started: 0,
        reset_secret: ResetSecret::new(),
        admin_token: secret::new(),
        finished: None,
    };
    if let Err(failure) = keeper.start_server(START_LIMIT) {
        keeper.remove_files();
        return Err(failure);
    }
    Ok(keeper)
}

impl Keeper {
    pub(super) fn turn_until_finished(&mut self) -> Result<(), KeeperFailure> {
        loop {
            for signal in self.signals.take() {
                self.handle_signal(signal);
            }
            for pid in self.children.pids() {
                self.handle_messages(pid);
            }
            for (pid, status) in children::reap() {
                // Last words may have come after the messages above were taken.
                self.handle_messages(pid);
                self.handle_exit(pid, status);
            }
            self.handle_time(Instant::now());
            if let Some(result) = self.finished.take() {
                self.remove_files();
                return result;
            }
            self.wait();
        }
    }

    fn handle_time(&mut self, now: Instant) {
        for child in self.children.iter_mut() {
            if child.kill_at.is_some_and(|at| at <= now) {
                let (pid, role) = (pid_number(child.pid), child.role.name());
                tracing::warn!(pid, role, state = ?child.state, "out of time; killing");
                child.kill();
            }
        }
        self.answer_late_reload(now);
        self.tend_spawners(now);
        if self.phase != KeeperPhase::Running {
            return;
        }
        self.compress_logs(now);
        self.look_at_keys(now);
        self.tend_orders(now);
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            if let Err(failure) = self.start_server(START_LIMIT) {
                tracing::error!(%failure, "no server started");
                self.restart_at = now.checked_add(self.backoff.after_death(Duration::ZERO));
            }
        }
        if self.change.is_none() && std::mem::take(&mut self.is_reload_wanted) {
            self.reload(None);
        }
        if self.change.is_none() && std::mem::take(&mut self.is_upgrade_wanted) {
            self.upgrade(None);
        }
    }

    /// Sleeps until a signal, a message, or the next thing that is due.
    fn wait(&mut self) {
        let mut polled = vec![PollFd::from_borrowed_fd(
            self.signals.as_fd(),
            PollFlags::IN,
        )];
        for end in self.children.iter().filter_map(|child| child.end.as_ref()) {
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, end.has_waiting() && !end.is_over_quota());
            polled.push(PollFd::from_borrowed_fd(end.socket(), events));
        }
        let timeout = self.next_due().map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            // Up, so that what is due is due when we wake.
            Timespec::try_from(left + Duration::from_millis(1)).unwrap_or(Timespec {
                tv_sec: 3600,
                tv_nsec: 0,
            })
        });
        // Interrupted or not, the next turn looks at everything.
        let _ = poll(&mut polled, timeout.as_ref());
    }

    fn next_due(&self) -> Option<Instant> {
        let kills = self.children.iter().filter_map(|child| child.kill_at);
        kills
            .chain(self.restart_at)
            .chain(self.late_reload_due())
            .chain(self.compression_due())
            .chain(self.keys_due())
            .chain(self.orders_due())
            .chain(self.spawners_due())
            .chain(self.quota_due())
            .min()
    }

    /// When it is tried again to send what other processes of the user stand in the way of.
    fn quota_due(&self) -> Option<Instant> {
        const LOOK: Duration = Duration::from_millis(20);
        let mut ends = self.children.iter().filter_map(|child| child.end.as_ref());
        let waits = ends.any(ChannelEnd::is_over_quota);
        waits.then(|| Instant::now() + LOOK)
    }

    /// Starts a server on the present settings; it becomes the current one.
    pub(super) fn start_server(&mut self, limit: Duration) -> Result<(), KeeperFailure> {
        self.servers_started += 1;
        let name = self
            .options
            .arguments
            .first()
            .cloned()
            .unwrap_or_else(|| "hob".into());
        let outfit = self
            .outfit(&self.settings)
            .map_err(system("prepare the server"))?;
        self.spread_policy();
        let environment = &self.options.environment;
        let mut child = children::start_own(ChildRole::Server, &name, environment, limit)
            .map_err(system("start the server"))?;
        child.number = Some(self.servers_started);
        let resets = Resets {
            secret: self.reset_secret.clone(),
            living: self.children.servers(),
        };
        let visits = self.visit_sockets(&mut child);
        child.send(ToServer::Start(outfit, resets, visits));
        tracing::info!(pid = pid_number(child.pid), "server started");
        let pid = child.pid;
        self.current = Some(pid);
        self.children.add(child);
        self.link_servers();
        self.tell_orders(pid);
        Ok(())
    }

    /// Where a new server is asked for the visits it will have, and where it asks for those that
    /// the one before has.
    fn visit_sockets(&mut self, child: &mut Child) -> VisitSockets {
        let before = self.current.and_then(|pid| self.children.find(pid));
        let before = before.and_then(|before| {
            let process = pidfd_open(before.pid, PidfdFlags::empty()).ok()?;
            Some((before.visits.as_ref()?.try_clone().ok()?, process))
        });
        let own = match NamelessSocket::open_for_others(SocketFlags::NONBLOCK) {
            Ok(NamelessSocket { listener, file }) => {
                child.visits = Some(file);
                Some(listener)
            }
            Err(error) => {
                tracing::warn!(%error, "visits will end with an upgrade: no socket for them");
                None
            }
        };
        VisitSockets { own, before }
    }

    pub(super) fn outfit(
        &self,
        settings: &OpenedConfig,
    ) -> std::io::Result<crate::channel::Outfit> {
        let mut warnings = settings.warnings.clone();
        warnings.extend(self.control_warning.clone());
        let facts = KeeperFacts {
            keeper_pid: std::process::id(),
            keeper_uid: rustix::process::geteuid().as_raw(),
            started: self.started,
            servers_started: self.servers_started,
            addresses: settings
                .listeners
                .iter()
                .map(|listener| listener.shown.clone())
                .collect(),
            warnings,
            admin_token: self.admin_token.clone(),
            config: match &self.options.origin {
                config @ Origin::Config(_) => Some(config.real_path()),
                Origin::Folder(_) => None,
            },
        };
        let control = self.control.as_ref().map(|control| &control.socket);
        let mut outfit = settings.outfit(facts, control)?;
        outfit.challenges = self.challenges_shown()?;
        Ok(outfit)
    }

    /// Removes what only a running hob should leave in the file system.
    fn remove_files(&self) {
        super::listeners::give_up_new(&self.settings.listeners, &[]);
        self.control.iter().for_each(|control| control.remove());
        self.seat.iter().for_each(ServerRegistration::leave);
    }
}

/// Prints the address of every listener that was not there before; the token is for one login to
/// the admin pages.
pub(super) fn announce(
    settings: &OpenedConfig,
    before: &[Rc<KeptListener>],
    admin_token: Option<&str>,
) {
    let mut out = std::io::stdout().lock();
    for (listener, config) in settings.listeners.iter().zip(&settings.config.listeners) {
        if !before.iter().any(|known| known.shown == listener.shown) {
            let line = match (&settings.config.admin, config.purpose) {
                (Some(_), Purpose::Admin) if localhost::is_second(config) => continue,
                (Some(admin), Purpose::Admin) => {
                    let url = admin.url(&listener.shown, config.tls.is_some(), admin_token);
                    format!("admin pages on {url}")
                }
                _ => announcement(listener, config),
            };
            // Nobody may be reading; serving goes on.
            let _ = writeln!(out, "{line}");
        }
    }
    let _ = out.flush();
}

pub(super) fn system<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> KeeperFailure {
    move |error| KeeperFailure::System(format!("cannot {what}: {error}"))
}

/// Processes whose parent has ended come to us, and to each spawner those of its programs. Only
/// qemu-user and filters of system calls refuse that; all the rest works without.
fn adopt_orphans() {
    if let Err(error) = set_child_subreaper(Pid::from_raw(1)) {
        tracing::warn!(
            %error,
            "this system lets hob adopt no orphans: what programs leave behind is not reaped, and \
             may go on when they have ended"
        );
    }
}

/// Every connection is a descriptor; the hard limit is what the administrator allows.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
