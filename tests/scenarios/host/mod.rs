//! Many servers at once: scripted peers over in-memory pipes in virtual time, child processes, and HTTP.

mod departed_tools;
mod desired;
mod elicitation;
mod fencing;
mod fresh_tools;
mod lifecycle;
mod lists;
mod naming;
mod policies;
mod random;
mod random_policy;
mod random_tools;
mod reconnecting;
mod restoring;
mod runtimes;
mod status;
mod support;
mod transports;
mod wakers;
