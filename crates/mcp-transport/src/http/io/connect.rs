//! Opening a connection: all addresses of the host, both families, within one deadline.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time;
use url::Host;

use super::stream::Stream;
use super::tunnel::tunnel;
use crate::http::config::Config;
use crate::http::core::address::AddressPolicy;
#[cfg(not(feature = "tls"))]
use crate::http::core::fault;
use crate::http::core::proxy::ProxyServer;
use crate::http::core::target::{Target, is_localhost};
#[cfg(feature = "tls")]
use crate::http::tls_failure;
use crate::{Error, ErrorKind};

/// Head start of an address over the next one (RFC 8305 section 8 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// Addresses tried for one connection. A name can have thousands.
const MAX_ADDRESSES: usize = 8;

/// The proxy that requests to the target go through.
pub(crate) fn proxy_of<'a>(target: &Target, config: &'a Config) -> Option<&'a ProxyServer> {
    #[cfg(unix)]
    if config.unix_socket.is_some() {
        return None;
    }
    config.proxies.choose(target)
}

/// Connects to the target, proxy and TLS handshake included, within the connect deadline.
pub(crate) async fn connect(target: &Target, config: &Config) -> Result<Stream, Error> {
    let deadline = config.timeouts.connect;
    let started = time::Instant::now();
    let late = |kind, place: &dyn std::fmt::Display| {
        Error::new(kind, format!("no connection to {place} within {deadline:?}"))
    };
    let proxy = proxy_of(target, config);
    let opened = match proxy {
        None => time::timeout(deadline, open(target, config))
            .await
            .unwrap_or_else(|_| Err(late(ErrorKind::Connect, &place(target)))),
        Some(proxy) => time::timeout(deadline, through(proxy, target, config)).await.unwrap_or_else(|_| {
            Err(late(ErrorKind::Proxy, &format_args!("{} through the proxy {proxy}", place(target))))
        }),
    };
    let stream = opened?;
    let left = deadline.saturating_sub(started.elapsed());
    match time::timeout(left, secured(stream, target, config)).await {
        Ok(result) => result,
        Err(_) => Err(late(ErrorKind::Connect, &place(target))),
    }
}

#[cfg(not(feature = "tls"))]
async fn secured(stream: Stream, target: &Target, _: &Config) -> Result<Stream, Error> {
    // No URL gets here that needs more; a redirect stays within its origin.
    if target.is_tls() { Err(fault::tls_missing()) } else { Ok(stream) }
}

#[cfg(feature = "tls")]
async fn secured(stream: Stream, target: &Target, config: &Config) -> Result<Stream, Error> {
    use rustls::pki_types::ServerName;

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
    let connector = tokio_rustls::TlsConnector::from(tls.config(config.may_speak_http2()));
    let handshake = connector.connect(name, stream).await;
    let stream = handshake.map_err(|error| tls_failure::of_handshake(&place(target), error))?;
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
    // What is judged here is what is connected to: the name is not looked up again.
    let addresses = judged(target, config).await?;
    let stream = race(&addresses).await.map_err(|error| {
        let text = format!("cannot connect to {} (tried {})", place(target), Tried(&addresses));
        Error::new(ErrorKind::Connect, text).with_source(error)
    })?;
    Ok(tcp(stream))
}

/// Connects to the proxy; for `https` has it open a tunnel to the server.
async fn through(proxy: &ProxyServer, target: &Target, config: &Config) -> Result<Stream, Error> {
    // A proxy looks names up itself, and may see other addresses than this machine.
    let authority = if config.addresses == AddressPolicy::AllowAll {
        place(target)
    } else if target.is_tls() {
        judged(target, config).await?.first().map_or_else(|| place(target), ToString::to_string)
    } else {
        let text = format!("the addresses of {} cannot be judged behind the proxy {proxy}", place(target));
        return Err(Error::new(ErrorKind::Connect, text));
    };
    // The user's own choice, so any address will do.
    let addresses = addresses(proxy.host(), proxy.port()).await.map_err(|error| {
        Error::new(ErrorKind::Proxy, format!("the name of the proxy {proxy} cannot be resolved"))
            .with_source(error)
    })?;
    let stream = race(&addresses).await.map_err(|error| {
        let text = format!("cannot connect to the proxy {proxy} (tried {})", Tried(&addresses));
        Error::new(ErrorKind::Proxy, text).with_source(error)
    })?;
    let mut stream = tcp(stream);
    if target.is_tls() {
        tunnel(&mut stream, proxy, &authority, config.limits.max_head_bytes).await?;
    }
    Ok(stream)
}

fn tcp(stream: TcpStream) -> Stream {
    // A request is written at once; waiting for more bytes to send would only add delay. Not being able to switch that off
    // costs time, not correctness.
    let _ = stream.set_nodelay(true);
    Stream::Tcp(stream)
}

fn place(target: &Target) -> String {
    format!("{}:{}", target.host(), target.port())
}

struct Tried<'a>(&'a [SocketAddr]);

impl std::fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

/// The addresses of the target that the policy allows, at least one.
async fn judged(target: &Target, config: &Config) -> Result<Vec<SocketAddr>, Error> {
    let mut addresses = addresses(target.host(), target.port()).await.map_err(|error| {
        Error::new(ErrorKind::Connect, format!("the name of {} cannot be resolved", place(target)))
            .with_source(error)
    })?;
    addresses.retain(|address| config.addresses.allows(address.ip()));
    if addresses.is_empty() {
        let text = format!("{} leads to no address that the policy allows", place(target));
        return Err(Error::new(ErrorKind::Connect, text));
    }
    Ok(addresses)
}

async fn addresses(host: &Host<String>, port: u16) -> io::Result<Vec<SocketAddr>> {
    let at = |ip: IpAddr| SocketAddr::new(ip, port);
    match host {
        Host::Ipv4(ip) => Ok(vec![at((*ip).into())]),
        Host::Ipv6(ip) => Ok(vec![at((*ip).into())]),
        // Always loopback. A server may listen on one family only, whichever the resolver knows.
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

    /// field:FR-060, field:FR-054
    #[tokio::test]
    async fn refused_connections_name_what_was_tried() {
        // Bound and not listening: nobody else is given the port meanwhile.
        let kept = tokio::net::TcpSocket::new_v4().unwrap();
        kept.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let port = kept.local_addr().unwrap().port();
        let target = Target::parse(&format!("http://localhost:{port}/")).unwrap();
        let error = connect(&target, &Config::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert!(!error.outcome_unknown());
        let text = error.to_string();
        assert!(text.contains(&format!("127.0.0.1:{port}, [::1]:{port}")), "{text}");
    }
}
