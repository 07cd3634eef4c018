//! `hob page`: macro pages checked, run and laid out from a terminal.
#![allow(clippy::unwrap_used)]

mod harness;
#[path = "../../page/tests/postgres/server.rs"]
mod server;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use harness::Place;
use server::PostgresServer;

/// The two sample macros of the language.
const PARTS: &str = include_str!("../../page/tests/pages/parts.d2w");
const CART: &str = include_str!("../../page/tests/pages/cart.d2w");

/// Makes the tables of the samples.
const MAKE: &str = "%FUNCTION(DTW_SQL) part() { CREATE TABLE part (id INTEGER PRIMARY KEY, \
    kind TEXT, title TEXT, cents INTEGER) %}
%FUNCTION(DTW_SQL) line() { CREATE TABLE line (item TEXT, qty INTEGER) %}
%FUNCTION(DTW_SQL) fill() { INSERT INTO part VALUES (1, 'bolt', 'M4 bolt', 120), \
    (2, 'bolt', 'm5 <i>bolt</i>', 12345), (3, 'nut', 'M4 nut', 80) %}
%HTML(all) {@part()@line()@fill()made%}
";
const DATABASE: &str = "sqlite:run/shop.db";

/// A book of guests.
const GUESTS: &str = r#"%DEFINE t = %TABLE
%HTML(sign) {@DTW_TB_SETCOLS(t, "1")@DTW_TB_APPENDROW(t, "1")@DTW_TB_SETV(t, name, "1", "1")
@DTWF_APPEND("guests.txt", "ASCIITEXT", "", t)
@DTWR_CREATEREG("seen")@DTWR_ADDENTRY("seen", name, "1")signed%}
%HTML(list) {@DTWF_READ("guests.txt", "ASCIITEXT", "", t)@DTW_TB_rROWS(t) @DTW_TB_rGETV(t, "1", "1")%}
%HTML(up) {@DTWF_READ("../secret", "ASCIITEXT", "", t)%}
"#;

/// A place with pages.
fn pages(pages: &[(&str, &str)]) -> Place {
    let place = Place::new();
    for (name, text) in pages {
        let path = place.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    place
}

/// A place with the samples and their database.
fn shop() -> Place {
    let place = pages(&[
        ("make.page", MAKE),
        ("parts.d2w", PARTS),
        ("cart.d2w", CART),
    ]);
    let mut touch = place.command_of(Path::new("touch"));
    assert!(touch.arg("run/shop.db").status().unwrap().success());
    let made = place.run(&["page", "run", "make.page", "--database", DATABASE]);
    assert_eq!(told(&made), (Some(0), "made".into(), String::new()));
    place
}

/// Exit code, standard output, standard error.
fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// What is said of times differs from run to run.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.rfind(" in ") {
        Some(at) if line.ends_with(" us") || line.ends_with(" ms") => &line[..at],
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn everything_that_is_wrong_with_pages_is_told_with_its_place() {
    let place = pages(&[
        (
            "stock.page",
            "%INCLUDE \"inc/head.inc\"\n%INCLUDE \"gone.inc\"\n\
             %FUNCTION(DTW_SQL) all() { SELECT a FROM $(t) %}\n\
             %HTML(list) { %INCLUDE \"inc/top.inc\" @all() @nobody() $(START_ROW_NUM) %}\n",
        ),
        ("inc/head.inc", "%DEFINE title = \"Stock\"\n"),
        (
            "inc/top.inc",
            "<h1>$(title)</h1>\n<script>f($(x))</script>\n",
        ),
        ("wrong.page", "%HTML(a) {\n  %IF (a == ) b %ENDIF %}\n"),
    ]);
    let checked = place.run(&["page", "check", "stock.page", "wrong.page", "none.page"]);
    let (code, text, errors) = told(&checked);
    assert_eq!((code, errors.as_str()), (Some(1), ""), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "stock.page:2:1: error: there is no file \"gone.inc\" to include (include)",
            "stock.page:3:1: error: function all: the statement is refused: data stands where a \
             name or a keyword is expected (sql-name)",
            "stock.page:4:45: note: there is no function nobody; an include that was not read may \
             have it (unknown-function)",
            "stock.page:4:55: note: START_ROW_NUM is a client's to set, to a whole number \
             (client-control)",
            "inc/top.inc:2:11: warning: data stands in a script outside of quotes; it is left out \
             unless it is harmless (output-place)",
        ],
        "{text}"
    );
    assert!(
        lines[5].starts_with("wrong.page:2:13: error: "),
        "{}",
        lines[5]
    );
    assert!(
        lines[6].starts_with("none.page:1:1: error: cannot read none.page: "),
        "{}",
        lines[6]
    );
    assert_eq!(lines[7..], ["4 errors, 1 warning, 2 notes"]);
}

#[test]
fn pages_that_are_right_exit_0_and_so_do_notes() {
    let place = pages(&[("parts.d2w", PARTS), ("cart.d2w", CART)]);
    let checked = place.run(&["page", "check", "parts.d2w"]);
    let (code, text, _) = told(&checked);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("error:"), "{text}");
    let checked = place.run(&["page", "check", "cart.d2w"]);
    assert_eq!(
        told(&checked),
        (Some(0), "cart.d2w: nothing to say\n".into(), String::new())
    );
}

#[test]
fn included_files_are_found_below_allowed_folders_only() {
    let place = pages(&[
        ("macros/own.page", "%HTML(a) {%INCLUDE \"own.inc\"%}\n"),
        ("macros/own.inc", "own"),
        ("macros/far.page", "%HTML(a) {%INCLUDE \"sub/far.inc\"%}\n"),
        ("library/sub/far.inc", "far"),
        ("macros/case.page", "%HTML(a) {%INCLUDE \"OWN.Inc\"%}\n"),
        ("macros/up.page", "%HTML(a) {%INCLUDE \"../secret\"%}\n"),
        ("macros/link.page", "%HTML(a) {%INCLUDE \"link.inc\"%}\n"),
        (
            "macros/whole.page",
            "%HTML(a) {%INCLUDE \"/etc/passwd\"%}\n",
        ),
        ("macros/in.page", "%HTML(a) {%INCLUDE \"in.inc\"%}\n"),
        ("secret", "secret"),
        ("db2www.ini", "INCLUDE_PATH library;nowhere\n"),
    ]);
    symlink("../secret", place.path("macros/link.inc")).unwrap();
    symlink("own.inc", place.path("macros/in.inc")).unwrap();
    let run = |page: &str, more: &[&str]| {
        let page = format!("macros/{page}.page");
        told(&place.run(&[&["page", "run", &page][..], more].concat()))
    };
    let ini = ["--ini", "db2www.ini"];
    assert_eq!(run("own", &[]), (Some(0), "own".into(), String::new()));
    assert_eq!(run("in", &[]), (Some(0), "own".into(), String::new()));
    assert_eq!(run("case", &[]), (Some(0), "own".into(), String::new()));
    let (code, text, errors) = run("far", &ini);
    assert_eq!((code, text.as_str()), (Some(0), "far"));
    assert!(
        errors.starts_with("hob: INCLUDE_PATH: cannot open the folder nowhere "),
        "{errors}"
    );
    let missing = "hob: macros/far.page:1:11: there is no file \"sub/far.inc\" to include\n";
    assert_eq!(run("far", &[]), (Some(1), String::new(), missing.into()));
    for page in ["up", "link", "whole"] {
        let (code, text, errors) = run(page, &ini);
        assert_eq!((code, text.as_str()), (Some(1), ""), "{page}");
        assert!(errors.contains("cannot be read"), "{errors}");
        let checked = place.run(&["page", "check", &format!("macros/{page}.page")]);
        assert_eq!(checked.status.code(), Some(1), "{page}");
    }
}

#[test]
fn a_block_runs_over_a_database_and_shows_what_was_bound() {
    let place = shop();
    let run = |fields: &[&str]| {
        let start = [
            "page",
            "run",
            "parts.d2w",
            "--database",
            DATABASE,
            "--trace",
        ];
        told(&place.run(&[&start[..], fields].concat()))
    };
    let (code, text, trace) = run(&["kind=bolt", "q=m", "DATABASE=other"]);
    assert_eq!(code, Some(0), "{trace}");
    assert!(text.contains("m5 &lt;i&gt;bolt&lt;/i&gt;"), "{text}");
    assert!(text.contains("<p>2 shown</p>"), "{text}");
    let wanted = "parts.d2w:24: SELECT id, title, cents FROM part WHERE kind = ? AND title LIKE ? \
         ORDER BY id\n\
         parts.d2w:24:   1: text \"bolt\"\n\
         parts.d2w:24:   2: text \"%m%\"\n\
         parts.d2w:24:   2 rows";
    assert!(without_times(&trace).contains(wanted), "{trace}");
    assert!(trace.contains("parts.d2w: q = \"m\"  (data of the client)\n"));
    assert!(
        trace.contains("hob: DATABASE is not a client's to set, and is left out"),
        "{trace}"
    );
    assert!(!trace.contains("plan: "), "{trace}");
    let (code, same, trace) = run(&["kind=bolt", "q=m", "--plan"]);
    assert_eq!((code, same), (Some(0), text));
    assert!(trace.contains("\nplan: SCAN part\n"), "{trace}");
    let (code, text, trace) = run(&["list", "kind=x' OR '1'='1"]);
    assert_eq!(code, Some(0), "{trace}");
    assert!(text.contains("<p>0 shown</p>"), "{text}");
    assert!(trace.contains("1: text \"x' OR '1'='1\""), "{trace}");
}

#[test]
fn what_is_written_stays_unless_the_page_waits_for_more() {
    let place = shop();
    let cart = |words: &[&str]| {
        let start = ["page", "run", "cart.d2w", "--database", DATABASE];
        told(&place.run(&[&start[..], words].concat()))
    };
    let (code, text, errors) = cart(&["add", "item=bolt", "qty=5"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("1 lines."), "{text}");
    assert!(
        errors.contains("since its last commit is undone"),
        "{errors}"
    );
    let (code, _, errors) = cart(&["done"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    place.write(
        "count.page",
        "%FUNCTION(DTW_SQL) lines() { SELECT count(*) FROM line %REPORT {%ROW {$(V1)%}%} %}
         %FUNCTION(DTW_SQL) add() { INSERT INTO line VALUES ('nut', 1) %}
         %HTML(count) {@lines()%} %HTML(add) {@add()%}",
    );
    let count = |words: &[&str]| {
        let start = ["page", "run", "count.page", "--database", DATABASE];
        told(&place.run(&[&start[..], words].concat()))
    };
    assert_eq!(count(&["count"]).1, "0");
    let (code, _, errors) = count(&["add", "--read-only"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("code -817"), "{errors}");
    assert_eq!(count(&["add"]).0, Some(0));
    assert_eq!(count(&["count", "--read-only"]).1, "1");
}

#[test]
fn files_and_registries_are_those_of_the_pages_folder_or_of_another() {
    let place = Place::new();
    for folder in ["macros", "macros/old", "data"] {
        place.folder(folder);
    }
    place.write("macros/guests.page", GUESTS);
    place.write("secret", "secret");
    place.write("db2www.ini", "FFI_PATH macros/old;data\n");
    let run = |words: &[&str]| {
        let page = &["page", "run", "macros/guests.page"][..];
        told(&place.run(&[page, words].concat()))
    };
    let signed = (Some(0), "\n\nsigned".to_owned(), String::new());
    assert_eq!(run(&["sign", "name=ann"]), signed);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("macros/guests.txt"), "ann\n");
    assert_eq!(read("macros/seen.registry"), "hob registry 1\nann=1\n");
    let listed = (Some(0), "1 ann".to_owned(), String::new());
    assert_eq!(run(&["list"]), listed);
    assert_eq!(run(&["sign", "name=eve", "--files", "data"]), signed);
    assert_eq!(read("data/guests.txt"), "eve\n");
    let (code, text, errors) = run(&["up"]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
    assert!(
        errors.contains("code 2000: DTWF_READ: file \"../secret\""),
        "{errors}"
    );
    let (code, _, errors) = run(&["sign", "name=eve", "--read-only"]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("code -817: DTWF_APPEND: file \"guests.txt\""),
        "{errors}"
    );
    assert_eq!(read("macros/guests.txt"), "ann\n");
    let (_, text, errors) = run(&["list", "--ini", "db2www.ini"]);
    assert_eq!(text, "0 ");
    assert!(
        errors.contains("hob: FFI_PATH: data is not below macros"),
        "{errors}"
    );
}

#[test]
fn program_that_is_named_is_started_and_no_other() {
    use std::os::unix::fs::PermissionsExt;

    let place = pages(&[
        (
            "price.page",
            "%FUNCTION(DTW_SYSTEM) price(IN part, OUT cents) { %EXEC { price.sh \"per $(unit)\" %}
               %MESSAGE { DEFAULT : \"failed\" : CONTINUE %} %}
             %HTML(show) {@price(part, cents)[$(cents)]%}",
        ),
        (
            "bin/price.sh",
            "#!/bin/sh\necho \"asked for $DTW_part $1\"\n\
             echo \"cents = \\\"12\\\"\" >\"$DTWPIPE\"\n",
        ),
        ("bin/other.sh", "#!/bin/sh\necho other\n"),
    ]);
    for file in ["bin/price.sh", "bin/other.sh"] {
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(file), may_run).unwrap();
    }
    let run = |words: &[&str]| {
        let fields = [
            "page",
            "run",
            "price.page",
            "show",
            "part=bolt",
            "unit=$(id)",
        ];
        told(&place.run(&[&fields[..], words].concat()))
    };
    let (code, text, errors) = run(&["--program", "bin/price.sh"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(text, "asked for bolt per $(id)\n[12]");
    let (code, text, errors) = run(&["--program", "bin/other.sh"]);
    assert_eq!((code, text.as_str()), (Some(1), "failed[]"), "{errors}");
    assert!(errors.contains("gives it \"price.sh\""), "{errors}");
    let (code, _, errors) = run(&["--program", "bin/none.sh"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("--program: bin/none.sh: No such file"),
        "{errors}"
    );
}

#[test]
fn what_is_not_there_says_so() {
    let place = pages(&[
        (
            "all.page",
            "%DEFINE date = %EXEC \"date\"
             %FUNCTION(DTW_SQL) sql() { SELECT 1 %MESSAGE { DEFAULT : \"\" : CONTINUE %} %}
             %MESSAGE { DEFAULT : \"\" : CONTINUE %}
             %HTML(program) {$(date)%}
             %HTML(statement) {@sql()%}",
        ),
        ("none.page", "%DEFINE a = \"b\"\n"),
    ]);
    let run = |words: &[&str]| told(&place.run(&[&["page", "run"][..], words].concat()));
    for (block, code, said) in [
        (
            "program",
            1,
            "code -1: `hob page run` starts no program that it is not given: `--program FILE`",
        ),
        (
            "statement",
            1,
            "code -1: no database was named; `--database sqlite:FILE` does",
        ),
    ] {
        let (found, text, errors) = run(&["all.page", block]);
        assert_eq!((found, text.as_str()), (Some(code), ""), "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
    for (words, code, said) in [
        (
            &["all.page"][..],
            2,
            "say which block; there are: program, statement",
        ),
        (
            &["all.page", "other"],
            2,
            "there is no block \"other\" in all.page; there are: program",
        ),
        (&["none.page"], 2, "say which block; there is none"),
        (&["all.page", "file", "x"], 2, "x: write NAME=VALUE"),
        (&["gone.page", "a"], 1, "cannot read gone.page: "),
        (
            &["all.page", "file", "--database", "sqlite:gone.db"],
            1,
            "cannot open the database gone.db",
        ),
        (
            &["all.page", "file", "--database", "oracle:x"],
            2,
            "--database oracle:...: write sqlite:FILE, postgres://",
        ),
        (
            &["all.page", "file", "--ini", "gone.ini"],
            1,
            "cannot read gone.ini: ",
        ),
    ] {
        let (found, _, errors) = run(words);
        assert_eq!(found, Some(code), "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
}

#[test]
fn pages_of_statements_are_checked_and_run() {
    let list = "-- hob: page\n-- title: Parts\n\
                SELECT id, title FROM part WHERE :kind IS NULL OR kind = :kind ORDER BY id;\n";
    let add = "-- hob: page\nINSERT INTO part (id, kind) VALUES (9, :kind);\n";
    let place = shop();
    for (name, text) in [
        ("list.sql", list),
        ("add.sql", add),
        ("plain.sql", "SELECT 1;\n"),
    ] {
        std::fs::write(place.path(name), text).unwrap();
    }
    place.write("wrong.sql", "-- hob: page\nSELECT 'a;\n");
    let checked = told(&place.run(&["page", "check", "list.sql", "wrong.sql"]));
    assert_eq!(checked.0, Some(1));
    let lines: Vec<&str> = checked.1.lines().collect();
    assert_eq!(lines[0], "list.sql: nothing to say");
    assert!(lines[1].starts_with("wrong.sql:2:"), "{}", lines[1]);
    let fmt = told(&place.run(&["page", "fmt", "list.sql"]));
    assert_eq!(fmt.1, list);
    let server = PostgresServer::start();
    let other = server.as_ref().map(|server| server.url("hob"));
    if let Some(database) = &other {
        let made = place.run(&["page", "run", "make.page", "--database", database]);
        assert_eq!(told(&made).0, Some(0));
    }
    for database in [Some(DATABASE.to_owned()), other].into_iter().flatten() {
        let run = |method: &str, words: &[&str]| {
            let mut command = place.command();
            command.args(["page", "run", "--database", &database]);
            command.env("REQUEST_METHOD", method);
            command.env("HTTP_ACCEPT", "text/csv");
            told(&command.args(words).output().unwrap())
        };
        let (code, text, errors) = run("GET", &["list.sql", "kind=nut"]);
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        assert_eq!(text.lines().collect::<Vec<_>>(), ["id,title", "3,M4 nut"]);
        let (code, text, errors) = run("GET", &["list.sql"]);
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        assert_eq!(text.lines().count(), 4);
        let (code, _, errors) = run("GET", &["add.sql", "kind=nut"]);
        assert_eq!(code, Some(1));
        assert!(
            errors.contains("add.sql: it writes, and a GET only reads"),
            "{errors}"
        );
        let (code, _, errors) = run("POST", &["add.sql", "kind=nut"]);
        assert_eq!(code, Some(0), "{errors}");
        let (_, text, _) = run("GET", &["list.sql", "kind=nut"]);
        assert_eq!(text.lines().count(), 3);
        let (code, _, errors) = run("POST", &["add.sql", "kind=nut"]);
        assert_eq!(code, Some(1));
        assert!(errors.contains("hob: add.sql:2:1: "), "{errors}");
    }
}

/// Looks for every pattern of a grammar, and what each name that is included stands for.
const LOOKS: &str = r#"
import json, re, sys
grammar = json.load(sys.stdin)
def walk(rule):
    for key, value in rule.items():
        if key in ("match", "begin", "end"):
            re.compile(value)
        if key == "include" and value[0] == '#':
            assert value[1:] in grammar["repository"], value
    for value in rule.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                walk(inner)
walk(grammar)
call = grammar["repository"]["call"]["patterns"][0]["begin"]
for name in "@DTW_ADD(", "@dtw_Radd (", "@DTW_mUPPERCASE(", "@DTW_TB_rGETV(", "@DTWF_READ(":
    assert re.match(call, name), name
for name in "@DTW_mADD(", "@find(", "DTW_ADD(":
    assert not re.match(call, name), name
keyword = grammar["repository"]["keyword"]["match"]
assert re.match(keyword, "%endif") and not re.match(keyword, "%ende")
"#;

#[test]
fn the_grammar_for_editors_knows_the_words_of_the_language() {
    let place = Place::new();
    let (code, grammar, errors) = told(&place.run(&["page", "check", "--grammar"]));
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    place.write("grammar.json", &grammar);
    let mut python = place.command_of(Path::new("python3"));
    let grammar = std::fs::File::open(place.path("grammar.json")).unwrap();
    let looked = python.args(["-c", LOOKS]).stdin(grammar).output().unwrap();
    assert_eq!(told(&looked), (Some(0), String::new(), String::new()));
    let without = place.run(&["page", "check"]);
    assert_eq!(without.status.code(), Some(2));
}

#[test]
fn pages_are_laid_out_where_that_changes_nothing() {
    let rough = "%define{ a = \"1\" %}  \n\n\n\n%html(b){ @dtw_RSUBSTR(a,\"1\")  \n %}";
    let laid_out = "%DEFINE{ a = \"1\" %}\n\n%HTML(b){ @DTW_rSUBSTR(a,\"1\")  \n %}\n";
    let body = "<p>  \n\n\n\n$(a)  \n";
    let wrong = "%HTML(a) {";
    let place = pages(&[
        ("run/good.page", laid_out),
        ("run/body.inc", body),
        ("run/wrong.page", wrong),
    ]);
    // Who rewrites a file owns it.
    let mut install = place.command_of(Path::new("sh"));
    install.args(["-c", "printf '%s' \"$0\" >run/rough.page", rough]);
    assert!(install.status().unwrap().success());
    symlink("rough.page", place.path("run/link.page")).unwrap();
    let fmt = |words: &[&str]| told(&place.run(&[&["page", "fmt"][..], words].concat()));
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let printed = fmt(&["run/rough.page"]);
    assert_eq!(printed, (Some(0), laid_out.into(), String::new()));
    let checked = fmt(&["--check", "run/good.page", "run/rough.page"]);
    assert_eq!(checked, (Some(1), "run/rough.page\n".into(), String::new()));
    assert_eq!(read("run/rough.page"), rough);
    let (code, text, errors) = fmt(&["--write", "run/wrong.page", "run/body.inc", "run/link.page"]);
    assert_eq!((code, text.as_str()), (Some(1), "run/link.page\n"));
    assert!(errors.contains("hob: run/wrong.page:1:"), "{errors}");
    assert!(
        errors.contains("run/body.inc declares nothing, and is left as it is"),
        "{errors}"
    );
    let after = ["run/rough.page", "run/body.inc", "run/wrong.page"].map(read);
    assert_eq!(after, [laid_out, body, wrong]);
    let link = std::fs::symlink_metadata(place.path("run/link.page")).unwrap();
    assert!(link.is_symlink());
    let checked = fmt(&["--check", "run/good.page", "run/rough.page"]);
    assert_eq!(checked, (Some(0), String::new(), String::new()));
}

/// Makes a page for the table `part`, and goes through all of its blocks.
fn go_through_a_new_page(place: &Place, database: &str) {
    let made = place.run(&["page", "new", "part", "--database", database]);
    let (code, page, errors) = told(&made);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    std::fs::write(place.path("part.page"), &page).unwrap();
    let checked = told(&place.run(&["page", "check", "part.page"]));
    assert_eq!(checked.1, "part.page: nothing to say\n");
    assert_eq!(told(&place.run(&["page", "fmt", "part.page"])).1, page);
    let ask = |method: &str, site: &str, words: &[&str]| {
        let mut command = place.command();
        command.args(["page", "run", "part.page", "--database", database]);
        command.env("REQUEST_METHOD", method);
        command.env("HTTP_SEC_FETCH_SITE", site);
        let (code, text, errors) = told(&command.args(words).output().unwrap());
        assert_eq!(code, Some(0), "{words:?}: {errors}");
        text
    };
    let get = |words: &[&str]| ask("GET", "none", words);
    let post = |words: &[&str]| ask("POST", "same-origin", words);
    let counts = |words: &[&str]| get(words).matches("<a href=\"edit?key=").count();
    assert_eq!(counts(&["list"]), 3);
    assert_eq!(counts(&["list", "q=M4"]), 2);
    assert_eq!(counts(&["list", "q=12345"]), 1);
    assert!(get(&["list", "q=<i>' OR 1=1 --"]).contains("There are no such rows."));
    let new = [
        "add",
        "f_id=4",
        "f_kind=x'); DROP TABLE part; --",
        "f_title=",
        "f_cents=",
    ];
    assert!(post(&new).contains("Done."));
    let row = get(&["edit", "key=4"]);
    assert!(row.contains("x&#39;); DROP TABLE part; --"), "{row}");
    let save = ["save", "key=4", "f_kind=nut", "f_title=a\n<b>", "f_cents=7"];
    for (method, site) in [
        ("GET", "none"),
        ("POST", "cross-site"),
        ("POST", "same-site"),
    ] {
        let refused = ask(method, site, &save);
        assert!(refused.contains("by a form of this site only"), "{refused}");
        assert!(!refused.contains("Done."), "{refused}");
    }
    assert_eq!(counts(&["list", "q=<b>"]), 0);
    assert!(post(&save).contains("Done."));
    let row = get(&["edit", "key=4"]);
    assert!(row.contains(">\na\n&lt;b&gt;</textarea>"), "{row}");
    assert!(post(&["save", "key=99"]).contains("There is no such row any more."));
    assert!(post(&["delete", "key=4"]).contains("Done."));
    assert!(get(&["edit", "key=4"]).contains("There is no such row."));
    assert_eq!(counts(&["list"]), 3);
    std::fs::write(place.path("many.page"), MANY).unwrap();
    let many = place.run(&["page", "run", "many.page", "--database", database]);
    assert_eq!(told(&many).0, Some(0));
    assert_eq!(counts(&["list"]), 50);
    let third = get(&["list", "START_ROW_NUM=101"]);
    assert!(
        third.contains(">Before</a>") && !third.contains(">More</a>"),
        "{third}"
    );
    let gone = told(&place.run(&["page", "new", "gone", "--database", database]));
    assert_eq!((gone.0, gone.1.as_str()), (Some(1), ""));
    assert!(
        gone.2.contains("there is no table gone in the database"),
        "{}",
        gone.2
    );
    let wrong = told(&place.run(&["page", "new", "a\"b", "--database", database]));
    assert_eq!(wrong.0, Some(2));
}

/// Adds a hundred rows.
const MANY: &str = "%FUNCTION(DTW_SQL) many() { INSERT INTO part (id, kind) \
    WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 109) \
    SELECT i, 'many' FROM n %}
%HTML(many) {@many()%}
";

#[test]
fn a_new_page_lists_searches_and_edits_a_table() {
    let place = shop();
    go_through_a_new_page(&place, DATABASE);
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.url("hob");
    let made = place.run(&["page", "run", "make.page", "--database", &database]);
    assert_eq!(told(&made).0, Some(0));
    // Here the key of the sample is a number that nobody gives by itself.
    go_through_a_new_page(&place, &database);
}

#[test]
fn a_block_runs_over_postgresql() {
    let place = shop();
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.url("hob");
    let run = |words: &[&str]| {
        let start = ["page", "run", "--trace", "--database", &database];
        told(&place.run(&[&start[..], words].concat()))
    };
    let made = run(&["make.page"]);
    assert_eq!((made.0, made.1.as_str()), (Some(0), "made"), "{}", made.2);
    let (code, text, trace) = run(&["parts.d2w", "kind=bolt", "q=m"]);
    assert_eq!(code, Some(0), "{trace}");
    assert!(text.contains("m5 &lt;i&gt;bolt&lt;/i&gt;"), "{text}");
    let wanted = "kind = ? AND title LIKE ? ORDER BY id\n\
                  parts.d2w:24:   1: text \"bolt\"\n\
                  parts.d2w:24:   2: text \"%m%\"\n\
                  parts.d2w:24:   1 row";
    assert!(without_times(&trace).contains(wanted), "{trace}");
    let (code, _, errors) = run(&["make.page"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("already exists"), "{errors}");
    drop(server);
    let (code, _, errors) = run(&["parts.d2w"]);
    assert_eq!(code, Some(1));
    assert!(
        errors.starts_with("hob: cannot reach the database server at "),
        "{errors}"
    );
    let wrong = place.run(&["page", "run", "parts.d2w", "--database", "postgres://h/d"]);
    let (code, _, errors) = told(&wrong);
    assert_eq!(code, Some(2));
    assert!(
        errors.starts_with("hob: --database: it names no user"),
        "{errors}"
    );
}
