//! The questions of servers, from the wire to whoever answers them and back; in virtual time but for `http`.

mod hostile;
mod http;
mod inbox;
mod limits;
mod listening;
mod orders;
mod routes;
pub(crate) mod support;
mod times;
mod urls;
mod urls_required;
