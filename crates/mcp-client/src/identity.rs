//! Who a server is: for those whom it asks, for the log, and in what is kept for another connection.

use std::fmt::{self, Display};
use std::sync::Arc;

use hmac_sha256::Hash as Sha256;
use mcp_transport::Untrusted;

use crate::driver::spans::label;
use crate::error::{Error, ServerLabel};
use crate::sha256_text;

/// What stands for a server that was handed over as a stream.
pub(crate) const BYTE_STREAM: &str = "a byte stream";

/// The longest name of a server, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// How many digits of a digest are shown: enough to tell two servers of the same program apart.
const SHOWN_DIGITS: usize = 8;

/// Who a server is: the name that the application gave it or, without one, what it connected to.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The command line, or the URL without its query. Either may hold a secret.
    description: String,
    /// What errors say of it.
    server: Option<ServerLabel>,
}

impl Identity {
    pub(crate) fn new(description: String, name: Option<Arc<str>>) -> Self {
        let server = match name {
            Some(name) => Some(ServerLabel::Name(name)),
            // Nothing tells byte streams apart.
            None if description == BYTE_STREAM => None,
            None => Some(ServerLabel::Endpoint(Arc::from(label(&description)))),
        };
        Self { description, server }
    }

    /// What errors say of it.
    pub(crate) fn server(&self) -> Option<&ServerLabel> {
        self.server.as_ref()
    }

    /// For handlers, and whoever they ask.
    pub(crate) fn shown(&self) -> &str {
        self.name().unwrap_or(&self.description)
    }

    /// For the log.
    pub(crate) fn label(&self) -> &str {
        self.name().unwrap_or_else(|| label(&self.description))
    }

    /// For what is stored: the name, or no more of the description than may be shown and a digest of all of it. What is stored
    /// lives longer than a token in a command line, and is read by others.
    pub(crate) fn recorded(&self) -> String {
        self.name().map_or_else(|| self.unnamed(), str::to_owned)
    }

    /// As a server without a name is recorded.
    fn unnamed(&self) -> String {
        if self.description == BYTE_STREAM {
            return BYTE_STREAM.to_owned();
        }
        format!("{} {}", label(&self.description), Digest::of(&self.description))
    }

    /// Whether a record is of this server. The whole description stands in those of versions that wrote it, and of clients that had no
    /// name for the server; nothing, or that it was a byte stream, says nothing.
    pub(crate) fn is_of(&self, record: &str) -> bool {
        record.is_empty()
            || record == self.description
            || record == self.recorded()
            || self.has_digest_of(record)
    }

    /// Whether the record is of a server without a name, and of this description: what is shown before the digest may be more or less
    /// in another version.
    fn has_digest_of(&self, record: &str) -> bool {
        let ours = || Digest::of(&self.description).to_string();
        match record.rsplit_once(' ') {
            Some((_, digest)) if self.description != BYTE_STREAM => digest == ours(),
            _ => record == self.unnamed(),
        }
    }

    /// What is said of a record that is of another server: both, as far as they may be shown.
    pub(crate) fn is_not_of(&self, what: &str, record: &str) -> Error {
        let ours = self.recorded();
        let [theirs, ours] = [record, &ours].map(Recorded);
        let told = "(each is known by `ClientBuilder::server_name`)";
        Error::misuse_because(format!("{what} another server, {theirs}; this one is {ours} {told}"))
    }

    fn name(&self) -> Option<&str> {
        self.server.as_ref().and_then(ServerLabel::name).map(AsRef::as_ref)
    }
}

/// A server by its record, for people. A digest is cut: it would let whoever reads the error try out what it was made of. What may be a
/// command line or a URL, which is what older versions recorded, is cut to its label.
struct Recorded<'a>(&'a str);

impl Display for Recorded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |f: &mut fmt::Formatter<'_>, name: &str, end: &str| {
            Untrusted::new(&format!("{name}{end}"), MAX_NAME_BYTES).quoted().fmt(f)
        };
        let Self(record) = *self;
        if let Some((name, digest)) = record.rsplit_once(" sha256:")
            && let Some((shown, rest)) = digest.split_at_checked(SHOWN_DIGITS)
            && !digest.contains(|c: char| !c.is_ascii_hexdigit())
        {
            let end = if rest.is_empty() { "" } else { "…" };
            return show(f, label(name), &format!(" sha256:{shown}{end}"));
        }
        let shown = if record == BYTE_STREAM { record } else { label(record) };
        show(f, shown, if shown.len() < record.len() { " …" } else { "" })
    }
}

/// # Errors
///
/// [`Misuse`](crate::ErrorKind::Misuse).
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        return Err(bad_name());
    }
    Ok(())
}

pub(crate) fn bad_name() -> Error {
    Error::misuse_because("the name of a server is empty, too long or has control characters")
}

struct Digest([u8; 32]);

impl Digest {
    fn of(text: &str) -> Self {
        Self(Sha256::hash(text.as_bytes()))
    }
}

impl Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sha256_text::write(f, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(description: &str, name: Option<&str>) -> Identity {
        Identity::new(description.to_owned(), name.map(Arc::from))
    }

    #[test]
    fn a_name_takes_the_place_of_the_description_everywhere() {
        let named = identity("npx server --token=secret", Some("my files"));
        assert_eq!((named.shown(), named.label(), &*named.recorded()), ("my files", "my files", "my files"));
    }

    /// auth:LIM-14. The digest was made with another program (`printf %s TEXT | sha256sum`).
    #[test]
    fn a_record_of_a_server_without_a_name_has_neither_its_arguments_nor_its_path() {
        let check = |description: &str, expected: &str| {
            assert_eq!(identity(description, None).recorded(), expected);
        };
        check(
            "npx server --token=secret",
            "npx sha256:4dee653cfa227c3d2c4cf152b06267d33d17c45dbe049792e700402a5eddc344",
        );
        check(
            "https://example.com/t/secret",
            "https://example.com sha256:171f1c7a8ce7fe9792d1b226012277f0db6b473a03310de298e7a454e30c9bd6",
        );
        check(BYTE_STREAM, BYTE_STREAM);
    }

    #[test]
    fn a_record_is_of_the_server_that_it_was_written_for() {
        let (ours, other) = ("npx server --token=a", "npx server --token=b");
        let (plain, named) = (identity(ours, None), identity(ours, Some("files")));
        let records = [
            // The record, and whether it is of the server without a name and with one.
            (String::new(), true, true),
            (ours.to_owned(), true, true),
            (plain.recorded(), true, true),
            (named.recorded(), false, true),
            // What an older version showed of the same server.
            (plain.recorded().replace("npx", "npx server"), true, true),
            (other.to_owned(), false, false),
            (identity(other, None).recorded(), false, false),
            (identity(ours, Some("mail")).recorded(), false, false),
            (BYTE_STREAM.to_owned(), false, false),
        ];
        for (record, without, with) in records {
            assert_eq!((plain.is_of(&record), named.is_of(&record)), (without, with), "{record}");
        }
        // The arguments of a server that has a name may change.
        assert!(identity(other, Some("files")).is_of(&named.recorded()));
        // Nothing tells one byte stream from another one but its name.
        assert!(identity(BYTE_STREAM, Some("files")).is_of(BYTE_STREAM));
        assert!(!identity(BYTE_STREAM, Some("files")).is_of(&identity(BYTE_STREAM, Some("mail")).recorded()));
    }

    #[test]
    fn a_record_of_another_server_is_shown_without_arguments_and_paths() {
        let check = |record: &str, shown: &str| {
            let error = identity("npx server --token=secret", None).is_not_of("it is of", record).to_string();
            let ours = "npx sha256:4dee653c…";
            let (theirs, rest) =
                (format!("it is of another server, \"{shown}\";"), format!("this one is \"{ours}\""));
            assert!(error.starts_with(&theirs) && error.contains(&rest), "{error}");
        };
        check("files", "files");
        check(BYTE_STREAM, BYTE_STREAM);
        check(
            &identity("https://example.com/t/secret", None).recorded(),
            "https://example.com sha256:171f1c7a…",
        );
        // As older versions recorded them; a name with a space in it could be one of those.
        check("npx server --token=secret", "npx …");
        check("https://example.com/t/secret", "https://example.com …");
        check("\"my server\" --token secret", "a program …");
        check("npx secret sha256:0123456789", "npx sha256:01234567…");
        check("npx sha256:no digits at all", "npx …");
        check("a\nb", "a\\nb");
    }

    /// auth:SEC-15
    #[test]
    fn errors_name_a_server_without_a_name_by_what_may_be_shown_of_it() {
        let check = |description: &str, name: Option<&str>, expected: Option<ServerLabel>| {
            assert_eq!(identity(description, name).server().cloned(), expected);
        };
        let endpoint = |shown: &str| Some(ServerLabel::Endpoint(Arc::from(shown)));
        check("npx server --token=secret", None, endpoint("npx"));
        check("https://example.com/t/secret", None, endpoint("https://example.com"));
        check("\"my server\" --token secret", None, endpoint("a program"));
        check("npx server postgresql://user:secret@localhost/db", None, endpoint("npx"));
        check(BYTE_STREAM, None, None);
        for description in ["npx server --token=secret", BYTE_STREAM] {
            check(description, Some("files"), Some(ServerLabel::Name(Arc::from("files"))));
        }
    }

    #[test]
    fn a_name_is_short_text_in_one_line() {
        for (name, is_good) in
            [("a", true), ("", false), ("two words", true), ("a\nb", false), ("a\u{7f}", false)]
        {
            assert_eq!(check_name(name).is_ok(), is_good, "{name:?}");
        }
        for (bytes, is_good) in [(255, true), (256, true), (257, false)] {
            assert_eq!(check_name(&"n".repeat(bytes)).is_ok(), is_good, "{bytes}");
        }
    }

    /// auth:SEC-15
    #[test]
    fn a_record_of_another_server_cannot_pose_as_words_of_this_library() {
        let posing = r#"x"; this one is "npx sha256:aaaaaaaa"; all is well ("#;
        let error = identity("npx server", None).is_not_of("it is of", posing).to_string();
        assert!(
            error.starts_with(r#"it is of another server, "x\"; …"; this one is "npx sha256:"#),
            "{error}"
        );
    }

    /// auth:SEC-15
    #[test]
    fn the_method_of_a_result_that_cannot_be_read_is_cut_and_escaped() {
        let raw =
            mcp_jsonrpc::RawJson::from(serde_json::value::RawValue::from_string("5".to_owned()).unwrap());
        let source = raw.as_raw_ref().members([]).map(|[]| ()).unwrap_err();
        let method = format!("a\nb\u{1b}[2J{}", "y".repeat(5000));
        let shown = Error::unreadable_result(&method, source).to_string();
        assert!(shown.contains(r#"result of "a\nb\u{1b}[2Jyyy"#) && shown.len() < 300, "{shown}");
    }
}
