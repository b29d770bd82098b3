//! What the fuzz targets do, as functions of bytes: they compile in normal builds, and `cargo test` replays the corpora through
//! them.
//!
//! A body panics when the code under test is wrong. [`TARGETS`] names every one; a file in `fuzz_targets/` of the same name hands
//! it to libFuzzer, and `corpus/<name>/` holds the inputs that are worth keeping: one for each case of the grammar, and one for
//! each mistake that was ever found.

/// Runs one input.
pub type Body = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Body)] = &[];
