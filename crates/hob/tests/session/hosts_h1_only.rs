//! Visits of sites that run one program. Over TLS a client names its host before it asks.

use crate::harness::client::ask;
use crate::place::{route, shop};

#[test]
fn handle_of_another_site_names_no_visit() {
    let mut programs = shop();
    let site = |host: &str| {
        let route = route("/shop/*", "");
        format!("[[site]]\nnames = [\"{host}\"]\n[[site.route]]\n{route}")
    };
    programs.serve_whole(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{}{}",
        site("one.test"),
        site("two.test")
    ));
    let said = |host: &str, path: &str| {
        let fields = format!("Host: {host}\r\n");
        ask(programs.port(), "GET", &format!("/shop/{path}"), &fields)
    };
    let handle = said("one.test", "tell/HTSession").text();
    let path = format!("{handle}/add/tea");
    assert_eq!(said("two.test", &path).status, 410);
    assert_eq!(said("one.test", &path).text(), "tea");
    // A reload keeps both apart, and each where it is.
    assert!(programs.place.run(&["reload"]).status.success());
    assert_eq!(said("two.test", &path).status, 410);
    assert_eq!(said("one.test", &path).text(), "tea,tea");
}
