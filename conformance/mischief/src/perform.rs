//! Carrying an act out: its steps one after the other, then waiting for what comes of it.

use std::time::{Duration, Instant};

use super::act::{Act, Allowed, Doing, Layer, Leave, Opening, Reading, Step};
use super::line::{Line, Target, hello};
use super::quic;
use super::reader::Reader;
use super::seen::{End, Seen};

/// Carries an act out.
pub(crate) fn perform(act: &Act, target: &Target) -> Seen {
    match &act.script.doing {
        Doing::Script {
            layer,
            reading,
            steps,
        } => script(*layer, reading, steps, &act.script.allowed, target),
        Doing::Flood(openings) => flood(openings, target),
        Doing::Quic(quic) => quic::perform(quic, target),
    }
}

fn script(
    layer: Layer,
    reading: &Reading,
    steps: &[Step],
    allowed: &Allowed,
    target: &Target,
) -> Seen {
    let mut line = match Line::open(target) {
        Ok(line) => line,
        Err(error) => return Seen::only(End::NoConnection(error.to_string())),
    };
    if layer == Layer::Usual
        && let Err(why) = line.secure(target)
    {
        return Seen::only(End::NoConnection(why));
    }
    if let Layer::Hello(share) = layer {
        let hello = hello(target);
        line.push(&hello[..hello.len() * usize::from(share) / 256]);
        line.flush(Instant::now() + target.timeout, |_| {});
    }
    let mut reader = Reader::new(reading);
    for step in steps {
        if line.ended.is_some() || reader.is_bad() {
            break;
        }
        if let Step::Leave(leave) = step {
            line.leave(*leave);
            return reader.seen(End::Left);
        }
        make(step, &mut line, &mut reader, target.timeout);
    }
    settle(line, reader, allowed, target.timeout)
}

fn make(step: &Step, line: &mut Line, reader: &mut Reader, timeout: Duration) {
    let until = Instant::now() + timeout;
    match step {
        Step::Send(bytes) => {
            line.push(bytes);
            // A server that reads no more has said why, or is found to hang.
            line.flush(until, |bytes| reader.take(bytes));
        }
        Step::Drip { bytes, pause } => {
            for byte in bytes {
                line.push(&[*byte]);
                line.flush(until, |bytes| reader.take(bytes));
                let next = Instant::now() + *pause;
                while line.ended.is_none()
                    && line.turn(next, usize::MAX, |bytes| reader.take(bytes))
                {}
                if line.ended.is_some() {
                    return;
                }
            }
        }
        Step::Sip { byte_count, pause } => {
            for _ in 0..*byte_count {
                let is_there = line.turn(until, 1, |bytes| reader.take(bytes));
                if !is_there || line.ended.is_some() || reader.is_kept_after(1) {
                    return;
                }
                std::thread::sleep(*pause);
            }
        }
        Step::Await => {
            while !reader.has_something() && line.ended.is_none() {
                if !line.turn(until, usize::MAX, |bytes| reader.take(bytes)) {
                    return;
                }
            }
        }
        Step::Strip => line.strip(),
        Step::HalfClose => line.half_close(until, |bytes| reader.take(bytes)),
        Step::Leave(_) => {}
    }
}

/// Reads until the connection ends. Where all answers are there and it could go on, we end our
/// direction: nothing else may come.
fn settle(mut line: Line, mut reader: Reader, allowed: &Allowed, timeout: Duration) -> Seen {
    let mut until = Instant::now() + timeout;
    let mut was_kept = false;
    let end = loop {
        if let Some(ended) = line.ended {
            break ended.into();
        }
        if reader.is_bad() || reader.is_done() {
            break End::Left;
        }
        if !line.is_half_closed && reader.is_kept_after((*allowed.answers.end()).max(1)) {
            was_kept = true;
            until = Instant::now() + timeout;
            line.half_close(until, |bytes| reader.take(bytes));
            continue;
        }
        if !line.turn(until, usize::MAX, |bytes| reader.take(bytes)) {
            break End::Hung;
        }
    };
    let mut seen = reader.seen(end);
    seen.was_kept = was_kept;
    seen
}

/// Opens connections, sends, and leaves them, each in a row.
fn flood(openings: &[(Opening, Leave)], target: &Target) -> Seen {
    let mut lines = Vec::new();
    for (opening, leave) in openings {
        match Line::open(target) {
            Ok(line) => lines.push((line, opening, *leave)),
            Err(error) => return Seen::only(End::NoConnection(error.to_string())),
        }
    }
    let until = Instant::now() + target.timeout;
    let hello = hello(target);
    for (line, opening, _) in &mut lines {
        line.push(match opening {
            Opening::Bytes(bytes) => bytes,
            Opening::Hello => &hello,
        });
        line.flush(until, |_| {});
    }
    for (line, _, leave) in lines {
        line.leave(leave);
    }
    Seen::only(End::Left)
}
