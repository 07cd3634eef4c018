//! The resolver without a name server that answers.

use std::net::UdpSocket;

use hob_trace::format::ClientNameSource as _;

use super::*;

fn settings(server: std::net::SocketAddr) -> config::ClientNamesSettings {
    config::ClientNamesSettings {
        server: Some(server),
        entries: 16,
        queue: 2,
        time: Duration::from_millis(100),
        keep: Duration::from_secs(60),
        keep_unknown: Duration::from_secs(60),
    }
}

#[test]
fn while_names_are_off_nothing_is_asked() {
    let names = ClientNameResolver::new();
    assert_eq!(names.name_of([192, 0, 2, 7].into()), None);
    assert_eq!(names.await_name([192, 0, 2, 7].into()), None);
    assert!(!names.told().on);
}

#[test]
fn own_files_are_believed_and_sockets_without_address_have_no_name() {
    let names = ClientNameResolver::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    names.set(Some(&settings(silent.local_addr().unwrap())));
    let own = read("/etc/hosts");
    if let Some((address, name)) = files::hosts(&own).next() {
        assert_eq!(names.name_of(address).as_deref(), Some(name));
    }
    assert_eq!(names.name_of([0, 0, 0, 0].into()), None);
    assert_eq!(names.told().waiting, 0);
}

#[test]
fn queue_is_bounded_and_counted() {
    let names = ClientNameResolver::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    names.set(Some(&settings(silent.local_addr().unwrap())));
    for number in 0..5 {
        assert_eq!(names.name_of([192, 0, 2, number].into()), None);
    }
    assert_eq!(names.told().waiting, 2);
    let counters = Counters::new();
    names.start(&counters).unwrap();
    let begin = Instant::now();
    while counters.merged().names_failed < 2 {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
    let counted = counters.merged();
    assert_eq!((counted.limit_names_queue, counted.names_asked), (3, 2));
    names.end();
}

#[test]
fn log_waits_a_second_at_most_and_then_not_at_all_for_a_while() {
    let names = ClientNameResolver::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Nobody looks anything up: no thread was started.
    names.set(Some(&settings(silent.local_addr().unwrap())));
    let begin = Instant::now();
    assert_eq!(names.name([192, 0, 2, 7].into()), None);
    let first = begin.elapsed();
    assert!(
        first >= LOG_WAIT_MAX && first < LOG_WAIT_MAX * 5,
        "{first:?}"
    );
    assert_eq!(names.name([192, 0, 2, 8].into()), None);
    assert_eq!(names.name([192, 0, 2, 7].into()), None);
    assert!(begin.elapsed() < first + LOG_WAIT_MAX / 2);
    assert_eq!(names.limits().wait, 3);
    // At the end nothing is waited for, which no limit is to blame for.
    names.end();
    assert_eq!(names.name([192, 0, 2, 9].into()), None);
    assert_eq!(names.limits().wait, 3);
}
