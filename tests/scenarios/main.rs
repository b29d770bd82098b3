//! Scenario tests, one module per subject.

#[cfg(test)]
mod client;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod host;
#[cfg(test)]
mod http;
#[cfg(test)]
mod stdio;
