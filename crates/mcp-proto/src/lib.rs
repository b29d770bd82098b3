//! The Model Context Protocol client as a state machine without I/O: lifecycle, correlation, deadlines, cancellation.

#![forbid(unsafe_code)]
