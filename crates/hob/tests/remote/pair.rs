//! Two hobs: one has a program, the other one has the clients.

use crate::authority::Authority;
pub(crate) use crate::authority::certify;
use crate::harness::site::Site;
use crate::harness::{Hob, Place};

/// A hob that has the program `app`, and offers it.
pub(crate) struct Owner {
    pub(crate) place: Place,
    pub(crate) hob: Hob,
}

/// The ways to run it.
pub(crate) const HANDLERS: [&str; 3] = ["resident", "warm", "cgi"];

/// A handler of a route that runs the program in this place.
pub(crate) fn handler(kind: &str, place: &Place) -> String {
    let dir = place.path("app").display().to_string();
    match kind {
        "resident" => format!("resident = {{ wsgi = \"app:application\", dir = \"{dir}\" }}"),
        "warm" => format!("warm = {{ script = \"{dir}/app.py\" }}"),
        _ => format!("cgi = {{ script = \"{dir}/app.py\" }}"),
    }
}

/// A place with the program, and a file that it may have sent.
pub(crate) fn place_with_program() -> Place {
    let place = Place::new();
    let text = format!("#!/usr/bin/env python3\n{}", include_str!("app.py"));
    place.script("app/app.py", &text);
    std::fs::create_dir(place.path("app/files")).unwrap();
    place.write("app/files/a.txt", &"0123456789\n".repeat(100));
    place
}

impl Owner {
    /// Serves it, offered to who is listed, with further keys of the route.
    pub(crate) fn serve(place: Place, authority: &Authority, kind: &str, to: &str) -> Owner {
        certify(&place, authority, "owner");
        let hob = place.serve_text(&Owner::config(&place, kind, to, ""));
        Owner { place, hob }
    }

    pub(crate) fn config(place: &Place, kind: &str, to: &str, keys: &str) -> String {
        let files = place.path("app/files").display().to_string();
        format!(
            "default_log = \"access\"\n[[log]]\nname = \"access\"\nfile = \"run/access.log\"\n\
             format = \"json\"\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = {{ certificate = \"own.pem\", key = \"own.key\" }}\noffers = \"ca.pem\"\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[offer]]\nprogram = \"app\"\nto = [{to}]\n\
             [[site]]\n[[site.route]]\npath = \"/app/*\"\nname = \"app\"\nbody = \"10MiB\"\n\
             sendfile = [\"{files}\"]\n{keys}\n{}\n",
            handler(kind, place)
        )
    }

    /// Where it is asked for the program.
    pub(crate) fn to(&self) -> String {
        format!("\"tls://localhost:{}\"", self.hob.tls_port())
    }

    pub(crate) fn stop(self) {
        self.hob.stop();
    }
}

/// What is shown to the owner, and who is believed.
pub(crate) const TLS: &str =
    "tls = { ca = \"ca.pem\", certificate = \"own.pem\", key = \"own.key\" }";

/// Serves `/app/*` by asking these owners, with further keys of `remote` and of the site.
pub(crate) fn serve_front(place: Place, to: &str, keys: &str, more: &str) -> Site {
    let handler = format!("remote = {{ to = [{to}], program = \"app\", {TLS}{keys} }}");
    Site::serve(place, "", &handler, more)
}

/// A place with the certificate of `front`.
pub(crate) fn front_place(authority: &Authority) -> Place {
    let place = Place::new();
    certify(&place, authority, "front");
    place
}

/// An owner of the program and a front that asks it.
pub(crate) fn pair(kind: &str) -> (Owner, Site) {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(place_with_program(), &authority, kind, "\"front\"");
    let front = serve_front(front_place(&authority), &owner.to(), "", "");
    (owner, front)
}
