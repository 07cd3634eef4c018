//! Variables of requests: what scripts are told, and what never reaches them.

use hob_http::limits::HttpLimits;

use super::*;

fn variables_of(head: &str, change: impl Fn(&mut ProgramRequest<'_>)) -> Vec<(String, String)> {
    let head = head.replace('\n', "\r\n");
    let request = Request::offline(head.as_bytes(), &HttpLimits::default()).unwrap();
    let mut asked = ProgramRequest {
        request: &request,
        body_bytes: Some(request.body_len().unwrap_or(0)),
        script: ScriptLocation {
            name: b"/cgi-bin/a.cgi",
            path_info: b"",
            file: b"/srv/cgi-bin/a.cgi",
            document_root: b"/srv/site",
        },
        passes_authorization: false,
        may_tunnel: false,
    };
    change(&mut asked);
    let mut all = Vec::new();
    each(&asked, |name, value| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.push((text(name), text(value)));
    });
    all
}

fn value<'a>(all: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = all.iter().filter(|(known, _)| known == name);
    let value = found.next().map(|(_, value)| value.as_str());
    assert!(found.next().is_none(), "{name} is set twice");
    value
}

#[test]
fn get_has_the_variables_of_the_rfc() {
    let all = variables_of(
        "GET /cgi-bin/a.cgi?x=1&y=%20 HTTP/1.1\nHost: Example.org:8080\n\n",
        |_| {},
    );
    let text: String = all
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    assert_eq!(
        text,
        "GATEWAY_INTERFACE=CGI/1.1\nSERVER_SOFTWARE=hob\nSERVER_PROTOCOL=HTTP/1.1\n\
         SERVER_NAME=Example.org\nSERVER_PORT=8080\nREQUEST_SCHEME=http\nREQUEST_METHOD=GET\n\
         REQUEST_URI=/cgi-bin/a.cgi?x=1&y=%20\nSCRIPT_NAME=/cgi-bin/a.cgi\nPATH_INFO=\n\
         QUERY_STRING=x=1&y=%20\nSCRIPT_FILENAME=/srv/cgi-bin/a.cgi\nDOCUMENT_ROOT=/srv/site\n\
         REMOTE_ADDR=0.0.0.0\nREMOTE_HOST=0.0.0.0\nREMOTE_PORT=0\nUNIQUE_ID=0-0-0\n\
         REDIRECT_STATUS=200\nHTTP_HOST=Example.org:8080\n"
    );
}

#[test]
fn path_info_is_translated_below_the_root() {
    for (root, info, expected) in [
        (&b"/srv/site"[..], &b"/a b"[..], Some("/srv/site/a b")),
        (b"/srv/site/", b"/a/", Some("/srv/site/a/")),
        (b"/", b"/a", Some("/a")),
        (b"/srv/site", b"//a///b//", Some("/srv/site/a/b/")),
        (b"/srv/site", b"/a\x01b", Some("/srv/site/a/b")),
        (b"/srv/site", b"", None),
    ] {
        let all = variables_of("GET / HTTP/1.1\nHost: a\n\n", |asked| {
            asked.script.document_root = root;
            asked.script.path_info = info;
        });
        assert_eq!(value(&all, "PATH_TRANSLATED"), expected);
        assert_eq!(value(&all, "PATH_INFO").unwrap().as_bytes(), info);
    }
}

#[test]
fn body_has_its_length_and_type() {
    let all = variables_of(
        "POST / HTTP/1.1\nHost: a\nContent-Length: 12\nContent-Type: a/b; c=d\n\n",
        |_| {},
    );
    assert_eq!(value(&all, "CONTENT_LENGTH"), Some("12"));
    assert_eq!(value(&all, "CONTENT_TYPE"), Some("a/b; c=d"));
    assert_eq!(value(&all, "HTTP_CONTENT_LENGTH"), None);
    assert_eq!(value(&all, "HTTP_CONTENT_TYPE"), None);
    let empty = variables_of("POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n", |_| {});
    assert_eq!(value(&empty, "CONTENT_LENGTH"), Some("0"));
    let spooled = variables_of(
        "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n",
        |asked| asked.body_bytes = Some(7),
    );
    assert_eq!(value(&spooled, "CONTENT_LENGTH"), Some("7"));
    assert_eq!(value(&spooled, "HTTP_TRANSFER_ENCODING"), None);
}

#[test]
fn fields_become_variables_and_what_must_not_pass_does_not() {
    let head = "GET / HTTP/1.1\nHost: a\nAccept-Language: de\nx-two: 1\nCookie: a=1\nX-Two: 2\n\
                Cookie: b=2\nProxy: http://evil/\nX_User: root\nX-User: me\nX.User: root\n\
                Authorization: Basic x\nProxy-Authorization: y\nConnection: close\nTE: a\n\
                Keep-Alive: 1\n\n";
    let http = |all: Vec<(String, String)>| -> String {
        let http = all
            .into_iter()
            .filter(|(name, _)| name.starts_with("HTTP_"));
        http.map(|(name, value)| format!("{name}={value}\n"))
            .collect()
    };
    assert_eq!(
        http(variables_of(head, |_| {})),
        "HTTP_ACCEPT_LANGUAGE=de\nHTTP_COOKIE=a=1; b=2\nHTTP_HOST=a\nHTTP_X_TWO=1, 2\n\
         HTTP_X_USER=me\n"
    );
    let passed = variables_of(head, |asked| asked.passes_authorization = true);
    assert_eq!(value(&passed, "HTTP_AUTHORIZATION"), Some("Basic x"));
    assert_eq!(value(&passed, "HTTP_PROXY_AUTHORIZATION"), Some("y"));
    assert_eq!(value(&passed, "HTTP_PROXY"), None);
}

#[test]
fn cookies_of_the_admin_pages_are_kept_from_programs() {
    for (cookies, left) in [
        ("Cookie: a=1; hob-admin-9080=x; b=2\n", Some("a=1; b=2")),
        (
            "Cookie: __Host-hob-admin-1=x; b=2\nCookie: c=3\n",
            Some("b=2; c=3"),
        ),
        ("Cookie: c=3\nCookie: hob-admin-1=x\n", Some("c=3")),
        ("Cookie: a=hob-admin-1; b=2\n", Some("a=hob-admin-1; b=2")),
        ("Cookie: hob-admin-9080=x\n", None),
    ] {
        let all = variables_of(&format!("GET / HTTP/1.1\nHost: a\n{cookies}\n"), |_| {});
        assert_eq!(value(&all, "HTTP_COOKIE"), left, "{cookies}");
    }
}

#[test]
fn no_field_is_lost_of_many() {
    for count in [23, 24, 25, 26, 60] {
        let fields = |number| format!("X-{number:02}: {number}\n");
        let head: String = (0..count).rev().map(fields).collect();
        let all = variables_of(&format!("GET / HTTP/1.0\n{head}\n"), |_| {});
        let values = all.iter().filter(|(name, _)| name.starts_with("HTTP_X_"));
        let values: Vec<usize> = values.map(|(_, value)| value.parse().unwrap()).collect();
        assert_eq!(values, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn tunnel_is_told_of_where_it_may_be_opened() {
    let told = |head: &str, may_tunnel| {
        let all = variables_of(head, |asked| asked.may_tunnel = may_tunnel);
        let names = ["HOB_TUNNEL", "HTTP_UPGRADE", "HTTP_CONNECTION"];
        names.map(|name| value(&all, name).map(str::to_owned))
    };
    let head = "GET / HTTP/1.1\nHost: a\nConnection: keep-alive, Upgrade\n\
                Upgrade: WebSocket, other\n\n";
    let some = |text: &str| Some(text.to_owned());
    let all = [
        some("WebSocket"),
        some("WebSocket, other"),
        some("keep-alive, Upgrade"),
    ];
    assert_eq!(told(head, true), all);
    assert_eq!(told(head, false), [None, None, None]);
    for head in [
        "GET / HTTP/1.1\nHost: a\nUpgrade: websocket\n\n",
        "GET / HTTP/1.1\nHost: a\nConnection: upgrade\n\n",
        "GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: web socket\n\n",
        "GET / HTTP/1.0\nHost: a\nConnection: upgrade\nUpgrade: websocket\n\n",
        "POST / HTTP/1.1\nHost: a\nContent-Length: 1\nConnection: upgrade\n\
         Upgrade: websocket\n\n",
    ] {
        assert_eq!(told(head, true), [None, None, None], "{head}");
    }
}

#[test]
fn host_names_the_server() {
    for (host, name, port) in [
        ("example.org", "example.org", "80"),
        ("[::1]:81", "[::1]", "81"),
        ("example.org:", "example.org", "80"),
    ] {
        let all = variables_of(&format!("GET / HTTP/1.1\nHost: {host}\n\n"), |_| {});
        assert_eq!(value(&all, "SERVER_NAME"), Some(name), "{host}");
        assert_eq!(value(&all, "SERVER_PORT"), Some(port), "{host}");
    }
    let nameless = variables_of("GET / HTTP/1.0\n\n", |_| {});
    assert_eq!(value(&nameless, "SERVER_NAME"), Some("localhost"));
    assert_eq!(value(&nameless, "SERVER_PROTOCOL"), Some("HTTP/1.0"));
}

#[test]
fn every_variable_of_the_rfc_is_in_the_table_once() {
    const RFC: [&str; 17] = [
        "AUTH_TYPE",
        "CONTENT_LENGTH",
        "CONTENT_TYPE",
        "GATEWAY_INTERFACE",
        "PATH_INFO",
        "PATH_TRANSLATED",
        "QUERY_STRING",
        "REMOTE_ADDR",
        "REMOTE_HOST",
        "REMOTE_IDENT",
        "REMOTE_USER",
        "REQUEST_METHOD",
        "SCRIPT_NAME",
        "SERVER_NAME",
        "SERVER_PORT",
        "SERVER_PROTOCOL",
        "SERVER_SOFTWARE",
    ];
    let of = |origin| TABLE.iter().filter(move |one| one.origin == origin);
    let mut names: Vec<&str> = of(VariableOrigin::Rfc).map(|one| one.name).collect();
    names.sort_unstable();
    assert_eq!(names, RFC);
    assert!(of(VariableOrigin::Custom).all(|one| !RFC.contains(&one.name)));
}

#[test]
fn spawner_passes_every_variable_of_a_request_and_no_other() {
    use hob_keeper::process::spawner::OF_REQUESTS;
    let is_passed = |name: &str| name.starts_with("HTTP_") || OF_REQUESTS.contains(&name);
    let refused = TABLE.iter().find(|variable| !is_passed(variable.name));
    assert_eq!(refused.map(|variable| variable.name), None);
    let is_known = |name: &&&str| TABLE.iter().any(|variable| variable.name == **name);
    assert_eq!(OF_REQUESTS.iter().find(|name| !is_known(name)), None);
}
