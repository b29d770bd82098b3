//! Where the quotes, backslashes and brackets are in 64 bytes, as bit masks.

/// Bit `i` speaks of byte `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) quote: u64,
    pub(super) backslash: u64,
    /// `[`, `]`, `{` and `}`.
    pub(super) bracket: u64,
}

pub(super) const LEN: usize = 64;

const LOW: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;

pub(super) fn classify(block: &[u8; LEN]) -> Masks {
    let mut masks = Masks { quote: 0, backslash: 0, bracket: 0 };
    let (words, _) = block.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let folded = word | (LOW * 0x20);
        masks.quote |= pack(equal(word, b'"')) << (8 * i);
        masks.backslash |= pack(equal(word, b'\\')) << (8 * i);
        masks.bracket |= pack(equal(folded, b'{') | equal(folded, b'}')) << (8 * i);
    }
    masks
}

/// The high bit of every byte that equals `byte`; exact, no carry crosses a byte.
fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (LOW * u64::from(byte));
    !(((difference & LOW7) + LOW7) | difference | LOW7)
}

/// Eight high bits to the lowest eight bits.
fn pack(high_bits: u64) -> u64 {
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(block: &[u8; LEN]) -> Masks {
        let mask = |wanted: &[u8]| {
            block.iter().enumerate().filter(|(_, b)| wanted.contains(b)).fold(0, |mask, (i, _)| mask | 1 << i)
        };
        Masks { quote: mask(b"\""), backslash: mask(b"\\"), bracket: mask(b"[]{}") }
    }

    #[test]
    fn every_byte_value_at_every_place() {
        for value in 0..=u8::MAX {
            for place in 0..LEN {
                for fill in [b' ', b'"', 0, 0xff] {
                    let mut block = [fill; LEN];
                    block[place] = value;
                    assert_eq!(classify(&block), naive(&block), "{value} at {place}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn masks_agree_with_the_obvious_ones(bytes in proptest::collection::vec(any::<u8>(), LEN)) {
            let block = <&[u8; LEN]>::try_from(bytes.as_slice()).unwrap();
            prop_assert_eq!(classify(block), naive(block));
        }
    }
}
