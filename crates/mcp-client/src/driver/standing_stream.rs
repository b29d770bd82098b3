//! The reader of the standing stream of a session, on which a legacy server says what belongs to no call.
//!
//! A broken stream is opened again by the transport, with what it needs to miss nothing. What comes here is a stream that is lost
//! all the same: whoever listens hears that, it is opened anew, and whoever listens hears that something may have been missed. While
//! nothing can be heard subscriptions that stood end, and later ones are granted nothing. What is known of it, and what is next, is for
//! [`Hearing`] to say.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use mcp_proto::Origin;
use mcp_transport::Received;
use mcp_transport::http::HttpConnection;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

use super::hearing::{Ended, Hearing, Said, Session, Sought, Step};
use super::http::{HttpLink, SessionHead, head};
use super::subscribing::AbortOnDrop;
use super::{Driver, Link, Writes, now};
use crate::spawning::spawn;

/// How long a stream that was given up is left alone before an answer of the server is a reason to try once more.
const REST: Duration = Duration::from_secs(60);

/// Starts the task that reads the standing stream, if the server has one, and gives it a moment to be there.
pub(crate) async fn spawn_stream_reader(driver: &Arc<Driver>, link: &HttpLink) -> AbortHandle {
    driver.hear(|hearing, now| {
        hearing.begin(now);
        Said::nothing()
    });
    let reader = Reader {
        driver: Arc::downgrade(driver),
        connection: link.connection.clone(),
        signs: Arc::clone(&link.signs),
    };
    let reader = spawn(&driver.runtime, reader.run(Arc::clone(&driver.renewals)));
    // Until it is in the caller's hands: whoever connects may be dropped meanwhile.
    let mut unless_known = AbortOnDrop(Some(reader.clone()));
    driver.stream_known().await;
    unless_known.0 = None;
    reader
}

/// Signs of life of the server, for whoever waits for one.
#[derive(Debug, Default)]
pub(super) struct Signs {
    is_awaited: AtomicBool,
    sign: Notify,
}

impl Signs {
    /// The server has answered a request.
    pub(super) fn note(&self) {
        if self.is_awaited.load(Ordering::Relaxed) && self.is_awaited.swap(false, Ordering::Relaxed) {
            self.sign.notify_one();
        }
    }

    /// Waits for the next answer of the server. For one task.
    async fn next(&self) {
        // One that came for whoever did not wait any more says nothing of now.
        tokio::select! {
            biased;
            () = self.sign.notified() => {}
            () = std::future::ready(()) => {}
        }
        self.is_awaited.store(true, Ordering::Relaxed);
        self.sign.notified().await;
    }
}

struct Reader {
    driver: Weak<Driver>,
    connection: HttpConnection,
    signs: Arc<Signs>,
}

/// Why the stream of a session is kept up no more.
enum Done {
    /// The connection is gone.
    Over,
    /// There is a new session.
    Renewed,
    /// Nothing is going to be heard in this session.
    Silent,
}

/// What is next for the reader.
struct Next {
    step: Step,
    /// In which session.
    session: Session,
    /// What a request in that carries.
    head: SessionHead,
}

impl Reader {
    async fn run(self, renewals: Arc<Notify>) {
        while let Some(session) = self.session() {
            // A new session has a stream of its own, whether or not the server has ended that of the old one. Boxed, as most of
            // what it needs is of no use to a server that has no such stream, and is dropped then.
            let mut kept = Some(Box::pin(self.keep_up(session)));
            loop {
                let done = async {
                    match &mut kept {
                        Some(kept) => kept.await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    // It may be told of when its stream stands already: the session is there before.
                    () = renewals.notified() => if self.session() != Some(session) { break },
                    done = done => match done {
                        Done::Over => return,
                        Done::Renewed => break,
                        Done::Silent => kept = None,
                    },
                }
            }
        }
    }

    /// The newest session; `None` once the connection is gone.
    fn session(&self) -> Option<Session> {
        self.driver.upgrade().map(|driver| driver.lock().hearing.session())
    }

    /// Keeps up the stream of this session.
    async fn keep_up(&self, kept: Session) -> Done {
        loop {
            // What waits here must not keep the connection.
            let next = self.driver.upgrade().and_then(|driver| driver.next_step());
            let Some(Next { step, session, head }) = next else { return Done::Over };
            if session != kept {
                return Done::Renewed;
            }
            let done = match step {
                Step::Wait(until) => {
                    tokio::time::sleep_until(until.into()).await;
                    Ok(())
                }
                Step::Open => self.read(session, head).await,
                Step::Rest => {
                    // One that answers calls as ever and opens no stream is asked for it once a minute.
                    tokio::time::sleep(REST).await;
                    self.signs.next().await;
                    match self.driver.upgrade().map(|driver| driver.lock().core.is_ready()) {
                        Some(true) => self.read(session, head).await,
                        // A new session is on its way, and ends the waiting.
                        Some(false) => Ok(()),
                        None => Err(Done::Over),
                    }
                }
                Step::Seek => {
                    let sought = self.seek().await;
                    self.hear(|hearing, now| hearing.sought(session, now, sought))
                }
                Step::Nothing => return Done::Silent,
            };
            if let Err(done) = done {
                return done;
            }
        }
    }

    fn hear(&self, input: impl FnOnce(&mut Hearing, Instant) -> Said) -> Result<(), Done> {
        self.driver.upgrade().map(|driver| driver.hear(input)).ok_or(Done::Over)
    }

    /// Asks for a new session, or waits for the one that somebody else asks for.
    async fn seek(&self) -> Sought {
        if let Some(wait) = self.begin_seeking() {
            // Somebody else is at it, and what that brings ends the waiting here; or it was done a moment ago. Others that ask again
            // and again, and in vain, hold it up once.
            tokio::time::sleep(wait).await;
            self.begin_seeking();
        }
        let Some(driver) = self.driver.upgrade() else { return Sought::None(None) };
        // By a task of its own: its call goes on in the new session, which ends the waiting here.
        let seeking = Arc::clone(&driver);
        let (sought, is_sought) = oneshot::channel();
        spawn(&driver.runtime, async move {
            // Nobody waits any more where there is a new session.
            let _ = sought.send(seeking.seek_session().await);
        });
        drop(driver);
        is_sought.await.unwrap_or(Sought::None(None))
    }

    /// Notes that a session is asked for; how long to wait where that was done a moment ago.
    fn begin_seeking(&self) -> Option<Duration> {
        let driver = self.driver.upgrade()?;
        let Link::Http(link) = driver.link() else { return None };
        link.seeking.begin(now()).err()
    }

    /// Reads the standing stream of one session to its end.
    async fn read(&self, session: Session, head: SessionHead) -> Result<(), Done> {
        let mut stream = match self.connection.open_stream(head).await {
            Ok(Some(stream)) => stream,
            Ok(None) => return self.hear(|hearing, now| hearing.ended(session, now, Ended::Absent)),
            Err(error) => return self.hear(|hearing, now| hearing.ended(session, now, Ended::Lost(error))),
        };
        self.hear(|hearing, now| hearing.opened(session, now))?;
        let ended = loop {
            let received = stream.next().await;
            let driver = self.driver.upgrade().ok_or(Done::Over)?;
            match received {
                Ok(Some(Received::Gap)) => driver.hear(|hearing, _| hearing.repaired(session)),
                Ok(Some(received)) => driver.handle(Origin::Channel, received),
                Ok(None) => break Ended::Absent,
                Err(error) => break Ended::Lost(error),
            }
            driver.background_room().await;
        };
        self.hear(|hearing, now| hearing.ended(session, now, ended))
    }
}

impl Driver {
    /// What is next for the reader of the standing stream; `None` once the connection is over.
    fn next_step(&self) -> Option<Next> {
        let state = self.lock();
        let step = match state.hearing.next(now()) {
            // There is no session to open it in, or its handshake is not over: whoever asks for one waits for that.
            Step::Open if !state.core.is_ready() => Step::Seek,
            step => step,
        };
        let head = head(state.core.session_head());
        (!state.core.is_closed()).then_some(Next { step, session: state.hearing.session(), head })
    }

    /// Notes what became of the standing stream, and tells it.
    fn hear(self: &Arc<Self>, input: impl FnOnce(&mut Hearing, Instant) -> Said) {
        self.change(Writes::Later, |state, outbox, now| {
            let said = input(&mut state.hearing, now);
            state.tell(said, outbox, now);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use mcp_proto::Mode;
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::event::ClientEvent;
    use crate::{Client, HttpServer};

    /// Answers as a server with one session does, and says on its stream that the tools changed, each time that it is told to.
    async fn talk(stream: TcpStream, word: Arc<Notify>) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut line, mut first, mut length) = (String::new(), String::new(), 0);
            while stream.read_line(&mut line).await? > 0 && line != "\r\n" {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                first = if first.is_empty() { line.clone() } else { first };
                line.clear();
            }
            if first.is_empty() {
                return Ok(());
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await?;
            if first.starts_with("GET") {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await?;
                loop {
                    word.notified().await;
                    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
                    stream.write_all(format!("data: {changed}\n\n").as_bytes()).await?;
                }
            }
            let message: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let answer = if message["method"] == "initialize" {
                let result = serde_json::json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "s", "version": "1" },
                });
                let body = serde_json::json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
                    .to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\n";
                format!("{head}content-length: {}\r\n\r\n{body}", body.len())
            } else {
                "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned()
            };
            stream.write_all(answer.as_bytes()).await?;
        }
    }

    /// The session is there before it is told of, and the reader may find it by itself.
    #[tokio::test]
    async fn a_stream_that_stands_is_read_on_when_its_session_is_told_of_late() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = HttpServer::new(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let word = Arc::new(Notify::new());
        let says = Arc::clone(&word);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&says)));
            }
        });
        let client = Client::builder("tests", "1.0").mode(Mode::Legacy).connect(server).await.unwrap();
        let mut events = client.events();
        for _ in 0..3 {
            word.notify_one();
            let changed =
                async { while !matches!(events.next().await, Some(ClientEvent::ListChanged(_))) {} };
            tokio::time::timeout(Duration::from_secs(20), changed).await.expect("the stream is read");
            client.driver().renewals.notify_one();
        }
        client.close().await;
    }

    #[test]
    fn a_sign_for_whoever_does_not_wait_any_more_is_none_for_the_next() {
        let signs = Signs::default();
        let is_there = |wait: Pin<&mut dyn Future<Output = ()>>| {
            wait.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        signs.note();
        assert!(!is_there(pin!(signs.next())), "nobody waited");
        signs.note();
        let mut next = pin!(signs.next());
        assert!(!is_there(next.as_mut()));
        signs.note();
        assert!(is_there(next));
    }
}
