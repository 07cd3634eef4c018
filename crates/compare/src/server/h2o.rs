//! H2O.

use super::{Ground, Setup};

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let host = ground.host;
    let secure = ground.where_secure(|certificate, key| {
        format!(
            "listen:
  host: {host}
  port: {}
  ssl:
    certificate-file: {certificate}
    key-file: {key}
    minimum-version: TLSv1.3
    cipher-preference: server
",
            ground.ports.secure
        )
    });
    // One thread for each CPU of the machine is its default, whatever it is bound to.
    let text = format!(
        "num-threads: 1
{user}error-log: {errors}
temp-buffer-path: {temporary}
listen:
  host: {host}
  port: {port}
{secure}hosts:
  default:
    paths:
      /:
        file.dir: {root}
",
        user = if ground.is_root { "user: nobody\n" } else { "" },
        errors = at("h2o.err"),
        temporary = at(""),
        port = ground.ports.clear,
        root = ground.site.root.display(),
    );
    Setup {
        files: vec![("h2o.conf", text)],
        programs: vec![ground.program("h2o", &["-m", "worker", "-c", &at("h2o.conf")])],
        ..Setup::default()
    }
}
