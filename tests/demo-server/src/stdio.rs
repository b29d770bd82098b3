//! One session over newline-delimited JSON.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::message::{self, INVALID_REQUEST, Refusal};
use crate::session::{Reply, Session};
use crate::{Era, Limits};

/// Serves this process's own stdin and stdout until stdin ends. Nothing else may write to stdout meanwhile.
///
/// # Errors
/// What reading stdin or writing stdout gave.
pub async fn serve_stdio_process() -> io::Result<()> {
    serve_stdio(tokio::io::stdin(), tokio::io::stdout()).await
}

/// The same for clients of 2026-07-28.
///
/// # Errors
/// What reading stdin or writing stdout gave.
pub async fn serve_modern_stdio_process() -> io::Result<()> {
    serve(tokio::io::stdin(), tokio::io::stdout(), Era::Modern, Limits::default()).await
}

/// Serves one session over a pair of byte streams until `reader` ends. Calls that run then are cancelled.
///
/// Dropping the future cancels them too; `writer` may then hold half a message.
///
/// # Errors
/// What reading or writing gave.
pub async fn serve_stdio<R, W>(reader: R, writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve(reader, writer, Era::Legacy, Limits::default()).await
}

/// Serves notes that change, in place of the four tools, to one client of 2025-11-25 over a pair of byte streams: a tool writes them,
/// each is a resource, and the list of tools grows with the first.
///
/// # Errors
/// What reading or writing gave.
pub async fn serve_notebook<R, W>(reader: R, writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    converse(reader, writer, Session::with_notebook(Era::Legacy, Limits::default())).await
}

/// The same for a client of 2026-07-28.
///
/// # Errors
/// What reading or writing gave.
pub async fn serve_modern_notebook<R, W>(reader: R, writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    converse(reader, writer, Session::with_notebook(Era::Modern, Limits::default())).await
}

pub(crate) async fn serve<R, W>(reader: R, writer: W, era: Era, limits: Limits) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    converse(reader, writer, Session::new(era, limits)).await
}

async fn converse<R, W>(reader: R, writer: W, session: Arc<Session>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let limits = *session.limits();
    let _closing = CloseOnDrop(&session);
    let (outlet, queue) = mpsc::channel(limits.queued_messages);
    let serving = Arc::clone(&session);
    let reading = async move {
        let mut lines =
            Lines { reader: BufReader::new(reader), line: Vec::new(), limit: limits.message_bytes };
        while let Some(line) = lines.next().await? {
            let reply = match line {
                Line::Oversized => {
                    let text = format!("a message may have {} bytes", limits.message_bytes);
                    Reply::Now(Refusal::new(INVALID_REQUEST, text).response(&Value::Null))
                }
                Line::Whole(text) if text.trim_ascii().is_empty() => continue,
                Line::Whole(text) => match message::read(text) {
                    Ok(incoming) => serving.handle(incoming, &outlet),
                    Err((id, refusal)) => Reply::Now(refusal.response(&id)),
                },
            };
            if let Reply::Now(answer) = reply
                && outlet.send(answer).await.is_err()
            {
                break;
            }
        }
        Ok::<(), io::Error>(())
    };
    let mut writing = pin!(write(writer, queue));
    tokio::select! {
        read = reading => read?,
        written = &mut writing => return written,
    }
    // Answers that were ready when the input ended are still delivered, to a client that still reads.
    session.close();
    tokio::time::timeout(limits.request_wait, writing).await.unwrap_or(Ok(()))
}

struct CloseOnDrop<'a>(&'a Session);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut queue: mpsc::Receiver<Value>) -> io::Result<()> {
    while let Some(message) = queue.recv().await {
        // Compact JSON text holds no raw newline.
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        writer.write_all(&line).await?;
        writer.flush().await?;
    }
    Ok(())
}

enum Line<'a> {
    Oversized,
    Whole(&'a [u8]),
}

struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    limit: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// The next line without its end, `None` at the end of the input. An unfinished last line is dropped.
    async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut oversized = false;
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if self.line.len() + part.len() > self.limit {
                oversized = true;
                self.line.clear();
            } else if !oversized {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(if oversized { Line::Oversized } else { Line::Whole(&self.line) }));
            }
        }
    }
}
