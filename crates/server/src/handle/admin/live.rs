//! `GET /v1/live`: what a page shows, pushed each second. One thread makes it for all who
//! watch, and only while somebody does.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_http::Answered;
use serde_json::Value;

use super::ask::Ask;
use super::events::{self, Mailbox};
use super::{Admin, lock, overview, reply, status};

/// How often.
const PERIOD: Duration = Duration::from_secs(1);

/// Who watches.
#[derive(Default)]
pub struct Live(Mutex<State>);

#[derive(Default)]
struct State {
    readers: Vec<(Page, Arc<Mailbox>)>,
    is_running: bool,
}

/// What can be watched: its name in a query and of its events, and what makes it.
type Page = &'static (&'static str, fn(&Admin) -> Value);

/// All pages.
static PAGES: &[(&str, fn(&Admin) -> Value)] =
    &[("overview", overview::overview), ("status", status::status)];

/// `GET /v1/live?page=overview`
pub(super) fn answer(ask: &Ask) -> Answered {
    let wanted = ask.query("page").unwrap_or_else(|| "overview".to_owned());
    let Some(page) = PAGES.iter().find(|(name, _)| *name == wanted) else {
        let names: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        let text = format!("no such page; there is {}", names.join(", "));
        return Answered::Ready(reply::text(404, &text));
    };
    let mailbox = Mailbox::new();
    let response = events::stream(ask, Arc::clone(&mailbox));
    if !mailbox.is_closed() {
        // The first at once: a page that waits a second seems slow.
        mailbox.push(events::frame(page.0, &page.1(&ask.admin)));
        join(&ask.admin, page, mailbox);
    }
    Answered::Ready(response)
}

fn join(admin: &Arc<Admin>, page: Page, mailbox: Arc<Mailbox>) {
    let mut state = lock(&admin.live.0);
    state.readers.push((page, mailbox));
    if state.is_running {
        return;
    }
    let producing = Arc::clone(admin);
    let thread = std::thread::Builder::new().name("hob-live".to_owned());
    match thread.spawn(move || produce(&producing)) {
        Ok(_) => state.is_running = true,
        Err(error) => tracing::error!(%error, "nothing is pushed to the admin pages"),
    }
}

/// Pushes each second, until nobody is left.
fn produce(admin: &Admin) {
    let mut next = Instant::now() + PERIOD;
    loop {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        // Seconds that were missed are not made up for.
        next = (next + PERIOD).max(Instant::now());
        for page in PAGES {
            let readers = readers_of(admin, page);
            if readers.is_empty() {
                continue;
            }
            let frame = events::frame(page.0, &page.1(admin));
            for reader in readers {
                reader.push(frame.clone());
            }
        }
        let mut state = lock(&admin.live.0);
        state.readers.retain(|(_, mailbox)| !mailbox.is_closed());
        if state.readers.is_empty() {
            state.is_running = false;
            return;
        }
    }
}

fn readers_of(admin: &Admin, page: Page) -> Vec<Arc<Mailbox>> {
    let state = lock(&admin.live.0);
    let readers = state.readers.iter();
    let ours = readers.filter(|(theirs, _)| theirs.0 == page.0);
    ours.map(|(_, mailbox)| Arc::clone(mailbox)).collect()
}
