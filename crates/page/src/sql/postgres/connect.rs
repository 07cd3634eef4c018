//! The way to a server: a socket, TLS where it is asked for, and who we are.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::fault::FunctionFault;

use super::fault::{GONE, NOT_LET_IN, ServerFault, coded};
use super::url::{PostgresOptions, PostgresPlace, PostgresTls};
use super::wire::{Stream, TICK, Wire};

/// What a server wants to see before it cancels.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelKey {
    process: i32,
    secret: i32,
}

/// A connection that is ready for statements, and the key to cancel them.
pub(super) fn connect(options: &PostgresOptions) -> Result<(Wire, CancelKey), FunctionFault> {
    let stream = stream(options)?;
    let mut wire = Wire::new(stream, options.message_bytes_max);
    let timeout = options.statement_timeout.as_millis().to_string();
    let read_only = if options.is_read_only { "on" } else { "off" };
    let settings = [
        ("user", &*options.user),
        ("database", &options.database),
        ("application_name", "hob"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("standard_conforming_strings", "on"),
        ("statement_timeout", &timeout),
        ("default_transaction_read_only", read_only),
    ];
    frontend::startup_message(settings, &mut wire.output)
        .map_err(|error| failed(options, &error.to_string()))?;
    let key = PostgresGreeting {
        options,
        scram: None,
        has_proof: false,
        ticks_left: ticks(options.connect_timeout),
    }
    .exchange(&mut wire)?;
    Ok((wire, key))
}

/// Asks the server to end what a connection does; whether it does is seen there.
pub(super) fn cancel(options: &PostgresOptions, key: CancelKey) {
    if let Ok(mut stream) = stream(options) {
        let mut message = BytesMut::new();
        frontend::cancel_request(key.process, key.secret, &mut message);
        // The server says nothing, and what cannot be sent changes nothing.
        let _ = stream.write_all(&message).and_then(|()| stream.flush());
    }
}

/// So many ticks of a wait.
pub(super) fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX)
}

fn failed(options: &PostgresOptions, why: &str) -> FunctionFault {
    let place = match &options.place {
        PostgresPlace::Folder(folder, port) => format!("{}/.s.PGSQL.{port}", folder.display()),
        PostgresPlace::Host(host, port) => format!("{host}:{port}"),
    };
    let message = format!("cannot reach the database server at {place}: {why}");
    coded((GONE.0, "08001"), message)
}

fn stream(options: &PostgresOptions) -> Result<Stream, FunctionFault> {
    let wrong = |error: io::Error| failed(options, &error.to_string());
    match &options.place {
        PostgresPlace::Folder(folder, port) => {
            let path = folder.join(format!(".s.PGSQL.{port}"));
            let stream = UnixStream::connect(path).map_err(wrong)?;
            stream.set_read_timeout(Some(TICK)).map_err(wrong)?;
            let patience = Some(options.connect_timeout);
            stream.set_write_timeout(patience).map_err(wrong)?;
            Ok(Stream::Near(stream))
        }
        PostgresPlace::Host(host, port) => {
            let stream = reached(host, *port, options.connect_timeout).map_err(wrong)?;
            stream.set_nodelay(true).map_err(wrong)?;
            let patience = Some(options.connect_timeout);
            stream.set_write_timeout(patience).map_err(wrong)?;
            match &options.tls {
                PostgresTls::Off => {
                    stream.set_read_timeout(Some(TICK)).map_err(wrong)?;
                    Ok(Stream::Plain(stream))
                }
                PostgresTls::Verified(authorities) => {
                    stream.set_read_timeout(patience).map_err(wrong)?;
                    secured(stream, host, authorities.as_deref())
                        .map_err(|text| failed(options, &text))
                }
            }
        }
    }
}

/// A connection to the first address that answers.
fn reached(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Goes over to TLS, with a server that is who it should be.
fn secured(
    mut stream: TcpStream,
    host: &str,
    authorities: Option<&Path>,
) -> Result<Stream, String> {
    let text = |error: io::Error| error.to_string();
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).map_err(text)?;
    let mut answer = [0];
    stream.read_exact(&mut answer).map_err(text)?;
    if answer != *b"S" {
        return Err("it has no TLS; sslmode=disable does without".to_owned());
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots(authorities)?)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("{host} is no name that a certificate may have"))?;
    let mut connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(text)?;
    }
    stream.set_read_timeout(Some(TICK)).map_err(text)?;
    Ok(Stream::Tls(Box::new(StreamOwned::new(connection, stream))))
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authorities else {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        return match roots.is_empty() {
            true => Err("there are no authorities on this system; sslrootcert names a file".into()),
            false => Ok(roots),
        };
    };
    let wrong = |why: String| format!("sslrootcert {}: {why}", path.display());
    let certificates = CertificateDer::pem_file_iter(path);
    for one in certificates.map_err(|error| wrong(error.to_string()))? {
        let one = one.map_err(|error| wrong(error.to_string()))?;
        roots.add(one).map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("it holds no certificate".to_owned())),
        false => Ok(roots),
    }
}

/// What is said before the first statement.
struct PostgresGreeting<'o> {
    options: &'o PostgresOptions,
    scram: Option<ScramSha256>,
    /// The server has proved that it knows the password too.
    has_proof: bool,
    ticks_left: u64,
}

impl PostgresGreeting<'_> {
    fn exchange(mut self, wire: &mut Wire) -> Result<CancelKey, FunctionFault> {
        let options = self.options;
        let mut key = None;
        loop {
            let message = self.next(wire);
            let message = message.map_err(|error| failed(options, &error.to_string()))?;
            match message {
                Message::ErrorResponse(body) => {
                    return Err(ServerFault::of(body.fields()).fault());
                }
                Message::BackendKeyData(body) => {
                    key = Some(CancelKey {
                        process: body.process_id(),
                        secret: body.secret_key(),
                    });
                }
                Message::ReadyForQuery(_) => {
                    let missing = "it gave no key to cancel statements with";
                    return key.ok_or_else(|| failed(options, missing));
                }
                message => self
                    .prove(message, &mut wire.output)
                    .map_err(|error| coded((NOT_LET_IN, "28000"), error.to_string()))?,
            }
        }
    }

    /// Sends what there is to say, and takes the next message.
    fn next(&mut self, wire: &mut Wire) -> io::Result<Message> {
        if !wire.output.is_empty() {
            wire.send()?;
        }
        let ticks_left = &mut self.ticks_left;
        wire.next(&mut || {
            *ticks_left = ticks_left.saturating_sub(1);
            match ticks_left {
                0 => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "it does not answer",
                )),
                _ => Ok(()),
            }
        })
    }

    /// Answers what the server asks of who we are.
    fn prove(&mut self, message: Message, out: &mut BytesMut) -> io::Result<()> {
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        match message {
            Message::AuthenticationCleartextPassword => {
                let is_plain = self.options.tls == PostgresTls::Off
                    && matches!(self.options.place, PostgresPlace::Host(..));
                match is_plain {
                    true => refused("the server wants the password in the clear, without TLS"),
                    false => frontend::password_message(self.password()?, out),
                }
            }
            Message::AuthenticationMd5Password(body) => {
                let user = self.options.user.as_bytes();
                let hash = md5_hash(user, self.password()?, body.salt());
                frontend::password_message(hash.as_bytes(), out)
            }
            Message::AuthenticationSasl(body) => self.begin_scram(&body, out),
            Message::AuthenticationSaslContinue(body) => {
                let Some(scram) = &mut self.scram else {
                    return refused("the server goes on with a proof that never began");
                };
                scram.update(body.data())?;
                frontend::sasl_response(scram.message(), out)
            }
            Message::AuthenticationSaslFinal(body) => match &mut self.scram {
                Some(scram) => {
                    scram.finish(body.data())?;
                    self.has_proof = true;
                    Ok(())
                }
                None => refused("the server ends a proof that never began"),
            },
            Message::AuthenticationOk if self.scram.is_some() && !self.has_proof => {
                refused("the server does not prove that it knows the password")
            }
            Message::AuthenticationOk
            | Message::ParameterStatus(_)
            | Message::NoticeResponse(_) => Ok(()),
            _ => refused("the server wants a proof that is not known here"),
        }
    }

    fn begin_scram(&mut self, body: &AuthenticationSaslBody, out: &mut BytesMut) -> io::Result<()> {
        let mut mechanisms = body.mechanisms();
        let mut is_known = false;
        while let Some(mechanism) = mechanisms.next()? {
            is_known |= mechanism == SCRAM_SHA_256;
        }
        if !is_known {
            let why = "the server knows no SCRAM-SHA-256";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out)?;
        self.scram = Some(scram);
        Ok(())
    }

    fn password(&self) -> io::Result<&[u8]> {
        let password = self.options.password.as_deref().map(str::as_bytes);
        password.ok_or_else(|| {
            let why = "the server asks for a password, and none is known";
            io::Error::new(io::ErrorKind::PermissionDenied, why)
        })
    }
}
