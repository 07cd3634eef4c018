//! Servers of Python applications that speak HTTP themselves: Granian, gunicorn, uvicorn. Told what
//! to do by arguments, and started once more for TLS. Each has the Python it was installed with.

use super::{Extra, Ground, Setup};

/// Granian, with WSGI or ASGI.
pub(super) fn granian(ground: &Ground<'_>) -> Setup {
    let (interface, application) = match ground.extra {
        Extra::Asgi => ("asgi", "app:asgi"),
        _ => ("wsgi", "app:application"),
    };
    let folder = ground.site.cgi.display().to_string();
    let host = ground.host.to_string();
    let usual = ["--workers", "2", "--log-level", "warning"];
    let application = [
        "--interface",
        interface,
        "--working-dir",
        &folder,
        application,
    ];
    twice(ground, "granian", |port, tls| {
        let mut arguments = owned(&["--host", &host, "--port", &port.to_string()]);
        if let Some((certificate, key)) = tls {
            arguments.extend(owned(&[
                "--ssl-certificate",
                certificate,
                "--ssl-keyfile",
                key,
            ]));
        }
        arguments.extend(owned(&usual));
        arguments.extend(owned(&application));
        arguments
    })
}

/// gunicorn with WSGI. Its usual workers close each connection after the answer; tuned ones, with
/// threads, keep them.
pub(super) fn gunicorn(ground: &Ground<'_>) -> Setup {
    let folder = ground.site.cgi.display().to_string();
    let host = ground.host.to_string();
    let kind: &[&str] = match ground.is_tuned() {
        true => &[
            "--worker-class",
            "gthread",
            "--threads",
            "8",
            "--keep-alive",
            "60",
        ],
        false => &[],
    };
    let usual = [
        "--workers",
        "2",
        "--log-level",
        "warning",
        "--chdir",
        &folder,
    ];
    twice(ground, "gunicorn", |port, tls| {
        let mut arguments = owned(&["--bind", &format!("{host}:{port}")]);
        if let Some((certificate, key)) = tls {
            arguments.extend(owned(&["--certfile", certificate, "--keyfile", key]));
        }
        arguments.extend(owned(kind));
        arguments.extend(owned(&usual));
        arguments.push("app:application".to_owned());
        arguments
    })
}

/// uvicorn with ASGI.
pub(super) fn uvicorn(ground: &Ground<'_>) -> Setup {
    let folder = ground.site.cgi.display().to_string();
    let host = ground.host.to_string();
    let usual = [
        "--workers",
        "2",
        "--log-level",
        "warning",
        "--no-access-log",
    ];
    twice(ground, "uvicorn", |port, tls| {
        let mut arguments = owned(&["--host", &host, "--port", &port.to_string()]);
        if let Some((certificate, key)) = tls {
            arguments.extend(owned(&[
                "--ssl-certfile",
                certificate,
                "--ssl-keyfile",
                key,
            ]));
        }
        arguments.extend(owned(&usual));
        arguments.extend(owned(&["--app-dir", &folder, "app:asgi"]));
        arguments
    })
}

/// A program in clear text, and one over TLS where there is a certificate.
fn twice(
    ground: &Ground<'_>,
    name: &str,
    arguments: impl Fn(u16, Option<(&str, &str)>) -> Vec<String>,
) -> Setup {
    let program = |name: &str, arguments: Vec<String>| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        ground.program(name, &arguments)
    };
    let mut programs = vec![program(name, arguments(ground.ports.clear, None))];
    if let Some(pair) = &ground.site.certificate {
        let secure = arguments(ground.ports.secure, Some((&pair.certificate, &pair.key)));
        programs.push(program(&format!("{name}-tls"), secure));
    }
    Setup {
        programs,
        doors: ground.secure_door().into_iter().collect(),
        ..Setup::default()
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|one| (*one).to_owned()).collect()
}
