//! The types against the official schemas and examples.

mod coverage;
mod examples;
mod leniency;
mod odd;
mod schema;
mod sending;
