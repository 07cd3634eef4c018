//! A site with one program that speaks lines.

use crate::site::Programs;

/// Serves the program at `/app/` with further keys of its table.
pub(crate) fn serve(keys: &str) -> Programs {
    let keys = match keys {
        "" => String::new(),
        keys => format!(", {keys}"),
    };
    let program = include_str!("app.py");
    Programs::new()
        .with_mode("app.py", program, 0o644)
        .serve_route(&format!(
            "path = \"/app/*\"\nbody = \"64MiB\"\nresident = {{ run = [\"python3\", \"app.py\"], \
             dir = \"cgi\", carrier = \"lines\"{keys} }}\n"
        ))
}

/// The same with one worker.
pub(crate) fn serve_one() -> Programs {
    serve("workers = { max = 1 }")
}
