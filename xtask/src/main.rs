//! Build, check, fuzz, benchmark and release tasks.

fn main() {}
