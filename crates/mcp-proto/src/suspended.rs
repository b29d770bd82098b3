//! Calls that are put away while somebody thinks, and taken up again later, on another connection or in another process.
//!
//! That works because a modern server remembers nothing between two requests: what it wants to know again is in the
//! state that it gave away.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use mcp_elicitation::ElicitResult;
use mcp_jsonrpc::RawJson;
use mcp_model::{InputRequest as Embedded, methods};
use serde::{Deserialize, Serialize};

use crate::call::{CallId, CallKind, CallOptions, ModernCall};
use crate::connection::Connection;
use crate::error::Misuse;
use crate::event::Answer;
use crate::gate;
use crate::mrtr::{Pause, takes_input, with_input};
use crate::phase::Phase;

/// A call that needs input, as plain data: store it, and give it to [`Connection::resume_suspended`] with the answers.
///
/// It holds what the call was made with and what the server asked, so it is as confidential as they are; `Debug` shows
/// sizes. A server may refuse a state that is too old, or one that was changed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SuspendedCall {
    /// Which server it was made to, in the words of the driver; empty where that did not say.
    #[serde(default)]
    pub server: String,
    /// The method.
    pub method: String,
    /// The original params, without `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<RawJson>,
    /// What the server asks for, by key: objects with `method` and `params`, as they came. Checked already.
    pub requests: BTreeMap<String, RawJson>,
    /// Answers that needed nobody (roots), by key.
    #[serde(default)]
    pub responses: BTreeMap<String, RawJson>,
    /// To be sent back as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// How often the server has wanted input so far.
    pub rounds: u32,
}

impl fmt::Debug for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedCall")
            .field("server", &self.server)
            .field("method", &self.method)
            .field("requests", &self.requests.len())
            .field("request_state_bytes", &self.request_state.as_ref().map(String::len))
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Takes up a call that was put away ([`CallOptions::suspend`]). Each of its requests needs its answer; answers to
    /// elicitations are checked, and filled with defaults, as ever. Refused with [`Misuse::WrongAnswer`] where one is
    /// missing, does not fit or answers nothing: nothing was sent then, and it can be tried again.
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
        if answers.keys().any(|key| !suspended.requests.contains_key(key)) {
            return Err(Misuse::WrongAnswer);
        }
        let mut responses = suspended.responses.clone();
        let mut answers = answers;
        for (key, request) in &suspended.requests {
            let answer = answers.remove(key).ok_or(Misuse::WrongAnswer)?;
            responses.insert(key.clone(), self.checked_answer(request, answer)?);
        }
        let pause = Pause::answered(suspended.request_state.clone(), responses);
        let params = with_input(suspended.params.as_ref(), &pause).map_err(|_| Misuse::Unserializable)?;
        let call = self.next_call_id();
        self.send_request(now, call, &suspended.method, Some(&params), CallKind::Ordinary, options)?;
        if let Some(state) = self.calls.get_mut(&call) {
            let mut modern = ModernCall::new(&suspended.method, suspended.params.as_ref(), options);
            modern.rounds = suspended.rounds;
            modern.answered = Some(params);
            state.modern = Some(Box::new(modern));
        }
        Ok(call)
    }

    fn checked_answer(&self, request: &RawJson, answer: Answer) -> Result<RawJson, Misuse> {
        let request: Embedded = request.parse().map_err(|_| Misuse::WrongAnswer)?;
        if request.method != methods::ELICITATION_CREATE {
            return match answer {
                Answer::Result(result) => Ok(result),
                Answer::Elicit(_) | Answer::Error(_) => Err(Misuse::WrongAnswer),
            };
        }
        let result = match answer {
            Answer::Elicit(result) => result,
            Answer::Result(result) => result.parse::<ElicitResult>().map_err(|_| Misuse::WrongAnswer)?,
            Answer::Error(_) => return Err(Misuse::WrongAnswer),
        };
        let params = request.params.as_ref().map(|params| RawJson::from_serialize(params.as_ref()));
        let params = params.transpose().map_err(|_| Misuse::WrongAnswer)?;
        let asked = self.read_elicitation(params.as_ref().map(RawJson::as_raw_ref));
        let checked =
            asked.map_err(|_| Misuse::WrongAnswer)?.check(result).map_err(|_| Misuse::WrongAnswer)?;
        RawJson::from_serialize(&checked).map_err(|_| Misuse::Unserializable)
    }
}
