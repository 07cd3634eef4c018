//! What the screen shows and how keys change it. Nothing here has a terminal, a socket or a clock.

use std::time::Duration;

use serde_json::Value;

use super::keys::KeyPress;
use super::rows::{Sort, ViewRows, column_count};
use super::snapshot::{Snapshot, SnapshotSelection};
use crate::args::{TopOptions, TopView};
use crate::facts::JsonView;

/// Longest filter, in characters.
const FILTER_LENGTH_MAX: usize = 60;
/// Rows that a page of keys goes.
const PAGE: usize = 10;
/// From when on a server that does not answer is said not to.
const SILENT: Duration = Duration::from_secs(2);
/// The views, in the order of their keys.
pub(crate) const VIEWS: [TopView; 4] = [
    TopView::Overview,
    TopView::Programs,
    TopView::Running,
    TopView::Routes,
];

/// What keys mean at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They choose what is shown.
    Browse,
    /// They are the filter's letters.
    Filter,
    /// What they do is shown.
    Help,
    /// One row is shown in full, from this line on.
    Detail { name: String, line: usize },
}

/// What is to be done beside drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Nothing,
    /// Ask the server at once: something else is wanted of it.
    Look,
    Quit,
}

/// The state of a screen.
pub(crate) struct ScreenState {
    pub(crate) view: TopView,
    pub(crate) mode: Mode,
    pub(crate) filter: String,
    pub(crate) is_paused: bool,
    pub(crate) snapshot: Snapshot,
    /// A request that was shown in full while it ran, as it ended.
    pub(crate) finished: Option<Value>,
    /// Since when the server has not answered, and why.
    pub(crate) silence: Option<(Duration, String)>,
    sorts: [Sort; 4],
    /// The row that keys are about.
    selected: Option<String>,
    selected_index: usize,
}

impl ScreenState {
    pub(crate) fn new(options: &TopOptions, snapshot: Snapshot) -> ScreenState {
        ScreenState {
            view: options.view,
            mode: Mode::Browse,
            filter: options.filter.clone(),
            is_paused: false,
            snapshot,
            finished: None,
            silence: None,
            sorts: VIEWS.map(Sort::usual),
            selected: None,
            selected_index: 0,
        }
    }

    /// What is to be asked for at the next look.
    pub(crate) fn wanted(view: TopView) -> SnapshotSelection {
        SnapshotSelection {
            programs: view == TopView::Programs,
            running: view == TopView::Running,
            routes: matches!(view, TopView::Overview | TopView::Routes),
        }
    }

    /// What the server told at a look for that view.
    pub(crate) fn take(&mut self, view: TopView, snapshot: Snapshot) {
        self.silence = None;
        if view == self.view {
            self.snapshot = snapshot;
            self.follow();
        } else {
            self.snapshot.overview = snapshot.overview;
        }
    }

    /// How long the server has been silent, once that is worth saying.
    pub(crate) fn silent_s(&self) -> Option<u64> {
        let (since, _) = self.silence.as_ref()?;
        (*since >= SILENT).then_some(since.as_secs())
    }

    /// Why it is silent, where that is known.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.silent_s()?;
        let (_, why) = self.silence.as_ref()?;
        (!why.is_empty()).then_some(why)
    }

    /// A request that is shown in full, no longer runs, and whose end is not known yet.
    pub(crate) fn missing(&self) -> Option<&str> {
        let Mode::Detail { name, .. } = &self.mode else {
            return None;
        };
        let is_known = |value: &Value| JsonView(value).text("id") == Some(name);
        let is_running = JsonView(&self.snapshot.running).each_item();
        let is_running = is_running.map(|one| one.0).any(is_known);
        let is_there = is_running || self.finished.as_ref().is_some_and(is_known);
        (self.view == TopView::Running && !is_there).then_some(name)
    }

    /// What the view is sorted by.
    pub(crate) fn sort(&self) -> Sort {
        self.sorts[self.place()]
    }

    /// The rows that are shown, in order.
    pub(crate) fn rows(&self) -> ViewRows<'_> {
        let mut rows = ViewRows::of(self.view, &self.snapshot);
        rows.arrange(self.sort(), &self.filter);
        rows
    }

    /// Which of them is selected.
    pub(crate) fn selected(&self, rows: &ViewRows<'_>) -> Option<usize> {
        let last = rows.subjects.len().checked_sub(1)?;
        let named = self
            .selected
            .as_deref()
            .and_then(|name| rows.index_of(name));
        Some(named.unwrap_or(self.selected_index.min(last)))
    }

    /// Does what a key asks for.
    pub(crate) fn press(&mut self, key: KeyPress) -> Deed {
        match self.mode {
            Mode::Browse => self.browse(key),
            Mode::Filter => self.edit(key),
            Mode::Help => {
                self.mode = Mode::Browse;
                match key {
                    KeyPress::Letter('q') => Deed::Quit,
                    _ => Deed::Nothing,
                }
            }
            Mode::Detail { .. } => self.read(key),
        }
    }

    fn browse(&mut self, key: KeyPress) -> Deed {
        match key {
            KeyPress::Letter('q') => return Deed::Quit,
            KeyPress::Letter(digit @ '1'..='4') => {
                return self.show(VIEWS[digit as usize - '1' as usize]);
            }
            KeyPress::Next => return self.show(VIEWS[(self.place() + 1) % VIEWS.len()]),
            KeyPress::Previous => {
                return self.show(VIEWS[(self.place() + VIEWS.len() - 1) % VIEWS.len()]);
            }
            KeyPress::Letter('s') => {
                let sort = &mut self.sorts[place(self.view)];
                sort.column = (sort.column + 1) % column_count(self.view);
            }
            KeyPress::Letter('r') => {
                let sort = &mut self.sorts[place(self.view)];
                sort.is_falling = !sort.is_falling;
            }
            KeyPress::Letter('/') => self.mode = Mode::Filter,
            KeyPress::Letter('p' | ' ') => self.is_paused = !self.is_paused,
            KeyPress::Letter('?' | 'h') => self.mode = Mode::Help,
            KeyPress::Escape => self.filter.clear(),
            KeyPress::Enter => self.open(),
            key => self.go(key),
        }
        Deed::Nothing
    }

    fn show(&mut self, view: TopView) -> Deed {
        self.view = view;
        self.selected = None;
        self.selected_index = 0;
        Deed::Look
    }

    /// Shows the selected row in full; a route of the overview too.
    fn open(&mut self) {
        let rows = self.rows();
        let Some(index) = self.selected(&rows) else {
            return;
        };
        let name = rows.subjects[index].0.clone();
        self.selected = Some(name.clone());
        self.finished = None;
        self.mode = Mode::Detail { name, line: 0 };
    }

    fn go(&mut self, key: KeyPress) {
        let rows = self.rows();
        let (Some(index), Some(last)) = (self.selected(&rows), rows.subjects.len().checked_sub(1))
        else {
            return;
        };
        let index = moved(key, index, last);
        self.selected = Some(rows.subjects[index].0.clone());
        self.selected_index = index;
    }

    /// The selected row may have gone: the one in its place is selected then.
    fn follow(&mut self) {
        let rows = self.rows();
        if let Some(index) = self.selected(&rows) {
            let is_named = self.selected.is_some();
            let name = rows.subjects[index].0.clone();
            self.selected_index = index;
            self.selected = is_named.then_some(name);
        }
    }

    fn edit(&mut self, key: KeyPress) -> Deed {
        match key {
            KeyPress::Enter => self.mode = Mode::Browse,
            KeyPress::Escape => {
                self.filter.clear();
                self.mode = Mode::Browse;
            }
            KeyPress::Backspace => {
                self.filter.pop();
            }
            KeyPress::Letter(letter) if self.filter.chars().count() < FILTER_LENGTH_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
        Deed::Nothing
    }

    fn read(&mut self, key: KeyPress) -> Deed {
        let Mode::Detail { line, .. } = &mut self.mode else {
            return Deed::Nothing;
        };
        match key {
            KeyPress::Letter('q') => return Deed::Quit,
            KeyPress::Enter | KeyPress::Escape | KeyPress::Backspace => self.mode = Mode::Browse,
            KeyPress::Letter('p' | ' ') => self.is_paused = !self.is_paused,
            KeyPress::Letter(digit @ '1'..='4') => {
                self.mode = Mode::Browse;
                return self.show(VIEWS[digit as usize - '1' as usize]);
            }
            // Where the text ends is known where it is drawn.
            key => *line = moved(key, *line, usize::from(u16::MAX)),
        }
        Deed::Nothing
    }

    /// The lines there are end here.
    pub(crate) fn keep_line_within(&mut self, last: usize) {
        if let Mode::Detail { line, .. } = &mut self.mode {
            *line = (*line).min(last);
        }
    }

    fn place(&self) -> usize {
        place(self.view)
    }
}

fn place(view: TopView) -> usize {
    VIEWS.iter().position(|one| *one == view).unwrap_or(0)
}

/// Where a key goes from here.
fn moved(key: KeyPress, index: usize, last: usize) -> usize {
    match key {
        KeyPress::Up | KeyPress::Letter('k') => index.saturating_sub(1),
        KeyPress::Down | KeyPress::Letter('j') => (index + 1).min(last),
        KeyPress::PageUp => index.saturating_sub(PAGE),
        KeyPress::PageDown => (index + PAGE).min(last),
        KeyPress::First | KeyPress::Letter('g') => 0,
        KeyPress::Last | KeyPress::Letter('G') => last,
        _ => index,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::args::ControlOptions;

    pub(crate) fn options(view: TopView) -> TopOptions {
        TopOptions {
            control: ControlOptions {
                control: None,
                config: None,
                json: false,
            },
            delay: Duration::from_secs(1),
            view,
            filter: String::new(),
            once: false,
        }
    }

    fn running(ids: &[(&str, u64)]) -> Snapshot {
        let requests = ids
            .iter()
            .map(|(id, age)| json!({ "id": id, "age_us": age }));
        Snapshot {
            running: requests.collect(),
            ..Snapshot::default()
        }
    }

    fn state() -> ScreenState {
        let snapshot = running(&[("1.1.0", 10), ("1.2.0", 30), ("1.3.0", 20)]);
        ScreenState::new(&options(TopView::Running), snapshot)
    }

    fn selected(state: &ScreenState) -> Option<String> {
        let rows = state.rows();
        let index = state.selected(&rows)?;
        Some(rows.subjects[index].0.clone())
    }

    fn press(state: &mut ScreenState, keys: &str) {
        for key in keys.chars() {
            state.press(KeyPress::Letter(key));
        }
    }

    #[test]
    fn selection_stays_with_its_row_and_moves_on_when_that_goes() {
        let mut state = state();
        assert_eq!(selected(&state).as_deref(), Some("1.2.0"));
        press(&mut state, "j");
        assert_eq!(selected(&state).as_deref(), Some("1.3.0"));
        let next = running(&[("1.1.0", 40), ("1.2.0", 60), ("1.3.0", 50), ("1.4.0", 99)]);
        state.take(TopView::Running, next);
        assert_eq!(selected(&state).as_deref(), Some("1.3.0"));
        state.take(TopView::Running, running(&[("1.1.0", 40), ("1.2.0", 60)]));
        assert_eq!(selected(&state).as_deref(), Some("1.1.0"));
        state.take(TopView::Running, running(&[]));
        assert_eq!(selected(&state), None);
        press(&mut state, "jkgG");
        state.press(KeyPress::Enter);
        assert_eq!(state.mode, Mode::Browse);
    }

    #[test]
    fn keys_sort_reverse_filter_and_pause() {
        let mut state = state();
        press(&mut state, "r");
        assert_eq!(selected(&state).as_deref(), Some("1.1.0"));
        press(&mut state, "/3.0");
        assert_eq!(
            (state.rows().subjects.len(), state.filter.as_str()),
            (1, "3.0")
        );
        // Letters are letters there.
        press(&mut state, "q");
        assert_eq!(state.rows().subjects.len(), 0);
        state.press(KeyPress::Backspace);
        state.press(KeyPress::Enter);
        assert_eq!((&state.mode, state.filter.as_str()), (&Mode::Browse, "3.0"));
        state.press(KeyPress::Escape);
        assert_eq!(state.filter, "");
        let column = state.sort().column;
        press(&mut state, "s");
        assert_eq!(state.sort().column, column + 1);
        press(&mut state, "p");
        assert!(state.is_paused);
        assert_eq!(state.press(KeyPress::Letter('q')), Deed::Quit);
    }

    #[test]
    fn views_change_what_is_asked_for() {
        let mut state = state();
        assert_eq!(state.press(KeyPress::Letter('4')), Deed::Look);
        assert_eq!(state.view, TopView::Routes);
        assert!(ScreenState::wanted(state.view).routes);
        assert_eq!(state.press(KeyPress::Next), Deed::Look);
        assert_eq!(state.view, TopView::Overview);
        assert_eq!(state.press(KeyPress::Previous), Deed::Look);
        assert_eq!(state.view, TopView::Routes);
        // What was asked for another view shows nothing but the overview here.
        state.take(TopView::Running, running(&[("9.9.9", 1)]));
        assert_eq!(JsonView(&state.snapshot.running).each_item().count(), 3);
    }

    #[test]
    fn request_shown_in_full_is_asked_for_once_it_has_ended() {
        let mut state = state();
        state.press(KeyPress::Enter);
        assert_eq!(state.missing(), None);
        state.take(TopView::Running, running(&[]));
        assert_eq!(state.missing(), Some("1.2.0"));
        state.finished = Some(json!({ "id": "1.2.0" }));
        assert_eq!(state.missing(), None);
        state.press(KeyPress::Escape);
        assert_eq!((state.missing(), &state.mode), (None, &Mode::Browse));
    }
}
