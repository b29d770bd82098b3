//! One message a line, as over stdio, but for many clients: each on a TCP connection of its own.

use std::io::{self, Write};
use std::rc::Rc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::replies::Replies;

pub(crate) fn serve(replies: Replies) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, accept(Rc::new(replies)))
}

async fn accept(replies: Rc<Replies>) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    loop {
        let (stream, _) = listener.accept().await?;
        let replies = Rc::clone(&replies);
        tokio::task::spawn_local(async move {
            // A client that goes away is no fault of the server.
            let _ = answer(stream, &replies).await;
        });
    }
}

async fn answer(stream: TcpStream, replies: &Replies) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await? > 0 {
        if let Some(reply) = replies.reply(&line) {
            writer.write_all(&[&reply[..], b"\n"].concat()).await?;
        }
        line.clear();
    }
    Ok(())
}
