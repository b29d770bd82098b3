//! What the tests share in which the application does as it likes when it is called.

use std::sync::mpsc;
use std::time::Duration;

/// Runs it in a runtime on a thread of its own: one that waits for a lock for ever fails the test in place of stopping it.
pub(crate) fn in_time(scenario: impl Future<Output = ()> + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("it waits for ever, or has failed");
}

/// Calls a function for each event of the log whose target begins so.
pub(crate) struct LogListener<F> {
    pub(crate) target: &'static str,
    pub(crate) hear: F,
}

impl<F> tracing::Subscriber for LogListener<F>
where
    F: Fn() + Send + Sync + 'static,
{
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target().starts_with(self.target) {
            (self.hear)();
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
