//! Calls that are put away while somebody thinks, and taken up again later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_proto::{Answer, SuspendedCall};
use serde::de::DeserializeOwned;

use super::{Call, Reading, Untyped};
use crate::client::Client;
use crate::error::Error;

/// How a call ended that may be put away.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome<T> {
    /// With its result.
    Done(T),
    /// The server needs answers first. Store this, and give it to [`Client::resume`] with them, in this process or in
    /// another one.
    Suspended(SuspendedCall),
}

/// What a call goes on with.
pub(super) struct Resumed {
    pub(super) call: SuspendedCall,
    pub(super) answers: BTreeMap<String, Answer>,
}

impl<T: 'static> Call<T> {
    /// Sends the call, and puts it away where the server needs somebody's answer to finish it, in place of asking the
    /// client's handlers. What the server asks is in [`SuspendedCall::requests`]: it was checked, and what the client
    /// did not declare fails the call. A server of the legacy era asks the handlers as always.
    ///
    /// Dropping the future cancels the call, as awaiting it plainly does.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub async fn or_suspend(mut self) -> Result<Outcome<T>, Error> {
        self.untyped.options.suspend = true;
        let server = self.untyped.client.driver().server_name().to_owned();
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
    /// Takes up a call that [`Call::or_suspend`] put away, with an answer for each of its requests. Awaiting it gives the
    /// result of the call; it may be put away again.
    ///
    /// # Errors
    ///
    /// When awaited: [`Misuse`](crate::ErrorKind::Misuse) where the call was made to another server, where an answer is
    /// missing or does not fit its request (nothing was sent then), or where the server is a legacy one; and those of the
    /// call. The server decides how long its state is good for.
    pub fn resume<T: DeserializeOwned + Send + 'static>(
        &self,
        suspended: SuspendedCall,
        answers: impl IntoIterator<Item = (String, Answer)>,
    ) -> Call<T> {
        let method = Cow::Owned(suspended.method.clone());
        let ours = suspended.server.is_empty() || suspended.server == self.driver().server_name();
        let params = if ours {
            Ok(None)
        } else {
            Err(Error::misuse_because("the suspended call was made to another server"))
        };
        let mut untyped = Untyped::new(self, method, params);
        let answers = answers.into_iter().collect();
        untyped.resumed = Some(Box::new(Resumed { call: suspended, answers }));
        Call { untyped, reading: Reading::typed() }
    }
}
