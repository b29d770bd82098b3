//! Scenario tests, one module per subject.

#[cfg(test)]
mod http;
#[cfg(test)]
mod stdio;
