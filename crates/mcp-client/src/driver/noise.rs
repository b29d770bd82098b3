//! What a server wrote where messages belong, and that is none: why connecting failed, why a call has no answer or what a server died of
//! often stands there.

use std::collections::VecDeque;
use std::sync::Arc;

/// The last lines, each with its end.
#[derive(Debug)]
pub(super) struct Noise {
    lines: VecDeque<String>,
    bytes: usize,
    max_bytes: usize,
    /// How many lines there were, those that are not kept included.
    seen: u64,
    /// All of them, once somebody has asked: many calls end with one connection.
    text: Option<Arc<str>>,
}

impl Noise {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, max_bytes, seen: 0, text: None }
    }

    /// Takes in a line, of which the beginning counts; older lines give way.
    pub(super) fn push(&mut self, line: &str) {
        self.seen += 1;
        self.text = None;
        let Some(room) = self.max_bytes.checked_sub(1) else { return };
        let mut cut = line.len().min(room);
        while !line.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut kept = line.get(..cut).unwrap_or_default().trim_end().to_owned();
        kept.push('\n');
        self.bytes += kept.len();
        self.lines.push_back(kept);
        while self.bytes > self.max_bytes {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |oldest| oldest.len());
        }
    }

    /// How many lines there were, for [`since`](Self::since).
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// Forgets what it was until now: that was no obstacle.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        (self.bytes, self.text) = (0, None);
    }

    /// What is kept, if it says anything.
    pub(super) fn text(&mut self) -> Option<Arc<str>> {
        if self.text.is_none() {
            self.text = joined(self.lines.iter());
        }
        self.text.clone()
    }

    /// What is kept of the lines after the first so many.
    pub(super) fn since(&mut self, seen: u64) -> Option<Arc<str>> {
        let newer = usize::try_from(self.seen.saturating_sub(seen)).unwrap_or(usize::MAX);
        match self.lines.len().checked_sub(newer) {
            Some(older @ 1..) => joined(self.lines.range(older..)),
            Some(0) | None => self.text(),
        }
    }
}

fn joined<'a>(lines: impl Iterator<Item = &'a String>) -> Option<Arc<str>> {
    let text: String = lines.map(String::as_str).collect();
    (!text.trim().is_empty()).then(|| Arc::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BYTES: usize = 2048;

    fn noise(lines: &[&str], max_bytes: usize) -> Noise {
        let mut noise = Noise::new(max_bytes);
        lines.iter().for_each(|line| noise.push(line));
        noise
    }

    fn text(lines: &[&str]) -> String {
        noise(lines, MAX_BYTES).text().unwrap_or_default().to_string()
    }

    #[test]
    fn the_last_lines_are_kept_as_they_are() {
        assert_eq!(text(&[]), "");
        assert_eq!(
            text(&["Usage: server [port]\r", "", "  port: a number"]),
            "Usage: server [port]\n\n  port: a number\n"
        );
        assert_eq!(noise(&["", " "], MAX_BYTES).text(), None, "it says nothing");
    }

    #[test]
    fn whole_lines_give_way_to_newer_ones_at_the_limit() {
        let line = "y".repeat(1023);
        for (bytes, kept) in [(1022, 2), (1023, 2), (1024, 1)] {
            let kept_text = text(&[&line, &"z".repeat(bytes)]);
            assert_eq!(kept_text.lines().count(), kept, "{bytes}");
            assert!(kept_text.len() <= MAX_BYTES);
        }
        let many = text(&vec!["z".repeat(255).as_str(); 1000]);
        assert_eq!(many.len(), MAX_BYTES);
    }

    #[test]
    fn of_a_long_line_the_beginning_is_kept_up_to_a_whole_character() {
        for (bytes, kept) in [(2046, 2046), (2047, 2047), (2048, 2047), (100_000, 2047)] {
            assert_eq!(text(&["gone", &"y".repeat(bytes)]).trim_start_matches("gone\n").len(), kept + 1);
        }
        assert_eq!(text(&[&"é".repeat(2000)]).len(), 2047);
    }

    #[test]
    fn the_limit_is_what_it_was_set_to_down_to_nothing() {
        for (limit, kept) in [(0, None), (1, None), (2, Some("b\n")), (3, Some("b\n")), (4, Some("a\nb\n"))] {
            assert_eq!(noise(&["a", "b"], limit).text().as_deref(), kept, "{limit}");
        }
    }

    #[test]
    fn the_lines_since_a_moment_are_those_that_came_after_it_and_are_kept() {
        let mut noise = noise(&["a", "b"], 6);
        let before = noise.seen();
        assert_eq!(noise.since(before), None);
        noise.push("c");
        assert_eq!(noise.since(before).as_deref(), Some("c\n"));
        noise.push("d");
        noise.push("e");
        noise.push("f");
        assert_eq!(noise.since(before).as_deref(), Some("d\ne\nf\n"), "one is not kept");
        assert_eq!(noise.since(0).as_deref(), Some("d\ne\nf\n"));
        noise.clear();
        assert_eq!((noise.text(), noise.since(before)), (None, None));
        noise.push("g");
        assert_eq!(noise.since(before).as_deref(), Some("g\n"));
    }
}
