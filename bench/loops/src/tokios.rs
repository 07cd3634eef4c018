//! Sockets in tokio's reactor; an own epoll set nested in it; tokio as a guest.

use std::net::TcpListener;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use hob_http::limits::HttpLimits;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::own::Own;
use crate::site::{Plain, Site, date_now, now_us};

pub fn run(listener: TcpListener, site: Site) -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let site = Rc::new(site);
        let limits: Rc<HttpLimits> = Rc::default();
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let site = Rc::clone(&site);
            let mut plain = Plain::new(&limits);
            tokio::task::spawn_local(async move {
                let mut input = vec![0u8; 8192];
                let mut out = Vec::new();
                loop {
                    let count = loop {
                        if socket.readable().await.is_err() {
                            return;
                        }
                        match socket.try_read(&mut input) {
                            Ok(0) => return,
                            Ok(count) => break count,
                            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                            Err(_) => return,
                        }
                    };
                    out.clear();
                    let date = date_now();
                    let go_on = plain.answer(&site, &date, now_us(), &input[..count], &mut out);
                    if !go_on || socket.try_write(&out).ok() != Some(out.len()) {
                        return;
                    }
                }
            });
        }
    })
}

pub fn run_nested(listener: TcpListener, site: Site) -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let mut own = Own::new(listener, site)?;
        let watched: OwnedFd = own.epoll.try_clone()?;
        let watched = AsyncFd::with_interest(watched, Interest::READABLE)?;
        loop {
            let mut guard = watched.readable().await?;
            // Turns follow until nothing is there: only then may the readiness be cleared.
            while own.turn(false)?.1 > 0 {}
            guard.clear_ready();
        }
    })
}

/// A tokio runtime that runs when its own epoll set has something.
pub struct Guest {
    runtime: Runtime,
    epoll: OwnedFd,
}

impl Guest {
    pub fn new() -> std::io::Result<Guest> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // tokio does not tell its epoll descriptor; it is the newest one.
        let newest = std::fs::read_dir("/proc/self/fd")?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let link = std::fs::read_link(entry.path()).ok()?;
                let number: i32 = entry.file_name().to_str()?.parse().ok()?;
                (link.to_str()? == "anon_inode:[eventpoll]").then_some(number)
            })
            .max()
            .expect("tokio has an epoll set");
        // SAFETY: the descriptor was just found open; it is duplicated at once.
        let epoll = unsafe { BorrowedFd::borrow_raw(newest) }.try_clone_to_owned()?;
        Ok(Guest { runtime, epoll })
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.epoll
    }

    pub fn turn(&mut self) {
        self.runtime.block_on(tokio::task::yield_now());
    }
}
