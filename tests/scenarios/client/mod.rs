//! The facade against a scripted peer over an in-memory pipe, in virtual time: the clock moves only when everybody waits.

mod calls;
mod care;
mod eras;
mod extensions;
mod floods;
mod fresh_lists;
mod hostile;
mod http;
mod lifecycle;
mod lists;
mod order;
mod outcomes;
pub(crate) mod peer;
mod questions;
mod queues;
mod retries;
mod runtimes;
mod schema;
mod secrets;
mod skills;
mod stuck;
mod tasks;
mod tasks_http;
mod tasks_legacy;
mod tls;
mod wakers;
mod wire;
