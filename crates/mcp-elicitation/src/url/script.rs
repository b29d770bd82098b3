//! Which alphabet a character belongs to, as far as telling mixtures apart needs it.
//!
//! By Unicode block and not by the full script property: a whole block that holds two scripts would only make a
//! warning appear or not appear, and the table stays readable. Digits, hyphens and combining marks belong to
//! every alphabet.

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// In use with every alphabet.
    Common,
    Latin,
    Han,
    Kana,
    Bopomofo,
    Hangul,
    /// Another alphabet, told by the number of its row in [`BLOCKS`].
    Other(usize),
}

/// First and last character of the blocks of alphabets that domain names are written in.
const BLOCKS: [(u32, u32, &str); 29] = [
    (0x0370, 0x03ff, "Greek"),
    (0x1f00, 0x1fff, "Greek"),
    (0x0400, 0x052f, "Cyrillic"),
    (0x1c80, 0x1c8f, "Cyrillic"),
    (0x2de0, 0x2dff, "Cyrillic"),
    (0xa640, 0xa69f, "Cyrillic"),
    (0x0530, 0x058f, "Armenian"),
    (0x0590, 0x05ff, "Hebrew"),
    (0x0600, 0x06ff, "Arabic"),
    (0x0750, 0x077f, "Arabic"),
    (0x08a0, 0x08ff, "Arabic"),
    (0x0900, 0x097f, "Devanagari"),
    (0x0980, 0x09ff, "Bengali"),
    (0x0a00, 0x0a7f, "Gurmukhi"),
    (0x0a80, 0x0aff, "Gujarati"),
    (0x0b00, 0x0b7f, "Oriya"),
    (0x0b80, 0x0bff, "Tamil"),
    (0x0c00, 0x0c7f, "Telugu"),
    (0x0c80, 0x0cff, "Kannada"),
    (0x0d00, 0x0d7f, "Malayalam"),
    (0x0d80, 0x0dff, "Sinhala"),
    (0x0e00, 0x0e7f, "Thai"),
    (0x0e80, 0x0eff, "Lao"),
    (0x1000, 0x109f, "Myanmar"),
    (0x10a0, 0x10ff, "Georgian"),
    (0x1200, 0x139f, "Ethiopic"),
    (0x13a0, 0x13ff, "Cherokee"),
    (0x1400, 0x167f, "Canadian Aboriginal"),
    (0x1780, 0x17ff, "Khmer"),
];

fn script(c: char) -> Script {
    match u32::from(c) {
        0x41..=0x5a | 0x61..=0x7a => Script::Latin,
        0..=0xbf | 0xd7 | 0xf7 => Script::Common,
        0xc0..=0x24f
        | 0x250..=0x2af
        | 0x1e00..=0x1eff
        | 0x2c60..=0x2c7f
        | 0xa720..=0xa7ff
        | 0xab30..=0xab6f => Script::Latin,
        0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff => {
            Script::Han
        }
        0x20000..=0x3ffff => Script::Han,
        0x3040..=0x30fa | 0x30fd..=0x30ff | 0x31f0..=0x31ff => Script::Kana,
        0x3100..=0x312f | 0x31a0..=0x31bf => Script::Bopomofo,
        0x1100..=0x11ff | 0x3130..=0x318f | 0xa960..=0xa97f | 0xac00..=0xd7ff => Script::Hangul,
        code => {
            let row = BLOCKS.iter().position(|(first, last, _)| (*first..=*last).contains(&code));
            // Blocks of one alphabet share the number of the first of them.
            let name = row.and_then(|row| BLOCKS.get(row)).map(|(_, _, name)| *name);
            let first = BLOCKS.iter().position(|(_, _, other)| Some(*other) == name);
            first.map_or(Script::Common, Script::Other)
        }
    }
}

/// Whether a label mixes alphabets other than those of Japanese, Chinese and Korean, each with Latin: the
/// "highly restrictive" profile of Unicode Technical Standard 39.
pub(super) fn is_mixed(label: &str) -> bool {
    let mut scripts: Vec<Script> = Vec::new();
    for script in label.chars().map(script) {
        if script != Script::Common && !scripts.contains(&script) {
            scripts.push(script);
        }
    }
    let all_of = |allowed: &[Script]| scripts.iter().all(|script| allowed.contains(script));
    scripts.len() > 1
        && !all_of(&[Script::Latin, Script::Han, Script::Kana])
        && !all_of(&[Script::Latin, Script::Han, Script::Bopomofo])
        && !all_of(&[Script::Latin, Script::Han, Script::Hangul])
}

#[cfg(test)]
mod tests {
    use super::is_mixed;

    #[test]
    fn alphabets_that_do_not_belong_together_are_mixed() {
        for label in [
            "\u{430}pple",
            "p\u{3b1}ypal",
            "\u{567}x",
            "\u{5d0}a",
            "\u{30ab}\u{ac00}",
            "\u{430}\u{5d0}",
            "g\u{43e}\u{43e}gle",
        ] {
            assert!(is_mixed(label), "{label}");
        }
        for label in [
            "apple",
            "b\u{fc}cher",
            "\u{43f}\u{440}\u{438}\u{43c}\u{435}\u{440}-1",
            "\u{4f8b}\u{3048}\u{30ab}abc",
            "\u{d55c}\u{6f22}x",
            "123-4",
            "",
            "\u{1f10}\u{3b1}",
            "\u{3105}\u{4e2d}",
            "a\u{1f600}",
        ] {
            assert!(!is_mixed(label), "{label}");
        }
    }
}
