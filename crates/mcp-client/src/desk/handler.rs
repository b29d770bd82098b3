//! Type-erased elicitation handlers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicitation::ElicitRequest;

use crate::elicitation::{ElicitReply, ElicitationContext, ElicitationHandler, ErasedHandler};

/// A type-erased [`ElicitationHandler`], cheap to clone, to be kept in maps and passed around.
#[derive(Clone)]
pub struct AnyElicitationHandler {
    handler: Arc<dyn ErasedHandler>,
    timeout: Option<Duration>,
}

impl AnyElicitationHandler {
    /// Wraps a handler.
    pub fn new(handler: impl ElicitationHandler) -> Self {
        let timeout = handler.timeout();
        Self { handler: Arc::new(handler), timeout }
    }

    /// The time that a question may stay open once this handler has it, in place of that of the connection or the desk. Then
    /// it ends as `cancel`. See [`ElicitationHandler::timeout`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl ElicitationHandler for AnyElicitationHandler {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitReply> + Send {
        self.handler.elicit(request, context)
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

impl fmt::Debug for AnyElicitationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyElicitationHandler").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
