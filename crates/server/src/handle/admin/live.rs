//! `GET /v1/live`: what a page shows, pushed each second. One thread makes it for all who
//! watch, and only while somebody does.

use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hob_http::Answered;
use serde_json::Value;

use super::ask::Ask;
use super::events::{self, Mailbox};
use super::{Admin, lock, overview, programs, reply, running, status};

/// How often.
const PERIOD: Duration = Duration::from_secs(1);

/// Who watches.
#[derive(Default)]
pub struct Live(Mutex<State>);

#[derive(Default)]
struct State {
    readers: Vec<Reader>,
    producer: Option<Thread>,
    is_running: bool,
}

struct Reader {
    page: Page,
    mailbox: Arc<Mailbox>,
    /// It has had nothing yet.
    is_new: bool,
}

/// What can be watched: its name in a query and of its events, and what makes it.
type Named = (&'static str, fn(&Admin) -> Value);
type Page = &'static Named;

/// All pages.
static PAGES: &[Named] = &[
    ("overview", overview::overview),
    ("programs", programs::told),
    ("running", running::requests_now),
    ("connections", running::connections_now),
    ("status", status::status),
];

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
        join(&ask.admin, page, mailbox);
    }
    Answered::Ready(response)
}

fn join(admin: &Arc<Admin>, page: Page, mailbox: Arc<Mailbox>) {
    let mut state = lock(&admin.live.0);
    state.readers.push(Reader {
        page,
        mailbox,
        is_new: true,
    });
    if state.is_running {
        // The first at once: a page that waits a second seems slow.
        if let Some(producer) = &state.producer {
            producer.unpark();
        }
        return;
    }
    let producing = Arc::clone(admin);
    let thread = std::thread::Builder::new().name("hob-live".to_owned());
    match thread.spawn(move || produce(&producing)) {
        Ok(thread) => {
            state.is_running = true;
            state.producer = Some(thread.thread().clone());
        }
        Err(error) => tracing::error!(%error, "nothing is pushed to the admin pages"),
    }
}

/// Pushes each second, and to who is new at once, until nobody is left.
fn produce(admin: &Admin) {
    let mut next = Instant::now();
    loop {
        let is_due = Instant::now() >= next;
        if is_due {
            // Seconds that were missed are not made up for.
            next = (next + PERIOD).max(Instant::now());
        }
        for page in PAGES {
            let readers = readers_of(admin, page, is_due);
            if readers.is_empty() {
                continue;
            }
            let frame = events::frame(page.0, &page.1(admin));
            for reader in readers {
                reader.push(frame.clone());
            }
        }
        let mut state = lock(&admin.live.0);
        state.readers.retain(|reader| !reader.mailbox.is_closed());
        if state.readers.is_empty() {
            state.is_running = false;
            return;
        }
        let has_new = state.readers.iter().any(|reader| reader.is_new);
        drop(state);
        if !has_new {
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }
}

/// Those who watch a page, or only those of them who have had nothing yet.
fn readers_of(admin: &Admin, page: Page, is_due: bool) -> Vec<Arc<Mailbox>> {
    let mut state = lock(&admin.live.0);
    let readers = state.readers.iter_mut();
    let ours = readers.filter(|one| one.page.0 == page.0 && (is_due || one.is_new));
    ours.map(|one| {
        one.is_new = false;
        Arc::clone(&one.mailbox)
    })
    .collect()
}
