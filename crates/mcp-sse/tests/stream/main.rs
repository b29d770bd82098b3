//! The rules of event streams, as seen through the public interface.

mod cases;
mod conformance;
mod differential;
mod encoding;
mod limits;
mod reconnecting;
mod reference;
// The attribute is for clippy, which allows `panic!` in the helpers of test modules only.
#[cfg(test)]
mod streaming;
