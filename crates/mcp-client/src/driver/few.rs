//! A queue that takes no memory of its own for one element, which is what nearly every call has.

use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Few<T> {
    /// Invariant: older than all the rest.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Few<T> {
    pub(crate) fn push_back(&mut self, element: T) {
        if self.is_empty() {
            self.first = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push_back(element));
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::collections::vec_deque::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_comes_first_however_it_was_filled_and_emptied() {
        let (mut few, mut twin) = (Few::default(), VecDeque::new());
        for number in 0..200_u64 {
            few.push_back(number);
            twin.push_back(number);
            for _ in 0..(number * 7 % 3) {
                assert_eq!(few.pop_front(), twin.pop_front());
                assert_eq!(few.is_empty(), twin.is_empty());
            }
        }
        few.extend([1, 2, 3]);
        twin.extend([1, 2, 3]);
        assert!(few.into_iter().eq(twin));
    }
}
