//! As many requests at a time as `concurrency` says, through shared memory.

use crate::place::serve;

/// Has so many requests held by one worker, each seen to have begun, then all answered.
fn all_are_begun_and_answered(count: usize) {
    let site = serve(&format!(
        "env = {{ THREADS = \"{count}\" }}, workers = {{ max = 1, concurrency = {count} }}"
    ));
    let name = |number: usize| format!("held{number}");
    let mut clients: Vec<_> = (0..count).map(|number| site.hold(&name(number))).collect();
    let worker = &site.pool()["workers"][0];
    assert_eq!(worker["carrier"], "shm");
    assert_eq!(worker["requests"].as_array().unwrap().len(), count);
    (0..count).for_each(|number| site.go(&name(number)));
    for client in &mut clients {
        assert_eq!(client.read_reply().answer.status, 200);
    }
    site.stop();
}

#[test]
fn sixty_fifth_request_at_a_time_is_begun() {
    all_are_begun_and_answered(65);
}

#[test]
fn two_hundredth_request_at_a_time_is_begun() {
    all_are_begun_and_answered(200);
}

#[test]
fn request_beside_many_long_ones_is_answered() {
    let site = serve("env = { THREADS = \"90\" }, workers = { max = 1, concurrency = 90 }");
    let name = |number: usize| format!("long{number}");
    let _clients: Vec<_> = (0..80).map(|number| site.hold(&name(number))).collect();
    for _ in 0..20 {
        site.worker();
    }
    (0..80).for_each(|number| site.go(&name(number)));
    site.stop();
}
