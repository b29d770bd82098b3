//! What the registry takes of a manifest, and refuses only when it is too late.

use serde_json::Value;

/// Bounds of the registry; a package beyond one is refused at its upload.
const MAX_KEYWORDS: usize = 5;
const MAX_KEYWORD_BYTES: usize = 20;
const MAX_CATEGORIES: usize = 5;
const MAX_DESCRIPTION_BYTES: usize = 1000;

/// Everything that is wrong with the manifest, as `cargo metadata` tells it.
pub(super) fn problems(package: &Value) -> Vec<String> {
    let text = |name: &str| package.get(name).and_then(Value::as_str).unwrap_or_default();
    let words = |name: &str| -> Vec<&str> {
        package.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let mut problems: Vec<String> = ["description", "license", "readme", "rust_version"]
        .into_iter()
        .filter(|name| text(name).is_empty())
        .map(|name| format!("no {name}"))
        .collect();
    if text("description").len() > MAX_DESCRIPTION_BYTES {
        problems.push(format!("a description of more than {MAX_DESCRIPTION_BYTES} bytes"));
    }
    for (name, max) in [("keywords", MAX_KEYWORDS), ("categories", MAX_CATEGORIES)] {
        let count = words(name).len();
        if count == 0 || count > max {
            problems.push(format!("{count} {name}; 1 to {max} are taken"));
        }
    }
    let bad = words("keywords").into_iter().filter(|keyword| !is_keyword(keyword));
    problems.extend(bad.map(|keyword| format!("the keyword {keyword:?} is not taken")));
    problems
}

fn is_keyword(keyword: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '+');
    keyword.len() <= MAX_KEYWORD_BYTES
        && keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
        && keyword.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_that_the_registry_takes_has_no_problems() {
        let mut package = json!({
            "description": "d", "license": "MIT", "readme": "README.md", "rust_version": "1.88",
            "keywords": ["mcp", "exactly-twenty-bytes"], "categories": ["api-bindings"],
        });
        assert_eq!(problems(&package), Vec::<String>::new());
        package["keywords"] = json!(["one-more-than-20-bytes", "-minus", "two words"]);
        package["readme"] = Value::Null;
        package["categories"] = json!([]);
        assert_eq!(
            problems(&package),
            [
                "no readme",
                "0 categories; 1 to 5 are taken",
                "the keyword \"one-more-than-20-bytes\" is not taken",
                "the keyword \"-minus\" is not taken",
                "the keyword \"two words\" is not taken",
            ]
        );
    }
}
