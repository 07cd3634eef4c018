//! Connecting: finds the socket that hob handed down, greets, and takes shared memory into use
//! where it is offered.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_ipc::hello::Hello;
use hob_ipc::message::{Carrier, FILES, MessageHead, MessageKind, VERSION};
use hob_ipc::shm::{Gifts, WorkerEnd};
use rustix::io::FdFlags;
use rustix::net::RecvFlags;

use crate::connection::HobConnection;
use crate::environment;
use crate::failure::CallFailure;
use crate::fork;
use crate::link::{self, CarrierLink};
use crate::plain::Plain;
use crate::request::RequestSource;

/// The name and version that `hob status` shows.
const LIBRARY: &str = concat!("libhob/", env!("CARGO_PKG_VERSION"));

/// There is one socket, so there is one connection.
static IS_CONNECTED: AtomicBool = AtomicBool::new(false);

/// Connects to the hob that started this process; without one, serves plain CGI.
pub(crate) fn connect() -> Result<RequestSource, CallFailure> {
    if IS_CONNECTED.swap(true, Ordering::AcqRel) {
        return Err(CallFailure::Misuse);
    }
    let connected = match environment::value_of(c"HOB_FD") {
        None => Ok(RequestSource::Plain(Arc::new(Plain::new()))),
        Some(number) => greet(number).map(|connection| RequestSource::Hob(Arc::new(connection))),
    };
    if connected.is_err() {
        IS_CONNECTED.store(false, Ordering::Release);
    }
    connected
}

fn greet(number: &[u8]) -> Result<HobConnection, CallFailure> {
    let number = std::str::from_utf8(number).ok();
    let fd: RawFd = number
        .and_then(|n| n.parse().ok())
        .ok_or(CallFailure::Misuse)?;
    if fd < 3 {
        return Err(CallFailure::Misuse);
    }
    // SAFETY: hob says with HOB_FD that this descriptor is the library's; it is taken once.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let is_ours = rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC);
    if let Err(errno) = is_ours {
        // Not open: nothing to close either.
        std::mem::forget(socket);
        return Err(errno.into());
    }
    // Children that are hob's own programs must not take it for theirs.
    // SAFETY: as the header says, no other thread uses the environment during this call.
    unsafe { libc::unsetenv(c"HOB_FD".as_ptr()) };
    shake_hands(socket)
}

fn shake_hands(socket: OwnedFd) -> Result<HobConnection, CallFailure> {
    let mut decoder = link::decoder();
    let (count, gifts) =
        Gifts::receive(socket.as_fd(), decoder.space()).map_err(|_| CallFailure::System)?;
    if count == 0 {
        return Err(CallFailure::Gone);
    }
    decoder.filled(count);
    let hello = loop {
        if let Some(message) = decoder.next_message()? {
            if message.head.kind != MessageKind::Hello {
                return Err(CallFailure::Broken);
            }
            break Hello::decode(message.payload)?;
        }
        link::receive(&socket, &mut decoder, RecvFlags::empty())?;
    };
    let wants_stream = environment::value_of(c"HOB_CARRIER").is_some_and(|name| name == b"stream");
    let gifts = gifts.filter(|_| hello.carrier == Carrier::Shm && !wants_stream);
    // A region that cannot be used is no failure: the stream always can.
    let shm = gifts.and_then(|gifts| {
        let fds = [
            gifts.bell_to_server.as_raw_fd(),
            gifts.bell_to_worker.as_raw_fd(),
        ];
        WorkerEnd::open(gifts).ok().map(|end| (end, fds))
    });
    let bells = shm.as_ref().map(|(_, fds)| *fds).into_iter().flatten();
    fork::close_in_children([socket.as_raw_fd()].into_iter().chain(bells));
    let mut link = CarrierLink::new(Arc::new(socket), decoder, None);
    let carrier = match shm {
        Some(_) => Carrier::Shm,
        None => Carrier::Stream,
    };
    let flags = if hello.takes_files { FILES } else { 0 };
    let answer = MessageHead::new(MessageKind::WorkerHello, 0)
        .flags(flags)
        .small(VERSION)
        .large(carrier as u32);
    // Over the stream in any case.
    let _ = link.push(answer, &[LIBRARY.as_bytes()])?;
    link.flush()?;
    link.shm = shm.map(|(end, _)| end);
    Ok(HobConnection::new(hello, link))
}
