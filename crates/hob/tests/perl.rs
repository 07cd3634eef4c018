//! Perl programs that stay: PSGI applications, CGI scripts kept compiled and loops, driven over
//! HTTP.
//!
//! Plack's own tests for servers pass whole; gitweb and awstats answer byte for byte as the `cgi`
//! handler has them answer; applications of Dancer2 and Mojolicious run. What is not installed is
//! left out with one line. `lang/perl/t` has what needs no server.
#![allow(clippy::unwrap_used)]

mod harness;

use std::fs;
use std::path::PathBuf;

use harness::client::{Answer, call};
use harness::{Hob, Place, text_of};

/// Runs Plack's suite against a server that runs already; the one it starts itself only waits.
const SUITE_RUNNER: &str = "use strict;\nuse warnings;\nuse Test::More;\nuse Plack::Test::Suite;\n\
    my ($port) = @ARGV;\n\
    Plack::Test::Suite->run_server_tests(sub { sleep 1 while 1 }, $port, $port);\n\
    done_testing;\n";
const SUITE_APPLICATION: &str = "use strict;\nuse warnings;\nuse Plack::Test::Suite;\n\
    use Plack::Middleware::Lint;\n\
    Plack::Middleware::Lint->wrap(Plack::Test::Suite->test_app_handler);\n";

const DANCER2: &str = "package Application;\nuse Dancer2;\nset charset => 'UTF-8';\n\
    set logger => 'null';\n\
    get '/hello/:name' => sub { 'Hello ' . route_parameters->get('name') };\n\
    post '/form' => sub { join ' ', map { body_parameters->get($_) } qw(a b) };\n\
    get '/old' => sub { redirect '/hello/new' };\n\
    get '/broken' => sub { die \"broken\\n\" };\n\
    get '/long' => sub { delayed { content 'x' x 100_000 for 1 .. 3; done } };\n\
    Application->to_app;\n";
const MOJOLICIOUS: &str = "use Mojolicious::Lite;\napp->log->level('fatal');\n\
    get '/hello/:name' => sub { $_[0]->render(text => 'Hello ' . $_[0]->param('name')) };\n\
    post '/form' => sub {\n\
        my $c = shift; $c->render(text => join ' ', map { $c->param($_) } qw(a b));\n\
    };\n\
    get '/old' => sub { $_[0]->redirect_to('/hello/new') };\n\
    get '/broken' => sub { die \"broken\\n\" };\n\
    get '/long' => sub {\n\
        my $c = shift; my $count = 3; my $write;\n\
        $write = sub { $count-- ? $c->write_chunk('x' x 100_000 => $write) : $c->finish };\n\
        $write->();\n\
    };\n\
    app->start;\n";

/// Whether Perl finds a module; says so when it does not.
fn has_module(name: &str) -> bool {
    let load = format!("require {name}");
    let output = std::process::Command::new("perl")
        .args(["-e", &load])
        .output();
    let is_found = output.is_ok_and(|output| output.status.success());
    if !is_found {
        println!("skipped: {name} is not installed for perl");
    }
    is_found
}

/// The first of these files; says so when there is none.
fn installed(name: &str, files: &[&str]) -> Option<PathBuf> {
    let found = files.iter().map(PathBuf::from).find(|file| file.exists());
    if found.is_none() {
        println!("skipped: {name} is not installed");
    }
    found
}

/// Serves one route with this handler for every path below the prefix.
fn serve(place: &Place, prefix: &str, handler: &str) -> Hob {
    place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[site]]\nroot = \"site\"\n\n\
         [[site.route]]\npath = \"{prefix}/*\"\n{handler}\n"
    ))
}

fn get(hob: &Hob, target: &str) -> Answer {
    let reply = call(hob.port(), "GET", target, "", b"");
    assert!(reply.is_whole, "{target} broke off: {}", hob.printed());
    reply.answer
}

#[test]
fn the_suite_of_plack_passes_whole() {
    if !has_module("Plack::Test::Suite") {
        return;
    }
    let place = Place::new();
    place.write("suite.psgi", SUITE_APPLICATION);
    place.write("suite.pl", SUITE_RUNNER);
    let hob = serve(
        &place,
        "",
        "resident = { psgi = \"suite.psgi\", pass_authorization = true }",
    );
    let mut runner = place.command_of("perl".as_ref());
    let port = hob.port().to_string();
    let output = runner
        .args(["suite.pl", &port])
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let text = text_of(&output);
    assert!(output.status.success(), "{text}\n{}", hob.printed());
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(passed > 90, "{text}");
}

#[test]
fn script_with_a_loop_of_cgi_fast_answers_every_request() {
    if !has_module("CGI::Fast") {
        return;
    }
    let place = Place::new();
    place.folder("cgi");
    place.script(
        "cgi/loop.pl",
        "#!/usr/bin/perl\nuse strict;\nuse CGI::Fast;\n\
         while (my $q = CGI::Fast->new) {\n\
             print $q->header('text/plain'), 'a is ', $q->param('a'), \"\\n\";\n}\n",
    );
    let hob = serve(&place, "", "resident = { scripts = \"cgi\" }");
    for value in 1..=5 {
        let answer = get(&hob, &format!("/loop.pl?a={value}"));
        assert_eq!(
            (answer.status, answer.text()),
            (200, format!("a is {value}\n"))
        );
    }
    hob.stop();
}

/// What an application must answer, whatever framework it is made with.
fn is_an_application(code: &str) {
    let place = Place::new();
    place.write("app.psgi", code);
    let hob = serve(
        &place,
        "",
        "resident = { psgi = \"app.psgi\", env = { HOME = \"/nonexistent\" } }",
    );
    assert_eq!(get(&hob, "/hello/Ada").text(), "Hello Ada");
    let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
    let form = call(hob.port(), "POST", "/form", fields, b"a=1&b=%C3%A4");
    assert_eq!(form.answer.text(), "1 ä");
    let redirect = get(&hob, "/old");
    assert_eq!(redirect.status, 302);
    assert!(redirect.header("location").unwrap().ends_with("/hello/new"));
    assert_eq!(get(&hob, "/nowhere").status, 404);
    assert_eq!(get(&hob, "/broken").status, 500);
    assert_eq!(get(&hob, "/long").body, vec![b'x'; 300_000]);
    assert_eq!(get(&hob, "/hello/again").text(), "Hello again");
}

#[test]
fn an_application_of_dancer2_runs() {
    if has_module("Dancer2") {
        is_an_application(DANCER2);
    }
}

#[test]
fn an_application_of_mojolicious_runs() {
    if has_module("Mojolicious") {
        is_an_application(MOJOLICIOUS);
    }
}

/// Asks twice for each target, of the scripts in `bin` kept compiled and as plain CGI.
fn answers_are_the_same(place: &Place, env: &str, targets: &[String]) {
    let answers = |handler: &str| {
        let hob = serve(place, "/bin", handler);
        let targets = targets.iter().chain(targets);
        let answers: Vec<_> = targets.map(|target| stable(get(&hob, target))).collect();
        hob.stop();
        answers
    };
    let kept = answers(&format!(
        "resident = {{ scripts = \"bin\", env = {{ {env} }}, workers = {{ max = 1 }} }}"
    ));
    let plain = answers(&format!("cgi = {{ dir = \"bin\", env = {{ {env} }} }}"));
    for ((target, kept), plain) in targets.iter().chain(targets).zip(kept).zip(plain) {
        assert_eq!(kept, plain, "{target}");
    }
}

/// An answer without what changes from second to second.
fn stable(answer: Answer) -> (u16, Vec<(String, String)>, String) {
    // The last two are the server's, and depend on how early it knows the length.
    let changing = [
        "date",
        "expires",
        "last-modified",
        "transfer-encoding",
        "content-length",
        "vary",
        "accept-ranges",
    ];
    let mut fields = answer.headers.clone();
    fields.retain(|(name, _)| !changing.contains(&name.to_ascii_lowercase().as_str()));
    let text = String::from_utf8_lossy(&answer.body);
    let lines = text.lines().filter(|line| {
        !line.contains("class=\"age")
            && !line.contains("generating_time")
            && !line.contains(" ago<")
    });
    (answer.status, fields, lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn gitweb_kept_compiled_answers_as_plain_cgi() {
    let files = [
        "/usr/share/gitweb/gitweb.cgi",
        "/usr/lib/cgi-bin/gitweb.cgi",
    ];
    let Some(program) = installed("gitweb", &files) else {
        return;
    };
    let place = Place::new();
    place.folder("bin");
    place.folder("repos");
    place.folder("home");
    place.script("bin/gitweb.cgi", &fs::read_to_string(program).unwrap());
    let make = "set -e; git init -q one.git; cd one.git; echo first > README; git add .; \
                git commit -qm first; echo '<&>' >> README; git commit -qam 'second <&>'; git tag v1";
    let mut git = place.command_of("sh".as_ref());
    git.args(["-c", make]).current_dir(place.path("repos"));
    for (name, value) in [
        ("HOME", place.path("home").to_str().unwrap()),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.org"),
        ("GIT_AUTHOR_DATE", "2024-05-06T07:08:09Z"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@example.org"),
        ("GIT_COMMITTER_DATE", "2024-05-06T07:08:09Z"),
    ] {
        git.env(name, value);
    }
    let output = git.output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    let repos = place.path("repos");
    let config = format!(
        "our $projectroot = '{}';\n$feature{{'snapshot'}}{{'default'}} = ['tgz'];\n1;\n",
        repos.display()
    );
    place.write("gitweb.conf", &config);
    let (config, home) = (place.path("gitweb.conf"), place.path("home"));
    let env = format!(
        "GITWEB_CONFIG = \"{}\", HOME = \"{}\", TZ = \"UTC\"",
        config.display(),
        home.display()
    );
    let queries = [
        "",
        "?p=one.git/.git;a=summary",
        "?p=one.git/.git;a=commitdiff",
        "?p=one.git/.git;a=blob_plain;f=README;hb=HEAD",
        "?p=one.git/.git;a=snapshot;h=v1;sf=tgz",
        "?p=none",
    ];
    let targets = queries.map(|query| format!("/bin/gitweb.cgi{query}"));
    answers_are_the_same(&place, &env, &targets);
}

#[test]
fn awstats_kept_compiled_answers_as_plain_cgi() {
    let files = [
        "/usr/lib/cgi-bin/awstats.pl",
        "/usr/share/awstats/wwwroot/cgi-bin/awstats.pl",
    ];
    let Some(program) = installed("awstats", &files) else {
        return;
    };
    let place = Place::new();
    for name in ["bin", "stats", "conf"] {
        place.folder(name);
    }
    place.script("bin/awstats.pl", &fs::read_to_string(program).unwrap());
    let visits = (0..50).map(|number| {
        format!(
            "192.0.2.{} - - [06/May/2024:07:{:02}:09 +0000] \"GET /page-{}.html HTTP/1.1\" 200 \
             {number} \"-\" \"Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0\"\n",
            number % 7 + 1,
            number % 60,
            number % 11
        )
    });
    place.write("access.log", &visits.collect::<String>());
    let config = format!(
        "LogFile=\"{}\"\nLogFormat=1\nLogType=W\nLogSeparator=\" \"\nSiteDomain=\"example.org\"\n\
         HostAliases=\"example.org\"\nDNSLookup=0\nDirData=\"{}\"\nDirCgi=\"/\"\n\
         DirIcons=\"/icon\"\nLang=\"en\"\n",
        place.path("access.log").display(),
        place.path("stats").display()
    );
    place.write("conf/awstats.site.conf", &config);
    let folder = place.path("conf");
    let folder = folder.display();
    let mut update = place.command_of("perl".as_ref());
    let argument = format!("-configdir={folder}");
    let output = update
        .args(["bin/awstats.pl", "-config=site", &argument, "-update"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    let env =
        format!("AWSTATS_ENABLE_CONFIG_DIR = \"{folder}\", PERL_HASH_SEED = \"0\", TZ = \"UTC\"");
    let config = format!("config=site&configdir={folder}&month=05&year=2024");
    let targets = [
        format!("/bin/awstats.pl?{config}"),
        format!("/bin/awstats.pl?{config}&output=urldetail"),
        "/bin/awstats.pl?config=other".to_owned(),
    ];
    answers_are_the_same(&place, &env, &targets);
}

#[test]
fn a_script_is_compiled_once_and_again_when_it_changes() {
    let place = Place::new();
    place.folder("bin");
    let text = |word: &str| {
        format!("#!/usr/bin/perl\nour $count;\nprint \"\\n{word} \", ++$count, \" $$\";\nexit;\n")
    };
    place.script("bin/count", &text("first"));
    let hob = serve(
        &place,
        "/bin",
        "resident = { scripts = \"bin\", workers = { max = 1 } }",
    );
    let answer = get(&hob, "/bin/count").text();
    let (start, pid) = answer.rsplit_once(' ').unwrap();
    assert_eq!(start, "first 1");
    assert_eq!(get(&hob, "/bin/count").text(), format!("first 2 {pid}"));
    place.script("bin/count", &text("second"));
    assert_eq!(get(&hob, "/bin/count").text(), format!("second 1 {pid}"));
}

#[test]
fn a_script_that_dies_is_answered_with_500_and_logged() {
    let place = Place::new();
    place.folder("bin");
    place.script("bin/dies", "#!/usr/bin/perl\ndie 'no luck';\n");
    let hob = serve(&place, "/bin", "resident = { scripts = \"bin\" }");
    assert_eq!(get(&hob, "/bin/dies").status, 500);
    hob.wait_for("no luck at ");
}
