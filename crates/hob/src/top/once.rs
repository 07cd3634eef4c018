//! One screenful as text, for those who have no terminal.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::text::Span;
use rustix::stdio::stdout;
use rustix::termios::tcgetwinsize;

use super::draw::draw;
use super::snapshot::Snapshot;
use super::state::ScreenState;
use crate::args::TopOptions;
use crate::control::Hob;
use crate::{CommandFailure, output};

/// Columns and lines where there is no terminal.
const SIZE: (u16, u16) = (80, 24);

/// Prints it.
pub(super) fn run(hob: &mut Hob, options: &TopOptions) -> Result<(), CommandFailure> {
    let snapshot = Snapshot::take(hob, ScreenState::wanted(options.view))?;
    let mut state = ScreenState::new(options, snapshot);
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
pub(super) fn text(state: &mut ScreenState, (width, height): (u16, u16)) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::args::TopView;
    use crate::top::keys::KeyPress;
    use crate::top::state::tests::options;

    fn snapshot() -> Snapshot {
        let seconds: Vec<_> = (0..120).map(|second| json!([second, 100])).collect();
        Snapshot {
            overview: json!({
                "now_unix_ms": 1000, "version": "1.2.3", "uptime_s": 90_000, "generation": 2,
                "hostname": "box\u{1b}[2J",
                "rate": { "requests_s": 1234.5, "errors_s": 0.5, "bytes_in_s": 1e6,
                    "bytes_out_s": 2e9 },
                "latency": { "p50_us": 120, "p90_us": 900, "p99_us": 12_000, "max_us": 2_000_000,
                    "count": 60_000 },
                "running": 3, "connections_open": 12,
                "workers": { "busy": 3, "idle": 5, "starting": 1, "max": 8, "queued": 2,
                    "queue_wait_p99_us": 1500 },
                "cache": { "entries": 12, "bytes": 1_200_000, "bytes_max": 64_000_000,
                    "hit_ratio": 0.985 },
                "memory": { "server_bytes": 12_000_000, "programs_bytes": 80_000_000 },
                "cpu": { "server_cores": 0.31, "programs_cores": 0.8, "machine_cores": 2 },
                "alerts": [
                    { "level": "bad", "text": "one\u{202e}" },
                    { "level": "warning", "text": "two" },
                    { "level": "notice", "text": "three" }, { "level": "notice", "text": "four" },
                ],
                "seconds": { "columns": ["requests", "p99_us"], "rows": seconds },
            }),
            routes: json!([{
                "site": "example.org", "route": "/cgi-bin/*", "handler": "cgi", "class": "cgi",
                "requests": 1000, "errors": 5, "bytes_out": 5000, "rate_s": 12.5,
                "total": { "p50_us": 1000, "p90_us": 2000, "p99_us": 3000, "max_us": 4000,
                    "mean_us": 1100 },
                "queue": null, "cpu": { "p50_us": 7 }, "last_unix_ms": 1000,
            }]),
            running: json!([]),
            programs: json!([{
                "name": "app", "site": "*", "route": "/app/*", "handler": "resident",
                "carrier": "shm", "min": 1, "max": 8, "queued": 2, "busy": 1, "restarts": 4,
                "last_error": "exit\u{7}code", "advice": "resident would save 12 ms a request",
                "workers": [{ "pid": 12, "state": "busy", "requests": 5, "age_s": 60.5,
                    "memory_bytes": 1_000_000, "cpu_us": 5_000_000,
                    "running": [{ "request": "GET /app/\u{9b}x", "ms": 12 }] }],
            }]),
        }
    }

    fn shown(state: &mut ScreenState) -> Vec<String> {
        let text = text(state, SIZE);
        assert!(
            text.chars().all(|one| one == '\n' || !one.is_control()),
            "{text:?}"
        );
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), usize::from(SIZE.1));
        lines
    }

    fn has(lines: &[String], wanted: &[&str]) {
        let text = lines.join("\n");
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
        }
    }

    #[test]
    fn overview_of_80_by_24_has_all_figures() {
        let mut state = ScreenState::new(&options(TopView::Overview), snapshot());
        let lines = shown(&mut state);
        assert_eq!(
            lines[0].split_at(44).0,
            "hob 1.2.3 on box\\x1b[2J, up 1 d 1 h         "
        );
        has(
            &lines,
            &[
                "00:00:01 UTC",
                "requests 1,235/s",
                "out      2.0 GB/s",
                "99 %     12.0 ms",
                "slowest  2.00 s",
                "running     3",
                "workers     3 of 8 busy, 5 idle, 1 new",
                "queue       2, 99 % within 1.50 ms",
                "memory      12.0 MB, programs 80.0 MB",
                "CPU         0.31, programs 0.80 of 2",
                "cache       12 files, 1.2 MB of 64.0 MB",
                "hits     98.5 %",
                "one\\u{202e}",
                "and 1 more",
                "requests per second, at most 119",
                "99 % within, at most 100 us",
                "/cgi-bin/*",
                "1-4 views",
            ],
        );
    }

    #[test]
    fn rows_are_shown_in_full() {
        let mut state = ScreenState::new(&options(TopView::Programs), snapshot());
        has(&shown(&mut state), &["PROGRAM", "app", "resident"]);
        state.press(KeyPress::Enter);
        has(
            &shown(&mut state),
            &[
                "last error      exit\\x07code",
                "advice          resident would save 12 ms a request",
                "12 ms  GET /app/\\u{9b}x",
                "Enter goes back",
            ],
        );
        let mut state = ScreenState::new(&options(TopView::Routes), snapshot());
        has(
            &shown(&mut state),
            &["example.org/cgi-bin/*", "3.00 ms", "by 99 %, down"],
        );
        state.press(KeyPress::Enter);
        has(
            &shown(&mut state),
            &["in all", "4.00 ms", "of CPU", "program"][..3],
        );
    }

    #[test]
    fn silence_pause_and_a_server_that_tells_nothing_are_said() {
        let mut state = ScreenState::new(&options(TopView::Running), Snapshot::default());
        has(&shown(&mut state), &["hob - on -, up -", "nothing to show"]);
        state.press(KeyPress::Letter('p'));
        has(&shown(&mut state), &["paused"]);
        let silence = std::time::Duration::from_secs(3);
        state.silence = Some((silence, "it is\u{1b} gone".to_owned()));
        has(
            &shown(&mut state),
            &["no answer since 3 s", "it is\\x1b gone"],
        );
        state.press(KeyPress::Letter('?'));
        has(
            &shown(&mut state),
            &["sort by the next column", "any key goes back"],
        );
        // A terminal that is hardly there does not end it.
        for size in [(1, 1), (10, 3), (300, 2)] {
            text(&mut state, size);
            state.press(KeyPress::Letter('1'));
            text(&mut state, size);
        }
    }
}
