//! The calls in flight, by id.

use std::fmt;

use crate::RequestId;

/// A bounded table of calls in flight, which assigns their ids.
///
/// Ids are 1, 2, 3, ... up to 2^53 - 1 (because many peers keep numbers as doubles), and no table uses one twice. A lookup takes
/// constant time, whatever the number of calls in flight.
///
/// ```
/// use mcp_jsonrpc::{InFlight, Removed};
///
/// let mut calls = InFlight::new();
/// let id = calls.insert("tools/list").unwrap();
/// assert_eq!(calls.remove(&id), Removed::Found("tools/list"));
/// assert_eq!(calls.remove(&id), Removed::Late);
/// assert_eq!(calls.remove(&"1".into()), Removed::Unknown);
/// ```
pub struct InFlight<T> {
    /// A power of two of slots, at least twice as many as calls. A call lies in the slot that the low bits of its id
    /// name: calls in flight never share one, because an id whose slot is taken is skipped.
    slots: Vec<Option<(i64, T)>>,
    len: usize,
    capacity: usize,
    next: i64,
}

/// The result of [`InFlight::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an id is waited for, was waited for, or neither")]
pub enum Removed<T> {
    /// The call was in flight, and has been removed.
    Found(T),
    /// The id was assigned, but its call is no longer in flight: a second response, or one after the call was removed. (Ids that
    /// the table skipped count as well.)
    Late,
    /// The id was never assigned.
    Unknown,
}

/// The table is full. Returns the value.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Full<T> {
    /// The value that was not inserted.
    pub value: T,
    /// The maximum number of calls in flight.
    pub capacity: usize,
}

impl<T> InFlight<T> {
    /// The default maximum of calls in flight: more than any known peer processes at once, and only a few megabytes of memory.
    pub const DEFAULT_CAPACITY: usize = 4096;

    /// Greatest id, 2^53 - 1.
    const MAX_ID: i64 = (1 << 53) - 1;

    /// An empty table for [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) calls.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// An empty table for at most `calls` calls. Memory is allocated on demand.
    #[must_use]
    pub const fn with_capacity(calls: usize) -> Self {
        Self { slots: Vec::new(), len: 0, capacity: calls, next: 1 }
    }

    /// Adds a call and assigns its id.
    ///
    /// # Errors
    /// [`Full`], with the value, if the maximum number of calls is in flight.
    pub fn insert(&mut self, value: T) -> Result<RequestId, Full<T>> {
        if self.len >= self.capacity || self.next > Self::MAX_ID {
            return Err(Full { value, capacity: self.capacity });
        }
        if self.slots.len() < 2 * (self.len + 1) {
            self.grow();
        }
        // At most half of the slots are taken, so this ends.
        while self.slot(self.next).is_some_and(|slot| self.slots.get(slot).is_some_and(Option::is_some)) {
            self.next += 1;
        }
        let id = self.next;
        self.next += 1;
        self.len += 1;
        if let Some(slot) = self.slot(id).and_then(|slot| self.slots.get_mut(slot)) {
            *slot = Some((id, value));
        }
        Ok(RequestId::Integer(id))
    }

    /// The call with this id.
    #[must_use]
    pub fn get(&self, id: &RequestId) -> Option<&T> {
        let id = id.as_integer()?;
        let (owner, value) = self.slots.get(self.slot(id)?)?.as_ref()?;
        (*owner == id).then_some(value)
    }

    /// The call with this id.
    pub fn get_mut(&mut self, id: &RequestId) -> Option<&mut T> {
        let id = id.as_integer()?;
        let slot = self.slot(id)?;
        let (owner, value) = self.slots.get_mut(slot)?.as_mut()?;
        (*owner == id).then_some(value)
    }

    /// Removes the call with this id.
    pub fn remove(&mut self, id: &RequestId) -> Removed<T> {
        let Some(id) = id.as_integer().filter(|id| (1..self.next).contains(id)) else {
            return Removed::Unknown;
        };
        let slot = self.slot(id).and_then(|slot| self.slots.get_mut(slot));
        match slot.and_then(|slot| slot.take_if(|(owner, _)| *owner == id)) {
            Some((_, value)) => {
                self.len -= 1;
                Removed::Found(value)
            }
            None => Removed::Late,
        }
    }

    /// The id of the call in flight whose number this string has, in decimal digits.
    ///
    /// Some gateways turn integer ids into strings. Such a response does not answer the call (ids of different types differ, and
    /// [`remove`](Self::remove) returns [`Unknown`](Removed::Unknown)). Use this to tolerate or report it, instead of waiting for a
    /// timeout.
    #[must_use]
    pub fn spelled_by(&self, id: &RequestId) -> Option<RequestId> {
        let text = id.as_str()?;
        let number = RequestId::Integer(text.parse().ok()?);
        (number.to_string() == text && self.get(&number).is_some()).then_some(number)
    }

    /// The number of calls in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no call is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The maximum number of calls in flight.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The calls in flight, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &T)> {
        self.slots.iter().flatten().map(|(id, value)| (RequestId::Integer(*id), value))
    }

    /// Removes all calls, oldest first. Responses to them are then [`Late`](Removed::Late).
    pub fn drain(&mut self) -> impl Iterator<Item = (RequestId, T)> + use<T> {
        self.len = 0;
        let mut calls: Vec<_> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        calls.sort_unstable_by_key(|(id, _)| *id);
        calls.into_iter().map(|(id, value)| (RequestId::Integer(id), value))
    }

    /// The slot of an id; None while there are no slots.
    fn slot(&self, id: i64) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        Some(usize::try_from(id).ok()? & mask)
    }

    /// Doubles the slots. Ids that differ in the low bits still do with one bit more, so that each call finds its new
    /// slot free.
    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(16);
        let calls = std::mem::take(&mut self.slots);
        self.slots.resize_with(slots, || None);
        for (id, value) in calls.into_iter().flatten() {
            if let Some(slot) = self.slot(id).and_then(|slot| self.slots.get_mut(slot)) {
                *slot = Some((id, value));
            }
        }
    }
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows the numbers only, not the calls.
impl<T> fmt::Debug for InFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// Shows the limit, not the value.
impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls are in flight, which is the limit", self.capacity)
    }
}

impl<T> std::error::Error for Full<T> {}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    // protocol:J-13
    #[test]
    fn an_answer_is_found_once_then_late() {
        let mut calls = InFlight::new();
        let first = calls.insert('a').unwrap();
        let second = calls.insert('b').unwrap();
        assert_eq!((first.clone(), second.clone()), (1.into(), 2.into()));
        assert_eq!(calls.get(&second), Some(&'b'));
        *calls.get_mut(&first).unwrap() = 'c';
        assert_eq!(calls.remove(&first), Removed::Found('c'));
        assert_eq!(calls.remove(&first), Removed::Late);
        assert_eq!(calls.get(&first), None);
        assert_eq!(calls.len(), 1);
        for id in [0, 3, 4, -1, i64::MAX, i64::MIN, (1 << 32) + 2] {
            assert_eq!(calls.remove(&id.into()), Removed::Unknown, "{id}");
            assert_eq!(calls.get(&id.into()), None, "{id}");
        }
        assert!(!calls.is_empty());
        assert_eq!(calls.remove(&second), Removed::Found('b'));
        assert!(calls.is_empty());
    }

    // protocol:J-12, seed:E20, field:FR-101
    #[test]
    fn a_string_is_never_the_answer_to_a_number_but_can_be_named() {
        let mut calls = InFlight::new();
        let id = calls.insert(()).unwrap();
        assert_eq!(calls.remove(&"1".into()), Removed::Unknown);
        assert_eq!(calls.spelled_by(&"1".into()), Some(id.clone()));
        for other in ["01", "+1", " 1", "1.0", "2", "", "one"] {
            assert_eq!(calls.spelled_by(&other.into()), None, "{other}");
        }
        assert_eq!(calls.spelled_by(&id), None);
        assert_eq!(calls.remove(&id), Removed::Found(()));
        assert_eq!(calls.spelled_by(&"1".into()), None);
    }

    #[test]
    fn the_table_is_bounded_below_at_and_above() {
        let mut calls = InFlight::with_capacity(3);
        let ids: Vec<_> = (0..3).map(|value| calls.insert(value).unwrap()).collect();
        let full = calls.insert(3).unwrap_err();
        assert_eq!((full.value, full.capacity), (3, 3));
        assert_eq!(full.to_string(), "3 calls are in flight, which is the limit");
        assert_eq!(calls.remove(&ids[1]), Removed::Found(1));
        assert_eq!(calls.insert(4), Ok(4.into()));
        assert!(InFlight::with_capacity(0).insert(()).is_err());
        assert_eq!(InFlight::<()>::new().capacity(), 4096);
    }

    // protocol:J-03, protocol:J-04
    #[test]
    fn ids_end_below_2_to_the_53() {
        let mut calls = InFlight::new();
        calls.next = InFlight::<char>::MAX_ID;
        assert_eq!(calls.insert('a'), Ok(((1_i64 << 53) - 1).into()));
        assert!(calls.insert('b').is_err());
        assert_eq!(calls.remove(&((1_i64 << 53) - 1).into()), Removed::Found('a'));
        assert!(calls.insert('c').is_err());
    }

    #[test]
    fn draining_gives_the_oldest_first_and_forgets_nothing() {
        let mut calls = InFlight::new();
        let ids: Vec<_> = (0..100).map(|value| calls.insert(value).unwrap()).collect();
        for id in ids.iter().step_by(3) {
            calls.remove(id);
        }
        let mut seen: Vec<_> = calls.iter().map(|(id, value)| (id, *value)).collect();
        seen.sort();
        let drained: Vec<_> = calls.drain().collect();
        assert_eq!(drained, seen);
        assert_eq!(drained.len(), 66);
        assert!(calls.is_empty());
        assert_eq!(calls.remove(&ids[1]), Removed::Late);
        assert_eq!(calls.insert(7), Ok(101.into()));
    }

    #[test]
    fn debug_shows_numbers_and_no_call() {
        let mut calls = InFlight::with_capacity(1);
        calls.insert("secret").unwrap();
        assert_eq!(format!("{calls:?}"), "InFlight { len: 1, capacity: 1, .. }");
        assert_eq!(format!("{:?}", calls.insert("secret").unwrap_err()), "Full { capacity: 1, .. }");
    }

    #[test]
    fn memory_follows_the_calls() {
        let mut calls = InFlight::with_capacity(1 << 20);
        for _ in 0..100_000 {
            let id = calls.insert([0_u8; 64]).unwrap();
            calls.remove(&id);
        }
        assert_eq!(calls.slots.len(), 16);
        for waiting in 1..=200_usize {
            calls.insert([0; 64]).unwrap();
            assert_eq!(calls.slots.len(), (2 * waiting).next_power_of_two().max(16), "for {waiting} calls");
        }
    }

    proptest! {
        // protocol:J-03
        #[test]
        fn it_behaves_like_a_map_whose_keys_never_come_back(
            operations in proptest::collection::vec((any::<bool>(), 0_usize..40), 0..600),
            capacity in 1_usize..50,
        ) {
            let mut calls = InFlight::with_capacity(capacity);
            let mut map = BTreeMap::new();
            let mut issued = HashSet::new();
            for (i, (insert, pick)) in operations.into_iter().enumerate() {
                if insert {
                    match calls.insert(i) {
                        Ok(id) => {
                            prop_assert!(map.len() < capacity);
                            prop_assert!(issued.insert(id.clone()), "{} twice", id);
                            map.insert(id, i);
                        }
                        Err(full) => {
                            prop_assert_eq!(map.len(), capacity);
                            prop_assert_eq!(full.value, i);
                        }
                    }
                } else if let Some(id) = map.keys().nth(pick).cloned() {
                    prop_assert_eq!(calls.get(&id), map.get(&id));
                    prop_assert_eq!(calls.remove(&id), Removed::Found(map.remove(&id).unwrap()));
                    prop_assert_eq!(calls.remove(&id), Removed::Late);
                }
                prop_assert_eq!(calls.len(), map.len());
            }
        }
    }
}
