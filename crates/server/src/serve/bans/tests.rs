//! Who is banned, for how long, and what the file says of it.

use super::*;

fn network(text: &str) -> BanNetwork {
    BanNetwork::parse(text).unwrap()
}

fn ban(text: &str, until_ms: u64) -> Ban {
    Ban {
        network: network(text),
        rule: "rule".to_owned(),
        why: "403 /".to_owned(),
        since_ms: 0,
        until_ms,
        close: false,
    }
}

fn is_banned(bans: &Bans, client: &str, now_ms: u64) -> bool {
    bans.find(client.parse().unwrap(), now_ms).is_some()
}

fn listed(bans: &Bans, now_ms: u64) -> Vec<String> {
    let all = bans.all(now_ms).into_iter();
    all.map(|one| one.ban.network.to_string()).collect()
}

#[test]
fn who_is_banned_is_so_until_the_time_is_over() {
    let bans = Bans::default();
    assert!(!bans.is_any() && !is_banned(&bans, "192.0.2.1", 0));
    assert_eq!(bans.add(ban("192.0.2.1", 100), 0), 0);
    assert_eq!(bans.add(ban("2001:db8::/64", 50), 0), 0);
    assert!(is_banned(&bans, "192.0.2.1", 99) && is_banned(&bans, "::ffff:192.0.2.1", 99));
    assert!(is_banned(&bans, "2001:db8::7", 49) && !is_banned(&bans, "2001:db8:0:1::7", 49));
    assert!(!is_banned(&bans, "192.0.2.2", 0));
    assert!(!is_banned(&bans, "192.0.2.1", 100) && !is_banned(&bans, "2001:db8::7", 50));
    assert_eq!(bans.count(50), 1);
    assert_eq!(listed(&bans, 50), ["192.0.2.1"]);
    bans.sweep(100);
    assert!(!bans.is_any() && listed(&bans, 0).is_empty());
}

#[test]
fn ban_is_made_longer_and_never_shorter() {
    let bans = Bans::default();
    bans.add(ban("192.0.2.1", 100), 0);
    bans.add(ban("192.0.2.1", 50), 0);
    assert!(is_banned(&bans, "192.0.2.1", 99));
    bans.add(ban("192.0.2.1", 200), 0);
    assert!(is_banned(&bans, "192.0.2.1", 199) && bans.count(0) == 1);
}

#[test]
fn first_to_end_goes_when_there_are_as_many_as_may_be() {
    let bans = Bans::default();
    bans.set_count_max(2);
    assert_eq!(bans.add(ban("192.0.2.1", 300), 0), 0);
    assert_eq!(bans.add(ban("192.0.2.2", 200), 0), 0);
    assert_eq!(bans.add(ban("192.0.2.3", 400), 0), 1);
    assert_eq!(listed(&bans, 0), ["192.0.2.1", "192.0.2.3"]);
    // What is over makes room by itself.
    assert_eq!(bans.add(ban("192.0.2.4", 500), 300), 0);
    assert_eq!(bans.set_count_max(1), 1);
    assert_eq!(listed(&bans, 0), ["192.0.2.4"]);
}

#[test]
fn lifting_takes_the_client_with_the_networks_around_it() {
    let bans = Bans::default();
    for text in ["192.0.2.1", "192.0.2.0/24", "192.0.3.1", "2001:db8::/64"] {
        bans.add(ban(text, 100), 0);
    }
    assert_eq!(bans.lift(network("192.0.2.1")), 2);
    assert_eq!(bans.lift(network("192.0.2.1")), 0);
    assert_eq!(bans.lift(network("2001:db8::9")), 1);
    assert_eq!(listed(&bans, 0), ["192.0.3.1"]);
    assert_eq!(bans.lift_where(|_| true), 1);
    assert!(!bans.is_any());
}

#[test]
fn who_opens_the_file_next_knows_who_is_banned() {
    let file = tempfile::tempfile().unwrap();
    let again = |now_ms| {
        let file = file.try_clone().unwrap();
        let bans = Bans::default();
        bans.open(file, now_ms);
        assert!(!bans.begin_keeping(), "the file says it already");
        bans
    };
    let first = again(0);
    first.add(ban("192.0.2.1", 100), 0);
    first.add(ban("2001:db8::/64", 200), 0);
    assert!(first.begin_keeping() && !first.begin_keeping());
    first.keep_changes(|| 0);
    assert!(!first.begin_keeping());
    let second = again(50);
    assert_eq!(second.all(50)[0].ban, ban("192.0.2.1", 100));
    assert_eq!(listed(&second, 50), ["192.0.2.1", "2001:db8::/64"]);
    assert_eq!(second.lift_where(|_| true), 2);
    second.keep(50).unwrap();
    assert!(listed(&again(50), 50).is_empty());
    first.leave_file(150).unwrap();
    assert_eq!(listed(&again(150), 150), ["2001:db8::/64"]);
    // Another one writes to it from now on.
    first.add(ban("192.0.2.9", 300), 150);
    assert!(!first.begin_keeping());
    assert_eq!(listed(&again(150), 150), ["2001:db8::/64"]);
}

#[test]
fn without_a_file_or_with_a_broken_one_bans_hold_all_the_same() {
    let bans = Bans::default();
    bans.add(ban("192.0.2.1", 100), 0);
    assert!(bans.keep(0).unwrap_err().contains("state"));
    for broken in ["[{\"network\": ", "{}", "[{\"network\":\"x\"}]", "\u{0}"] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(broken.as_bytes()).unwrap();
        let bans = Bans::default();
        bans.open(file, 0);
        assert!(!bans.is_any(), "{broken}");
        bans.add(ban("192.0.2.1", 100), 0);
        bans.keep(0).unwrap();
        assert!(is_banned(&bans, "192.0.2.1", 0));
    }
}

#[test]
fn threads_ban_and_lift_and_none_is_lost() {
    let bans = Bans::default();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let bans = &bans;
            scope.spawn(move || {
                for host in 0..=255u8 {
                    let text = format!("10.{thread}.0.{host}");
                    bans.add(ban(&text, 100), 0);
                    assert!(is_banned(bans, &text, 0));
                    if host % 2 == 0 {
                        assert_eq!(bans.lift(network(&text)), 1);
                        assert!(!is_banned(bans, &text, 0));
                    }
                }
            });
        }
    });
    assert_eq!((bans.count(0), bans.count(100)), (4 * 128, 0));
}
