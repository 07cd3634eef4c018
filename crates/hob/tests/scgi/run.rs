//! A program that hob starts itself, which takes connections from its standard input.

use crate::harness::Place;
use crate::site;

const PROGRAM: &str = "#!/usr/bin/python3
import os, socket
listener = socket.socket(fileno=0)
while True:
    connection, _ = listener.accept()
    asked = connection.makefile('rb')
    length = b''
    while (byte := asked.read(1)) not in (b':', b''):
        length += byte
    if length:
        parts = asked.read(int(length)).split(b'\\0')
        told = dict(zip(parts[::2], parts[1::2]))
        head = b'Content-Type: text/plain\\r\\n\\r\\n'
        connection.sendall(head + told[b'PATH_INFO'] + b' %d' % os.getpid())
    asked.close()
    connection.close()
";

#[test]
fn program_is_started_and_answers_one_request_for_each_child() {
    let place = Place::new();
    place.script("bin/app", PROGRAM);
    let site = site::serve(place, "run = \"bin/app\", children = 2", "");
    let answer = site.get("/app/x").answer;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let status = site.place.status();
    let run = &status["programs"]["upstreams"][0]["members"][0]["run"];
    let text = answer.text();
    let (path, pid) = text.split_once(' ').unwrap();
    assert_eq!(path, "/x");
    let pids = run["pids"].as_array().unwrap();
    assert!(
        pids.contains(&pid.parse::<u32>().unwrap().into()),
        "{run} {text}"
    );
    site.stop();
}
