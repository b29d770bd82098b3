//! The clock enters here. Tokio's, so that tests can move it.

use std::time::Instant;

use tokio::time;

pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}
