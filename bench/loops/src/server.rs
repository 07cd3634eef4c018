//! The whole request path of hob in one process: routes, cache, files, record, access log.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use hob_http::limits::HttpLimits;
use hob_http::thread::{Crew, Listening, Thread};
use hob_server::answer::Answers;
use hob_server::config::{self, ConfigSources};
use hob_server::handle::admin::helm::Helm;
use hob_server::handle::admin::{Admin, GenerationReport};
use hob_server::route::sites::Sites;
use hob_server::shared::ServerState;
use hob_trace::access_log::{AccessLog, DestinationSettings, Target};
use hob_trace::format::AccessLogFormat;
use hob_trace::metric::Counters;

/// `is_logged` turns the access log on.
pub fn run(listener: TcpListener, is_logged: bool) -> std::io::Result<()> {
    let text = "[[site]]\nroot = \"www\"\n";
    let sources = ConfigSources::from_text("loops", text, ".".as_ref(), &|_| None).expect("sources");
    let (config, _) = config::load(&sources).expect("a folder www stands here");
    let counters = Arc::new(Counters::new());
    let log = AccessLog::start(counters.new_thread(), Box::new(|_| {}))?;
    let file = OpenOptions::new().create(true).append(true).open("loops-access.log")?;
    let settings = DestinationSettings {
        name: "access".to_owned(),
        format: AccessLogFormat::parse("combined").expect("a known format"),
        names: Arc::default(),
        rotate_bytes: 0,
        rotate_daily: false,
    };
    let log_id = log.register(settings, Target::File(file)).expect("a first log");
    let crew = Crew::new(1)?;
    let shared = Arc::new(ServerState::new(&config.cache));
    let mut sites = Sites::build(&config, &[], &shared).expect("sites");
    if is_logged {
        sites.listener_logs.insert(0, log_id.number());
    }
    shared.set_sites(sites);
    let report = GenerationReport {
        generation: 1,
        keeper_pid: 0,
        keeper_uid: 0,
        keeper_started: SystemTime::now(),
        servers_started: 1,
        addresses: Vec::new(),
        warnings: Vec::new(),
        sites: Vec::new(),
    };
    let admin = Arc::new(Admin {
        helm: Helm::new()?,
        counters: Arc::clone(&counters),
        crew: Arc::clone(&crew),
        shared: Arc::clone(&shared),
        started: Instant::now(),
        report: Mutex::new(report),
    });
    let block = counters.new_thread();
    let (producer, consumer) = hob_trace::ring::ring(512 * 1024);
    log.add_ring(consumer);
    let answers = Answers::new(&shared, &admin, Arc::clone(&block), producer);
    let mut thread = Thread::new(&crew, 0, HttpLimits::default(), block, answers)?;
    thread.set_listeners(vec![Listening::new(0, Arc::new(listener.into()))])?;
    thread.run()
}
