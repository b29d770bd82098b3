//! What errors say, what lies below them, and whether a call may be repeated after them.

use std::error::Error;
use std::time::Duration;

use mcp_jsonrpc::{DecodeLimits, ErrorCode, ErrorObject, decode};
use mcp_model::{ProtocolVersion, ServerFeature};
use mcp_proto::{CallError, Misuse, TaskError, TimeLimit};

fn refusal() -> ErrorObject {
    ErrorObject::new(ErrorCode::INVALID_PARAMS, "peer text")
}

/// The text is ours alone: what the peer wrote is one level below, where it shows itself escaped.
#[test]
fn a_failed_call_says_how_it_ended_and_whether_the_server_may_have_acted() {
    let malformed = decode("{", &DecodeLimits::default()).expect_err("a refusal");
    let task = CallError::Task;
    for (error, text, is_unknown, has_source) in [
        (CallError::Cancelled { dispatched: true }, "the call was cancelled", true, false),
        (CallError::Cancelled { dispatched: false }, "the call was cancelled", false, false),
        (CallError::Closed { dispatched: true }, "the connection is closed", true, false),
        (CallError::Closed { dispatched: false }, "the connection is closed", false, false),
        (CallError::InputRefused(refusal()), "the input that the server needs was not given", false, true),
        (CallError::InvalidEnvelope(malformed), "the answer is not a valid JSON-RPC message", true, true),
        (
            CallError::InvalidResult { reason: "why".to_owned() },
            "the answer breaks the protocol: why",
            true,
            false,
        ),
        (
            CallError::LimitExceeded { name: "max_x", limit: 8, dispatched: false },
            "the server's requests during the call exceed the limit max_x of 8",
            false,
            false,
        ),
        (
            CallError::Oversized { bytes: 9, name: "max_x_bytes", limit: 8 },
            "the answer of 9 bytes exceeds the limit max_x_bytes of 8",
            true,
            false,
        ),
        (CallError::Rpc(refusal()), "the server answered with error -32602", false, true),
        (
            CallError::Timeout {
                after: Duration::from_millis(1500),
                limit: TimeLimit::Timeout,
                dispatched: true,
            },
            "no answer within 1.5s",
            true,
            false,
        ),
        (
            CallError::Timeout {
                after: Duration::from_secs(2),
                limit: TimeLimit::MaxTotal,
                dispatched: true,
            },
            "no answer within 2s, the most that the call may take",
            true,
            false,
        ),
        (
            CallError::Unsendable { misuse: Misuse::Unserializable, dispatched: false },
            "the next request of the call cannot be sent",
            false,
            true,
        ),
        (CallError::TooManyRounds { limit: 7 }, "the server requested input more than 7 times", false, false),
        (
            CallError::UnsupportedVersion {
                server: String::new(),
                client: "2025-11-25".to_owned(),
                pinned: false,
            },
            "the server speaks protocol revision none that it names; this client speaks 2025-11-25",
            false,
            false,
        ),
        (task(TaskError::Cancelled), "the task was cancelled", true, false),
        (
            task(TaskError::Expired { ttl: Duration::from_secs(2) }),
            "the task was not done within the 2s it is kept for",
            true,
            false,
        ),
        (task(TaskError::Unknown(refusal())), "the server does not know the task (error -32602)", true, true),
        (task(TaskError::TooManyInputs { limit: 3 }), "the task asked more than 3 questions", true, false),
        (task(TaskError::TooManyPolls { limit: 4 }), "the task was not done after 4 polls", true, false),
    ] {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.outcome_unknown(), is_unknown, "{text}");
        assert_eq!(error.source().is_some(), has_source, "{text}");
    }
}

#[test]
fn a_refused_command_says_what_the_caller_did_wrong() {
    let method = || "tools/call".to_owned();
    for (misuse, text) in [
        (Misuse::Closed, "the connection is closed"),
        (Misuse::MetaInParams, "_meta must not be a member of params"),
        (
            Misuse::NotDeclaredByClient { capability: "roots" },
            "the client did not declare the capability roots",
        ),
        (
            Misuse::NotInRevision { method: "tasks/get".to_owned(), version: ProtocolVersion::V2024_11_05 },
            "protocol revision 2024-11-05 has no method tasks/get",
        ),
        (Misuse::NotReady, "the connection is not initialized yet"),
        (Misuse::ParamsNotAnObject, "params must be a JSON object"),
        (Misuse::Reserved { method: "ping".to_owned() }, "ping is sent by the connection itself"),
        (Misuse::StaleRequest, "the request of the server is no longer open"),
        (Misuse::Started, "the connection was started before"),
        (Misuse::TooManyCalls { limit: 5 }, "5 calls are in flight, which is the limit"),
        (Misuse::TooManyNotices { limit: 6 }, "6 notifications wait for a new session, which is the limit"),
        (Misuse::UnsendableArgument { reason: "why".to_owned() }, "why"),
        (Misuse::Unserializable, "the value does not serialise to JSON"),
        (Misuse::WrongAnswer, "an answer is missing, belongs to no question, or does not fit its question"),
    ] {
        assert_eq!(misuse.to_string(), text);
    }
    let undeclared = Misuse::NotDeclaredByServer { method: method(), feature: ServerFeature::Tools };
    assert!(undeclared.to_string().contains("tools/call"), "{undeclared}");
}

/// auth:SEC-15
#[test]
fn a_revision_that_a_server_names_cannot_pose_as_words_of_this_library() {
    for (named, shown) in [
        ("2027-01-01", "2027-01-01;"),
        ("9; this client speaks it; cause: all is well", "\"9; this client speaks it; cause: all is well\";"),
        ("x\"", "\"x\\\"\";"),
    ] {
        let (server, client) = (named.to_owned(), "2025-11-25".to_owned());
        let error = CallError::UnsupportedVersion { server, client, pinned: false }.to_string();
        assert!(
            error.starts_with(&format!("the server speaks protocol revision {shown} this client")),
            "{error}"
        );
    }
}
