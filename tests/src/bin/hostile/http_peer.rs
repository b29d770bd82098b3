//! The server on a loopback port, written byte by byte.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::behaviour::{Act, Framing, Head, On, Rule, Speaks};
use crate::http_bodies::{EVENTS, event};
use crate::met::Met;
use crate::server::{Asked, CHANGE, Calls, GRANT, holds, is_aimed, meet};

/// The session id of these servers. No error may show it.
pub(crate) const SESSION: &str = "canary-5f2b9c";

/// How long the server waits for what the client must do next, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the connections of one server share.
#[derive(Debug)]
struct Shared {
    rules: Mutex<Vec<Rule>>,
    /// The ids of the calls that are here.
    calls: watch::Sender<Calls>,
    released: watch::Sender<bool>,
    answered: watch::Sender<bool>,
    cancelled: watch::Sender<bool>,
    /// Whether the two calls wait for each other: the fault for the other call, and that one for the fault.
    holds: bool,
    speaks: Speaks,
    offences: Offences,
    met: Met,
}

/// What the client sent that a modern server must never get, and what it did not send although it was due.
pub(crate) type Offences = Arc<Mutex<Vec<String>>>;

/// Serves until it is dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    speaks: Speaks,
    rules: Vec<Rule>,
    offences: Offences,
    met: Met,
) {
    let holds = holds(&rules);
    let shared = Arc::new(Shared {
        rules: Mutex::new(rules),
        calls: watch::Sender::default(),
        released: watch::Sender::new(false),
        answered: watch::Sender::new(false),
        cancelled: watch::Sender::new(false),
        holds,
        speaks,
        offences,
        met,
    });
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let mut connection = Connection { stream, buffer: Vec::new(), shared };
            // A client that is gone is no fault of ours.
            let _ = connection.serve().await;
        });
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    shared: Arc<Shared>,
}

/// Whether the connection takes another request.
#[derive(PartialEq)]
enum Next {
    Continue,
    Leave,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        while let Some(asked) = self.request().await? {
            match asked.on {
                Some(On::Answer) => drop(self.shared.answered.send_replace(true)),
                Some(On::Cancelled) => drop(self.shared.cancelled.send_replace(true)),
                _ => {}
            }
            let rules = || self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner);
            let acts = meet(&mut rules(), asked.on);
            match acts {
                Some((place, acts)) => {
                    self.shared.met.note(place);
                    if self.follow(&asked, acts).await? == Next::Leave {
                        return Ok(());
                    }
                }
                None if asked.is_other && self.shared.holds => {
                    self.shared.calls.send_modify(|calls| calls.other.clone_from(&asked.id));
                    let mut released = self.shared.released.subscribe();
                    let _ = released.wait_for(|released| *released).await;
                    self.proper(&asked).await?;
                }
                None => self.proper(&asked).await?,
            }
        }
        Ok(())
    }

    async fn follow(&mut self, asked: &Asked, acts: Vec<Act>) -> io::Result<Next> {
        let aimed = asked.on.is_some_and(is_aimed);
        if asked.on == Some(On::Call) {
            self.shared.calls.send_modify(|calls| calls.aimed.clone_from(&asked.id));
        }
        if aimed && self.shared.holds {
            let _ = self.shared.calls.subscribe().wait_for(|calls| !calls.other.is_empty()).await;
        }
        for act in acts {
            let last =
                matches!(act, Act::Hold | Act::Deaf | Act::UntilCancelled | Act::Flood(..) | Act::Drip(..));
            if aimed && last {
                self.shared.released.send_replace(true);
            }
            let next = self.act(asked, act).await;
            if aimed && !matches!(next, Ok(Next::Continue)) {
                self.shared.released.send_replace(true);
            }
            if next? == Next::Leave {
                return Ok(Next::Leave);
            }
        }
        if aimed {
            self.shared.released.send_replace(true);
        }
        Ok(Next::Continue)
    }

    async fn act(&mut self, asked: &Asked, act: Act) -> io::Result<Next> {
        let calls = self.shared.calls.borrow().clone();
        match act {
            Act::Bytes(bytes) => self.stream.write_all(&asked.fill(&bytes, &calls)).await?,
            Act::Drip(bytes, pause) => {
                for byte in asked.fill(&bytes, &calls) {
                    self.stream.write_all(&[byte]).await?;
                    sleep(pause).await;
                }
            }
            Act::End | Act::Exit(_) | Act::Abort => {
                self.stream.shutdown().await?;
                return Ok(Next::Leave);
            }
            Act::Flood(piece, bytes) => {
                let piece = asked.fill(&piece, &calls);
                let mut left = bytes;
                while left > 0 && !piece.is_empty() {
                    self.stream.write_all(&piece).await?;
                    left = left.saturating_sub(piece.len());
                    // One thread serves both ends; a socket with room would never let the other run.
                    tokio::task::yield_now().await;
                }
            }
            Act::Hold | Act::Deaf => {
                // Until the client closes.
                let mut piece = [0; 1024];
                while self.stream.read(&mut piece).await? > 0 {}
                return Ok(Next::Leave);
            }
            Act::Http(head, body) => {
                let body = asked.fill(&body, &calls);
                return self.respond(&head, &body).await;
            }
            Act::Proper => self.proper(asked).await?,
            Act::Release => {
                self.shared.released.send_replace(true);
            }
            Act::Reset => {
                self.stream.set_zero_linger()?;
                return Ok(Next::Leave);
            }
            Act::Stderr(..) => {}
            Act::UntilAnswered => self.until(&self.shared.answered, "answer").await,
            Act::UntilCancelled => self.until(&self.shared.cancelled, "cancellation").await,
        }
        Ok(Next::Continue)
    }

    /// Waits for something that the client must do.
    async fn until(&self, flag: &watch::Sender<bool>, what: &str) {
        let mut flag = flag.subscribe();
        if timeout(PATIENCE, flag.wait_for(|set| *set)).await.is_err() {
            let mut offences = self.shared.offences.lock().unwrap_or_else(PoisonError::into_inner);
            offences.push(format!("no {what} within {PATIENCE:?}"));
        }
    }

    async fn proper(&mut self, asked: &Asked) -> io::Result<()> {
        if asked.on == Some(On::Listen) {
            let calls = self.shared.calls.borrow().clone();
            let stream = [event(GRANT.as_bytes()), event(CHANGE.as_bytes())].concat();
            let head = format!("HTTP/1.1 200 OK\r\n{EVENTS}\r\n");
            self.stream.write_all(head.as_bytes()).await?;
            return self.stream.write_all(&asked.fill(&stream, &calls)).await;
        }
        let answer = asked.answer();
        let (status, mut fields) = match asked.on {
            Some(On::Get | On::Resume) => ("405 Method Not Allowed", String::new()),
            _ if answer.is_empty() => ("202 Accepted", String::new()),
            _ => ("200 OK", "content-type: application/json\r\n".to_owned()),
        };
        if asked.on == Some(On::Initialize) {
            let _ = write!(fields, "mcp-session-id: {SESSION}\r\n");
        }
        let head = Head { status: status.to_owned(), fields, framing: Framing::Length };
        self.respond(&head, answer.as_bytes()).await.map(drop)
    }

    async fn respond(&mut self, head: &Head, body: &[u8]) -> io::Result<Next> {
        let Head { status, fields, framing } = head;
        let framed = match framing {
            Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Framing::Close => "connection: close\r\n".to_owned(),
            Framing::Length => format!("content-length: {}\r\n", body.len()),
        };
        let mut bytes = format!("HTTP/1.1 {status}\r\n{fields}{framed}\r\n").into_bytes();
        if *framing == Framing::Chunked {
            bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(b"\r\n0\r\n\r\n");
        } else {
            bytes.extend_from_slice(body);
        }
        self.stream.write_all(&bytes).await?;
        if *framing == Framing::Close {
            self.stream.shutdown().await?;
            return Ok(Next::Leave);
        }
        Ok(Next::Continue)
    }

    /// The next request; `None` when the client closed.
    async fn request(&mut self) -> io::Result<Option<Asked>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let length = field("content-length").and_then(|value| value.trim().parse().ok()).unwrap_or(0);
        while self.buffer.len() < length {
            if !self.read_more().await? {
                return Ok(None);
            }
        }
        let body: Vec<u8> = self.buffer.drain(..length).collect();
        let on = match head.split(' ').next() {
            Some("get") if field("last-event-id").is_some() => On::Resume,
            Some("get") => On::Get,
            Some("delete") => On::Delete,
            _ => {
                let asked = Asked::read(self.shared.speaks, &body);
                self.judge(asked.on, &head);
                return Ok(Some(asked));
            }
        };
        self.judge(Some(on), &head);
        Ok(Some(Asked::bare(on)))
    }

    /// Notes what has no place in the modern era, which has no sessions, and whose messages say in their heads what they are.
    fn judge(&self, on: Option<On>, head: &str) {
        if self.shared.speaks == Speaks::Legacy {
            return;
        }
        let has = |field: &str| head.lines().any(|line| line.starts_with(field));
        let mut found = Vec::new();
        if let Some(
            on @ (On::Answer
            | On::Cancelled
            | On::Delete
            | On::Get
            | On::Initialize
            | On::Initialized
            | On::Resume),
        ) = on
        {
            found.push(on.to_string());
        }
        found.extend(
            ["mcp-session-id:", "last-event-id:"].into_iter().filter(|field| has(field)).map(String::from),
        );
        if !has("mcp-protocol-version: 2026-07-28") || !has("mcp-method: ") {
            found.push("a message without its version and method in the head".to_owned());
        }
        self.shared.offences.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    async fn read_more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 4096];
        let length = self.stream.read(&mut piece).await?;
        self.buffer.extend_from_slice(piece.get(..length).unwrap_or_default());
        Ok(length > 0)
    }
}
