//! The servers' side: hears one client after the other.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::line::{LineEnd, LineStream};
use super::port::{ControlPort, next_client};
use super::session::session;
use super::words::{DistantAnswer, DistantAsk, Introduction, PROTOCOL, version};
use crate::error::CompareError;
use crate::limits::{DISTANT_ASK_BYTES_MAX, DISTANT_HELLO};
use crate::preparation::{become_subreaper, listen};

/// What a servers' machine needs to know by itself; the rest is the client's affair.
#[derive(Clone)]
pub struct ServePlan {
    /// Where it hears.
    pub port: ControlPort,
    /// The secret that clients must know.
    pub token: String,
    /// hob itself.
    pub program: PathBuf,
    /// Other builds of hob, and servers that are taken instead of those in `folders`.
    pub rivals: Vec<PathBuf>,
    /// Where programs are looked for, in this order.
    pub folders: Vec<PathBuf>,
    /// Where temporary folders are made.
    pub temporary: PathBuf,
}

/// The addresses of a connection: where servers listen, and where the client is.
#[derive(Clone, Copy)]
pub(super) struct ConnectionEnds {
    pub(super) own: Ipv4Addr,
    pub(super) peer: Ipv4Addr,
}

/// Hears clients until SIGINT or SIGTERM, one after the other, and tells what happens a line at a
/// time: first of all where it listens and what clients must know. Whatever a client has started
/// ends with it.
///
/// # Errors
/// The address is none of this machine's, or the system refused something.
pub fn serve(plan: &ServePlan, tell: &mut dyn FnMut(&str)) -> Result<(), CompareError> {
    let is_stopped = listen()?;
    become_subreaper()?;
    let (listener, address) = plan.port.open().map_err(CompareError::system(format!(
        "--serve {}: cannot listen",
        plan.port
    )))?;
    let reached = match plan.port.is_any() {
        true => format!("HOST:{}", address.port()),
        false => address.to_string(),
    };
    tell(&format!("listens on {address}; on the client's machine:"));
    tell(&format!(
        "HOB_COMPARE_TOKEN={} hob compare --target {reached}",
        plan.token
    ));
    while let Some(stream) = next_client(&listener, &is_stopped) {
        let peer = stream.peer_addr();
        let name = peer.map_or("a client".to_owned(), |peer| peer.to_string());
        let mut say = |text: &str| tell(&format!("{name} {text}"));
        let end = client(stream, plan, &is_stopped, &mut say);
        say(&end.text());
    }
    Ok(())
}

/// Hears one client to its end.
fn client(
    stream: TcpStream,
    plan: &ServePlan,
    is_stopped: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&str),
) -> LineEnd {
    let begin = || {
        let mut line = LineStream::new(stream, DISTANT_ASK_BYTES_MAX).map_err(LineEnd::Closed)?;
        let ends = line.addresses();
        let ends = ends.map(|(own, peer)| ConnectionEnds { own, peer });
        let ends = ends.ok_or_else(|| LineEnd::Wrong("it is none of IPv4".to_owned()))?;
        let heard = line.hear(DISTANT_HELLO, is_stopped)?;
        let answer = welcome(&heard, &plan.token);
        line.say(&answer)?;
        match answer {
            DistantAnswer::Refused { why, .. } => Err(LineEnd::Refused(why)),
            _ => Ok((line, ends)),
        }
    };
    match begin() {
        Ok((mut line, ends)) => {
            say("compares");
            session(&mut line, plan, ends, is_stopped)
        }
        Err(end) => end,
    }
}

/// May whoever says this be heard? Nothing is said of versions to who does not know the secret.
fn welcome(heard: &DistantAsk, token: &str) -> DistantAnswer {
    let DistantAsk::Hello(hello) = heard else {
        return DistantAnswer::refused("the first thing to say is hello");
    };
    let Introduction {
        protocol,
        version: other,
        token: said,
    } = hello;
    if verify_slices_are_equal(token.as_bytes(), said.as_bytes()).is_err() {
        return DistantAnswer::refused("that is not the token which it printed when it began");
    }
    let own = version();
    match *other == own && *protocol == PROTOCOL {
        true => DistantAnswer::Done,
        false => DistantAnswer::refused(format!(
            "the servers' machine has hob {own} (protocol {PROTOCOL}), the client hob {other} \
             (protocol {protocol}): both must be the same"
        )),
    }
}
