//! Whatever data is in whatever field: statements keep their shape, and pages their tags.
//!
//! Templates and data come from a small generator with a fixed seed. A page is judged by a reader
//! of markup that is written here, by the rules browsers follow, and shares nothing with the crate.

mod markup;
mod site;

use std::sync::Arc;

use hob_page::escape::{EscapeMode, HtmlPlace};
use hob_page::host::OwnHeader;
use hob_page::sql::{BindRules, bind};
use hob_page::tree::Page;
use hob_page::value::{Marks, Provenance, Text, ValueOrigin};

use markup::tags;
use site::{Site, pages, request};

/// A generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    fn some_of(&mut self, parts: &[&str], most: usize) -> String {
        let count = self.next(most + 1);
        (0..count).map(|_| parts[self.next(parts.len())]).collect()
    }
}

/// Pieces that hurt when they are pasted somewhere.
const NASTY: &[&str] = &[
    "'",
    "\"",
    "''",
    "`",
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "--",
    "/*",
    "*/",
    "//",
    ";",
    "=",
    "\\",
    "\n",
    "\r",
    "\t",
    " ",
    "\0",
    "%",
    "%}",
    "%{",
    "$(",
    "$(x)",
    "@f(",
    "@DTW_EXIT()",
    ")",
    "(",
    "{",
    "}",
    "${",
    "script",
    "</script>",
    "<script>",
    "onclick",
    "javascript:",
    "data:",
    "http:",
    "&",
    "&amp;",
    "&#39;",
    "&lt",
    "a",
    "1",
    "0.5",
    "-",
    "OR",
    "SELECT",
    "?",
    ":x",
    "$1",
    "[",
    "]",
    "ä",
    "\u{2028}",
    "title",
    "style",
    "]]>",
    "selected",
    ",",
    "!",
    "#",
    "x y",
    "%41",
];

const STATEMENTS: &[&str] = &[
    "SELECT a FROM t WHERE k = '«»' AND n > «» ORDER BY a",
    "SELECT a FROM t WHERE k LIKE '%«»%' OR k IN ('«»', '«»') LIMIT «»",
    "INSERT INTO t(a, b) VALUES ('«»', «»)",
    "UPDATE t SET a = '«»', b = lower('x''«»') WHERE c = «»",
    "SELECT a FROM t WHERE d = DATE '«»' -- a comment\n AND e = «»",
    "SELECT a /* it's */ FROM t WHERE b = '«»''«»'",
    "SELECT «» FROM t ORDER BY «»",
    "SELECT \"«»\" FROM «» WHERE «» = «»",
    "SELECT a FROM t WHERE a = «»«»",
    "SELECT $q$ it's «» $q$, E'\\'«»', x'«»' FROM t -- «»",
    "CALL p«»(«», '«»')",
];

fn filled(template: &str, data: &[String]) -> Text {
    let mut text = Text::new();
    let mut data = data.iter().cycle();
    for (index, part) in template.split("«»").enumerate() {
        if index > 0
            && let Some(data) = data.next()
        {
            text.push(data.as_bytes(), Provenance::of(ValueOrigin::Client));
        }
        text.push_macro(part.as_bytes());
    }
    text
}

#[test]
fn a_statement_has_the_shape_its_author_gave_it() {
    let mut numbers = Numbers(0x5eed);
    let rules = BindRules::default();
    for template in STATEMENTS {
        let benign = bind(&filled(template, &["x".to_string()]), &rules);
        for _ in 0..2_000 {
            let data: Vec<String> = (0..3).map(|_| numbers.some_of(NASTY, 6)).collect();
            let found = bind(&filled(template, &data), &rules);
            match (&benign, found) {
                (Ok(benign), Ok(found)) => assert_eq!(benign.text, found.text, "{data:?}"),
                // Empty data where nothing may stand is nothing.
                (Err(_), Ok(found)) => {
                    let is_author = bind(&filled(template, &[String::new()]), &rules);
                    assert_eq!(is_author.map(|s| s.text), Ok(found.text), "{data:?}");
                    assert!(data.iter().any(String::is_empty), "{template} {data:?}");
                }
                (_, Err(_)) => {}
            }
        }
    }
}

#[test]
fn a_bound_value_is_the_data_itself() {
    let mut numbers = Numbers(0xb0bb);
    for _ in 0..5_000 {
        let data = numbers.some_of(NASTY, 8);
        let text = filled(
            "SELECT a FROM t WHERE k = 'x«»y'",
            std::slice::from_ref(&data),
        );
        let statement = bind(&text, &BindRules::default()).expect("it is bound");
        assert_eq!(statement.text, "SELECT a FROM t WHERE k = ?");
        assert_eq!(
            statement.parameters[0].value,
            format!("x{data}y").into_bytes()
        );
    }
}

/// Pieces of markup an author may write; `«»` is where data comes.
const MARKUP: &[&str] = &[
    "<p>",
    "</p>",
    "text ",
    "«»",
    "<a href=\"«»\">",
    "<a href='/x?a=«»&b=«»#«»'>",
    "<a href=«»>",
    "<td class=«» id=x>",
    "<td class=a«»b>",
    "<input value=\"«»\" «»>",
    "<input value=«»>",
    "<i title='it«»s'>",
    "<b onclick=\"f('«»', «»)\">",
    "<b onclick=f(«»)>",
    "<hr style='«»'>",
    "<script>var a = '«»', b = \"x«»\", c = «»; // «»\n</script>",
    "<script>if (a / b > c / d) { e = /'\"/.test(\"«»\") } `${ '«»' }«»`</script>",
    "<style>p { color: «» }</style>",
    "<!-- «» -->",
    "<title></titl«»>",
    "<script>a='</scr«»>'</script>",
    "<title>«»</title>",
    "<textarea name=\"«»\">«»</textarea>",
    "<!doctype html>",
    "<br/>",
    "<img src=\"«»/«».png\" alt>",
    "<«»>",
    "</«»>",
    "<a«» b=c>",
    "<a b«»=c>",
    "1 < 2",
    "<xmp>«»</xmp>",
    "<iframe srcdoc=\"«»\">",
    "</iframe>",
    "<a href=\"javascript:f('«»')\">",
    "<a href=\"«»:«»\">",
    "'",
    "\"",
    " = ",
    "-->",
];

fn written(template: &str, data: &[String]) -> String {
    let mut place = HtmlPlace::new(EscapeMode::Context);
    let mut out = Vec::new();
    let mut data = data.iter().cycle();
    for (index, part) in template.split("«»").enumerate() {
        if index > 0
            && let Some(data) = data.next()
        {
            let _ = place.data(data.as_bytes(), Marks::NONE, &mut out);
        }
        place.author(part.as_bytes(), &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn a_page_has_the_tags_its_author_gave_it() {
    let mut numbers = Numbers(0x7a65);
    for _ in 0..4_000 {
        let template = numbers.some_of(MARKUP, 8);
        let benign = written(&template, &["x".to_string()]);
        for _ in 0..8 {
            let data: Vec<String> = (0..3).map(|_| numbers.some_of(NASTY, 5)).collect();
            let found = written(&template, &data);
            let is_flag = |name: &String| name == "selected";
            let wanted = tags(&benign);
            let mut found_tags = tags(&found);
            // The one word that data may be between attributes.
            for tag in &mut found_tags {
                tag.attributes.retain(|name| !is_flag(name));
            }
            assert_eq!(wanted, found_tags, "{template}\n{data:?}\n{found}");
        }
    }
}

/// Pieces of headers, and of what stands in their place.
const HEADS: &[&str] = &[
    "$(x)",
    "$(y)",
    "@DTW_rRAW(x)",
    "Content-Type",
    ": ",
    ":",
    "text/csv",
    "\n",
    "\r\n",
    " ",
    "X-A: b\n",
    "HTTP/1.0 200 OK\n",
    "<p>",
    "a",
    "\n\n",
];

/// Whether a page has printed a header of its own, and the names of its fields.
fn header_names(site: &Site, page: &Arc<Page>, query: &str) -> (OwnHeader, Vec<String>) {
    let answer = site.ask(page, &request(&format!("a?{query}")), None);
    let header = answer.taken.head.as_ref().expect("it began").header;
    let text = answer.text().replace('\r', "");
    let head = text.split("\n\n").next().unwrap_or_default();
    let lines = head.lines().filter(|_| header == OwnHeader::Printed);
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    (header, lines.map(name).collect())
}

#[test]
fn a_page_has_the_header_its_author_gave_it() {
    let mut numbers = Numbers(0x6ead);
    let site = Site::new(&pages(), "");
    for _ in 0..1_000 {
        let template = numbers.some_of(HEADS, 8);
        let source = format!("%DEFINE DTW_PRINT_HEADER = \"NO\" %HTML(a) {{{template}\n\n%}}");
        let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
        let wanted = header_names(&site, &page, "");
        for _ in 0..4 {
            let data: Vec<String> = (0..2).map(|_| numbers.some_of(NASTY, 5)).collect();
            let sent = |data: &String| -> String {
                let mut bytes = data.bytes().chain(*b"\r\nB: b\r\n\r\n");
                let hex = |byte| format!("%{byte:02X}");
                bytes.by_ref().map(hex).collect()
            };
            let query = format!("x={}&y={}", sent(&data[0]), sent(&data[1]));
            let found = header_names(&site, &page, &query);
            assert_eq!(found, wanted, "{template:?}\n{data:?}");
        }
    }
}

#[test]
fn no_data_of_a_whole_page_runs_as_a_page() {
    let source = std::fs::read(pages().join("parts.d2w")).expect("the sample is there");
    let page = Arc::new(Page::parse("parts.d2w", &source).expect("it is read"));
    let schema = "CREATE TABLE part (id INTEGER PRIMARY KEY, kind TEXT, title TEXT, cents INTEGER)";
    let site = Site::new(&pages(), schema);
    let mut numbers = Numbers(0x9a9e);
    for _ in 0..300 {
        let (kind, q) = (numbers.some_of(NASTY, 6), numbers.some_of(NASTY, 6));
        let mut request = request("list");
        request
            .fields
            .push(("kind".to_string(), kind.clone().into_bytes()));
        request
            .fields
            .push(("q".to_string(), q.clone().into_bytes()));
        let answer = site.ask(&page, &request, None);
        assert!(answer.outcome.is_ok(), "{kind:?} {q:?}");
        let wanted = match (kind.is_empty(), q.is_empty()) {
            (false, false) => " WHERE kind = ? AND title LIKE ?",
            (false, true) => " WHERE kind = ?",
            (true, false) => " WHERE title LIKE ?",
            (true, true) => "",
        };
        let statement = &answer.kept.statements[0].text;
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = format!("SELECT id, title, cents FROM part{wanted} ORDER BY id");
        assert_eq!(statement, wanted, "{kind:?} {q:?}");
    }
}
