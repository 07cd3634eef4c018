//! A worker that is killed between any two of its instructions: requests it had not started can be
//! taken back, those it had started are told apart, what it had published is whole, and the
//! server's end goes on working.
//!
//! The worker is single-stepped (ptrace) through its answers to a few requests, and killed after
//! so many steps; the whole way is divided among the runs.
#![allow(unsafe_code, clippy::unwrap_used)]

mod pair;

use std::process::Child;

use hob_ipc::message::{LAST, MessageKind};
use hob_ipc::shm::WorkerPayload;

use pair::Pair;

/// How many places of the way the worker is killed at.
const KILLS: u64 = 24;
const REQUESTS: u32 = 2;

/// Not a test of its own: what the other process runs.
#[test]
fn worker_process() {
    pair::run_if_worker();
}

#[test]
fn a_worker_killed_at_any_instruction_loses_only_what_it_had_started() {
    let whole = run(u64::MAX).steps;
    assert!(whole > 1000, "{whole} steps for {REQUESTS} requests");
    let mut seen = [0; REQUESTS as usize + 1];
    for kill in 0..KILLS {
        let outcome = run(whole * kill / KILLS);
        assert_eq!(
            outcome.answered + outcome.lost + outcome.taken_back,
            REQUESTS
        );
        assert!(outcome.lost <= 1, "one request at a time is under way");
        seen[outcome.taken_back as usize] += 1;
    }
    // All requests back at the beginning, then fewer and fewer.
    assert!(seen.iter().all(|&count| count > 0), "taken back: {seen:?}");
}

struct Outcome {
    steps: u64,
    answered: u32,
    lost: u32,
    taken_back: u32,
}

/// Hands requests over, lets the worker do so many instructions, and kills it.
fn run(steps_max: u64) -> Outcome {
    let mut pair = Pair::start("step");
    // The worker has said that it is ready; from here on it only waits.
    let (ready, _) = pair.next();
    assert_eq!(ready.kind, MessageKind::Callout);
    let slots: Vec<_> = (1..=REQUESTS)
        .map(|request| pair.end.hand(request, LAST, &[b'q'; 300]).unwrap())
        .collect();
    let tracee = Tracee::stop(&pair.child);
    pair.end.flush();
    let mut steps = 0;
    let mut answered = 0;
    // With nothing left to do it would sleep.
    while steps < steps_max && answered < REQUESTS {
        tracee.step();
        steps += 1;
        answered += count_answers(&mut pair);
    }
    pair.child.kill().unwrap();
    tracee.reap();
    pair.child.wait().unwrap();
    answered += count_answers(&mut pair);
    let (mut lost, mut taken_back) = (0, 0);
    for (place, slot) in slots.iter().enumerate() {
        if pair.end.take_back(*slot) {
            taken_back += 1;
            assert!(!pair.end.take_back(*slot));
        } else {
            assert!(pair.end.is_started(*slot));
            lost += u32::from(place as u32 >= answered);
            pair.end.release(*slot);
        }
    }
    // Nothing wedges: with nobody there, the ring takes what it can and says when it is full.
    let mut handed = 0;
    while handed < 64 && pair.end.hand(100, LAST, &[0; 9000]).is_ok() {
        handed += 1;
    }
    assert!(handed >= 20, "every slot is free again");
    pair.end.flush();
    assert!(!pair.end.fall_asleep());
    pair.end.wake_up();
    Outcome {
        steps,
        answered,
        lost,
        taken_back,
    }
}

/// Takes all messages; says how many answers came to their end. Each of them is whole.
fn count_answers(pair: &mut Pair) -> u32 {
    let mut answers = 0;
    while let Some(incoming) = pair.end.pop().expect("a killed worker does not lie") {
        match incoming.head.kind {
            MessageKind::Head => {
                assert!(matches!(
                    incoming.payload,
                    WorkerPayload::Bytes(b"Content-Type: text/plain\n")
                ));
            }
            MessageKind::Data => {
                let mut copy = Vec::new();
                match incoming.payload {
                    WorkerPayload::Bytes(bytes) => copy.extend_from_slice(bytes),
                    WorkerPayload::Chunk(chunk) => chunk.copy_to(&mut copy),
                }
                assert!(copy == [b'q'; 300] || copy == [b'c'; 600], "data is whole");
            }
            kind => panic!("{kind:?}"),
        }
        answers += u32::from(incoming.head.is_last());
    }
    answers
}

/// A thread of another process that this thread traces.
struct Tracee(libc::pid_t);

impl Tracee {
    /// Takes hold of the thread that runs the worker, and stops it.
    fn stop(child: &Child) -> Tracee {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let worker = tasks
            .map(|task| task.unwrap().path())
            .find(|task| std::fs::read(task.join("comm")).unwrap() == b"worker_process\n")
            .expect("the test runs in a thread of its name");
        let id = worker.file_name().unwrap().to_str().unwrap();
        let tracee = Tracee(id.parse().unwrap());
        tracee.request(libc::PTRACE_SEIZE);
        tracee.request(libc::PTRACE_INTERRUPT);
        assert!(libc::WIFSTOPPED(tracee.wait()));
        tracee
    }

    /// Lets it do one instruction.
    fn step(&self) {
        self.request(libc::PTRACE_SINGLESTEP);
        let status = self.wait();
        assert!(libc::WIFSTOPPED(status), "it waits for us: {status:#x}");
    }

    /// After its process was killed.
    fn reap(&self) {
        while libc::WIFSTOPPED(self.wait()) {}
    }

    fn request(&self, request: libc::c_uint) {
        // SAFETY: none of these requests reads or writes memory of ours.
        let result = unsafe { libc::ptrace(request, self.0, 0, 0) };
        assert!(result >= 0, "{}", std::io::Error::last_os_error());
    }

    fn wait(&self) -> i32 {
        let mut status = 0;
        // SAFETY: a place for a status.
        let pid = unsafe { libc::waitpid(self.0, &mut status, libc::__WALL) };
        assert_eq!(pid, self.0);
        status
    }
}
