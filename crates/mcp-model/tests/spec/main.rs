//! The types against the official schemas and examples.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "shared test code that fails fails its test"
)]

mod asked;
mod confidential;
mod coverage;
mod declared;
mod examples;
mod json;
mod leniency;
mod odd;
mod schema;
mod sending;
