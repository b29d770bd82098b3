//! The inbox: a store of open questions, so that other processes can list and answer them, and a crash leaves a trace.
//!
//! Nothing here does I/O: a store implements [`Inbox`], and the driver of the questions calls it.

use std::{error, fmt, sync::Mutex, sync::PoisonError, time::Duration};

use serde_json::value::RawValue;

use crate::{ElicitAction, ElicitRequest, ElicitResult, End, RequestError, RequestRules, Revision};

/// A question as stored in an inbox.
///
/// `params` are what the server wrote, checked by whoever publishes. A reader in another process [reads](Self::request) them again; under
/// the rules of whoever published it gets the same question. What the entry keeps of those rules is the revision and the
/// host of the server; a reader whose asking processes have other [limits](crate::RequestLimits) than the defaults, or
/// [allow nullable fields](crate::RequestRules::allow_nullable_fields), names them in [`request_with`](Self::request_with).
#[derive(Clone)]
#[non_exhaustive]
pub struct InboxEntry {
    /// Unique over drivers (each desk of a process is one), processes and restarts; at most 128 bytes of ASCII from this
    /// workspace's own drivers.
    pub id: String,
    /// The server that asks, by the host's name for it. That may be a command line; `Debug` shows its length.
    pub server: String,
    /// The revision that `params` are read under.
    pub revision: Revision,
    /// The host name of the server, where it was known ([`UrlPolicy::server_host`](crate::UrlPolicy::server_host)): a URL that looks like
    /// the server's is warned of wherever it is shown. `None` for a form.
    pub server_host: Option<String>,
    /// The `params` of the elicitation. As confidential as what the server wrote into them; `Debug` shows their length.
    pub params: InboxParams,
    /// How long the question stays open, counted from publishing; `None`: for ever.
    pub expires_after: Option<Duration>,
}

impl fmt::Debug for InboxEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxEntry")
            .field("id", &self.id)
            .field("server_bytes", &self.server.len())
            .field("revision", &self.revision)
            .field("server_host", &self.server_host)
            .field("params", &self.params)
            .field("expires_after", &self.expires_after)
            .finish()
    }
}

impl InboxEntry {
    /// An entry that never expires.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        server: impl Into<String>,
        revision: Revision,
        request: &ElicitRequest,
    ) -> Self {
        let mut entry = Self::from_parts(id, server, revision, InboxParams::from(request));
        if let ElicitRequest::Url(request) = request {
            entry.server_host = request.server_host().map(str::to_owned);
        }
        entry
    }

    /// An entry as it comes out of a store. It never expires unless [`expires_after`](Self::expires_after) is set, and has no
    /// [`server_host`](Self::server_host) until it gets one.
    #[must_use]
    pub fn from_parts(
        id: impl Into<String>,
        server: impl Into<String>,
        revision: Revision,
        params: InboxParams,
    ) -> Self {
        let (id, server) = (id.into(), server.into());
        Self { id, server, revision, server_host: None, params, expires_after: None }
    }

    /// The question, read again by the [default rules](RequestRules::new).
    ///
    /// # Errors
    /// Those of [`ElicitRequest::parse`]: the store's text is not what was published, or was read by wider rules.
    pub fn request(&self) -> Result<ElicitRequest, RequestError> {
        self.request_with(&RequestRules::new(self.revision))
    }

    /// The question, read again by the rules that whoever published it has. The revision is the entry's, and so is the host of the
    /// server, unless `rules` name one.
    ///
    /// # Errors
    /// Those of [`ElicitRequest::parse_with`]: the store's text is not what was published, or was read by wider rules.
    pub fn request_with(&self, rules: &RequestRules) -> Result<ElicitRequest, RequestError> {
        let mut rules = rules.clone();
        rules.revision = self.revision;
        if let (None, Some(host)) = (rules.url.server_host(), &self.server_host) {
            rules.url = rules.url.server_of_host(host);
        }
        ElicitRequest::parse_with(self.params.as_str(), &rules)
    }
}

/// The `params` of an entry: JSON text whose `Debug` shows its length only.
#[derive(Clone)]
pub struct InboxParams(Box<RawValue>);

impl InboxParams {
    /// Takes JSON text, as it comes out of a store.
    ///
    /// # Errors
    /// The text is no JSON.
    pub fn from_text(text: String) -> Result<Self, InboxError> {
        RawValue::from_string(text).map(Self).map_err(|_| InboxError::new("the stored params are no JSON"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<&ElicitRequest> for InboxParams {
    fn from(request: &ElicitRequest) -> Self {
        Self(request.raw().to_owned())
    }
}

impl fmt::Debug for InboxParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InboxParams({} bytes)", self.as_str().len())
    }
}

/// An answer given through the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InboxAnswer {
    /// The [`InboxEntry::id`] that it answers.
    pub id: String,
    /// The answer, unchecked.
    pub answer: ElicitResult,
}

impl InboxAnswer {
    /// An answer to this entry.
    #[must_use]
    pub fn new(id: impl Into<String>, answer: ElicitResult) -> Self {
        Self { id: id.into(), answer }
    }
}

/// Why an operation of the store failed.
#[derive(Debug)]
pub struct InboxError {
    message: String,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

impl InboxError {
    /// An error without a cause. `message` must be safe to show.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Adds what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for InboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for InboxError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A store of open questions.
///
/// # How a driver uses it
///
/// Nobody but the driver (the desk of `mcp-client`, say) calls these methods:
///
/// * [`publish`](Inbox::publish) before a question is shown anywhere. If that fails, the question ends as `cancel` and nobody
///   sees it.
/// * [`answers`](Inbox::answers) from time to time while questions are open, for the driver's own open entries only: several
///   drivers may share one store. The driver checks each answer. One that violates the form is handed back with
///   [`refuse`](Inbox::refuse), and the question stays open; one that comes too late is ignored.
/// * [`acknowledge`](Inbox::acknowledge) or [`fail`](Inbox::fail), exactly one of them, when a published question has ended.
///   From then on the entry accepts no answer. If the call fails, it is repeated a few times. If `publish` panicked, so that
///   it is unknown what the store holds, a `fail` follows too.
///
/// Only the driver ends a question, so none is answered twice: a user at the driver's screen and one at another process may
/// answer at the same time, and the first answer that reaches the driver counts.
///
/// Calls for one entry come in this order and never overlap; drivers that share a store call it concurrently. They may block:
/// a driver that must not wait calls them on a thread of its own. A shared store sees the entries of all drivers; their ids
/// are unique over drivers, processes and restarts.
pub trait Inbox: Send + Sync + 'static {
    /// Stores a question. Once this returns, it must survive whatever the store promises to survive.
    ///
    /// # Errors
    /// The question is not stored, or another one has its id; it ends as `cancel`.
    fn publish(&self, entry: &InboxEntry) -> Result<(), InboxError>;

    /// The question was answered, by the user or automatically. Only the action is recorded, not the content of the answer.
    ///
    /// # Errors
    /// The entry may still look open. The answer is valid all the same.
    fn acknowledge(&self, id: &str, action: ElicitAction) -> Result<(), InboxError>;

    /// The question ended without an answer: timed out, withdrawn, its connection or its call gone, its handler failed.
    ///
    /// # Errors
    /// The entry may still look open. The question has ended all the same.
    fn fail(&self, id: &str, end: End) -> Result<(), InboxError>;

    /// Fetches answers to these entries, each once. `ids` are open entries that the caller has published; answers to others
    /// are left for those who published them. The default implementation returns none.
    ///
    /// # Errors
    /// Nothing was fetched; it is tried again later.
    fn answers(&self, ids: &[&str]) -> Result<Vec<InboxAnswer>, InboxError> {
        let _ = ids;
        Ok(Vec::new())
    }

    /// An answer violated its form; `reason` lists the violations and is safe to show. The entry is open again.
    ///
    /// # Errors
    /// Whoever answered is not notified.
    fn refuse(&self, id: &str, reason: &str) -> Result<(), InboxError> {
        let _ = (id, reason);
        Ok(())
    }

    /// The deadline of a published question has changed, because of its handler or an extension; counted from now, `None`: for
    /// ever.
    ///
    /// # Errors
    /// The entry keeps its deadline.
    fn set_expiry(&self, id: &str, expires_after: Option<Duration>) -> Result<(), InboxError> {
        let _ = (id, expires_after);
        Ok(())
    }

    /// Whether anybody may answer through this store. If so, a question stays open until its deadline even without handler and
    /// listener. Default: yes.
    fn is_answered_from_elsewhere(&self) -> bool {
        true
    }
}

/// An inbox in memory: for another part of the same program, and for tests. It holds what is open and nothing else, so
/// it is as bounded as the questions are.
#[derive(Debug, Default)]
pub struct MemoryInbox {
    state: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// In the order of their ids.
    open: Vec<InboxEntry>,
    answers: Vec<InboxAnswer>,
}

impl Memory {
    /// Where the entry of this id is, or else would be.
    fn place(&self, id: &str) -> Result<usize, usize> {
        self.open.binary_search_by(|entry| entry.id.as_str().cmp(id))
    }
}

impl MemoryInbox {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The open entries, by id.
    #[must_use]
    pub fn open(&self) -> Vec<InboxEntry> {
        self.lock().open.clone()
    }

    /// Answers an open entry. Returns whether it was open and had no answer yet.
    pub fn answer(&self, id: &str, answer: ElicitResult) -> bool {
        let mut memory = self.lock();
        let is_free = memory.place(id).is_ok() && memory.answers.iter().all(|given| given.id != id);
        if is_free {
            memory.answers.push(InboxAnswer::new(id, answer));
        }
        is_free
    }

    fn close(&self, id: &str) {
        let mut memory = self.lock();
        memory.open.retain(|entry| entry.id != id);
        memory.answers.retain(|given| given.id != id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        // Every change here is one step, so a panic of another holder left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for MemoryInbox {
    fn publish(&self, entry: &InboxEntry) -> Result<(), InboxError> {
        let mut memory = self.lock();
        match memory.place(&entry.id) {
            // The answer to one of them would reach whoever asked the other.
            Ok(_) => Err(InboxError::new("there is an open entry of this id already")),
            Err(place) => {
                memory.open.insert(place, entry.clone());
                Ok(())
            }
        }
    }

    fn acknowledge(&self, id: &str, _: ElicitAction) -> Result<(), InboxError> {
        self.close(id);
        Ok(())
    }

    fn fail(&self, id: &str, _: End) -> Result<(), InboxError> {
        self.close(id);
        Ok(())
    }

    fn answers(&self, ids: &[&str]) -> Result<Vec<InboxAnswer>, InboxError> {
        let mut memory = self.lock();
        let given = std::mem::take(&mut memory.answers).into_iter();
        let (taken, left) = given.partition(|given| ids.contains(&given.id.as_str()));
        memory.answers = left;
        Ok(taken)
    }

    fn set_expiry(&self, id: &str, expires_after: Option<Duration>) -> Result<(), InboxError> {
        if let Some(entry) = self.lock().open.iter_mut().find(|entry| entry.id == id) {
            entry.expires_after = expires_after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> InboxEntry {
        let params = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
        let revision = Revision::V2025_11_25;
        InboxEntry::new(id, "srv", revision, &ElicitRequest::parse(params, revision).unwrap())
    }

    #[test]
    fn an_entry_takes_one_answer_while_it_is_open() {
        let inbox = MemoryInbox::new();
        assert!(!inbox.answer("a", ElicitResult::decline()), "not published");
        inbox.publish(&entry("a")).unwrap();
        assert_eq!(inbox.open()[0].request().unwrap().message(), "m");
        assert!(inbox.answer("a", ElicitResult::decline()));
        assert!(!inbox.answer("a", ElicitResult::cancel()), "answered");
        assert_eq!(inbox.answers(&["a"]).unwrap().len(), 1);
        assert!(inbox.answers(&["a"]).unwrap().is_empty(), "taken");
        inbox.acknowledge("a", ElicitAction::Decline).unwrap();
        assert!(!inbox.answer("a", ElicitResult::decline()), "closed");
        assert!(inbox.open().is_empty());
    }

    /// One that bends a rule or has more of something is no less a question where it is answered.
    #[test]
    fn an_entry_is_read_again_by_the_rules_of_whoever_published_it() {
        let revision = Revision::V2025_11_25;
        let nullable = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":["string","null"]}}}}"#;
        let message = "m".repeat(5_000);
        let long =
            format!(r#"{{"message":"{message}","requestedSchema":{{"type":"object","properties":{{}}}}}}"#);
        let limits = crate::RequestLimits { max_message_chars: 5_000, ..crate::RequestLimits::default() };
        for (params, rules) in [
            (nullable, RequestRules::new(revision).allow_nullable_fields(true)),
            (long.as_str(), RequestRules::new(revision).limits(limits)),
        ] {
            let published = ElicitRequest::parse_with(params, &rules).unwrap();
            let entry = InboxEntry::new("a", "srv", revision, &published);
            assert!(entry.request().is_err(), "the default rules refuse it");
            let other_revision = RequestRules { revision: Revision::V2026_07_28, ..rules };
            let read = entry.request_with(&other_revision).unwrap();
            assert_eq!(format!("{read:?}"), format!("{published:?}"));
        }
    }

    // auth:SEC-06
    #[test]
    fn a_host_that_poses_as_the_server_is_warned_of_wherever_the_entry_is_read() {
        use crate::{UrlPolicy, UrlWarning};
        let revision = Revision::V2026_07_28;
        let params = r#"{"mode":"url","message":"m","url":"https://mcp.example.com.evil.net/"}"#;
        let warns = |request: &ElicitRequest| match request {
            ElicitRequest::Url(request) => request.url().warnings().contains(&UrlWarning::Lookalike),
            ElicitRequest::Form(_) => panic!("a URL"),
        };
        let policy = UrlPolicy::default().server("https://mcp.example.com/mcp");
        let rules = RequestRules::new(revision).url(policy);
        let published = ElicitRequest::parse_with(params, &rules).unwrap();
        assert!(warns(&published));
        let mut entry = InboxEntry::new("a", "srv", revision, &published);
        assert_eq!(entry.server_host.as_deref(), Some("mcp.example.com"));
        assert!(warns(&entry.request().unwrap()));
        // The reader's own word about the server counts for more than the store's.
        let other = RequestRules::new(revision).url(UrlPolicy::default().server("https://evil.net"));
        assert!(!warns(&entry.request_with(&other).unwrap()));
        for broken in ["", " ", "a b", "a\0", "[", "::1"] {
            entry.server_host = Some(broken.to_owned());
            assert!(!warns(&entry.request().unwrap()), "{broken:?}");
        }
    }

    #[test]
    fn an_answer_that_nobody_took_is_gone_with_its_entry() {
        let inbox = MemoryInbox::new();
        inbox.publish(&entry("a")).unwrap();
        assert!(inbox.answer("a", ElicitResult::decline()));
        inbox.fail("a", End::TimedOut).unwrap();
        assert!(inbox.answers(&["a"]).unwrap().is_empty());
    }

    #[test]
    fn an_answer_waits_for_whoever_published_its_entry() {
        let inbox = MemoryInbox::new();
        for id in ["a", "b", "c"] {
            inbox.publish(&entry(id)).unwrap();
            assert!(inbox.answer(id, ElicitResult::decline()));
        }
        let taken = |ids: &[&str]| {
            let mut taken: Vec<_> = inbox.answers(ids).unwrap().into_iter().map(|given| given.id).collect();
            taken.sort();
            taken
        };
        assert!(taken(&[]).is_empty() && taken(&["d"]).is_empty());
        assert_eq!(taken(&["b", "d"]), ["b"]);
        assert_eq!(taken(&["c", "b", "a"]), ["a", "c"]);
    }

    #[test]
    fn an_id_is_published_once_while_it_is_open() {
        let inbox = MemoryInbox::new();
        inbox.publish(&entry("a")).unwrap();
        assert!(inbox.publish(&entry("a")).is_err());
        inbox.fail("a", End::TimedOut).unwrap();
        inbox.publish(&entry("a")).unwrap();
    }

    #[test]
    fn an_open_entry_can_get_another_time() {
        let inbox = MemoryInbox::new();
        inbox.publish(&entry("a")).unwrap();
        let time = Some(Duration::from_secs(7));
        inbox.set_expiry("a", time).unwrap();
        inbox.set_expiry("unknown", None).unwrap();
        assert_eq!(inbox.open()[0].expires_after, time);
    }

    #[test]
    fn an_error_shows_its_message_and_keeps_its_cause() {
        let error = InboxError::new("the disk is full").caused_by("ENOSPC");
        assert_eq!(error.to_string(), "the disk is full");
        assert_eq!(error::Error::source(&error).unwrap().to_string(), "ENOSPC");
        let bare = InboxParams::from_text("no json".to_owned()).unwrap_err();
        assert!(error::Error::source(&bare).is_none());
    }

    /// A store that only writes down implements three methods.
    #[test]
    fn the_rest_of_the_trait_has_defaults() {
        struct Journal;
        impl Inbox for Journal {
            fn publish(&self, _: &InboxEntry) -> Result<(), InboxError> {
                Ok(())
            }
            fn acknowledge(&self, _: &str, _: ElicitAction) -> Result<(), InboxError> {
                Ok(())
            }
            fn fail(&self, _: &str, _: End) -> Result<(), InboxError> {
                Ok(())
            }
        }
        assert!(Journal.answers(&["a"]).unwrap().is_empty());
        Journal.refuse("a", "why").unwrap();
        assert!(Journal.is_answered_from_elsewhere());
    }

    #[test]
    fn what_the_server_wrote_stays_out_of_debug() {
        let shown = format!("{:?}", entry("a"));
        assert!(shown.contains("InboxParams(") && !shown.contains("requestedSchema"), "{shown}");
    }
}
