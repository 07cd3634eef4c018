//! What goes around heads and bodies: interim answers, trailers, traces, and what a client shows.

use std::process::Command;

use crate::authority::Authority;
use crate::harness::client::{ask, raw};
use crate::harness::site::Site;
use crate::harness::text_of;
use crate::pair::{Owner, TLS, front_place, pair, place_with_program};
use crate::streams::live;

#[test]
fn interim_answers_and_trailers_come_around_the_answer() {
    let (owner, front) = live();
    let asked =
        b"GET /app/around HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n";
    let all = raw(front.port(), asked);
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 201 ";
    assert!(
        all.to_lowercase().starts_with(&interim.to_lowercase()),
        "{all}"
    );
    let end = "\r\n\r\n4\r\nmade\r\n0\r\nchecksum: 1\r\n\r\n";
    assert!(all.to_lowercase().ends_with(end), "{all}");
    // Who wants no trailers gets the same body without any.
    let all = raw(
        front.port(),
        b"GET /app/around HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    );
    assert!(all.contains("made"), "{all}");
    front.stop();
    owner.stop();
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// The line of a program's variables that begins so.
fn line(text: &str, begin: &str) -> String {
    let found = text.lines().find(|line| line.starts_with(begin));
    found.unwrap_or_default().to_owned()
}

#[test]
fn trace_goes_on_through_both() {
    let traced = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\ntracestate: a=1\r\n");
    let own = format!("HTTP_TRACEPARENT=00-{TRACE}-{CALLER}-01");
    for (at_front, at_owner) in [(false, false), (true, false), (false, true), (true, true)] {
        let otlp = |is_on: bool| match is_on {
            // Nobody takes the spans: what programs are told does not wait for that.
            true => "otlp = { endpoint = \"http://127.0.0.1:1\", one_in = 1 }\n",
            false => "",
        };
        let authority = Authority::new("hobs");
        let place = place_with_program();
        crate::pair::certify(&place, &authority, "owner");
        let config = Owner::config(&place, "cgi", "\"front\"", "");
        let hob = place.serve_text(&format!("{}{config}", otlp(at_owner)));
        let owner = Owner { place, hob };
        let place = front_place(&authority);
        let handler = format!(
            "remote = {{ to = [{}], program = \"app\", {TLS} }}",
            owner.to()
        );
        let front = crate::harness::site::Site::serve(place, otlp(at_front), &handler, "");
        let text = ask(front.port(), "GET", "/app/tell", &traced).text();
        let told = line(&text, "HTTP_TRACEPARENT=");
        assert!(
            told.starts_with(&own[..own.len() - CALLER.len() - 3]),
            "{text}"
        );
        // Each that keeps spans puts its own in between.
        assert_eq!(told == own, !at_front && !at_owner, "{told}");
        assert_eq!(line(&text, "HTTP_TRACESTATE="), "HTTP_TRACESTATE=a=1");
        front.stop();
        owner.stop();
    }
}

#[test]
fn certificate_of_the_client_is_told_and_not_that_of_the_machine() {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(place_with_program(), &authority, "cgi", "\"front\"");
    let place = front_place(&authority);
    let clients = Authority::new("clients");
    clients.write(&place, "clients.pem");
    let ada = clients.sign_with(&["ada.test"], |params| {
        params.distinguished_name = rcgen::DistinguishedName::new();
        let name = &mut params.distinguished_name;
        name.push(rcgen::DnType::OrganizationName, "Tea & Co");
        name.push(rcgen::DnType::CommonName, "Ada");
    });
    ada.write(&place, "ada");
    let front = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         tls = {{ certificate = \"own.pem\", key = \"own.key\" }}\n\
         [[site]]\ntls = {{ client = \"ask\", client_ca = \"clients.pem\" }}\n\
         [[site.route]]\npath = \"/app/*\"\n\
         remote = {{ to = {}, program = \"app\", {TLS} }}\n",
        owner.to()
    ));
    let get = |options: &[&str]| {
        let mut curl = Command::new("curl");
        curl.current_dir(place.path(""))
            .args(["--silent", "--show-error", "--cacert", "ca.pem"]);
        curl.args(options)
            .arg(format!("https://localhost:{}/app/tell", front.tls_port()));
        text_of(&curl.output().unwrap())
    };
    let forged = ["--header", "SSL-CLIENT-S-DN: CN=root"];
    let text = get(&[&["--cert", "ada.pem", "--key", "ada.key"][..], &forged].concat());
    for line in [
        "HTTPS=on",
        "SSL_CLIENT_VERIFY=SUCCESS",
        "SSL_CLIENT_S_DN=CN=Ada,O=Tea & Co",
        "SSL_CLIENT_S_DN_CN=Ada",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in {text}");
    }
    let text = get(&forged);
    assert!(
        text.lines().any(|one| one == "SSL_CLIENT_VERIFY=NONE"),
        "{text}"
    );
    assert_eq!(line(&text, "SSL_CLIENT_S_DN"), "");
    front.stop();
    owner.stop();
}

#[test]
fn what_is_carried_takes_no_room_from_the_fields_of_the_client() {
    let (owner, front) = pair("resident");
    // `Host`, `Connection` and these are as many as a request may have.
    let fields = |count: usize| {
        let names = (0..count).map(|at| format!("X-{at}: {at}\r\n"));
        names.collect::<String>()
    };
    let answer = ask(front.port(), "GET", "/app/tell", &fields(98));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("HTTP_X_97=97\n"));
    assert_eq!(
        ask(front.port(), "GET", "/app/tell", &fields(101)).status,
        431
    );
    // A head of almost 64 KiB, in which what is carried is long, too.
    let target = format!("/app/tell?{}", "%20".repeat(2_600));
    let long = format!("X-Long: {}\r\n", "y".repeat(56_000));
    let answer = ask(front.port(), "GET", &target, &long);
    assert_eq!(answer.status, 200, "{}", answer.text());
    front.stop();
    owner.stop();
}

#[test]
fn authority_that_a_reload_takes_back_is_no_longer_believed_on_connections_that_stand() {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(place_with_program(), &authority, "cgi", "\"front\"");
    // Each thread has connections of its own over HTTP/2.
    let handler = format!(
        "remote = {{ to = [{}], program = \"app\", {TLS} }}",
        owner.to()
    );
    let front = Site::serve(front_place(&authority), "threads = 1\n", &handler, "");
    assert_eq!(front.get("/app/tell").answer.status, 200);
    let others = Authority::new("others");
    others.write(&owner.place, "others.pem");
    let own = std::fs::read_to_string(owner.place.path("ca.pem")).unwrap();
    let other = std::fs::read_to_string(owner.place.path("others.pem")).unwrap();
    let reload = |text: &str| {
        owner.place.write("ca.pem", text);
        let reloaded = owner.place.run(&["reload"]);
        assert!(reloaded.status.success(), "{}", text_of(&reloaded));
    };
    // One more may sign: who came before stays.
    reload(&format!("{other}{own}"));
    assert_eq!(front.get("/app/tell").answer.status, 200);
    assert_eq!(front.place.counter("upstream_connects"), 1);
    assert_eq!(owner.place.counter("offer_refused"), 0);
    reload(&other);
    assert_eq!(front.get("/app/tell?gone").answer.status, 502);
    assert_eq!(owner.place.counter("offer_refused"), 1);
    assert_eq!(front.place.counter("upstream_connects"), 1);
    let detail = front.record("/app/tell?gone")["detail"].to_string();
    let why = "offer: nobody who may sign for others any more has signed this certificate";
    assert!(detail.contains(why), "{detail}");
    reload(&own);
    assert_eq!(front.get("/app/tell").answer.status, 200);
    front.stop();
    owner.stop();
}
