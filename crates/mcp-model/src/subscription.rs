//! `subscriptions/listen`: change notifications (2026-07-28 and later).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::request::{notifications, other_requests};
use crate::{EmptyResult, RequestId, ResultType, lenient, meta, methods};

/// The notifications that a client requests, or a server grants.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Notifications when the list of tools changes.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Notifications when the list of prompts changes.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Notifications when the list of resources changes.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Notifications when one of these resources, or a sub-resource, changes.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Notifications when one of these tasks changes (tasks extension).
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
}

impl fmt::Debug for SubscriptionFilter {
    /// Shows the number of tasks, since a task id may be enough to use the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionFilter")
            .field("tools_list_changed", &self.tools_list_changed)
            .field("prompts_list_changed", &self.prompts_list_changed)
            .field("resources_list_changed", &self.resources_list_changed)
            .field("resource_subscriptions", &self.resource_subscriptions)
            .field("task_ids", &self.task_ids.as_ref().map(Vec::len))
            .finish()
    }
}

impl SubscriptionFilter {
    /// No notifications.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let some = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
        self.tools_list_changed != Some(true)
            && self.prompts_list_changed != Some(true)
            && self.resources_list_changed != Some(true)
            && !some(&self.resource_subscriptions)
            && !some(&self.task_ids)
    }

    /// Whether the filter selects notifications of this method. The resource or task is not checked: a notification may name a
    /// sub-resource of a subscribed resource.
    #[must_use]
    pub fn selects(&self, method: &str) -> bool {
        match method {
            methods::NOTIFICATIONS_TOOLS_LIST_CHANGED => self.tools_list_changed == Some(true),
            methods::NOTIFICATIONS_PROMPTS_LIST_CHANGED => self.prompts_list_changed == Some(true),
            methods::NOTIFICATIONS_RESOURCES_LIST_CHANGED => self.resources_list_changed == Some(true),
            methods::NOTIFICATIONS_RESOURCES_UPDATED => {
                self.resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty())
            }
            methods::NOTIFICATIONS_TASKS => self.task_ids.as_ref().is_some_and(|ids| !ids.is_empty()),
            _ => false,
        }
    }

    /// What is selected here and not in `granted`: the part that a server did not acknowledge.
    #[must_use]
    pub fn missing_from(&self, granted: &Self) -> Self {
        let flag = |wanted: Option<bool>, granted: Option<bool>| {
            (wanted == Some(true) && granted != Some(true)).then_some(true)
        };
        let list = |wanted: &Option<Vec<String>>, granted: &Option<Vec<String>>| {
            let granted = granted.as_deref().unwrap_or_default();
            let missing: Vec<String> =
                wanted.iter().flatten().filter(|entry| !granted.contains(*entry)).cloned().collect();
            (!missing.is_empty()).then_some(missing)
        };
        Self {
            tools_list_changed: flag(self.tools_list_changed, granted.tools_list_changed),
            prompts_list_changed: flag(self.prompts_list_changed, granted.prompts_list_changed),
            resources_list_changed: flag(self.resources_list_changed, granted.resources_list_changed),
            resource_subscriptions: list(&self.resource_subscriptions, &granted.resource_subscriptions),
            task_ids: list(&self.task_ids, &granted.task_ids),
        }
    }
}

/// Parameters of `subscriptions/listen`.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsListenRequestParams {
    /// The notifications that the client requests.
    pub notifications: SubscriptionFilter,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { SubscriptionsListenRequestParams { notifications } sized { meta } }

impl SubscriptionsListenRequestParams {
    /// Requests these notifications.
    #[must_use]
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: None }
    }
}

/// Result of `subscriptions/listen`, with which the server ends the subscription. Reading accepts any JSON value.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsListenResult {
    /// The `resultType`: how to read the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON, with the id of the subscription.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { SubscriptionsListenResult { result_type } sized { meta } }

impl<'de> Deserialize<'de> for SubscriptionsListenResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let EmptyResult { result_type, meta } = EmptyResult::deserialize(deserializer)?;
        Ok(Self { result_type, meta })
    }
}

/// Parameters of `notifications/subscriptions/acknowledged`, the first message of a subscription.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// What the server grants; possibly less than requested.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub notifications: SubscriptionFilter,
    /// Additional metadata, as raw JSON, with the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { SubscriptionsAcknowledgedNotificationParams { notifications } sized { meta } }

/// The subscription that a notification or result belongs to: the id of its `subscriptions/listen` request. A string never equals a
/// number.
#[must_use]
pub fn subscription_id(meta: Option<&RawValue>) -> Option<RequestId> {
    meta::read(meta, meta::SUBSCRIPTION_ID)
}

other_requests! {
    SubscriptionsListenRequestParams => methods::SUBSCRIPTIONS_LISTEN, SubscriptionsListenResult;
}

notifications! {
    SubscriptionsAcknowledgedNotificationParams => methods::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(json: &str) -> SubscriptionFilter {
        serde_json::from_str(json).unwrap()
    }

    /// protocol:S-02
    #[test]
    fn what_the_server_left_out_is_named() {
        let wanted = filter(
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,
                "resourceSubscriptions":["a:1","a:2"],"taskIds":["t"]}"#,
        );
        let granted = filter(r#"{"toolsListChanged":true,"resourceSubscriptions":["a:2"]}"#);
        let missing = wanted.missing_from(&granted);
        let expected = r#"{"promptsListChanged":true,"resourceSubscriptions":["a:1"],"taskIds":["t"]}"#;
        assert_eq!(serde_json::to_string(&missing).unwrap(), expected);
        assert!(wanted.missing_from(&wanted).is_empty());
        assert!(SubscriptionFilter::new().missing_from(&wanted).is_empty());
    }

    /// protocol:S-01, protocol:S-10
    #[test]
    fn only_selected_kinds_are_admitted() {
        let all = filter(
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,
                "resourceSubscriptions":["a:1"],"taskIds":["t"]}"#,
        );
        let none = filter(
            r#"{"toolsListChanged":false,"promptsListChanged":null,"resourceSubscriptions":[],"taskIds":"t"}"#,
        );
        for method in [
            methods::NOTIFICATIONS_TOOLS_LIST_CHANGED,
            methods::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
            methods::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
            methods::NOTIFICATIONS_RESOURCES_UPDATED,
            methods::NOTIFICATIONS_TASKS,
        ] {
            assert!(all.selects(method), "{method}");
            assert!(!none.selects(method), "{method}");
        }
        for method in [methods::NOTIFICATIONS_PROGRESS, methods::NOTIFICATIONS_MESSAGE, "vendor/x"] {
            assert!(!all.selects(method), "{method}");
        }
        assert!(none.is_empty());
        assert!(!all.is_empty());
    }

    /// protocol:S-03: string or number, and never one for the other.
    #[test]
    fn the_subscription_is_named_in_the_metadata() {
        let id = |json: &str| {
            let raw = RawValue::from_string(format!(r#"{{"{}":{json}}}"#, meta::SUBSCRIPTION_ID)).unwrap();
            subscription_id(Some(&raw))
        };
        assert_eq!(id("\"7\""), Some(RequestId::from("7")));
        assert_eq!(id("7"), Some(RequestId::from(7)));
        assert_eq!(id("null"), None);
        assert_eq!(subscription_id(None), None);
    }
}
