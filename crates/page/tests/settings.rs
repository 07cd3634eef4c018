//! What the server and the initialization file say of a run.

mod site;

use std::sync::Arc;

use hob_page::escape::EscapeMode;
use hob_page::fault::PageFaultKind;
use hob_page::host::{Absent, Host, OwnHeader, PageHead, Sink, SinkGone};
use hob_page::ini::Ini;
use hob_page::limits::PageLimits;
use hob_page::run::run;
use hob_page::tree::Page;

use site::{Answer, Site, Still, pages, request};

fn page(source: &str) -> Arc<Page> {
    Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"))
}

fn asked(source: &str, target: &str, ini: &str) -> Answer {
    let mut site = Site::new(&pages(), "");
    site.settings.ini = Ini::parse("db2www.ini", ini.as_bytes()).expect("it is read");
    site.ask(&page(source), &request(target), None)
}

#[test]
fn escaping_can_be_said_for_a_folder() {
    let source = page("%HTML(a) { <a href=$(x)> %}");
    let mut site = Site::new(&pages(), "");
    for (mode, wanted) in [
        (EscapeMode::Context, "<a href=%22%3E>"),
        (EscapeMode::Html, "<a href=&quot;&gt;>"),
        (EscapeMode::Off, "<a href=\">>"),
    ] {
        site.settings.escape = mode;
        let answer = site.ask(&source, &request("a?x=\">"), None);
        assert_eq!(answer.text().trim(), wanted);
    }
}

#[test]
fn a_page_may_print_its_own_header_and_data_adds_no_line_to_it() {
    let source = "%DEFINE DTW_PRINT_HEADER = \"NO\"
%HTML(a) {Content-Type: text/html
X-Who: $(x)

<p title=\"$(x)\">$(x)</p>%}";
    let answer = asked(source, "a?x=a%0d%0aSet-Cookie:b<", "");
    let wanted = "Content-Type: text/html\nX-Who: aSet-Cookie:b<\n\n\
                  <p title=\"a\r\nSet-Cookie:b&lt;\">a\r\nSet-Cookie:b&lt;</p>";
    assert_eq!(answer.text(), wanted);
    let head = answer.taken.head.expect("it began");
    assert_eq!(head.header, OwnHeader::Printed);
}

/// What a page with a header of its own prints, and whether it has one.
fn headed(body: &str, query: &str) -> (OwnHeader, String) {
    let source = format!("%DEFINE DTW_PRINT_HEADER = \"NO\"\n%HTML(a) {{{body}%}}");
    let answer = asked(&source, &format!("a?{query}"), "");
    let head = answer.taken.head.as_ref().expect("it began");
    (head.header, answer.text())
}

#[test]
fn a_page_that_announces_a_header_and_prints_none_is_printed_whole() {
    for (body, query, wanted) in [
        ("\n  <!DOCTYPE html>\n<p>a", "", "\n  <!DOCTYPE html>\n<p>a"),
        (
            "<p title=\"$(x)\">$(x)",
            "x=%3Cb%22",
            "<p title=\"&lt;b&quot;\">&lt;b&quot;",
        ),
        ("\nContent Type: a\n\n", "", "\nContent Type: a\n\n"),
        ("Hello", "", "Hello"),
        ("\n\n", "", "\n\n"),
        ("$(x)", "x=a", "a"),
    ] {
        assert_eq!(headed(body, query), (OwnHeader::Missing, wanted.to_owned()));
    }
}

#[test]
fn data_is_never_a_header_nor_keeps_a_page_from_its_own() {
    let sent = "x=Set-Cookie:+a%3Db%0D%0A%0D%0A%3Cscript%3E";
    let data = "Set-Cookie: a=b\r\n\r\n&lt;script&gt;";
    // The page's author has begun no header.
    for (body, wanted) in [
        ("$(x)\n\n<p>", format!("{data}\n\n<p>")),
        ("\n$(x)<p>$(x)", format!("\n{data}<p>{data}")),
        ("Note$(x)<p>", format!("Note{data}<p>")),
    ] {
        assert_eq!(headed(body, sent), (OwnHeader::Missing, wanted));
    }
    // Its author has: what was sent is not in it, and changes nothing of its kind.
    for body in [
        "$(x)Content-Type: text/csv\n\na",
        "\n$(x)\nContent-Type: text/csv\n\na",
        "Content-$(x)Type: text/csv\n\na",
        "@DTW_rRAW(x)Content-Type: text/csv\n\na",
    ] {
        let wanted = "Content-Type: text/csv\n\na".to_owned();
        assert_eq!(headed(body, sent), (OwnHeader::Printed, wanted.clone()));
        assert_eq!(headed(body, ""), (OwnHeader::Printed, wanted));
    }
    let (header, text) = headed("A: @DTW_rRAW(x)\n$(x)B: b\n\n", sent);
    let wanted = "A: Set-Cookie: a=b<script>\nB: b\n\n";
    assert_eq!((header, &*text), (OwnHeader::Printed, wanted));
}

#[test]
fn data_adds_no_line_to_a_header_however_data_is_escaped() {
    let source = "%DEFINE DTW_PRINT_HEADER = \"NO\"\n%HTML(a) {A: $(x)\n\n$(x)%}";
    let mut site = Site::new(&pages(), "");
    for escape in [EscapeMode::Context, EscapeMode::Html, EscapeMode::Off] {
        site.settings.escape = escape;
        let answer = site.ask(&page(source), &request("a?x=b%0D%0AC:c"), None);
        assert_eq!(answer.text(), "A: bC:c\n\nb\r\nC:c");
    }
}

#[test]
fn data_that_is_more_than_a_page_may_hold_before_its_header_ends_the_run() {
    let source = "%DEFINE DTW_PRINT_HEADER = \"NO\"\n%HTML(a) {$(x)\n%}";
    let mut site = Site::new(&pages(), "");
    site.settings.limits.piece_bytes = 200;
    let answer = site.ask(
        &page(source),
        &request(&format!("a?x={}", "b".repeat(20))),
        None,
    );
    assert_eq!(answer.text(), format!("{}\n", "b".repeat(20)));
    let answer = site.ask(
        &page(source),
        &request(&format!("a?x={}", "b".repeat(200))),
        None,
    );
    let fault = answer.outcome.expect_err("it is too much");
    assert!(fault.message.contains("prints data first"), "{fault}");
    // Blanks of the page's own are no header.
    let blank = source.replace("$(x)", &"\n".repeat(200));
    let answer = site.ask(&page(&blank), &request("a"), None);
    let head = answer.taken.head.as_ref().expect("it began");
    assert_eq!(head.header, OwnHeader::Missing);
    assert_eq!(answer.text(), "\n".repeat(201));
}

#[test]
fn a_header_may_end_its_lines_as_on_the_as_400() {
    let source = "%DEFINE { DTW_PRINT_HEADER = \"NO\" DTW_REMOVE_WS = \"YES\"
  end = {@DTW_rHEXTOCHAR(\"0D25\")%} %}
%HTML(a) {
Expires: 0$(end)
Content-Type: text/csv$(end)$(end)
a,b%}";
    let answer = asked(source, "a", "");
    let wanted = "Expires: 0\r\nContent-Type: text/csv\r\n\r\n\na,b";
    assert_eq!(answer.text(), wanted);
}

#[test]
fn blanks_can_be_taken_out() {
    let source = "%HTML(a) {  <b>\n\n   x   y  </b>\n <pre> a  b </pre> %}";
    let answer = asked(source, "a", "DTW_REMOVE_WS YES");
    assert_eq!(answer.text(), " <b>\nx y </b>\n<pre> a b </pre> ");
    let source = format!("%DEFINE DTW_REMOVE_WS = \"NO\" {source}");
    let answer = asked(&source, "a", "DTW_REMOVE_WS YES");
    assert!(answer.text().contains("x   y"));
}

#[test]
fn variables_of_functions_leak_unless_the_file_says_otherwise() {
    let source = "%MACRO_FUNCTION f() { @DTW_ASSIGN(x, \"1\") %} %HTML(a) { @f()[$(x)] %}";
    assert_eq!(asked(source, "a", "").text().trim(), "[1]");
    assert_eq!(
        asked(source, "a", "DTW_VARIABLE_SCOPE LOCAL").text().trim(),
        "[]"
    );
}

#[test]
fn a_client_sets_its_own_variables_and_no_others() {
    let source = "%DEFINE { REMOTE_USER = %ENVVAR a = \"page\" %}
%DEFINE(PROTECTED) b = \"page\"
%DEFINE DTW_X = \"page\"
%HTML(a) { $(REMOTE_USER) $(a) $(b) $(DTW_X) $(c) [$(ROW_NUM)] [$(V_x)] $(START_ROW_NUM) %}";
    let target = "a?REMOTE_USER=root&a=client&b=client&DTW_X=client&c=client&ROW_NUM=9&V_x=9\
                  &START_ROW_NUM=7&START_ROW_NUM=x";
    let text = asked(source, target, "").text();
    assert_eq!(text.trim(), "ann client page page client [] [] 7");
}

#[test]
fn values_of_the_initialization_file_are_the_authors() {
    let source = "%HTML(a) { @DTW_rGETINIDATA(\"NAME\") %}";
    assert_eq!(asked(source, "a", "NAME <b>").text().trim(), "<b>");
}

#[test]
fn a_trace_hears_of_every_variable_that_is_set() {
    let site = Site::new(&pages(), "");
    let source = page("%HTML(a) { @DTW_ASSIGN(x, \"1\") @DTW_ADD(x, \"2\", y) %}");
    let answer = site.ask(&source, &request("a"), None);
    assert_eq!(answer.kept.variables, ["x = 1", "y = 3"]);
}

#[test]
fn output_leaves_in_pieces_and_cookies_only_before_the_first() {
    let mut site = Site::new(&pages(), "");
    site.settings.limits = PageLimits {
        piece_bytes: 100,
        ..PageLimits::default()
    };
    let source = page(
        "%DEFINE i = \"0\" %HTML(a) { @DTW_SETCOOKIE(\"early\", \"1\")
        %WHILE (i < \"50\") { @DTW_ADD(i, \"1\", i) line $(i) %}
        @DTW_SETCOOKIE(\"late\", \"1\") $(RETURN_CODE) %}",
    );
    let answer = site.ask(&source, &request("a"), None);
    assert!(answer.taken.pieces > 5);
    assert!(answer.text().contains("line 50") && answer.text().trim_end().ends_with("1007"));
    assert_eq!(answer.taken.head.expect("it began").cookies, ["early=1"]);
}

/// Goes away at its second piece.
struct Leaver(usize);

impl Sink for Leaver {
    fn begin(&mut self, _: &PageHead) -> Result<(), SinkGone> {
        Ok(())
    }

    fn piece(&mut self, _: &mut Vec<u8>) -> Result<(), SinkGone> {
        self.0 += 1;
        match self.0 {
            1 => Ok(()),
            _ => Err(SinkGone),
        }
    }
}

#[test]
fn a_run_ends_when_nobody_reads_it() {
    let mut site = Site::new(&pages(), "");
    site.settings.limits.piece_bytes = 10;
    let host = Host {
        environment: &Absent,
        sources: &Absent,
        database: None,
        programs: &Absent,
        files: &Absent,
        registries: &Absent,
        visits: &Absent,
        clock: &Still,
    };
    let source = page("%HTML(a) { %WHILE (\"1\") { more and more %} %}");
    let (request, mut leaver) = (request("a"), Leaver(0));
    let outcome = run(
        &source,
        &request,
        &site.settings,
        None,
        host,
        &mut leaver,
        None,
    );
    assert_eq!(
        outcome.map(|_| ()).map_err(|fault| fault.kind),
        Err(PageFaultKind::Gone)
    );
    assert_eq!(leaver.0, 2);
}

#[test]
fn what_is_absent_says_so() {
    let host = Host {
        environment: &Absent,
        sources: &Absent,
        database: None,
        programs: &Absent,
        files: &Absent,
        registries: &Absent,
        visits: &Absent,
        clock: &Still,
    };
    let source = page(
        "%FUNCTION(DTW_SQL) q() { SELECT 1 %MESSAGE { -1 : { $(DTW_DEFAULT_MESSAGE) %} : CONTINUE %} %}
        %DEFINE t = %TABLE
        %MESSAGE { DEFAULT : { [$(DTW_DEFAULT_MESSAGE)] %} : CONTINUE %}
        %HTML(a) { @q() @DTWF_READ(\"x\", \"ASCIITEXT\", \"\", t) @DTWR_OPENREG(\"r\") @DTW_STATIC() %}",
    );
    let site = Site::new(&pages(), "");
    let (request, mut taken) = (request("a"), site::Taken::default());
    run(
        &source,
        &request,
        &site.settings,
        None,
        host,
        &mut taken,
        None,
    )
    .expect("it ends");
    let text = String::from_utf8_lossy(&taken.bytes).into_owned();
    for wanted in [
        "no database",
        "use no files here",
        "use no registries",
        "no visit is kept",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}
