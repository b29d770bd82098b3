//! A driver that reads results by itself.

use mcp_jsonrpc::{DecodeLimits, plain_answer};
use mcp_model::{CallToolResult, ResultType, inspect_result_type};

use super::Model;

impl Model {
    /// As a driver does that reads results by itself. Whether this one was for it.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let answer = plain_answer(text, &DecodeLimits::default());
        let Some((answer, taking)) =
            answer.and_then(|answer| self.core.taking(&answer.id).map(|taking| (answer, taking)))
        else {
            return false;
        };
        let value = serde_json::from_str::<CallToolResult>(answer.result).unwrap();
        let kind = inspect_result_type(answer.result).unwrap();
        let admitted = taking.admits(answer.result, &value);
        assert_eq!(admitted, taking.admits(answer.result, &()));
        assert!(
            admitted == (kind == ResultType::Complete) || (admitted && self.core.phase.modern().is_none())
        );
        if !admitted {
            return false;
        }
        assert!(self.core.is_open(taking.call()));
        assert!(self.core.take_result(taking, &answer.id));
        assert!(!self.core.take_result(taking, &answer.id), "a result was taken twice");
        self.ledger.ended(taking.call());
        true
    }
}
