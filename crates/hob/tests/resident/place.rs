//! A site with one application that stays.

use crate::site::Programs;

const APPLICATION: &str = include_str!("app.py");

/// Serves the application at `/app/` with further keys of its table.
pub(crate) fn serve(keys: &str) -> Programs {
    application().serve_route(&route(keys))
}

/// The application in the folder `cgi`, to which it may write.
pub(crate) fn application() -> Programs {
    Programs::new().with_mode("app.py", APPLICATION, 0o644)
}

/// The application's route.
pub(crate) fn route(keys: &str) -> String {
    let keys = match keys {
        "" => String::new(),
        keys => format!(", {keys}"),
    };
    format!(
        "path = \"/app/*\"\nbody = \"64MiB\"\n\
         resident = {{ wsgi = \"app:application\", dir = \"cgi\"{keys} }}\n"
    )
}
