//! One server with a route for each way, and all cases sent to each of them.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use crate::asking::{Got, ask};
use crate::authority::{Authority, certify};
use crate::cases::{self, Case};
use crate::harness::{Hob, Place, library};
use crate::tools;
use crate::ways::{Carrier, Helper, WAYS, Way};

/// What became of a case.
pub(crate) enum Outcome {
    Passed,
    /// The way lacks something, with the reason.
    Skipped(&'static str),
    Failed(String),
}

/// A way and its outcomes by the names of the cases.
pub(crate) struct Tried {
    pub(crate) way: &'static Way,
    /// Why nothing could be tried here.
    pub(crate) missing: Option<String>,
    pub(crate) outcomes: Vec<(String, Outcome)>,
}

/// All that there is, tried once for all tests, in the order of the table.
pub(crate) fn run() -> &'static [Tried] {
    static RUN: OnceLock<Vec<Tried>> = OnceLock::new();
    RUN.get_or_init(|| {
        let site = Site::serve();
        let cases = cases::all();
        let mut languages: Vec<&str> = WAYS.iter().map(|way| way.language).collect();
        languages.dedup();
        // Languages at the same time, ways of one after each other.
        std::thread::scope(|scope| {
            let at_work: Vec<_> = languages
                .iter()
                .map(|language| {
                    let ways = (0..WAYS.len()).filter(|&at| WAYS[at].language == *language);
                    let (site, cases) = (&site, &cases);
                    scope.spawn(move || ways.map(|at| site.try_way(at, cases)).collect())
                })
                .collect();
            let tried = at_work.into_iter().map(|one| one.join().unwrap());
            let tried: Vec<Tried> = tried.flat_map(|tried: Vec<Tried>| tried).collect();
            site.check_log(&tried);
            tried
        })
    })
}

struct Site {
    place: Place,
    hob: Hob,
    /// Another one, which asks that for each program.
    front: Hob,
    _front_place: Place,
    /// Why the native parts of Python and Perl are not here.
    without: [(&'static str, Option<String>); 2],
}

impl Site {
    fn serve() -> Site {
        let place = Place::new();
        place.folder("probe");
        let folder = place.path("probe");
        for source in ["lang/c/probe/probe.c", "lang/c/probe/lines.c"] {
            library::compile(source, &folder);
        }
        for language in ["python", "perl", "shell"] {
            copy(
                &library::root().join("lang").join(language).join("probe"),
                &folder,
            );
        }
        // What plain CGI programs import.
        for (from, to) in [("python/src/hob", "hob"), ("perl/lib/Hob", "Hob")] {
            place.folder(&format!("probe/{to}"));
            copy(&library::root().join("lang").join(from), &folder.join(to));
        }
        for of_modules in ["lang/perl/lib", "lang/shell"] {
            copy(&library::root().join(of_modules), &folder);
        }
        let without = [
            ("Python", tools::python_helper(&folder).err()),
            ("Perl", tools::perl_part(&folder).err()),
        ];
        let routes: String = (0..WAYS.len()).map(|at| route(at, &folder)).collect();
        let authority = Authority::new("hobs");
        certify(&place, &authority, "owner");
        let offers =
            (0..WAYS.len()).map(|at| format!("[[offer]]\nprogram = \"way{at}\"\nto = \"front\"\n"));
        let offers: String = offers.collect();
        let hob = place.serve_text(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\noffers = \"ca.pem\"\n\
             tls = {{ certificate = \"own.pem\", key = \"own.key\" }}\n{offers}\
             [[site]]\nroot = \"site\"\n{routes}"
        ));
        let (front, front_place) = in_front(&hob, &authority);
        Site {
            place,
            hob,
            front,
            _front_place: front_place,
            without,
        }
    }

    /// Everybody who said so has a line in the log and one in the trace.
    fn check_log(&self, tried: &[Tried]) {
        let is_told = |(name, outcome): &&(String, Outcome)| {
            name == "callout-log" && matches!(outcome, Outcome::Passed)
        };
        let outcomes = tried.iter().flat_map(|tried| &tried.outcomes);
        let count = outcomes.filter(is_told).count();
        // Each by itself and through the other hob.
        let count = 2 * count;
        self.hob.wait_for_count(" INFO probe request=", count);
        self.hob.wait_for_count(" DEBUG probe program=", count);
    }

    /// Sends all cases one way.
    fn try_way(&self, at: usize, cases: &[Case]) -> Tried {
        let way = &WAYS[at];
        let without = self.without.iter();
        let mut without = without.filter(|(language, _)| *language == way.language);
        let missing = match way.helper {
            Helper::Native => without.next().and_then(|(_, reason)| reason.clone()),
            _ => None,
        };
        let is_there = missing.is_none();
        let outcomes = cases.iter().filter(|_| is_there).map(|case| {
            let outcome = match way.lack(&case.needs) {
                Some(reason) => Outcome::Skipped(reason),
                None => self.try_case(at, case),
            };
            (case.name.clone(), outcome)
        });
        let mut outcomes: Vec<_> = outcomes.collect();
        if is_there
            && way.handler == "resident"
            && let Err(why) = self.check_worker(at)
        {
            outcomes.push(("its carrier".to_owned(), Outcome::Failed(why)));
        }
        Tried {
            way,
            missing,
            outcomes,
        }
    }

    fn try_case(&self, at: usize, case: &Case) -> Outcome {
        let prefix = format!("/{at}{}", WAYS[at].script);
        let got = ask(self.hob.clear_port(), &prefix, &case.request);
        let away = ask(self.front.port(), &prefix, &case.request);
        let judged = case.judge(&got, &WAYS[at]).and_then(|()| {
            let judged = case.judge(&away, &WAYS[at]);
            let same = judged.and_then(|()| match case.breaks_off() {
                true => Ok(()),
                false => is_same(&away, &got),
            });
            same.map_err(|why| format!("by remote: {why}"))
        });
        match judged {
            Ok(()) => Outcome::Passed,
            Err(why) => Outcome::Failed(why),
        }
    }

    /// The worker has mapped what its way says, and nothing else: the memory it shares with the
    /// server, libhob, the helper.
    fn check_worker(&self, at: usize) -> Result<(), String> {
        let way = &WAYS[at];
        let status = self.place.status();
        let pools = status["programs"]["pools"].as_array().unwrap();
        let name = format!("/{at}/* ");
        let is_named = |pool: &&Value| pool["name"].as_str().unwrap().starts_with(&name);
        let pool = pools.iter().find(is_named).unwrap();
        let Some(pid) = pool["workers"][0]["pid"].as_u64() else {
            return Err(format!("no worker in {pool}"));
        };
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))
            .map_err(|error| format!("its memory is not told: {error}"))?;
        let through_libhob = way.interface == "hob.h" || way.helper == Helper::Native;
        for (what, is_wanted) in [
            ("/memfd:hob-", way.carrier == Carrier::Shm),
            ("/libhob.so.1", through_libhob),
        ] {
            if maps.contains(what) != is_wanted {
                return Err(format!("{what} is mapped: {}", !is_wanted));
            }
        }
        Ok(())
    }
}

/// What a client of the other hob gets is what one of this gets: all bytes of a whole answer, but
/// for the moment of it, and for how it is framed where that depends on when its pieces came (and
/// for `Vary`, which goes by the length, and for what hob calls a body of which nothing came yet).
fn is_same(away: &Got, home: &Got) -> Result<(), String> {
    let told = |got: &Got| {
        let differs = ["date", "content-length", "transfer-encoding", "vary"];
        let mut fields = got.fields.clone();
        let unsaid = ("content-type", "text/plain; charset=utf-8");
        fields.retain(|(name, value)| {
            let is_unsaid = got.body.is_empty() && (name.as_str(), value.as_str()) == unsaid;
            !differs.contains(&name.as_str()) && !is_unsaid
        });
        (got.infos.clone(), got.status, fields, got.trailers.clone())
    };
    if told(away) != told(home) {
        return Err(format!("{:?} and not {:?}", told(away), told(home)));
    }
    match away.body == home.body && away.is_whole == home.is_whole {
        true => Ok(()),
        false => Err(format!(
            "{} bytes, not {}",
            away.body.len(),
            home.body.len()
        )),
    }
}

/// A hob that asks this one for every program.
fn in_front(owner: &Hob, authority: &Authority) -> (Hob, Place) {
    let place = Place::new();
    certify(&place, authority, "front");
    let to = format!("tls://localhost:{}", owner.tls_port());
    let routes = (0..WAYS.len()).map(|at| {
        format!(
            "[[site.route]]\npath = \"/{at}/*\"\nbody = \"64MiB\"\n\
             remote = {{ to = \"{to}\", program = \"way{at}\", timeout.first_byte = \"2m\", \
             tls = {{ ca = \"ca.pem\", certificate = \"own.pem\", key = \"own.key\" }} }}\n"
        )
    });
    let routes: String = routes.collect();
    let text = format!("[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n{routes}");
    (place.serve_text(&text), place)
}

/// Copies the files of a folder, where programs can read them.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            let copied = to.join(entry.file_name());
            std::fs::copy(entry.path(), &copied).unwrap();
            library::readable(&copied);
        }
    }
}

/// One worker that stays, and as much time as a busy machine may take.
const PATIENT: &str =
    "workers.min = 0, workers.max = 1, queue.wait = \"1m\", timeout.start = \"1m\"";

/// A route to one way.
fn route(at: usize, folder: &Path) -> String {
    let way = &WAYS[at];
    let folder = folder.display();
    let mut keys = vec![way.keys.to_owned()];
    let mut variables = Vec::new();
    if way.handler == "resident" {
        let carrier = way.carrier();
        keys.push(format!("carrier = \"{carrier}\""));
        keys.push(PATIENT.to_owned());
        if way.interface.contains("WSGI") || way.interface == "ASGI" {
            keys.push("dir = \"probe\"".to_owned());
        }
        let (native, library) = match (way.helper, way.language) {
            (Helper::Native, "Python") => (format!("{folder}/_native.abi3.so"), true),
            (Helper::Native, _) => (format!("{folder}/Native.so"), true),
            _ => ("off".to_owned(), false),
        };
        variables.push(format!("HOB_NATIVE = \"{native}\""));
        if library {
            variables.push(format!("HOB_LIBRARY = \"{folder}/libhob.so.1\""));
        }
    } else {
        variables.push(format!("PERL5LIB = \"{folder}\""));
    }
    format!(
        "[[site.route]]\npath = \"/{at}/*\"\nname = \"way{at}\"\nbody = \"64MiB\"\n\
         {} = {{ {}, env = {{ {} }} }}\n",
        way.handler,
        keys.join(", "),
        variables.join(", ")
    )
}
