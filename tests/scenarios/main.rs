//! Scenario tests, one module per subject.
