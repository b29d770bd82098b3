//! Where in a file the ids of requirements stand, and at which of these places a test shows what they say.
//!
//! That is in the comment above a test, in its body, and in a table of cases; not in the introduction of a file, nor at what
//! tests only share. It is told by the lines as rustfmt lays them out, which is how all files here are.

/// The sources of ids that are looked at.
pub(super) const SOURCES: [&str; 2] = ["protocol", "seed"];

/// An id that a file names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) id: String,
    pub(super) is_at_a_test: bool,
}

/// All of them in the test code of a file, in order.
pub(super) fn places(path: &str, text: &str) -> Vec<Place> {
    let lines: Vec<&str> = test_part(path, text).lines().collect();
    let mut places = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut ids = ids(line).peekable();
        if ids.peek().is_some() {
            let is_at_a_test = is_at_a_test(&lines, at);
            places.extend(ids.map(|id| Place { id, is_at_a_test }));
        }
    }
    places
}

/// What of a file is test code: all of it in a folder or file of tests, else what follows `#[cfg(test)]`.
fn test_part<'a>(path: &str, text: &'a str) -> &'a str {
    let is_test = path.starts_with("tests/")
        || path.split('/').any(|part| part == "tests")
        || path.ends_with("tests.rs");
    if is_test {
        return text;
    }
    text.find("#[cfg(test)]\nmod").and_then(|at| text.get(at..)).unwrap_or_default()
}

fn is_at_a_test(lines: &[&str], at: usize) -> bool {
    let Some(line) = lines.get(at) else { return false };
    if line.trim_start().starts_with("//!") {
        return false;
    }
    let below = lines.get(at..).unwrap_or_default().iter();
    // The item that this comment, or the attribute it stands among, belongs to.
    let head: Vec<&&str> = below.take_while(|line| is_above_an_item(line)).collect();
    if head.iter().any(|line| is_test_attribute(line)) {
        return true;
    }
    let around = lines.get(..at).unwrap_or_default().iter().enumerate().rev();
    let around = around.filter(|(_, outer)| !outer.trim().is_empty() && indent(outer) < indent(line));
    let Some((start, item)) =
        around.map(|(at, line)| (at, line.trim_start())).find(|(_, line)| is_item(line))
    else {
        return false;
    };
    let above = lines.get(..start).unwrap_or_default().iter().rev();
    is_table(item) || above.take_while(|line| is_above_an_item(line)).any(|line| is_test_attribute(line))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_above_an_item(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("#[")
}

/// `#[test]`, `#[tokio::test]`, `#[tokio::test(...)]`.
fn is_test_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[test]") || line.starts_with("#[tokio::test")
}

fn without_visibility(item: &str) -> &str {
    let Some(rest) = item.strip_prefix("pub") else { return item };
    match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(") ").map_or(item, |(_, rest)| rest),
        None => rest.trim_start(),
    }
}

fn is_item(line: &str) -> bool {
    const STARTS: [&str; 9] =
        ["async fn ", "const ", "enum ", "fn ", "impl ", "impl<", "mod ", "static ", "struct "];
    let line = without_visibility(line);
    STARTS.iter().any(|start| line.starts_with(start))
}

/// Cases that a test goes through; one that no test goes through is dead code, and refused by the compiler.
fn is_table(item: &str) -> bool {
    let item = without_visibility(item);
    (item.starts_with("const ") && !item.starts_with("const fn")) || item.starts_with("static ")
}

/// The ids in a text: a source, a colon, and what looks like an id.
fn ids(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |byte: char| byte.is_ascii_alphanumeric() || byte == '-';
    text.match_indices(':').filter_map(move |(at, _)| {
        let before = text.get(..at)?;
        let source = SOURCES.into_iter().find(|source| before.ends_with(source))?;
        let after = text.get(at + 1..)?;
        let end = after.find(|byte: char| !is_part(byte)).unwrap_or(after.len());
        let id = after.get(..end)?.trim_end_matches('-');
        let letters = id.find(|byte: char| !byte.is_ascii_uppercase()).unwrap_or(id.len());
        let number = id.get(letters..)?.trim_start_matches('-');
        let is_id = letters > 0 && number.starts_with(|byte: char| byte.is_ascii_digit());
        is_id.then(|| format!("{source}:{id}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_comments_of_any_form() {
        let text = "/// protocol:J-01, seed:S-95a; protocol:S1 (auth:SEC-01) `seed:E5`. a protocol: none, protocol:x-1";
        assert_eq!(ids(text).collect::<Vec<_>>(), ["protocol:J-01", "seed:S-95a", "protocol:S1", "seed:E5"]);
    }

    #[test]
    fn only_tests_count() {
        let text = "// A-1\n#[cfg(test)]\nmod tests { // B-2 }";
        assert!(!test_part("crates/a/src/b.rs", text).contains("A-1"));
        assert!(test_part("crates/a/src/b.rs", text).contains("B-2"));
        assert_eq!(test_part("crates/a/src/c.rs", "// A-1"), "");
        assert_eq!(test_part("crates/a/src/tests/c.rs", "// A-1"), "// A-1");
        assert_eq!(test_part("tests/scenarios/c.rs", "// A-1"), "// A-1");
    }

    #[test]
    fn an_id_counts_above_a_test_in_it_and_in_a_table_and_nowhere_else() {
        let text = "\
//! seed:S-0
/// seed:S-1
#[tokio::test(start_paused = true)]
#[expect(clippy::unwrap_used)]
async fn one() {
    assert!(true, \"seed:S-2\");

    // seed:S-3
    if true {
        // seed:S-4
    }
}

/// seed:S-5
fn shared() {
    // seed:S-6
}

/// seed:S-7
struct Peer;

pub(crate) const CASES: &[Case] = &[
    // seed:S-8
    case(\"a\"),
];

const fn short() {
    // seed:S-9
}

proptest! {
    /// seed:S-10
    #[test]
    fn two() {}
}
// seed:S-11
";
        let counting = |wanted: bool| {
            let places = places("tests/a.rs", text).into_iter().filter(|place| place.is_at_a_test == wanted);
            places.map(|place| place.id.replace("seed:S-", "")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(counting(true), "1 2 3 4 8 10");
        assert_eq!(counting(false), "0 5 6 7 9 11");
    }
}
