//! How what speaks TLS on a port says that it was spoken to in plain HTTP.
//!
//! There is no rule for it. Some answer with a record of TLS, some with a 400 in words of their own, of which those of widely used
//! servers are known here, and many close without a word, which says too little to be sure.

use http::StatusCode;

/// Parts of the texts, in lower case.
const KNOWN: [&str; 4] = [
    // nginx, and what is built on it.
    "plain http request was sent to https port",
    // What is written in Go.
    "sent an http request to an https server",
    // Apache httpd.
    "speaking plain http to an ssl-enabled",
    // Tomcat.
    "combination of host and port requires tls",
];

/// Whether this refusal of a request in plain HTTP says that TLS was expected. `body` is its text, which may be a page.
pub(crate) fn is_told(status: StatusCode, body: Option<&str>) -> bool {
    let Some(body) = body.filter(|_| status == StatusCode::BAD_REQUEST) else { return false };
    let body = body.to_ascii_lowercase();
    KNOWN.iter().any(|known| body.contains(known))
}

/// Whether what came in place of a response begins like a record of TLS: an alert or a handshake of a version 3 (RFC 8446 section 5.1).
pub(crate) fn is_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_known_servers_are_known_and_with_their_status_only() {
        for (body, told) in [
            ("Client sent an HTTP request to an HTTPS server.\n", true),
            ("<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>", true),
            ("Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />", true),
            ("Bad Request\r\nThis combination of host and port requires TLS.\r\n", true),
            ("Bad Request", false),
            ("", false),
        ] {
            assert_eq!(is_told(StatusCode::BAD_REQUEST, Some(body)), told, "{body}");
            assert!(!is_told(StatusCode::NOT_FOUND, Some(body)));
        }
        assert!(!is_told(StatusCode::BAD_REQUEST, None));
    }

    #[test]
    fn a_record_is_known_by_its_first_bytes() {
        for (bytes, is) in [
            (&[0x15, 3, 1, 0, 2, 2, 22][..], true),
            (&[0x15, 3, 3], true),
            (&[0x16, 3, 3, 0], true),
            (&[0x15], false),
            (&[0x15, 2, 0], false),
            (&[0x17, 3, 3], false),
            (b"HTTP/1.1 400", false),
            (b"", false),
        ] {
            assert_eq!(is_record(bytes), is, "{bytes:?}");
        }
    }
}
