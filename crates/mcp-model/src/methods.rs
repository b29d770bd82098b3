//! The names of every method of the specification and of its tasks extension.

mod standing;

pub use self::standing::{Standing, standing};

macro_rules! methods {
    ($( $(#[$attribute:meta])* $name:ident = $text:literal, )+) => {
        $( $(#[$attribute])* pub const $name: &str = $text; )+

        /// Every name in this module.
        pub const ALL: &[&str] = &[$( $name, )+];
    };
}

methods! {
    /// Client to server, legacy: begins the handshake.
    INITIALIZE = "initialize",
    /// Both ways, legacy: checks whether the peer responds.
    PING = "ping",
    /// Client to server, modern: requests supported versions and capabilities.
    SERVER_DISCOVER = "server/discover",
    /// Client to server.
    TOOLS_LIST = "tools/list",
    /// Client to server.
    TOOLS_CALL = "tools/call",
    /// Client to server.
    RESOURCES_LIST = "resources/list",
    /// Client to server.
    RESOURCES_TEMPLATES_LIST = "resources/templates/list",
    /// Client to server.
    RESOURCES_READ = "resources/read",
    /// Client to server, legacy.
    RESOURCES_SUBSCRIBE = "resources/subscribe",
    /// Client to server, legacy.
    RESOURCES_UNSUBSCRIBE = "resources/unsubscribe",
    /// Client to server.
    PROMPTS_LIST = "prompts/list",
    /// Client to server.
    PROMPTS_GET = "prompts/get",
    /// Client to server.
    COMPLETION_COMPLETE = "completion/complete",
    /// Client to server, legacy.
    LOGGING_SET_LEVEL = "logging/setLevel",
    /// Client to server, modern: opens a stream of change notifications.
    SUBSCRIPTIONS_LISTEN = "subscriptions/listen",
    /// 2025-11-25 both ways; tasks extension client to server.
    TASKS_GET = "tasks/get",
    /// 2025-11-25 both ways: waits for the result of a task.
    TASKS_RESULT = "tasks/result",
    /// 2025-11-25 both ways.
    TASKS_LIST = "tasks/list",
    /// 2025-11-25 both ways; tasks extension client to server.
    TASKS_CANCEL = "tasks/cancel",
    /// Tasks extension, client to server: sends the input that a task requires.
    TASKS_UPDATE = "tasks/update",
    /// Server to client; modern servers embed it in `inputRequests`.
    ROOTS_LIST = "roots/list",
    /// Server to client; modern servers embed it in `inputRequests`.
    SAMPLING_CREATE_MESSAGE = "sampling/createMessage",
    /// Server to client (2025-06-18 and later); modern servers embed it in `inputRequests`.
    ELICITATION_CREATE = "elicitation/create",
    /// Client to server, legacy: ends the handshake.
    NOTIFICATIONS_INITIALIZED = "notifications/initialized",
    /// Both ways; modern over stdio, and from servers only for `subscriptions/listen`.
    NOTIFICATIONS_CANCELLED = "notifications/cancelled",
    /// Legacy both ways; modern from the server.
    NOTIFICATIONS_PROGRESS = "notifications/progress",
    /// Server to client: a log message.
    NOTIFICATIONS_MESSAGE = "notifications/message",
    /// Server to client.
    NOTIFICATIONS_TOOLS_LIST_CHANGED = "notifications/tools/list_changed",
    /// Server to client.
    NOTIFICATIONS_PROMPTS_LIST_CHANGED = "notifications/prompts/list_changed",
    /// Server to client.
    NOTIFICATIONS_RESOURCES_LIST_CHANGED = "notifications/resources/list_changed",
    /// Server to client: a resource has changed.
    NOTIFICATIONS_RESOURCES_UPDATED = "notifications/resources/updated",
    /// Server to client, modern: the first message of `subscriptions/listen`.
    NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED = "notifications/subscriptions/acknowledged",
    /// Client to server, legacy.
    NOTIFICATIONS_ROOTS_LIST_CHANGED = "notifications/roots/list_changed",
    /// Server to client, 2025-11-25: the out-of-band part of a URL elicitation is over.
    NOTIFICATIONS_ELICITATION_COMPLETE = "notifications/elicitation/complete",
    /// Both ways, 2025-11-25.
    NOTIFICATIONS_TASKS_STATUS = "notifications/tasks/status",
    /// Server to client, tasks extension.
    NOTIFICATIONS_TASKS = "notifications/tasks",
}
