//! What can happen, and how a history begins.

use mcp_model::ProtocolVersion;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::answers::KINDS;
use super::failures::WAYS;
use crate::{Mode, Wire};

/// One thing that happens. Numbers choose among what there is, so that most steps mean something.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Advance {
        seconds: u64,
    },
    Answer {
        question: usize,
        kind: u8,
    },
    Call {
        seconds: u64,
        progress: bool,
        reset: bool,
        task: u8,
    },
    Cancel {
        call: usize,
    },
    Close,
    Delivered,
    /// An exchange fails.
    Fail {
        at: usize,
        way: u8,
    },
    Forget {
        call: usize,
    },
    Hold,
    Listen {
        kind: usize,
    },
    /// The server does not know the session of a request.
    Lose {
        at: usize,
    },
    Notify,
    Pause,
    PeerAnswer {
        id: usize,
        exchange: bool,
        kind: u8,
    },
    PeerAsk {
        id: i64,
        string: bool,
        kind: u8,
        exchange: bool,
    },
    PeerBatch {
        id: usize,
    },
    PeerCancel {
        id: i64,
        string: bool,
    },
    PeerNoise {
        kind: usize,
        id: usize,
    },
    PeerProgress {
        id: usize,
        value: u8,
    },
    PeerServe {
        at: usize,
        kind: u8,
    },
    /// Time passes of which nobody tells the core.
    Quiet {
        seconds: u64,
    },
    /// A new session is made, where one is asked for.
    Renew,
    Roots {
        count: usize,
    },
    Seek,
    Send,
    Start,
    Takes,
    Timer,
    /// `initialized` is not accepted.
    Undeliver {
        way: u8,
    },
    Urls {
        call: usize,
        done: bool,
    },
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0_u64..40).prop_map(|seconds| Step::Advance { seconds }),
        12 => (0_usize..4, 0_u8..5).prop_map(|(question, kind)| Step::Answer { question, kind }),
        24 => (prop_oneof![1 => Just(0), 6 => 1_u64..50, 1 => Just(u64::MAX)], prop::bool::weighted(0.8), any::<bool>(), 0_u8..4)
            .prop_map(|(seconds, progress, reset, task)| Step::Call { seconds, progress, reset, task }),
        9 => (0_usize..6).prop_map(|call| Step::Cancel { call }),
        1 => Just(Step::Close),
        3 => Just(Step::Delivered),
        18 => (0_usize..4, 0_u8..WAYS).prop_map(|(at, way)| Step::Fail { at, way }),
        3 => (0_usize..6).prop_map(|call| Step::Forget { call }),
        6 => Just(Step::Hold),
        9 => (0_usize..4).prop_map(|kind| Step::Listen { kind }),
        6 => (0_usize..4).prop_map(|at| Step::Lose { at }),
        3 => Just(Step::Notify),
        4 => Just(Step::Pause),
        24 => (0_usize..8, any::<bool>(), 0_u8..KINDS)
            .prop_map(|(id, exchange, kind)| Step::PeerAnswer { id, exchange, kind }),
        18 => (0_i64..5, any::<bool>(), 0_u8..6, any::<bool>())
            .prop_map(|(id, string, kind, exchange)| Step::PeerAsk { id, string, kind, exchange }),
        3 => (0_usize..8).prop_map(|id| Step::PeerBatch { id }),
        9 => (0_i64..5, any::<bool>()).prop_map(|(id, string)| Step::PeerCancel { id, string }),
        9 => (0_usize..10, 0_usize..8).prop_map(|(kind, id)| Step::PeerNoise { kind, id }),
        12 => (0_usize..5, 0_u8..9).prop_map(|(id, value)| Step::PeerProgress { id, value }),
        24 => (0_usize..2, 11..KINDS).prop_map(|(at, kind)| Step::PeerServe { at, kind }),
        6 => (0_u64..200).prop_map(|seconds| Step::Quiet { seconds }),
        9 => Just(Step::Renew),
        3 => (0_usize..3).prop_map(|count| Step::Roots { count }),
        3 => Just(Step::Seek),
        12 => Just(Step::Send),
        3 => Just(Step::Start),
        6 => Just(Step::Takes),
        9 => Just(Step::Timer),
        4 => (0_u8..WAYS).prop_map(|way| Step::Undeliver { way }),
        9 => (0_usize..6, any::<bool>()).prop_map(|(call, done)| Step::Urls { call, done }),
    ]
}

/// What is known of the server when the history begins.
#[derive(Clone, Debug)]
pub(super) enum Start {
    Legacy(&'static str, Wire),
    Modern(Wire),
    /// The handshake is part of the history.
    Unknown(Mode, Wire),
}

pub(super) fn start() -> impl Strategy<Value = Start> {
    let wire = || prop_oneof![Just(Wire::Channel), Just(Wire::Exchanges)];
    let mode =
        prop_oneof![Just(Mode::Legacy), Just(Mode::Auto), Just(Mode::Pinned(ProtocolVersion::V2026_07_28))];
    prop_oneof![
        2 => (mode, wire()).prop_map(|(mode, wire)| Start::Unknown(mode, wire)),
        2 => wire().prop_map(|wire| Start::Legacy("2025-03-26", wire)),
        1 => wire().prop_map(|wire| Start::Legacy("2025-06-18", wire)),
        4 => wire().prop_map(|wire| Start::Legacy("2025-11-25", wire)),
        6 => wire().prop_map(Start::Modern),
    ]
}

/// An id of the peer's.
pub(super) fn server_id(id: i64, string: bool) -> Value {
    if string { json!(id.to_string()) } else { json!(id) }
}
