//! What crosses the exec of an upgrade: one parcel, waiting in a socket pair whose other end is
//! the new program's standard input.
//!
//! Descriptors travel inside the packets, so none is ever open across the exec under a bare
//! number, and when the exec fails the copies vanish with the pair. The body, in sealed memory:
//!
//! ```text
//! generation, old sources, new sources, started (ms), servers started
//! listeners:  address, shown, file, number of sockets for HTTP/3
//! inherited:  name
//! control:    file, warning
//! seat:       path
//! children:   role, pid, state, is current, kill after (ms), a server's spawner
//! ask:        pid, request
//! logs:       paths that wait to be compressed
//! ```
//!
//! Beside it, in memory of its own, what a program may leave out and one that does not know it
//! passes over:
//!
//! ```text
//! resets:     secret; pid and number of each server
//! ```
//!
//! and as descriptors, where each server is asked for its visits.
//!
//! Before the exec the new program is run with the same arguments and `--handover-check=VERSION`:
//! it says whether it understands the arguments, this version, and the sources.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hob_http::h3::ResetSecret;
use hob_http::listen::BoundFile;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::Pid;

use super::PreflightScope;
use super::acme::Orders;
use super::backoff::{Backoff, LONGEST_SERVER};
use super::change::{ControlRequest, KeeperChange};
use super::children::{self, Child, ChildRole, ChildState, Children, pid_number};
use super::control::{self, KeptControl, Opened};
use super::key_watch::KeyWatch;
use super::listeners::{KeptListener, give_up_new};
use super::logs::Rotations;
use super::settings::{OpenedConfig, extent};
use super::spawners::Spawners;
use super::turn::{Keeper, KeeperPhase, system};
use super::upgrade::{READY_LIMIT, Replacing};
use super::{KeeperFailure, KeeperOptions, OwnConfig};
use crate::channel::ChannelEnd;
use crate::notify::Notify;
use crate::parcel::{self, DESCRIPTORS_MAX, DescriptorSlot, Inbox, Outbox, Parcel};
use crate::process::policy::Policy;
use crate::servers::ServerRegistration;
use crate::signals::RegisteredSignals;
use crate::wire::{MalformedPart, WireReader, WireWriter};
use crate::{exec, memory, privileges};
use hob_config::{ConfigSources, ListenAddress};

/// Version of the handover; a program takes over only from one with the same.
pub const VERSION: u32 = 5;

const KIND: u8 = 64;
const SLOT_BODY: u8 = 0;
const SLOT_LISTENER: u8 = 1;
const SLOT_INHERITED: u8 = 2;
const SLOT_CONTROL: u8 = 3;
const SLOT_SERVER: u8 = 4;
const SLOT_DATAGRAM: u8 = 5;
const SLOT_RESETS: u8 = 6;
const SLOT_SEAT: u8 = 7;
/// From here on programs may leave out what others do not know.
const SLOT_VISITS: u8 = 8;
const LIST_LEN_MAX: usize = DESCRIPTORS_MAX;
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// The whole parcel waits in the socket; the kernel clamps this to net.core.wmem_max.
const SEND_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// How long descriptors that other processes have under way may hold up a handover.
const QUOTA_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is tried again meanwhile.
const QUOTA_LOOK: Duration = Duration::from_millis(5);

/// Goes over to the new program. Returns only when that did not work, with the reason.
pub(super) fn hand_over(
    keeper: &mut Keeper,
    sources: &ConfigSources,
    ask: Option<ControlRequest>,
) -> String {
    for child in keeper.children.iter_mut() {
        if let Some(end) = &mut child.end {
            let _ = end.flush();
            if end.has_waiting() {
                return "a server does not take its messages".to_owned();
            }
        }
    }
    let waiting = match post(keeper, sources, ask) {
        Ok(waiting) => waiting,
        Err(error) => return format!("cannot prepare the handover: {error}"),
    };
    let same = children::without_resume(&keeper.options.arguments).cloned();
    let arguments: Vec<_> = same.chain(["--resume".into()]).collect();
    let environment = children::without_keepers(&keeper.options.environment, &["NOTIFY_SOCKET"]);
    let program = &keeper.options.program;
    tracing::info!(program = %program.display(), "going over to the new program");
    let error = exec::replace_program(program, &arguments, &environment, &waiting);
    format!("cannot execute {}: {error}", program.display())
}

/// Puts the parcel into a pair; the receiving end comes back.
fn post(
    keeper: &Keeper,
    sources: &ConfigSources,
    ask: Option<ControlRequest>,
) -> std::io::Result<OwnedFd> {
    let (ours, theirs) = parcel::pair()?;
    set_socket_send_buffer_size(&ours, SEND_BUFFER_BYTES)?;
    let body = memory::sealed("hob-handover", &encode(keeper, sources, ask))?;
    let mut descriptors = vec![(
        DescriptorSlot {
            kind: SLOT_BODY,
            index: 0,
        },
        body,
    )];
    let mut add = |kind: u8, index: usize, descriptor: OwnedFd| {
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        descriptors.push((DescriptorSlot { kind, index }, descriptor));
    };
    // In the order in which they are taken out again: each listener, then what it has for HTTP/3.
    let mut datagram_count = 0;
    for (index, listener) in keeper.settings.listeners.iter().enumerate() {
        add(SLOT_LISTENER, index, listener.socket.try_clone()?);
        for socket in &listener.datagrams {
            add(SLOT_DATAGRAM, datagram_count, socket.try_clone()?);
            datagram_count += 1;
        }
    }
    for (index, (_, socket)) in keeper.options.inherited.iter().enumerate() {
        add(SLOT_INHERITED, index, socket.try_clone()?);
    }
    if let Some(control) = &keeper.control {
        add(SLOT_CONTROL, 0, control.socket.try_clone()?);
    }
    if let Some(seat) = &keeper.seat {
        add(SLOT_SEAT, 0, seat.file.try_clone()?);
    }
    for (index, child) in kept_children(keeper).enumerate() {
        if let Some(end) = &child.end {
            add(SLOT_SERVER, index, end.socket().try_clone_to_owned()?);
        }
    }
    let resets = memory::sealed("hob-resets", &encode_resets(keeper))?;
    add(SLOT_RESETS, 0, resets);
    for (index, child) in kept_children(keeper).enumerate() {
        if let Some(file) = &child.visits {
            add(SLOT_VISITS, index, file.try_clone()?);
        }
    }
    let mut outbox = Outbox::default();
    let parcel = Parcel {
        kind: KIND,
        body: vec![],
        descriptors,
    };
    let mut sent = outbox.send(ours.as_fd(), parcel);
    let until = Instant::now() + QUOTA_PATIENCE;
    while outbox.is_over_quota() && Instant::now() < until {
        thread::sleep(QUOTA_LOOK);
        sent = outbox.flush(ours.as_fd());
    }
    if outbox.is_over_quota() {
        return Err(std::io::Error::other(
            "other processes of this user have as many descriptors under way as this one may have \
             open; try again, or raise LimitNOFILE= (`ulimit -Hn`)",
        ));
    }
    if sent.is_err() || !outbox.is_empty() {
        return Err(std::io::Error::other(
            "too many sockets; raise net.core.wmem_max",
        ));
    }
    Ok(theirs)
}

/// Those that go on over an upgrade.
fn kept_children(keeper: &Keeper) -> impl Iterator<Item = &Child> {
    let is_kept = |child: &&Child| matches!(child.role, ChildRole::Server | ChildRole::Spawner);
    keeper.children.iter().filter(is_kept)
}

fn encode(keeper: &Keeper, sources: &ConfigSources, ask: Option<ControlRequest>) -> Vec<u8> {
    let mut writer = WireWriter::default();
    writer.u32(VERSION).u64(keeper.settings.generation);
    writer
        .block(&keeper.settings.sources.encode())
        .block(&sources.encode());
    let started = keeper
        .started
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    writer
        .u64(u64::try_from(started.as_millis()).unwrap_or(u64::MAX))
        .u64(keeper.servers_started);
    writer.count(keeper.settings.listeners.len());
    for listener in &keeper.settings.listeners {
        match &listener.address {
            ListenAddress::Tcp(address) => writer.u8(0).text(&address.to_string()),
            ListenAddress::Unix(path) => writer.u8(1).path(path),
            ListenAddress::Inherited(name) => writer.u8(2).text(name),
        };
        writer.text(&listener.shown);
        encode_file(&mut writer, listener.file.as_ref());
        writer.count(listener.datagrams.len());
    }
    writer.count(keeper.options.inherited.len());
    for (name, _) in &keeper.options.inherited {
        writer.text(name);
    }
    encode_file(
        &mut writer,
        keeper.control.as_ref().map(|control| &control.file),
    );
    writer.text(keeper.control_warning.as_deref().unwrap_or_default());
    match &keeper.seat {
        None => writer.u8(0),
        Some(seat) => writer.u8(1).path(&seat.path),
    };
    writer.count(kept_children(keeper).count());
    let now = Instant::now();
    for child in kept_children(keeper) {
        let left = child
            .kill_at
            .map(|at| at.saturating_duration_since(now).as_millis());
        let left = left.map_or(u64::MAX, |left| u64::try_from(left).unwrap_or(u64::MAX));
        let is_current = [keeper.current, keeper.spawners.current].contains(&Some(child.pid));
        writer
            .u8((child.role == ChildRole::Spawner).into())
            .u32(pid_number(child.pid) as u32)
            .u8(child.state as u8)
            .u8(is_current.into());
        writer.u64(left).u8(child.end.is_some().into());
        writer.u32(
            child
                .spawner
                .map_or(0, |spawner| pid_number(spawner) as u32),
        );
    }
    match ask {
        None => writer.u8(0),
        Some(ask) => writer
            .u8(1)
            .u32(pid_number(ask.pid) as u32)
            .u64(ask.request),
    };
    writer.count(keeper.rotations.waiting().len());
    for path in keeper.rotations.waiting() {
        writer.path(path);
    }
    writer.finish()
}

fn encode_resets(keeper: &Keeper) -> Vec<u8> {
    let numbered = |child: &Child| Some((pid_number(child.pid), child.number?));
    let numbers: Vec<_> = keeper.children.iter().filter_map(numbered).collect();
    let mut writer = WireWriter::default();
    writer.block(keeper.reset_secret.bytes());
    writer.count(numbers.len());
    for (pid, number) in numbers {
        writer.u32(pid as u32).u64(number);
    }
    writer.finish()
}

/// The secret goes on, and servers get their numbers back.
fn take_resets(
    memory: Option<OwnedFd>,
    children: &mut [(Child, bool)],
) -> std::io::Result<ResetSecret> {
    let Some(memory) = memory else {
        return Ok(ResetSecret::new());
    };
    let bytes = memory::read(memory.as_fd())?;
    let mut reader = WireReader::new(&bytes, "resets in the handover");
    let mut decode = || {
        let secret = ResetSecret::from_bytes(reader.block(ResetSecret::BYTES)?);
        let secret = secret.ok_or(reader.malformed())?;
        for _ in 0..reader.count(LIST_LEN_MAX)? {
            let (pid, number) = (decode_pid(&mut reader)?, reader.u64()?);
            let mut children = children.iter_mut().map(|(child, _)| child);
            if let Some(child) = children.find(|child| child.pid == pid) {
                child.number = Some(number);
            }
        }
        Ok(secret)
    };
    decode().map_err(|error: MalformedPart| std::io::Error::other(error))
}

fn encode_file(writer: &mut WireWriter, file: Option<&BoundFile>) {
    match file {
        None => writer.u8(0),
        Some(file) => writer
            .u8(1)
            .path(&file.path)
            .u64(file.device)
            .u64(file.inode),
    };
}

/// What was handed over, before anything is made of it.
struct Handed {
    generation: u64,
    old_sources: ConfigSources,
    new_sources: ConfigSources,
    started: SystemTime,
    servers_started: u64,
    listeners: Vec<Rc<KeptListener>>,
    inherited: Vec<(String, OwnedFd)>,
    control: Option<Rc<KeptControl>>,
    control_warning: Option<String>,
    seat: Option<ServerRegistration>,
    children: Vec<(Child, bool)>,
    reset_secret: ResetSecret,
    ask: Option<ControlRequest>,
    logs_to_compress: Vec<PathBuf>,
}

/// The new program's side: takes what waits on standard input, and starts the new server.
pub(super) fn take_over(
    mut options: KeeperOptions,
    signals: RegisteredSignals,
) -> Result<Keeper, KeeperFailure> {
    let parcel = receive().map_err(system("take over"))?;
    let mut handed = decode(parcel).map_err(system("take over"))?;
    options.inherited = std::mem::take(&mut handed.inherited);
    let (generation, kept) = (handed.generation, &handed.listeners);
    let (settings, (control, control_warning), refusal) = match build_new(&handed, &options) {
        Ok((settings, control)) => (settings, control, None),
        Err(failure) => {
            let old = handed.old_sources.clone();
            let settings =
                OpenedConfig::build(old, generation, kept, &options, PreflightScope::Disk)?;
            let control = (handed.control.clone(), handed.control_warning.clone());
            (settings, control, Some(failure))
        }
    };
    let mut children = Children::default();
    let mut current = None;
    let mut old_spawner = None;
    for (child, is_current) in handed.children {
        match child.role {
            ChildRole::Spawner if is_current => old_spawner = Some(child.pid),
            ChildRole::Server if is_current => current = Some(child.pid),
            _ => {}
        }
        children.add(child);
    }
    let mut keeper = Keeper {
        notify: Notify::to(options.notify.as_ref()),
        options,
        signals,
        settings,
        seat: handed.seat,
        control,
        control_warning,
        children,
        current,
        phase: KeeperPhase::Running,
        change: None,
        is_reload_wanted: false,
        is_upgrade_wanted: false,
        spawners: Spawners::default(),
        backoff: Backoff::new(LONGEST_SERVER),
        restart_at: None,
        rotations: Rotations::resumed(handed.logs_to_compress, Instant::now()),
        key_watch: KeyWatch::default(),
        orders: Orders::default(),
        started: handed.started,
        servers_started: handed.servers_started,
        reset_secret: handed.reset_secret,
        admin_token: None,
        finished: None,
    };
    for warning in &keeper.settings.warnings {
        tracing::warn!("{warning}");
    }
    let replacing = Replacing {
        old: current,
        old_spawner,
        ask: handed.ask,
        old_sources: handed.old_sources,
        old_generation: generation,
        old_listeners: handed.listeners,
        old_control: handed.control,
    };
    keeper.begin_replacing(replacing, refusal);
    Ok(keeper)
}

/// The new config and its control socket: that of before where the place is the same.
fn build_new(
    handed: &Handed,
    options: &KeeperOptions,
) -> Result<(OpenedConfig, Opened), KeeperFailure> {
    let (sources, kept) = (handed.new_sources.clone(), &handed.listeners);
    let settings = OpenedConfig::build(
        sources,
        handed.generation + 1,
        kept,
        options,
        PreflightScope::Machine,
    )?;
    let own = handed.seat.as_ref().map(ServerRegistration::socket);
    let place = control::place(&options.control, &settings.config, own.clone());
    let kept_place = handed.control.as_ref().map(|control| &control.file.path);
    let control = match place.as_ref() == kept_place {
        true => (handed.control.clone(), handed.control_warning.clone()),
        false => control::open(&options.control, &settings.config, own)
            .inspect_err(|_| give_up_new(&settings.listeners, kept))?,
    };
    Ok((settings, control))
}

impl Keeper {
    fn begin_replacing(&mut self, replacing: Replacing, refusal: Option<KeeperFailure>) {
        self.remember_old_policy(&replacing);
        let refusal = refusal.or_else(|| self.start_server(READY_LIMIT).err());
        self.change = Some(KeeperChange::Replace(Box::new(replacing)));
        if let Some(failure) = refusal {
            let is_served = self.fall_back(&failure.to_string(), "before it started");
            self.restart_at = (!is_served).then(Instant::now);
        }
    }
}

impl Keeper {
    /// For a spawner that dies while the old server still drains.
    fn remember_old_policy(&mut self, replacing: &Replacing) {
        let loaded = (self.options.load)(
            &replacing.old_sources,
            PreflightScope::Nothing,
            &extent(&self.options),
        );
        let Ok((OwnConfig { config, .. }, _)) = loaded else {
            return;
        };
        let (user, group) = (config.user.as_deref(), config.group.as_deref());
        let identity = privileges::identity_for(user, group).ok().flatten();
        let policy = Policy::of(
            &config.programs,
            replacing.old_generation,
            identity.as_ref(),
        );
        if let Ok((policy, _)) = policy {
            self.remember(&policy);
        }
    }
}

fn receive() -> std::io::Result<Parcel> {
    let socket = exec::take_stdin()?;
    Inbox::new(DESCRIPTORS_MAX)
        .receive(socket.as_fd())
        .map_err(|reason| {
            std::io::Error::other(format!("no handover on standard input: {reason:?}"))
        })
}

fn decode(parcel: Parcel) -> std::io::Result<Handed> {
    let mut slots = parcel.descriptors.into_iter().peekable();
    let mut take = |kind: u8, index: usize| {
        let is_it = |(slot, _): &(DescriptorSlot, OwnedFd)| {
            slot.kind == kind && usize::from(slot.index) == index
        };
        slots.next_if(is_it).map(|(_, descriptor)| descriptor)
    };
    let body = take(SLOT_BODY, 0).ok_or_else(|| std::io::Error::other("no body"))?;
    let bytes = memory::read(body.as_fd())?;
    let result = decode_body(&bytes, &mut take);
    let mut handed = result.map_err(std::io::Error::other)?;
    handed.reset_secret = take_resets(take(SLOT_RESETS, 0), &mut handed.children)?;
    for (index, (child, _)) in handed.children.iter_mut().enumerate() {
        child.visits = take(SLOT_VISITS, index);
    }
    Ok(handed)
}

fn decode_body(
    bytes: &[u8],
    take: &mut dyn FnMut(u8, usize) -> Option<OwnedFd>,
) -> Result<Handed, MalformedPart> {
    let mut reader = WireReader::new(bytes, "handover");
    if reader.u32()? != VERSION {
        return Err(MalformedPart("version of the handover"));
    }
    let generation = reader.u64()?;
    let old_sources = decode_sources(&mut reader)?;
    let new_sources = decode_sources(&mut reader)?;
    let started = UNIX_EPOCH + Duration::from_millis(reader.u64()?.min(u64::from(u32::MAX) * 1000));
    let servers_started = reader.u64()?;
    let mut listeners = Vec::new();
    let mut datagram_count = 0;
    for index in 0..reader.count(LIST_LEN_MAX)? {
        let mut listener = decode_listener(&mut reader, take(SLOT_LISTENER, index))?;
        for _ in 0..reader.count(LIST_LEN_MAX)? {
            let socket = take(SLOT_DATAGRAM, datagram_count).ok_or(reader.malformed())?;
            listener.datagrams.push(socket);
            datagram_count += 1;
        }
        listeners.push(Rc::new(listener));
    }
    let mut inherited = Vec::new();
    for index in 0..reader.count(LIST_LEN_MAX)? {
        let name = reader.text(TEXT_BYTES_MAX)?;
        inherited.push((name, take(SLOT_INHERITED, index).ok_or(reader.malformed())?));
    }
    let control = decode_control(&mut reader, &mut || take(SLOT_CONTROL, 0))?;
    let control_warning = Some(reader.text(TEXT_BYTES_MAX)?).filter(|text| !text.is_empty());
    let seat = decode_seat(&mut reader, &mut || take(SLOT_SEAT, 0))?;
    let mut children = Vec::new();
    for index in 0..reader.count(LIST_LEN_MAX)? {
        children.push(decode_child(&mut reader, || take(SLOT_SERVER, index))?);
    }
    let ask = match reader.flag()? {
        false => None,
        true => Some(ControlRequest {
            pid: decode_pid(&mut reader)?,
            request: reader.u64()?,
        }),
    };
    let count = reader.count(LIST_LEN_MAX)?;
    let logs_to_compress = (0..count)
        .map(|_| reader.path())
        .collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(Handed {
        generation,
        old_sources,
        new_sources,
        started,
        servers_started,
        listeners,
        inherited,
        control,
        control_warning,
        seat,
        children,
        reset_secret: ResetSecret::new(),
        ask,
        logs_to_compress,
    })
}

fn decode_sources(reader: &mut WireReader<'_>) -> Result<ConfigSources, MalformedPart> {
    let bytes = reader.block(memory::MEMORY_BYTES_MAX as usize)?;
    ConfigSources::decode(bytes).ok_or(MalformedPart("sources in the handover"))
}

fn decode_listener(
    reader: &mut WireReader<'_>,
    socket: Option<OwnedFd>,
) -> Result<KeptListener, MalformedPart> {
    let address = match reader.u8()? {
        0 => {
            let text = reader.text(TEXT_BYTES_MAX)?;
            ListenAddress::Tcp(text.parse().map_err(|_| reader.malformed())?)
        }
        1 => ListenAddress::Unix(reader.path()?),
        2 => ListenAddress::Inherited(reader.text(TEXT_BYTES_MAX)?),
        _ => return Err(reader.malformed()),
    };
    Ok(KeptListener {
        address,
        shown: reader.text(TEXT_BYTES_MAX)?,
        file: decode_file(reader)?,
        socket: socket.ok_or(reader.malformed())?,
        datagrams: Vec::new(),
    })
}

fn decode_control(
    reader: &mut WireReader<'_>,
    take: &mut dyn FnMut() -> Option<OwnedFd>,
) -> Result<Option<Rc<KeptControl>>, MalformedPart> {
    let Some(file) = decode_file(reader)? else {
        return Ok(None);
    };
    let socket = take().ok_or(reader.malformed())?;
    Ok(Some(Rc::new(KeptControl { socket, file })))
}

fn decode_seat(
    reader: &mut WireReader<'_>,
    take: &mut dyn FnMut() -> Option<OwnedFd>,
) -> Result<Option<ServerRegistration>, MalformedPart> {
    if !reader.flag()? {
        return Ok(None);
    }
    let path = reader.path()?;
    let file = take().ok_or(reader.malformed())?;
    Ok(Some(ServerRegistration { path, file }))
}

fn decode_file(reader: &mut WireReader<'_>) -> Result<Option<BoundFile>, MalformedPart> {
    if !reader.flag()? {
        return Ok(None);
    }
    let path: PathBuf = reader.path()?;
    Ok(Some(BoundFile {
        path,
        device: reader.u64()?,
        inode: reader.u64()?,
    }))
}

fn decode_child(
    reader: &mut WireReader<'_>,
    take: impl FnOnce() -> Option<OwnedFd>,
) -> Result<(Child, bool), MalformedPart> {
    let role = match reader.flag()? {
        false => ChildRole::Server,
        true => ChildRole::Spawner,
    };
    let pid = decode_pid(reader)?;
    let state = match reader.u8()? {
        0 => ChildState::Starting,
        1 => ChildState::Serving,
        2 => ChildState::Draining,
        _ => return Err(reader.malformed()),
    };
    let is_current = reader.flag()?;
    let left_ms = reader.u64()?;
    let end = match reader.flag()? {
        false => None,
        true => Some(ChannelEnd::of_keeper(take().ok_or(reader.malformed())?)),
    };
    let now = Instant::now();
    let kill_at = match left_ms {
        u64::MAX => None,
        left_ms => now.checked_add(Duration::from_millis(left_ms)),
    };
    let spawner = i32::try_from(reader.u32()?).map_err(|_| reader.malformed())?;
    Ok((
        Child {
            role,
            pid,
            end,
            state,
            started: now,
            kill_at,
            last_words: None,
            spawner: Pid::from_raw(spawner),
            number: None,
            visits: None,
        },
        is_current,
    ))
}

fn decode_pid(reader: &mut WireReader<'_>) -> Result<Pid, MalformedPart> {
    let number = i32::try_from(reader.u32()?).map_err(|_| reader.malformed())?;
    Pid::from_raw(number).ok_or(reader.malformed())
}
