//! A server that a test writes by hand, byte for byte.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Longer than anything here takes on however busy a machine; a test that hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A listener on loopback.
pub(crate) struct Server {
    listener: TcpListener,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::bind("127.0.0.1:0").await
    }

    pub(crate) async fn bind(address: &str) -> Self {
        Self::over(TcpListener::bind(address).await.unwrap())
    }

    pub(crate) fn over(listener: TcpListener) -> Self {
        Self { listener, accepted: Arc::default() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address())
    }

    /// How many connections there were so far, those too that the test has not asked for; they are ended by this.
    ///
    /// Asked of the system itself: the runtime may not have heard yet of one that waits.
    pub(crate) fn accepted(&self) -> usize {
        let listener = StdListener::from(self.listener.as_fd().try_clone_to_owned().unwrap());
        loop {
            match listener.accept() {
                Ok(_) => self.accepted.fetch_add(1, Ordering::SeqCst),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            };
        }
        self.accepted.load(Ordering::SeqCst)
    }

    /// The same of a server that accepts in the background whatever comes.
    pub(crate) fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.accepted)
    }

    pub(crate) async fn accept(&self) -> Peer {
        within(self.next_peer()).await
    }

    /// As [`accept`](Self::accept), however long nobody comes: for a server in the background of a test in which minutes pass.
    pub(crate) async fn next_peer(&self) -> Peer {
        let (stream, _) = self.listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        self.accepted.fetch_add(1, Ordering::SeqCst);
        Peer::over(stream)
    }

    /// Accepts a connection and reads its first request.
    pub(crate) async fn request(&self) -> (Peer, Request) {
        let mut peer = self.accept().await;
        let request = peer.request().await;
        (peer, request)
    }
}

/// An address on loopback that stays ours while nobody listens there: connecting to it is refused, and no other test, nor an
/// outgoing connection, is given its port meanwhile.
pub(crate) struct Address {
    at: SocketAddr,
    _kept: TcpSocket,
}

impl Address {
    pub(crate) fn keep() -> Self {
        Self::keep_port(0).expect("some port is free")
    }

    /// The same with this port, unless somebody has it.
    pub(crate) fn keep_port(port: u16) -> Option<Self> {
        let kept = Self::bound(SocketAddr::from(([127, 0, 0, 1], port)))?;
        Some(Self { at: kept.local_addr().ok()?, _kept: kept })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.at)
    }

    /// Listens there until the listener is dropped; then again whoever wants to.
    pub(crate) fn listen(&self) -> TcpListener {
        Self::bound(self.at).and_then(|socket| socket.listen(1024).ok()).expect("the address is ours")
    }

    pub(crate) fn serve(&self) -> Server {
        Server::over(self.listen())
    }

    fn bound(at: SocketAddr) -> Option<TcpSocket> {
        let socket = TcpSocket::new_v4().ok()?;
        // Two sockets may have one address so long as neither listens yet.
        socket.set_reuseaddr(true).ok()?;
        socket.bind(at).ok()?;
        Some(socket)
    }
}

/// Lets everything in this runtime see what its sockets have to tell: many rounds through the event loop, and not one long sleep
/// that a stalled machine turns into a single round.
pub(crate) async fn rounds() {
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Awaits what ends by a deadline, in virtual time: everything that should come before the deadline must have happened.
/// For a runtime of one thread.
pub(crate) async fn at_the_deadline<F: Future>(future: F) -> F::Output {
    tokio::time::pause();
    let output = future.await;
    tokio::time::resume();
    output
}

/// One accepted connection, over TCP or over what is on it.
pub(crate) struct Peer<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    /// The one value of a header; names are in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} twice");
        value
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads the next request; fails the test when the client closes instead.
    pub(crate) async fn request(&mut self) -> Request {
        self.try_request().await.expect("a request")
    }

    pub(crate) async fn try_request(&mut self) -> Option<Request> {
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await {
                return None;
            }
        };
        let head: Vec<u8> = self.buffer.drain(..head_end).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let mut start = lines.next().unwrap().split(' ');
        let method = start.next().unwrap().to_owned();
        let path = start.next().unwrap().to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse().unwrap());
        while self.buffer.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        let body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        Some(Request { method, path, headers, body })
    }

    async fn fill(&mut self) -> bool {
        let mut piece = [0; 4096];
        let read = within(self.stream.read(&mut piece)).await.unwrap_or(0);
        self.buffer.extend_from_slice(&piece[..read]);
        read > 0
    }

    /// Writes bytes as they are. The client may have gone already, which is its right.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.try_send(bytes).await;
    }

    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        within(self.stream.write_all(bytes.as_ref())).await.is_ok()
    }

    /// A response with a body of known length. `head` may hold further header lines, each with its line end.
    pub(crate) async fn respond(&mut self, status: &str, head: &str, body: &str) {
        let length = body.len();
        self.send(format!("HTTP/1.1 {status}\r\n{head}content-length: {length}\r\n\r\n{body}")).await;
    }

    pub(crate) async fn json(&mut self, body: &str) {
        self.respond("200 OK", "content-type: application/json\r\n", body).await;
    }

    pub(crate) async fn accepted(&mut self) {
        self.respond("202 Accepted", "", "").await;
    }

    /// Begins an event stream in chunked coding.
    pub(crate) async fn stream(&mut self, head: &str) {
        let fixed = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
        self.send(format!("{fixed}{head}\r\n")).await;
    }

    pub(crate) async fn chunk(&mut self, text: &str) {
        self.send(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// Ends a chunked body in good order.
    pub(crate) async fn end(&mut self) {
        self.send("0\r\n\r\n").await;
    }

    /// Closes in good order after the client read everything.
    pub(crate) async fn close(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits until the client has closed; what it sends before is thrown away.
    pub(crate) async fn closed(&mut self) {
        let mut piece = [0; 4096];
        while within(self.stream.read(&mut piece)).await.unwrap_or(0) > 0 {}
    }
}

impl Peer {
    /// The socket itself, for what is no HTTP.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Closes by a reset.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

/// Fails the test instead of letting it hang.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("no progress")
}
