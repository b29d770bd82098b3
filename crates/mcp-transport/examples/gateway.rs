//! The inner part of a gateway, of `mcp-sse` and `mcp-jsonrpc` alone: reads a server's event stream in pieces of whatever size,
//! decodes what is in it, and writes a clean stream for somebody else. What the two do not know is here: that an event without
//! data carries no message, and whose answer a lost event was.
//!
//! ```text
//! cargo run -p mcp-transport --example gateway
//! ```

#![expect(clippy::print_stdout, reason = "a program for the shell")]

use mcp_jsonrpc::{
    DecodeError, DecodeLimits, ErrorCode, ErrorObject, Incoming, Message, RequestId, Shape, decode, encode,
};
use mcp_sse::encode::Block;
use mcp_sse::{Limits, Parser};

type Failure = Box<dyn std::error::Error>;

/// What a server sent in answer to the request 1.
const STREAM: &str = concat!(
    // Primes the client: an id to resume from, and no message.
    "id: s-0\nretry: 2000\ndata:\n\n",
    ": a comment\n\n",
    "id: s-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\ndata: \"params\":{\"progress\":1}}\n\n",
    // Bookkeeping alone: no event comes of it, and the id counts.
    "id: s-2\n\n",
    "data: a line of a log\n\n",
    // Brackets match, so it is an envelope; only who reads the result finds what is wrong in it.
    "id: s-3\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"n\":01}}\n\n",
    "id: s-4\ndata: {\"jsonrpc\":\"2.0\",\"id\":8,\"error\":{\"code\":-32602,\"message\":\"no\",\"data\":[1.50]}}\n\n",
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":NaN}}\n\n",
    // Three lines of data, joined by line feeds: on a line transport the one in the middle would answer the call 10.
    "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"result\":[\ndata: {\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{}}\ndata: ]}\n\n",
);

fn main() -> Result<(), Failure> {
    let too_long =
        format!("id: s-5\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}\n\n", "x".repeat(500));
    let received = format!("{STREAM}{too_long}");
    let mut gateway = Gateway::new(RequestId::from(1));
    for mut piece in received.as_bytes().chunks(7) {
        gateway.read(&mut piece)?;
    }
    // The end of the stream: what is unfinished is dropped, and this is where the next one goes on.
    gateway.parser.reset();
    print!("{}", String::from_utf8_lossy(&gateway.out));
    println!("resume      after {:?}, in {:?}", gateway.parser.last_event_id(), gateway.parser.retry());
    if gateway.out != EXPECTED.as_bytes() || gateway.parser.last_event_id() != "s-5" {
        return Err("another stream than expected".into());
    }
    Ok(())
}

/// What comes of it.
const EXPECTED: &str = concat!(
    "id: s-0\ndata: \n\n",
    "id: s-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n",
    ": left out: not JSON at byte 0\n\n",
    "id: s-3\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"the server's message is broken\"}}\n\n",
    "id: s-4\ndata: {\"jsonrpc\":\"2.0\",\"id\":8,\"error\":{\"code\":-32602,\"message\":\"no\",\"data\":[1.50]}}\n\n",
    ": left out: received JSON is broken: expected value at line 1 column 9\n\n",
    "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"result\":[ {\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{}} ]}\n\n",
    "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"an answer of the server is too large\"}}\n\n",
);

struct Gateway {
    parser: Parser,
    limits: DecodeLimits,
    /// The request that the stream answers.
    request: RequestId,
    out: Vec<u8>,
}

impl Gateway {
    fn new(request: RequestId) -> Self {
        Self {
            // Both are 16 MiB by default.
            parser: Parser::new(Limits::default().with_max_event_data_bytes(400)),
            limits: DecodeLimits::default().with_max_bytes(400),
            request,
            out: Vec::new(),
        }
    }

    fn read(&mut self, piece: &mut &[u8]) -> Result<(), Failure> {
        loop {
            match self.parser.next(piece) {
                Ok(None) => return Ok(()),
                // It has an id to resume from, which is passed on, and nothing to decode.
                Ok(Some(event)) if event.data().is_empty() => {
                    block(event.id()).data("").write(&mut self.out)?;
                }
                Ok(Some(event)) => {
                    let mut message = Vec::new();
                    let broken = match decode(event.data(), &self.limits) {
                        // Anew from its parts: the text as it came may hide a second message, or broken JSON.
                        Ok(Incoming::Single(decoded)) => match encode::message(&mut message, &decoded) {
                            Ok(()) => None,
                            Err(error) => Some((answers(&decoded).cloned(), error.to_string())),
                        },
                        // Revision 2025-03-26 alone has batches.
                        Ok(Incoming::Batch(_)) => continue,
                        Err(error) => Some((answered(&error).cloned(), error.to_string())),
                    };
                    match broken {
                        None => {}
                        Some((Some(id), _)) => refuse(&mut message, &id, "the server's message is broken")?,
                        Some((None, why)) => {
                            mcp_sse::encode::comment(&mut self.out, &format!("left out: {why}"));
                            continue;
                        }
                    }
                    block(event.id()).data(std::str::from_utf8(&message)?).write(&mut self.out)?;
                }
                // The event is lost, and with it whose answer it was; the stream goes on behind it. On a stream that answers one
                // request it is best to end that one, instead of leaving it to its deadline.
                Err(_) => {
                    let mut message = Vec::new();
                    refuse(&mut message, &self.request, "an answer of the server is too large")?;
                    Block::new().data(std::str::from_utf8(&message)?).write(&mut self.out)?;
                }
            }
        }
    }
}

fn block(id: Option<&str>) -> Block<'_> {
    id.map_or_else(Block::new, |id| Block::new().id(id))
}

/// Whose answer it is, if it is one.
fn answers<'m>(message: &'m Message<'_>) -> Option<&'m RequestId> {
    message.id().filter(|_| matches!(message, Message::Response(_) | Message::Error(_)))
}

/// Whose answer it was, if it was one: ids in requests of the server are its own.
fn answered(error: &DecodeError) -> Option<&RequestId> {
    error.id().filter(|_| error.shape() == Shape::Response)
}

fn refuse(out: &mut Vec<u8>, id: &RequestId, why: &str) -> Result<(), Failure> {
    Ok(encode::error(out, Some(id), &ErrorObject::new(ErrorCode::INTERNAL_ERROR, why))?)
}
