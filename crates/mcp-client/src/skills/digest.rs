//! The digest by which an entry vouches for a file: `sha256:` and 64 lowercase hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use hmac_sha256::Hash as Sha256;

use crate::sha256_text;

/// SHA-256 of a file's raw bytes.
///
/// It comes from the server that also sends the file: it shows that the two fit together, never that either can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillDigest([u8; 32]);

impl SkillDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::hash(bytes))
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The text is not a digest of the form `sha256:` and 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidDigest;

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest is \"sha256:\" and 64 lowercase hexadecimal digits")
    }
}

impl std::error::Error for InvalidDigest {}

impl FromStr for SkillDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        sha256_text::read(text).map(Self).ok_or(InvalidDigest)
    }
}

impl fmt::Display for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sha256_text::write(f, &self.0)
    }
}

impl fmt::Debug for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_digest_is_that_of_the_standard() {
        let check =
            |text: &str, expected: &str| assert_eq!(SkillDigest::of(text.as_bytes()).to_string(), expected);
        check("", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        check("abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn only_lowercase_digits_of_the_right_number_are_a_digest() {
        let full = "0123456789abcdef".repeat(4);
        let check = |text: String, expected: bool| {
            assert_eq!(text.parse::<SkillDigest>().is_ok(), expected, "{text}");
        };
        check(format!("sha256:{full}"), true);
        check(format!("SHA256:{full}"), false);
        check(format!("sha512:{full}"), false);
        check(full.clone(), false);
        check(format!("sha256:{}", full.to_uppercase()), false);
        check(format!("sha256:{}", &full[..63]), false);
        check(format!("sha256:{full}0"), false);
        check(format!("sha256: {}", &full[1..]), false);
        check(format!("sha256:{}\u{e9}", &full[2..]), false);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let digest = SkillDigest::of(&bytes);
            prop_assert_eq!(digest.to_string().parse::<SkillDigest>(), Ok(digest));
        }

        #[test]
        fn no_text_panics(text in ".{0,90}") {
            let _ = text.parse::<SkillDigest>();
        }
    }
}
