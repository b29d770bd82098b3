//! The JSON lines of one run of `connect`.

use serde_json::Value;

#[derive(Debug)]
pub(super) struct Transcript {
    lines: Vec<Value>,
}

impl Transcript {
    /// Every line of stdout must be a JSON object that is a step or an event.
    pub(super) fn read(stdout: &str) -> Result<Self, String> {
        let mut lines = Vec::new();
        for line in stdout.lines() {
            let value: Value = serde_json::from_str(line)
                .map_err(|error| format!("a line is not JSON ({error}): {line}"))?;
            if value.get("op").is_some() == value.get("event").is_some() {
                return Err(format!("a line is neither a step nor an event: {line}"));
            }
            lines.push(value);
        }
        Ok(Self { lines })
    }

    /// What is true of every run that connected: `connect` is the first step and `close` the last, each step has exactly one of
    /// result and error, and the exit code is 0 exactly when every step was ok.
    pub(super) fn lifecycle(&self, exit: Option<i32>) -> Result<(), String> {
        let steps: Vec<&Value> = self.lines.iter().filter(|line| line.get("op").is_some()).collect();
        let name = |step: Option<&&Value>| step.and_then(|step| step.get("op")?.as_str().map(str::to_owned));
        if name(steps.first()).as_deref() != Some("connect") || name(steps.last()).as_deref() != Some("close")
        {
            return Err("the steps do not begin with connect and end with close".into());
        }
        let mut all_ok = true;
        for step in &steps {
            let ok = step
                .get("ok")
                .and_then(Value::as_bool)
                .ok_or_else(|| format!("a step without ok: {step}"))?;
            all_ok &= ok;
            if step.get("result").is_some() != ok || step.get("error").is_some() == ok {
                return Err(format!("a step has not exactly one of result and error: {step}"));
            }
            if !step.get("ms").is_some_and(Value::is_number) {
                return Err(format!("a step without its time: {step}"));
            }
        }
        for step in ["connect", "close"] {
            self.result(step)?;
        }
        let expected = i32::from(!all_ok);
        if exit == Some(expected) { Ok(()) } else { Err(format!("exit {exit:?}, expected {expected}")) }
    }

    /// The result of the step of that name.
    pub(super) fn result(&self, op: &str) -> Result<&Value, String> {
        self.outcome(|line| line.get("op").and_then(Value::as_str) == Some(op), op)
    }

    /// The result of the call with this index.
    pub(super) fn call(&self, index: u64) -> Result<&Value, String> {
        self.outcome(|line| is_call(line, index), &format!("call {index}"))
    }

    /// The error of the call with this index.
    pub(super) fn call_error(&self, index: u64) -> Result<&Value, String> {
        let line = self.lines.iter().find(|line| is_call(line, index));
        line.and_then(|line| line.get("error")).ok_or_else(|| format!("call {index} should have failed"))
    }

    pub(super) fn has_step(&self, op: &str) -> bool {
        self.lines.iter().any(|line| line.get("op").and_then(Value::as_str) == Some(op))
    }

    /// Where among all lines the call ended.
    pub(super) fn position(&self, index: u64) -> Option<usize> {
        self.lines.iter().position(|line| is_call(line, index))
    }

    pub(super) fn events(&self, event: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line.get("event").and_then(Value::as_str) == Some(event)).collect()
    }

    /// The text of the call's content, joined; a call that failed has none.
    pub(super) fn text(&self, index: u64) -> Result<String, String> {
        let content = self.call(index)?.get("content").and_then(Value::as_array);
        let texts = content.into_iter().flatten().filter_map(|block| block.get("text")?.as_str());
        Ok(texts.collect::<Vec<_>>().join("\n"))
    }

    /// The call succeeded, is no tool error, and says `wanted` somewhere.
    pub(super) fn says(&self, index: u64, wanted: &str) -> Result<(), String> {
        let text = self.text(index)?;
        if self.is_tool_error(index)? {
            return Err(format!("call {index} is a tool error: {text}"));
        }
        if text.contains(wanted) {
            Ok(())
        } else {
            Err(format!("call {index} does not say {wanted:?}: {text}"))
        }
    }

    pub(super) fn is_tool_error(&self, index: u64) -> Result<bool, String> {
        Ok(self.call(index)?.get("isError").and_then(Value::as_bool) == Some(true))
    }

    /// The names in a list's result.
    pub(super) fn names(&self, op: &str, member: &str) -> Result<Vec<&str>, String> {
        let items = self.result(op)?.get(member).and_then(Value::as_array);
        let items = items.ok_or_else(|| format!("{op} has no list {member}"))?;
        Ok(items.iter().filter_map(|item| item.get("name")?.as_str()).collect())
    }

    fn outcome(&self, is_it: impl Fn(&Value) -> bool, what: &str) -> Result<&Value, String> {
        let Some(line) = self.lines.iter().find(|line| is_it(line)) else {
            return Err(format!("there is no {what}"));
        };
        line.get("result")
            .ok_or_else(|| format!("{what} failed: {}", line.get("error").unwrap_or(&Value::Null)))
    }
}

fn is_call(line: &Value, index: u64) -> bool {
    line.get("op").and_then(Value::as_str) == Some("call_tool")
        && line.get("index").and_then(Value::as_u64) == Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"op":"connect","ok":true,"ms":1,"result":{"protocolVersion":"2025-11-25"}}
{"op":"list_tools","ok":true,"ms":1.5,"result":{"tools":[{"name":"echo"}]}}
{"event":"progress","index":0,"progress":1}
{"op":"call_tool","name":"echo","index":0,"ok":true,"ms":1,"result":{"content":[{"type":"text","text":"Echo: hi"}]}}
{"op":"close","ok":true,"ms":1,"result":null}
"#;

    fn lifecycle(text: &str, exit: i32) -> Result<(), String> {
        Transcript::read(text)?.lifecycle(Some(exit))
    }

    #[test]
    fn a_whole_run_is_read() {
        let transcript = Transcript::read(GOOD).unwrap();
        assert_eq!(transcript.lifecycle(Some(0)), Ok(()));
        assert_eq!(transcript.says(0, "hi"), Ok(()));
        assert!(transcript.says(0, "bye").is_err());
        assert!(transcript.says(1, "hi").is_err());
        assert_eq!(transcript.names("list_tools", "tools").unwrap(), ["echo"]);
        assert_eq!(transcript.events("progress").len(), 1);
        assert!(transcript.call_error(0).is_err());
    }

    #[test]
    fn a_run_that_breaks_the_contract_is_refused() {
        let failed = GOOD
            .replace(r#""index":0,"ok":true,"ms":1,"result":{"#, r#""index":0,"ok":false,"ms":1,"error":{"#);
        assert_eq!(lifecycle(&failed, 1), Ok(()));
        for (text, exit) in [
            (GOOD.to_owned(), 1),
            (failed.clone(), 0),
            (GOOD.replace("\"close\"", "\"end\""), 0),
            (GOOD.replace("\"connect\"", "\"begin\""), 0),
            (GOOD.replace(r#""ms":1.5,"#, ""), 0),
            (GOOD.replace(r#""event":"progress""#, r#""thing":"progress""#), 0),
            (format!("connected!\n{GOOD}"), 0),
            (failed.replace("\"error\"", "\"fault\""), 1),
            (String::new(), 0),
        ] {
            assert!(lifecycle(&text, exit).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tool_error_says_nothing() {
        let text = GOOD.replace(r#"{"content":"#, r#"{"isError":true,"content":"#);
        let transcript = Transcript::read(&text).unwrap();
        assert!(transcript.is_tool_error(0).unwrap());
        assert!(transcript.says(0, "hi").is_err());
    }
}
