//! The data types of the Model Context Protocol specification, every revision readable.

#![forbid(unsafe_code)]
