//! The byte stream under a connection.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// So much is put together before it is written: copying a small head and its body costs less than having the system take them one
/// by one.
const SMALL_BYTES: usize = 1024;

/// TCP or a Unix-domain socket, or TLS on either.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
    /// Boxed, as it is several times larger, and as it holds one of the others.
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<Self>>),
}

#[cfg(feature = "http2")]
impl Stream {
    /// Whether the TLS handshake chose HTTP/2; `None` without TLS.
    pub(crate) fn chose_http2(&self) -> Option<bool> {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Some(stream.get_ref().1.alpn_protocol() == Some(b"h2")),
            _ => None,
        }
    }
}

/// Calls the same method on whichever stream it is.
macro_rules! forward {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match $self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).$method($($argument),*),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(&mut **stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        forward!(self, poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        forward!(self, poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = bufs.iter().map(|buf| buf.len()).sum();
        let mut joined = [0; SMALL_BYTES];
        match joined.get_mut(..bytes) {
            Some(joined) if bufs.len() > 1 => {
                let mut free = &mut *joined;
                for buf in bufs {
                    free.write_all(buf)?;
                }
                forward!(self, poll_write(cx, joined))
            }
            _ => forward!(self, poll_write_vectored(cx, bufs)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            Self::Unix(stream) => stream.is_write_vectored(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
