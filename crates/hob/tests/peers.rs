//! The same files served by hob, nginx and Apache, asked the same raw requests.
//!
//! `peers/requests.txt` lists the requests, the status hob gives, and every difference to a peer
//! with its reason. A difference that is not listed fails, and so does a listed one that does not
//! occur: the table is what is true. A peer that is not installed is left out with one line.
//!
//! - `table` reads requests.txt
//! - `site` the files
//! - `servers` the three programs, on loopback
//! - `exchange` sending bytes, reading every answer to them
//! - `compare` what of two answers is compared, and the report
#![allow(clippy::unwrap_used)]

#[path = "peers/compare.rs"]
mod compare;
#[path = "peers/exchange.rs"]
mod exchange;
#[path = "peers/servers.rs"]
mod servers;
#[path = "peers/site.rs"]
mod site;
#[path = "peers/table.rs"]
mod table;

use servers::{Peer, Server, Start};
use table::Case;

/// What both sides of a comparison get for one case.
fn ask(server: &Server, case: &Case) -> compare::Facts {
    let bytes = case.bytes(&server.validators);
    let conversation = exchange::converse(server.port, &bytes)
        .unwrap_or_else(|error| panic!("{}: {}: {error}", server.name, case.name));
    compare::facts(&conversation)
}

/// hob as its peers can be: they compress on the fly by other rules, so that is off.
fn hob(site: &site::Site) -> Server {
    servers::hob(site, "compress = []\n")
}

#[test]
fn table_says_what_hob_answers() {
    let site = site::Site::make();
    let hob = hob(&site);
    let mut report = String::new();
    for case in table::cases() {
        let facts = ask(&hob, &case);
        report += &compare::statuses(&case, &facts);
    }
    assert!(report.is_empty(), "\n{report}");
}

fn every_difference_is_explained(peer: Peer) {
    let site = site::Site::make();
    let other = match servers::peer(peer, &site) {
        Start::Running(server) => server,
        Start::NotInstalled(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let hob = hob(&site);
    let mut report = String::new();
    for case in table::cases() {
        let (ours, theirs) = (ask(&hob, &case), ask(&other, &case));
        report += &compare::report(&case, peer, &ours, &theirs);
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn differences_to_nginx_are_explained() {
    every_difference_is_explained(Peer::Nginx);
}

#[test]
fn differences_to_apache_are_explained() {
    every_difference_is_explained(Peer::Apache);
}
