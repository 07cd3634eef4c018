//! A thousand visits that nobody comes back to.

use crate::harness::usage::{memory_bytes, open_files, private_bytes};
use crate::harness::wait_for_end;
use crate::site::Programs;

const COUNTER: &str = include_str!("counter.c");
const COUNT: usize = 1000;
/// What a server that has had them may have more than before.
const LEFT_BYTES_MAX: u64 = 8 << 20;

#[test]
fn thousand_visits_that_are_left_leave_nothing() {
    let mut programs = Programs::new().with_linked("counter", COUNTER);
    programs.serve_whole(&format!(
        "[limits]\nworkers = {}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         [[site.route]]\npath = \"/shop/*\"\nsession = {{ run = [\"cgi/counter\"], \
         wait = \"10m\", visits = {{ max = {COUNT}, per_client = 0, rate = 0 }} }}\n\
         [[site.route]]\npath = \"/new\"\nrespond = {{ status = 204 }}\n",
        COUNT + 10
    ));
    let server = programs.hob().server();
    let (files, bytes) = (open_files(server), private_bytes(server));
    let mut pids = Vec::new();
    let mut handles = Vec::new();
    for _ in 0..COUNT {
        let reply = programs.get("/shop/");
        let why = || programs.place.run(&["history", "--json"]);
        assert_eq!(reply.answer.status, 200, "{:?}", why());
        let text = reply.answer.text();
        let mut words = text.split(' ');
        handles.push(words.next().unwrap().to_owned());
        pids.push(words.next().unwrap().parse::<u32>().unwrap());
        assert_eq!(words.next(), Some("1"));
    }
    for handle in [&handles[0], &handles[COUNT - 1]] {
        assert!(programs.text(&format!("/shop/{handle}/")).ends_with(" 2"));
    }
    let visits: u64 = pids
        .iter()
        .map(|pid| memory_bytes(*pid, "Pss") / 1024)
        .sum();
    let own = private_bytes(server).saturating_sub(bytes) / 1024;
    let each = (visits + own) / COUNT as u64;
    println!(
        "{each} KiB of PSS for each visit, {} of it the server's",
        own / COUNT as u64
    );
    // Their section is no more: so are they.
    let config = programs.place.path("hob.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("10m", "11m")).unwrap();
    assert!(programs.place.run(&["reload"]).status.success());
    for pid in pids {
        wait_for_end(pid);
    }
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while open_files(server) > files + 10 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert!(
        open_files(server) <= files + 10,
        "{} of {files}",
        open_files(server)
    );
    // What is free is given back once the server is quiet.
    let left = || private_bytes(server).saturating_sub(bytes);
    while left() >= LEFT_BYTES_MAX && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert!(left() < LEFT_BYTES_MAX, "{} bytes are left", left());
    assert_eq!(
        programs
            .get(&format!("/shop/{}/", handles[0]))
            .answer
            .status,
        410
    );
    let own_children = programs.place.status()["programs"]["workers"].clone();
    assert_eq!(own_children, 0);
}
