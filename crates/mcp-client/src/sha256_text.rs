//! SHA-256 digests as text: `sha256:` and 64 lowercase hexadecimal digits. Nothing else is written or read.

use std::fmt;

pub(crate) fn write(f: &mut fmt::Formatter<'_>, digest: &[u8; 32]) -> fmt::Result {
    f.write_str("sha256:")?;
    digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// `None` where the text is no digest in this form.
pub(crate) fn read(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = (nibble(*high)? << 4) | nibble(*low)?;
    }
    Some(digest)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
