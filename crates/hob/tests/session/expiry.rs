//! Visitors that do not come back.

use crate::place::serve;

#[test]
fn transaction_of_a_visit_that_runs_out_is_rolled_back() {
    let shop = serve("wait = \"1s\"");
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    assert_eq!(shop.said(&handle, "order/tea"), "ordered");
    shop.gone(pid);
    assert!(
        shop.path("left").exists(),
        "it was told, and ended by itself"
    );
    let late = crate::harness::client::call(
        shop.port(),
        "POST",
        &format!("/shop/{handle}/order/cup"),
        "",
        b"a=b",
    );
    assert_eq!(late.answer.status, 410);
    assert_eq!(shop.text("/shop/count"), "0");
    shop.counts("limit_session_wait", 1);
    // One that is committed stays.
    let handle = shop.begin();
    shop.said(&handle, "order/tea");
    assert_eq!(shop.said(&handle, "commit"), "bye");
    assert_eq!(shop.text("/shop/count"), "1");
}

#[test]
fn visit_is_over_at_its_age_once_it_has_no_request() {
    let shop = serve("life = \"1s\"");
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    shop.gone(pid);
    assert_eq!(shop.status_of(&handle, "pid"), 410);
    shop.counts("limit_session_life", 1);
}

#[test]
fn process_that_does_not_go_is_made_to() {
    let shop = serve("wait = \"1s\"");
    std::fs::write(shop.path("stubborn"), "").unwrap();
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    shop.wait_for_file("stays");
    // Its visit is over before it is.
    assert_eq!(shop.status_of(&handle, "pid"), 410);
    shop.gone(pid);
    shop.counts("worker_terms", 1);
    shop.counts("worker_kills", 1);
}
