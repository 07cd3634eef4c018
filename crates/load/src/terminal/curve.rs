//! How a figure has changed, as bars beside each other.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::{Block, Borders, Sparkline};

/// The last values as bars, as many as there is room for, with the highest in the title.
pub fn curve(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    values: &[u64],
    shown: impl Fn(u64) -> String,
    colour: Color,
) {
    let from = values.len().saturating_sub(usize::from(area.width));
    let values = &values[from..];
    let most = values.iter().copied().max().unwrap_or(0);
    let title = format!("{name}, at most {}", shown(most));
    let block = Block::new().borders(Borders::TOP).title(title);
    let bars = Sparkline::default().block(block).data(values);
    frame.render_widget(bars.style(Style::new().fg(colour)), area);
}
