//! A site with one page and the programs that it may call.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place};

/// Routes of programs, and their files.
#[derive(Default)]
pub(crate) struct Routes {
    config: String,
    names: Vec<String>,
    files: Vec<(String, String)>,
    /// Keys of the page.
    keys: String,
    /// Keys of each route.
    limits: String,
}

impl Routes {
    /// A program that is started for each call.
    pub(crate) fn cgi(self, name: &str, text: &str) -> Routes {
        let limits = self.limits.clone();
        let handler = format!("cgi = {{ script = \"programs/{name}\"{limits} }}");
        self.listed(name)
            .route(name, name, &handler)
            .file(name, text)
    }

    /// The same, which pages may not call.
    pub(crate) fn cgi_unlisted(self, name: &str, text: &str) -> Routes {
        let handler = format!("cgi = {{ script = \"programs/{name}\" }}");
        self.route("", name, &handler).file(name, text)
    }

    /// A folder of programs, with one in it.
    pub(crate) fn folder(self, name: &str, file: &str, text: &str) -> Routes {
        let handler = format!("cgi = {{ dir = \"programs/{name}\" }}");
        let routes = self
            .listed(name)
            .route(name, &format!("{name}/*"), &handler);
        routes.file(&format!("{name}/{file}"), text)
    }

    /// A program with a handler of this kind.
    pub(crate) fn other(self, name: &str, handler: &str, file: &str, text: &str) -> Routes {
        self.listed(name)
            .route(name, name, handler)
            .file(file, text)
    }

    /// Keys of the page.
    pub(crate) fn keys(mut self, keys: &str) -> Routes {
        self.keys = format!(", {keys}");
        self
    }

    /// Limits of programs that follow.
    pub(crate) fn limits(mut self, keys: &str) -> Routes {
        self.limits = format!(", {keys}");
        self
    }

    fn listed(mut self, name: &str) -> Routes {
        self.names.push(name.to_owned());
        self
    }

    fn route(mut self, name: &str, path: &str, handler: &str) -> Routes {
        let name = match name {
            "" => String::new(),
            name => format!("name = \"{name}\"\n"),
        };
        // Writing to a String cannot fail.
        let _ = write!(
            self.config,
            "[[site.route]]\n{name}path = \"/programs/{path}\"\ninternal = true\n{handler}\n"
        );
        self
    }

    fn file(mut self, name: &str, text: &str) -> Routes {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// The files, without a server.
    pub(crate) fn place(&self) -> Place {
        let place = Place::new();
        place.folder("macros");
        place.folder("data");
        let open = PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(place.path("data"), open).unwrap();
        for (name, text) in &self.files {
            place.script(&format!("programs/{name}"), text);
        }
        place
    }

    /// Serves `p.page` with this text.
    pub(crate) fn serve_at(&self, place: Place, page: &str) -> Site {
        place.write("macros/p.page", page);
        let (names, keys) = (&self.names, &self.keys);
        let page = format!("page = {{ dir = \"macros\", programs = {names:?}{keys} }}\n");
        Site::serve(place, "", &(page + &self.config), "")
    }
}

pub(crate) fn serve(page: &str, routes: &Routes) -> Site {
    routes.serve_at(routes.place(), page)
}

/// A value as it stands in a query.
pub(crate) fn encoded(value: &str) -> String {
    let bytes = value.bytes();
    bytes.fold(String::new(), |text, byte| text + &format!("%{byte:02X}"))
}

/// The number that a program writes into a file of `data`, once it is there.
pub(crate) fn number(site: &Site, file: &str) -> u32 {
    let path = site.place.path(&format!("data/{file}"));
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(number) = text.strip_suffix('\n') {
            return number.parse().unwrap();
        }
        assert!(std::time::Instant::now() < until, "no number in {path:?}");
        std::thread::yield_now();
    }
}
