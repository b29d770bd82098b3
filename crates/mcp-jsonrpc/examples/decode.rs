//! Reads lines from stdin and says in one JSON line each what message it is, or why it is none.
//!
//! ```text
//! $ printf '%s\n' '{"jsonrpc":"2.0","id":7,"method":"ping"}' | cargo run -q -p mcp-jsonrpc --example decode
//! {"kind":"request","id":7,"method":"ping"}
//! ```

use std::io::{self, Read, Write};

use mcp_jsonrpc::{
    DecodeError, DecodeLimits, Incoming, Line, LineDecoder, LineLimits, Message, RequestId, decode_slice,
};
use serde::Serialize;

/// One line of output.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Report<'a> {
    Request { id: Option<&'a RequestId>, method: Option<&'a str> },
    Notification { id: Option<&'a RequestId>, method: Option<&'a str> },
    Response { id: Option<&'a RequestId>, method: Option<&'a str> },
    Error { id: Option<&'a RequestId>, method: Option<&'a str> },
    Batch { items: Vec<Self> },
    Invalid { error: &'static str, message: String, id: Option<&'a RequestId> },
}

impl<'a> From<&'a Message<'_>> for Report<'a> {
    fn from(message: &'a Message<'_>) -> Self {
        let (id, method) = (message.id(), message.method());
        match message {
            Message::Request(_) => Self::Request { id, method },
            Message::Notification(_) => Self::Notification { id, method },
            Message::Response(_) => Self::Response { id, method },
            Message::Error(_) => Self::Error { id, method },
        }
    }
}

impl<'a> From<&'a DecodeError> for Report<'a> {
    fn from(error: &'a DecodeError) -> Self {
        Self::Invalid { error: error.kind().as_str(), message: error.to_string(), id: error.id() }
    }
}

fn report(line: Line<'_>, limits: &DecodeLimits, out: &mut impl Write) -> io::Result<()> {
    let outcome = match line {
        Line::Text(text) => decode_slice(text, limits),
        Line::Oversized { bytes, answer_to, .. } => {
            let message = format!("line of {bytes} bytes exceeds the limit of {}", limits.max_bytes);
            return write_line(out, &Report::Invalid { error: "too_large", message, id: answer_to });
        }
        // Lines of a kind that a later version may add.
        _ => return Ok(()),
    };
    match &outcome {
        Ok(Incoming::Single(message)) => write_line(out, &Report::from(message)),
        Ok(Incoming::Batch(items)) => {
            let items =
                items.iter().map(|item| item.as_ref().map_or_else(Report::from, Report::from)).collect();
            write_line(out, &Report::Batch { items })
        }
        Err(error) => write_line(out, &Report::from(error)),
    }
}

fn write_line(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    out.write_all(b"\n")
}

fn main() -> io::Result<()> {
    let limits = DecodeLimits::default();
    let mut lines = LineDecoder::new(LineLimits::default().with_max_line_bytes(limits.max_bytes));
    let mut input = io::stdin().lock();
    let mut out = io::BufWriter::new(io::stdout().lock());
    loop {
        while let Some(line) = lines.next_line() {
            report(line, &limits, &mut out)?;
        }
        out.flush()?;
        match input.read(lines.spare())? {
            0 => break,
            bytes => lines.commit(bytes),
        }
    }
    if let Some(line) = lines.finish() {
        report(line, &limits, &mut out)?;
    }
    out.flush()
}
