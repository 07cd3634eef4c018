//! HTTPS to an authority: its certificate is checked against the system's roots and the config's,
//! each request has a time limit, and each answer a size limit.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::ClientConfig;

use crate::acme::{ANSWER_BYTES_MAX, REQUEST_TIME_MAX};
use crate::tls::roots;
use crate::tls::terms::provider;

type Inner = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>;

/// A client for one authority.
#[derive(Clone)]
pub(crate) struct AcmeClient(Inner);

impl AcmeClient {
    /// A client that believes the system's roots and these, as PEM.
    pub(crate) fn new(more_roots: &[u8]) -> Result<AcmeClient, String> {
        let roots = roots::believed(more_roots, "acme.ca")?;
        let config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .build();
        let inner = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
        Ok(AcmeClient(inner.build(connector)))
    }
}

impl HttpClient for AcmeClient {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let sent = self.0.request(request);
        Box::pin(async move {
            let answer = async {
                let (parts, body) = sent.await.map_err(other)?.into_parts();
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
                let body = body.map_err(Error::Other)?.to_bytes();
                Ok(BytesResponse {
                    parts,
                    body: Box::new(body),
                })
            };
            match tokio::time::timeout(REQUEST_TIME_MAX, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(Error::Other("no answer in time".into())),
            }
        })
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Other(Box::new(error))
}
