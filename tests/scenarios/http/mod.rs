//! Streamable HTTP against servers that are scripted byte for byte.

mod care;
mod credentials;
mod hostile;
mod legacy;
mod listen;
mod many;
mod posts;
mod proxy;
mod redirects;
pub(crate) mod resume;
pub(crate) mod script;
mod sse_channel;
mod support;
pub(crate) mod tls;
