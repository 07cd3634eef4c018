//! Whatever stands inside itself ends in a fault with a place, long before the stack does.

mod site;

use std::sync::Arc;

use hob_page::fault::PageFaultKind;
use hob_page::tree::Page;

use site::{Site, pages, request};

fn kind_of(source: &str) -> Option<PageFaultKind> {
    let page = match Page::parse("page", source.as_bytes()) {
        Ok(page) => Arc::new(page),
        Err(fault) => return Some(fault.kind),
    };
    let answer = Site::new(&pages(), "").ask(&page, &request("a"), None);
    answer.outcome.err().map(|fault| fault.kind)
}

#[test]
fn deep_text_is_refused_where_it_is_read() {
    let deep = |before: &str, behind: &str, count: usize| {
        format!(
            "%HTML(a) {{ {}{} %}}",
            before.repeat(count),
            behind.repeat(count)
        )
    };
    for (before, behind) in [
        ("%IF (x) ", " %ENDIF"),
        ("@DTW_rSTRIP(\"", "\")"),
        ("$($(x)", ")"),
        ("%WHILE (x) {", "%}"),
    ] {
        assert_eq!(kind_of(&deep(before, behind, 30)), None, "{before}");
        let refused = kind_of(&deep(before, behind, 100_000));
        assert_eq!(refused, Some(PageFaultKind::Syntax), "{before}");
    }
    let nots = format!("%HTML(a) {{ %IF ({}x) %ENDIF %}}", "!(".repeat(100_000));
    assert_eq!(kind_of(&nots), Some(PageFaultKind::Syntax));
}

#[test]
fn deep_runs_end_by_their_limit() {
    let ifs = |inside: &str| {
        format!(
            "{}{inside}{}",
            "%IF (\"1\") ".repeat(60),
            "%ENDIF ".repeat(60)
        )
    };
    let limit = Some(PageFaultKind::Limit("depth_max"));
    for source in [
        format!(
            "%MACRO_FUNCTION f() {{ {} %}} %HTML(a) {{ @f() %}}",
            ifs("@f()")
        ),
        "%MACRO_FUNCTION f(x) { @f(\"@DTW_rCONCAT(x, x)\") %} %HTML(a) { @f(\"\") %}".to_string(),
        "%MACRO_FUNCTION f() RETURNS(r) { @DTW_ASSIGN(r, \"$(v)\") %} %DEFINE v = \"@f()$(v2)\"
         %DEFINE v2 = \"@f()\" %HTML(a) { @f() %}"
            .to_string(),
    ] {
        let found = kind_of(&source);
        assert!(
            found == limit || found == Some(PageFaultKind::Page),
            "{found:?} {source}"
        );
    }
}

#[test]
fn a_value_that_doubles_ends_by_its_limit() {
    let source = "%DEFINE x = \"0123456789\" %HTML(a) {
        %WHILE (\"1\") { @DTW_CONCAT(x, x, x) %} %}";
    assert_eq!(
        kind_of(source),
        Some(PageFaultKind::Limit("value_bytes_max"))
    );
}
