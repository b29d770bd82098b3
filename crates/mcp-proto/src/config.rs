//! What a connection is told before it starts: who we are, what we offer, how long we wait.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_elicitation::{RequestLimits, UrlPolicy};
use mcp_model::{
    ClientCapabilities, ElicitationCapability, Implementation, Root, RootsCapability, SamplingCapability,
    Settings, meta,
};

use crate::cache::CacheConfig;
use crate::era::{Mode, Wire};
use crate::limits::Limits;
use crate::retry::RetryConfig;
use crate::tasks::TaskConfig;

/// Everything the application decides about one connection before it starts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Name and version sent as `clientInfo`.
    pub client_info: Implementation,
    /// Which elicitation modes are served. Default: none, and the capability is not declared.
    pub elicitation: ElicitationSupport,
    /// Counts and lengths that a question may reach. One beyond them is refused with -32602.
    pub elicitation_limits: RequestLimits,
    /// Which URLs a server may send people to, and what they are warned of.
    pub elicitation_urls: UrlPolicy,
    /// Extensions that are declared, by identifier, with their settings. Default: none. The identifiers are not checked here;
    /// `mcp_model::meta::check_extension_id` does it.
    pub extensions: BTreeMap<String, Settings>,
    /// The roots offered to the server. `None` (the default): the capability is not declared and `roots/list` is
    /// answered with "method not found". `Some`: declared with `listChanged`, and each change is announced.
    pub roots: Option<Vec<Root>>,
    /// Whether an application handler answers `sampling/createMessage`. Default: no.
    pub sampling: bool,
    /// Whether that handler also serves requests with tools (2025-11-25 and later). Default: no. Has no effect without
    /// `sampling`.
    pub sampling_tools: bool,
    /// How tasks are waited for. `None` (the default): a modern server is told nothing of tasks and makes none, and no
    /// legacy server is asked for one. `Some`: the extension `io.modelcontextprotocol/tasks` is declared with each modern
    /// request, and tools that must be tasks under 2025-11-25 are called as such.
    pub tasks: Option<TaskConfig>,
    /// Whether requests of the modern era say who the client is (`clientInfo`). `initialize` always does. Default: yes.
    pub send_client_info: bool,
    /// How the era of the server is found. Default: [`Mode::Legacy`].
    pub mode: Mode,
    /// What carries the messages. Default: [`Wire::Channel`].
    pub wire: Wire,
    /// How long the handshake may take in all: probe, `initialize` and their retries. Default 60 s, the request timeout
    /// most clients use; a package runner that downloads the server first needs it.
    pub initialize_timeout: Duration,
    /// How long a server on a channel may be silent on the probe before it is taken for a legacy one. Default 3 s: a
    /// legacy server that ignores what it does not know costs its user this wait with each connection. A modern server
    /// that is slower than this is still found: it refuses `initialize`, and is asked again. At most half of
    /// `initialize_timeout`. A server known to be modern ([`Mode::Known`]) has three times as long.
    pub probe_timeout: Duration,
    /// How long a question from the server may stay open before it is answered for the user: `cancel` for an
    /// elicitation, an error for anything else. Default 180 s, time to read and fill in a form. One that overflows the
    /// clock means "never".
    pub server_request_timeout: Duration,
    /// What is kept of results that may be used again (modern era).
    pub cache: CacheConfig,
    /// Whether and how calls are tried again that failed on their way (exchanges).
    pub retry: RetryConfig,
    /// Bounds on what the peer can make us hold.
    pub limits: Limits,
}

impl Config {
    /// A configuration with the defaults above.
    pub fn new(client_info: Implementation) -> Self {
        Self {
            client_info,
            elicitation: ElicitationSupport::default(),
            elicitation_limits: RequestLimits::default(),
            elicitation_urls: UrlPolicy::default(),
            extensions: BTreeMap::new(),
            roots: None,
            sampling: false,
            sampling_tools: false,
            tasks: None,
            send_client_info: true,
            mode: Mode::Legacy,
            wire: Wire::Channel,
            initialize_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(3),
            server_request_timeout: Duration::from_secs(180),
            cache: CacheConfig::default(),
            retry: RetryConfig::default(),
            limits: Limits::default(),
        }
    }

    /// The capabilities that follow from the features switched on, as the newest legacy revision writes them.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.capabilities_with(true)
    }

    /// The same with or without the extension for tasks.
    pub(crate) fn capabilities_with(&self, tasks: bool) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::new();
        capabilities.elicitation = match (self.elicitation.form, self.elicitation.url) {
            (true, true) => Some(ElicitationCapability::form_and_url()),
            (true, false) => Some(ElicitationCapability::form_only()),
            (false, true) => Some(ElicitationCapability::url_only()),
            (false, false) => None,
        };
        for (id, settings) in self.extensions.iter().filter(|(id, _)| tasks || *id != meta::TASKS_EXTENSION) {
            settings.clone().declare_in(&mut capabilities.extensions, id);
        }
        capabilities.roots = self.roots.is_some().then(|| RootsCapability::new(true));
        if tasks && self.tasks.is_some() {
            Settings::empty().declare_in(&mut capabilities.extensions, meta::TASKS_EXTENSION);
        }
        let sampling = SamplingCapability::new();
        let sampling = if self.sampling_tools { sampling.with_tools() } else { sampling };
        capabilities.sampling = self.sampling.then_some(sampling);
        capabilities
    }
}

/// Which elicitation modes the application serves. Declaring the capability promises at least one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitationSupport {
    /// Questions with a form, answered in band.
    pub form: bool,
    /// Links that the user opens outside of the client.
    pub url: bool,
}

impl ElicitationSupport {
    /// Both modes.
    pub const fn all() -> Self {
        Self { form: true, url: true }
    }

    /// Form questions only.
    pub const fn form() -> Self {
        Self { form: true, url: false }
    }

    pub(crate) const fn any(self) -> bool {
        self.form || self.url
    }
}
