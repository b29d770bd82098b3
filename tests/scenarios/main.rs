//! Scenario tests, one module per subject.

#[cfg(test)]
mod client;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod elicitation;
#[cfg(test)]
mod host;
#[cfg(test)]
pub(crate) mod http;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod wakers;
