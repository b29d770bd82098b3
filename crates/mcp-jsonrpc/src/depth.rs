//! How deeply a text is nested, without reading it.
//!
//! Each answer passes here before anybody reads it, so the common ones must cost next to nothing. A text with no more
//! opening brackets than there may be levels is within the limit wherever they stand, and counting them needs no look at
//! strings. Only a text with more is followed level by level, 64 bytes at a time: a bit for each byte that matters, and the
//! strings as the stretches between the quotes.

use crate::scan::{escaped, prefix_xor};

/// Whether brackets are open to this depth at most. Exact for valid JSON, and a guess for what is none.
pub(crate) fn is_within(json: &[u8], max_depth: usize) -> bool {
    has_few_brackets(json, max_depth) || Levels::default().stay_within(json, max_depth)
}

/// Whether there are at most so many opening brackets, those in strings counted too.
fn has_few_brackets(json: &[u8], most: usize) -> bool {
    /// Few enough for a count of one byte, which is what makes it fast.
    const PART: usize = 192;
    let mut left = most;
    let (parts, rest) = json.as_chunks::<PART>();
    for part in parts {
        let found = part.iter().map(|byte| u8::from(is_open(*byte))).sum::<u8>();
        match left.checked_sub(usize::from(found)) {
            Some(fewer) => left = fewer,
            None => return false,
        }
    }
    rest.iter().filter(|byte| is_open(**byte)).count() <= left
}

/// The two opening brackets differ in one bit, and so do the closing ones.
const BRACKET: u8 = !(b'{' ^ b'[');

fn is_open(byte: u8) -> bool {
    byte & BRACKET == b'['
}

/// Where a text stands.
#[derive(Default)]
struct Levels {
    open: usize,
    /// All ones while inside a string, else zero.
    in_string: u64,
    /// One when a backslash at the end of a block escapes the first byte of the next.
    escape_carry: u64,
}

const BLOCK: usize = 64;

impl Levels {
    fn stay_within(mut self, json: &[u8], max_depth: usize) -> bool {
        let (blocks, rest) = json.as_chunks::<BLOCK>();
        let mut last = [b' '; BLOCK];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        blocks.iter().all(|block| self.block_stays_within(&Marks::of(block), max_depth))
            && self.block_stays_within(&Marks::of(&last), max_depth)
    }

    fn block_stays_within(&mut self, marks: &Marks, max_depth: usize) -> bool {
        let outside = !self.strings(marks);
        let (opens, closes) = (marks.opens & outside, marks.closes & outside);
        let most = self.open + opens.count_ones() as usize;
        if most <= max_depth {
            // Whatever their order.
            self.open = most.saturating_sub(closes.count_ones() as usize);
            return true;
        }
        let mut left = opens | closes;
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            left ^= lowest;
            if closes & lowest != 0 {
                self.open = self.open.saturating_sub(1);
            } else {
                self.open += 1;
                if self.open > max_depth {
                    return false;
                }
            }
        }
        true
    }

    /// The bytes that lie in strings: from an opening quote to before the closing one.
    fn strings(&mut self, marks: &Marks) -> u64 {
        let quotes = marks.quotes & !escaped(marks.backslashes, &mut self.escape_carry);
        let strings = prefix_xor(quotes) ^ self.in_string;
        self.in_string = 0_u64.wrapping_sub(strings >> (BLOCK - 1));
        strings
    }
}

/// The bytes of a block that matter, a bit each, the first byte lowest.
struct Marks {
    opens: u64,
    closes: u64,
    quotes: u64,
    backslashes: u64,
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        Self {
            opens: bits(block, is_open),
            closes: bits(block, |byte| byte & BRACKET == b']'),
            quotes: bits(block, |byte| byte == b'"'),
            backslashes: bits(block, |byte| byte == b'\\'),
        }
    }
}

/// A bit for each byte that `is` so. In two steps that compilers do for many bytes at a time.
#[inline(always)]
fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let mut places = [0; BLOCK];
    for (index, (place, byte)) in places.iter_mut().zip(block).enumerate() {
        *place = if is(*byte) { 1 << (index % 8) } else { 0 };
    }
    let mut bits = [0; BLOCK / 8];
    for (bits, places) in bits.iter_mut().zip(places.as_chunks().0) {
        // Different bits, so that the product's highest byte is all of them.
        *bits = u64::from_le_bytes(*places).wrapping_mul(0x0101_0101_0101_0101).to_be_bytes()[0];
    }
    u64::from_le_bytes(bits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Byte by byte, the obvious way.
    fn depth(json: &[u8]) -> usize {
        let (mut open, mut deepest) = (0_usize, 0);
        let (mut in_string, mut escaped) = (false, false);
        for byte in json {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => open += 1,
                b'}' | b']' if !in_string => open = open.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(open);
        }
        deepest
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<f64>().prop_map(serde_json::Value::from),
            "[a\"\\\\{}\\[\\]:,\né]{0,90}".prop_map(serde_json::Value::from),
            Just(serde_json::Value::Null),
        ];
        leaf.prop_recursive(6, 200, 9, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..9).prop_map(serde_json::Value::from),
                prop::collection::btree_map("[a\"\\\\{}\\[\\]]{0,70}", inner, 0..9)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    #[test]
    fn a_bracket_counts_wherever_a_block_ends() {
        for before in 0..200 {
            for (text, deepest) in [("[[[]]]", 3), (r#"["\\",[],"[\"[",{"a":[1]}]"#, 3), (r#""[[[\\\"[""#, 0)]
            {
                let json = format!("{}{text}{}", " ".repeat(before), "[]".repeat(200));
                let deepest: usize = deepest.max(1);
                assert!(is_within(json.as_bytes(), deepest), "{before} {text}");
                assert!(!is_within(json.as_bytes(), deepest - 1), "{before} {text}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_depth_is_that_of_reading_byte_by_byte(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let deepest = depth(text.as_bytes());
                prop_assert!(is_within(text.as_bytes(), deepest));
                prop_assert!(Levels::default().stay_within(text.as_bytes(), deepest));
                if let Some(less) = deepest.checked_sub(1) {
                    prop_assert!(!is_within(text.as_bytes(), less));
                }
            }
        }

        #[test]
        fn a_block_is_marked_as_byte_by_byte(block in prop::array::uniform32(prop::array::uniform2(any::<u8>()))) {
            let block: [u8; BLOCK] = block.concat().try_into().unwrap();
            let dense = block.map(|byte| *b"[]{}\"\\:a".get(usize::from(byte % 8)).unwrap());
            for block in [block, dense] {
                let marks = Marks::of(&block);
                for (index, byte) in block.into_iter().enumerate() {
                    let marked = [marks.opens, marks.closes, marks.quotes, marks.backslashes].map(|bits| bits >> index & 1 == 1);
                    let expected = [b"[{", b"]}", b"\"\"", b"\\\\"].map(|bytes| bytes.contains(&byte));
                    prop_assert_eq!(marked, expected, "{} at {}", byte, index);
                }
            }
        }
    }
}
