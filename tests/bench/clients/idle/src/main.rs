//! Connects many clients to one server, waits until nothing happens any more, and says what each of them costs.
//!
//! `bench-idle SERVER CONNECTIONS SECONDS lines|requests|streams`: one message a line over a socket, HTTP without a standing stream, HTTP
//! with one. Linux only, as what a process costs is read from its `/proc`.

mod process;
mod server;

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, HttpServer, LineConnection};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use process::{Wakeups, raise_file_limit, resident_bytes, wakeups};
use server::Server;

/// Clients that connect at the same time.
const AT_ONCE: usize = 32;
/// The threads of the runtime, as many as the machine of the other figures has.
const THREADS: usize = 2;
/// How long it may take until nothing happens: idle sockets are closed after 4 s.
const MOST_SECONDS_UNTIL_QUIET: u32 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, connections, seconds, kind] = words.as_slice() else {
        return Err(
            "give the server, a number of connections, seconds, and lines, requests or streams".into()
        );
    };
    let (connections, seconds): (usize, u64) = (connections.parse()?, seconds.parse()?);
    raise_file_limit();
    let server = Server::start(server, kind)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    // What is there once, whatever the number of connections.
    runtime.block_on(async {
        let client = connect(&server.address, kind).await?;
        client.close().await;
        Ok::<(), String>(())
    })?;
    let before = resident_bytes()?;
    let clients = connect_all(&runtime, connections, &server.address, kind)?;
    let connected = resident_bytes()?;
    let waited = wait_until_quiet()?;
    let quiet = resident_bytes()?;
    let start = wakeups()?;
    sleep(Duration::from_secs(seconds));
    let Wakeups { switches, ran } = wakeups()?.since(start);
    // Nobody is idle because it is dead.
    if let Some(dead) = clients.iter().position(Client::is_closed) {
        return Err(format!("connection {dead} did not last").into());
    }
    let each = |bytes: usize| bytes.saturating_sub(before) as f64 / connections as f64 / 1e3;
    let report = json!({
        "connections": clients.len(),
        "resident_kb_each_when_connected": each(connected),
        "resident_kb_each": each(quiet),
        "seconds_until_quiet": waited,
        "seconds": seconds,
        "wakeups": switches,
        "cpu_us": ran.as_secs_f64() * 1e6,
    });
    println!("{report}");
    Ok(())
}

/// Waits for a second in which no thread of the runtime woke up.
fn wait_until_quiet() -> Result<u32, Box<dyn Error>> {
    let mut last = wakeups()?;
    for second in 1..=MOST_SECONDS_UNTIL_QUIET {
        sleep(Duration::from_secs(1));
        let now = wakeups()?;
        // A pause before the sockets are closed is not the end of it.
        if now.since(last).switches == 0 && second > 6 {
            return Ok(second);
        }
        last = now;
    }
    Ok(MOST_SECONDS_UNTIL_QUIET)
}

fn connect_all(runtime: &Runtime, count: usize, address: &str, kind: &str) -> Result<Vec<Client>, String> {
    runtime.block_on(async {
        let mut connecting = JoinSet::new();
        let mut clients = Vec::with_capacity(count);
        for started in 0..count {
            if started >= AT_ONCE {
                clients.push(next(&mut connecting).await?);
            }
            let (address, kind) = (address.to_owned(), kind.to_owned());
            connecting.spawn(async move { connect(&address, &kind).await });
        }
        while !connecting.is_empty() {
            clients.push(next(&mut connecting).await?);
        }
        Ok(clients)
    })
}

async fn next(connecting: &mut JoinSet<Result<Client, String>>) -> Result<Client, String> {
    match connecting.join_next().await {
        Some(Ok(connected)) => connected,
        Some(Err(error)) => Err(error.to_string()),
        None => Err("nothing is under way".to_owned()),
    }
}

/// Connects, and makes one call, as whoever connects to a server does.
async fn connect(address: &str, kind: &str) -> Result<Client, String> {
    let builder = Client::builder("bench", env!("CARGO_PKG_VERSION"));
    let client = if kind == "lines" {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let (reader, writer) = stream.into_split();
        let connection = LineConnection::from_io(reader, writer, LineLimits::default());
        builder.connect(connection.map_err(|error| error.to_string())?).await
    } else {
        let server = HttpServer::new(address).map_err(|error| error.to_string())?;
        builder.connect(server).await
    };
    let client = client.map_err(|error| error.to_string())?;
    client.call_tool("blob", json!({ "size": 100 })).await.map_err(|error| error.to_string())?;
    Ok(client)
}
