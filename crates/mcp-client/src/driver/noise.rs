//! What a server wrote that is no message, until it is connected: why connecting failed often stands there.

use std::collections::VecDeque;

/// How many bytes of it are kept: as much as an error shows.
const MAX_BYTES: usize = 2048;

/// The last lines, each with its end.
#[derive(Debug, Default)]
pub(super) struct Noise {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Noise {
    /// Takes in a line, of which the beginning counts; older lines give way.
    pub(super) fn push(&mut self, line: &str) {
        let mut cut = line.len().min(MAX_BYTES - 1);
        while !line.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut kept = line.get(..cut).unwrap_or_default().trim_end().to_owned();
        kept.push('\n');
        self.bytes += kept.len();
        self.lines.push_back(kept);
        while self.bytes > MAX_BYTES {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |oldest| oldest.len());
        }
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[&str]) -> String {
        let mut noise = Noise::default();
        lines.iter().for_each(|line| noise.push(line));
        noise.text()
    }

    #[test]
    fn the_last_lines_are_kept_as_they_are() {
        assert_eq!(text(&[]), "");
        assert_eq!(
            text(&["Usage: server [port]\r", "", "  port: a number"]),
            "Usage: server [port]\n\n  port: a number\n"
        );
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
}
