//! What a message may cost: allocations, peak heap, and heap kept afterwards, counted exactly.
//!
//! `mcp-model` counts what reading its types costs; here are the parsers below it, and the whole way from text to model.

#[cfg(test)]
mod counting;
#[cfg(test)]
mod json;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod sse;
