//! The server on loopback: a thread a connection. Prints its port, and ends when its standard input does.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::replies::{Asked, Dice, list_changed};

/// Longer than the clients wait for a call.
const STALL: Duration = Duration::from_millis(1500);

/// Between two changes that a subscription is told of.
const BETWEEN_CHANGES: Duration = Duration::from_millis(20);

static QUESTIONS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn run() -> ExitCode {
    let listener = match TcpListener::bind(("127.0.0.1", 0)) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("soak: {error}");
            return ExitCode::FAILURE;
        }
    };
    match listener.local_addr() {
        Ok(address) => println!("{}", address.port()),
        Err(error) => {
            eprintln!("soak: {error}");
            return ExitCode::FAILURE;
        }
    }
    thread::spawn(move || {
        for (number, stream) in (1..).zip(listener.incoming()) {
            if let Ok(stream) = stream {
                // A connection that breaks is the client's doing or a fault of ours.
                thread::spawn(move || converse(stream, Dice::new(number * 7919)));
            }
        }
    });
    let mut sink = Vec::new();
    let _ = io::stdin().read_to_end(&mut sink);
    ExitCode::SUCCESS
}

struct Request {
    method: String,
    body: Vec<u8>,
}

fn read(from: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(Request { method, body }))
}

fn converse(stream: TcpStream, mut dice: Dice) -> io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut from = BufReader::new(stream);
    while let Some(request) = read(&mut from)? {
        match request.method.as_str() {
            "POST" => {}
            "DELETE" => {
                respond(&mut out, "200 OK", "", b"")?;
                continue;
            }
            _ => {
                respond(&mut out, "405 Method Not Allowed", "", b"")?;
                continue;
            }
        }
        let Some(asked) = Asked::read(&request.body) else {
            return respond(&mut out, "400 Bad Request", "", b"");
        };
        if asked.is("subscriptions/listen") {
            // It has a response of its own, and with it the connection.
            return tell(&mut out, &asked, &mut dice);
        }
        let Some(answer) = asked.answer(&mut dice) else {
            respond(&mut out, "202 Accepted", "", b"")?;
            continue;
        };
        if asked.is_tool_call() && dice.fault() {
            match fault(&mut out, &asked, &answer, dice.below(9))? {
                true => continue,
                false => return out.shutdown(Shutdown::Both),
            }
        }
        if asked.method.as_deref() == Some("initialize") {
            respond(
                &mut out,
                "200 OK",
                "content-type: application/json\r\nmcp-session-id: soak\r\n",
                answer.as_bytes(),
            )?;
        } else if dice.below(2) == 0 {
            respond(&mut out, "200 OK", "content-type: application/json\r\n", answer.as_bytes())?;
        } else {
            stream_answer(&mut out, &asked, &answer, &mut dice)?;
        }
    }
    Ok(())
}

fn respond(out: &mut TcpStream, status: &str, head: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{head}content-length: {}\r\n\r\n", body.len());
    out.write_all(&[head.as_bytes(), body].concat())
}

fn stream_answer(out: &mut TcpStream, asked: &Asked, answer: &str, dice: &mut Dice) -> io::Result<()> {
    let mut body = String::from(": hello\n\n");
    let mut event = |data: &str| body += &format!("event: message\ndata: {data}\n\n");
    if let Some(progress) = asked.progress(1) {
        event(&progress);
    }
    if let Some(aside) = asked.aside(dice, QUESTIONS.fetch_add(1, Ordering::Relaxed)) {
        event(&aside);
    }
    event(answer);
    respond(out, "200 OK", "content-type: text/event-stream\r\n", body.as_bytes())
}

/// Tells of some changes, and then breaks off or ends the subscription on purpose.
fn tell(out: &mut TcpStream, asked: &Asked, dice: &mut Dice) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    out.write_all(head.as_bytes())?;
    let mut event = |data: &str| {
        let text = format!("data: {data}\n\n");
        out.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    };
    event(&asked.granted())?;
    for _ in 0..dice.below(200) {
        // Fails when the client has gone.
        event(&list_changed(asked.id.as_ref()))?;
        thread::sleep(BETWEEN_CHANGES);
    }
    if dice.below(2) == 0 {
        event(&asked.ended())?;
        out.write_all(b"0\r\n\r\n")?;
    }
    out.shutdown(Shutdown::Both)
}

/// Goes wrong in one way. Whether the connection can be used on.
fn fault(out: &mut TcpStream, asked: &Asked, answer: &str, kind: u64) -> io::Result<bool> {
    const JSON: &str = "content-type: application/json\r\n";
    const EVENTS: &str = "content-type: text/event-stream\r\n";
    match kind {
        0 => Ok(false),
        1 => {
            let half = answer.get(..answer.len() / 2).unwrap_or_default();
            let head = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n{half}", answer.len());
            out.write_all(head.as_bytes()).map(|()| false)
        }
        2 => respond(out, "503 Service Unavailable", "", b"busy").map(|()| true),
        3 => {
            thread::sleep(STALL);
            Ok(false)
        }
        4 => respond(out, "200 OK", JSON, b"{\"jsonrpc\":").map(|()| true),
        5 => respond(out, "200 OK", JSON, asked.misdirected().as_bytes()).map(|()| true),
        6 => respond(out, "200 OK", "content-type: text/html\r\n", b"<html>").map(|()| true),
        7 => respond(out, "200 OK", EVENTS, b"data: {}\n\n: the end\n\n").map(|()| true),
        _ => respond(out, "404 Not Found", "", b"").map(|()| true),
    }
}
