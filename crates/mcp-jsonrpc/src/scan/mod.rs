//! Finds where a JSON value ends, without parsing it.
//!
//! Containers are read 64 bytes at a time as bit masks: which quotes are escaped, which bytes lie inside strings, and
//! which brackets are left outside of them. There is no recursion; one bit a level remembers which bracket has to come
//! next. A long stretch of string without a quote or a backslash (base64, prose) is skipped by `memchr`.

mod block;

use memchr::memchr2;

use crate::decode_error::{DecodeErrorKind, Fault};

/// The end of a container, and the first fault inside that did not keep the scanner from finding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    /// Past the closing bracket.
    pub(crate) end: usize,
    pub(crate) fault: Option<Fault>,
}

/// Finds the end of the object or array that opens at `start`, `outer` levels below the top.
///
/// Depth over the limit and a closing bracket of the wrong kind are reported but do not stop it, so that an id behind
/// the container can still be found.
pub(crate) fn container(
    bytes: &[u8],
    start: usize,
    outer: usize,
    max_depth: usize,
) -> Result<Container, Fault> {
    let mut nesting = Nesting { depth: 0, kinds: 0, allowed: max_depth.saturating_sub(outer), fault: None };
    // All ones while inside a string, else zero.
    let mut in_string = 0_u64;
    // One when the last byte of the previous block was a backslash that escapes the first byte of this one.
    let mut escape_carry = 0_u64;
    let mut pos = start;
    while pos < bytes.len() {
        let masks = block::at(bytes, pos);
        let quotes = masks.quote & !escaped(masks.backslash, &mut escape_carry);
        let inside = prefix_xor(quotes) ^ in_string;
        let mut brackets = masks.bracket & !inside;
        while brackets != 0 {
            let at = pos + brackets.trailing_zeros() as usize;
            let bracket = bytes.get(at).copied().unwrap_or_default();
            if nesting.step(bracket, at, max_depth) {
                return Ok(Container { end: at + 1, fault: nesting.fault });
            }
            brackets &= brackets - 1;
        }
        in_string = 0_u64.wrapping_sub(inside >> 63);
        pos += block::LEN;
        if in_string != 0 && masks.quote | masks.backslash == 0 {
            let rest = bytes.get(pos..).unwrap_or_default();
            pos += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        }
    }
    Err(Fault::new(DecodeErrorKind::UnexpectedEnd, bytes.len()))
}

struct Nesting {
    depth: usize,
    /// The innermost 128 open brackets, innermost lowest; one for an object.
    kinds: u128,
    allowed: usize,
    fault: Option<Fault>,
}

impl Nesting {
    /// Takes one bracket; true when it closes the outermost one.
    #[inline(always)]
    fn step(&mut self, bracket: u8, offset: usize, max_depth: usize) -> bool {
        let object = bracket & 0x20 != 0;
        let opens = bracket & 0x06 == 0x02;
        if opens {
            self.depth += 1;
            self.kinds = (self.kinds << 1) | u128::from(object);
            if self.depth > self.allowed {
                self.note(DecodeErrorKind::TooDeep { limit: max_depth }, offset);
            }
            return false;
        }
        if (self.kinds & 1 == 1) != object {
            self.note(DecodeErrorKind::MismatchedBracket, offset);
        }
        self.kinds >>= 1;
        self.depth -= 1;
        self.depth == 0
    }

    /// The first fault counts. Past it the kinds may be wrong or lost, but only the depth matters from there on.
    #[cold]
    fn note(&mut self, kind: DecodeErrorKind, offset: usize) {
        self.fault.get_or_insert(Fault::new(kind, offset));
    }
}

/// Which bytes follow an odd run of backslashes. `carry` is what the block before left for this one, and then what this one
/// leaves: one where its last byte escapes the next.
pub(crate) fn escaped(backslash: u64, carry: &mut u64) -> u64 {
    if backslash == 0 {
        return std::mem::take(carry);
    }
    // Backslashes that are themselves escaped by the previous block start no run.
    let backslash = backslash & !*carry;
    let follows = (backslash << 1) | *carry;
    // Adding the starts of runs at odd places makes every such run carry out at its end; what then differs in parity
    // from its neighbour is an odd run.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let odd_starts = backslash & !EVEN & !follows;
    let (even_ends, overflow) = odd_starts.overflowing_add(backslash);
    *carry = u64::from(overflow);
    (EVEN ^ (even_ends << 1)) & follows
}

/// Bit `i` of the result is the parity of bits `0..=i`: with quotes, whether byte `i` lies in a string (the opening
/// quote counts as inside, the closing one as outside).
pub(crate) fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ (bits << 32)
}

/// Finds the end (past the closing quote) of the string whose opening quote is at `start`.
pub(crate) fn string(bytes: &[u8], start: usize) -> Result<usize, Fault> {
    let mut pos = start + 1;
    loop {
        let rest = bytes.get(pos..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(at) if rest.get(at) == Some(&b'"') => return Ok(pos + at + 1),
            // The byte after a backslash is part of the escape, whatever it is.
            Some(at) => pos += at + 2,
            None => return Err(Fault::new(DecodeErrorKind::UnexpectedEnd, bytes.len())),
        }
    }
}

#[cfg(test)]
mod tests;
