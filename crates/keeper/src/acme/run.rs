//! The process: waits for a plan, drops privileges, and tends every certificate of the plan until
//! another plan comes or the keeper goes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use hob_http::acme::WantedCertificate;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SocketType, sockopt};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet};

use super::desk::AcmeContext;
use super::link::KeeperLink;
use super::message::{FromAcme, ToAcme};
use super::plan::{CertificatePlan, Kept};
use super::tend::{Has, Tended};
use crate::channel::ChannelEnd;
use crate::parcel::NotReceived;
use crate::signals::{self, RegisteredSignals};
use crate::{KeeperFailure, exec, privileges};

/// Runs the process until the keeper has no more use for it.
///
/// # Errors
/// When it was not started by a keeper, or cannot give its privileges up.
pub fn run() -> Result<(), KeeperFailure> {
    let is_channel = sockopt::socket_type(io::stdin()) == Ok(SocketType::SEQPACKET);
    if !is_channel {
        return Err(KeeperFailure::System(
            "certificates are got by `hob serve`, not by hand".to_owned(),
        ));
    }
    // Executed by way of /proc/self/exe, which would make it `exe` in every list of processes.
    let _ = rustix::thread::set_name(c"hob-acme");
    let system =
        |what: &str, error: io::Error| KeeperFailure::System(format!("cannot {what}: {error}"));
    let channel = exec::take_stdin().map_err(|error| system("use the keeper's channel", error))?;
    let mut end = ChannelEnd::of_server(channel);
    // A terminal sends Ctrl-C to everybody; when to end is the keeper's business.
    let _swallowed = RegisteredSignals::register(signals::OF_SERVER)
        .map_err(|error| system("handle signals", error))?;
    let Some(memory) = first_plan(&mut end)? else {
        return Ok(());
    };
    let plan = CertificatePlan::from_memory(memory.as_fd());
    let (plan, kept) = plan.map_err(|error| system("read the plan", error))?;
    let dropped = match &plan.identity {
        Some(identity) => privileges::become_identity(identity),
        None => privileges::close_the_door(),
    };
    dropped.map_err(|error| system("drop privileges", error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| system("start", error))?;
    let work = LocalSet::new();
    work.block_on(&runtime, async {
        let link =
            KeeperLink::new(end).map_err(|error| system("watch the keeper's channel", error))?;
        follow_plans(Rc::new(link), plan, kept).await;
        Ok(())
    })
}

/// The first message: a plan, or the end.
fn first_plan(end: &mut ChannelEnd) -> Result<Option<OwnedFd>, KeeperFailure> {
    loop {
        match end.receive().map(ToAcme::decode) {
            Ok(Ok(ToAcme::Plan(memory))) => return Ok(Some(memory)),
            Err(NotReceived::Nothing) => {
                // No deadline: the keeper has one and ends us.
                let mut polled = [PollFd::from_borrowed_fd(end.socket(), PollFlags::IN)];
                let _ = poll(&mut polled, None);
            }
            Err(NotReceived::Gone) => return Ok(None),
            other => {
                return Err(KeeperFailure::System(format!(
                    "expected a plan, got {other:?}"
                )));
            }
        }
    }
}

/// How long records may take to be removed at the end.
const REMOVAL_TIME_MAX: Duration = Duration::from_secs(10);

/// What is being tended.
struct TendedCertificate {
    wanted: WantedCertificate,
    has: Rc<Has>,
    urge: Rc<Notify>,
    task: JoinHandle<()>,
}

impl TendedCertificate {
    fn start(
        desk: &Rc<AcmeContext>,
        wanted: &WantedCertificate,
        chain: Option<&[u8]>,
    ) -> TendedCertificate {
        let tended = Tended::new(desk, wanted.clone(), chain);
        let urge = Rc::new(Notify::new());
        TendedCertificate {
            wanted: wanted.clone(),
            has: tended.has(),
            task: tokio::task::spawn_local(tended.tend(Rc::clone(&urge))),
            urge,
        }
    }

    /// It can go on under a plan: it is still wanted, and what it knows of is what is kept.
    fn suits(&self, plan: &CertificatePlan, kept: &Kept) -> bool {
        let Some(index) = plan.wanted.iter().position(|wanted| *wanted == self.wanted) else {
            return false;
        };
        let chain = kept.chains.get(index).and_then(Option::as_deref);
        !self.task.is_finished() && self.has.is_what_is_kept(chain)
    }
}

async fn follow_plans(link: Rc<KeeperLink>, mut plan: CertificatePlan, mut kept: Kept) {
    let flushing = Rc::clone(&link);
    tokio::task::spawn_local(async move { flushing.keep_flushing().await });
    link.say(&FromAcme::Ready);
    let mut desk = new_desk(&link, &plan, &mut kept);
    let mut running: Vec<TendedCertificate> = Vec::new();
    loop {
        let before = std::mem::take(&mut running);
        let (stay, go): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|old| old.suits(&plan, &kept));
        for old in go {
            // Its proofs are taken away with it.
            old.task.abort();
        }
        running = stay;
        for old in &running {
            old.urge.notify_one();
        }
        for (index, wanted) in plan.wanted.iter().enumerate() {
            if running.iter().any(|old| old.wanted == *wanted) {
                continue;
            }
            let chain = kept.chains.get(index).and_then(Option::as_deref);
            running.push(TendedCertificate::start(&desk, wanted, chain));
        }
        let Some(memory) = link.next_plan().await else {
            return finish(running, &desk).await;
        };
        match CertificatePlan::from_memory(memory.as_fd()) {
            Ok((new, new_kept)) => {
                kept = new_kept;
                desk.forget_trouble();
                if new.authority != plan.authority || new.hook != plan.hook {
                    running.drain(..).for_each(|old| old.task.abort());
                    desk = new_desk(&link, &new, &mut kept);
                }
                plan = new;
            }
            Err(error) => tracing::error!(%error, "a plan for certificates could not be read"),
        }
    }
}

/// The keeper has no more use for us: what was set for others to see is taken away.
async fn finish(running: Vec<TendedCertificate>, desk: &AcmeContext) {
    for old in running {
        old.task.abort();
        // It is gone when it has been waited for.
        let _ = old.task.await;
    }
    let _ = tokio::time::timeout(REMOVAL_TIME_MAX, desk.removals.finish()).await;
}

fn new_desk(link: &Rc<KeeperLink>, plan: &CertificatePlan, kept: &mut Kept) -> Rc<AcmeContext> {
    let account = kept.account.take();
    AcmeContext::new(link, plan.authority.clone(), plan.hook.clone(), account)
}
