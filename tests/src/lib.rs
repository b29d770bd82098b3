//! Scenario tests of the workspace live in `scenarios/`. Here only the README's example is compiled.

#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
struct Readme;
