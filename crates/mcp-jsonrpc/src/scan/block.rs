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

/// The masks of the 64 bytes from `pos` on, or of as many as there are.
pub(super) fn at(bytes: &[u8], pos: usize) -> Masks {
    let rest = bytes.get(pos..).unwrap_or_default();
    if let Some(block) = rest.first_chunk() {
        return classify(block);
    }
    if let Some(block) = bytes.last_chunk() {
        // The last 64 bytes, with the bits of those before `pos` shifted out.
        let before = LEN - rest.len();
        let masks = classify(block);
        let shift = |mask: u64| mask.unbounded_shr(before as u32);
        return Masks {
            quote: shift(masks.quote),
            backslash: shift(masks.backslash),
            bracket: shift(masks.bracket),
        };
    }
    let mut block = [0; LEN];
    if let Some(head) = block.get_mut(..rest.len()) {
        head.copy_from_slice(rest);
    }
    classify(&block)
}

/// Written so that compilers turn it into vector instructions: comparing 64 bytes at once is what makes the scanner
/// fast, and gathering one bit a byte is what costs, so that it is left out for what the block does not have.
fn classify(block: &[u8; LEN]) -> Masks {
    Masks {
        quote: mask(block, |byte| byte == b'"'),
        backslash: mask(block, |byte| byte == b'\\'),
        // This bit is all that '[' and '{' differ in, and ']' and '}'.
        bracket: mask(block, |byte| matches!(byte | 0x20, b'{' | b'}')),
    }
}

#[inline(always)]
fn mask(block: &[u8; LEN], wanted: impl Fn(u8) -> bool) -> u64 {
    let hits = block.map(|byte| if wanted(byte) { 0xff } else { 0 });
    let (words, _) = hits.as_chunks::<8>();
    if words.iter().fold(0, |any, word| any | u64::from_le_bytes(*word)) == 0 {
        return 0;
    }
    let bits = words.iter().map(|word| gather(u64::from_le_bytes(*word)));
    bits.zip(0..).fold(0, |mask, (bits, i)| mask | bits << (8 * i))
}

/// One bit for each byte that is all ones, lowest first.
fn gather(bytes: u64) -> u64 {
    // One different bit of each byte, added up in the highest byte.
    (bytes & 0x8040_2010_0804_0201).wrapping_mul(0x0101_0101_0101_0101) >> 56
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
