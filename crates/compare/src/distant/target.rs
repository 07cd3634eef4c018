//! The client's side: a machine that starts servers when it is asked to.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::line::{LineEnd, LineStream};
use super::machine::card_bits_per_second;
use super::words::{
    DistantAnswer, DistantAsk, DistantPlan, Introduction, PROTOCOL, Prepared, version,
};
use crate::account::AccountKind;
use crate::address::TargetAddress;
use crate::error::CompareError;
use crate::instance::Usage;
use crate::limits::{
    DISTANT_ANSWER, DISTANT_ANSWER_BYTES_MAX, DISTANT_HELLO, DISTANT_PING_COUNT, DISTANT_PREPARE,
    DISTANT_START,
};
use crate::plan::ComparisonPlan;
use crate::server::{Extra, Ports};

/// The servers' machine while it is heard.
pub(crate) struct TargetMachine {
    name: String,
    line: LineStream,
    host: Ipv4Addr,
    is_stopped: Arc<AtomicBool>,
    /// Why it is no longer heard.
    lost: Option<String>,
}

impl TargetMachine {
    /// Connects, and says who this is.
    ///
    /// # Errors
    /// It cannot be reached, or does not want to hear: what to do.
    pub(crate) fn connect(
        address: &TargetAddress,
        is_stopped: &Arc<AtomicBool>,
    ) -> Result<TargetMachine, CompareError> {
        if address.token().is_empty() {
            return Err(CompareError::Arguments(
                "--target: the token is missing that `hob compare --serve` printed; give it in \
                 HOB_COMPARE_TOKEN, or with --token, which others on this machine can read"
                    .to_owned(),
            ));
        }
        let tell = |why: String| CompareError::Target(format!("--target {address}: {why}"));
        let reached = reach(address).map_err(tell)?;
        let (stream, host) = (reached.0, *reached.1.ip());
        let line = LineStream::new(stream, DISTANT_ANSWER_BYTES_MAX);
        let mut target = TargetMachine {
            name: address.to_string(),
            line: line.map_err(|error| tell(error.to_string()))?,
            host,
            is_stopped: Arc::clone(is_stopped),
            lost: None,
        };
        let hello = DistantAsk::Hello(Introduction {
            protocol: PROTOCOL,
            version: version(),
            token: address.token().to_owned(),
        });
        match target.heard(&hello, DISTANT_HELLO * 2) {
            Ok(DistantAnswer::Done) => Ok(target),
            Ok(DistantAnswer::Refused { why, .. }) => Err(tell(format!("it refused: {why}"))),
            Ok(_) => Err(tell("it answers something else".to_owned())),
            Err(LineEnd::Silent) => Err(tell(
                "it says nothing; it hears one client at a time, and there may be another one"
                    .to_owned(),
            )),
            Err(end) => Err(tell(format!("it {}", end.text()))),
        }
    }

    /// Has everything made ready there.
    ///
    /// # Errors
    /// What is wrong with the plan, or with that machine.
    pub(crate) fn prepare(&mut self, plan: &ComparisonPlan) -> Result<Prepared, CompareError> {
        let wanted = DistantAsk::Prepare(DistantPlan {
            scope: plan.scope,
            only: plan.only.clone(),
            servers: plan.servers.clone(),
            settings: plan.settings,
            is_sweep: plan.is_sweep,
        });
        match self.heard(&wanted, DISTANT_PREPARE) {
            Ok(DistantAnswer::Prepared(prepared)) => Ok(*prepared),
            Ok(DistantAnswer::Refused { why, is_argument }) => Err(match is_argument {
                true => CompareError::Arguments(why),
                false => CompareError::Target(format!("--target {}: {why}", self.name)),
            }),
            Err(LineEnd::Stopped) => Err(CompareError::Interrupted),
            other => {
                let how = match other {
                    Err(end) => end.text(),
                    Ok(_) => "answers something else".to_owned(),
                };
                Err(CompareError::Target(format!(
                    "--target {}: it {how}",
                    self.name
                )))
            }
        }
    }

    /// The shortest time of some in which a question is answered: the way there and back, and
    /// little besides.
    pub(crate) fn round_trip(&mut self) -> Option<Duration> {
        let mut trip = || {
            let begun = Instant::now();
            self.ask(&DistantAsk::Ping, DISTANT_ANSWER).ok()?;
            Some(begun.elapsed())
        };
        (0..DISTANT_PING_COUNT).filter_map(|_| trip()).min()
    }

    /// What the slower of both network cards says that it carries, where they do.
    pub(crate) fn card_bits_per_second(&self, there: Option<u64>) -> Option<u64> {
        let here = card_bits_per_second(self.host);
        here.into_iter().chain(there).min()
    }

    /// Why it is no longer heard, where it is not.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    /// Asks for something that may be refused.
    fn ask(&mut self, what: &DistantAsk, limit: Duration) -> Result<DistantAnswer, String> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        match self.heard(what, limit) {
            Ok(DistantAnswer::Refused { why, .. }) => Err(why),
            Ok(answer) => Ok(answer),
            Err(LineEnd::Stopped) => Err("interrupted".to_owned()),
            Err(end) => {
                let lost = format!("the servers' machine {} {}", self.name, end.text());
                self.lost = Some(lost.clone());
                // There is nobody left to measure.
                self.is_stopped.store(true, Ordering::Relaxed);
                Err(lost)
            }
        }
    }

    fn heard(&mut self, what: &DistantAsk, limit: Duration) -> Result<DistantAnswer, LineEnd> {
        self.line.say(what)?;
        self.line.hear(limit, &self.is_stopped)
    }
}

/// Connects to the first address of IPv4 that it has.
fn reach(address: &TargetAddress) -> Result<(TcpStream, SocketAddrV4), String> {
    let all = address.place().to_socket_addrs();
    let mut all = all.map_err(|error| format!("no such host: {error}"))?;
    let found = all.find_map(|address| match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    });
    let found = found.ok_or("it has no address of IPv4, over which servers are compared")?;
    let stream = TcpStream::connect_timeout(&found.into(), DISTANT_HELLO);
    let stream = stream.map_err(|error| format!("it cannot be reached: {error}"))?;
    Ok((stream, found))
}

/// A server that runs there. When it is dropped, it ends.
pub(crate) struct DistantServer {
    target: Rc<RefCell<TargetMachine>>,
    number: u64,
    pub(crate) host: Ipv4Addr,
    pub(crate) ports: Ports,
    pub(crate) shown: String,
    pub(crate) account: AccountKind,
}

impl DistantServer {
    /// Has a server started.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start(
        target: &Rc<RefCell<TargetMachine>>,
        server: &str,
        extra: Extra,
    ) -> Result<DistantServer, String> {
        let ask = DistantAsk::Start {
            server: server.to_owned(),
            extra,
        };
        let answer = target.borrow_mut().ask(&ask, DISTANT_START)?;
        let DistantAnswer::Started(started) = answer else {
            return Err(OTHER.to_owned());
        };
        Ok(DistantServer {
            number: started.server,
            host: target.borrow().host,
            ports: started.ports,
            shown: started.shown,
            account: started.account,
            target: Rc::clone(target),
        })
    }

    /// CPU time of all its processes up to now.
    pub(crate) fn usage(&self) -> Result<Usage, String> {
        let ask = DistantAsk::Usage {
            server: self.number,
        };
        match self.target.borrow_mut().ask(&ask, DISTANT_ANSWER)? {
            DistantAnswer::Usage(usage) => Ok(usage),
            _ => Err(OTHER.to_owned()),
        }
    }

    /// Has the kernel there throw away what it keeps of a file.
    pub(crate) fn forget(&self, path: &str) -> Result<(), String> {
        let ask = DistantAsk::Forget {
            path: path.to_owned(),
        };
        self.target
            .borrow_mut()
            .ask(&ask, DISTANT_ANSWER)
            .map(|_| ())
    }
}

/// What is said of an answer to another question.
const OTHER: &str = "the servers' machine answers something else";

impl Drop for DistantServer {
    fn drop(&mut self) {
        let ask = DistantAsk::End {
            server: self.number,
        };
        // Once the connection is over, it ends by that.
        let _ = self.target.borrow_mut().ask(&ask, DISTANT_START);
    }
}
