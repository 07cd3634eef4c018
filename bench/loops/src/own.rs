//! Sockets in an epoll set of their own; tokio may be a guest in it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use hob_http::limits::HttpLimits;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, SocketFlags};

use crate::site::{Plain, Site, date_now, now_us};
use crate::tokios::Guest;

pub struct Own {
    pub epoll: OwnedFd,
    listener: TcpListener,
    site: Site,
    conns: Vec<Option<(OwnedFd, Plain)>>,
    limits: Rc<HttpLimits>,
    input: Vec<u8>,
    out: Vec<u8>,
    events: Vec<epoll::Event>,
}

const LISTENER: u64 = u64::MAX;
pub const GUEST: u64 = u64::MAX - 1;

impl Own {
    pub fn new(listener: TcpListener, site: Site) -> std::io::Result<Own> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Own {
            epoll,
            listener,
            site,
            conns: Vec::new(),
            limits: Rc::default(),
            input: vec![0; 65536],
            out: Vec::new(),
            events: Vec::with_capacity(256),
        })
    }

    /// One wait and its events. Returns whether the guest has work and how many events there were.
    pub fn turn(&mut self, wait: bool) -> std::io::Result<(bool, usize)> {
        self.events.clear();
        let zero = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = if wait { None } else { Some(&zero) };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let turn_us = now_us();
        let date = date_now();
        let events = std::mem::take(&mut self.events);
        let mut guest = false;
        for event in &events {
            match event.data.u64() {
                LISTENER => self.accept()?,
                GUEST => guest = true,
                index => self.serve(index as usize, turn_us, &date),
            }
        }
        let count = events.len();
        self.events = events;
        Ok((guest, count))
    }

    fn accept(&mut self) -> std::io::Result<()> {
        while let Ok(socket) =
            rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        {
            let index = self.conns.iter().position(Option::is_none).unwrap_or(self.conns.len());
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &socket, EventData::new_u64(index as u64), flags)?;
            if index == self.conns.len() {
                self.conns.push(None);
            }
            self.conns[index] = Some((socket, Plain::new(&self.limits)));
        }
        Ok(())
    }

    fn serve(&mut self, index: usize, turn_us: u64, date: &hob_http::date::DateLine) {
        let Some((socket, plain)) = &mut self.conns[index] else { return };
        let count = match rustix::net::recv(&*socket, &mut self.input[..], RecvFlags::empty()) {
            Ok((count, _)) if count > 0 => count,
            Err(rustix::io::Errno::AGAIN) => return,
            _ => {
                self.conns[index] = None;
                return;
            }
        };
        self.out.clear();
        let go_on = plain.answer(&self.site, date, turn_us, &self.input[..count], &mut self.out);
        let sent = rustix::net::send(&*socket, &self.out, SendFlags::NOSIGNAL);
        if !go_on || sent != Ok(self.out.len()) {
            self.conns[index] = None;
        }
    }
}

pub fn run(listener: TcpListener, site: Site, mut guest: Option<Guest>) -> std::io::Result<()> {
    let mut own = Own::new(listener, site)?;
    if let Some(guest) = &guest {
        epoll::add(&own.epoll, guest.fd(), EventData::new_u64(GUEST), EventFlags::IN)?;
    }
    loop {
        let (has_guest_work, _) = own.turn(true)?;
        if let (true, Some(guest)) = (has_guest_work, &mut guest) {
            guest.turn();
        }
    }
}
