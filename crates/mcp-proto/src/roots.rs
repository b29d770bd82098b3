//! The places of the file system that the client shows to the server.

use mcp_model::{ListRootsResult, ProtocolVersion, Root, methods};

use crate::connection::Connection;
use crate::error::Misuse;
use crate::phase::Phase;

/// The roots, and what the server knows of them.
#[derive(Debug)]
pub(crate) struct Roots {
    offered: Vec<Root>,
    /// The server was told them.
    told: bool,
    /// Those that it was told have changed, and it could not be told yet.
    stale: bool,
}

impl Roots {
    pub(crate) const fn new(offered: Vec<Root>) -> Self {
        Self { offered, told: false, stale: false }
    }
}

impl Connection {
    /// Replaces the offered roots and tells the server if they differ.
    ///
    /// # Errors
    ///
    /// [`Misuse::NotDeclaredByClient`] where no roots were offered at the start ([`Config::roots`](crate::Config::roots)),
    /// because then the server was told that there are none; [`Misuse::Closed`].
    pub fn set_roots(&mut self, roots: Vec<Root>) -> Result<(), Misuse> {
        if self.config.roots.is_none() {
            return Err(Misuse::NotDeclaredByClient { capability: "roots" });
        }
        if matches!(self.phase, Phase::Closed) {
            return Err(Misuse::Closed);
        }
        let meta = |root: &Root| root.meta.as_ref().map(|meta| meta.get().to_owned());
        let same = |(a, b): (&Root, &Root)| a.uri == b.uri && a.name == b.name && meta(a) == meta(b);
        if roots.len() == self.roots.offered.len() && roots.iter().zip(&self.roots.offered).all(same) {
            return Ok(());
        }
        if self.phase.modern().is_some() {
            // A modern server is never told: it asks when it needs to know.
        } else if matches!(self.phase, Phase::Ready { .. }) {
            self.queue_notification(methods::NOTIFICATIONS_ROOTS_LIST_CHANGED, None, None)?;
        } else {
            // Before the handshake is over nothing else may be sent; a server that asked already is told after it.
            self.roots.stale = self.roots.told;
        }
        self.roots.offered = roots;
        Ok(())
    }

    /// The roots offered now.
    pub fn roots(&self) -> &[Root] {
        &self.roots.offered
    }

    /// A legacy server that asked before the handshake was over is told now.
    pub(crate) fn tell_of_changed_roots(&mut self) {
        if std::mem::take(&mut self.roots.stale) {
            let told = self.queue_notification(methods::NOTIFICATIONS_ROOTS_LIST_CHANGED, None, None);
            debug_assert!(told.is_ok(), "a notification without params serialises");
        }
    }

    /// The roots as the negotiated revision writes them, for the server that asks.
    pub(crate) fn tell_roots(&mut self) -> ListRootsResult {
        self.roots.told = true;
        self.roots.stale = false;
        self.current_roots()
    }

    pub(crate) fn current_roots(&self) -> ListRootsResult {
        let version = self.server().map_or(ProtocolVersion::LATEST_LEGACY, |server| server.protocol_version);
        ListRootsResult::new(self.roots.offered.clone()).for_version(version)
    }
}
