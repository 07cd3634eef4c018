//! What programs are told of a request, and how its body reaches them (RFC 3875 section 4).

use crate::harness::client::{Connection, call, exchange};
use crate::harness::over::Protocol;
use crate::site::Programs;

/// Prints its environment, its arguments and where it works.
const SHOW: &str = "printf 'Content-Type: text/plain\\n\\n'\nenv\n\
                    for argument do echo \"argument <$argument>\"; done\necho \"in $(pwd)\"\n";

fn show() -> Programs {
    Programs::new().with_sh("show.cgi", SHOW)
}

/// The value of a variable in a text of `NAME=value` lines.
fn variable<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn variables_are_those_of_the_rfc() {
    let programs = show().serve("");
    let (port, tested) = (programs.port(), Protocol::tested());
    let request = "POST /cgi/show.cgi/a%20b/c?x=1&y=%26 HTTP/1.1\r\nHost: Example.org:99\r\n\
                   Content-Type: text/x-test\r\nContent-Length: 4\r\nAccept: a\r\nX_Bad: 1\r\n\
                   Accept: b\r\nProxy: http://evil/\r\nAuthorization: Basic x\r\n\
                   Connection: close\r\n\r\nbody";
    let reply = exchange(port, request.as_bytes());
    let text = reply.answer.text();
    let root = programs.place.path("site").display().to_string();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1".to_owned()),
        ("SERVER_SOFTWARE", "hob".to_owned()),
        ("SERVER_PROTOCOL", tested.version().to_owned()),
        ("SERVER_NAME", "Example.org".to_owned()),
        ("SERVER_PORT", programs.hob().own_port().to_string()),
        ("SERVER_ADDR", "127.0.0.1".to_owned()),
        ("REQUEST_METHOD", "POST".to_owned()),
        ("REQUEST_SCHEME", tested.scheme().to_owned()),
        ("REQUEST_URI", "/cgi/show.cgi/a%20b/c?x=1&y=%26".to_owned()),
        ("SCRIPT_NAME", "/cgi/show.cgi".to_owned()),
        (
            "SCRIPT_FILENAME",
            programs.path("show.cgi").display().to_string(),
        ),
        ("PATH_INFO", "/a b/c".to_owned()),
        ("PATH_TRANSLATED", format!("{root}/a b/c")),
        ("DOCUMENT_ROOT", root.clone()),
        ("QUERY_STRING", "x=1&y=%26".to_owned()),
        ("CONTENT_TYPE", "text/x-test".to_owned()),
        ("CONTENT_LENGTH", "4".to_owned()),
        ("REMOTE_ADDR", "127.0.0.1".to_owned()),
        ("REMOTE_HOST", "127.0.0.1".to_owned()),
        ("HTTP_HOST", "Example.org:99".to_owned()),
        ("HTTP_ACCEPT", "a, b".to_owned()),
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        ),
    ] {
        assert_eq!(
            variable(&text, name),
            Some(value.as_str()),
            "{name} in\n{text}"
        );
    }
    assert!(
        variable(&text, "REMOTE_PORT")
            .unwrap()
            .parse::<u16>()
            .unwrap()
            > 0
    );
    assert_eq!(variable(&text, "UNIQUE_ID").unwrap().split('-').count(), 3);
    let unset = [
        "AUTH_TYPE",
        "HTTP_AUTHORIZATION",
        "HTTP_CONNECTION",
        "HTTP_CONTENT_LENGTH",
        "HTTP_CONTENT_TYPE",
        "HTTP_PROXY",
        "HTTP_X_BAD",
        "REMOTE_USER",
        "XDG_RUNTIME_DIR",
        "HOB_LOG",
        "HOME",
    ];
    for name in unset {
        assert_eq!(variable(&text, name), None, "{name}");
    }
    let https = (tested != Protocol::H1).then_some("on");
    assert_eq!(variable(&text, "HTTPS"), https);
    let dir = format!("in {}", programs.place.path("cgi").display());
    assert!(text.lines().any(|line| line == dir), "{text}");
    programs.stop();
}

#[test]
fn what_the_config_sets_is_in_the_environment_and_stays() {
    let programs = show().serve(
        "pass_authorization = true, env = { HTTPS = \"on\", OWN = \"a b\", PATH = \"/bin:/usr/bin\" }",
    );
    let reply = call(
        programs.port(),
        "GET",
        "/cgi/show.cgi",
        "Authorization: Basic x\r\n",
        b"",
    );
    let text = reply.answer.text();
    for (name, value) in [
        ("HTTPS", "on"),
        ("OWN", "a b"),
        ("PATH", "/bin:/usr/bin"),
        ("HTTP_AUTHORIZATION", "Basic x"),
    ] {
        assert_eq!(variable(&text, name), Some(value), "{name}");
        let count = text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}=")))
            .count();
        assert_eq!(count, 1, "{name}");
    }
    programs.stop();
}

#[test]
fn words_of_an_index_query_are_arguments() {
    let programs = show().serve("");
    let arguments = |method: &str, query: &str| {
        let reply = call(
            programs.port(),
            method,
            &format!("/cgi/show.cgi?{query}"),
            "",
            b"",
        );
        let text = reply.answer.text();
        assert_eq!(variable(&text, "QUERY_STRING"), Some(query));
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("argument "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        arguments("GET", "one+two%20words+$(id)"),
        ["<one>", "<two words>", "<$(id)>"]
    );
    for query in ["a=b", "one+b=c", "-e+one", "one+%2De"] {
        assert!(arguments("GET", query).is_empty(), "{query}");
    }
    assert!(arguments("POST", "one+two").is_empty());
    programs.stop();
}

#[test]
fn program_has_standard_input_output_and_error_and_nothing_else() {
    let programs = Programs::new()
        .with_c(
            "fds.cgi",
            "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/stat.h>\nint main(void) {\n\
             puts(\"Content-Type: text/plain\\n\");\n\
             for (int fd = 0; fd < 1024; fd++) {\n\
             struct stat s;\n\
             if (fstat(fd, &s) == 0) printf(\"%d %s\\n\", fd, S_ISFIFO(s.st_mode) ? \"pipe\" : \"-\");\n\
             } return 0; }\n",
        )
        .with_sh(
            "open.cgi",
            "printf 'Content-Type: text/plain\\n\\n'\n\
             echo to stderr > /dev/stderr && echo wrote; cat /dev/stdin && echo read\n",
        )
        .serve("");
    assert_eq!(programs.text("/cgi/fds.cgi"), "0 pipe\n1 pipe\n2 pipe\n");
    // Pipes can be opened again by their names, which sockets cannot.
    assert_eq!(programs.text("/cgi/open.cgi"), "wrote\nread\n");
    programs.hob().wait_for("stderr: to stderr");
    programs.stop();
}

#[test]
fn body_reaches_the_program_whole() {
    let programs = Programs::new()
        .with_sh(
            "echo.cgi",
            "printf 'Content-Type: application/octet-stream\\nX-Length: %s\\n\\n' \
             \"$CONTENT_LENGTH\"\ncat\n",
        )
        .with(
            "count.cgi",
            "#!/usr/bin/perl\nread(STDIN, my $body, $ENV{CONTENT_LENGTH});\n\
             print \"Content-Type: text/plain\\n\\n\", length($body), \"\\n\";\n",
        )
        .serve_route("path = \"/cgi/*\"\nbody = \"64MiB\"\ncgi = { dir = \"cgi\" }\n");
    for size in [1, 1000, 65_536, 65_537, 10_000_000] {
        let body: Vec<u8> = (0..size).map(|at| (at * 7 % 251) as u8).collect();
        let reply = call(programs.port(), "POST", "/cgi/echo.cgi", "", &body);
        assert_eq!(
            reply.answer.header("x-length"),
            Some(size.to_string().as_str())
        );
        assert!(reply.is_whole && reply.answer.body == body, "{size}");
        let counted = call(programs.port(), "POST", "/cgi/count.cgi", "", &body);
        assert_eq!(counted.answer.text(), format!("{size}\n"));
    }
    programs.stop();
}

#[test]
fn body_in_chunks_is_collected_and_its_length_told() {
    let programs = Programs::new()
        .with_sh(
            "echo.cgi",
            "printf 'Content-Type: a/b\\nX-Length: %s\\nX-Coding: %s\\n\\n' \
             \"$CONTENT_LENGTH\" \"$HTTP_TRANSFER_ENCODING\"\ncat\n",
        )
        .serve_route("path = \"/cgi/*\"\nbody = \"2MiB\"\ncgi = { dir = \"cgi\" }\n");
    let send = |size: usize| {
        let head = "POST /cgi/echo.cgi HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
                    Connection: close\r\n\r\n";
        let mut request = head.as_bytes().to_vec();
        let body: Vec<u8> = (0..size).map(|at| (at * 7 % 251) as u8).collect();
        for chunk in body.chunks(10_007) {
            request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            request.extend_from_slice(chunk);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"0\r\n\r\n");
        let mut connection = Connection::open(programs.port()).unwrap();
        // The server may refuse before it has read all.
        let _ = connection.send(&request);
        (connection.read_reply(), body)
    };
    for size in [0, 5, 65_536, 65_537, 1_500_000] {
        let (reply, body) = send(size);
        // Over HTTP/3 the end may come with the head: then there is no body, else one of no bytes.
        let is_none = size == 0 && Protocol::tested() == Protocol::H3;
        let told = reply.answer.header("x-length");
        let expected = size.to_string();
        assert!(
            told == Some(&expected) || (is_none && told == Some("")),
            "{reply:?}"
        );
        assert_eq!(reply.answer.header("x-coding"), Some(""));
        assert!(reply.is_whole && reply.answer.body == body, "{size}");
    }
    let (reply, _) = send(3_000_000);
    assert_eq!(reply.answer.status, 413);
    programs.stop();
}

#[test]
fn program_that_does_not_read_its_input_holds_nobody() {
    let programs = Programs::new()
        .with_sh(
            "deaf.cgi",
            "printf 'Content-Type: text/plain\\n\\nanswered'\n",
        )
        .with_sh(
            "deaf-and-large.cgi",
            "printf 'Content-Type: text/plain\\n\\n'\nhead -c 2000000 /dev/zero\n",
        )
        .with_sh(
            "closed.cgi",
            "exec 0<&-\nprintf 'Content-Type: text/plain\\n\\nclosed'\n",
        )
        .serve_route("path = \"/cgi/*\"\nbody = \"64MiB\"\ncgi = { dir = \"cgi\" }\n");
    let body = vec![b'x'; 200_000];
    for (name, bytes) in [("deaf", 8), ("deaf-and-large", 2_000_000), ("closed", 6)] {
        let path = format!("/cgi/{name}.cgi");
        let reply = call(programs.port(), "POST", &path, "", &body);
        assert_eq!(
            (reply.answer.status, reply.answer.body.len()),
            (200, bytes),
            "{name}"
        );
        assert!(reply.is_whole, "{name}");
    }
    programs.stop();
}

#[test]
fn client_that_waits_for_it_is_told_to_go_on() {
    let programs = Programs::new()
        .with_sh("echo.cgi", "printf 'Content-Type: text/plain\\n\\n'\ncat\n")
        .serve("");
    let mut connection = Connection::open(programs.port()).unwrap();
    connection
        .send(
            b"POST /cgi/echo.cgi HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\
              Expect: 100-continue\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    assert_eq!(connection.read_head().unwrap().0, 100);
    connection.send(b"hello").unwrap();
    assert_eq!(connection.read_reply().answer.text(), "hello");
    programs.stop();
}

#[test]
fn connection_is_kept_for_more_than_one_program() {
    let programs = Programs::new()
        .with_sh("echo.cgi", "printf 'Content-Type: text/plain\\n\\n'\ncat\n")
        .serve("");
    let mut connection = Connection::open(programs.port()).unwrap();
    for round in 0..5 {
        let request =
            format!("POST /cgi/echo.cgi HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n{round}");
        connection.send(request.as_bytes()).unwrap();
        let (status, headers) = connection.read_head().unwrap();
        assert_eq!(status, 200);
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        match is_chunked {
            true => connection.read_until("\r\n0\r\n\r\n"),
            false => assert_eq!(
                connection.read_body(&headers).unwrap(),
                round.to_string().as_bytes()
            ),
        }
    }
    programs.stop();
}
