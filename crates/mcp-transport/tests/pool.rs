//! What an idle connection holds on to.
#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use bytes::Bytes;
use mcp_transport::http::{HttpServer, Post, RequestHead};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A task's waker, to be counted, in front of that of the test.
struct Counted(Mutex<Waker>);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().wake_by_ref();
    }
}

/// Answers every request on one connection with 202, and says how many there were.
async fn accept_all(listener: TcpListener) -> usize {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (mut requests, mut received, mut piece) = (0, Vec::new(), [0; 1024]);
    loop {
        let read = stream.read(&mut piece).await.unwrap();
        if read == 0 {
            return requests;
        }
        received.extend_from_slice(piece.get(..read).unwrap());
        if received.ends_with(b"{}") {
            received.clear();
            requests += 1;
            stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    }
}

/// A waker keeps all the memory of its task: a thousand idle connections must not keep that of a thousand tasks that have ended.
#[tokio::test]
async fn an_idle_connection_holds_no_task_and_is_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(accept_all(listener));
    let connection = HttpServer::new(&url).unwrap().connect();
    for _ in 0..2 {
        let counted = Arc::new(Counted(Mutex::new(Waker::noop().clone())));
        let waker = Waker::from(Arc::clone(&counted));
        let mut posting = pin!(async {
            let post = Post::notification(Bytes::from_static(b"{}"), RequestHead::default());
            let mut exchange = connection.post(post).await.unwrap();
            assert!(exchange.next().await.unwrap().is_none());
        });
        poll_fn(|cx| {
            counted.0.lock().unwrap().clone_from(cx.waker());
            posting.as_mut().poll(&mut Context::from_waker(&waker))
        })
        .await;
        drop(waker);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
    drop(connection);
    assert_eq!(server.await.unwrap(), 2);
}
