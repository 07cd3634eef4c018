//! A channel with the keeper's end in the test's hands.

use std::time::SystemTime;

use hob_config::NoHandlers;

use super::*;
use crate::parcel;

fn pair() -> (ChannelEnd, ServerLife<NoHandlers>) {
    let (ours, theirs) = parcel::pair().unwrap();
    (
        ChannelEnd::of_keeper(ours),
        ServerLife::from_channel(theirs).unwrap(),
    )
}

fn outfit(number: u64, text: &str, listener_count: usize) -> Outfit {
    let sources = ConfigSources::from_text(
        NoHandlers::schema(),
        "test",
        text,
        std::path::Path::new("/"),
        &|_| None,
    )
    .unwrap();
    let papers = Papers {
        sources: sources.encode(),
        identity: None,
        nice: 0,
        cpus: vec![],
        facts: KeeperFacts {
            keeper_pid: 1,
            keeper_uid: 0,
            config: None,
            started: SystemTime::UNIX_EPOCH,
            servers_started: 1,
            addresses: vec![],
            warnings: vec![],
            admin_token: None,
        },
    };
    let socket = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().into();
    Outfit {
        generation: number,
        papers: papers.to_memory().unwrap(),
        listeners: (0..listener_count).map(|_| socket()).collect(),
        datagrams: vec![],
        logs: vec![],
        control: None,
        keys: None,
        kept: vec![],
        challenges: None,
    }
}

const ONE_LISTENER: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"/\"\n";

fn said(keeper: &mut ChannelEnd) -> ToKeeper {
    ToKeeper::decode(keeper.receive().unwrap()).unwrap()
}

#[test]
fn reload_arrives_as_a_loaded_config_with_its_sockets() {
    let (mut keeper, mut life) = pair();
    assert!(life.next().is_none());
    keeper
        .send(ToServer::Reload(outfit(4, ONE_LISTENER, 1)).encode())
        .unwrap();
    let Some(KeeperEvent::Reload(generation)) = life.next() else {
        panic!("a reload");
    };
    assert_eq!((generation.number, generation.listeners.len()), (4, 1));
    life.reloaded(generation.number);
    assert_eq!(said(&mut keeper), ToKeeper::Reloaded { generation: 4 });
}

#[test]
fn reload_that_does_not_load_here_is_refused_without_the_server_noticing() {
    let (mut keeper, mut life) = pair();
    for wrong in [outfit(2, "no toml", 0), outfit(2, ONE_LISTENER, 0)] {
        keeper.send(ToServer::Reload(wrong).encode()).unwrap();
        assert!(life.next().is_none());
        assert!(matches!(said(&mut keeper), ToKeeper::ReloadFailed { .. }));
    }
}

#[test]
fn descriptor_is_readable_exactly_when_there_is_an_event() {
    let (mut keeper, mut life) = pair();
    let is_readable = |life: &ServerLife<NoHandlers>| {
        let mut polled = [PollFd::from_borrowed_fd(life.fd(), PollFlags::IN)];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut polled, Some(&now)).unwrap() == 1
    };
    assert!(!is_readable(&life));
    let deadline = Duration::from_secs(3);
    keeper
        .send(
            ToServer::Drain {
                deadline,
                grace: Duration::ZERO,
            }
            .encode(),
        )
        .unwrap();
    assert!(is_readable(&life));
    assert!(
        matches!(life.next(), Some(KeeperEvent::Drain { deadline: got, .. }) if got == deadline)
    );
    assert!(life.next().is_none());
    assert!(!is_readable(&life));
}

#[test]
fn keeper_gone_is_told_once_and_then_there_is_silence() {
    let (keeper, mut life) = pair();
    drop(keeper);
    assert!(matches!(life.next(), Some(KeeperEvent::KeeperGone)));
    assert!(life.next().is_none());
    life.drained();
    assert!(life.next().is_none());
}

#[test]
fn nonsense_from_the_keeper_counts_as_its_end() {
    let (ours, theirs) = parcel::pair().unwrap();
    let mut life = ServerLife::<NoHandlers>::from_channel(theirs).unwrap();
    rustix::net::send(&ours, b"nonsense", rustix::net::SendFlags::empty()).unwrap();
    assert!(matches!(life.next(), Some(KeeperEvent::KeeperGone)));
}

#[test]
fn asks_are_numbered_and_answers_carry_the_number() {
    let (mut keeper, mut life) = pair();
    let first = life.ask(Wish::Reload);
    let second = life.ask(Wish::Stop);
    assert_ne!(first, second);
    assert_eq!(
        said(&mut keeper),
        ToKeeper::Ask {
            wish: Wish::Reload,
            request: first
        }
    );
    assert_eq!(
        said(&mut keeper),
        ToKeeper::Ask {
            wish: Wish::Stop,
            request: second
        }
    );
    let answer = ToServer::Answer {
        request: second,
        is_ok: false,
        text: "no".to_owned(),
    };
    keeper.send(answer.encode()).unwrap();
    let Some(KeeperEvent::Answer {
        request,
        is_ok: false,
        ..
    }) = life.next()
    else {
        panic!("an answer");
    };
    assert_eq!(request, second);
}
