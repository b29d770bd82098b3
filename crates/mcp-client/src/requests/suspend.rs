//! Calls that are suspended when they need input, and resumed later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_proto::{Answer, SuspendedCall};
use serde::de::DeserializeOwned;

use super::{Call, Reading, Untyped};
use crate::client::Client;
use crate::error::Error;

/// The outcome of [`Call::or_suspend`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome<T> {
    /// The result of the call.
    Done(T),
    /// The server needs input first. Store this, and pass it to [`Client::resume`] with the answers, in this process or in
    /// another one.
    Suspended(SuspendedCall),
}

/// What a call goes on with.
pub(super) struct Resumed {
    pub(super) call: SuspendedCall,
    pub(super) answers: BTreeMap<String, Answer>,
}

impl<T: 'static> Call<T> {
    /// Sends the call, and suspends it if the server needs input (2026-07-28), in place of asking the client's handlers. The
    /// requests of the server are in [`SuspendedCall::requests`], and those for its users, typed, in [`SuspendedCall::questions`].
    /// They have been checked; one that the client did not declare support for fails the call. With a legacy server the handlers
    /// are asked as usual.
    ///
    /// What the client declares comes from its handlers, also where every call is suspended in place of asking them: without
    /// [`on_elicitation`](crate::ClientBuilder::on_elicitation),
    /// [`elicitation_stream`](crate::ClientBuilder::elicitation_stream) or the like a server is told that its user cannot be asked, and
    /// does not ask.
    ///
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub async fn or_suspend(mut self) -> Result<Outcome<T>, Error> {
        self.untyped.options.suspend = true;
        let server = self.untyped.client.driver().identity().recorded();
        match self.await {
            Ok(result) => Ok(Outcome::Done(result)),
            Err(error) => {
                let mut suspended = error.into_suspended()?;
                suspended.server = server;
                Ok(Outcome::Suspended(suspended))
            }
        }
    }
}

impl Client {
    /// Resumes a call that [`Call::or_suspend`] suspended, with an answer for each of its requests. Awaiting it gives the
    /// result of the call; it may be suspended again.
    ///
    /// # Errors
    ///
    /// When awaited: [`Misuse`](crate::ErrorKind::Misuse) if the call was made to another server, if an answer is missing or
    /// does not fit its request (then nothing was sent), or if the server is a legacy one; and those of the call. How long the
    /// state of a suspended call remains valid is up to the server.
    pub fn resume<T: DeserializeOwned + Send + 'static>(
        &self,
        suspended: SuspendedCall,
        answers: impl IntoIterator<Item = (String, Answer)>,
    ) -> Call<T> {
        let method = Cow::Owned(suspended.method.clone());
        let ours = self.driver().identity().is_of(&suspended.server);
        let params = if ours {
            Ok(None)
        } else {
            Err(self.driver().identity().is_not_of("the suspended call was made to", &suspended.server))
        };
        let mut untyped = Untyped::new(self, method, params);
        let answers = answers.into_iter().collect();
        untyped.resumed = Some(Box::new(Resumed { call: suspended, answers }));
        untyped.called.tool = untyped.tool_name();
        Call { untyped, reading: Reading::typed() }
    }
}
