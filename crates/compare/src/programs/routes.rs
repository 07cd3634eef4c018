//! The routes of hob's config that lead to programs.

use super::build::{SCRIPTS, text};
use crate::site::ComparisonSite;

impl ComparisonSite {
    /// The routes of hob's config that lead to programs. Two workers each, always there; what uses
    /// shared memory has these keys besides.
    pub(crate) fn hob_routes(&self, shared: &str) -> String {
        if self.interpreters.is_empty() && self.c.is_none() && self.php.is_none() {
            return String::new();
        }
        let workers = "workers = { min = 2, max = 2 }";
        let php = self.php.as_ref().map_or(String::new(), |php| {
            format!(", interpreters = {{ \".php\" = \"{}\" }}", text(php))
        });
        let mut routes = route(
            "/cgi/*",
            &format!("cgi = {{ dir = \"{}\"{php} }}", text(&self.cgi)),
        );
        for (interpreter, name, _) in SCRIPTS {
            if *interpreter != "sh" && self.interpreters.contains(interpreter) {
                let script = text(&self.cgi.join(name));
                let warm =
                    format!("warm = {{ script = \"{script}\", interpreter = \"{interpreter}\" }}");
                routes.push_str(&route(&format!("/warm/{name}"), &warm));
            }
        }
        if self.interpreters.contains(&"perl") {
            let scripts = format!(
                "rewrite = \"/script.pl\"\nresident = {{ scripts = \"{}\", {workers} }}",
                text(&self.cgi)
            );
            routes.push_str(&route("/resident/script.pl", &scripts));
        }
        if self.interpreters.contains(&"python3") {
            for (kind, name) in [("wsgi", "application"), ("asgi", "asgi")] {
                let application = format!(
                    "body = \"1GiB\"\nresident = {{ {kind} = \"app:{name}\", dir = \"{}\", {workers} }}",
                    text(&self.cgi)
                );
                routes.push_str(&route(&format!("/resident/{kind}"), &application));
            }
        }
        if let Some(program) = &self.c {
            let lines = format!(
                "resident = {{ run = [\"{}\"], carrier = \"lines\", {workers} }}",
                text(program)
            );
            routes.push_str(&route("/lines", &lines));
        }
        if let Some(program) = &self.resident {
            for (carrier, keys) in [("shm", shared), ("stream", "")] {
                let run = format!(
                    "resident = {{ run = [\"{}\"], carrier = \"{carrier}\", {workers}{keys} }}",
                    text(program)
                );
                routes.push_str(&route(&format!("/{carrier}"), &run));
            }
        }
        if let Some(program) = &self.visit {
            let visit = format!("session = {{ run = [\"{}\"] }}", text(program));
            routes.push_str(&route("/visit/*", &visit));
        }
        if let Some(select) = &self.select {
            let page = format!(
                "page = {{ dir = \"{}\", database = \"items\" }}",
                text(&self.pages)
            );
            routes.push_str(&route("/page/*", &page));
            routes.push_str(&format!(
                "\n[[database]]\nname = \"items\"\nurl = \"sqlite:{}\"\nreadonly = true\n",
                text(&select.database)
            ));
        }
        routes
    }
}

fn route(path: &str, handler: &str) -> String {
    format!("\n[[site.route]]\npath = \"{path}\"\n{handler}\n")
}
