//! What `Debug` shows of raw JSON that may hold secrets: its size.
//!
//! `_meta` is such a place, since it names tasks and holds what applications put there; so are the arguments of tools. The rule goes
//! by what a member holds: a type with one has the `Debug` that [`debug`] writes, or one of its own.

use std::fmt;

use serde_json::value::RawValue;

/// Writes `Debug` for a struct: some members as they are, of the others the size alone. It names every member, so that one that is
/// new cannot be forgotten.
macro_rules! debug {
    ($name:ident { $( $shown:ident ),* } sized { $( $sized:ident ),+ }) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Self { $( $shown, )* $( $sized, )+ } = self;
                f.debug_struct(stringify!($name))
                    $( .field(stringify!($shown), $shown) )*
                    $( .field(stringify!($sized), &$crate::confidential::SizeOnly::size_only($sized)) )+
                    .finish()
            }
        }
    };
}

pub(crate) use debug;

/// So many bytes of something that is not shown.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

/// What has a size to show in its place.
pub(crate) trait SizeOnly {
    fn size_only(&self) -> impl fmt::Debug;
}

impl SizeOnly for Box<RawValue> {
    fn size_only(&self) -> impl fmt::Debug {
        Bytes(self.get().len())
    }
}

impl SizeOnly for Option<Box<RawValue>> {
    fn size_only(&self) -> impl fmt::Debug {
        self.as_ref().map(|raw| Bytes(raw.get().len()))
    }
}

impl SizeOnly for String {
    fn size_only(&self) -> impl fmt::Debug {
        Bytes(self.len())
    }
}
