//! Opening a connection: all addresses of the host, both families, within one deadline.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time;
use url::Host;

use super::stream::Stream;
use crate::http::config::Config;
#[cfg(not(feature = "tls"))]
use crate::http::core::fault;
use crate::http::core::target::Target;
use crate::{Error, ErrorKind};

/// Head start of an address over the next one (RFC 8305 section 8 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// Addresses tried for one connection. A name can have thousands.
const MAX_ADDRESSES: usize = 8;

/// Connects to the target, TLS handshake included, within the connect deadline.
pub(crate) async fn connect(target: &Target, config: &Config) -> Result<Stream, Error> {
    let deadline = config.timeouts.connect;
    match time::timeout(deadline, secured(target, config)).await {
        Ok(result) => result,
        Err(_) => {
            let text = format!("no connection to {} within {} ms", place(target), deadline.as_millis());
            Err(Error::new(ErrorKind::Connect, text))
        }
    }
}

#[cfg(not(feature = "tls"))]
async fn secured(target: &Target, config: &Config) -> Result<Stream, Error> {
    // No URL gets here that needs more; a redirect stays within its origin.
    if target.is_tls() {
        return Err(fault::tls_missing());
    }
    open(target, config).await
}

#[cfg(feature = "tls")]
async fn secured(target: &Target, config: &Config) -> Result<Stream, Error> {
    use rustls::pki_types::ServerName;

    let stream = open(target, config).await?;
    if !target.is_tls() {
        return Ok(stream);
    }
    let name = match target.host() {
        Host::Domain(name) => ServerName::try_from(name.clone()).ok(),
        Host::Ipv4(ip) => Some(ServerName::from(IpAddr::V4(*ip))),
        Host::Ipv6(ip) => Some(ServerName::from(IpAddr::V6(*ip))),
    };
    let (Some(tls), Some(name)) = (&config.tls, name) else {
        return Err(Error::new(ErrorKind::Misuse, format!("{} cannot be verified by name", place(target))));
    };
    let connector = tokio_rustls::TlsConnector::from(tls.config());
    let stream = connector.connect(name, stream).await.map_err(|error| {
        let text = format!("the tls handshake with {} failed", place(target));
        Error::new(ErrorKind::Connect, text).with_source(error)
    })?;
    Ok(Stream::Tls(Box::new(stream)))
}

async fn open(target: &Target, config: &Config) -> Result<Stream, Error> {
    #[cfg(unix)]
    if let Some(path) = &config.unix_socket {
        let stream = tokio::net::UnixStream::connect(path).await.map_err(|error| {
            let text = format!("cannot connect to the socket {}", path.display());
            Error::new(ErrorKind::Connect, text).with_source(error)
        })?;
        return Ok(Stream::Unix(stream));
    }
    let mut addresses = addresses(target).await.map_err(|error| {
        Error::new(ErrorKind::Connect, format!("the name of {} cannot be resolved", place(target)))
            .with_source(error)
    })?;
    // What is judged here is what is connected to: the name is not looked up again.
    addresses.retain(|address| config.addresses.allows(address.ip()));
    if addresses.is_empty() {
        let text = format!("{} leads to no address that the policy allows", place(target));
        return Err(Error::new(ErrorKind::Connect, text));
    }
    let stream = race(&addresses).await.map_err(|error| {
        let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let text = format!("cannot connect to {} (tried {})", place(target), tried.join(", "));
        Error::new(ErrorKind::Connect, text).with_source(error)
    })?;
    // A request is written at once; waiting for more bytes to send would only add delay. Not being able to switch that off
    // costs time, not correctness.
    let _ = stream.set_nodelay(true);
    Ok(Stream::Tcp(stream))
}

fn place(target: &Target) -> String {
    format!("{}:{}", target.host(), target.port())
}

async fn addresses(target: &Target) -> io::Result<Vec<SocketAddr>> {
    let port = target.port();
    let at = |ip: IpAddr| SocketAddr::new(ip, port);
    match target.host() {
        Host::Ipv4(ip) => Ok(vec![at((*ip).into())]),
        Host::Ipv6(ip) => Ok(vec![at((*ip).into())]),
        // RFC 6761 section 6.3: always loopback. A server may listen on one family only, whichever the resolver knows.
        Host::Domain(name) if is_localhost(name) => {
            Ok(vec![at(Ipv4Addr::LOCALHOST.into()), at(Ipv6Addr::LOCALHOST.into())])
        }
        Host::Domain(name) => {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), port)).await?.collect();
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
            }
            Ok(interleave(found))
        }
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name
            .len()
            .checked_sub(".localhost".len())
            .is_some_and(|at| name.get(at..).is_some_and(|suffix| suffix.eq_ignore_ascii_case(".localhost")))
}

/// Alternates the families, the one that came first leading, so that a broken family costs one head start.
fn interleave(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let leads_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|address| address.is_ipv6() == leads_v6);
    let mut second = second.into_iter();
    let mut all = Vec::new();
    for address in first {
        all.push(address);
        all.extend(second.next());
    }
    all.extend(second);
    all.truncate(MAX_ADDRESSES);
    all
}

/// The first connection that opens. Each address starts when the one before it failed or had its head start.
async fn race(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return TcpStream::connect(only).await;
    }
    let mut waiting = addresses.iter().copied();
    // Dropping the set ends the attempts that are still running.
    let mut running = JoinSet::new();
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "no address to connect to");
    loop {
        let next = waiting.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            running.spawn(TcpStream::connect(address));
        }
        let joined = if is_last {
            running.join_next().await
        } else {
            match time::timeout(HEAD_START, running.join_next()).await {
                Ok(joined) => joined,
                Err(_) => continue,
            }
        };
        match joined {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => last_error = error,
            Some(Err(error)) => last_error = io::Error::other(error),
            None => return Err(last_error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate() {
        let v4 = |n| SocketAddr::from(([192, 0, 2, n], 1));
        let v6 = |n| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, n], 1));
        assert_eq!(interleave(vec![v6(1), v6(2), v4(1)]), [v6(1), v4(1), v6(2)]);
        assert_eq!(interleave(vec![v4(1), v4(2), v4(3), v6(1)]), [v4(1), v6(1), v4(2), v4(3)]);
        assert_eq!(interleave((0..20).map(v4).collect()).len(), MAX_ADDRESSES);
    }

    /// field:FR-060
    #[test]
    fn localhost_names_are_loopback() {
        for name in ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.LocalHost"] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "local", ""] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    /// field:FR-060, field:FR-054
    #[tokio::test]
    async fn refused_connections_name_what_was_tried() {
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let target = Target::parse(&format!("http://localhost:{port}/")).unwrap();
        let error = connect(&target, &Config::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert!(!error.outcome_unknown());
        let text = error.to_string();
        assert!(text.contains(&format!("127.0.0.1:{port}, [::1]:{port}")), "{text}");
    }
}
