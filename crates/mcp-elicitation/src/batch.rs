//! The `data` of error -32042: the URL elicitations that have to happen before a call can be retried.

use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::{
    ElicitRequest, RequestError, RequestRules, Rule, UrlRequest, Violation, json::Members, path::Path,
    reader::Reader,
};

/// The JSON-RPC error code "URL elicitation required" of 2025-11-25.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A whole list of URL elicitations, every one of them right and no id twice.
///
/// It is read before anything of it is shown: one bad entry refuses the list, and the call's original error
/// surfaces.
#[derive(Clone, Debug)]
pub struct UrlBatch {
    requests: Vec<UrlRequest>,
}

impl UrlBatch {
    /// Reads the `data` member of an error with code [`URL_ELICITATION_REQUIRED`].
    ///
    /// The list holds 1 to [`max_batch`](crate::RequestLimits::max_batch) entries. Each needs `mode: "url"`; a
    /// missing mode means a form, as everywhere, and a form has no place here. Further members are left alone.
    ///
    /// # Errors
    /// Everything that is wrong, with pointers into `data`. Nothing is sent to the server for it.
    pub fn parse(data: &str, rules: &RequestRules) -> Result<Self, RequestError> {
        let refuse = |rule, message: String| RequestError::new(vec![Violation::new("", rule, message)]);
        if !rules.revision.has_elicitation_id() {
            let message = format!("revision {} has no error {URL_ELICITATION_REQUIRED}", rules.revision);
            return Err(refuse(Rule::Mode, message));
        }
        // Each entry may be as long as the `params` of a request.
        let limit = rules.limits.max_params_bytes.saturating_mul(rules.limits.max_batch);
        if data.len() > limit {
            return Err(refuse(
                Rule::Limit,
                format!("data of {} bytes exceed the limit of {limit}", data.len()),
            ));
        }
        let raw: &RawValue =
            serde_json::from_str(data).map_err(|_| refuse(Rule::Json, "data are not JSON".to_owned()))?;
        let mut reader = Reader::new(rules);
        match Self::read(&mut reader, raw) {
            Some(batch) if reader.is_clean() => Ok(batch),
            _ => Err(RequestError::new(reader.into_violations())),
        }
    }

    fn read(reader: &mut Reader<'_>, raw: &RawValue) -> Option<Self> {
        let root = Path::ROOT;
        let members: Members<'_> = reader.object(raw, &root)?;
        let path = root.name("elicitations");
        let Some(raw) = members.get("elicitations") else {
            reader.violate(&path, Rule::Required, "the data must list `elicitations`");
            return None;
        };
        let items = reader.array(raw, &path)?;
        let limit = reader.rules.limits.max_batch;
        if items.is_empty() || items.len() > limit {
            let message = format!("{} elicitations are not within 1 to {limit}", items.len());
            reader.violate(&path, Rule::Limit, message);
            return None;
        }
        let mut requests: Vec<UrlRequest> = Vec::with_capacity(items.len());
        let mut ids = HashSet::new();
        for (index, item) in items.into_iter().enumerate() {
            let path = path.index(index);
            match ElicitRequest::read(reader, item, &path) {
                Some(ElicitRequest::Url(request)) => {
                    if !ids.insert(request.elicitation_id().unwrap_or_default().to_owned()) {
                        let message = "the elicitation id appears twice in the list";
                        reader.violate(&path.name("elicitationId"), Rule::DuplicateId, message);
                    }
                    requests.push(request);
                }
                Some(ElicitRequest::Form(_)) => {
                    reader.violate(&path.name("mode"), Rule::Mode, "only URL elicitations may be required");
                }
                None => {}
            }
        }
        Some(Self { requests })
    }

    /// The elicitations in the server's order; never empty.
    #[must_use]
    pub fn requests(&self) -> &[UrlRequest] {
        &self.requests
    }
}

/// The right to retry one call once after error -32042.
///
/// Make one for each call that a caller starts. [`Elicitations::start_flow`](crate::Elicitations::start_flow)
/// takes it and nothing gives it back, so a second -32042 for the same call has nothing to start a flow with and
/// surfaces.
#[derive(Debug)]
pub struct RetryPermit(());

impl RetryPermit {
    /// The permit of a new call.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a permit is granted on purpose and never by default")]
    pub const fn new() -> Self {
        Self(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Modes, Revision};

    fn entry(id: &str) -> String {
        format!(r#"{{"mode":"url","elicitationId":"{id}","url":"https://example.com/{id}","message":"go"}}"#)
    }

    fn data(entries: &[String]) -> String {
        format!(r#"{{"elicitations":[{}],"more":1}}"#, entries.join(","))
    }

    fn check(data: &str, expected: Result<usize, (&str, Rule)>) {
        let rules = RequestRules::new(Revision::V2025_11_25);
        let result = UrlBatch::parse(data, &rules);
        let result = result.as_ref().map(|batch| batch.requests().len()).map_err(|error| {
            let first = &error.violations()[0];
            (first.pointer.as_str(), first.rule)
        });
        assert_eq!(result, expected, "{data}");
    }

    // protocol:E-20 seed:S-53 seed:S-07 seed:S-02
    #[test]
    fn one_to_sixteen_entries_are_a_batch() {
        assert_eq!(URL_ELICITATION_REQUIRED, -32042);
        for count in [1, 2, 16] {
            let entries: Vec<_> = (0..count).map(|n| entry(&format!("e{n}"))).collect();
            check(&data(&entries), Ok(count));
        }
    }

    // seed:B11 seed:S-54 seed:S-07 field:FR-143
    #[test]
    fn a_batch_with_one_fault_is_refused_whole() {
        let seventeen: Vec<_> = (0..17).map(|n| entry(&format!("e{n}"))).collect();
        let long = entry("e1").replace("\"go\"", &format!("\"{}\"", "m".repeat(4097)));
        let cases = [
            (data(&[]), ("/elicitations", Rule::Limit)),
            (data(&seventeen), ("/elicitations", Rule::Limit)),
            (
                data(&[entry("a"), entry("b"), entry("a")]),
                ("/elicitations/2/elicitationId", Rule::DuplicateId),
            ),
            (
                data(&[entry("a").replace("\"url\",", "\"form\",")]),
                ("/elicitations/0/requestedSchema", Rule::Required),
            ),
            (
                r#"{"elicitations":[{"message":"m","requestedSchema":{"type":"object","properties":{}}}]}"#
                    .into(),
                ("/elicitations/0/mode", Rule::Mode),
            ),
            (data(&[entry("a"), entry("b").replace("https:", "http:")]), ("/elicitations/1/url", Rule::Url)),
            (data(&[entry("a").replace("https:", "javascript:")]), ("/elicitations/0/url", Rule::Url)),
            (
                data(&[entry("a").replace("go", "g\\u001bo")]),
                ("/elicitations/0/message", Rule::ControlCharacter),
            ),
            (data(&[entry("a\\u0000")]), ("/elicitations/0/url", Rule::Url)),
            (
                data(&[entry("a").replace("\"a\"", "\"a\\u0007\"")]),
                ("/elicitations/0/elicitationId", Rule::ControlCharacter),
            ),
            (data(&[entry("a").replace("\"a\"", "1")]), ("/elicitations/0/elicitationId", Rule::Type)),
            (data(&[entry("a").replace("\"a\"", "\" \"")]), ("/elicitations/0/elicitationId", Rule::Value)),
            (data(&["7".into()]), ("/elicitations/0", Rule::Type)),
            (data(&[long]), ("/elicitations/0/message", Rule::Limit)),
            ("null".into(), ("", Rule::Type)),
            ("{}".into(), ("/elicitations", Rule::Required)),
            (r#"{"elicitations":{}}"#.into(), ("/elicitations", Rule::Type)),
            ("{".into(), ("", Rule::Json)),
            (" ".repeat(262_144 * 16 + 1), ("", Rule::Limit)),
        ];
        for (data, expected) in cases {
            check(&data, Err(expected));
        }
    }

    #[test]
    fn data_as_long_as_they_may_be_are_read() {
        let text = data(&[entry("a")]);
        let mut rules = RequestRules::new(Revision::V2025_11_25);
        rules.limits.max_batch = 2;
        rules.limits.max_params_bytes = text.len();
        let padded = |bytes: usize| format!("{text}{}", " ".repeat(bytes - text.len()));
        assert!(UrlBatch::parse(&padded(2 * text.len()), &rules).is_ok());
        let error = UrlBatch::parse(&padded(2 * text.len() + 1), &rules).unwrap_err();
        assert_eq!(error.violations()[0].rule, Rule::Limit);
    }

    #[test]
    fn only_the_revision_with_the_error_and_a_client_with_url_mode_read_a_batch() {
        let data = data(&[entry("a")]);
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            assert!(UrlBatch::parse(&data, &RequestRules::new(revision)).is_err());
        }
        let forms = RequestRules::new(Revision::V2025_11_25).modes(Modes::FORM);
        assert_eq!(UrlBatch::parse(&data, &forms).unwrap_err().violations()[0].rule, Rule::Mode);
    }
}
