//! Suspended calls: they wait for input and are resumed later, on another connection or in another process.
//!
//! That works because a modern server keeps nothing between two requests: all it needs is in the `requestState` that it sent.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use mcp_elicitation::{ElicitRequest, ElicitResult, RequestRules, Revision};
use mcp_jsonrpc::{RawJson, Untrusted};
use mcp_model::{FromJson, InputRequest as Embedded, methods};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::{Asked, CallId, CallKind, CallOptions};
use crate::connection::Connection;
use crate::error::{MAX_SHOWN_KEY, Misuse};
use crate::event::{Answer, InputRequest};
use crate::gate;
use crate::mrtr::{Pause, takes_input, with_input};
use crate::phase::Phase;

/// A suspended call, as plain data: store it, and resume it with the answers, with `Client::resume` of `mcp-client` or
/// `Connection::resume_suspended` here.
///
/// It holds the params of the call and the requests of the server, so it is as confidential as they are; `Debug` shows sizes.
/// A server may refuse a state that is too old or was modified.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SuspendedCall {
    /// The server, as the driver names it; empty if unknown.
    #[serde(default)]
    pub server: String,
    /// The method.
    pub method: String,
    /// The original params, without `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<RawJson>,
    /// The input requests by key: objects with `method` and `params`, as received. They have been checked.
    pub requests: BTreeMap<String, RawJson>,
    /// Answers that the client gave itself (roots), by key.
    #[serde(default)]
    pub responses: BTreeMap<String, RawJson>,
    /// The `requestState`, to be sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Rounds of input so far.
    pub rounds: u32,
}

impl fmt::Debug for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedCall")
            .field("server_bytes", &self.server.len())
            .field("method", &self.method)
            .field("requests", &self.requests.len())
            .field("request_state_bytes", &self.request_state.as_ref().map(String::len))
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}

impl SuspendedCall {
    /// What the server asks, by key, each as the kind of question that it is, to be shown and answered in whatever process.
    /// Read by the default rules for elicitations; where the client has others (another URL policy, say), see
    /// [`questions_by`](Self::questions_by).
    ///
    /// ```
    /// # fn example(suspended: &mcp_proto::SuspendedCall) -> Result<(), mcp_proto::UnreadableQuestion> {
    /// use mcp_proto::InputRequest;
    ///
    /// for (key, question) in suspended.questions()? {
    ///     match question {
    ///         InputRequest::Elicit(form_or_url) => println!("{key}: {}", form_or_url.message()),
    ///         _ => println!("{key}: something for a model"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`UnreadableQuestion`] for the first one that does not fit. It was checked when the call was put away, so either the rules
    /// are others or the stored text is.
    pub fn questions(&self) -> Result<BTreeMap<&str, InputRequest>, UnreadableQuestion> {
        self.questions_by(&RequestRules::new(Revision::V2026_07_28))
    }

    /// As [`questions`](Self::questions), by rules of the application's own.
    ///
    /// # Errors
    /// As [`questions`](Self::questions).
    pub fn questions_by(
        &self,
        rules: &RequestRules,
    ) -> Result<BTreeMap<&str, InputRequest>, UnreadableQuestion> {
        let read = |key: &String, request: &RawJson| {
            let unreadable = |reason: String| UnreadableQuestion { key: key.clone(), reason };
            let no_request = |_| unreadable("it is not a request with params".to_owned());
            let embedded = request.as_raw_ref().parse_with(Embedded::from_json).map_err(no_request)?;
            let params = RawJson::from(embedded.params.unwrap_or_else(|| RawValue::NULL.to_owned()));
            match embedded.method.as_str() {
                methods::ELICITATION_CREATE => ElicitRequest::parse_with(params.as_str(), rules)
                    .map(InputRequest::Elicit)
                    .map_err(|error| unreadable(error.wire_message())),
                methods::SAMPLING_CREATE_MESSAGE => Ok(InputRequest::CreateMessage(params)),
                _ => Err(unreadable("its method is not an input request".to_owned())),
            }
        };
        let mut questions = BTreeMap::new();
        for (key, request) in &self.requests {
            questions.insert(key.as_str(), read(key, request)?);
        }
        Ok(questions)
    }
}

/// A question of a call that was put away which cannot be read; see [`SuspendedCall::questions`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableQuestion {
    /// Its key, as the server chose it: untrusted.
    pub key: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for UnreadableQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the question {} is not readable: {}",
            Untrusted::new(&self.key, MAX_SHOWN_KEY).quoted(),
            self.reason
        )
    }
}

impl std::error::Error for UnreadableQuestion {}

impl Connection {
    /// Takes up a call that was put away ([`CallOptions::suspend`]). Each of its requests needs its answer; answers to
    /// elicitations are checked, and filled with defaults, as ever.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnfitAnswer`] where an answer is missing, does not fit or answers nothing; [`Misuse::NotInRevision`] under a
    /// legacy revision, and for a method that takes no input; otherwise as [`call`](Self::call). Nothing was sent then, and
    /// it can be tried again.
    pub fn resume_suspended(
        &mut self,
        now: Instant,
        suspended: &SuspendedCall,
        answers: BTreeMap<String, Answer>,
        options: &CallOptions,
    ) -> Result<CallId, Misuse> {
        let Phase::Ready { server } = &self.phase else {
            return Err(if self.is_closed() { Misuse::Closed } else { Misuse::NotReady });
        };
        let version = server.protocol_version;
        // It may come from a store that somebody else writes to as well.
        if version.is_legacy() || !takes_input(&suspended.method) {
            return Err(Misuse::NotInRevision { method: suspended.method.clone(), version });
        }
        gate::check(&suspended.method, version, &server.capabilities)?;
        if let Some(key) = answers.keys().find(|key| !suspended.requests.contains_key(*key)) {
            return Err(unfit(key, "there is no request with this key"));
        }
        let mut responses = suspended.responses.clone();
        // Both are in the order of their keys, and no answer is beside a request.
        let mut answers = answers.into_iter().peekable();
        for (key, request) in &suspended.requests {
            let answer = answers.next_if(|(answered, _)| answered == key);
            let (_, answer) = answer.ok_or_else(|| unfit(key, "it is missing"))?;
            let checked = self.checked_answer(request, answer).map_err(|reason| unfit(key, reason))?;
            responses.insert(key.clone(), checked);
        }
        let pause = Pause::answered(suspended.request_state.clone(), responses);
        let params = with_input(suspended.params.as_ref(), &pause).map_err(|_| Misuse::Unserializable)?;
        let call = self.next_call_id();
        self.send_request(now, call, &suspended.method, Some(&params), CallKind::Ordinary, options)?;
        if let Some(state) = self.calls.get_mut(&call) {
            let mut asked = Asked::new(&suspended.method, suspended.params.as_ref(), options);
            asked.rounds = suspended.rounds;
            asked.answered = Some(params);
            state.asked = Some(Box::new(asked));
        }
        Ok(call)
    }

    /// The answer as it may leave, or why it must not.
    fn checked_answer(&self, request: &RawJson, answer: Answer) -> Result<RawJson, String> {
        let unreadable = || "the stored request is not readable".to_owned();
        let request = request.as_raw_ref().parse_with(Embedded::from_json).map_err(|_| unreadable())?;
        if request.method != methods::ELICITATION_CREATE {
            return match answer {
                Answer::Result(result) => Ok(result),
                Answer::Elicit(_) => Err("the request is not an elicitation".to_owned()),
                Answer::Error(_) => Err("an error is not an answer".to_owned()),
            };
        }
        let result = match answer {
            Answer::Elicit(result) => result,
            Answer::Result(result) => {
                let read = result.as_raw_ref().parse_with(ElicitResult::from_json);
                read.map_err(|_| "it is not an answer to an elicitation".to_owned())?
            }
            Answer::Error(_) => return Err("an error is not an answer".to_owned()),
        };
        let params = request.params.map(RawJson::from);
        let asked = self.read_elicitation(params.as_ref().map(RawJson::as_raw_ref));
        let asked = asked.map_err(|refused| refused.message)?;
        // It repeats no value of the answer.
        let checked = asked.check(result).map_err(|error| error.to_string())?;
        checked.to_json().map(RawJson::from).map_err(|_| "it does not serialise".to_owned())
    }
}

fn unfit(key: &str, reason: impl Into<String>) -> Misuse {
    Misuse::UnfitAnswer { key: key.to_owned(), reason: reason.into() }
}
