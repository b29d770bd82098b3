//! What a call was asked for with.

use mcp_jsonrpc::{ErrorObject, RawJson};

use super::CallOptions;
use crate::cache::Ticket;

/// A call as it was asked for, and what became of it so far.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Option<RawJson>,
    /// `params` with the answers and the state of the newest round, once there was one.
    pub(crate) answered: Option<RawJson>,
    pub(crate) options: CallOptions,
    /// How often the server wanted input.
    pub(crate) rounds: u32,
    /// How often in a row it had nothing to ask.
    pub(crate) paces: u32,
    /// It was made again under another revision.
    pub(crate) revised: bool,
    /// Its headers were refused, and the tools listed again for that.
    pub(crate) relisting: Option<Relisting>,
    /// Allows its result to be kept.
    pub(crate) ticket: Option<Ticket>,
}

impl Asked {
    pub(crate) fn new(method: &str, params: Option<&RawJson>, options: &CallOptions) -> Self {
        Self {
            method: method.to_owned(),
            params: params.cloned(),
            answered: None,
            options: options.clone(),
            rounds: 0,
            paces: 0,
            revised: false,
            relisting: None,
            ticket: None,
        }
    }
}

/// The one time that a call lists the tools again, see `tools`.
#[derive(Debug)]
pub(crate) struct Relisting {
    /// The refusal of its headers.
    pub(crate) mismatch: ErrorObject,
    /// Pages that were asked for.
    pub(crate) pages: u32,
}
