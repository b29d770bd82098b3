//! Model Context Protocol transports: stdio and Streamable HTTP.

#![forbid(unsafe_code)]
