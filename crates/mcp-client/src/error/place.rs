//! What an error is about: a server, and of a call its method and tool.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use mcp_transport::Untrusted;

use super::cause::Cause;

/// How much of a name is shown, in bytes.
const MAX_SHOWN_NAME: usize = 128;

/// A server, as errors name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerLabel {
    /// By the name that the application gave it.
    Name(Arc<str>),
    /// By what may be shown of what the application connected to.
    Endpoint(Arc<str>),
}

/// What was called.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) method: Cow<'static, str>,
    /// The tool, where it is the call of one and that is known.
    pub(crate) tool: Option<Arc<str>>,
}

/// What an error is about, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) server: Option<ServerLabel>,
    pub(super) called: Option<Called>,
}

impl ServerLabel {
    /// The name that the application gave it.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Name(name) => Some(name),
            Self::Endpoint(_) => None,
        }
    }
}

impl Place {
    pub(super) fn is_known(&self) -> bool {
        self.server.is_some() || self.called.is_some()
    }

    /// What there is to say before this cause, which may say by itself where it could not get to.
    pub(super) fn beside(&self, cause: &Cause) -> Self {
        let is_said = |server: &ServerLabel| match server {
            ServerLabel::Name(_) => false,
            ServerLabel::Endpoint(endpoint) => {
                // As the transport says it: a program in quotes, a host with its port.
                let said = match endpoint.split_once("://") {
                    Some((_, authority)) if authority.contains(':') => authority.to_owned(),
                    Some((_, host)) => format!("{host}:"),
                    None => format!("\"{endpoint}\""),
                };
                cause.unreached().is_some_and(|text| text.contains(&said))
            }
        };
        Self { server: self.server.clone().filter(|server| !is_said(server)), called: self.called.clone() }
    }
}

/// A method: in quotes where it is not written like one of the specification, as those of an application may be anything.
pub(super) fn shown_method(method: &str) -> Untrusted<'_> {
    let shown = Untrusted::new(method, MAX_SHOWN_NAME);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-.$".contains(&byte);
    if method.bytes().all(is_plain) { shown } else { shown.quoted() }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text| Untrusted::new(text, MAX_SHOWN_NAME).quoted();
        match &self.called {
            Some(Called { tool: Some(tool), .. }) => write!(f, "tool {}", quoted(tool))?,
            Some(Called { method, .. }) => shown_method(method).fmt(f)?,
            None => {}
        }
        let Some(ServerLabel::Name(server) | ServerLabel::Endpoint(server)) = &self.server else {
            return Ok(());
        };
        f.write_str(if self.called.is_some() { " of " } else { "" })?;
        write!(f, "server {}", quoted(server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// auth:SEC-15
    #[test]
    fn an_error_is_told_by_tool_or_method_and_by_server() {
        let check = |method: Option<&'static str>,
                     tool: Option<&str>,
                     server: Option<&str>,
                     expected: &str| {
            let called =
                method.map(|method| Called { method: Cow::Borrowed(method), tool: tool.map(Arc::from) });
            for label in [ServerLabel::Name, ServerLabel::Endpoint] {
                let place =
                    Place { server: server.map(|server| label(Arc::from(server))), called: called.clone() };
                assert_eq!(place.to_string(), expected);
            }
        };
        check(None, None, Some("files"), "server \"files\"");
        check(Some("tools/call"), Some("read"), Some("files"), "tool \"read\" of server \"files\"");
        check(Some("tools/call"), Some("read"), None, "tool \"read\"");
        check(Some("tools/list"), None, Some("files"), "tools/list of server \"files\"");
        check(Some("ping"), None, None, "ping");
        check(Some("a\nb"), None, Some("\"; all is well"), "\"a\\nb\" of server \"\\\"; all is well\"");
        assert!(!Place::default().is_known());
    }

    #[tokio::test]
    async fn a_message_that_names_the_endpoint_is_not_told_where_it_happened() {
        let check = |label: fn(Arc<str>) -> ServerLabel, cause: &Cause, expected: &str| {
            let place = Place { server: Some(label(Arc::from("/no/such"))), called: None };
            assert_eq!(place.beside(cause).to_string(), expected, "{cause}");
        };
        let missing = mcp_transport::stdio::StdioServer::new("/no/such").spawn().unwrap_err();
        let unreached = Cause::Transport(missing);
        check(ServerLabel::Endpoint, &unreached, "");
        // What the server says may be anything.
        let object = mcp_jsonrpc::ErrorObject::new(mcp_jsonrpc::ErrorCode::new(1), "program \"/no/such\"");
        check(ServerLabel::Endpoint, &Cause::Call(mcp_proto::CallError::Rpc(object)), "server \"/no/such\"");
        let place = Place { server: Some(ServerLabel::Endpoint(Arc::from("http://program"))), called: None };
        assert_eq!(place.beside(&unreached).to_string(), "server \"http://program\"");
        // A name is the application's own word.
        check(ServerLabel::Name, &unreached, "server \"/no/such\"");
    }

    /// A connector that asks another server where this one is.
    #[cfg(feature = "host")]
    #[test]
    fn the_error_of_a_client_within_a_connector_is_a_cause_and_names_no_server_of_the_host() {
        use super::super::Error;

        let vault = ServerLabel::Name(Arc::from("vault"));
        let inner = Error::timed_out(std::time::Duration::from_secs(2)).at(Some(&vault));
        let error = Error::no_endpoint(Box::new(inner)).at(Some(&ServerLabel::Name(Arc::from("files"))));
        assert_eq!(error.server_name(), Some("files"));
        let shown = "server \"files\": the connector of the application failed; cause: server \"vault\": no answer within 2s";
        assert_eq!(error.report().to_string(), shown);
    }
}
