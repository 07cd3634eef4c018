//! The screen: draws what is new, reads keys, and has a thread of its own ask the server, so that
//! one that does not answer holds nothing up.

use std::io::{IsTerminal, Read, Write, stdin};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hob_load::terminal::Canvas;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use super::draw::draw;
use super::keys::keys;
use super::snapshot::Snapshot;
use super::state::{Deed, ScreenState};
use crate::CommandFailure;
use crate::args::{TopOptions, TopView};
use crate::control::Hob;
use crate::history::find_one;

/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often a screen on which nothing happens is drawn: it says how long nothing has.
const DRAW_PERIOD: Duration = Duration::from_secs(1);
/// Bytes of keys that are read at once.
const KEY_BYTES: usize = 1024;

/// Shows it until it is told to end.
pub(super) fn run(mut hob: Hob, options: &TopOptions) -> Result<(), CommandFailure> {
    let refused = |text: &str| CommandFailure {
        code: 1,
        text: text.to_owned(),
    };
    // What there is to refuse is refused before there is a screen.
    let snapshot = Snapshot::take(&mut hob, ScreenState::wanted(options.view))?;
    let is_stopped = hob_load::stop_at_signals().map_err(|error| refused(&error.to_string()))?;
    let canvas = Canvas::take().ok_or_else(|| {
        refused("standard error is no terminal of ours; --once and --json need none")
    })?;
    let asker = Asker::start(hob).map_err(|error| refused(&error.to_string()))?;
    let now = Instant::now();
    let screen = Screen {
        canvas,
        asker,
        state: ScreenState::new(options, snapshot),
        delay: options.delay,
        is_stopped,
        has_keys: stdin().is_terminal(),
        answered: now,
        drawn: None,
        next: now + options.delay,
        is_asking: false,
    };
    screen.run()
}

struct Screen {
    canvas: Canvas,
    asker: Asker,
    state: ScreenState,
    delay: Duration,
    is_stopped: Arc<AtomicBool>,
    has_keys: bool,
    /// When the server last answered.
    answered: Instant,
    /// When the screen was last drawn; none when it must be again.
    drawn: Option<Instant>,
    /// When the server is to be asked next.
    next: Instant,
    is_asking: bool,
}

impl Screen {
    fn run(mut self) -> Result<(), CommandFailure> {
        while !self.is_stopped.load(Ordering::Relaxed) {
            if self.canvas.obey() {
                self.drawn = None;
            }
            while let Ok(said) = self.asker.said.try_recv() {
                self.take(said);
            }
            self.ask();
            if self
                .drawn
                .is_none_or(|drawn| drawn.elapsed() >= DRAW_PERIOD)
            {
                self.count_silence();
                self.drawn = Some(Instant::now());
                let state = &mut self.state;
                if !self.canvas.draw(|frame| draw(frame, state)) {
                    break;
                }
            }
            if self.wait() == Deed::Quit {
                break;
            }
        }
        Ok(())
    }

    /// Asks for what is due, one thing after the other; nothing while nobody looks.
    fn ask(&mut self) {
        if self.is_asking || !self.canvas.is_shown() && self.drawn.is_some() {
            return;
        }
        if let Some(id) = self.state.missing() {
            self.is_asking = self.asker.ask(ScreenQuery::Request(id.to_owned()));
        } else if !self.state.is_paused && Instant::now() >= self.next {
            self.next = Instant::now() + self.delay;
            self.is_asking = self.asker.ask(ScreenQuery::Look(self.state.view));
        }
    }

    fn take(&mut self, said: ScreenReply) {
        self.is_asking = false;
        self.drawn = None;
        match said {
            ScreenReply::Look(view, Ok(snapshot)) => {
                self.answered = Instant::now();
                self.state.take(view, snapshot);
            }
            ScreenReply::Look(_, Err(why)) => {
                let silence = self.answered.elapsed();
                self.state.silence = Some((silence, why));
            }
            ScreenReply::Request(request) => self.state.finished = Some(request),
        }
    }

    /// A server that is asked and does not answer is silent too.
    fn count_silence(&mut self) {
        let silence = self.answered.elapsed();
        let is_late = self.is_asking && silence > self.delay + DRAW_PERIOD;
        if is_late || self.state.silence.is_some() {
            let why = self.state.silence.take().map(|(_, why)| why);
            self.state.silence = Some((silence, why.unwrap_or_default()));
        }
    }

    /// Waits for a key, an answer, a signal, or until something is due.
    fn wait(&mut self) -> Deed {
        let due = self.next.saturating_duration_since(Instant::now());
        let patience = match self.is_asking || self.state.is_paused {
            true => PATIENCE,
            false => due.min(PATIENCE),
        };
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        let keys_in = stdin();
        let mut polled = vec![PollFd::new(&self.asker.bell, PollFlags::IN)];
        // In the background a read would stop this process.
        if self.has_keys && self.canvas.is_shown() {
            polled.push(PollFd::new(&keys_in, PollFlags::IN));
        }
        if !matches!(poll(&mut polled, Some(&limit)), Ok(1..)) {
            return Deed::Nothing;
        }
        let is_rung = !polled[0].revents().is_empty();
        let is_pressed = polled.get(1).is_some_and(|one| !one.revents().is_empty());
        if is_rung {
            // Once for every answer.
            let _ = self.asker.bell.read(&mut [0; 16]);
        }
        if is_pressed {
            return self.press();
        }
        Deed::Nothing
    }

    fn press(&mut self) -> Deed {
        let mut bytes = [0; KEY_BYTES];
        // A signal may have come first.
        let Ok(count) = rustix::io::read(stdin(), &mut bytes) else {
            return Deed::Nothing;
        };
        self.has_keys = count > 0;
        for key in keys(&bytes[..count]) {
            match self.state.press(key) {
                Deed::Nothing => {}
                Deed::Look => self.next = Instant::now(),
                Deed::Quit => return Deed::Quit,
            }
        }
        self.drawn = None;
        Deed::Nothing
    }
}

/// What is asked for.
enum ScreenQuery {
    Look(TopView),
    /// A request by its id.
    Request(String),
}

/// What came of it.
enum ScreenReply {
    Look(TopView, Result<Snapshot, String>),
    Request(Value),
}

/// The thread that asks. It ends with the program: it may be waiting for an answer.
struct Asker {
    asks: Sender<ScreenQuery>,
    said: Receiver<ScreenReply>,
    /// Gets a byte for every answer.
    bell: UnixStream,
}

impl Asker {
    fn start(mut hob: Hob) -> std::io::Result<Asker> {
        let (asks, asked) = channel();
        let (says, said) = channel();
        let (bell, mut rope) = UnixStream::pair()?;
        let name = "hob-top-asks".to_owned();
        thread::Builder::new().name(name).spawn(move || {
            while let Ok(ask) = asked.recv() {
                let answer = match ask {
                    ScreenQuery::Look(view) => {
                        let looked = Snapshot::take(&mut hob, ScreenState::wanted(view));
                        ScreenReply::Look(view, looked.map_err(|refusal| refusal.text))
                    }
                    ScreenQuery::Request(id) => {
                        let gone = serde_json::json!({ "id": id });
                        ScreenReply::Request(find_one(&mut hob, &id).unwrap_or(gone))
                    }
                };
                if says.send(answer).is_err() || rope.write_all(&[0]).is_err() {
                    return;
                }
            }
        })?;
        Ok(Asker { asks, said, bell })
    }

    /// True when it will be answered.
    fn ask(&self, ask: ScreenQuery) -> bool {
        self.asks.send(ask).is_ok()
    }
}
