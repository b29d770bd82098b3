//! When the checks that the suite recorded are good enough.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with the text of a `checks.json`, in words; empty when every required check succeeded and none failed or warned.
pub(super) fn faults(text: &str, required: &[String]) -> Vec<String> {
    let checks = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(checks)) => checks,
        Ok(_) => return vec!["checks.json is no list".into()],
        Err(error) => return vec![format!("checks.json: {error}")],
    };
    let with = |statuses: &[&str]| -> BTreeSet<&str> {
        let member =
            |check: &'_ Value, name: &str| -> Option<String> { Some(check.get(name)?.as_str()?.to_owned()) };
        checks
            .iter()
            .filter(|check| member(check, "status").is_some_and(|status| statuses.contains(&status.as_str())))
            .filter_map(|check| check.get("id")?.as_str())
            .collect()
    };
    let mut faults = Vec::new();
    let bad = with(&["FAILURE", "WARNING"]);
    for id in &bad {
        let reason = checks.iter().find_map(|check| {
            let same = check.get("id")?.as_str()? == *id && check.get("status")?.as_str()? != "SUCCESS";
            same.then(|| check.get("errorMessage")?.as_str()).flatten()
        });
        faults.push(format!("check {id} did not succeed: {}", reason.unwrap_or("no reason given")));
    }
    let good = with(&["SUCCESS"]);
    let missing: Vec<&str> =
        required.iter().map(String::as_str).filter(|id| !good.contains(id) && !bad.contains(id)).collect();
    if !missing.is_empty() {
        faults.push(format!("no success for {}", missing.join(", ")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> usize {
        faults(text, &["a".to_owned(), "b".to_owned()]).len()
    }

    #[test]
    fn every_required_check_must_have_succeeded() {
        assert_eq!(check(r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SUCCESS"}]"#), 0);
        assert_eq!(check(r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SKIPPED"}]"#), 1);
        assert_eq!(check(r#"[{"id":"a","status":"SUCCESS"}]"#), 1);
        assert_eq!(check("[]"), 1);
    }

    #[test]
    fn a_failure_counts_even_beside_a_success_of_the_same_check() {
        let text =
            r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SUCCESS"},{"id":"a","status":"FAILURE"}]"#;
        assert_eq!(check(text), 1);
        let text = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"WARNING","errorMessage":"slow"}]"#;
        assert_eq!(faults(text, &["a".to_owned(), "b".to_owned()]), ["check b did not succeed: slow"]);
    }

    #[test]
    fn a_check_that_nobody_required_must_not_fail_either() {
        let good = r#"{"id":"a","status":"SUCCESS"},{"id":"b","status":"SUCCESS"}"#;
        assert_eq!(check(&format!(r#"[{good},{{"id":"c","status":"FAILURE"}}]"#)), 1);
        assert_eq!(check(&format!(r#"[{good},{{"id":"c","status":"INFO"}}]"#)), 0);
    }

    #[test]
    fn what_is_no_list_of_checks_is_a_fault() {
        assert_eq!(check("{}"), 1);
        assert_eq!(check("not json"), 1);
    }
}
