//! One screenful as text, for those who have no terminal.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::text::Span;
use rustix::stdio::stdout;
use rustix::termios::tcgetwinsize;

use super::draw::draw;
use super::snapshot::Snapshot;
use super::state::State;
use crate::args::TopOptions;
use crate::control::Hob;
use crate::{Refusal, output};

/// Columns and lines where there is no terminal.
const SIZE: (u16, u16) = (80, 24);

/// Prints it.
pub(super) fn run(hob: &mut Hob, options: &TopOptions) -> Result<(), Refusal> {
    let snapshot = Snapshot::take(hob, State::wanted(options.view))?;
    let mut state = State::new(options, snapshot);
    output::write(&text(&mut state, size()));
    Ok(())
}

fn size() -> (u16, u16) {
    let size = tcgetwinsize(stdout()).map(|size| (size.ws_col, size.ws_row));
    // A line stays for the prompt.
    let known = size
        .ok()
        .filter(|(columns, lines)| *columns > 0 && *lines > 1);
    known.map_or(SIZE, |(columns, lines)| (columns, lines - 1))
}

/// What a screen of that size shows, without colours.
pub(super) fn text(state: &mut State, (width, height): (u16, u16)) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| draw(frame, state));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut next = 0;
        for x in 0..width {
            // Behind a letter that is two columns wide stands a cell of no meaning.
            if x >= next {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                next = x + Span::raw(symbol).width().max(1) as u16;
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
