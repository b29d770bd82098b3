//! Which server, and which of its tools.

use std::fmt;
use std::sync::Arc;

use mcp_transport::Untrusted;

/// How much of a name is shown, in bytes.
const MAX_SHOWN_NAME: usize = 128;

/// Which of many servers an error is about, and which of its tools.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Option<Arc<str>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "tool {} of ", Untrusted::new(tool, MAX_SHOWN_NAME).quoted())?;
        }
        write!(f, "server {}", Untrusted::new(&self.server, MAX_SHOWN_NAME).quoted())
    }
}
