//! nginx.

use super::{Ground, Setup};

/// The configuration that Debian's package begins with, its paths and addresses replaced.
pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let secure = secure(ground);
    // With one CPU, `auto` is one process too.
    let tuned = match ground.is_tuned() {
        true => {
            "  tcp_nodelay on;
  open_file_cache max=10000 inactive=600s;
  open_file_cache_valid 600s;
  open_file_cache_min_uses 1;
"
        }
        false => "",
    };
    let (upstream, fast_cgi) = match &ground.site.c {
        Some(_) => fast_cgi(
            &at("fastcgi_params"),
            &at("fastcgi.sock"),
            ground.is_tuned(),
        ),
        None => (String::new(), String::new()),
    };
    let text = format!(
        "worker_processes 1;
daemon off;
pid {pid};
error_log {errors} crit;
events {{ worker_connections 4096; }}
http {{
  types {{ text/plain txt; application/octet-stream bin; }}
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  client_body_temp_path {body};
  proxy_temp_path {proxy};
  fastcgi_temp_path {fastcgi};
  uwsgi_temp_path {uwsgi};
  scgi_temp_path {scgi};
{tuned}{upstream}  server {{
    listen 127.0.0.1:{port};
{secure}    root {root};
{fast_cgi}  }}
}}
",
        pid = at("nginx.pid"),
        errors = at("nginx.err"),
        body = at("body"),
        proxy = at("proxy"),
        fastcgi = at("fastcgi"),
        uwsgi = at("uwsgi"),
        scgi = at("scgi"),
        port = ground.ports.clear,
        root = ground.site.root.display(),
    );
    let mut programs =
        vec![ground.program("nginx", &["-e", &at("nginx.err"), "-c", &at("nginx.conf")])];
    programs.extend(ground.site.fast_cgi_program(&at("fastcgi.sock")));
    Setup {
        files: vec![
            ("nginx.conf", text),
            ("fastcgi_params", PARAMETERS.to_owned()),
        ],
        folders: vec![],
        programs,
    }
}

fn secure(ground: &Ground<'_>) -> String {
    ground.where_secure(|certificate, key| {
        format!(
            "    listen 127.0.0.1:{} ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;
    ssl_ecdh_curve X25519;
    ssl_session_cache shared:SSL:10m;
",
            ground.ports.secure
        )
    })
}

/// The program over FastCGI: a connection for each request, or kept ones.
fn fast_cgi(parameters: &str, socket: &str, is_tuned: bool) -> (String, String) {
    let location = |pass: &str, more: &str| {
        format!(
            "    location /fastcgi/ {{
      include {parameters};
      fastcgi_pass {pass};
{more}    }}
"
        )
    };
    if !is_tuned {
        return (String::new(), location(&format!("unix:{socket}"), ""));
    }
    let upstream = format!("  upstream fastcgi {{ server unix:{socket}; keepalive 64; }}\n");
    let more = "      fastcgi_keep_conn on;
      fastcgi_buffers 16 64k;
      fastcgi_max_temp_file_size 0;
";
    (upstream, location("fastcgi", more))
}

/// What nginx tells a FastCGI program.
const PARAMETERS: &str = "\
fastcgi_param QUERY_STRING $query_string;
fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param SCRIPT_NAME $fastcgi_script_name;
fastcgi_param REQUEST_URI $request_uri;
fastcgi_param DOCUMENT_URI $document_uri;
fastcgi_param DOCUMENT_ROOT $document_root;
fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param REQUEST_SCHEME $scheme;
fastcgi_param GATEWAY_INTERFACE CGI/1.1;
fastcgi_param SERVER_SOFTWARE nginx/$nginx_version;
fastcgi_param REMOTE_ADDR $remote_addr;
fastcgi_param REMOTE_PORT $remote_port;
fastcgi_param SERVER_ADDR $server_addr;
fastcgi_param SERVER_PORT $server_port;
fastcgi_param SERVER_NAME $server_name;
";
