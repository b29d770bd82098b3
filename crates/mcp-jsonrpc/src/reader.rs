//! A cursor over the text of one message, with the steps that every object in the envelope shares.

use crate::{
    DecodeErrorKind, DecodeLimits, RawRef,
    decode_error::Fault,
    scan,
    token::{Number, StringToken},
};

pub(crate) struct Reader<'a, 'l> {
    pub(crate) text: &'a str,
    pub(crate) pos: usize,
    pub(crate) limits: &'l DecodeLimits,
    /// The first fault that did not end reading.
    pub(crate) fault: Option<Fault>,
}

impl<'a> Reader<'a, '_> {
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.pos..).unwrap_or_default()
    }

    /// Notes a fault that leaves the structure intact; the first one counts.
    pub(crate) fn note(&mut self, kind: DecodeErrorKind, offset: usize) {
        self.fault.get_or_insert(Fault::new(kind, offset));
    }

    pub(crate) fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    /// The fault of finding something else here than JSON allows.
    pub(crate) fn unexpected(&self) -> Fault {
        let kind = match self.peek() {
            Some(_) => DecodeErrorKind::Syntax,
            None => DecodeErrorKind::UnexpectedEnd,
        };
        Fault::new(kind, self.pos)
    }

    /// Steps into the object at `pos`, which is at level `depth` (1 is the outermost). False when it has no members.
    pub(crate) fn enter_object(&mut self, depth: usize) -> bool {
        let limit = self.limits.depth();
        if depth > limit {
            self.note(DecodeErrorKind::TooDeep { limit }, self.pos);
        }
        self.pos += 1;
        self.space();
        let empty = self.peek() == Some(b'}');
        self.pos += usize::from(empty);
        !empty
    }

    /// Reads a key and the colon after it.
    pub(crate) fn key(&mut self) -> Result<StringToken<'a>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.pos += 1;
        self.space();
        Ok(key)
    }

    /// Steps past the comma to the next member, or past the end of the object; false at the end.
    pub(crate) fn next_member(&mut self) -> Result<bool, Fault> {
        self.space();
        let more = match self.peek() {
            Some(b',') => true,
            Some(b'}') => false,
            _ => return Err(self.unexpected()),
        };
        self.pos += 1;
        if more {
            self.space();
        }
        Ok(more)
    }

    /// Reads the string token at `pos`.
    pub(crate) fn string(&mut self) -> Result<StringToken<'a>, Fault> {
        let (token, end) = StringToken::read(self.text, self.pos)?;
        self.pos = end;
        Ok(token)
    }

    /// Reads the number at `pos`. None (and nothing read) when there is none.
    pub(crate) fn number(&mut self) -> Option<Number> {
        let (number, end) = Number::read(self.text.as_bytes(), self.pos)?;
        self.pos = end;
        Some(number)
    }

    /// Whether `null` stands here; steps past it.
    pub(crate) fn null(&mut self) -> bool {
        let null = self.rest().starts_with(b"null");
        self.pos += if null { 4 } else { 0 };
        null
    }

    /// Steps past the value at `pos`, which lies `outer` levels deep, and gives its text.
    pub(crate) fn value(&mut self, outer: usize) -> Result<RawRef<'a>, Fault> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        match self.peek() {
            Some(b'{' | b'[') => {
                let container = scan::container(bytes, start, outer, self.limits.depth())?;
                if let Some(fault) = container.fault {
                    self.note(fault.kind, fault.offset);
                }
                self.pos = container.end;
            }
            Some(b'"') => self.pos = scan::string(bytes, start)?,
            Some(b'-' | b'0'..=b'9') if self.number().is_some() => {}
            _ => self.literal()?,
        }
        Ok(RawRef::bracketed(self.text.get(start..self.pos).unwrap_or_default()))
    }

    /// Steps past `true`, `false` or `null`. Any other bare word (`NaN`) is noted and stepped over.
    fn literal(&mut self) -> Result<(), Fault> {
        let is_word = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_');
        let len = self.rest().iter().take_while(is_word).count();
        match self.rest().get(..len).unwrap_or_default() {
            b"true" | b"false" | b"null" => {}
            b"" => return Err(self.unexpected()),
            _ => self.note(DecodeErrorKind::Syntax, self.pos),
        }
        self.pos += len;
        Ok(())
    }
}
