//! The parameters of requests and notifications.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The parameters of a request, with its method and the type of its result.
///
/// The direction is not part of the type: `ping` is sent by both sides, `sampling/createMessage` by the server.
/// Applications may implement it for methods of their own.
pub trait Request {
    /// The method's name on the wire.
    const METHOD: &'static str;

    /// The type of the result.
    type Result: DeserializeOwned;

    /// Reads the result from its JSON text. For the types of this crate the code is compiled in this crate; see
    /// [`FromJson`](crate::FromJson).
    ///
    /// # Errors
    /// If the text is not JSON, or does not have the shape of the type.
    fn read_result(text: &str) -> serde_json::Result<Self::Result> {
        serde_json::from_str(text)
    }

    /// Writes the parameters as JSON text. For the types of this crate the code is compiled in this crate; see
    /// [`ToJson`](crate::ToJson).
    ///
    /// # Errors
    /// If they cannot be represented in JSON.
    fn write_params(&self) -> serde_json::Result<Box<RawValue>>
    where
        Self: Serialize,
    {
        serde_json::value::to_raw_value(self)
    }
}

/// The parameters of a notification.
pub trait Notification {
    /// The method's name on the wire.
    const METHOD: &'static str;
}

/// Parameters with a `_meta` member, kept as raw JSON.
pub trait WithMeta {
    /// The `_meta` object, if there is one.
    fn meta(&self) -> Option<&RawValue>;

    /// Replaces the `_meta` object; see [`MetaObject`](crate::MetaObject) for building one.
    fn set_meta(&mut self, meta: Option<Box<RawValue>>);
}

/// The table row: `Params => "method" -> Result`. For the requests that a client sends as a type.
macro_rules! requests {
    ($( $params:ty => $method:expr, $result:ty; )+) => { $(
        impl $crate::Request for $params {
            const METHOD: &'static str = $method;
            type Result = $result;

            fn read_result(text: &str) -> serde_json::Result<$result> {
                $crate::FromJson::from_json(text)
            }

            fn write_params(&self) -> serde_json::Result<Box<serde_json::value::RawValue>> {
                $crate::ToJson::to_json(self)
            }
        }

        $crate::json::to_json!($params,);
        $crate::request::with_meta!($params);
    )+ };
}

/// The same table for the others.
macro_rules! other_requests {
    ($( $params:ty => $method:expr, $result:ty; )+) => { $(
        impl $crate::Request for $params {
            const METHOD: &'static str = $method;
            type Result = $result;
        }

        $crate::request::with_meta!($params);
    )+ };
}

/// The table row: `Params => "method"`.
macro_rules! notifications {
    ($( $params:ty => $method:expr; )+) => { $(
        impl $crate::Notification for $params {
            const METHOD: &'static str = $method;
        }

        $crate::request::with_meta!($params);
    )+ };
}

macro_rules! with_meta {
    ($type:ty) => {
        impl $crate::WithMeta for $type {
            fn meta(&self) -> Option<&serde_json::value::RawValue> {
                self.meta.as_deref()
            }

            fn set_meta(&mut self, meta: Option<Box<serde_json::value::RawValue>>) {
                self.meta = meta;
            }
        }
    };
}

/// Defines parameters that hold nothing but `_meta`; without one they are written as `{}`.
macro_rules! bare_params {
    ($( $(#[$attribute:meta])* $name:ident; )+) => { $(
        $(#[$attribute])*
        #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            /// Additional metadata, as raw JSON.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Box<serde_json::value::RawValue>>,
        }

        $crate::confidential::debug! { $name {} sized { meta } }

        impl $name {
            /// Parameters without metadata.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }
        }
    )+ };
}

/// Defines the parameters of a list request, which hold a cursor.
macro_rules! paginated_params {
    ($( $(#[$attribute:meta])* $name:ident; )+) => { $(
        $(#[$attribute])*
        ///
        /// The specification's `PaginatedRequestParams`, one type per method.
        #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            /// The `nextCursor` of the previous page, unchanged; `None` requests the first page. The empty string is a valid
            /// cursor.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cursor: Option<String>,
            /// Additional metadata, as raw JSON.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Box<serde_json::value::RawValue>>,
        }

        $crate::confidential::debug! { $name { cursor } sized { meta } }

        impl $name {
            /// Requests the first page.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }

            /// Requests the page at `cursor`.
            #[must_use]
            pub fn after(cursor: impl Into<String>) -> Self {
                Self { cursor: Some(cursor.into()), meta: None }
            }
        }

        impl $crate::Paginated for $name {
            fn set_cursor(&mut self, cursor: Option<String>) {
                self.cursor = cursor;
            }
        }
    )+ };
}

/// Defines the answer to a list request: one page of items.
macro_rules! paginated_results {
    ($( $(#[$attribute:meta])* $name:ident { $(#[$list_attribute:meta])* $list:ident: $item:ty } )+) => { $(
        $(#[$attribute])*
        #[derive(Clone, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $(#[$list_attribute])*
            pub $list: $crate::List<$item>,
            /// The cursor of the next page; `None` at the end. The empty string is a valid cursor.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
            /// How long the page is fresh, in milliseconds (2026-07-28 and later); negative counts as 0.
            #[serde(
                default,
                deserialize_with = "crate::lenient::count",
                skip_serializing_if = "Option::is_none"
            )]
            pub ttl_ms: Option<u64>,
            /// Who may get a cached copy of it (2026-07-28 and later).
            #[serde(
                default,
                deserialize_with = "crate::lenient::hint",
                skip_serializing_if = "Option::is_none"
            )]
            pub cache_scope: Option<$crate::CacheScope>,
            /// The `resultType`: how to read the result (2026-07-28 and later).
            #[serde(
                default,
                deserialize_with = "crate::lenient::result_type",
                skip_serializing_if = "Option::is_none"
            )]
            pub result_type: Option<$crate::ResultType>,
            /// Additional metadata, as raw JSON.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Box<serde_json::value::RawValue>>,
        }

        $crate::confidential::debug! { $name { $list, next_cursor, ttl_ms, cache_scope, result_type } sized { meta } }

        impl $crate::Page for $name {
            fn next_cursor(&self) -> Option<&str> {
                self.next_cursor.as_deref()
            }
        }
    )+ };
}

/// Parameters of a paginated request.
pub trait Paginated: Request {
    /// Sets the cursor.
    fn set_cursor(&mut self, cursor: Option<String>);
}

/// A page of a paginated result.
pub trait Page {
    /// The cursor of the next page, or `None` at the end. The empty string is a valid cursor.
    fn next_cursor(&self) -> Option<&str>;
}

pub(crate) use {
    bare_params, notifications, other_requests, paginated_params, paginated_results, requests, with_meta,
};
