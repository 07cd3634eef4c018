//! The limits of a config, as the engine takes them.

use hob_http::limits::HttpLimits;
use hob_keeper::{connection_files, connections_possible};

use hob_config as config;

/// The limits as the engine takes them.
pub fn limits(limits: &config::LimitSettings) -> HttpLimits {
    HttpLimits {
        target_bytes: limits.target,
        head_bytes: limits.head,
        header_count: limits.headers,
        head_time: limits.head_time,
        body_progress: limits.body_progress,
        write_progress: limits.write_progress,
        handshake_time: limits.handshake_time,
        handshake_bytes: limits.handshake_bytes,
        handshake_count: limits.handshakes,
        proxy_protocol_time: limits.proxy_protocol_time,
        proxy_protocol_bytes: limits.proxy_protocol_bytes,
        h3_unread_bytes: limits.h3_unread,
        idle: limits.idle,
        linger: limits.linger,
        connection_count: connections_possible(limits).0,
        connection_files: connection_files(),
        connection_count_per_client: limits.connections_per_client,
        body_bytes: limits.body,
        // A route decides whether it has something to speak through a tunnel.
        h2_connect_protocol: true,
    }
}
