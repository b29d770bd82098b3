//! What a message may cost: allocations, peak heap, and heap kept afterwards, counted exactly.
//!
//! `mcp-model` counts what reading its types costs; here are the parsers below it, and the whole way from text to model.

mod counting;
mod json;
mod lines;
mod sse;
