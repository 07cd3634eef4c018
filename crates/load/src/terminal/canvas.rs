//! A screen that is drawn on until its owner has done with it, or a signal takes it away.

use ratatui::{Frame, Terminal};

use super::own::Own;
use super::signals::{SignalAction, TerminalSignals};

/// The terminal on standard error, as something to draw on. It is given back when this is dropped.
pub struct Canvas {
    terminal: Terminal<Own>,
    signals: TerminalSignals,
}

impl Canvas {
    /// Takes the terminal; none where there is none, or where it is somebody else's.
    pub fn take() -> Option<Canvas> {
        let signals = TerminalSignals::listen().ok()?;
        Some(Canvas {
            terminal: Terminal::new(Own::take()?).ok()?,
            signals,
        })
    }

    /// Does what signals have asked for since: stops this process or ends it, and has everything
    /// drawn again once it goes on. The terminal is the shell's meanwhile. Says whether there was
    /// something to do.
    pub fn obey(&mut self) -> bool {
        let mut is_asked = false;
        while let Some(asked) = self.signals.next() {
            is_asked = true;
            let own = self.terminal.backend_mut();
            match asked {
                SignalAction::Stop => {
                    own.leave();
                    self.signals.stop();
                }
                SignalAction::GoOn => own.lose(),
                SignalAction::End(signal) => {
                    own.leave();
                    self.signals.end(signal);
                }
            }
        }
        is_asked
    }

    /// Is something shown? Not in the background, nor before the first drawing.
    pub fn is_shown(&self) -> bool {
        self.terminal.backend().is_ours()
    }

    /// Draws what has changed; false when the terminal is gone. Nothing is drawn in the background.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> bool {
        if !self.terminal.backend().is_ours() {
            if !self.terminal.backend_mut().enter() {
                // In the background: it may come back.
                return true;
            }
            if self.terminal.clear().is_err() {
                return false;
            }
        }
        let drawn = self.terminal.draw(draw).is_ok();
        drawn && ratatui::backend::Backend::flush(self.terminal.backend_mut()).is_ok()
    }
}
