//! Clients that take nothing, or send slowly: whose time that is.

use bytes::Bytes;
use serde_json::Value;

use crate::carry::Upload;
use crate::harness::BIG_BYTES;
use crate::scene::{Client, Scene, on_both};

fn is_old(request: &Value) -> bool {
    request["age_us"].as_u64().unwrap() > 200_000
}

fn starts(value: &Value, text: &str) -> bool {
    value.as_str().is_some_and(|value| value.starts_with(text))
}

#[test]
fn answer_whose_window_stays_closed_waits_for_the_network() {
    on_both(async |scene: Scene, mut client: Client| {
        let (_upload, mut answer) = client.send("GET", "/big.bin", true).await;
        assert_eq!(answer.head().await.status(), 200);
        let is_held = |request: &Value| is_old(request) && request["state"] == "sending";
        let running = scene.running(is_held).await;
        assert_eq!(running["target"], "/big.bin");
        assert_eq!(running["status"], 200);
        // Others on the connection are not held up.
        assert_eq!(client.get("/hello.txt").await, (200, 6));
        assert_eq!(answer.rest().await, BIG_BYTES);
        let record = scene.record("/big.bin").await;
        assert!(starts(&record["verdict"], "network: "), "{record:#}");
        let number = |key: &str| record[key].as_u64().unwrap();
        assert!(number("client_take_us") > 100_000, "{record:#}");
        assert!(number("client_take_us") <= number("total_us"), "{record:#}");
        assert!(
            number("first_byte_us") < number("total_us") / 2,
            "{record:#}"
        );
        assert!(
            number("rtt_us") > 0 && number("window_bytes") > 0,
            "{record:#}"
        );
        assert_eq!(number("body_bytes_out"), BIG_BYTES as u64);
        let quick = scene.record("/hello.txt").await;
        assert!(
            quick["client_take_us"].as_u64().unwrap_or(0) < 100_000,
            "{quick:#}"
        );
    });
}

#[test]
fn body_that_comes_slowly_is_the_client_s() {
    on_both(async |scene: Scene, mut client: Client| {
        let (mut upload, mut answer) = client.send("POST", "/cgi/read", false).await;
        upload.data(Bytes::from_static(b"a\n")).await.unwrap();
        let is_waited_for = |request: &Value| is_old(request) && request["state"] == "reading-body";
        scene.running(is_waited_for).await;
        upload.data(Bytes::from_static(b"b\n")).await.unwrap();
        upload.end(None).await.unwrap();
        assert_eq!(answer.read_all().await, (200, 3));
        let record = scene.record("/cgi/read").await;
        assert!(starts(&record["verdict"], "client's body: "), "{record:#}");
        assert!(
            record["client_body_us"].as_u64().unwrap() > 100_000,
            "{record:#}"
        );
        assert!(record["rtt_us"].as_u64().unwrap() > 0, "{record:#}");
        assert!(
            record["client_take_us"].as_u64().unwrap_or(0) < 100_000,
            "{record:#}"
        );
    });
}

#[test]
fn program_that_takes_long_is_not_the_network_s_fault_beside_a_client_that_takes_nothing() {
    on_both(async |scene: Scene, mut client: Client| {
        let (_upload, mut held) = client.send("GET", "/big.bin", true).await;
        assert_eq!(held.head().await.status(), 200);
        let (_upload, mut answer) = client.send("GET", "/cgi/wait", true).await;
        let is_slow = |request: &Value| is_old(request) && request["state"] == "program";
        scene.running(is_slow).await;
        scene.go().await;
        assert_eq!(answer.read_all().await, (200, 3));
        let record = scene.record("/cgi/wait").await;
        assert!(starts(&record["verdict"], "program: "), "{record:#}");
        assert_eq!(held.rest().await, BIG_BYTES);
    });
}
