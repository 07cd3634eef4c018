//! `GET /v1/live`: what pages show, pushed when it has changed. One thread makes each of them once
//! for all who watch it, and only while somebody does.
//!
//! ```text
//! /v1/live?page=overview&page=routes%3Flimit%3D6
//!
//! second   0         1         2         3    ..   5
//! overview made      made      made      made      made    each second: one making, all readers
//! routes   made                                    made    not sent where it is as it was
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hob_http::Answered;
use hob_trace::Mutex;
use serde_json::Value;

use super::ask::AdminRequest;
use super::events::{self, EventMailbox};
use super::history::QueryRefusal;
use super::query::value_of;
use super::{
    Admin, activity, history, overview, programs, reply, routes, running, statistics, status,
};

/// Pages that one reader follows at a time (400).
const PAGES_MAX: usize = 8;
/// Pages with a query of their own that are made at a time, for all readers (503).
const TOPICS_MAX: usize = 64;
/// Bytes of a page's name with its query (400).
const TOPIC_BYTES_MAX: usize = 1024;
/// Longest time between two events of a page that may be asked for, in seconds.
const EVERY_S_MAX: u64 = 3600;

/// Who watches.
#[derive(Default)]
pub struct Live(Mutex<LiveState>, AtomicU64);

impl Live {
    /// Streams refused for [`TOPICS_MAX`].
    pub(super) fn limited(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct LiveState {
    topics: Vec<Topic>,
    producer: Option<JoinHandle<()>>,
    is_running: bool,
}

/// What can be watched.
struct LivePage {
    /// Its name in a query and of its events.
    name: &'static str,
    /// Seconds between two makings, at least.
    every_s: u64,
    /// What makes it; it gets the page's own query.
    make: fn(&Admin, &[u8]) -> Value,
    /// Refuses a query that the maker could not answer.
    check: fn(&[u8]) -> Result<(), QueryRefusal>,
}

/// All pages. What adds up histograms or looks through the history is made less often.
static PAGES: &[LivePage] = &[
    LivePage::each_second("overview", |admin, _| overview::overview(admin)),
    LivePage::each_second("running", running::requests_now),
    LivePage::each_second("connections", running::connections_now),
    LivePage::each_second("activity", activity::newest),
    LivePage {
        every_s: 2,
        ..LivePage::each_second("programs", |admin, _| programs::told(admin))
    },
    LivePage {
        every_s: 2,
        ..LivePage::each_second("status", |admin, _| status::status(admin))
    },
    LivePage {
        every_s: 5,
        check: routes::check,
        ..LivePage::each_second("routes", routes::routes)
    },
    LivePage {
        every_s: 5,
        ..LivePage::each_second("statistics", |admin, _| statistics::told(admin))
    },
    LivePage {
        every_s: 10,
        check: history::check,
        ..LivePage::each_second("history", history::list_now)
    },
];

impl LivePage {
    const fn each_second(name: &'static str, make: fn(&Admin, &[u8]) -> Value) -> LivePage {
        LivePage {
            name,
            every_s: 1,
            make,
            check: |_| Ok(()),
        }
    }
}

/// A page with a query, and who watches it.
struct Topic {
    page: &'static LivePage,
    query: Vec<u8>,
    every_s: u64,
    /// The second in which it is made next.
    due_s: u64,
    /// The event that was sent last.
    last: Option<Bytes>,
    readers: Vec<TopicSubscriber>,
}

struct TopicSubscriber {
    mailbox: Arc<EventMailbox>,
    /// It has had nothing yet.
    is_new: bool,
}

/// What somebody wants to watch.
struct LiveSubscription {
    page: &'static LivePage,
    query: Vec<u8>,
    every_s: u64,
}

/// `GET /v1/live?page=overview`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let wanted = match wanted(&ask.pairs()) {
        Ok(wanted) => wanted,
        Err(QueryRefusal(status, text)) => return Answered::Ready(reply::text(status, &text)),
    };
    if !ask.admin.live.0.lock().has_room(&wanted) {
        ask.admin.live.1.fetch_add(1, Ordering::Relaxed);
        let text = format!("{TOPICS_MAX} pages with queries of their own are watched already");
        return Answered::Ready(reply::text(503, &text));
    }
    let mailbox = EventMailbox::new();
    let response = events::stream(ask, Arc::clone(&mailbox));
    if !mailbox.is_closed() {
        join(&ask.admin, wanted, &mailbox);
    }
    Answered::Ready(response)
}

/// The pages that a query names, each once.
fn wanted(pairs: &[(String, String)]) -> Result<Vec<LiveSubscription>, QueryRefusal> {
    let mut wanted: Vec<LiveSubscription> = Vec::new();
    let named = pairs.iter().filter(|(key, _)| key == "page");
    let mut named: Vec<&str> = named.map(|(_, value)| value.as_str()).collect();
    if named.is_empty() {
        named.push("overview");
    }
    if named.len() > PAGES_MAX {
        let text = format!("{PAGES_MAX} pages at a time");
        return Err(QueryRefusal(400, text));
    }
    for text in named {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let Some(page) = PAGES.iter().find(|page| page.name == name) else {
            let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
            let text = format!("no such page; there is {}", names.join(", "));
            return Err(QueryRefusal(404, text));
        };
        if text.len() > TOPIC_BYTES_MAX {
            let text = format!("a page with its query has at most {TOPIC_BYTES_MAX} bytes");
            return Err(QueryRefusal(400, text));
        }
        if wanted.iter().any(|one| one.page.name == name) {
            return Err(QueryRefusal(400, format!("{name} is there twice")));
        }
        let query = query.as_bytes().to_vec();
        (page.check)(&query)?;
        let every = value_of(&query, "every").and_then(|every| every.parse().ok());
        wanted.push(LiveSubscription {
            page,
            query,
            every_s: every.unwrap_or(0).clamp(page.every_s, EVERY_S_MAX),
        });
    }
    Ok(wanted)
}

fn join(admin: &Arc<Admin>, wanted: Vec<LiveSubscription>, mailbox: &Arc<EventMailbox>) {
    let mut state = admin.live.0.lock();
    for one in wanted {
        state.topic(one).readers.push(TopicSubscriber {
            mailbox: Arc::clone(mailbox),
            is_new: true,
        });
    }
    let producer = state.producer.as_ref();
    if let Some(producer) = producer.filter(|one| state.is_running && !one.is_finished()) {
        // The first at once: a page that waits a second seems slow.
        return producer.thread().unpark();
    }
    let producing = Arc::clone(admin);
    let thread = std::thread::Builder::new().name("hob-live".to_owned());
    match thread.spawn(move || produce(&producing)) {
        Ok(thread) => {
            state.is_running = true;
            state.producer = Some(thread);
        }
        Err(error) => {
            tracing::error!(%error, "nothing is pushed to the admin pages");
            drop(state);
            mailbox.end();
        }
    }
}

/// Pushes when something is due, and to who is new at once, until nobody is left.
fn produce(admin: &Admin) {
    let begin = Instant::now();
    let mut told_s = None;
    loop {
        let now_s = begin.elapsed().as_secs();
        // Seconds that were missed are not made up for.
        let second = (told_s != Some(now_s)).then_some(now_s);
        told_s = Some(now_s);
        let due = admin.live.0.lock().due(second);
        for (index, page, query) in due {
            let frame = events::frame(page.name, &(page.make)(admin, &query));
            admin.live.0.lock().push(index, &frame);
        }
        let mut state = admin.live.0.lock();
        let next_s = state.clear(now_s);
        let Some(next_s) = next_s else {
            state.is_running = false;
            return;
        };
        let is_asked = state.topics.iter().any(Topic::has_new);
        drop(state);
        if !is_asked {
            let next = begin + Duration::from_secs(next_s);
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }
}

impl LiveState {
    /// There is room for what of that is not made yet.
    fn has_room(&self, wanted: &[LiveSubscription]) -> bool {
        let is_made = |one: &&LiveSubscription| {
            let is_it =
                |topic: &Topic| (topic.page.name, &topic.query) == (one.page.name, &one.query);
            self.topics.iter().any(is_it)
        };
        let more = wanted.len() - wanted.iter().filter(is_made).count();
        self.topics.len() + more <= TOPICS_MAX
    }

    fn topic(&mut self, wanted: LiveSubscription) -> &mut Topic {
        let is_it = |one: &Topic| one.page.name == wanted.page.name && one.query == wanted.query;
        let index = match self.topics.iter().position(is_it) {
            Some(index) => index,
            None => {
                self.topics.push(Topic {
                    page: wanted.page,
                    query: wanted.query,
                    every_s: wanted.every_s,
                    due_s: 0,
                    last: None,
                    readers: Vec::new(),
                });
                self.topics.len() - 1
            }
        };
        &mut self.topics[index]
    }

    /// What has to be made: what is due when a second has begun, and what was never made. Who is
    /// new gets what there is. Only the producer takes topics out, so places stay what they are.
    fn due(&mut self, second: Option<u64>) -> Vec<(usize, &'static LivePage, Vec<u8>)> {
        let mut due = Vec::new();
        for (index, topic) in self.topics.iter_mut().enumerate() {
            let is_due = second.is_some_and(|second| second >= topic.due_s);
            if is_due || topic.last.is_none() {
                if let Some(second) = second {
                    topic.due_s = (second + 1).next_multiple_of(topic.every_s);
                }
                due.push((index, topic.page, topic.query.clone()));
            } else if let Some(last) = topic.last.clone() {
                topic.send(&last, Whom::New);
            }
        }
        due
    }

    fn push(&mut self, index: usize, frame: &Bytes) {
        let Some(topic) = self.topics.get_mut(index) else {
            return;
        };
        let whom = match topic.last.as_ref() == Some(frame) {
            true => Whom::New,
            false => Whom::All,
        };
        topic.send(frame, whom);
        topic.last = Some(frame.clone());
    }

    /// Lets go of readers that have left and of what nobody watches; the second in which the next
    /// is due, if somebody is left.
    fn clear(&mut self, now_s: u64) -> Option<u64> {
        for topic in &mut self.topics {
            topic.readers.retain(|one| !one.mailbox.is_closed());
        }
        self.topics.retain(|topic| !topic.readers.is_empty());
        let next = |topic: &Topic| topic.due_s.max(now_s + 1);
        self.topics.iter().map(next).min()
    }
}

/// Whom an event goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    All,
    /// Those who have had nothing yet.
    New,
}

impl Topic {
    fn has_new(&self) -> bool {
        self.readers.iter().any(|reader| reader.is_new)
    }

    fn send(&mut self, frame: &Bytes, whom: Whom) {
        for reader in &mut self.readers {
            if whom == Whom::All || reader.is_new {
                reader.is_new = false;
                reader.mailbox.put(self.page.name, frame.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pages: &[&str]) -> Vec<(String, String)> {
        let pair = |page: &&str| ("page".to_owned(), (*page).to_owned());
        pages.iter().map(pair).collect()
    }

    fn names(pages: &[&str]) -> Result<Vec<(&'static str, String, u64)>, u16> {
        let told = |one: LiveSubscription| {
            let query = String::from_utf8(one.query).unwrap();
            (one.page.name, query, one.every_s)
        };
        match wanted(&pairs(pages)) {
            Ok(wanted) => Ok(wanted.into_iter().map(told).collect()),
            Err(QueryRefusal(status, _)) => Err(status),
        }
    }

    #[test]
    fn pages_have_queries_of_their_own_and_are_made_no_faster_than_they_may() {
        let named = |name, query: &str, every_s| (name, query.to_owned(), every_s);
        assert_eq!(names(&[]), Ok(vec![named("overview", "", 1)]));
        assert_eq!(
            names(&[
                "activity?step=60&every=60",
                "history?every=1",
                "routes?every=99999"
            ]),
            Ok(vec![
                named("activity", "step=60&every=60", 60),
                named("history", "every=1", 10),
                named("routes", "every=99999", EVERY_S_MAX),
            ])
        );
    }

    #[test]
    fn what_is_no_page_too_much_or_wrong_is_refused() {
        let long = format!("running?limit={}", "1".repeat(TOPIC_BYTES_MAX));
        for (pages, status) in [
            (&["nothing"][..], 404),
            (&["overview", ""], 404),
            (&["running", "running?limit=3"], 400),
            (&[long.as_str()], 400),
            (&["history?status=many"], 400),
            (&["history?before=1.2.3"], 400),
            (&["routes?by=weather"], 400),
            (&["overview"; PAGES_MAX + 1], 400),
        ] {
            assert_eq!(names(pages), Err(status), "{pages:?}");
        }
    }

    #[test]
    fn second_that_was_missed_does_not_leave_a_page_out() {
        let mut state = LiveState::default();
        for one in wanted(&pairs(&["routes"])).unwrap_or_default() {
            state.topic(one);
        }
        let mut made = Vec::new();
        for second in [0, 4, 8, 9, 12, 16, 20] {
            if !state.due(Some(second)).is_empty() {
                made.push(second);
                state.push(0, &Bytes::from_static(b"as ever"));
            }
        }
        assert_eq!(made, [0, 8, 12, 16, 20]);
    }

    #[test]
    fn only_so_many_pages_with_queries_of_their_own_are_made() {
        let mut state = LiveState::default();
        let of = |number: usize| {
            let page = format!("running?limit={number}");
            wanted(&pairs(&[&page])).unwrap_or_default()
        };
        for number in 0..TOPICS_MAX {
            assert!(state.has_room(&of(number)), "{number}");
            of(number).into_iter().for_each(|one| {
                state.topic(one);
            });
        }
        assert!(!state.has_room(&of(TOPICS_MAX)));
        // One that is made already needs no room.
        assert!(state.has_room(&of(3)));
    }

    #[test]
    fn what_is_as_it_was_goes_to_those_who_have_nothing_yet() {
        let mut state = LiveState::default();
        let join = |state: &mut LiveState| {
            let mailbox = EventMailbox::new();
            for one in wanted(&pairs(&["running"])).unwrap_or_default() {
                state.topic(one).readers.push(TopicSubscriber {
                    mailbox: Arc::clone(&mailbox),
                    is_new: true,
                });
            }
            mailbox
        };
        let (first, frame) = (join(&mut state), Bytes::from_static(b"one"));
        assert_eq!(state.due(None).len(), 1);
        state.push(0, &frame);
        state.push(0, &frame);
        assert_eq!(first.waiting(), 1);
        // Nothing is made for who comes later: there is something already.
        let second = join(&mut state);
        assert!(state.due(None).is_empty());
        assert_eq!((first.waiting(), second.waiting()), (1, 1));
        state.push(0, &Bytes::from_static(b"two"));
        assert_eq!((first.waiting(), second.waiting()), (2, 2));
        assert_eq!(state.clear(7), Some(8));
        first.close();
        second.close();
        assert_eq!(state.clear(7), None);
        assert!(state.topics.is_empty());
    }
}
