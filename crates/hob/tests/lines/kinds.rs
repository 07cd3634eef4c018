//! Programs of every kind that speak lines.

use std::process::Command;

use crate::harness::client::call;
use crate::site::Programs;

const HOB_SH: &str = include_str!("../../../../lang/shell/hob.sh");

fn route(name: &str, run: &str) -> String {
    format!(
        "path = \"/{name}/*\"\nresident = {{ run = [{run}], dir = \"cgi\", carrier = \"lines\", \
         workers = {{ min = 0, max = 1 }} }}\n"
    )
}

#[test]
fn classic_c_program_answers_in_both_formats() {
    let classic = include_str!("../../../../lang/c/examples/classic.c");
    let site = Programs::new()
        .with_c("classic", classic)
        .serve_route(&route("classic", "\"cgi/classic\""));
    for number in 1..=5 {
        let body = vec![b'\x01'; number * 1000];
        let target = format!("/classic/teas/{number}");
        let reply = call(site.port(), "POST", &target, "", &body);
        assert_eq!(
            reply.answer.text(),
            format!(
                "request {number}: POST /teas/{number}\nsum of the body: {}\n",
                number * 1000
            )
        );
    }
    assert_eq!(site.place.counter("worker_starts"), 1);
    site.stop();
}

#[test]
fn pure_sh_serves_a_thousand_requests_from_one_process() {
    let site = Programs::new()
        .with_sh(
            "count.sh",
            "exec 3<\"$CGIPLUSIN\"\ncount=0\nwhile read -r line <&3; do\n\
             \x20   [ \"$line\" = '!' ] || continue\n\
             \x20   while read -r line <&3 && [ -n \"$line\" ]; do\n\
             \x20       case $line in PATH_INFO=*) path=${line#*=} ;; esac\n\
             \x20   done\n\
             \x20   count=$((count + 1))\n\
             \x20   printf 'Content-Type: text/plain\\n\\n%s %s %s\\n%s\\n' $$ $count \"$path\" \
             \"$CGIPLUSEOF\"\ndone\n",
        )
        .serve_route(&route("sh", "\"./cgi/count.sh\""));
    let first = site.text("/sh/1");
    let worker = first.split(' ').next().unwrap();
    for count in 2..=1000 {
        let expected = format!("{worker} {count} /{count}\n");
        assert_eq!(site.text(&format!("/sh/{count}")), expected);
    }
    let pool = site.pool();
    assert_eq!(pool["workers"][0]["pid"].to_string(), worker);
    assert_eq!(pool["crashed"], 0);
    site.stop();
}

#[test]
fn examples_in_sh_and_bash_answer() {
    let upload = include_str!("../../../../lang/shell/examples/upload.bash");
    let site = Programs::new()
        .with_mode("hob.sh", HOB_SH, 0o644)
        .with(
            "examples/hello.sh",
            include_str!("../../../../lang/shell/examples/hello.sh"),
        )
        .with("examples/upload.bash", upload)
        .serve_route(&format!(
            "{}[[site.route]]\n{}",
            route("hello", "\"./cgi/examples/hello.sh\""),
            route("upload", "\"./cgi/examples/upload.bash\"")
        ));
    for _ in 0..3 {
        assert_eq!(site.text("/hello/x"), "Hello, 127.0.0.1\n");
        assert!(site.text("/upload/x").contains("<form method=\"post\""));
        let body = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n{}\r\n\
             --xyz--\r\n",
            "x".repeat(100_000)
        );
        let fields = "Content-Type: multipart/form-data; boundary=xyz\r\n";
        let reply = call(site.port(), "POST", "/upload/x", fields, body.as_bytes());
        let text = reply.answer.text();
        assert!(text.contains("a.bin, 100000 bytes"), "{text}");
    }
    assert_eq!(site.place.counter("worker_starts"), 2);
    site.stop();
}

#[test]
fn awk_reads_requests_as_its_lines() {
    let is_mawk = Command::new("awk").args(["-W", "version"]).output();
    let is_mawk = is_mawk.is_ok_and(|output| {
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).contains("mawk")
    });
    let run = match is_mawk {
        true => "\"awk\", \"-W\", \"interactive\", \"-f\", \"counter.awk\", \"/dev/fd/3\"",
        false => "\"awk\", \"-f\", \"counter.awk\", \"/dev/fd/3\"",
    };
    let program = include_str!("../../../../lang/shell/examples/counter.awk");
    let site = Programs::new()
        .with_mode("counter.awk", program, 0o644)
        .serve_route(&route("awk", run));
    assert_eq!(site.text("/awk/a"), "request 1, 1 of /a\n");
    assert_eq!(site.text("/awk/b"), "request 2, 1 of /b\n");
    assert_eq!(site.text("/awk/a"), "request 3, 2 of /a\n");
    site.stop();
}
