//! TLS for `https` servers: rustls, always verifying.
//!
//! There is no switch that turns verification off. A private authority is added to the public ones as a root; a test server
//! gets a certificate of such an authority.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
#[cfg(feature = "platform-verifier")]
use rustls_platform_verifier::Verifier;

use crate::{Error, ErrorKind};

/// Whom else than the added roots to trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Base {
    AddedRootsOnly,
    #[cfg(feature = "platform-verifier")]
    Platform,
    #[default]
    PublicRoots,
}

/// TLS options for `https` servers: TLS 1.2 and 1.3 and the public root certificates, plus what is added here.
///
/// `Debug` shows counts only.
#[derive(Default)]
pub struct TlsOptions {
    roots: Vec<CertificateDer<'static>>,
    base: Base,
    provider: Option<Arc<CryptoProvider>>,
    client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

impl TlsOptions {
    /// The public roots, no client certificate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds root certificates to the public ones, as PEM text: certificates of authorities, or the self-signed certificate of
    /// a server. The latter must not be a CA certificate: create it with `openssl req -x509 -addext
    /// basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:...`. A certificate that was signed by somebody else is
    /// not accepted as a root; add the certificate of its authority.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if the text is not PEM or holds no certificate.
    pub fn add_roots(mut self, pem: &[u8]) -> Result<Self, Error> {
        self.roots.extend(certificates(pem)?);
        Ok(self)
    }

    /// Trusts only the roots that were added, not the public ones.
    #[must_use]
    pub fn only_added_roots(mut self) -> Self {
        self.base = Base::AddedRootsOnly;
        self
    }

    /// Uses the verifier of the operating system in place of the public roots: its certificate store, and on some systems its
    /// policies. Added roots count as well.
    #[cfg(feature = "platform-verifier")]
    #[must_use]
    pub fn platform_verifier(mut self) -> Self {
        self.base = Base::Platform;
        self
    }

    /// Replaces the implementation of cryptography, which is ring by default, with its cipher suites and key exchanges: another
    /// one of rustls, say a validated one. It must support TLS 1.2 or 1.3.
    ///
    /// The type belongs to rustls 0.23, so a new major version of rustls is one of this crate.
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Presents a certificate to servers that ask for one: its chain and its private key, as PEM text.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if either text is no PEM or lacks what it should hold.
    pub fn client_certificate(mut self, chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, Error> {
        let chain = certificates(chain_pem)?;
        let key =
            PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| misuse("no private key in the PEM text"))?;
        self.client = Some((chain, key));
        Ok(self)
    }

    pub(crate) fn build(self) -> Result<Tls, Error> {
        let provider = self.provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| misuse("no TLS version is usable").with_source(error))?;
        let builder = match self.base {
            #[cfg(feature = "platform-verifier")]
            Base::Platform => {
                let verifier = Verifier::new_with_extra_roots(self.roots, provider).map_err(|error| {
                    misuse("the verifier of the platform cannot be used").with_source(error)
                })?;
                // Named so by rustls because a verifier can be anything; this one is the platform's.
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            base => {
                let mut roots = RootCertStore::empty();
                if base == Base::PublicRoots {
                    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
                }
                for root in self.roots {
                    roots.add(root).map_err(|error| {
                        misuse("an added root is no certificate authority").with_source(error)
                    })?;
                }
                builder.with_root_certificates(roots)
            }
        };
        let mut config = match self.client {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| {
                misuse("the client certificate and its key do not fit").with_source(error)
            })?,
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let with_http2 = Arc::new(config.clone());
        config.alpn_protocols.remove(0);
        Ok(Tls { with_http1: Arc::new(config), with_http2 })
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("added_roots", &self.roots.len())
            .field("base", &self.base)
            .field("client_certificate", &self.client.is_some())
            .finish()
    }
}

/// A finished configuration. Sessions are resumed by whoever shares it.
#[derive(Clone)]
pub(crate) struct Tls {
    with_http1: Arc<ClientConfig>,
    with_http2: Arc<ClientConfig>,
}

impl Tls {
    /// What is offered in the handshake: HTTP/1.1, and HTTP/2 before it if that may be spoken.
    pub(crate) fn config(&self, offers_http2: bool) -> Arc<ClientConfig> {
        Arc::clone(if offers_http2 { &self.with_http2 } else { &self.with_http1 })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(misuse("no certificate in the PEM text")),
    }
}

fn misuse(message: &'static str) -> Error {
    Error::new(ErrorKind::Misuse, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_trust_the_public_roots() {
        assert!(TlsOptions::new().build().is_ok());
        assert_eq!(
            format!("{:?}", TlsOptions::new()),
            "TlsOptions { added_roots: 0, base: PublicRoots, client_certificate: false }"
        );
    }

    #[test]
    fn texts_without_certificates_are_refused() {
        for pem in [&b""[..], b"hello", b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            assert_eq!(TlsOptions::new().add_roots(pem).unwrap_err().kind(), ErrorKind::Misuse);
            assert_eq!(TlsOptions::new().client_certificate(pem, pem).unwrap_err().kind(), ErrorKind::Misuse);
        }
    }
}
