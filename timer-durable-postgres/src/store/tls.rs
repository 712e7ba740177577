//! Encrypted connections, and the checks of the server's certificate.

use super::connect_error::ConnectError;
use super::verification::Verification;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Returns a connector that trusts the certificates in `roots`, or those of the system.
pub(super) fn connector(verification: Verification, roots: Option<&Path>) -> Result<MakeRustlsConnect, ConnectError> {
    let roots = Arc::new(match roots {
        Some(path) => read(path)?,
        None => system()?,
    });
    let provider = Arc::new(ring::default_provider());
    let failed = |error: Error| ConnectError::Url { why: error.to_string() };
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(failed)?;
    let config = match verification {
        Verification::Full => builder.with_root_certificates(roots).with_no_client_auth(),
        Verification::Authority => {
            let inner = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            let inner = inner.map_err(|error| ConnectError::Url { why: error.to_string() })?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(inner))).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn read(path: &Path) -> Result<RootCertStore, ConnectError> {
    let refused = |why: String| ConnectError::Setting {
        name: "sslrootcert",
        given: format!("{} ({why})", path.display()),
        allowed: "a PEM file with at least one certificate",
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| refused(error.to_string()))? {
        let certificate = certificate.map_err(|error| refused(error.to_string()))?;
        roots.add(certificate).map_err(|error| refused(error.to_string()))?;
    }
    if roots.is_empty() { Err(refused("no certificate".to_owned())) } else { Ok(roots) }
}

fn system() -> Result<RootCertStore, ConnectError> {
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::warn!(%error, "a certificate of the system cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let why = "the system has no certificates to trust; name some by sslrootcert".to_owned();
        return Err(ConnectError::Url { why });
    }
    Ok(roots)
}

/// Accepts a certificate for another name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is compared after everything else.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
