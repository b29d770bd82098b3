//! What the modern era (2026-07-28) puts on each message: everything that a server needs to know, because it remembers
//! nothing.

use mcp_jsonrpc::RawJson;
use mcp_model::{MetaObject, ProtocolVersion, methods};
use serde::Deserialize;

use crate::connection::Connection;
use crate::era::Wire;
use crate::error::Misuse;
use crate::transmit::{Head, Routing};

impl Connection {
    /// Makes the members of `_meta` that every request under this revision carries, once for all of them.
    pub(crate) fn prepare_meta(&mut self, version: ProtocolVersion) -> Result<(), Misuse> {
        if self.meta.as_ref().is_none_or(|(made_for, _)| *made_for != version) {
            let client_info = self.config.send_client_info.then_some(&self.config.client_info);
            let meta = MetaObject::for_request(version, &self.config.capabilities(), client_info)
                .map_err(|_| Misuse::Unserializable)?;
            self.meta = Some((version, meta));
        }
        Ok(())
    }

    /// What a transport repeats of a message under this revision.
    pub(crate) fn modern_head(
        &self,
        version: ProtocolVersion,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<Head, Misuse> {
        let mut head = Head { protocol_version: Some(version), routing: None };
        if self.config.wire == Wire::Exchanges {
            let name = params.and_then(|params| routing_name(method, params));
            let routing = Routing { method: method.to_owned(), name, params: Vec::new() };
            head.routing = Some(Box::new(routing));
        }
        Ok(head)
    }
}

/// What `Mcp-Name` repeats of the params of this method.
fn routing_name(method: &str, params: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        name: Option<String>,
        uri: Option<String>,
        task_id: Option<String>,
    }
    let named = || params.parse::<Named>().ok();
    match method {
        methods::TOOLS_CALL | methods::PROMPTS_GET => named()?.name,
        methods::RESOURCES_READ => named()?.uri,
        methods::TASKS_GET | methods::TASKS_UPDATE | methods::TASKS_CANCEL => named()?.task_id,
        _ => None,
    }
}
