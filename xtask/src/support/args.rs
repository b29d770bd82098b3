//! Options of a command line, taken one by one; what is left over is a usage mistake.

use crate::Stop;

#[derive(Debug)]
pub(crate) struct Args {
    words: Vec<String>,
}

impl Args {
    pub(crate) fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// Whether `--name` was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        match self.words.iter().position(|word| word == name) {
            Some(at) => {
                self.words.remove(at);
                true
            }
            None => false,
        }
    }

    /// The value after `--name`, or after `--name=`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, Stop> {
        let joined = format!("{name}=");
        let Some(at) = self.words.iter().position(|word| word == name || word.starts_with(&joined)) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        if let Some(value) = word.strip_prefix(&joined) {
            return Ok(Some(value.to_owned()));
        }
        if at < self.words.len() {
            Ok(Some(self.words.remove(at)))
        } else {
            Err(usage(format!("{name} needs a value")))
        }
    }

    /// The value after `--name`, which must be one of `allowed`.
    pub(crate) fn choice(&mut self, name: &str, allowed: &[&str]) -> Result<Option<String>, Stop> {
        let value = self.value(name)?;
        match &value {
            Some(given) if !allowed.contains(&given.as_str()) => {
                Err(usage(format!("{name} is one of {}, not {given:?}", allowed.join(", "))))
            }
            _ => Ok(value),
        }
    }

    /// The comma-separated names after `--name`, none of them empty.
    pub(crate) fn names(&mut self, name: &str) -> Result<Option<Vec<String>>, Stop> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(usage(format!("{name} takes names with commas between them")));
        }
        Ok(Some(names))
    }

    /// The next word that is no option.
    pub(crate) fn word(&mut self) -> Option<String> {
        let at = self.words.iter().position(|word| !word.starts_with('-'))?;
        Some(self.words.remove(at))
    }

    /// Everything after a `--`.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        match self.words.iter().position(|word| word == "--") {
            Some(at) => self.words.split_off(at).into_iter().skip(1).collect(),
            None => Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Stop> {
        match self.words.first() {
            Some(word) => Err(usage(format!("{word:?} is not understood here"))),
            None => Ok(()),
        }
    }
}

fn usage(why: String) -> Stop {
    Stop::Usage(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Args {
        Args::new(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn values_come_after_a_space_or_an_equals_sign() {
        assert_eq!(args("--seconds 3").value("--seconds").unwrap().as_deref(), Some("3"));
        assert_eq!(args("--seconds=3").value("--seconds").unwrap().as_deref(), Some("3"));
        assert_eq!(args("").value("--seconds").unwrap(), None);
        assert!(args("--seconds").value("--seconds").is_err());
    }

    #[test]
    fn what_nobody_took_is_a_usage_mistake() {
        let mut given = args("--no-auth --mode both extra");
        assert!(given.flag("--no-auth"));
        assert_eq!(given.choice("--mode", &["both"]).unwrap().as_deref(), Some("both"));
        assert!(matches!(given.finish(), Err(Stop::Usage(why)) if why.contains("extra")));
    }

    #[test]
    fn choices_and_names_are_checked() {
        assert!(args("--mode odd").choice("--mode", &["pinned", "auto"]).is_err());
        assert_eq!(args("--only a,b").names("--only").unwrap().unwrap(), ["a", "b"]);
        assert!(args("--only a,").names("--only").is_err());
    }

    #[test]
    fn words_after_two_dashes_are_left_alone() {
        let mut given = args("--seconds 3 -- client --seconds 4");
        assert_eq!(given.rest(), ["client", "--seconds", "4"]);
        assert_eq!(given.value("--seconds").unwrap().as_deref(), Some("3"));
        assert!(given.finish().is_ok());
    }
}
