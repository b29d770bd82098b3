//! JSON-RPC 2.0 envelopes, ids, error codes, limits and newline framing for the Model Context Protocol.

#![forbid(unsafe_code)]
