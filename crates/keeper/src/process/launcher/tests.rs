//! A launcher without a loop: the test is the spawner, and polls the link by hand.

use std::task::Waker;

use hob_http::Request;

use super::*;
use crate::process::message::PACKET_BYTES_MAX;

struct Rig {
    launcher: Launcher,
    counters: Arc<ThreadCounters>,
    spawner: Option<OwnedFd>,
}

fn rig() -> Rig {
    let reactor = Request::offline(
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &hob_http::limits::HttpLimits::default(),
    )
    .unwrap()
    .reactor()
    .clone();
    let counters = Arc::new(ThreadCounters::default());
    Rig {
        launcher: Launcher::new(&reactor, Arc::clone(&counters)),
        counters,
        spawner: None,
    }
}

impl Rig {
    fn attach(&mut self) {
        let (ours, theirs) = parcel::pair().unwrap();
        self.launcher.attach(ours).unwrap();
        self.spawner = Some(theirs);
    }

    /// What the task of the link does when something has come.
    fn turn(&self) {
        let (link, number) = {
            let core = self.launcher.0.core.borrow();
            (core.link.clone().unwrap(), core.link_number)
        };
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.launcher.poll_link(&mut cx, &link, number);
    }

    fn received(&self) -> Option<(Vec<u8>, usize)> {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        match packet::receive(self.spawner.as_ref().unwrap().as_fd(), &mut buffer) {
            Received::Packet(len, descriptors) => {
                buffer.truncate(len);
                Some((buffer, descriptors.iter().flatten().count()))
            }
            _ => None,
        }
    }

    fn say(&self, message: ToServer) {
        let mut packet = vec![];
        message.encode(&mut packet);
        let socket = self.spawner.as_ref().unwrap().as_fd();
        assert_eq!(packet::send(socket, &packet, &[]), PacketSendOutcome::Yes);
    }
}

fn null() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn start() -> Start {
    let mut arguments = Strings::new();
    arguments.push(b"a").unwrap();
    let mut environment = Strings::new();
    environment.push_pair(b"N", b"v").unwrap();
    Start {
        program: ProgramRef {
            generation: 3,
            index: 1,
        },
        path: b"/p".to_vec(),
        dir: b"/d".to_vec(),
        arguments,
        environment,
        stdin: Some(null()),
        stdout: null(),
        stderr: null(),
        channel: None,
        outlives: false,
        takes_along: false,
    }
}

fn ended(id: u64) -> ToServer {
    ToServer::Exited {
        id,
        code: Some(0),
        signal: None,
        core: false,
        usage: Usage::default(),
        process: ProgramProcess::default(),
    }
}

#[test]
fn start_arrives_with_its_strings_and_three_descriptors() {
    let mut rig = rig();
    rig.attach();
    let child = rig.launcher.start(start());
    let (packet, descriptor_count) = rig.received().unwrap();
    let Ok(ToSpawner::Start(head, strings)) = ToSpawner::decode(&packet) else {
        panic!("a start");
    };
    assert_eq!(strings, b"/p\0/d\0a\0N=v\0");
    assert_eq!((head.id, head.generation, head.program), (child.id(), 3, 1));
    assert_eq!((head.argument_count, head.variable_count), (1, 1));
    assert_eq!((descriptor_count, head.no_input), (3, false));
    let without = Start {
        stdin: None,
        ..start()
    };
    rig.launcher.start(without);
    let (packet, descriptor_count) = rig.received().unwrap();
    assert!(matches!(ToSpawner::decode(&packet), Ok(ToSpawner::Start(head, _)) if head.no_input));
    assert_eq!(descriptor_count, 2);
}

#[test]
fn exits_find_their_child() {
    let mut rig = rig();
    rig.attach();
    let children: Vec<Child> = (0..3).map(|_| rig.launcher.start(start())).collect();
    rig.say(ended(children[1].id()));
    rig.say(ToServer::Failed {
        id: children[0].id(),
        step: Step::Exec,
        errno: 2,
    });
    rig.say(ended(99));
    rig.turn();
    let not_started = Exit::NotStarted {
        step: "execute it",
        errno: 2,
    };
    assert_eq!(children[0].exit(), Some(not_started));
    assert!(matches!(
        children[1].exit(),
        Some(Exit::Ended { code: Some(0), .. })
    ));
    assert_eq!(children[2].exit(), None);
    assert_eq!(rig.counters.programs_ended.value(), 1);
    assert_eq!(rig.counters.programs_not_started.value(), 1);
}

#[test]
fn end_is_sent_for_what_runs_and_for_nothing_else() {
    let mut rig = rig();
    rig.attach();
    let child = rig.launcher.start(start());
    rig.received().unwrap();
    child.end(EndSignal::Kill);
    let (packet, _) = rig.received().unwrap();
    let expected = ToSpawner::Kill {
        id: child.id(),
        how: EndSignal::Kill,
        part: None,
    };
    assert_eq!(ToSpawner::decode(&packet), Ok(expected));
    rig.say(ended(child.id()));
    rig.turn();
    child.end(EndSignal::Kill);
    assert!(rig.received().is_none());
}

#[test]
fn starts_wait_for_a_spawner_and_go_out_in_order() {
    let mut rig = rig();
    let children: Vec<Child> = (0..3).map(|_| rig.launcher.start(start())).collect();
    children[1].end(EndSignal::Term);
    assert!(
        matches!(children[1].exit(), Some(Exit::NotStarted { .. })),
        "withdrawn"
    );
    rig.attach();
    for child in [&children[0], &children[2]] {
        let (packet, _) = rig.received().unwrap();
        let Ok(ToSpawner::Start(head, _)) = ToSpawner::decode(&packet) else {
            panic!("a start");
        };
        assert_eq!(head.id, child.id());
    }
    assert!(rig.received().is_none());
}

#[test]
fn dead_spawner_takes_what_ran_and_the_next_gets_what_comes_then() {
    let mut rig = rig();
    rig.attach();
    let running = rig.launcher.start(start());
    rig.received().unwrap();
    rig.spawner = None;
    rig.turn();
    assert_eq!(running.exit(), Some(Exit::SpawnerGone));
    assert_eq!(rig.counters.programs_lost.value(), 1);
    let waiting = rig.launcher.start(start());
    assert_eq!(waiting.exit(), None);
    rig.attach();
    assert!(rig.received().is_some());
    rig.say(ended(waiting.id()));
    rig.turn();
    assert!(matches!(waiting.exit(), Some(Exit::Ended { .. })));
}

#[test]
fn spawner_that_talks_nonsense_is_given_up() {
    let mut rig = rig();
    rig.attach();
    let child = rig.launcher.start(start());
    let socket = rig.spawner.as_ref().unwrap();
    rustix::net::send(socket, b"nonsense", rustix::net::SendFlags::empty()).unwrap();
    rig.turn();
    assert_eq!(child.exit(), Some(Exit::SpawnerGone));
}

#[test]
fn more_starts_than_may_wait_are_refused_and_counted() {
    let rig = rig();
    let small = || Start {
        stdin: Some(null()),
        ..start()
    };
    let children: Vec<Child> = (0..STARTS_WAITING_MAX / 64)
        .map(|_| rig.launcher.start(small()))
        .collect();
    assert!(children.iter().all(|child| child.exit().is_none()));
    // The rest without descriptors to speak of: only the count matters.
    for _ in children.len()..STARTS_WAITING_MAX {
        rig.launcher
            .0
            .core
            .borrow_mut()
            .waiting
            .push_back(PendingPacket {
                start: None,
                packet: vec![],
                descriptors: vec![],
                since_ms: 0,
            });
    }
    assert_eq!(rig.launcher.start(start()).exit(), Some(Exit::Busy));
    assert_eq!(rig.counters.limit_starts.value(), 1);
}

#[test]
fn full_socket_keeps_starts_and_sends_them_later() {
    let mut rig = rig();
    rig.attach();
    let large = || {
        let mut environment = Strings::new();
        environment.push(&vec![b'x'; 90 * 1024]).unwrap();
        Start {
            environment,
            ..start()
        }
    };
    let children: Vec<Child> = (0..20).map(|_| rig.launcher.start(large())).collect();
    assert!(
        !rig.launcher.0.core.borrow().waiting.is_empty(),
        "it cannot hold that much"
    );
    let mut received = 0;
    while received < children.len() {
        match rig.received() {
            Some(_) => received += 1,
            None => {
                // The loop would have been told that there is room.
                rig.launcher.send_waiting();
            }
        }
    }
    assert!(rig.launcher.0.core.borrow().waiting.is_empty());
}

#[test]
fn long_strings_go_as_memory_and_too_long_ones_not_at_all() {
    let mut rig = rig();
    rig.attach();
    let with = |bytes: usize| {
        let mut environment = Strings::new();
        environment.push(&vec![b'x'; bytes]).unwrap();
        Start {
            environment,
            ..start()
        }
    };
    rig.launcher.start(with(PACKET_BYTES_MAX));
    let (packet, descriptor_count) = rig.received().unwrap();
    assert!(
        matches!(ToSpawner::decode(&packet), Ok(ToSpawner::Start(head, b"")) if head.in_memory)
    );
    assert_eq!(descriptor_count, 4);
    let refused = rig.launcher.start(with(STRINGS_BYTES_MAX)).exit();
    let too_big = Exit::NotStarted {
        step: "execute it",
        errno: libc::E2BIG,
    };
    assert_eq!(refused, Some(too_big));
    let nameless = Start {
        arguments: Strings::new(),
        ..start()
    };
    assert!(matches!(
        rig.launcher.start(nameless).exit(),
        Some(Exit::NotStarted { .. })
    ));
    let cut = Start {
        path: b"/p\0".to_vec(),
        ..start()
    };
    assert!(matches!(
        rig.launcher.start(cut).exit(),
        Some(Exit::NotStarted { .. })
    ));
}
