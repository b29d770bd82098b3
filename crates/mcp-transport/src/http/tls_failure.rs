//! Why TLS did not come about, read off what rustls says, in words that tell what to mend.

use std::error;
use std::io;

use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error as Rustls, InvalidMessage};

use crate::{Error, ErrorKind, TlsFailure};

/// The error of a handshake with `place`. Where the connection broke under it, or the server is in trouble of its own, another
/// attempt may do better, and it is none of TLS.
pub(crate) fn of_handshake(place: &str, error: io::Error) -> Error {
    let text = format!("the TLS handshake with {place} failed");
    match rustls_error(&error).and_then(lasting) {
        Some(failure) => {
            Error::new(ErrorKind::Tls(failure), format!("{text}: {}", advice(failure))).with_source(error)
        }
        None => Error::new(ErrorKind::Connect, text).with_source(error),
    }
}

/// A server of TLS 1.3 refuses what the client presented only after the client thinks that the handshake is done: it shows as a
/// connection that breaks under the first request. `None`: that is not how this one broke.
pub(crate) fn of_refused_client(error: &(dyn error::Error + 'static)) -> Option<Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let found = error.downcast_ref::<io::Error>().and_then(rustls_error).and_then(lasting);
        if found == Some(TlsFailure::ClientCertificate) {
            let text = format!("the server ended the TLS session: {}", advice(TlsFailure::ClientCertificate));
            return Some(Error::new(ErrorKind::Tls(TlsFailure::ClientCertificate), text));
        }
        cause = error.source();
    }
    None
}

fn rustls_error(error: &io::Error) -> Option<&Rustls> {
    error.get_ref()?.downcast_ref()
}

/// `None`: it may pass.
fn lasting(error: &Rustls) -> Option<TlsFailure> {
    let failure = match error {
        Rustls::InvalidCertificate(fault) => match fault {
            Certificate::Expired | Certificate::ExpiredContext { .. } => TlsFailure::CertificateExpired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                TlsFailure::CertificateNotYetValid
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                TlsFailure::NameMismatch
            }
            Certificate::Revoked => TlsFailure::CertificateRevoked,
            Certificate::UnknownIssuer => TlsFailure::UnknownIssuer,
            // It has no name of its own there. A test holds the text.
            Certificate::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
                TlsFailure::AuthorityAsServer
            }
            _ => TlsFailure::CertificateInvalid,
        },
        Rustls::AlertReceived(alert) => match alert {
            Alert::CloseNotify | Alert::InternalError | Alert::UserCanceled => return None,
            Alert::AccessDenied
            | Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRequired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::NoCertificate
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate => TlsFailure::ClientCertificate,
            Alert::UnrecognisedName => TlsFailure::NameMismatch,
            Alert::HandshakeFailure | Alert::InsufficientSecurity | Alert::ProtocolVersion => {
                TlsFailure::NothingInCommon
            }
            _ => TlsFailure::Protocol,
        },
        Rustls::PeerIncompatible(_) => TlsFailure::NothingInCommon,
        Rustls::InvalidMessage(InvalidMessage::InvalidContentType) => TlsFailure::NotTls,
        // Of this machine, and for now.
        Rustls::FailedToGetCurrentTime | Rustls::FailedToGetRandomBytes => return None,
        _ => TlsFailure::Protocol,
    };
    Some(failure)
}

const fn advice(failure: TlsFailure) -> &'static str {
    match failure {
        TlsFailure::AuthorityAsServer => {
            "the certificate is a CA certificate (openssl's default), which no server may present; create it with basicConstraints CA:FALSE, or have the authority sign one for the server"
        }
        TlsFailure::CertificateExpired => {
            "the certificate has expired; the server needs a new one, unless the clock of this machine is wrong"
        }
        TlsFailure::CertificateInvalid => "the certificate is invalid; the server needs another one",
        TlsFailure::CertificateNotYetValid => {
            "the certificate is not valid yet; check the clock of this machine"
        }
        TlsFailure::CertificateRevoked => "the certificate was revoked; the server needs another one",
        TlsFailure::ClientCertificate => {
            "the server requires a client certificate, or another one; set it with TlsOptions::client_certificate"
        }
        TlsFailure::NameMismatch => {
            "the certificate is for another name; reach the server by a name that its certificate has"
        }
        TlsFailure::NotTls => {
            "the server does not speak TLS on this port; check the port, and whether the URL should begin with http"
        }
        TlsFailure::NothingInCommon => {
            "no version of TLS (1.2, 1.3) or cipher suite in common; the server has to offer one"
        }
        TlsFailure::Protocol => "the server violates the TLS protocol",
        // Of a connection without a handshake; it has its own text.
        TlsFailure::Required => "the server requires TLS",
        TlsFailure::UnknownIssuer => {
            "the certificate has an issuer that is not trusted; if it is your own authority, add it with TlsOptions::add_roots"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(error: Rustls) -> Error {
        of_handshake("h.example:443", io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// auth:SEC-20
    #[test]
    fn what_lasts_is_told_from_what_may_pass() {
        use TlsFailure as Is;
        for (error, expected) in [
            (Rustls::InvalidCertificate(Certificate::BadSignature), Is::CertificateInvalid),
            (Rustls::InvalidCertificate(Certificate::Expired), Is::CertificateExpired),
            (Rustls::InvalidCertificate(Certificate::NotValidForName), Is::NameMismatch),
            (Rustls::InvalidCertificate(Certificate::NotValidYet), Is::CertificateNotYetValid),
            (Rustls::InvalidCertificate(Certificate::Revoked), Is::CertificateRevoked),
            (Rustls::InvalidCertificate(Certificate::UnknownIssuer), Is::UnknownIssuer),
            (Rustls::AlertReceived(Alert::CertificateRequired), Is::ClientCertificate),
            (Rustls::AlertReceived(Alert::HandshakeFailure), Is::NothingInCommon),
            (Rustls::AlertReceived(Alert::IllegalParameter), Is::Protocol),
            (Rustls::AlertReceived(Alert::UnrecognisedName), Is::NameMismatch),
            (Rustls::InvalidMessage(InvalidMessage::InvalidContentType), Is::NotTls),
            (Rustls::InvalidMessage(InvalidMessage::MessageTooLarge), Is::Protocol),
        ] {
            let told = handshake(error);
            assert_eq!(told.kind(), ErrorKind::Tls(expected));
            assert!(!told.outcome_unknown());
            let text = told.to_string();
            assert!(text.starts_with("the TLS handshake with h.example:443 failed: "), "{text}");
            assert!(error::Error::source(&told).is_some());
        }
        let trouble = Alert::InternalError;
        for passing in [Rustls::AlertReceived(trouble), Rustls::FailedToGetRandomBytes] {
            assert_eq!(handshake(passing).kind(), ErrorKind::Connect);
        }
        let reset = of_handshake("h.example:443", io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(reset.kind(), ErrorKind::Connect);
    }

    #[test]
    fn only_a_refused_client_shows_after_the_handshake() {
        let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let refused = broken(Rustls::AlertReceived(Alert::CertificateRequired));
        let told = of_refused_client(&refused).unwrap();
        assert_eq!(told.kind(), ErrorKind::Tls(TlsFailure::ClientCertificate));
        for other in [Alert::InternalError, Alert::BadRecordMac] {
            assert!(of_refused_client(&broken(Rustls::AlertReceived(other))).is_none());
        }
        assert!(of_refused_client(&io::Error::from(io::ErrorKind::ConnectionReset)).is_none());
    }
}
