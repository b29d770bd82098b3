//! Measures a client without knowing it: a client implements [`Caller`], everything else is here, the same for all.

mod args;
mod load;
mod process;
mod report;
mod server;

use std::future::Future;

pub use args::Args;
pub use load::{Measured, load};
pub use report::report;
pub use server::HttpServer;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A small request, `size` bytes of text back.
    Blob,
    /// `size` bytes of text there and back.
    Echo,
    /// `tools/list`, of `size` tools.
    List,
    /// A small request, `size` bytes of `structuredContent` back, read into a value.
    Struct,
    /// The same, left as raw JSON.
    StructRaw,
}

/// A connected client.
pub trait Caller: Send + Sync + 'static {
    /// Makes one call and returns how much came back: bytes of text, or tools, or 1 for a structured result.
    fn call(&self, op: Op, size: usize, text: &str) -> impl Future<Output = Result<usize, String>> + Send;
}
