//! Counters: one table that lists them all, and a block per thread of those that count events.

use crate::block::{Blocks, CounterBlock};

pub use crate::block::CounterCell;

/// How a number moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// One number with what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without prefix or unit suffix.
    pub name: &'static str,
    /// How it moves.
    pub kind: MetricKind,
    /// What it counts, one sentence.
    pub help: &'static str,
    /// The number.
    pub value: u64,
}

macro_rules! counters {
    (
        of events { $($event:ident: $event_help:literal;)+ }
        of requests { $($name:ident: $help:literal;)+ }
    ) => {
        /// The counters of one thread. Written by that thread, read by any.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct ThreadCounters { $(#[doc = $event_help] pub $event: CounterCell,)+ }

        /// The sum of all threads' counters at one moment, with what follows from the requests
        /// they counted ([`counts`](crate::counts)), and from the cache.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Snapshot {
            $(#[doc = $event_help] pub $event: u64,)+
            $(#[doc = $help] pub $name: u64,)+
        }

        impl CounterBlock for ThreadCounters {
            type Sum = Snapshot;

            fn add_to(&self, sum: &mut Snapshot) {
                $(sum.$event = sum.$event.wrapping_add(self.$event.value());)+
            }
        }

        impl Snapshot {
            /// What was counted since `before`.
            pub fn since(&self, before: &Snapshot) -> Snapshot {
                Snapshot {
                    $($event: self.$event.wrapping_sub(before.$event),)+
                    $($name: self.$name.wrapping_sub(before.$name),)+
                }
            }

            /// Every number of the table with its name and meaning, counters first, then gauges.
            pub fn metrics(&self) -> impl Iterator<Item = Metric> {
                [
                    $(Metric {
                        name: stringify!($event),
                        kind: MetricKind::Counter,
                        help: $event_help,
                        value: self.$event,
                    },)+
                    $(Metric {
                        name: stringify!($name),
                        kind: MetricKind::Counter,
                        help: $help,
                        value: self.$name,
                    },)+
                    Metric {
                        name: "connections_open",
                        kind: MetricKind::Gauge,
                        help: "Connections open now.",
                        value: self.connections_open(),
                    },
                    Metric {
                        name: "requests_running",
                        kind: MetricKind::Gauge,
                        help: "Requests under way now.",
                        value: self.running(),
                    },
                    Metric {
                        name: "concurrency_running",
                        kind: MetricKind::Gauge,
                        help: "Requests in service now that a `concurrency` counts.",
                        value: self.in_service().0,
                    },
                    Metric {
                        name: "overload_level",
                        kind: MetricKind::Gauge,
                        help: "Priorities that are refused now: 0 none, 1 low, 2 low and normal.",
                        value: self.overload_level(),
                    },
                    Metric {
                        name: "concurrency_waiting",
                        kind: MetricKind::Gauge,
                        help: "Requests that wait now in the queue of a `concurrency`.",
                        value: self.in_service().1,
                    },
                ]
                .into_iter()
            }
        }
    };
}

counters! { of events {
    requests_begun: "Requests whose head has begun to be answered or refused.";
    requests: "Requests answered, refused or left by their client.";
    responses_1xx: "Interim answers sent.";
    connections_accepted: "Connections accepted.";
    connections_closed: "Accepted connections that have been closed.";
    handed_over: "Connections accepted by one thread and given to another.";
    accept_errors: "Connections that could not be accepted.";
    names_asked: "Addresses of clients whose names were looked up.";
    names_found: "Of those, names that lead back to their address.";
    names_mismatched: "Of those, names that do not lead back to their address.";
    names_failed: "Of those, look-ups that no name server answered in time.";
    limit_names_queue: "Names not looked up: as many addresses waited as may.";
    log_dropped: "Access log lines dropped: a full ring, a full disk, a log or a collector that is gone.";
    log_write_errors: "Writes to an access log that failed.";
    limit_log_value: "Values cut that formats of access logs ask for: longer than 1 KiB, or more than 4 KiB of one request.";
    limit_syslog_message: "Messages of syslog that were cut: longer than 8 KiB.";
    disk_jobs: "Jobs given to the file pool because the disk had to be asked.";
    disk_refused: "Jobs the file pool had no room for.";
    disk_wait_us: "Microseconds requests waited for the file pool.";
    limit_target: "Requests refused: target longer than its limit (414).";
    limit_head: "Requests refused: head larger than its limit (431).";
    limit_headers: "Requests refused: more header fields than the limit (431).";
    limit_head_time: "Connections ended: a head did not arrive in time (408).";
    limit_body: "Requests refused: body larger than its limit (413).";
    limit_body_progress: "Connections ended: a body arrived too slowly (408).";
    limit_write_progress: "Connections ended: the client took the answer too slowly.";
    limit_idle: "Connections ended: no further request within the idle time.";
    limit_linger: "Connections ended: still sending after the time or bytes of a lingering close.";
    tls_handshakes: "TLS handshakes done.";
    tls_resumed: "TLS handshakes done with a ticket of an earlier one.";
    tls_handshakes_12: "TLS handshakes of TLS 1.2 done.";
    tls_resumed_12: "TLS handshakes of TLS 1.2 done with a ticket of an earlier one.";
    tls_handshakes_failed: "TLS handshakes that failed or were given up, for a reason below or a limit.";
    tls_failed_left: "TLS handshakes that failed: the client went away, or its connection broke.";
    tls_failed_refused: "TLS handshakes that failed: the client gave up; it may not trust the certificate or its name.";
    tls_failed_version: "TLS handshakes that failed: no version of TLS that both sides speak.";
    tls_failed_suite: "TLS handshakes that failed: no cipher suite, key exchange or signature that both sides know.";
    tls_failed_protocol: "TLS handshakes that failed: no application protocol that both sides speak.";
    tls_failed_certificate: "TLS handshakes that failed: the client's certificate was missing or not accepted.";
    tls_failed_foreign: "TLS handshakes that failed: what came was neither TLS nor HTTP.";
    tls_failed_broken: "TLS handshakes that failed: the client broke the rules of TLS.";
    tls_failed_server: "TLS handshakes that failed: the server stopped, or something was wrong on its side.";
    tls_clear_text: "Connections in clear text to a listener that speaks TLS (400).";
    tls_broken: "Connections ended: a TLS record was changed, too long or out of place.";
    limit_handshake_time: "Connections ended: a TLS handshake took too long.";
    limit_handshake_bytes: "Connections ended: too many bytes before a TLS handshake was done.";
    limit_handshakes: "Connections refused: as many TLS handshakes under way as the server allows.";
    limit_proxy_protocol_time: "Connections ended: a header of the PROXY protocol did not come in time.";
    limit_proxy_protocol_bytes: "Connections ended: a header of the PROXY protocol was longer than may be.";
    proxy_protocol_wrong: "Connections ended: they did not begin with a header of the PROXY protocol that can be understood.";
    limit_rate: "Requests refused: more than the `rate` of their route allows (429).";
    limit_rate_keys: "Requests counted together with others: more clients than the `keys` of a `rate`.";
    rate_dry_run: "Requests above a `rate` with `dry_run`, which were answered.";
    overload_refused: "Requests refused because others, of a higher priority, come first (503).";
    overload_rises: "Times that one more priority was refused (`overload`).";
    overload_falls: "Times that one less was.";
    concurrency_begun: "Requests let into service by a `concurrency`.";
    concurrency_ended: "Of those, requests whose service is over.";
    concurrency_queued: "Requests that had to wait: as many of their key were in service as their `concurrency` allows.";
    concurrency_unqueued: "Of those, requests that wait no more: let in, refused, or left by their client.";
    limit_concurrency: "Requests refused: as many of their key waited as the `queue` of a `concurrency` allows (429, 503).";
    limit_concurrency_wait: "Requests refused: they had waited for the whole `wait` of a `concurrency` (429, 503).";
    limit_concurrency_keys: "Requests counted together with others: more keys in service than the `keys` of a `concurrency`.";
    concurrency_dry_run: "Requests above a `concurrency` with `dry_run`, which were answered at once.";
    bandwidth_held: "Pieces of answers that waited because of a `bandwidth`.";
    bandwidth_held_us: "Microseconds such pieces waited.";
    limit_bandwidth_keys: "Answers counted together with others: more clients than the `keys` of a `bandwidth`.";
    access_refused: "Requests that `access` of a route did not let in (403, 405).";
    bans_made: "Clients banned by a rule (`[[ban]]`).";
    ban_refused: "Requests of banned clients refused (403).";
    ban_closed: "Connections of banned clients closed as they came.";
    ban_dry_run: "Clients that a rule with `dry_run` would have banned.";
    limit_bans: "Bans ended early: as many clients were banned as may be.";
    limit_ban_keys: "Clients whose refusals were forgotten: more came than the `keys` of a `[[ban]]`.";
    maintenance: "Requests to sites that are down for maintenance (503).";
    sign_in_refused: "Requests of accounts, or by signed links, that `require` of a route does not let in (403).";
    sign_ins_failed: "Names or passwords that were wrong (401).";
    sign_ins_delayed: "Passwords that waited before they were checked: wrong ones had come before.";
    passwords_checked: "Passwords that were checked, by their hash or by PAM, and not remembered.";
    tokens_checked: "Tokens whose signature was checked and right, and not remembered.";
    tokens_refused: "Tokens that were not good: malformed, over, or not signed for here (400, 401).";
    token_keys_kept: "Times that keys of tokens had changed and could not be used, or could not be fetched: those before stay.";
    limit_token: "Tokens refused: longer than 8 KiB (401).";
    limit_sign_ins: "Requests refused: as many passwords were waited for as may be, of one network or of all (429).";
    limit_pam: "Requests refused: as many asked PAM as may (`processes` of `pam`), for too long (503).";
    offer_refused: "Requests of other machines' hobs for programs that are not offered to them (403), or that could not be understood (400).";
    proxy_protocol_untrusted: "Connections ended: who came to a listener with `proxy_protocol` is not in its `trusted`.";
    limit_connections: "Connections refused: as many open as the server allows (503).";
    limit_connections_per_client: "Connections refused: as many open as one address may have.";
    h2_connections: "Connections that spoke HTTP/2.";
    h2_errors: "HTTP/2 connections ended: the client broke the protocol.";
    h2_tiny_data_held: "DATA frames of HTTP/2 answers that waited a moment for more, because many had little in them.";
    limit_h2_streams: "HTTP/2 requests reset: as many streams were open as a connection may have.";
    limit_h2_resets: "HTTP/2 connections ended: too many requests taken back, or reset for a fault.";
    limit_connection_heads: "HTTP/2 and HTTP/3 requests reset, or their bodies refused: heads or trailers of their connection's requests held too many bytes.";
    limit_h2_continuation: "HTTP/2 connections ended: a field block in too many pieces, or with too much in it.";
    limit_h2_settings: "HTTP/2 connections ended: too many SETTINGS frames.";
    limit_h2_ping: "HTTP/2 connections ended: too many PING frames.";
    limit_h2_tiny_data: "HTTP/2 connections ended: too many DATA frames with little in them.";
    limit_h2_empty: "HTTP/2 connections ended: too many frames that do nothing.";
    limit_h2_window: "HTTP/2 connections ended: too many WINDOW_UPDATE frames.";
    h3_connections: "Connections that spoke HTTP/3.";
    h3_errors: "HTTP/3 connections ended: the client broke the protocol.";
    h3_retries: "QUIC connections asked to prove their address, because many handshakes were under way.";
    h3_forwarded: "Datagrams that came to another thread or server than their connection's, and were passed on.";
    h3_stateless_resets: "QUIC clients told that their connection is not here any more: its server has died, or it had ended.";
    limit_h3_stateless_resets: "QUIC clients not told so: too many had been within the last second.";
    limit_h3_resets: "HTTP/3 connections ended: too many requests taken back, or reset for a fault.";
    limit_h3_unread: "HTTP/3 requests refused: too many bytes of bodies waited that nobody read (503).";
    limit_h3_tiny_data: "HTTP/3 connections ended: too many DATA frames with little in them.";
    limit_h3_empty: "HTTP/3 connections ended: too many frames that do nothing.";
    programs_ended: "Programs that ran and ended.";
    programs_not_started: "Programs that could not be started.";
    account_refused: "Of these, programs that may not run as the account whose folder they are in (403).";
    programs_lost: "Programs that ended because the spawner did.";
    limit_roots: "Roots, folders of programs and files of accounts closed for others: as many of their path with captures were open as `limits.roots`.";
    limit_starts: "Starts refused: too many wait for the spawner, or one did too long (503).";
    limit_disk_queue: "Requests refused: the file pool's queue was full (503).";
    limit_redirects: "Requests ended: more internal redirects than the limit (500).";
    limit_buffer: "Answers larger than what is collected for a program that asks for it.";
    limit_program_concurrent: "Requests that waited: as many processes ran, or connections were open, as their route allows.";
    limit_program_queue: "Requests refused: the queue of their program was full (503).";
    limit_program_queue_time: "Requests refused: no process, or no connection, became free in time (503).";
    limit_program_first_byte: "Programs ended: no head of an answer in time (504).";
    limit_program_total: "Programs ended: they ran for too long.";
    limit_program_events: "Streams of events broken off: their program was silent for too long.";
    limit_program_head: "Answers refused: the head a program printed was too long (502).";
    limit_program_linger: "Answers ended without knowing whether more would come: the program had ended, or fallen silent.";
    limit_program_grace: "Programs killed: they did not end when they were asked to.";
    program_stderr_dropped: "Lines of programs' standard error left out of the log.";
    warm_starts: "Starts of interpreters that scripts are forked from.";
    warm_failures: "Starts of such interpreters after which they were never ready.";
    warm_crashes: "Such interpreters that died after they had been ready.";
    warm_forks: "Scripts given to such an interpreter.";
    warm_ends: "Scripts whose end such an interpreter has told.";
    worker_starts: "Workers of resident programs that were started.";
    worker_crashes: "Workers of resident programs that ended without being told to.";
    worker_reuses: "Requests answered by a worker that had answered one before.";
    worker_takebacks: "Requests handed to a worker ahead and taken back, because it took long.";
    worker_handbacks: "Requests that a worker had not started when it ended, given to another.";
    worker_liars: "Workers ended because they broke the protocol.";
    tunnels: "Tunnels that programs have opened.";
    worker_wakes: "Sleeping workers that were woken, in shared memory.";
    worker_bells: "Wakes of a server thread by a worker, in shared memory.";
    ways_given: "Times a thread let others have the processor before it slept, having handed work over.";
    ways_given_in_vain: "Of those, times nothing had come.";
    worker_full: "Messages that a worker's shared memory had no room for at once.";
    worker_copies: "Chunks of a worker's shared memory copied, because clients held many.";
    worker_waits: "Requests that waited for a worker.";
    worker_terms: "Workers ended with SIGTERM.";
    worker_kills: "Workers ended with SIGKILL.";
    limit_resident_start: "Workers ended: they were not ready in time.";
    limit_resident_queue: "Requests refused: the queue of their resident program was full (503).";
    limit_resident_files: "Requests failed: as many files of one worker as may were on their way (503).";
    limit_resident_wait: "Requests refused: no worker became free in time (503).";
    limit_resident_first_byte: "Requests ended: no head from a worker in time (504).";
    limit_resident_total: "Requests ended: a worker took too long (504).";
    limit_resident_progress: "Requests ended: a worker fell silent (504).";
    limit_resident_events: "Streams of events broken off: their worker was silent for too long.";
    limit_resident_tunnel: "Tunnels ended: nothing came through them either way.";
    limit_resident_variables: "Requests refused: their variables were too long for a worker (431).";
    limit_resident_interims: "Interim answers of a worker left out: more than one request may have.";
    limit_resident_unread: "Workers ended: they asked more than they read the replies of.";
    session_starts: "Visits begun (`session`, also of a `page`).";
    session_ends: "Visits that ended with an answer that asked for no other request.";
    session_deaths: "Visits whose program ended unasked.";
    session_stale: "Requests refused: the visit of their handle was over, or there never was one (410).";
    session_duplicates: "Requests refused: their visitor had sent the same, which was under way (409).";
    session_repeats: "Requests that waited for the answer of the same one, which was under way.";
    session_handles_refused: "Visits ended: their program gave a handle that cannot be taken (502).";
    limit_session_max: "Visits ended for new ones: there were as many as may be.";
    limit_session_full: "Requests refused: as many visits as may be, all of them busy (503).";
    limit_session_client: "Requests refused: their client had as many visits as one may have (429).";
    limit_session_rate: "Requests refused: more new visits in a moment than may be (503).";
    limit_session_queue: "Requests refused: as many of their visitor waited as may (429).";
    limit_session_repeat: "Requests that waited for the answer of the same one, which was too long to be held.";
    limit_session_wait: "Visits ended: their visitor did not come back in time.";
    limit_session_life: "Visits ended: they were as old as one may be.";
    limit_resident_grace: "Workers ended: they did not finish what nobody waited for any more.";
    limit_resident_idle: "Workers ended: they had no request for their idle time.";
    limit_resident_requests: "Workers replaced: they had answered as many requests as they may.";
    upstream_connects: "Connections made to programs and servers elsewhere (`fastcgi`, `scgi`, `uwsgi`, `proxy`, `remote`).";
    upstream_reuses: "Requests to such ones over a connection that had rested.";
    upstream_tls_handshakes: "Handshakes of TLS with servers elsewhere.";
    upstream_tls_resumed: "Those of them that went on with an earlier session.";
    upstream_tls_failed: "Connections to servers elsewhere given up: no TLS, a certificate that is no good, or the other side gave up.";
    upstream_retries: "Such requests made again, where that does no harm: no connection, one that had rested and was closed meanwhile, or a member that gave no answer.";
    upstream_out: "Members of upstreams left out for a while: they had failed too often.";
    upstream_lookups_failed: "Look-ups of services (`srv:`) of upstreams that failed: those known so far went on to be asked.";
    limit_upstream_service: "Look-ups of services that named more servers than may be members.";
    limit_upstream_keep_requests: "Connections to such ones closed: they had served as many requests as they may.";
    limit_upstream_keep_time: "Connections to such ones closed: they were as old as they may be.";
    limit_upstream_keep_idle: "Connections to such ones closed: they had rested for too long.";
    spliced_answers: "Long answers of servers elsewhere that were passed on inside the kernel, in the clear on both sides.";
    spliced_requests: "Long bodies of requests passed on to servers elsewhere in the same way.";
    spliced_tunnels: "Tunnels to servers elsewhere through which so much came at once that some of it was passed on in the same way.";
    limit_splice_pipes: "Such bodies and tunnels of which something was copied all the same: their thread had as many pipes in use as it may, or the system gave none.";
    limit_upstream_buffer: "Answers of such ones that were read no further ahead: their client was too slow for `buffer.response`.";
    limit_upstream_connect: "Connections to programs and servers elsewhere that were not there in time (504).";
    limit_upstream_first_byte: "Requests ended: no head of an answer from such a one in time (504).";
    limit_upstream_total: "Requests ended: an answer of such a one took too long (504).";
    limit_upstream_progress: "Requests ended: such a one fell silent (504).";
    limit_upstream_member: "Requests refused: each member of an upstream had as many as it may, for too long (503).";
    limit_upstream_variables: "Requests refused: their variables were too long for the protocol of such a one (431).";
    limit_upstream_tunnel: "Tunnels through other servers broken off: nothing went either way.";
    limit_upstream_events: "Streams of events broken off: such a one fell silent.";
    page_inline: "Pages (`page`) that were run on a serving thread, as they wait for nothing.";
    page_waiting: "Pages that were run on a thread that may wait.";
    page_statements: "Statements that pages gave to databases.";
    page_rows: "Rows that pages took from them.";
    page_files: "Uses of flat files and registries by pages.";
    page_programs: "Programs that pages called.";
    page_driver_deaths: "Processes with a driver of ODBC that ended in a run of a page (502).";
    page_refused_values: "Values that pages left out, as nothing makes them safe where they stood.";
    limit_page_queue: "Requests refused: as many waited for a run of a page as may (503).";
    limit_page_time: "Pages ended, or not begun: they took longer than they may (504, 503).";
    limit_page_form: "Requests for pages refused: their form was longer than 1 MiB (413).";
    limit_page_files: "Uses of flat files and registries refused: more bytes, rows, entries or uses than a page may have.";
    limit_page_program_output: "Programs ended: they printed more than the page takes that called them.";
    limit_page_program_values: "Calls of programs by pages refused: their values were more than 1 MiB, or 10,000 (1007).";
    limit_page_use: "Pages ended: they used more than one may.";
    limit_resident_age: "Workers replaced: they were as old as they may be.";
    limit_resident_memory: "Workers replaced: they were larger than they may be.";
    limit_workers: "Requests refused: every worker of the server was in use (503).";
    bad_request: "Requests refused: not well-formed (400).";
    unsupported: "Requests refused: no length, or a coding, expectation or version that is not spoken here (411, 417, 501, 505).";
    client_left: "Requests whose client left before the answer was complete.";
    otlp_spans: "Spans that a collector has taken.";
    otlp_dropped: "Requests whose spans were not sent: a full queue, or a collector that did not take them.";
    otlp_failures: "Batches of spans that a collector did not take when they were first sent.";
    reloads: "Reloads that put a new config in force.";
} of requests {
    responses_2xx: "Answers with a status of 200 to 299.";
    responses_3xx: "Answers with a status of 300 to 399.";
    responses_4xx: "Answers with a status of 400 to 499.";
    responses_5xx: "Answers with a status of 500 to 599.";
    bytes_in: "Bytes of requests, heads and bodies.";
    bytes_out: "Bytes of answers, heads and bodies.";
    cache_hits: "Answers from the cache.";
    cache_misses: "Requests the cache could not answer.";
    cache_revalidations: "Cached files looked at again and found unchanged.";
    cache_evictions: "Cached files thrown out to make room.";
} }

impl Snapshot {
    /// Requests under way now, as far as blocks read one after another tell.
    pub fn running(&self) -> u64 {
        self.requests_begun.saturating_sub(self.requests)
    }

    /// Requests that a `concurrency` counts: how many are in service, and how many wait.
    pub fn in_service(&self) -> (u64, u64) {
        let running = self
            .concurrency_begun
            .saturating_sub(self.concurrency_ended);
        let waiting = self
            .concurrency_queued
            .saturating_sub(self.concurrency_unqueued);
        (running, waiting)
    }

    /// Priorities that are refused now because of others.
    pub fn overload_level(&self) -> u64 {
        self.overload_rises.saturating_sub(self.overload_falls)
    }

    /// Connections open now. Blocks are read one after another, so it may be off by those opened or
    /// closed meanwhile; never below zero.
    pub fn connections_open(&self) -> u64 {
        self.connections_accepted
            .saturating_sub(self.connections_closed)
    }
}

/// The counters of all threads.
pub type Counters = Blocks<ThreadCounters>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn what_was_counted_since_is_the_difference() {
        let counters = Counters::new();
        let block = counters.new_thread();
        block.requests.add(2);
        let before = counters.merged();
        block.requests.add(3);
        block.disk_wait_us.add(1000);
        let since = counters.merged().since(&before);
        assert_eq!((since.requests, since.disk_wait_us), (3, 1000));
    }

    #[test]
    fn open_connections_are_those_not_closed() {
        let counters = Counters::new();
        let (accepting, serving) = (counters.new_thread(), counters.new_thread());
        accepting.connections_accepted.add(3);
        serving.connections_closed.add(1);
        let open = counters
            .merged()
            .metrics()
            .find(|m| m.name == "connections_open");
        assert_eq!(
            open.map(|m| (m.kind, m.value)),
            Some((MetricKind::Gauge, 2))
        );
    }

    #[test]
    fn every_metric_has_its_own_name_and_a_sentence() {
        let mut names = HashSet::new();
        for metric in Snapshot::default().metrics() {
            assert!(names.insert(metric.name), "{} stands twice", metric.name);
            assert!(
                metric.help.ends_with('.'),
                "{}: {}",
                metric.name,
                metric.help
            );
        }
    }
}
