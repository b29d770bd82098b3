//! Results that the server allows to be used again for a while (2026-07-28, "Caching").
//!
//! What is kept: complete results of `server/discover`, the lists and `resources/read` that say for how long they are
//! fresh, each under method, params, the application's `_meta`, protocol revision and authorization context. The server
//! is that of the connection. What is not: results of calls that were asked for input on the way, results without a
//! usable `ttlMs`, and whatever was under way when a notice said that it changes.
//!
//! ```text
//!            result with `ttlMs` > 0                 call of the same
//!   asked ────────────────────────────> fresh ─────────────────────────> ended, nothing sent
//!     ▲                                   │
//!     └── next call <── gone <────────────┴── `ttlMs` over, notice of a change, a list that was refused, another
//!                                             authorization, another revision, a new subscription, room needed
//! ```
//!
//! Nothing is fetched because its time is over; the next call asks. Nothing stale is ever served.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use mcp_jsonrpc::{ErrorCode, RawJson, RawRef};
use mcp_model::{CacheScope, ProtocolVersion, meta, methods};

use crate::call::{Asked, CallOptions};
use crate::connection::Connection;
use crate::envelope::string_member;
use crate::whole_number::whole_number;

/// The cache for results that the server declares fresh (modern era; "Caching").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Cached results. Default 256. At the limit the result closest to expiry is evicted. 0 disables the cache.
    pub max_entries: usize,
    /// Bytes of cached results with their params and `_meta`. Default 4 MiB. At the limit as above; a larger result is not
    /// cached.
    pub max_bytes: usize,
    /// The longest time that a result is cached, whatever the server says. Default 24 hours.
    pub max_ttl: Duration,
    /// Whether results with another `cacheScope` than `public` are cached too. Default: yes. Switch it off if the
    /// authorization of a connection can change without
    /// [`Connection::handle_authorization_changed`](crate::Connection::handle_authorization_changed).
    pub keep_private: bool,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            max_entries: 256,
            max_bytes: 4 * 1024 * 1024,
            max_ttl: Duration::from_secs(24 * 60 * 60),
            keep_private: true,
        }
    }
}

impl CacheConfig {
    /// No cache.
    pub fn off() -> Self {
        Self { max_entries: 0, ..Self::default() }
    }
}

/// How one call uses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheUse {
    /// It may be answered from the cache, and its result may be cached.
    #[default]
    Allowed,
    /// It bypasses the cache, and its result replaces the cached one.
    Refresh,
    /// It bypasses the cache, and its result is not cached.
    Never,
}

/// What changes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Discovery,
    Prompts,
    Reads,
    /// `resources/list` and `resources/templates/list`: one notice is for both.
    Resources,
    Tools,
}

impl Family {
    /// That of the results of this method; `None`: they are not for keeping.
    fn of(method: &str) -> Option<Self> {
        Some(match method {
            methods::SERVER_DISCOVER => Self::Discovery,
            methods::PROMPTS_LIST => Self::Prompts,
            methods::RESOURCES_READ => Self::Reads,
            methods::RESOURCES_LIST | methods::RESOURCES_TEMPLATES_LIST => Self::Resources,
            methods::TOOLS_LIST => Self::Tools,
            _ => return None,
        })
    }

    /// The list in which a call of this method names an item.
    fn listing(method: &str) -> Option<Self> {
        Some(match method {
            methods::TOOLS_CALL => Self::Tools,
            methods::PROMPTS_GET => Self::Prompts,
            methods::RESOURCES_READ => Self::Resources,
            _ => return None,
        })
    }
}

/// How often each family was invalidated. A result is kept only if that has not happened since it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Epochs {
    all: u64,
    prompts: u64,
    reads: u64,
    resources: u64,
    tools: u64,
}

impl Epochs {
    fn bump(&mut self, family: Family) {
        let epoch = match family {
            Family::Discovery => &mut self.all,
            Family::Prompts => &mut self.prompts,
            Family::Reads => &mut self.reads,
            Family::Resources => &mut self.resources,
            Family::Tools => &mut self.tools,
        };
        *epoch += 1;
    }

    const fn of(&self, family: Family) -> (u64, u64) {
        let own = match family {
            Family::Discovery => 0,
            Family::Prompts => self.prompts,
            Family::Reads => self.reads,
            Family::Resources => self.resources,
            Family::Tools => self.tools,
        };
        (self.all, own)
    }
}

/// What a call takes along when it is sent, to be shown when its result arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    family: Family,
    epoch: (u64, u64),
    authorization: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    method: &'static str,
    params: String,
    /// The application's own `_meta`, which may mean something to the server.
    meta: String,
    version: ProtocolVersion,
}

struct Entry {
    family: Family,
    result: RawJson,
    expires: Instant,
    /// For whom it is; `None`: for everybody.
    authorization: Option<u64>,
    bytes: usize,
    /// What a read is about.
    uri: Option<String>,
}

/// The results kept. `Debug` shows counts only.
pub(crate) struct ResultCache {
    config: CacheConfig,
    entries: HashMap<Key, Entry>,
    bytes: usize,
    epochs: Epochs,
    authorization: u64,
}

impl ResultCache {
    pub(crate) fn new(config: CacheConfig) -> Self {
        Self { config, entries: HashMap::new(), bytes: 0, epochs: Epochs::default(), authorization: 0 }
    }

    /// The result of such a call, if there is a fresh one.
    pub(crate) fn get(
        &mut self,
        now: Instant,
        version: ProtocolVersion,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Option<RawJson> {
        if self.entries.is_empty() || options.cache != CacheUse::Allowed {
            return None;
        }
        let key = Key::new(version, method, params, options)?;
        let entry = self.entries.get(&key)?;
        if now < entry.expires && entry.authorization.is_none_or(|of| of == self.authorization) {
            return Some(entry.result.clone());
        }
        self.remove(&key);
        None
    }

    /// What a call with these options takes along; `None`: its result is not kept.
    pub(crate) fn ticket(&self, method: &str, options: &CallOptions) -> Option<Ticket> {
        if self.config.max_entries == 0 || options.cache == CacheUse::Never {
            return None;
        }
        let family = Family::of(method)?;
        Some(Ticket { family, epoch: self.epochs.of(family), authorization: self.authorization })
    }

    /// Keeps the complete result of a call, if everything allows that.
    pub(crate) fn keep(&mut self, now: Instant, version: ProtocolVersion, call: &Asked, result: &RawJson) {
        let Some(ticket) = call.ticket else { return };
        // What was answered for on the way must not be used again (26, "Multi Round-Trip Requests").
        if call.answered.is_some() {
            return;
        }
        let current = (self.epochs.of(ticket.family), self.authorization);
        let Some(key) = Key::new(version, &call.method, call.params.as_ref(), &call.options) else { return };
        self.remove(&key);
        if (ticket.epoch, ticket.authorization) != current {
            return;
        }
        let Some((ttl, mut shared)) = hints(result.as_raw_ref()) else { return };
        let Some(expires) = now.checked_add(ttl.min(self.config.max_ttl)) else { return };
        // All pages of a list have the strictest scope of any of them.
        if shared && self.pages(&key).any(|page| page.authorization.is_some()) {
            shared = false;
        }
        if !shared {
            for page in self.pages(&key) {
                page.authorization = Some(ticket.authorization);
            }
            if !self.config.keep_private {
                self.retain(|other, _| other.method != key.method || ticket.family == Family::Reads);
                return;
            }
        }
        // A copy: what was received may hold on to a whole message, of which this is the smallest part.
        let Ok(result) = RawJson::from_text(result.as_str().to_owned()) else { return };
        let bytes = size_of::<(Key, Entry)>() + key.bytes() + result.as_str().len();
        if bytes > self.config.max_bytes {
            return;
        }
        let uri = call.params.as_ref().and_then(|params| read_uri(params.as_raw_ref()));
        let authorization = (!shared).then_some(ticket.authorization);
        self.make_room(now, bytes);
        self.bytes += bytes;
        self.entries.insert(key, Entry { family: ticket.family, result, expires, authorization, bytes, uri });
    }

    /// A notification arrived, which may say that something changed.
    pub(crate) fn handle_notice(&mut self, method: &str, params: Option<RawRef<'_>>) {
        let family = match method {
            methods::NOTIFICATIONS_PROMPTS_LIST_CHANGED => Family::Prompts,
            methods::NOTIFICATIONS_RESOURCES_LIST_CHANGED => Family::Resources,
            methods::NOTIFICATIONS_TOOLS_LIST_CHANGED => Family::Tools,
            methods::NOTIFICATIONS_RESOURCES_UPDATED => {
                self.epochs.bump(Family::Reads);
                let updated = params.and_then(read_uri);
                // The notice may name a part of what was read; one that names nothing may be about anything.
                return self.retain(|_, entry| {
                    let part_of =
                        |uri: &String| updated.as_ref().is_none_or(|updated| updated.starts_with(uri));
                    !(entry.family == Family::Reads && entry.uri.as_ref().is_none_or(part_of))
                });
            }
            _ => return,
        };
        self.forget(family);
    }

    /// The server refused a call of this method. Where it may know the item, the argument or the cursor no more, the list
    /// that they came from is out of date.
    pub(crate) fn handle_refused(&mut self, method: &str, params: Option<&RawJson>, code: ErrorCode) {
        // -32002 was retired with 2026-07-28, and some servers of that revision send it all the same.
        let unknown = code == ErrorCode::INVALID_PARAMS
            || code == ErrorCode::METHOD_NOT_FOUND
            || code == ErrorCode::HEADER_MISMATCH
            || code == ErrorCode::RESOURCE_NOT_FOUND;
        if !unknown {
            return;
        }
        if let Some(family) = Family::listing(method) {
            return self.forget(family);
        }
        let has_cursor =
            || params.is_some_and(|params| string_member(params.as_raw_ref(), "cursor").is_some());
        if let Some(family) = Family::of(method).filter(|_| has_cursor()) {
            self.forget(family);
        }
    }

    /// Requests are made for somebody else from now on.
    pub(crate) fn handle_authorization_changed(&mut self) {
        self.authorization += 1;
        self.retain(|_, entry| entry.authorization.is_none());
    }

    /// Forgets everything, and what is on its way as well.
    pub(crate) fn clear(&mut self) {
        self.epochs.all += 1;
        self.bytes = 0;
        self.entries = HashMap::new();
    }

    fn forget(&mut self, family: Family) {
        self.epochs.bump(family);
        self.retain(|_, entry| entry.family != family);
    }

    /// The other pages of the list of this key.
    fn pages(&mut self, key: &Key) -> impl Iterator<Item = &mut Entry> {
        let method = key.method;
        self.entries
            .iter_mut()
            .filter(move |(other, entry)| other.method == method && entry.family != Family::Reads)
            .map(|(_, entry)| entry)
    }

    /// Makes room for one more entry of this size, which is at most all there is.
    fn make_room(&mut self, now: Instant, bytes: usize) {
        let CacheConfig { max_entries, max_bytes, .. } = self.config;
        let is_full = |cache: &Self| {
            cache.entries.len() >= max_entries || cache.bytes.saturating_add(bytes) > max_bytes
        };
        if is_full(self) {
            self.retain(|_, entry| now < entry.expires);
        }
        while is_full(self) {
            let soonest = self.entries.iter().min_by_key(|(_, entry)| entry.expires);
            let Some(key) = soonest.map(|(key, _)| key.clone()) else { return };
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }

    fn retain(&mut self, keep: impl Fn(&Key, &Entry) -> bool) {
        let mut bytes = self.bytes;
        self.entries.retain(|key, entry| {
            let kept = keep(key, entry);
            if !kept {
                bytes = bytes.saturating_sub(entry.bytes);
            }
            kept
        });
        self.bytes = bytes;
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        debug_assert_eq!(self.bytes, self.entries.values().map(|entry| entry.bytes).sum::<usize>());
        (self.entries.len(), self.bytes)
    }
}

impl Connection {
    /// The requests of this connection are made under another authorization from now on: what was kept for the old one
    /// is not used any more.
    pub fn handle_authorization_changed(&mut self) {
        self.cache.handle_authorization_changed();
    }
}

impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache")
            .field("entries", &self.entries.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Key {
    fn new(
        version: ProtocolVersion,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Option<Self> {
        let method = match method {
            methods::SERVER_DISCOVER => methods::SERVER_DISCOVER,
            methods::PROMPTS_LIST => methods::PROMPTS_LIST,
            methods::RESOURCES_LIST => methods::RESOURCES_LIST,
            methods::RESOURCES_READ => methods::RESOURCES_READ,
            methods::RESOURCES_TEMPLATES_LIST => methods::RESOURCES_TEMPLATES_LIST,
            methods::TOOLS_LIST => methods::TOOLS_LIST,
            _ => return None,
        };
        // Answers that the application put in by itself (`inputResponses`, `requestState`) are for one call.
        if method == methods::RESOURCES_READ && !params.is_none_or(is_plain_read) {
            return None;
        }
        let params = params.map_or("{}", RawJson::as_str);
        // Trace context tells calls apart for people, and not for the server.
        let telling = |(name, _): &(&String, _)| !TRACE_CONTEXT.contains(&name.as_str());
        let meta: Vec<_> = options.meta.iter().flatten().filter(telling).collect();
        let meta = if meta.is_empty() { String::new() } else { serde_json::to_string(&meta).ok()? };
        Some(Self { method, params: params.to_owned(), meta, version })
    }

    fn bytes(&self) -> usize {
        self.params.len() + self.meta.len()
    }
}

const TRACE_CONTEXT: [&str; 3] = [meta::BAGGAGE, meta::TRACEPARENT, meta::TRACESTATE];

fn is_plain_read(params: &RawJson) -> bool {
    let answers = params.as_raw_ref().members(["inputResponses", "requestState"]);
    answers.is_ok_and(|answers| answers.iter().all(Option::is_none))
}

fn read_uri(params: RawRef<'_>) -> Option<String> {
    string_member(params, "uri")
}

/// How long a result is fresh, and whether for everybody. `None`: it is not.
fn hints(result: RawRef<'_>) -> Option<(Duration, bool)> {
    // Most results of most servers have none, and need not be read for it.
    if !result.as_str().contains("\"ttlMs\"") {
        return None;
    }
    let [ttl_ms, cache_scope] = result.members(["ttlMs", "cacheScope"]).ok()?;
    let ttl = whole_number(ttl_ms?.as_str()).filter(|ttl| *ttl > 0)?;
    let scope =
        cache_scope.and_then(|scope| scope.string().ok()).map(|scope| CacheScope::from(scope.as_str()));
    Some((Duration::from_millis(ttl), CacheScope::is_shared(scope.as_ref())))
}
