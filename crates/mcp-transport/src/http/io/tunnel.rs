//! A tunnel through an HTTP proxy: `CONNECT` and its answer (RFC 9110 section 9.3.6).

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::http::core::fault;
use crate::http::core::proxy::ProxyServer;
use crate::{Error, ErrorKind};

/// Has the proxy connect to `authority` (host and port). Afterwards the stream belongs to the server at the other end.
pub(crate) async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    proxy: &ProxyServer,
    authority: &str,
    max_head_bytes: usize,
) -> Result<(), Error> {
    let broke = |error| {
        Error::new(ErrorKind::Proxy, format!("the connection to the proxy {proxy} broke")).with_source(error)
    };
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
    if let Some(authorization) = proxy.authorization() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(broke)?;

    let misbehaved = |what: &str| Error::new(ErrorKind::Proxy, format!("the proxy {proxy} {what}"));
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let read = stream.read(&mut piece).await.map_err(broke)?;
        if read == 0 {
            return Err(misbehaved("closed the connection before it answered"));
        }
        answer.extend_from_slice(piece.get(..read).unwrap_or_default());
        while let Some(end) = head_end(&answer) {
            if end > max_head_bytes {
                break;
            }
            let Some(status) = status(&answer) else {
                return Err(misbehaved("did not answer in HTTP/1.1"));
            };
            if status.is_informational() {
                answer.drain(..end);
                continue;
            }
            if !status.is_success() {
                return Err(fault::proxy_refused(proxy, status));
            }
            // A client speaks first in TLS: nobody but the proxy can have written more.
            return if answer.len() == end { Ok(()) } else { Err(misbehaved("wrote into the tunnel")) };
        }
        if answer.len() > max_head_bytes {
            let limit = u64::try_from(max_head_bytes).unwrap_or(u64::MAX);
            return Err(misbehaved(&format!("answered with a head above {limit} bytes"))
                .with_limit("max_head_bytes", limit));
        }
    }
}

/// Where the head ends, behind its empty line.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut line_start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        if matches!(bytes.get(line_start..end), Some(b"" | b"\r")) {
            return Some(end + 1);
        }
        line_start = end + 1;
    }
    None
}

fn status(head: &[u8]) -> Option<StatusCode> {
    match head {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9', b' ', a, b, c, b' ' | b'\r' | b'\n', ..] => {
            StatusCode::from_bytes(&[*a, *b, *c]).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Feeds an answer in pieces of one size.
    async fn run(answer: &[u8], piece: usize) -> (Result<(), Error>, String) {
        let proxy = ProxyServer::parse("http://user:canary@proxy:3128").unwrap();
        let (mut here, mut there) = tokio::io::duplex(1 << 16);
        let script = async {
            let mut request = vec![0; 4096];
            let read = there.read(&mut request).await.unwrap();
            for part in answer.chunks(piece) {
                let _ = there.write_all(part).await;
                tokio::task::yield_now().await;
            }
            drop(there);
            String::from_utf8_lossy(&request[..read]).into_owned()
        };
        tokio::join!(tunnel(&mut here, &proxy, "h.example:443", 256), script)
    }

    #[tokio::test]
    async fn the_request_names_the_server_and_carries_the_credentials() {
        let (result, request) = run(b"HTTP/1.1 200 OK\r\n\r\n", 64).await;
        result.unwrap();
        assert_eq!(
            request,
            "CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n\
             Proxy-Authorization: Basic dXNlcjpjYW5hcnk=\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn answers_are_judged_however_they_are_cut() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(300));
        let endless = "HTTP/1.1 100 Continue\r\n".repeat(100);
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"HTTP/1.1 200 Connection established\r\n\r\n", None),
            (b"HTTP/1.0 200\r\nVia: x\r\n\r\n", None),
            (b"HTTP/1.1 204 \nVia: x\n\n", None),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", None),
            (
                b"HTTP/1.1 407 Nope\r\nProxy-Authenticate: Basic\r\n\r\n",
                Some("407 Proxy Authentication Required"),
            ),
            (b"HTTP/1.1 502 Nope\r\n\r\nbody", Some("502 Bad Gateway: no tunnel")),
            (b"HTTP/1.1 302 Nope\r\nLocation: http://evil/\r\n\r\n", Some("302 Found")),
            (b"HTTP/2 200\r\n\r\n", Some("did not answer in HTTP/1.1")),
            (b"SSH-2.0-x\r\n\r\n", Some("did not answer in HTTP/1.1")),
            (b"", Some("closed the connection")),
            (b"HTTP/1.1 200 OK\r\n", Some("closed the connection")),
            (long.as_bytes(), Some("above 256 bytes")),
            (endless.as_bytes(), Some("above 256 bytes")),
        ];
        for (answer, expected) in cases {
            for piece in [1, 2, 7, 4096] {
                let (result, _) = run(answer, piece).await;
                match (result, expected) {
                    (Ok(()), None) => {}
                    (Err(error), Some(text)) => {
                        assert_eq!(error.kind(), ErrorKind::Proxy);
                        let shown = format!("{error} {error:?}");
                        assert!(shown.contains(text), "{shown}");
                        assert!(!shown.contains("canary") && !error.outcome_unknown());
                        assert_eq!(error.limit().is_some(), text.contains("above"));
                    }
                    (result, _) => panic!("{result:?} for {:?}", String::from_utf8_lossy(answer)),
                }
            }
        }
    }

    #[tokio::test]
    async fn bytes_before_the_client_spoke_are_refused() {
        let (result, _) = run(b"HTTP/1.1 200 OK\r\n\r\nx", 64).await;
        assert!(result.unwrap_err().to_string().contains("wrote into the tunnel"));
    }
}
