//! A response body that is needed whole, collected under a cap.

use bytes::Bytes;

use super::feed::Payload;

/// The pieces so far. One piece stays as it came; more are put together.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pieces: Pieces,
}

#[derive(Debug, Default)]
enum Pieces {
    Many(Vec<u8>),
    #[default]
    None,
    One(Bytes),
}

/// More bytes came than the cap allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverCap;

impl Body {
    pub(crate) fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.pieces {
            Pieces::Many(bytes) => bytes,
            Pieces::None => &[],
            Pieces::One(bytes) => bytes,
        }
    }

    /// Adds a piece unless the body would exceed `cap`. Memory grows with what came, never with what was announced.
    pub(crate) fn push(&mut self, piece: Bytes, cap: usize) -> Result<(), OverCap> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.as_bytes().len().saturating_add(piece.len()) > cap {
            return Err(OverCap);
        }
        match &mut self.pieces {
            Pieces::Many(bytes) => bytes.extend_from_slice(&piece),
            Pieces::None => self.pieces = Pieces::One(piece),
            Pieces::One(first) => {
                let mut bytes = Vec::with_capacity(2 * (first.len() + piece.len()));
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(&piece);
                self.pieces = Pieces::Many(bytes);
            }
        }
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Payload {
        match std::mem::take(&mut self.pieces) {
            Pieces::Many(bytes) => Payload::Bytes(Bytes::from(bytes)),
            Pieces::None => Payload::Bytes(Bytes::new()),
            Pieces::One(bytes) => Payload::Bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// auth:LIM-08
    #[test]
    fn pieces_count_before_they_are_kept() {
        let mut body = Body::default();
        assert!(body.is_empty());
        assert_eq!(body.push(Bytes::from_static(b"abc"), 5), Ok(()));
        assert_eq!(body.push(Bytes::new(), 5), Ok(()));
        assert_eq!(body.push(Bytes::from_static(b"de"), 5), Ok(()));
        assert_eq!(body.push(Bytes::from_static(b"f"), 5), Err(OverCap));
        assert_eq!(body.as_bytes(), b"abcde");
        assert_eq!(body.push(Bytes::from_static(b"f"), 6), Ok(()));
        assert_eq!(body.take().as_bytes(), b"abcdef");
        assert!(body.is_empty());
        assert_eq!(Body::default().push(Bytes::from_static(b"abcdef"), 5), Err(OverCap));
    }

    #[test]
    fn a_single_piece_is_not_copied() {
        let piece = Bytes::from(vec![1, 2, 3]);
        let mut body = Body::default();
        body.push(piece.clone(), 10).unwrap();
        assert_eq!(body.take().as_bytes().as_ptr(), piece.as_ptr());
    }
}
