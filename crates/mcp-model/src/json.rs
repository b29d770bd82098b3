//! Reading types from JSON text and writing them to it, compiled once.
//!
//! `serde_json::from_str` and `to_raw_value` do the same and are generic: what they come to for a type is compiled again
//! in each crate that names it. These functions are compiled here.
//!
//! # Which reader a type takes
//!
//! A type that a client receives is in one of the two tables below. [`read`] is the rule: little code for each type, and each
//! member looked at twice. [`read_directly`] is for what comes often or is large, where the second look would count. Inside of a type a
//! member that must not fail the message around it has a reader of `lenient`; an object whose `type` member decides how the others are
//! read, as content blocks have it, is read by `content::reader`. Both work below either of the first two.

mod pieces;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use self::pieces::Piece;
use crate::tool::WellFormedTools;
use crate::{
    CallToolResult, CancelTaskResult, CancelledNotificationParams, ClientCapabilities, CompleteResult,
    CreateMessageRequestParams, CreateMessageResult, CreateTaskResult, DiscoverResult, EmptyResult,
    GetPromptResult, GetTaskPayloadRequestParams, GetTaskResult, Implementation, InitializeRequestParams,
    InputRequest, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListRootsResult, ListTasksResult, ListToolsResult, LoggingMessageNotificationParams,
    ProgressNotificationParams, ReadResourceResult, ServerCapabilities,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams, TaskMetadata,
    UnsupportedProtocolVersionData,
};

/// A type that a client receives.
pub trait FromJson: Sized {
    /// Reads a value from its JSON text, as `serde_json::from_str` does, except that a struct is read from an object only, and not
    /// from an array of its members, which the protocol never uses.
    ///
    /// # Errors
    /// If the text is not JSON, or does not have the shape of the type.
    fn from_json(text: &str) -> serde_json::Result<Self>;
}

/// A type that a client sends.
pub trait ToJson {
    /// Writes the value as JSON text, as `serde_json::value::to_raw_value` does.
    ///
    /// # Errors
    /// If it cannot be represented in JSON.
    fn to_json(&self) -> serde_json::Result<Box<RawValue>>;
}

/// Reads JSON text member by member; see [`pieces`].
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    T::deserialize(Piece::new(text))
}

/// Reads JSON text in one pass: what comes often, or is large. As with [`read`], a struct is read from an object alone.
pub(crate) fn read_directly<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Objects(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// A deserializer that reads a struct from an object alone.
struct Objects<D>(D);

/// What is read from an object alone where it lies within something else, too.
pub(crate) struct FromObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FromObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(Objects(deserializer)).map(Self)
    }
}

macro_rules! pass_on {
    ($( $method:ident )+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(visitor)
        }
    )+ };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    pass_on! {
        deserialize_any deserialize_bool deserialize_f32 deserialize_f64 deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_ignored_any deserialize_map deserialize_option deserialize_seq deserialize_str
        deserialize_string deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_unit
    }

    // What no type of the specification is made of; JSON says itself what it holds.
    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit_struct tuple tuple_struct identifier
    }
}

macro_rules! from_json {
    ($read:ident: $( $name:ty, )+) => { $(
        impl FromJson for $name {
            fn from_json(text: &str) -> serde_json::Result<Self> {
                $read(text)
            }
        }
    )+ };
}

macro_rules! to_json {
    ($( $name:ty, )+) => { $(
        impl $crate::ToJson for $name {
            fn to_json(&self) -> serde_json::Result<Box<serde_json::value::RawValue>> {
                serde_json::value::to_raw_value(self)
            }
        }
    )+ };
}

pub(crate) use to_json;

/// The largest of what comes often. Most lists are well-formed, and are read in one pass; what is wrong with another one is found
/// out by reading it again, item by item.
impl FromJson for ListToolsResult {
    fn from_json(text: &str) -> serde_json::Result<Self> {
        match read_directly(text) {
            Ok(WellFormedTools(result)) => Ok(result),
            Err(_) => read_directly(text),
        }
    }
}

from_json! { read_directly:
    CallToolResult,
    ProgressNotificationParams,
    ReadResourceResult,
}

from_json! { read:
    CancelTaskResult,
    CancelledNotificationParams,
    CompleteResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateTaskResult,
    DiscoverResult,
    EmptyResult,
    GetPromptResult,
    GetTaskResult,
    Implementation,
    InputRequest,
    InputRequiredResult,
    ListPromptsResult,
    ListResourceTemplatesResult,
    ListResourcesResult,
    ListTasksResult,
    LoggingMessageNotificationParams,
    ServerCapabilities,
    SubscriptionsAcknowledgedNotificationParams,
    UnsupportedProtocolVersionData,
}

// The params of most requests are in the tables of `requests!`.
to_json! {
    ClientCapabilities,
    CreateMessageResult,
    EmptyResult,
    GetTaskPayloadRequestParams,
    Implementation,
    InitializeRequestParams,
    ListRootsResult,
    SubscriptionsListenRequestParams,
    TaskMetadata,
}
