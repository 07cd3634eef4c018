//! Views without a network: what is wanted, in which order, and what a cache leaves out.

use super::*;
use crate::send::kept::Keep;

fn visit(has_cache: bool) -> (Visitor, PageCount, Readings) {
    let mut visitor = Visitor::new(has_cache);
    let base = Base::of(&"http://localhost/dir/".parse().unwrap());
    visitor.begin(&base, What::Measured, 0, (0, 0));
    (visitor, PageCount::new(), Readings::default())
}

fn answer(status: u16, fields: &[(&str, &str)], body: &str) -> FetchOutcome {
    let mut kept = Kept::new(Keep::Body);
    for (name, value) in fields {
        kept.field(name.as_bytes(), value.as_bytes());
    }
    kept.data(body.as_bytes());
    FetchOutcome::Answered(Answered {
        status,
        body_bytes: body.len() as u64,
        is_expected: status < 400,
        kept,
    })
}

/// Goes through a view with an answer for each target; what was asked for, with its validator.
fn view(
    (visitor, count, readings): &mut (Visitor, PageCount, Readings),
    now: u64,
    reply: impl Fn(&AssetRequest) -> FetchOutcome,
) -> (Vec<String>, PageViewOutcome) {
    let mut asked = Vec::new();
    while let Some(wanted) = visitor.next(now, count) {
        let etag = wanted.etag.as_deref().unwrap_or_default();
        asked.push(format!("{} {etag}", wanted.target).trim_end().to_owned());
        let outcome = reply(&wanted);
        visitor.settled(wanted, outcome, (now, now + 1), readings, count);
    }
    (asked, visitor.end().unwrap().1)
}

#[test]
fn assets_follow_the_document_and_what_they_name_follows_them() {
    let mut visit = visit(false);
    let (asked, ended) = view(&mut visit, 5, |wanted| match &*wanted.target {
        "/dir/" => answer(
            200,
            &[],
            "<img src=a.png><link rel=stylesheet href=../b.css><script src=//cdn.example/x.js></script>\
             <img src=a.png><iframe src=/frame></iframe>",
        ),
        "/b.css" => answer(
            200,
            &[("content-type", "text/css")],
            "@import 'c/d.css'; a{b:url(e.png)}",
        ),
        "/c/d.css" => answer(
            200,
            &[],
            "@font-face{src:url(f.woff2)} x{y:url(../dir/a.png)}",
        ),
        "/frame" => answer(200, &[], "<base href=/g/><img src=h.png>"),
        "/e.png" => answer(404, &[], ""),
        _ => answer(200, &[], "<img src=no>"),
    });
    let order = [
        "/dir/",
        "/b.css",
        "/c/d.css",
        "/c/f.woff2",
        "/dir/a.png",
        "/frame",
        "/e.png",
        "/g/h.png",
    ];
    assert_eq!(asked, order);
    assert_eq!(ended.fault.unwrap().1, "/e.png: 404");
    assert_eq!((ended.status, ended.first_byte_ns), (Some(200), Some(6)));
    let count = visit.1;
    assert_eq!((count.requests, count.elsewhere), (8, 1));
    assert_eq!(count.origins.keys().next().unwrap(), "http://cdn.example");
    assert_eq!(count.assets["/e.png"].times.failed, 1);
}

#[test]
fn second_view_asks_only_for_what_is_not_fresh() {
    let mut visit = visit(true);
    let reply = |wanted: &AssetRequest| match (&*wanted.target, &wanted.etag) {
        (_, Some(_)) => answer(304, &[], ""),
        ("/dir/", _) => answer(
            200,
            &[("etag", "\"1\"")],
            "<link rel=stylesheet href=b.css><img src=c.png><img src=d.png><img src=e.png>",
        ),
        ("/dir/b.css", _) => answer(
            200,
            &[("etag", "\"2\""), ("cache-control", "max-age=1")],
            "a{b:url(f.png)}",
        ),
        ("/dir/c.png", _) => answer(200, &[("cache-control", "no-store"), ("etag", "x")], ""),
        ("/dir/d.png", _) => answer(200, &[("cache-control", "max-age=1")], ""),
        _ => answer(200, &[("etag", "\"4\"")], ""),
    };
    assert_eq!(view(&mut visit, 0, reply).0.len(), 6);
    let base = Base::of(&"http://localhost/dir/".parse().unwrap());
    visit.0.begin(&base, What::Measured, 0, (0, 0));
    let second = [
        "/dir/ \"1\"",
        "/dir/c.png",
        "/dir/e.png \"4\"",
        "/dir/f.png \"4\"",
    ];
    assert_eq!(view(&mut visit, 500_000_000, reply).0, second);
    assert_eq!((visit.1.from_cache, visit.1.not_modified), (2, 3));
    // Later what was fresh is so no more.
    visit.0.begin(&base, What::Measured, 0, (0, 0));
    let (third, ended) = view(&mut visit, 2_000_000_000, reply);
    assert_eq!(third.len(), 6);
    assert!(ended.fault.is_none());
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let mut one = visit(false);
    let (asked, ended) = view(&mut one, 0, |wanted| match &*wanted.target {
        "/dir/" => answer(302, &[("location", "../new/")], ""),
        "/new/" => answer(200, &[], "<img src=a.png>"),
        _ => answer(301, &[("location", "https://elsewhere.example/")], ""),
    });
    assert_eq!(asked, ["/dir/", "/new/", "/new/a.png"]);
    assert!(ended.fault.is_none());
    assert_eq!(one.1.elsewhere, 1);
    let mut round = visit(false);
    let (asked, ended) = view(&mut round, 0, |_| answer(302, &[("location", "/dir/")], ""));
    assert_eq!(asked.len(), usize::from(REDIRECT_COUNT_MAX) + 1);
    assert_eq!(ended.fault.unwrap().1, "/dir/: more than 20 redirects");
}

#[test]
fn page_without_an_answer_says_why() {
    let mut visit = visit(false);
    let failed =
        |_: &AssetRequest| FetchOutcome::Failed(FailureKind::Connect, "refused".to_owned());
    let (_, ended) = view(&mut visit, 0, failed);
    assert_eq!(ended.status, None);
    assert_eq!(
        ended.fault,
        Some((FailureKind::Connect, "/dir/: refused".to_owned()))
    );
}
