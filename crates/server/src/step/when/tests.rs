//! Each condition by itself, on heads as they are sent.

use hob_config::{AddressRange, ClientSet};
use hob_http::limits::HttpLimits;

use super::*;
use crate::route::pattern::Pattern;

fn request(method: &str, target: &str, fields: &str) -> Request {
    let head = format!("{method} {target} HTTP/1.1\r\nHost: Shop.Example:8080\r\n{fields}\r\n");
    Request::offline(head.as_bytes(), &HttpLimits::default()).unwrap()
}

fn get(target: &str, fields: &str) -> Request {
    request("GET", target, fields)
}

fn conditions(when: RouteWhen) -> RouteConditions {
    let when = Arc::new(when);
    RouteConditions::of([Some(&when), None].into_iter(), &table(2), &[]).unwrap()
}

fn holds(when: RouteWhen, request: &Request) -> bool {
    let conditions = conditions(when);
    let asked = AskedRoute::of(request);
    // The route that asks nothing answers anyway.
    assert_eq!(conditions.answer(1, &asked), RouteAnswer::Yes);
    assert!(conditions.unmet(1, &asked).is_none());
    let answer = conditions.answer(0, &asked);
    let holds = answer == RouteAnswer::Yes;
    assert!(holds || answer == RouteAnswer::No(Some(1)));
    assert_eq!(holds, conditions.unmet(0, &asked).is_none());
    holds
}

/// So many routes with one pattern.
fn table(count: usize) -> RouteTable {
    let pattern = Pattern::parse("/*").unwrap();
    RouteTable::build(std::iter::repeat_n(&pattern, count))
}

fn wanted(name: &str, value: &str) -> Vec<WantedValue> {
    vec![WantedValue {
        name: name.to_owned(),
        value: ValuePattern::parse(value).unwrap(),
    }]
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn sites_that_ask_nothing_have_no_conditions() {
    assert!(RouteConditions::of([None, None].into_iter(), &table(2), &[]).is_none());
}

#[test]
fn method_is_one_of_them() {
    let when = || RouteWhen {
        methods: texts(&["POST", "M-SEARCH"]),
        ..RouteWhen::default()
    };
    for (method, expected) in [
        ("POST", true),
        ("M-SEARCH", true),
        ("GET", false),
        ("POSU", false),
        ("post", false),
    ] {
        assert_eq!(
            holds(when(), &request(method, "/", "")),
            expected,
            "{method}"
        );
    }
}

#[test]
fn host_is_one_of_them() {
    for (host, expected) in [
        ("shop.example", true),
        ("*.example", true),
        ("*.shop.example", false),
        ("other.example", false),
        ("*.op.example", false),
    ] {
        let when = RouteWhen {
            hosts: texts(&["a.test", host]),
            ..RouteWhen::default()
        };
        assert_eq!(holds(when, &get("/", "")), expected, "{host}");
    }
}

#[test]
fn fields_are_compared_line_by_line() {
    let fields = "X-Beta: 1\r\nx-beta: two\r\nUser-Agent: Mozilla (Mobile)\r\nX-Empty:\r\n";
    for (name, value, expected) in [
        ("x-beta", "1", true),
        ("x-beta", "two", true),
        ("x-beta", "t*", true),
        ("x-beta", "TWO", false),
        ("x-beta", "1, two", false),
        ("user-agent", "*Mobile*", true),
        ("user-agent", "*Mobile)", true),
        ("user-agent", "Mobile*", false),
        ("x-empty", "", true),
        ("x-empty", "*", true),
        ("x-gamma", "*", false),
        ("x-gamma", "", false),
    ] {
        let when = RouteWhen {
            fields: wanted(name, value),
            ..RouteWhen::default()
        };
        assert_eq!(holds(when, &get("/", fields)), expected, "{name}: {value}");
    }
}

#[test]
fn first_value_of_the_query_counts_decoded() {
    let target = "/?format=json&format=xml&q=green+tea%21&%6eame=x&flag&e=";
    for (name, value, expected) in [
        ("format", "json", true),
        ("format", "xml", false),
        ("format", "*", true),
        ("q", "green tea!", true),
        ("q", "green+tea%21", false),
        ("q", "green *", true),
        ("q", "* tea!", true),
        ("q", "*n t*", true),
        ("q", "*much longer than green tea!", false),
        ("name", "x", true),
        ("flag", "", true),
        ("flag", "*", true),
        ("e", "", true),
        ("Format", "*", false),
        ("nothing", "*", false),
    ] {
        let when = RouteWhen {
            queries: wanted(name, value),
            ..RouteWhen::default()
        };
        assert_eq!(holds(when, &get(target, "")), expected, "{name}={value}");
    }
    let when = RouteWhen {
        queries: wanted("a", "*"),
        ..RouteWhen::default()
    };
    assert!(!holds(when, &get("/", "")));
}

#[test]
fn cookies_are_found_by_their_names() {
    let fields = "Cookie: ab=b; AB=c\r\nCookie: sid=abc=; ab=second;e=\r\n";
    for (name, value, expected) in [
        ("ab", "b", true),
        ("ab", "second", false),
        ("AB", "c", true),
        ("sid", "abc=", true),
        ("sid", "abc", false),
        ("sid", "abc*", true),
        ("e", "", true),
        ("a", "*", false),
        ("b", "*", false),
    ] {
        let when = RouteWhen {
            cookies: wanted(name, value),
            ..RouteWhen::default()
        };
        assert_eq!(holds(when, &get("/", fields)), expected, "{name}={value}");
    }
}

#[test]
fn all_that_is_said_has_to_hold() {
    let when = || RouteWhen {
        methods: texts(&["GET"]),
        fields: wanted("x-beta", "1"),
        queries: wanted("format", "json"),
        ..RouteWhen::default()
    };
    let beta = "X-Beta: 1\r\n";
    assert!(holds(when(), &get("/?format=json", beta)));
    assert!(!holds(when(), &get("/?format=json", "")));
    assert!(!holds(when(), &get("/", beta)));
    assert!(!holds(when(), &request("POST", "/?format=json", beta)));
}

#[test]
fn client_without_an_address_is_one_of_unix() {
    let addresses = |unix| RouteWhen {
        addresses: Some(ClientSet::new(
            vec![AddressRange::parse("10.0.0.0/8").unwrap()],
            unix,
        )),
        ..RouteWhen::default()
    };
    let share = |parts| RouteWhen {
        share: Some(ClientShare(parts)),
        ..RouteWhen::default()
    };
    assert!(holds(addresses(true), &get("/", "")) && !holds(addresses(false), &get("/", "")));
    // It is no client of its own: it is of all, and of no smaller share.
    assert!(holds(share(ClientShare::ALL), &get("/", "")));
    assert!(!holds(share(ClientShare::ALL - 1), &get("/", "")));
}

#[test]
fn listener_is_known_by_its_number() {
    let addresses: Vec<ListenAddress> = ["127.0.0.1:80", "127.0.0.1:81", "127.0.0.1:82"]
        .map(|text| ListenAddress::Tcp(text.parse().unwrap()))
        .into();
    let all: Vec<&ListenAddress> = addresses.iter().collect();
    let when = Arc::new(RouteWhen {
        listeners: vec![addresses[1].clone()],
        ..RouteWhen::default()
    });
    // A request made here comes by the listener with the number 0.
    for (numbers, expected) in [([5, 0, 7], true), ([0, 5, 7], false), ([5, 6, 7], false)] {
        let conditions = RouteConditions::of([Some(&when)].into_iter(), &table(1), &all).unwrap();
        conditions.number_listeners(numbers.into_iter());
        let request = get("/", "");
        let answer = conditions.answer(0, &AskedRoute::of(&request));
        assert_eq!(answer == RouteAnswer::Yes, expected);
    }
}

/// Routes that need the same are passed by together, and no others.
#[test]
fn routes_that_need_what_is_not_there_are_passed_by_together() {
    let field = |name: &str, value: &str| {
        Arc::new(RouteWhen {
            fields: wanted(name, value),
            ..RouteWhen::default()
        })
    };
    let whens = [
        field("x-a", "1"),
        field("x-a", "2"),
        field("x-a", "3"),
        field("x-b", "1"),
        field("x-a", "4"),
    ];
    let all = whens.iter().map(Some).chain([None]);
    let table = table(6);
    let conditions = RouteConditions::of(all, &table, &[]).unwrap();
    let found = |fields: &str| {
        let request = get("/", fields);
        let asked = AskedRoute::of(&request);
        let found = table.find_where(b"/", |route| conditions.answer(route, &asked));
        found.map(|found| found.route)
    };
    let request = get("/", "");
    let first = conditions.answer(0, &AskedRoute::of(&request));
    assert_eq!(first, RouteAnswer::No(Some(3)));
    for (fields, expected) in [
        ("", 5),
        ("X-A: 1\r\n", 0),
        ("X-A: 2\r\n", 1),
        ("X-A: 3\r\n", 2),
        ("X-A: 4\r\n", 4),
        ("X-B: 1\r\n", 3),
        ("X-B: 2\r\n", 5),
        ("X-A: 5\r\n", 5),
    ] {
        assert_eq!(found(fields), Some(expected), "{fields}");
    }
}

/// A share has about as many as it says, of addresses in a row and of such far apart, and a larger
/// one has all of a smaller one.
#[test]
fn clients_spread_evenly_and_keep_their_places() {
    let v4 = |number: u32| Some(IpAddr::from(number.to_be_bytes()));
    let rows: [fn(u32) -> u32; 3] = [
        |n| 0x0a00_0000 + n,
        |n| n << 12,
        |n| n.wrapping_mul(0x9e37_79b9),
    ];
    for row in rows {
        let places: Vec<u32> = (0..20_000)
            .map(|n| place_among_clients(v4(row(n))))
            .collect();
        for percent in [1, 10, 50, 90] {
            let share = percent * (ClientShare::ALL / 100);
            let count = places.iter().filter(|place| **place < share).count();
            let expected = percent as f64 * 200.0;
            // Five times what chance alone makes of 20,000.
            let most =
                5.0 * (20_000.0 * 0.01 * percent as f64 * (1.0 - 0.01 * percent as f64)).sqrt();
            assert!(
                (count as f64 - expected).abs() < most,
                "{percent} %: {count}"
            );
        }
    }
    let same = |one: &str, other: &str| {
        let place = |text: &str| place_among_clients(Some(text.parse().unwrap()));
        place(one) == place(other)
    };
    assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
    assert!(same("2001:db8::1", "2001:db8::ffff:2") && !same("2001:db8::1", "2001:db8:0:1::1"));
    // Machines and versions agree: these places stay as they are.
    assert_eq!(place_among_clients(v4(0xc000_0201)), 81_541);
}
