//! The terminal on standard error, as ratatui draws on it: a few control sequences, no more.
//!
//! Nothing is read from it, so Ctrl-C stays the signal it is; only the echo of what is typed is
//! turned off while something is shown.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use rustix::process::getpgrp;
use rustix::stdio::stderr;
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

/// Another screen than that of the shell, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal while it belongs to us. It is given back when this is dropped.
pub(super) struct Own {
    /// How it was, and is to be again.
    before: Termios,
    text: String,
    is_ours: bool,
}

impl Own {
    /// Takes the terminal; not when this process is in the background, where it is somebody else's.
    pub(super) fn take() -> Option<Own> {
        let mut own = Own {
            before: tcgetattr(stderr()).ok()?,
            text: String::new(),
            is_ours: false,
        };
        own.enter().then_some(own)
    }

    /// Takes it again after it was left or lost; false while it is somebody else's.
    pub(super) fn enter(&mut self) -> bool {
        if tcgetpgrp(stderr()).ok() != Some(getpgrp()) {
            return false;
        }
        let mut quiet = self.before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON);
        self.text = ENTER.to_owned();
        self.is_ours = tcsetattr(stderr(), OptionalActions::Now, &quiet).is_ok();
        self.is_ours && self.flush().is_ok()
    }

    /// Gives it back.
    pub(super) fn leave(&mut self) {
        if !self.is_ours {
            return;
        }
        self.is_ours = false;
        self.text = LEAVE.to_owned();
        // A terminal that is gone needs nothing.
        let _ = self.flush();
        let _ = tcsetattr(stderr(), OptionalActions::Now, &self.before);
    }

    /// This process was stopped: whoever had the terminal meanwhile has left nothing of ours.
    pub(super) fn lose(&mut self) {
        self.is_ours = false;
    }

    pub(super) fn is_ours(&self) -> bool {
        self.is_ours
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Own {
    /// Writing to a string does not fail.
    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(text);
    }
}

impl Backend for Own {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut style = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.add(format_args!("\x1b[{};{}H", y + 1, x + 1));
            }
            let wanted = (cell.fg, cell.modifier);
            if style != Some(wanted) {
                let has = |modifier, code| match cell.modifier.contains(modifier) {
                    true => code,
                    false => "",
                };
                let bold = has(Modifier::BOLD, ";1");
                let reversed = has(Modifier::REVERSED, ";7");
                let colour = code_of(cell.fg);
                self.add(format_args!("\x1b[0{bold}{reversed};{colour}m"));
                style = Some(wanted);
            }
            self.text.push_str(cell.symbol());
            next = Some((x + 1, y));
        }
        self.add(format_args!("\x1b[0m"));
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.add(format_args!("\x1b[{};{}H", y + 1, x + 1));
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.add(format_args!("\x1b[2J"));
        Ok(())
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.text.push_str(match region {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(stderr())?;
        // Terminals that do not know their size are as large as the first ones were.
        Ok(match (size.ws_col, size.ws_row) {
            (0, _) | (_, 0) => Size::new(80, 24),
            (columns, rows) => Size::new(columns, rows),
        })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::new(0, 0),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stderr().lock();
        out.write_all(self.text.as_bytes())?;
        self.text.clear();
        out.flush()
    }
}

/// The few colours that are used.
fn code_of(colour: Color) -> u8 {
    match colour {
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::DarkGray => 90,
        _ => 39,
    }
}
