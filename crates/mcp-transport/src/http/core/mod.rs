//! The rules of Streamable HTTP as data and state machines: no socket, no clock, no task.

pub(crate) mod address;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod channel;
pub(crate) mod classify;
pub(crate) mod dropped;
pub(crate) mod encoding;
pub(crate) mod exchange;
pub(crate) mod fault;
pub(crate) mod feed;
pub(crate) mod headers;
pub(crate) mod http_date;
pub(crate) mod listen;
pub(crate) mod lost_session;
pub(crate) mod machine;
pub(crate) mod media;
pub(crate) mod no_proxy;
pub(crate) mod proxy;
pub(crate) mod redirect;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod target;
pub(crate) mod tls_wanted;
