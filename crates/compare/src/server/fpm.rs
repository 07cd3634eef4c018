//! php-fpm behind nginx, as PHP is served where it is served fast.

use super::{Door, Ground, Setup, nginx};

/// Two processes that are always there, as hob's programs have two.
pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let user = match ground.is_root {
        true => "user = 65534\ngroup = 65534\n",
        false => "",
    };
    let pool = format!(
        "[global]
error_log = {errors}
daemonize = no
[www]
{user}listen = {socket}
listen.mode = 0666
pm = static
pm.max_children = 2
",
        errors = at("php-fpm.err"),
        socket = at("php.sock"),
    );
    let (upstream, pass, more) = match ground.is_tuned() {
        false => (String::new(), format!("unix:{}", at("php.sock")), ""),
        true => (
            format!(
                "  upstream php {{ server unix:{}; keepalive 2; }}\n",
                at("php.sock")
            ),
            "php".to_owned(),
            "      fastcgi_keep_conn on;\n      fastcgi_buffers 16 64k;\n",
        ),
    };
    let location = format!(
        "    location /php/ {{
      include {parameters};
      fastcgi_param SCRIPT_FILENAME {script};
      fastcgi_pass {pass};
{more}    }}
",
        parameters = at("fastcgi_params"),
        script = ground.site.cgi.join("script.php").display(),
    );
    let fpm = ["--nodaemonize", "--fpm-config", &at("php-fpm.conf")];
    Setup {
        files: vec![
            ("php-fpm.conf", pool),
            ("nginx.conf", nginx::text(ground, &upstream, &location)),
            ("fastcgi_params", nginx::parameters("fastcgi")),
        ],
        programs: vec![
            ground.program("php-fpm", &fpm),
            nginx::program(ground, ground.front),
        ],
        doors: vec![Door::Socket("php.sock")],
        ..Setup::default()
    }
}
