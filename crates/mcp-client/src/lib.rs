//! A client for the Model Context Protocol: bounded, safe by default, over stdio and Streamable HTTP.

#![forbid(unsafe_code)]
