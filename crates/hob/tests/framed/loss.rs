//! Networks that lose what the server sends: the client's kernel drops it before anybody sees it.

use socket2::SockFilter;

use crate::harness::BIG_BYTES;
use crate::scene::{Client, Scene, Version, on};

/// Takes nothing of what comes (`BPF_RET | BPF_K`, no bytes).
const NOTHING: SockFilter = SockFilter::new(0x06, 0, 0, 0);

fn lost_on(version: Version) {
    on(version, "", async |scene: Scene, port: u16| {
        let (mut client, socket) = Client::connect_seen(version, port).await;
        assert_eq!(client.get("/hello.txt").await, (200, 6));
        socket.attach_filter(&[NOTHING]).unwrap();
        let (_upload, mut answer) = client.send("GET", "/big.bin", true).await;
        // It has begun, and the client hears nothing of it.
        let is_lost = |request: &serde_json::Value| {
            request["status"] == 200 && request["age_us"].as_u64().unwrap() > 200_000
        };
        scene.running(is_lost).await;
        if version == Version::Http2 {
            // QUIC knows a packet for lost when a later one has arrived.
            scene
                .connection(|one| one["retransmits"].as_u64().unwrap() > 0)
                .await;
        }
        socket.detach_filter().unwrap();
        assert_eq!(answer.read_all().await, (200, BIG_BYTES));
        let record = scene.record("/big.bin").await;
        assert!(record["retransmits"].as_u64().unwrap() > 0, "{record:#}");
        assert_eq!(record["outcome"], "complete", "{record:#}");
        let before = scene.record("/hello.txt").await;
        assert_eq!(before["retransmits"].as_u64().unwrap_or(0), 0);
    });
}

#[test]
fn segments_of_tcp_that_were_sent_again_are_recorded() {
    lost_on(Version::Http2);
}

#[test]
fn packets_of_quic_that_were_lost_are_recorded() {
    lost_on(Version::Http3);
}
