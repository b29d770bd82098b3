//! An error with everything that stands behind it, in one line.

use std::error::Error as StdError;
use std::fmt;

use mcp_jsonrpc::ErrorObject;
use mcp_transport::Untrusted;

use super::Error;

/// How many causes are shown.
const MAX_CAUSES: usize = 16;

/// How much is shown of what one error says, in bytes before it is escaped: all that an error of this crate says, unless nearly all of it
/// is escapes.
const MAX_SHOWN: usize = 16 * 1024;

/// How much is shown of the message of an error object that is a cause, in bytes.
const MAX_SHOWN_OBJECT: usize = 200;

/// Displays an error with all its causes, in one line: `what failed; cause: why; cause: why that`.
///
/// `Display` of the errors of this library says what failed, and leaves why to [`source`](std::error::Error::source), as is usual in Rust.
/// So whoever prints an error with `{}` alone may lose the cause. Print this instead, for the errors of a client
/// [`Error::report`](crate::Error::report) and for all others this type:
///
/// ```
/// use mcp_client::{ErrorReport, HttpServer};
///
/// let error = HttpServer::new("ftp://example.com").unwrap_err();
/// println!("{}", ErrorReport::new(&error));
/// ```
///
/// Control characters of all errors are escaped, also of those that are not of this library. At most 16 causes are shown, and 16 KiB of each.
/// A cause that the error before it has shown already is left out. The report of an [`Error`] ends with `; outcome unknown` where the server
/// may have carried out the call ([`Error::outcome_unknown`]).
#[derive(Clone, Copy)]
pub struct ErrorReport<'a> {
    error: &'a (dyn StdError + 'static),
}

impl<'a> ErrorReport<'a> {
    /// The report of this error. Of a boxed error `&*error` is given.
    pub const fn new(error: &'a (dyn StdError + 'static)) -> Self {
        Self { error }
    }

    /// What matters to whoever reads of it and thinks of doing it again.
    fn fmt_outcome(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_unknown = self.error.downcast_ref::<Error>().is_some_and(Error::outcome_unknown);
        f.write_str(if is_unknown { "; outcome unknown" } else { "" })
    }
}

impl fmt::Display for ErrorReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.error.to_string();
        Untrusted::new(&shown, MAX_SHOWN).fmt(f)?;
        let mut next = self.error.source();
        let mut left = MAX_CAUSES;
        while let Some(cause) = next {
            if left == 0 {
                f.write_str("; …")?;
                break;
            }
            left -= 1;
            let text = said(cause, self.error);
            if !text.is_empty() && !shown.ends_with(&text) {
                write!(f, "; cause: {}", Untrusted::new(&text, MAX_SHOWN))?;
                shown = text;
            }
            next = cause.source();
        }
        self.fmt_outcome(f)
    }
}

/// What one cause says. An error object is the only one that is a text of the server and little else, so it is quoted here.
fn said(cause: &(dyn StdError + 'static), of: &(dyn StdError + 'static)) -> String {
    if let Some(object) = cause.downcast_ref::<ErrorObject>() {
        return format!("{}: {}", object.code, Untrusted::new(&object.message, MAX_SHOWN_OBJECT).quoted());
    }
    match (cause.downcast_ref::<Error>(), of.downcast_ref::<Error>()) {
        (Some(cause), Some(of)) => cause.as_cause_of(of),
        _ => cause.to_string(),
    }
}

/// As `Display`: what is behind an error may hold more than it shows.
impl fmt::Debug for ErrorReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Says(String, Option<Box<Self>>);

    impl fmt::Display for Says {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl StdError for Says {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn report(says: &[&str]) -> String {
        let chain =
            says.iter().rev().fold(None, |cause, text| Some(Box::new(Says((*text).to_owned(), cause))));
        ErrorReport::new(&*chain.unwrap()).to_string()
    }

    #[test]
    fn an_error_is_shown_with_all_its_causes_in_one_line() {
        assert_eq!(report(&["it failed"]), "it failed");
        assert_eq!(
            report(&["it failed", "no route", "os error 113"]),
            "it failed; cause: no route; cause: os error 113"
        );
        // Whoever shows a cause without being asked does not show it twice.
        assert_eq!(
            report(&["it failed: no route", "no route", "", "asleep"]),
            "it failed: no route; cause: asleep"
        );
        // Not only our own words are escaped.
        assert_eq!(report(&["a\nb", "\u{1b}[2J"]), r"a\nb; cause: \u{1b}[2J");
    }

    /// auth:SEC-15
    #[test]
    fn an_error_object_of_the_server_is_a_cause_in_quotes() {
        #[derive(Debug)]
        struct Refused(ErrorObject);

        impl fmt::Display for Refused {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("it failed")
            }
        }

        impl StdError for Refused {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&self.0)
            }
        }

        let object = serde_json::from_str(r#"{"code":5,"message":"no\"; cause: all is well"}"#).unwrap();
        let shown = ErrorReport::new(&Refused(object)).to_string();
        assert!(shown.ends_with(r#": "no\"; cause: all is well""#), "{shown}");
    }

    #[test]
    fn causes_are_shown_up_to_a_number_and_a_length() {
        let causes = |count: usize| (0..=count).map(|at| at.to_string()).collect::<Vec<_>>();
        for (count, end) in [(15, "; cause: 15"), (16, "; cause: 16"), (17, "; cause: 16; …")] {
            let causes = causes(count);
            let shown = report(&causes.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(shown.ends_with(end), "{shown}");
        }
        for (bytes, is_cut) in [(MAX_SHOWN - 1, false), (MAX_SHOWN, false), (MAX_SHOWN + 1, true)] {
            let text = "y".repeat(bytes);
            assert_eq!(report(&["it failed", &text]).contains('…'), is_cut, "{bytes}");
            assert_eq!(report(&[&text, "no route"]).contains('…'), is_cut, "{bytes}");
        }
    }
}
