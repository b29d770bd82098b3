//! Ctrl-C. Children run in process groups of their own, so the terminal does not reach them; waits look here instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether somebody asked this process to end since it first asked this question.
pub(crate) fn interrupted() -> bool {
    let flag = INTERRUPTED.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without the handler Ctrl-C ends this process the usual way.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        flag
    });
    flag.load(Ordering::Relaxed)
}
