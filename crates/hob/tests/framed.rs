//! What is recorded of requests over HTTP/2 and HTTP/3, where one connection carries many and the
//! client says for each of them how much it takes: bytes, times, waits, verdicts, how it ended.
//! Every test runs over both, with clients that share no line with hob.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "over/carry.rs"]
#[allow(dead_code, reason = "only its traits are used")]
mod carry;
#[path = "over/front.rs"]
#[allow(dead_code, reason = "`carry` needs it")]
mod front;
#[path = "over/h2.rs"]
mod h2;
#[path = "over/h3.rs"]
#[allow(dead_code, reason = "no server dies here")]
mod h3;
#[path = "framed/handshakes.rs"]
mod handshakes;
#[path = "framed/heads.rs"]
mod heads;
#[path = "framed/leaving.rs"]
mod leaving;
#[path = "framed/loss.rs"]
mod loss;
#[path = "framed/scene.rs"]
mod scene;
#[path = "over/tls.rs"]
#[allow(dead_code, reason = "HTTP/1.1 is not spoken here")]
mod tls;
#[path = "framed/waits.rs"]
mod waits;
#[path = "watch/watcher.rs"]
mod watcher;

use bytes::Bytes;
use carry::Upload;
use scene::{Client, Scene, on_both};
use watcher::{Watcher, of, stages};

/// Pieces of bodies, and how much of one is under way.
const PIECE_BYTES: usize = 64 * 1024;

#[test]
fn bytes_times_and_protocol_are_recorded_for_each_request_of_a_connection() {
    on_both(async |scene: Scene, mut client: Client| {
        let body = Bytes::from(vec![b'x'; 100_000]);
        let (mut upload, mut answer) = client.send("POST", "/cgi/echo", false).await;
        upload.data(body.clone()).await.unwrap();
        upload.end(None).await.unwrap();
        assert_eq!(answer.read_all().await, (200, body.len()));
        assert_eq!(client.get("/hello.txt").await, (200, 6));
        let [first, second] = scene.records("", 2).await.try_into().unwrap();
        for (record, target, status) in [(&first, "/cgi/echo", 200), (&second, "/hello.txt", 200)] {
            assert_eq!(record["target"], target);
            assert_eq!(record["status"], status);
            assert_eq!(record["protocol"], scene.protocol());
            assert_eq!(record["tls_version"], "TLSv1.3");
            assert_eq!(record["outcome"], "complete");
            let number = |key: &str| record[key].as_u64().unwrap();
            assert!(number("first_byte_us") <= number("total_us"), "{record:#}");
            assert!((10..1000).contains(&number("head_bytes_out")), "{record:#}");
        }
        let bytes_in = first["bytes_in"].as_u64().unwrap();
        assert!((100_001..101_000).contains(&bytes_in), "{first:#}");
        assert_eq!(first["body_bytes_out"], 100_000);
        assert_eq!(second["body_bytes_out"], 6);
        let bytes_in = second["bytes_in"].as_u64().unwrap();
        assert!((10..1000).contains(&bytes_in), "{second:#}");
        // The handshake is the first one's.
        assert!(first["handshake_us"].as_u64().unwrap() > 0, "{first:#}");
        assert_eq!(second["handshake_us"].as_u64().unwrap_or(0), 0);
        let id = |record: &serde_json::Value| record["id"].as_str().unwrap().to_owned();
        let (first, second) = (id(&first), id(&second));
        assert_eq!(first.strip_suffix(".0"), second.strip_suffix(".1"));
        assert!(first.ends_with(".0"), "{first}");
    });
}

#[test]
fn sums_of_routes_and_of_the_activity_have_what_the_records_have() {
    on_both(async |scene: Scene, mut client: Client| {
        for _ in 0..3 {
            assert_eq!(client.get("/hello.txt").await, (200, 6));
        }
        assert_eq!(client.get("/missing").await.0, 404);
        let records = scene.records("", 4).await;
        let sum = |key: &str| -> u64 {
            let numbers = records.iter().map(|record| record[key].as_u64().unwrap());
            numbers.sum()
        };
        let out = sum("head_bytes_out") + sum("body_bytes_out");
        let told = scene.object("/v1/routes?by=handler").await;
        let files = &told["routes"][0];
        assert_eq!(files["handler"], "files");
        assert_eq!(files["requests"], 4);
        assert_eq!(files["bytes_in"], sum("bytes_in"));
        assert_eq!(files["bytes_out"], out);
        assert_eq!(
            scene.activity("bytes_in", sum("bytes_in")).await,
            sum("bytes_in")
        );
        assert_eq!(scene.activity("bytes_out", out).await, out);
        assert_eq!(scene.activity("requests", 4).await, 4);
        assert_eq!(scene.activity("errors", 0).await, 0);
    });
}

#[test]
fn server_timing_tells_the_client_no_more_time_than_the_record_has() {
    on_both(async |scene: Scene, mut client: Client| {
        let (_upload, mut answer) = client.send("GET", "/timed/hello.txt", true).await;
        let head = answer.head().await;
        let told = head.headers()["server-timing"].to_str().unwrap().to_owned();
        let total = told.rsplit_once("total;dur=").unwrap().1;
        let total_us = total.parse::<f64>().unwrap() * 1000.0;
        assert_eq!(answer.rest().await, 6);
        let record = scene.record("/timed/hello.txt").await;
        // Written with the head, and so a little earlier; rounded.
        let whole_us = record["total_us"].as_f64().unwrap() + 100.0;
        assert!(total_us <= whole_us, "{told}: {record}");
        let (_upload, mut answer) = client.send("GET", "/hello.txt", true).await;
        assert!(answer.head().await.headers().get("server-timing").is_none());
    });
}

#[test]
fn watchers_tell_requests_of_one_connection_apart() {
    on_both(async |scene: Scene, mut client: Client| {
        let watcher = scene.watch("path=/cgi/*").await;
        let (_upload, mut first) = client.send("GET", "/cgi/wait?1", true).await;
        scene.running(|request| request["state"] == "program").await;
        let (_upload, mut second) = client.send("GET", "/cgi/say?2", true).await;
        assert_eq!(second.read_all().await, (200, 3));
        let (events, watcher) = until_done(&scene, watcher).await;
        scene.go().await;
        assert_eq!(first.read_all().await, (200, 3));
        let (later, _) = until_done(&scene, watcher).await;
        let events = [events, later].concat();
        for (target, number) in [("/cgi/wait?1", ".0"), ("/cgi/say?2", ".1")] {
            let is_own = |id: &str| id.ends_with(number);
            let own = events
                .iter()
                .filter(|event| is_own(event["id"].as_str().unwrap()));
            let own: Vec<_> = own.cloned().collect();
            assert_eq!(of(&own, "request")["target"], target);
            assert_eq!(of(&own, "done")["status"], 200);
            let found = stages(&own);
            // Connection and handshake are told with the first request.
            assert_eq!(found.contains(&"tls"), number == ".0", "{found:?}");
            for stage in ["route", "start", "program", "answer"] {
                assert!(found.contains(&stage), "{stage} in {found:?}");
            }
        }
    });
}

/// The next event.
async fn next(scene: &Scene, mut watcher: Watcher) -> (serde_json::Value, Watcher) {
    scene.apart(move |_| (watcher.next(), watcher)).await
}

async fn until_done(scene: &Scene, mut watcher: Watcher) -> (Vec<serde_json::Value>, Watcher) {
    scene
        .apart(move |_| {
            let events = watcher.until("done");
            (events, watcher)
        })
        .await
}
