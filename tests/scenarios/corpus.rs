//! Replays the committed fuzz corpora, so that a mistake once found stays found on machines that never fuzz.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

/// The names of the entries of a folder, none where there is no folder.
fn entries(folder: PathBuf) -> BTreeSet<String> {
    let listed = fs::read_dir(folder).into_iter().flatten();
    listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "shown when a body panics: the way to the input")]
fn every_input_of_every_target_passes() {
    assert!(!mcp_fuzz::TARGETS.is_empty());
    for (name, body) in mcp_fuzz::TARGETS {
        let folder = corpus().join(name);
        let inputs = entries(folder.clone());
        assert!(!inputs.is_empty(), "the target {name} has no corpus");
        for input in inputs {
            println!("{name}/{input}");
            body(&fs::read(folder.join(input)).unwrap());
        }
    }
}

#[test]
fn every_corpus_has_a_target_and_every_target_an_entry_point() {
    let targets: BTreeSet<String> = mcp_fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(entries(corpus()), targets);
    let files: BTreeSet<String> = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(entries(corpus().join("../fuzz_targets")), files);
    // What the manifest does not declare is never fuzzed, and what hands over another body is fuzzed in vain.
    let manifest = fs::read_to_string(corpus().join("../Cargo.toml")).unwrap();
    assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
    for name in targets {
        assert!(
            manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n")),
            "{name}"
        );
        let entry_point = fs::read_to_string(corpus().join(format!("../fuzz_targets/{name}.rs"))).unwrap();
        assert!(entry_point.contains(&format!("::{name}(data)")), "{name}");
    }
}
