//! Programs that pages call: what they are given, what comes back, and that they are never more
//! than the config names.

use std::process::Command;

use crate::harness::client::Connection;
use crate::harness::library::readable;
use crate::harness::site::Site;
use crate::place::post;
use crate::program_place::{Routes, encoded, serve};

/// Prints what it is called with, and sets a value.
const SAY: &str = r#"#!/bin/sh
printf '%s|' "$#" "$@"
printf 'kind is %s' "$DTW_kind"
printf 'total="%s pieces" other = "no parameter"\n' "$#" > "$DTWPIPE"
"#;

const SAYS: &str = r#"
%FUNCTION(DTW_SYSTEM) say(IN kind, OUT total) { %EXEC { say.sh first "two words" $(kind) %} %}
%HTML(out) {<p>@say(kind, total)</p><b>$(total)</b><i>$(other)</i>%}
"#;

fn says() -> Site {
    serve(SAYS, &Routes::default().cgi("say.sh", SAY))
}

fn ask(site: &Site, block: &str, query: &str) -> String {
    let answer = site.get(&format!("/app/p.page/{block}{query}")).answer;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().trim().to_owned()
}

#[test]
fn program_is_given_arguments_and_values_and_sets_others() {
    let site = says();
    let text = ask(&site, "out", "?kind=bolt&other=client");
    assert_eq!(
        text,
        "<p>3|first|two words|bolt|kind is bolt</p><b>3 pieces</b><i>client</i>"
    );
    assert_eq!(site.place.counter("page_programs"), 1);
    assert_eq!(
        site.record("/app/p.page/out?kind=bolt&other=client")["fault"],
        "none"
    );
    site.stop();
}

#[test]
fn value_is_one_argument_whatever_is_in_it() {
    let site = says();
    for value in [
        "a b",
        "a'b\"c",
        "; touch /tmp/x",
        "$(id)`id`",
        "line\nline\r\n",
        "| cat",
        "",
        "\u{e4}\u{20ac}",
        "$(kind)@DTW_EXIT()%}",
    ] {
        let text = ask(&site, "out", &format!("?kind={}", encoded(value)));
        let escaped = value
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;");
        let wanted = format!("3|first|two words|{escaped}|kind is {escaped}</p><b>3 pieces</b>");
        let same = |text: &str| text.replace("&#34;", "&quot;");
        assert!(same(&text).contains(&wanted), "{text} for {value:?}");
    }
    site.stop();
}

#[test]
fn what_no_argument_can_be_is_refused() {
    let pages = format!("%MESSAGE {{ 1007 : \"refused\" : exit %}}{SAYS}");
    let site = serve(&pages, &Routes::default().cgi("say.sh", SAY));
    for value in ["-v", "--help", "a%00b"] {
        let text = ask(&site, "out", &format!("?kind={value}"));
        assert!(
            text.contains("refused") && !text.contains("first"),
            "{text}"
        );
    }
    assert_eq!(site.place.counter("page_programs"), 0);
    site.stop();
}

#[test]
fn more_values_than_a_program_may_have_are_refused() {
    let page = "%MESSAGE { 1007 : \"refused\" : continue %}\n\
                %FUNCTION(DTW_SYSTEM) f(IN v) { %EXEC { f %} %}\n\
                %HTML(one) {@f(v)%}\n%HTML(two) {@f(\"$(v)$(v)\")%}";
    let site = serve(page, &Routes::default().cgi("f", "#!/bin/sh\necho ran\n"));
    let form = format!("v={}", "x".repeat(60_000));
    let ask = |block: &str, times: usize| {
        let form = (0..times).fold(form.clone(), |all, _| all.clone() + &all[2..]);
        let target = format!("/app/p.page/{block}");
        post(&site, &target, &form).answer.text().trim().to_owned()
    };
    assert_eq!(ask("one", 0), "ran");
    assert_eq!(ask("two", 4), "refused");
    assert_eq!(site.place.counter("limit_page_program_values"), 1);
    assert_eq!(site.place.counter("page_programs"), 1);
    site.stop();
}

#[test]
fn output_is_data() {
    let program = "#!/bin/sh\nprintf '<script>$(x)@DTW_EXIT()</script>'\n";
    let page = "%FUNCTION(DTW_SYSTEM) f() { %EXEC { f %} %}\n%DEFINE x = \"no\"\n\
                %HTML(out) {@f()!%}";
    let site = serve(page, &Routes::default().cgi("f", program));
    let text = ask(&site, "out", "");
    assert_eq!(text, "&lt;script&gt;$(x)@DTW_EXIT()&lt;/script&gt;!");
    site.stop();
}

#[test]
fn value_goes_in_and_comes_back_changed() {
    let program = r#"#!/usr/bin/perl
        open(my $values, '>', $ENV{DTWPIPE}) or die "no pipe: $!";
        my $s = reverse $ENV{DTW_s};
        $s =~ s/"/""/g;
        print $values qq(s = "$s"\nin="changed");
    "#;
    let page = "%FUNCTION(DTW_PERL) turn(INOUT s, IN in) { %EXEC { turn.pl %} %}\n\
                %HTML(out) {@turn(s, in)[$(s)] [$(in)]%}";
    let site = serve(page, &Routes::default().cgi("turn.pl", program));
    let query = format!("?s={}&in=kept", encoded("a\"b\nc"));
    assert_eq!(ask(&site, "out", &query), "[c\nb&quot;a] [kept]");
    site.stop();
}

/// The table with one row more, in upper case.
const GROW_PYTHON: &str = r#"#!/usr/bin/python3
import os
given = lambda part: os.environ["DTW_t_" + part]
rows, cols = int(given("ROWS")), int(given("COLS"))
with open(os.environ["DTWPIPE"], "w") as out:
    print(f't_ROWS={rows + 1} t_COLS={cols} t_N_1="{given("N_1")}2" t_N_2=b', file=out)
    for row in range(1, rows + 1):
        for col in range(1, cols + 1):
            cell = given(f"V_{row}_{col}").upper().replace('"', '""')
            print(f't_V_{row}_{col}="{cell}"', file=out)
    print(f't_V_{rows + 1}_1="last <one>"', file=out)
"#;
const GROW_REXX: &str = r#"#!/usr/bin/regina
pipe = value('DTWPIPE',, 'ENVIRONMENT')
rows = given('ROWS')
cols = given('COLS')
call lineout pipe, 't_ROWS='rows + 1 't_COLS='cols 't_N_1="'given('N_1')'2" t_N_2=b'
do row = 1 to rows
  do col = 1 to cols
    cell = changestr('"', translate(given('V_'row'_'col)), '""')
    call lineout pipe, 't_V_'row'_'col'="'cell'"'
  end
end
call lineout pipe, 't_V_'rows + 1'_1="last <one>"'
exit 0
given: return value('DTW_t_'arg(1),, 'ENVIRONMENT')
"#;

#[test]
fn table_goes_in_and_comes_back() {
    for (language, name, program) in [
        ("DTW_SYSTEM", "grow.py", GROW_PYTHON),
        ("DTW_REXX", "grow.rexx", GROW_REXX),
    ] {
        let page = format!(
            "%DEFINE {{ t = %TABLE(ALL) %}}\n\
             %FUNCTION({language}) grow(INOUT t) {{ %EXEC {{ {name} %}} %}}\n\
             %HTML(out) {{@DTW_TB_SETCOLS(t, \"2\")@DTW_TB_SETN(t, \"a\", \"1\")\
             @DTW_TB_APPENDROW(t, \"2\")@DTW_TB_SETV(t, q, \"1\", \"1\")\
             @DTW_TB_SETV(t, \"y\", \"2\", \"2\")@grow(t)\
             @DTW_TB_rROWS(t) @DTW_TB_rGETN(t, \"1\") @DTW_TB_rGETV(t, \"1\", \"1\") \
             @DTW_TB_rGETV(t, \"2\", \"2\") @DTW_TB_rGETV(t, \"3\", \"1\")%}}"
        );
        let site = serve(&page, &Routes::default().cgi(name, program));
        let text = ask(&site, "out", &format!("?q={}", encoded("x\"\nz")));
        assert_eq!(text, "3 a2 X&quot;\nZ Y last &lt;one&gt;", "{language}");
        site.stop();
    }
}

#[test]
fn values_that_the_config_names_are_variables_of_their_own_names() {
    let program = "#!/bin/sh\nprintf '%s,%s,%s' \"$kind\" \"$DTW_LD_PRELOAD\" \"${LD_PRELOAD-}\"\n";
    let page = "%FUNCTION(DTW_SYSTEM) f(IN kind, LD_PRELOAD) { %EXEC { f %} %}\n\
                %HTML(out) {@f(kind, \"own\")%}";
    let routes = Routes::default().limits("values = [\"kind\"]");
    let site = serve(page, &routes.cgi("f", program));
    assert_eq!(ask(&site, "out", "?kind=bolt"), "bolt,own,");
    site.stop();
}

#[test]
fn program_in_c_is_called_by_parameters() {
    let routes = Routes::default().cgi("direct", "#!/bin/sh\n");
    let place = routes.place();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char **argv) {
            FILE *values = fopen(getenv("DTWPIPE"), "w");
            if (argc != 2 || !values) return 9;
            fprintf(values, "n = %d\n", atoi(getenv("DTW_n")) + 1);
            return fclose(values) != 0;
        }"#;
    let file = place.path("programs/direct");
    std::fs::write(place.path("direct.c"), source).unwrap();
    let mut compiler = Command::new("cc");
    let compiler = compiler.arg(place.path("direct.c")).arg("-o").arg(&file);
    assert!(compiler.status().unwrap().success());
    readable(&file);
    let page = "%FUNCTION(DTW_DIRECTCALL) next(INOUT INTEGER n) {\n\
                %EXEC { /QSYS.LIB/DIRECT $(n) %} %}\n\
                %HTML(out) {@DTW_ASSIGN(n, \"41\")@next(n)$(n) $(RETURN_CODE)%}";
    let site = routes.serve_at(place, page);
    assert_eq!(ask(&site, "out", ""), "42 0");
    site.stop();
}

#[test]
fn variable_prints_what_its_program_prints() {
    let program = "#!/bin/sh\necho \"called with $*\"\nexit ${1:-0}\n";
    let page = "%DEFINE { a = %EXEC \"echoes\" b = %EXEC { echoes $(code) %} %}\n\
                %HTML(out) {$(a)$(b)$(RETURN_CODE)%}";
    let site = serve(page, &Routes::default().cgi("echoes", program));
    let text = ask(&site, "out", "?code=3");
    assert_eq!(text, "called with \ncalled with 3\n3");
    site.stop();
}

#[test]
fn exit_code_is_the_return_code() {
    let program = "#!/bin/sh\necho half\necho \"it failed\" >&2\nexit 7\n";
    let page = "%FUNCTION(DTW_SYSTEM) f() { %EXEC { f %}\n\
                %MESSAGE { 7 : \"seven\" : continue  default : \"other\" : exit %} %}\n\
                %HTML(out) {@f() $(RETURN_CODE) on%}";
    let site = serve(page, &Routes::default().cgi("f", program));
    assert_eq!(ask(&site, "out", ""), "half\nseven 7 on");
    let record = site.record("/app/p.page/out");
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.contains("exit code 7; stderr: it failed"),
        "{detail}"
    );
    site.stop();
}

#[test]
fn program_that_is_not_listed_is_not_run() {
    let page = "%FUNCTION(DTW_SYSTEM) f() { %EXEC { /bin/sh $(a) %}\n\
                %MESSAGE { 2000 : \"no program\" : continue %} %}\n\
                %FUNCTION(DTW_SYSTEM) g() { %EXEC { $(a) %} %}\n\
                %HTML(out) {@f() on%}\n%HTML(named) {@g() on%}";
    let routes = Routes::default()
        .cgi("say.sh", SAY)
        .cgi_unlisted("other.sh", SAY);
    let site = serve(page, &routes);
    assert_eq!(ask(&site, "out", ""), "no program on");
    let record = site.record("/app/p.page/out");
    assert_eq!(record["reason"], "the page calls a program that it may not");
    assert_eq!(record["detail"], "/bin/sh");
    // Which program it is, is not for data to say, were it one of the list.
    let text = ask(&site, "named", "?a=say.sh");
    assert_eq!(text, "<p>This page met an error (-1).</p>");
    site.stop();
}

#[test]
fn page_without_programs_says_so() {
    let site = serve(SAYS, &Routes::default());
    let text = ask(&site, "out", "");
    assert_eq!(text, "<p><p>This page met an error (-1).</p>");
    site.stop();
}

#[test]
fn program_of_a_folder_is_named_behind_a_slash() {
    let page = "%FUNCTION(DTW_SYSTEM) f() { %EXEC { tools/a.sh x %} %}\n\
                %FUNCTION(DTW_SYSTEM) up() { %EXEC { tools/../p.page %}\n\
                %MESSAGE { 2000 : \"no\" : continue %} %}\n\
                %FUNCTION(DTW_SYSTEM) none() { %EXEC { tools/b.sh %}\n\
                %MESSAGE { -1 : \"not there\" : continue %} %}\n\
                %HTML(out) {@f() @up() @none()%}";
    let program = "#!/bin/sh\nprintf 'tool %s' \"$1\"\n";
    let routes = Routes::default().folder("tools", "a.sh", program);
    let site = serve(page, &routes);
    assert_eq!(ask(&site, "out", ""), "tool x no not there");
    site.stop();
}

#[test]
fn clients_cannot_ask_for_an_internal_program() {
    let site = says();
    assert_eq!(site.get("/programs/say.sh").answer.status, 404);
    site.stop();
}

#[test]
fn sixty_five_pages_at_once_call_their_program() {
    let site = says();
    let mut all: Vec<_> = (0..65)
        .map(|_| Connection::open(site.port()).unwrap())
        .collect();
    for (at, one) in all.iter_mut().enumerate() {
        one.send_get(&format!("/app/p.page/out?kind={at}")).unwrap();
    }
    for (at, one) in all.iter_mut().enumerate() {
        let text = one.read().unwrap().text();
        assert!(
            text.contains(&format!("|{at}|kind is {at}</p><b>3 pieces")),
            "{text}"
        );
    }
    assert_eq!(site.place.counter("page_programs"), 65);
    site.stop();
}
