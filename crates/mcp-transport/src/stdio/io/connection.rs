//! The connection before it is split.

use std::fmt;

use std::sync::Arc;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
};

use super::{
    BoxRead, BoxWrite, LineReceiver, LineSender,
    keeper::{Keeper, KeptProcess},
    shared::Shared,
};
use crate::{
    Error, ErrorKind,
    stdio::{CloseWaits, LineLimits},
};

/// A connection that carries one JSON-RPC message a line.
///
/// A child process behind its standard input and output ([`StdioServer::spawn`](crate::stdio::StdioServer::spawn)) is one
/// use; any byte stream will do ([`from_io`](Self::from_io)): a Unix socket, TCP, an in-memory duplex in tests.
///
/// One background task belongs to each connection. It finishes writes whose senders were dropped, drains standard error,
/// waits for the process and carries out closing; while nothing happens it does not run.
pub struct LineConnection {
    sender: LineSender,
    receiver: LineReceiver,
}

/// The ends of a process's pipes, and the process.
pub(crate) struct Spawned {
    pub(crate) output: BoxRead,
    pub(crate) input: BoxWrite,
    pub(crate) process: KeptProcess,
}

impl LineConnection {
    /// A connection over any byte stream.
    ///
    /// Closing ends the write half (flushed and shut down), then waits `exit` of the `CloseWaits` (2 s) for the peer to end its own;
    /// [`from_io_with`](Self::from_io_with) takes other waits.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` outside a tokio runtime.
    pub fn from_io(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        limits: LineLimits,
    ) -> Result<Self, Error> {
        Self::from_io_with(reader, writer, limits, CloseWaits::default())
    }

    /// [`from_io`](Self::from_io) with waits for closing.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` outside a tokio runtime.
    pub fn from_io_with(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        limits: LineLimits,
        waits: CloseWaits,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(Box::new(writer), true, limits.max_queued_bytes));
        Self::start(shared, Box::new(reader), &limits, waits, None, &runtime()?)
    }

    pub(crate) fn from_process(
        spawned: Spawned,
        limits: &LineLimits,
        waits: CloseWaits,
        runtime: &Handle,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(spawned.input, false, limits.max_queued_bytes));
        Self::start(shared, spawned.output, limits, waits, Some(spawned.process), runtime)
    }

    fn start(
        shared: Arc<Shared>,
        output: BoxRead,
        limits: &LineLimits,
        waits: CloseWaits,
        process: Option<KeptProcess>,
        runtime: &Handle,
    ) -> Result<Self, Error> {
        let mut keeper = Keeper::new(Arc::clone(&shared), waits, process);
        runtime.spawn(std::future::poll_fn(move |cx| keeper.poll(cx)));
        Ok(Self {
            sender: LineSender::new(Arc::clone(&shared)),
            receiver: LineReceiver::new(shared, output, limits),
        })
    }

    /// The two halves. The connection is closed when either is dropped (the sender: its last clone).
    pub fn split(self) -> (LineSender, LineReceiver) {
        (self.sender, self.receiver)
    }
}

impl fmt::Debug for LineConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineConnection").finish_non_exhaustive()
    }
}

/// The runtime we are in.
pub(crate) fn runtime() -> Result<Handle, Error> {
    Handle::try_current().map_err(|error| {
        Error::new(ErrorKind::Misuse, "a connection needs a tokio runtime").with_source(error)
    })
}
