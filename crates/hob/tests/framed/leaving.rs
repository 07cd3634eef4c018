//! Clients that leave: a request, a body, or all of the connection.

use bytes::Bytes;
use serde_json::Value;

use crate::carry::Upload;
use crate::harness::BIG_BYTES;
use crate::scene::{Client, Scene, on_both};

fn assert_left(record: &Value, status: Value) {
    assert_eq!(record["outcome"], "client-left", "{record:#}");
    assert_eq!(record["fault"], "client", "{record:#}");
    assert_eq!(record["status"], status, "{record:#}");
}

#[test]
fn answer_that_is_not_wanted_any_more_is_left() {
    on_both(async |scene: Scene, mut client: Client| {
        let (upload, mut answer) = client.send("GET", "/big.bin", true).await;
        assert_eq!(answer.head().await.status(), 200);
        // RST_STREAM, or STOP_SENDING.
        drop((upload, answer));
        let record = scene.record("/big.bin").await;
        assert_left(&record, 200.into());
        let sent = record["body_bytes_out"].as_u64().unwrap();
        assert!(sent < BIG_BYTES as u64 / 2, "{record:#}");
        scene.wait_for_counter("client_left", 1).await;
        // The connection goes on.
        assert_eq!(client.get("/hello.txt").await, (200, 6));
    });
}

#[test]
fn request_that_is_taken_back_has_no_status() {
    on_both(async |scene: Scene, mut client: Client| {
        let (upload, answer) = client.send("GET", "/cgi/wait", true).await;
        let is_waiting = |request: &Value| request["state"] == "program";
        scene.running(is_waiting).await;
        drop((upload, answer));
        let record = scene.record("/cgi/wait").await;
        assert_left(&record, Value::Null);
        assert_eq!(record["body_bytes_out"].as_u64().unwrap_or(0), 0);
        assert_eq!(client.get("/hello.txt").await, (200, 6));
    });
}

#[test]
fn body_that_breaks_off_leaves_its_request_and_was_waited_for() {
    on_both(async |scene: Scene, mut client: Client| {
        let (mut upload, answer) = client.send("POST", "/cgi/read", false).await;
        upload.data(Bytes::from_static(b"a\n")).await.unwrap();
        let is_waited_for = |request: &Value| {
            request["age_us"].as_u64().unwrap() > 200_000 && request["state"] == "reading-body"
        };
        scene.running(is_waited_for).await;
        upload.reset();
        let record = scene.record("/cgi/read").await;
        assert_left(&record, Value::Null);
        assert!(
            record["client_body_us"].as_u64().unwrap() > 100_000,
            "{record:#}"
        );
        let verdict = record["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("client's body: "), "{record:#}");
        drop((upload, answer));
    });
}

#[test]
fn connection_that_ends_takes_all_its_requests_along() {
    on_both(async |scene: Scene, mut client: Client| {
        let (held, mut answer) = client.send("GET", "/big.bin", true).await;
        assert_eq!(answer.head().await.status(), 200);
        let (waits, unanswered) = client.send("GET", "/cgi/wait", true).await;
        let is_waiting = |request: &Value| request["state"] == "program";
        scene.running(is_waiting).await;
        client.vanish();
        for (path, status) in [("/big.bin", 200.into()), ("/cgi/wait", Value::Null)] {
            let record = scene.record(path).await;
            assert_left(&record, status);
        }
        scene.wait_for_counter("client_left", 2).await;
        let running = scene.object("/v1/running").await;
        assert_eq!(running["requests"], serde_json::json!([]));
        drop((held, waits, answer, unanswered));
    });
}
