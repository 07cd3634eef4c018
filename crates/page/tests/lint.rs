//! What the checks say of a page, in the order of its lines.

mod site;

use std::fmt::Write as _;
use std::sync::Arc;

use hob_page::host::{SourceFault, Sources};
use hob_page::lint::{LintLevel, RULES, check, used};
use hob_page::tree::Page;

use site::{Folder, pages};

fn found(source: &str) -> String {
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let mut text = String::new();
    for finding in check(&page, &Folder(pages()), None) {
        assert!(RULES.iter().any(|(name, _)| *name == finding.rule));
        let (line, rule, level) = (finding.line, finding.rule, finding.level);
        let _ = writeln!(text, "{line} {level:?} {rule}: {}", finding.message);
    }
    text
}

#[test]
fn doubtful_pages_are_told_about() {
    let source = "%DEFINE { sort = \"id\" when = \"now\" d = %EXEC \"date\" }
%}
%DEFINE(PROTECTED) order = \"id\"
%FUNCTION(DTW_SQL) a() { SELECT id FROM t WHERE k = '$(k)' ORDER BY $(sort) %}
%FUNCTION(DTW_SQL) b() { SELECT id FROM t ORDER BY $(order) %}
%FUNCTION(DTW_SQL) c() { SELECT id FROM $(t) %}
%FUNCTION(DTW_SQL) d(CHAR(32000) text) { CALL run %}
%FUNCTION(DTW_REXX) e() { say 'x' %}
%HTML(page) {
  <a $(x) onclick=\"f($(x), '$(x)')\">@DTW_rRAW(x)</a>
  @nobody(x) @a(x) @DTW_rSUBSTR(x)
  $(START_ROW_NUM) @DTW_SENDMAIL(\"a\", \"b\", \"c\") %INCLUDE_URL \"http://x\"
%}
";
    let source = source.replace("\"date\" }\n%}", "\"date\" %}");
    let wanted = "1 Note exec: each reference to this variable calls a program: \"date\"
3 Note sql-override: function a: a client that sends sort has this statement refused; \
%DEFINE(PROTECTED) makes it the page's alone, DTW_SQL_IDENT lists what it may be
5 Error sql-name: function c: the statement is refused: data stands where a name or a keyword is \
expected
6 Warning sql-argument: function d: if text is text of SQL, only the procedure can protect it
7 Error not-there: DTW_REXX inside a page is not run; %EXEC names a program
9 Warning output-place: data stands in a tag, where only its author's names may; it is left out \
unless it is harmless
9 Warning output-place: data stands in a script outside of quotes; it is left out unless it is \
harmless
9 Warning raw: this is printed as it is; it must not be what a visitor wrote
10 Error unknown-function: there is no function nobody
10 Error argument-count: a takes 0 arguments, not 1
10 Error argument-count: DTW_SUBSTR takes 2 to 4 arguments, not 1
11 Note client-control: START_ROW_NUM is a client's to set, to a whole number
11 Error not-there: DTW_SENDMAIL is not there: pages send no mail
11 Error not-there: %INCLUDE_URL is not there: a page fetches nothing from other servers
";
    assert_eq!(found(&source), wanted);
}

#[test]
fn a_page_that_is_right_is_not_told_about() {
    let source = "%DEFINE(PROTECTED) { title = \"Parts\" %}
%FUNCTION(DTW_SQL) all() { SELECT id FROM t WHERE k LIKE '%$(k)%' AND n > $(n)
  %REPORT { <ul>%ROW { <li><a href=\"/p?id=$(V_id)\">$(V_id)</a> %}</ul> %} %}
%HTML(page) { <h1>$(title)</h1> @all() %IF (k) <p title=\"$(k)\">$(k)</p> %ENDIF
  <script>var k = \"$(k)\";</script> %}
";
    assert_eq!(found(source), "");
}

/// Files by their name.
struct Files(&'static [(&'static str, &'static str)]);

impl Files {
    fn read(&self, name: &str, parse: Parse) -> Result<Arc<Page>, SourceFault> {
        let mut files = self.0.iter();
        let (name, text) = files
            .find(|(known, _)| *known == name)
            .ok_or(SourceFault::Missing)?;
        let page = parse(name, text.as_bytes());
        page.map(Arc::new).map_err(SourceFault::Wrong)
    }
}

type Parse = fn(&str, &[u8]) -> Result<Page, hob_page::fault::PageFault>;

impl Sources for Files {
    fn declarations(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.read(name, Page::parse)
    }

    fn body(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.read(name, Page::parse_body)
    }
}

#[test]
fn included_files_are_looked_at_with_what_the_page_defines() {
    let files = Files(&[
        (
            "head",
            "%DEFINE(PROTECTED) name = \"x\"\n%FUNCTION(DTW_SQL) f() { SELECT $(y) %}",
        ),
        ("top", "<b $(name)>\n<i $(other)>@g()"),
        ("itself", "%INCLUDE \"itself\" <u $(z)>"),
        ("wrong", "%IF (a"),
    ]);
    let source = "%INCLUDE \"head\" %INCLUDE \"gone\" %INCLUDE_URL \"http://x\"
        %DEFINE { %INCLUDE \"head\" %}
        %HTML(a) { %INCLUDE \"top\" %INCLUDE \"top\" %INCLUDE \"itself\"
        %INCLUDE \"wrong\" %INCLUDE \"$(name)\" %}";
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let found = check(&page, &files, None).into_iter().map(|finding| {
        let (file, line, rule) = (finding.file, finding.line, finding.rule);
        format!("{file}:{line} {rule}")
    });
    let wanted = [
        "page:1 include",
        "page:1 not-there",
        "page:2 include",
        "page:4 include",
        "head:2 sql-name",
        "itself:1 output-place",
        "top:2 output-place",
        "top:2 unknown-function",
    ];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn blocks_without_the_header_that_their_page_announces_are_told_about() {
    let files = Files(&[
        ("type", "<!DOCTYPE html>"),
        ("head", "Content-Type: text/csv\n"),
    ]);
    let source = "%DEFINE { DTW_PRINT_HEADER = \"NO\" t = \"type\" h = \"Location: /\" %}
%MACRO_FUNCTION page() { %IF (x) @DTW_ASSIGN(y, x) %ELSE %INCLUDE \"$(t)\" %ENDIF <p> %}
%MACRO_FUNCTION csv() { %IF (x) <p> %ELSE %INCLUDE \"head\" %ENDIF %}
%FUNCTION(DTW_SQL) rows() { SELECT 1 %REPORT { %ROW { $(V1) %} </table> %} %}
%FUNCTION(DTW_SYSTEM) program() { %EXEC { program %} %}
%HTML(a) { $(x) @page() %}
%HTML(b) { @csv() %}
%HTML(c) { @rows() %}
%HTML(d) { @program() %}
%HTML(e) { %INCLUDE \"$(x)\" %}
%HTML(f) { $(h) %}
%HTML(g) {
Content-Type: text/csv

%}
%HTML(h) { %}
%HTML(i) {<p>%}";
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let found = check(&page, &files, None).into_iter();
    let found = found.filter(|finding| finding.rule == "own-header");
    let found: Vec<(usize, String)> = found
        .map(|finding| (finding.line, finding.message))
        .collect();
    let message = |block| {
        format!(
            "DTW_PRINT_HEADER is \"NO\", and block {block} prints no header of its own: it gets \
             the usual one"
        )
    };
    let wanted = [(6, message("a")), (8, message("c")), (17, message("i"))];
    assert_eq!(found, wanted);
    let source = source.replace("\"NO\"", "\"YES\"");
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let mut found = check(&page, &files, None).into_iter();
    assert!(found.all(|finding| finding.rule != "own-header"));
}

#[test]
fn halves_of_something_in_two_files_are_told_what_to_do() {
    let files = Files(&[
        ("begin", "%WHILE (x < \"3\") { %IF (y)"),
        ("loop", "%WHILE (x < \"3\") {"),
        ("end", "%}"),
        ("endif", "%ENDIF"),
    ]);
    let source = "%HTML(a) { %INCLUDE \"begin\" <p> %INCLUDE \"endif\" %INCLUDE \"end\"
        %INCLUDE \"loop\" %}";
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let found: Vec<String> = check(&page, &files, None)
        .into_iter()
        .map(|finding| finding.message)
        .collect();
    let half = "; an included file is read by itself, so what begins in it ends in it: where two \
                files are the halves of something, write both into the page";
    let wanted = [
        "begin:1:20: this `%IF` has no `%ENDIF` in its block",
        "endif:1:1: no `%IF` is open here",
        "end:1:1: `%}` closes nothing",
        "loop:1:19: this %WHILE block has no end; `%}` ends it",
    ];
    assert_eq!(found, wanted.map(|text| format!("{text}{half}")));
}

#[test]
fn what_scripts_mean_by_a_dollar_sign_is_told() {
    let source = "%HTML(a) { <script>$(document).ready($(\"#x\")); $(function() { })</script> %}";
    let wanted = "1 Warning script-name: this is a variable of the page, and most likely empty; a \
script can say `jQuery(`";
    let found = found(source);
    let found: Vec<&str> = found
        .lines()
        .filter(|line| line.contains("script-name"))
        .collect();
    assert_eq!(found, [wanted, wanted]);
}

#[test]
fn what_a_page_uses_is_told_with_how_common_it_is() {
    let source = "%HTML(a) { @DTW_rADD(\"1\", @DTW_rEVAL(\"2\")) %}";
    let page = Page::parse("page", source.as_bytes()).expect("it is read");
    let used: Vec<_> = used(&page)
        .into_iter()
        .map(|(name, tier)| format!("{name} {tier:?}"))
        .collect();
    assert_eq!(used, ["DTW_ADD A", "DTW_EVAL B"]);
}

#[test]
fn names_of_files_that_a_client_has_a_say_in_are_told() {
    let source = "%DEFINE { t = %TABLE f = \"list.txt\" %}
%DEFINE(PROTECTED) own = \"own.txt\"
%HTML(a) {
  @DTWF_READ(\"x.txt\", \"ASCIITEXT\", \"\", t) @DTWF_rEXISTS(own) @DTWR_OPENREG(\"r\")
  @DTWF_READ(f, \"ASCIITEXT\", \"\", t)
  @DTWF_rEXISTS(\"list.$(q)\")
  @DTWF_COPY(\"x.txt\", q)
  @DTWR_OPENREG(user)
  @DTWF_SEARCH(\"x.txt\", \"ASCIITEXT\", \"\", t, q)
%}
";
    let wanted = "5 Note file-name: DTWF_READ: a client that sends f says which file this is; \
%DEFINE(PROTECTED) makes it the page's alone
6 Warning file-name: DTWF_EXISTS: a client may say which file this is, of all that pages may use
7 Warning file-name: DTWF_COPY: a client may say which file this is, of all that pages may use
8 Warning file-name: DTWR_OPENREG: a client may say which registry this is, of all that pages may \
use
";
    assert_eq!(found(source), wanted);
}

#[test]
fn programs_that_are_not_listed_are_told_about() {
    let source = "%DEFINE d = %EXEC \"date\"
%FUNCTION(DTW_SYSTEM) a() { %EXEC { /bin/rpt.pl $(x) %} %}
%FUNCTION(DTW_PERL) b() { %EXEC { other.pl %} %}
%FUNCTION(DTW_PERL) c() { %EXEC { $(other) %} %}
%HTML(page) { %}
";
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let programs = ["rpt.pl".to_owned()];
    let found = check(&page, &Folder(pages()), Some(&programs));
    let found: Vec<_> = found.iter().map(|one| (one.line, one.level)).collect();
    let (error, note) = (LintLevel::Error, LintLevel::Note);
    assert_eq!(found, [(1, error), (2, note), (3, error), (4, note)]);
}
