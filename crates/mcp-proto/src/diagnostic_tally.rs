//! How often each kind of oddity happened, and which of them are told one by one.
//!
//! A peer can cause most kinds as often as it can write. The first few of a kind are told singly, then one each time that their number
//! has doubled, and the rest when the connection ends: a flood of a million is told in some thirty events, and each of the million is
//! counted in one of them.

use crate::diagnostic::{Diagnostic, DiagnosticKind};

/// One entry a kind, so bounded by their number.
#[derive(Debug)]
pub(crate) struct DiagnosticTally {
    max_single: u64,
    kinds: Vec<(DiagnosticKind, Count)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    happened: u64,
    told: u64,
}

impl DiagnosticTally {
    /// `max_single`: so many of each kind are told one by one, at least one.
    pub(crate) fn new(max_single: u32) -> Self {
        Self { max_single: u64::from(max_single.max(1)), kinds: Vec::new() }
    }

    /// It happened once more. Returns what is to be told now, if anything.
    pub(crate) fn count(&mut self, mut diagnostic: Diagnostic) -> Option<Diagnostic> {
        let at = self.kinds.iter().position(|(kind, _)| *kind == diagnostic.kind).unwrap_or_else(|| {
            self.kinds.push((diagnostic.kind, Count::default()));
            self.kinds.len() - 1
        });
        let (kind, count) = self.kinds.get_mut(at)?;
        count.happened = count.happened.saturating_add(diagnostic.count);
        let is_single = kind.is_told_singly() || count.happened <= self.max_single;
        if !is_single && count.happened < count.told.saturating_mul(2) {
            return None;
        }
        (diagnostic.count, diagnostic.total) = count.tell();
        Some(diagnostic)
    }

    /// How many of each kind there were, in the order in which they happened first.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (DiagnosticKind, u64)> {
        self.kinds.iter().map(|(kind, count)| (*kind, count.happened))
    }

    /// What was not told yet, by kind, in the order in which they happened first.
    pub(crate) fn end(&mut self) -> impl Iterator<Item = Diagnostic> {
        self.kinds.iter_mut().filter_map(|(kind, count)| {
            let (count, total) = count.tell();
            let message = format!("{count} more before the connection ended, {total} in all");
            let mut rest = Diagnostic::new(*kind, message);
            (rest.count, rest.total) = (count, total);
            (count > 0).then_some(rest)
        })
    }
}

impl Count {
    fn tell(&mut self) -> (u64, u64) {
        let untold = self.happened - self.told;
        self.told = self.happened;
        (untold, self.happened)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOISE: DiagnosticKind = DiagnosticKind::InvalidMessage;

    fn told(tally: &mut DiagnosticTally, kind: DiagnosticKind, times: u64) -> Vec<(u64, u64)> {
        let one = |number: u64| Diagnostic::new(kind, number.to_string());
        (1..=times)
            .filter_map(|number| tally.count(one(number)))
            .map(|told| (told.count, told.total))
            .collect()
    }

    #[test]
    fn the_first_are_told_singly_then_one_at_each_doubling_and_the_rest_at_the_end() {
        let mut tally = DiagnosticTally::new(3);
        assert_eq!(told(&mut tally, NOISE, 30), [(1, 1), (1, 2), (1, 3), (3, 6), (6, 12), (12, 24)]);
        let rest: Vec<_> = tally.end().collect();
        assert_eq!(rest.len(), 1);
        assert_eq!((rest[0].kind, rest[0].count, rest[0].total), (NOISE, 6, 30));
        assert_eq!(rest[0].message, "6 more before the connection ended, 30 in all");
        assert_eq!(tally.end().count(), 0, "told once");
    }

    #[test]
    fn kinds_are_counted_apart() {
        let mut tally = DiagnosticTally::new(1);
        assert_eq!(told(&mut tally, NOISE, 3), [(1, 1), (1, 2)]);
        assert_eq!(told(&mut tally, DiagnosticKind::LateResponse, 2), [(1, 1), (1, 2)]);
    }

    #[test]
    fn what_the_application_brings_about_is_always_told_singly() {
        let mut tally = DiagnosticTally::new(1);
        assert_eq!(told(&mut tally, DiagnosticKind::CallRetried, 100).len(), 100);
        assert_eq!(tally.end().count(), 0);
    }

    /// auth:SEC-09
    #[test]
    fn a_flood_of_a_million_is_told_in_few_events() {
        let mut tally = DiagnosticTally::new(16);
        let events = told(&mut tally, NOISE, 1_000_000);
        assert_eq!(events.len(), 16 + 15, "{events:?}");
    }

    proptest! {
        #[test]
        fn none_is_lost_and_none_is_told_twice(max_single in 0_u32..20, kinds in prop::collection::vec(0_usize..4, 0..600)) {
            use DiagnosticKind as Kind;
            let all = [Kind::InvalidMessage, Kind::LateResponse, Kind::UnknownResponse, Kind::CallRetried];
            let mut tally = DiagnosticTally::new(max_single);
            let (mut happened, mut told) = ([0_u64; 4], [0_u64; 4]);
            let of = |kind| all.iter().position(|known| *known == kind).unwrap();
            for index in kinds {
                happened[index] += 1;
                if let Some(event) = tally.count(Diagnostic::new(all[index], "")) {
                    told[of(event.kind)] += event.count;
                    prop_assert_eq!(event.total, happened[index]);
                    prop_assert_eq!(told[index], happened[index]);
                }
                prop_assert!(told[index] * 2 >= happened[index], "never less than half of them");
            }
            tally.end().for_each(|event| told[of(event.kind)] += event.count);
            prop_assert_eq!(told, happened);
            let mut totals = [0_u64; 4];
            tally.totals().for_each(|(kind, total)| totals[of(kind)] += total);
            prop_assert_eq!(totals, happened);
        }
    }
}
