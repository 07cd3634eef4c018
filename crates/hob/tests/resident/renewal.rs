//! Programs whose files change while they serve.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::client::call;
use crate::site::Programs;

const CLIENTS: usize = 4;

/// An application that answers with this word, or does not even start.
fn version(word: &str) -> String {
    match word {
        "broken" => "import os\nraise RuntimeError('there is no such thing as tea')\n".to_owned(),
        word => format!(
            "def application(environ, start):\n\
             \x20   start('200 OK', [('Content-Type', 'text/plain')])\n\
             \x20   return [b'{word}']\n"
        ),
    }
}

fn serve(keys: &str) -> Programs {
    let site = Programs::new().with_mode("tea.py", &version("one"), 0o644);
    site.serve_route(&format!(
        "path = \"/app\"\n\
         resident = {{ wsgi = \"tea:application\", dir = \"cgi\", watch = [\"*.py\"]{keys} }}\n"
    ))
}

impl Programs {
    /// Puts another version in place, as an editor does.
    fn edit(&self, word: &str) {
        let next = self.path("tea.py.new");
        std::fs::write(&next, version(word)).unwrap();
        std::fs::rename(next, self.path("tea.py")).unwrap();
    }

    /// Waits until so many changes have been noticed.
    fn wait_for_change(&self, count: u64) {
        self.wait_for_pool("changed", |pool| pool["changes"].as_u64() >= Some(count));
    }
}

/// Asks until this is answered so many times in a row. Every request is answered; with what was
/// there before, too, as long as a worker with it is there.
fn ask_until(port: u16, word: &str, times: usize) {
    let until = Instant::now() + DEADLINE;
    let mut count = 0;
    while count < times {
        let reply = call(port, "GET", "/app", "", b"");
        assert_eq!(reply.answer.status, 200, "{reply:?}");
        assert!(reply.is_whole);
        count = match reply.answer.text() == word {
            true => count + 1,
            false => 0,
        };
        assert!(Instant::now() < until, "not {word}: {reply:?}");
    }
}

#[test]
fn changed_program_answers_anew_and_no_request_fails() {
    let site = serve(", workers = { min = 2, max = 3 }");
    let (port, words) = (site.port(), ["one", "two", "three", "four"]);
    let seen = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for word in words {
                    ask_until(port, word, 1);
                    seen.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let until = Instant::now() + DEADLINE;
        for (before, word) in words[1..].iter().enumerate() {
            while seen.load(Ordering::SeqCst) < (before + 1) * CLIENTS {
                assert!(Instant::now() < until, "before {word}");
                std::thread::yield_now();
            }
            site.edit(word);
        }
    });
    // Those before go as soon as one of the last is ready.
    ask_until(port, "four", 20);
    assert_eq!(site.place.counter("worker_crashes"), 0);
    site.stop();
}

#[test]
fn version_that_does_not_start_is_told_of_until_the_next_change() {
    let site = serve("");
    assert_eq!(site.text("/app"), "one");
    site.edit("broken");
    site.wait_for_change(1);
    let until = Instant::now() + DEADLINE;
    while site.get("/app?broken").answer.status != 502 {
        assert!(Instant::now() < until, "it still answers");
    }
    for _ in 0..20 {
        assert_eq!(site.get("/app?now").answer.status, 502);
    }
    let (reason, detail) = site.reason("/app?now");
    assert_eq!(reason, "the program ends before it is ready");
    assert!(detail.contains("there is no such thing as tea"), "{detail}");
    let pool = site.pool();
    let failure = pool["last_failure"].as_str().unwrap();
    assert!(
        failure.contains("there is no such thing as tea"),
        "{failure}"
    );
    // It is not tried again and again.
    assert!(pool["started"].as_u64().unwrap() < 10, "{pool}");
    site.edit("two");
    site.wait_for_change(2);
    ask_until(site.port(), "two", 1);
    site.stop();
}

#[test]
fn recycle_has_new_workers_take_the_places_of_those_of_a_route() {
    let site = crate::place::serve("workers = { min = 1, max = 1 }");
    let mut last = site.worker();
    for route in [
        "/app",
        "/app/*",
        "app:application",
        "/app/* app:application",
    ] {
        let output = site.place.run(&["recycle", route, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["pids"], serde_json::json!([last]), "{route}");
        crate::harness::wait_for_end(last);
        let next = site.worker();
        assert_ne!(next, last, "{route}");
        last = next;
    }
    let output = site.place.run(&["recycle", "/app"]);
    let text = crate::harness::text_of(&output);
    assert_eq!(
        text,
        format!("others take the places of {last} once they are ready\n")
    );
    let output = site.place.run(&["recycle", "/none"]);
    let text = crate::harness::text_of(&output);
    assert_eq!(
        (output.status.code(), text.as_str()),
        (
            Some(1),
            "hob: there is no such program; those that stay are /app/* app:application\n"
        )
    );
    site.stop();
}
