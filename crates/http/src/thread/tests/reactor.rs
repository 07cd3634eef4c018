//! Descriptors, timers and tasks on a thread's own loop.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::time::Timespec;

use super::dummy::{Dummy, Gate, Probe};
use super::{PATIENCE, Running, serve};
use crate::limits::{HttpLimits, TASKS_PER_TURN};
use crate::reactor::wheel::TICK_MS;
use crate::reactor::{REACTOR, Reactor, Watched};
use crate::thread::{Handle, Thread};

const LONG: Duration = Duration::from_secs(3600);

/// Spawns what a test makes of the first thread's reactor.
fn spawn<F: Future<Output = ()> + 'static>(
    server: &Running,
    task: impl FnOnce(Reactor, Arc<Probe>) -> F + Send + 'static,
) {
    let probe = Arc::clone(&server.probe);
    server.ask(move |thread| {
        let reactor = thread.reactor.clone();
        thread.reactor.spawn(task(reactor, probe));
    });
}

async fn read(watched: &Watched, buffer: &mut [u8]) -> std::io::Result<usize> {
    poll_fn(|cx| watched.poll_read(cx, buffer)).await
}

async fn write(watched: &Watched, bytes: &[u8]) -> std::io::Result<usize> {
    poll_fn(|cx| watched.poll_write(cx, bytes)).await
}

fn pair(reactor: &Reactor) -> (Watched, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (reactor.watch(ours.into()).unwrap(), theirs)
}

#[test]
fn the_answers_are_started_before_the_first_request() {
    let server = serve(HttpLimits::default());
    assert_eq!(server.connect().ask("/ready").text(), "ready");
    assert!(server.probe.is_started.load(Ordering::Relaxed));
}

#[test]
fn descriptor_that_rests_is_taken_by_its_thread_or_another() {
    let (one, other) = (serve(HttpLimits::default()), serve(HttpLimits::default()));
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    let (leave, left) = std::sync::mpsc::channel();
    let leave_again = leave.clone();
    spawn(&one, |reactor, _| async move {
        let watched = reactor.watch(OwnedFd::from(ours)).unwrap();
        let resting = watched.rest().unwrap();
        assert!(resting.is_of(&reactor));
        let watched = resting.take(&reactor).unwrap();
        write(&watched, b"a").await.unwrap();
        leave.send(watched.rest().unwrap()).unwrap();
    });
    let resting = left.recv_timeout(PATIENCE).unwrap();
    spawn(&other, |reactor, _| async move {
        assert!(!resting.is_of(&reactor));
        let watched = resting.take(&reactor).unwrap();
        // What comes is heard of by the thread that has it now.
        let mut buffer = [0; 8];
        assert_eq!(read(&watched, &mut buffer).await.unwrap(), 1);
        write(&watched, b"b").await.unwrap();
        leave_again.send(watched.rest().unwrap()).unwrap();
    });
    let mut buffer = [0; 1];
    theirs.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"a");
    theirs.write_all(b"x").unwrap();
    theirs.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"b");
    drop(left.recv_timeout(PATIENCE).unwrap());
    assert_eq!(theirs.read(&mut buffer).unwrap(), 0);
}

#[test]
fn end_of_a_descriptor_that_rests_is_known() {
    let server = serve(HttpLimits::default());
    let (ours, theirs) = UnixStream::pair().unwrap();
    spawn(&server, |reactor, probe| async move {
        let watched = reactor.watch(OwnedFd::from(ours)).unwrap();
        let (mut resting, timer) = (watched.rest().unwrap(), reactor.timer());
        drop(theirs);
        // The thread hears of it as it goes round.
        loop {
            let watched = resting.take(&reactor).unwrap();
            if watched.is_readable() {
                break;
            }
            resting = watched.rest().unwrap();
            timer.set_precise(Duration::from_millis(1));
            timer.elapsed().await;
        }
        probe.note("known".to_owned());
    });
    assert_eq!(server.note(), "known");
}

#[test]
fn bytes_are_read_and_written_as_they_come() {
    let server = serve(HttpLimits::default());
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    spawn(&server, |reactor, probe| async move {
        let watched = reactor.watch(OwnedFd::from(ours)).unwrap();
        let mut sum = 0;
        let mut buffer = [0; 1000];
        loop {
            match read(&watched, &mut buffer).await.unwrap() {
                0 => break,
                count => sum += count,
            }
        }
        probe.note(format!("read {sum}"));
        let mut left = 5_000_000;
        while left > 0 {
            left -= write(&watched, &vec![7; left]).await.unwrap();
        }
    });
    for _ in 0..10 {
        theirs.write_all(&[1; 12_345]).unwrap();
    }
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(server.note(), "read 123450");
    let mut all = Vec::new();
    theirs.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 5_000_000);
    assert_eq!(server.connect().ask("/ready").text(), "ready");
}

#[test]
fn a_hang_up_is_noticed_and_bytes_before_it_are_read() {
    let server = serve(HttpLimits::default());
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    spawn(&server, |reactor, probe| async move {
        let watched = reactor.watch(reader).unwrap();
        let mut buffer = [0; 10];
        assert_eq!(read(&watched, &mut buffer).await.unwrap(), 2);
        let is_alive = !watched.is_hung_up();
        assert!(is_alive);
        probe.note("read");
        // Bytes are an event of their own.
        while !watched.is_hung_up() {
            watched.clear_readable();
            poll_fn(|cx| watched.poll_readable(cx)).await;
        }
        assert_eq!(read(&watched, &mut buffer).await.unwrap(), 2);
        assert_eq!(read(&watched, &mut buffer).await.unwrap(), 0);
        let fd = watched.into_fd();
        let again = reactor.watch(fd).unwrap();
        assert_eq!(read(&again, &mut buffer).await.unwrap(), 0);
        probe.note("over");
    });
    rustix::io::write(&writer, b"ab").unwrap();
    assert_eq!(server.note(), "read");
    rustix::io::write(&writer, b"cd").unwrap();
    drop(writer);
    assert_eq!(server.note(), "over");
}

/// Events of watched descriptors since the last look, noted as the loop does.
fn told(thread: &Thread<Dummy>) -> usize {
    let mut events: Vec<epoll::Event> = Vec::with_capacity(8);
    let spare = rustix::buffer::spare_capacity(&mut events);
    epoll::wait(&thread.epoll, spare, Some(&Timespec::default())).unwrap();
    events.retain(|event| event.data.u64() & REACTOR != 0);
    for event in &events {
        let flags = event.flags;
        thread.reactor.note_events(event.data.u64(), flags);
    }
    events.len()
}

#[test]
fn room_to_write_is_told_only_to_who_found_none() {
    let server = serve(HttpLimits::default());
    server.ask(|thread| {
        let (ours, theirs) = pair(&thread.reactor);
        let send_and_read = |text: &[u8]| {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(ours.poll_write(&mut cx, text).is_ready());
            let count = (&theirs).read(&mut [0; 100]).unwrap();
            assert_eq!(count, text.len());
            told(thread)
        };
        assert_eq!(send_and_read(b"one"), 0);
        let mut cx = Context::from_waker(Waker::noop());
        let mut left = 0;
        while let Poll::Ready(count) = ours.poll_write(&mut cx, &[0; 1 << 16]) {
            left += count.unwrap();
        }
        assert_eq!(told(thread), 0);
        while left > 0 {
            left -= (&theirs).read(&mut [0; 1 << 16]).unwrap();
        }
        assert_eq!(told(thread), 1);
        // Asked for until it was told of in vain.
        assert_eq!(send_and_read(b"two"), 1);
        assert_eq!(send_and_read(b"three"), 0);
    });
}

#[test]
fn writing_to_nobody_is_an_error_and_no_wait() {
    let server = serve(HttpLimits::default());
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    spawn(&server, |reactor, probe| async move {
        let watched = reactor.watch(writer).unwrap();
        let error = loop {
            if let Err(error) = write(&watched, &[0; 65_536]).await {
                break error;
            }
            probe.note("written");
        };
        probe.note(error.kind().to_string());
    });
    assert_eq!(server.note(), "written");
    drop(reader);
    assert_eq!(server.note(), "broken pipe");
}

#[test]
fn a_file_cannot_be_watched() {
    let server = serve(HttpLimits::default());
    let error = server.ask(|thread| {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        thread
            .reactor
            .watch(file.into())
            .err()
            .map(|e| e.raw_os_error())
    });
    assert_eq!(error, Some(Some(1)));
}

#[test]
fn events_of_a_descriptor_that_is_gone_reach_no_other() {
    let server = serve(HttpLimits::default());
    server.ask(|thread| {
        let (first, theirs) = pair(&thread.reactor);
        // The event is there, and will be told after the descriptor has gone.
        (&theirs).write_all(b"x").unwrap();
        let twin = rustix::io::dup(first.fd()).unwrap();
        drop(first);
        let (second, other) = pair(&thread.reactor);
        second.clear_readable();
        thread.reactor.spawn(async move {
            let _kept = (twin, theirs, other);
            poll_fn(|cx| second.poll_readable(cx)).await;
            unreachable!("nothing was written to it");
        });
    });
    for _ in 0..3 {
        assert_eq!(server.connect().ask("/ready").text(), "ready");
    }
}

#[test]
fn timers_elapse_in_time_and_in_order() {
    let server = serve(HttpLimits::default());
    let begin = Instant::now();
    spawn(&server, |reactor, probe| async move {
        let [soon, late, moved, cleared] = std::array::from_fn(|_| reactor.timer());
        late.set(Duration::from_millis(350));
        soon.set(Duration::from_millis(50));
        cleared.set(Duration::from_millis(50));
        moved.set(Duration::from_millis(50));
        moved.set(Duration::from_millis(230));
        cleared.clear();
        let begin_ms = reactor.now_ms();
        for (timer, name, least_ms) in [
            (&soon, "soon", 50),
            (&moved, "moved", 230),
            (&late, "late", 350),
        ] {
            timer.elapsed().await;
            let took_ms = reactor.now_ms() - begin_ms;
            assert!(took_ms >= least_ms, "{name} came after {took_ms} ms");
            // It has elapsed until it is set anew.
            timer.elapsed().await;
            probe.note(name);
        }
        let is_silent = poll_fn(|cx| Poll::Ready(cleared.poll_elapsed(cx).is_pending())).await;
        assert!(is_silent, "a cleared timer does not elapse");
        soon.set(Duration::ZERO);
        soon.elapsed().await;
        probe.note("again");
    });
    for name in ["soon", "moved", "late", "again"] {
        assert_eq!(server.note(), name);
    }
    assert!(begin.elapsed() >= Duration::from_millis(350));
}

#[test]
fn precise_timers_end_a_wait_without_a_tick() {
    let server = serve(HttpLimits::default());
    spawn(&server, |reactor, probe| async move {
        let [long, short, gone, cleared] = std::array::from_fn(|_| reactor.timer());
        let begin_ms = reactor.now_ms();
        long.set_precise(Duration::from_millis(9));
        short.set_precise(Duration::from_millis(4));
        cleared.set_precise(Duration::from_millis(4));
        cleared.clear();
        gone.set_precise(Duration::from_millis(1));
        drop(gone);
        // Nothing but the wait itself can wake the thread: no tick is due.
        assert_eq!(reactor.next_timer_ms(), u64::MAX);
        assert_eq!(reactor.wait_ms_max(), Some(4));
        for (timer, name, least_ms) in [(&short, "short", 4), (&long, "long", 9)] {
            timer.elapsed().await;
            let took_ms = reactor.now_ms() - begin_ms;
            assert!(took_ms >= least_ms, "{name} came after {took_ms} ms");
            timer.elapsed().await;
            probe.note(name);
        }
        let is_silent = poll_fn(|cx| Poll::Ready(cleared.poll_elapsed(cx).is_pending())).await;
        assert!(is_silent, "a cleared timer does not elapse");
        assert_eq!(reactor.wait_ms_max(), None);
        // From one kind to the other and back.
        short.set_precise(LONG);
        short.set(LONG);
        assert_eq!(reactor.wait_ms_max(), None);
        short.set_precise(Duration::from_millis(2));
        assert_eq!(reactor.next_timer_ms(), u64::MAX);
        short.elapsed().await;
        probe.note("again");
    });
    for name in ["short", "long", "again"] {
        assert_eq!(server.note(), name);
    }
}

#[test]
fn timers_that_go_leave_nothing_behind() {
    let server = serve(HttpLimits::default());
    server.ask(|thread| {
        let timers: Vec<_> = (0..1000).map(|_| thread.reactor.timer()).collect();
        for (at, timer) in timers.iter().enumerate() {
            match at % 3 {
                0 => timer.set_precise(LONG + Duration::from_millis(at as u64 / 10)),
                _ => timer.set(LONG + Duration::from_millis(at as u64)),
            }
        }
        let next_ms = thread.reactor.next_timer_ms();
        assert!(next_ms >= thread.turn.now_ms + 3_600_000 && next_ms < u64::MAX);
        // The first that is not precise is a millisecond later, and waits up to a tick.
        assert!(next_ms <= thread.turn.now_ms + 3_600_001 + TICK_MS);
        // Out of order, so that others are moved into their places.
        let (even, odd): (Vec<_>, Vec<_>) = timers
            .into_iter()
            .enumerate()
            .partition(|(at, _)| at % 2 == 0);
        drop(even);
        drop(odd);
        assert_eq!(thread.reactor.next_timer_ms(), u64::MAX);
        assert_eq!(thread.reactor.wait_ms_max(), None);
    });
}

#[test]
fn a_wake_on_the_thread_itself_sends_no_letter() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/later");
    assert_eq!(server.note(), "waiting");
    let (is_woken, has_mail) = server.ask(|thread| {
        let mut conn = thread.take_conn(0).unwrap();
        let waker = thread.waker_of(&mut conn);
        thread.keep(conn);
        waker.wake_by_ref();
        waker.wake();
        (!thread.ready.is_empty(), thread.mailbox.has_mail())
    });
    assert!(is_woken && !has_mail);
    // From elsewhere it comes by mail.
    server.gate().open();
    assert_eq!(client.answer().text(), "later");
}

/// Ready at its second look; between them it asks for that by itself.
async fn turn() {
    let mut was_here = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut was_here, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn tasks_wake_themselves_each_other_and_are_woken_from_elsewhere() {
    let server = serve(HttpLimits::default());
    spawn(&server, |reactor, probe| async move {
        let waiting: Rc<RefCell<(bool, Option<Waker>)>> = Rc::default();
        let (theirs, note) = (Rc::clone(&waiting), Arc::clone(&probe));
        reactor.spawn(async move {
            poll_fn(|cx: &mut Context<'_>| {
                let mut waiting = theirs.borrow_mut();
                waiting.1 = Some(cx.waker().clone());
                if waiting.0 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            note.note("second");
        });
        for _ in 0..10 {
            turn().await;
        }
        probe.note("first");
        waiting.borrow_mut().0 = true;
        let waker = waiting.borrow_mut().1.take();
        waker.unwrap().wake();
        Gate::passed(&probe).await;
        probe.note("third");
    });
    assert_eq!(server.note(), "first");
    assert_eq!(server.note(), "second");
    server.gate().open();
    assert_eq!(server.note(), "third");
}

#[test]
fn tasks_without_end_keep_nobody_waiting() {
    let server = serve(HttpLimits::default());
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..TASKS_PER_TURN * 2 {
        let stop = Arc::clone(&stop);
        spawn(&server, |_, _| async move {
            while !stop.load(Ordering::Relaxed) {
                turn().await;
            }
        });
    }
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.ask("/ready").text(), "ready");
    }
    stop.store(true, Ordering::Relaxed);
}

/// Notes its own drop.
struct Tell(Arc<Probe>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

#[test]
fn a_drain_waits_for_tasks() {
    let mut server = serve(HttpLimits::default());
    spawn(&server, |_, probe| async move {
        Gate::passed(&probe).await;
        probe.note("done");
    });
    server.drain(LONG, Duration::ZERO);
    server.ask(|thread| assert!(!thread.must_stop, "it waits"));
    server.gate().open();
    assert_eq!(server.note(), "done");
    server.join();
}

#[test]
fn a_drain_is_told_to_those_who_watch_for_it() {
    let mut server = serve(HttpLimits::default());
    spawn(&server, |reactor, probe| async move {
        let (watch, gone) = (reactor.watch_drain(), reactor.watch_drain());
        assert!(poll_fn(|cx| Poll::Ready(gone.poll_begun(cx).is_pending())).await);
        drop(gone);
        poll_fn(|cx| watch.poll_begun(cx)).await;
        // Who comes later is told at once.
        poll_fn(|cx| reactor.watch_drain().poll_begun(cx)).await;
        probe.note("told");
    });
    server.ask(|_| {});
    server.drain(LONG, Duration::ZERO);
    assert_eq!(server.note(), "told");
    server.join();
}

#[test]
fn at_the_deadline_of_a_drain_tasks_are_dropped() {
    let mut server = serve(HttpLimits::default());
    spawn(&server, |reactor, probe| async move {
        let tell = Tell(probe);
        let (watched, _other) = pair(&reactor);
        let timer = reactor.timer();
        timer.set(LONG);
        read(&watched, &mut [0]).await.unwrap();
        drop((tell, timer));
    });
    server.drain(Duration::from_millis(10), Duration::ZERO);
    server.join();
    assert_eq!(server.note(), "dropped");
}

#[test]
fn a_drain_does_not_wait_for_standing_tasks() {
    let mut server = serve(HttpLimits::default());
    let probe = Arc::clone(&server.probe);
    server.ask(move |thread| {
        let tell = Tell(probe);
        thread.reactor.spawn_standing(async move {
            let _tell = tell;
            std::future::pending().await
        });
    });
    let begin = Instant::now();
    server.drain(LONG, Duration::ZERO);
    server.join();
    assert_eq!(server.note(), "dropped");
    assert!(begin.elapsed() < PATIENCE);
}

#[test]
fn a_drain_waits_for_holds_until_its_deadline() {
    let mut server = serve(HttpLimits::default());
    let (dropped, probe) = (Duration::from_millis(20), Arc::clone(&server.probe));
    server.ask(move |thread| {
        let (hold, timer) = (thread.reactor.hold(), thread.reactor.timer());
        timer.set(dropped);
        thread.reactor.spawn_standing(async move {
            let _tell = Tell(probe);
            timer.elapsed().await;
            drop(hold);
            std::future::pending().await
        });
    });
    let begin = Instant::now();
    server.drain(LONG, Duration::ZERO);
    server.join();
    assert!(begin.elapsed() >= dropped && begin.elapsed() < PATIENCE);

    let mut server = serve(HttpLimits::default());
    server.ask(|thread| {
        let hold = thread.reactor.hold();
        thread.reactor.spawn_standing(async move {
            let _hold = hold;
            std::future::pending().await
        });
    });
    server.drain(dropped, Duration::ZERO);
    server.join();
}

#[test]
fn a_task_spawned_by_a_dropped_task_is_dropped_too() {
    let mut server = serve(HttpLimits::default());
    struct Spawns(Reactor, Arc<Probe>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let tell = Tell(Arc::clone(&self.1));
            self.0.spawn(async move {
                let _tell = tell;
                std::future::pending().await
            });
        }
    }
    spawn(&server, |reactor, probe| async move {
        let _spawns = Spawns(reactor, probe);
        std::future::pending().await
    });
    server.drain(Duration::ZERO, Duration::ZERO);
    server.join();
    assert_eq!(server.note(), "dropped");
}

#[test]
fn an_offline_request_has_a_reactor_that_stands_still() {
    let head = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let request = crate::Request::offline(head, &HttpLimits::default()).unwrap();
    let reactor = request.reactor();
    reactor.spawn(async { unreachable!("nobody runs it") });
    let timer = reactor.timer();
    timer.set(Duration::ZERO);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(timer.poll_elapsed(&mut cx).is_pending());
    assert_eq!(reactor.now_ms(), 0);
    let (watched, mut theirs) = pair(reactor);
    theirs.write_all(b"x").unwrap();
    assert!(matches!(
        watched.poll_read(&mut cx, &mut [0; 2]),
        Poll::Ready(Ok(1))
    ));
    assert!(watched.poll_read(&mut cx, &mut [0; 2]).is_pending());
}

#[test]
fn a_job_may_use_the_reactor_of_its_thread() {
    let server = serve(HttpLimits::default());
    let probe = Arc::clone(&server.probe);
    let is_sent = Handle::new(&server.crew, 0).run(move |thread: &mut Thread<Dummy>| {
        let timer = thread.reactor().timer();
        timer.set(Duration::from_millis(1));
        thread.reactor().spawn(async move {
            timer.elapsed().await;
            probe.note("elapsed");
        });
    });
    assert!(is_sent);
    assert_eq!(server.note(), "elapsed");
}
