//! How an entry is read.

use mcp_transport::Untrusted;
use serde_json::Number;

use super::ConfigLimits;
use super::entry::{EntryTransport, HttpEntry, HttpFlavour, ServerEntry, StdioEntry};
use super::error::{EntryError, EntryProblem};
use super::members::Members;

/// Longer names are no names.
const MAX_NAME_BYTES: usize = 256;

/// How much of an unknown transport's name an error holds.
const MAX_TRANSPORT_BYTES: usize = 64;

/// Members that say the same thing in different hosts.
const TRANSPORT: [&str; 3] = ["type", "transport", "transportType"];
const URL: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// What `type` can say.
#[derive(Clone, Copy)]
enum Kind {
    Http(HttpFlavour),
    Stdio,
}

/// The JSON pointer to a member, or item, of what `parent` points to (RFC 6901 section 3).
pub(super) fn pointer(parent: &str, member: &str) -> String {
    format!("{parent}/{}", member.replace('~', "~0").replace('/', "~1"))
}

/// Whether this can be the name of a server: for messages and for keys, so that it must be short and plain.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control)
}

pub(super) fn entry(
    name: &str,
    at: String,
    value: &str,
    limits: &ConfigLimits,
) -> Result<ServerEntry, EntryError> {
    let fail = |problem| EntryError::new(name, at.clone(), problem);
    if !is_name(name) {
        return Err(fail(EntryProblem::InvalidName));
    }
    let members = Members::parse(value).ok().flatten();
    let members = members.ok_or_else(|| fail(EntryProblem::WrongType { expected: "an object" }))?;
    if let Some(repeated) = members.repeated() {
        return Err(EntryError::new(name, pointer(&at, repeated), EntryProblem::Repeated));
    }
    let entry = Entry { name, at: &at, members };
    let disabled = entry.disabled()?;
    let (transport, read) = match entry.kind()? {
        Kind::Stdio => entry.stdio()?,
        Kind::Http(flavour) => entry.http(flavour)?,
    };
    let known: Vec<&str> = TRANSPORT.into_iter().chain(["disabled", "enabled"]).chain(read).collect();
    Ok(ServerEntry {
        name: name.to_owned(),
        transport,
        disabled,
        other: entry.members.others(&known),
        literal: false,
        max_value_bytes: limits.max_value_bytes,
        max_entry_bytes: limits.max_entry_bytes,
        pointer: at,
    })
}

struct Entry<'a> {
    name: &'a str,
    at: &'a str,
    members: Members<'a>,
}

impl Entry<'_> {
    fn fail(&self, problem: EntryProblem) -> EntryError {
        EntryError::new(self.name, self.at.to_owned(), problem)
    }

    fn wrong(&self, at: String, expected: &'static str) -> EntryError {
        EntryError::new(self.name, at, EntryProblem::WrongType { expected })
    }

    /// A value that is there: `null` is none.
    fn value(&self, member: &str) -> Option<&str> {
        self.members.value(member).filter(|value| *value != "null")
    }

    fn read<'v, T: serde::Deserialize<'v>>(
        &'v self,
        member: &str,
        expected: &'static str,
    ) -> Result<Option<T>, EntryError> {
        let Some(value) = self.value(member) else { return Ok(None) };
        serde_json::from_str(value).map(Some).map_err(|_| self.wrong(pointer(self.at, member), expected))
    }

    /// The one of these members that is there.
    fn one_of(&self, members: [&'static str; 3]) -> Result<Option<(&'static str, String)>, EntryError> {
        let mut found: Option<(&'static str, String)> = None;
        for member in members {
            let Some(text) = self.read(member, "a string")? else { continue };
            match &found {
                Some((other, before)) if *before != text => {
                    return Err(self.fail(EntryProblem::TooMany { member: other, other: member }));
                }
                Some(_) => {}
                None => found = Some((member, text)),
            }
        }
        Ok(found)
    }

    fn disabled(&self) -> Result<bool, EntryError> {
        let disabled: Option<bool> = self.read("disabled", "true or false")?;
        let enabled: Option<bool> = self.read("enabled", "true or false")?;
        match (disabled, enabled) {
            (Some(disabled), Some(enabled)) if disabled == enabled => {
                Err(self.fail(EntryProblem::TooMany { member: "disabled", other: "enabled" }))
            }
            (disabled, enabled) => Ok(disabled == Some(true) || enabled == Some(false)),
        }
    }

    fn kind(&self) -> Result<Kind, EntryError> {
        if let Some((member, given)) = self.one_of(TRANSPORT)? {
            let word: String = given.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
            return match word.to_ascii_lowercase().as_str() {
                "stdio" | "local" => Ok(Kind::Stdio),
                "http" | "https" | "streamablehttp" => Ok(Kind::Http(HttpFlavour::Streamable)),
                "sse" => Ok(Kind::Http(HttpFlavour::Sse)),
                "remote" => Ok(Kind::Http(HttpFlavour::Unsaid)),
                _ => {
                    let given = Untrusted::new(&given, MAX_TRANSPORT_BYTES).to_string();
                    let problem = EntryProblem::UnknownTransport { given };
                    Err(EntryError::new(self.name, pointer(self.at, member), problem))
                }
            };
        }
        let url = URL.into_iter().find(|member| self.value(member).is_some());
        match (self.value("command"), url) {
            (Some(_), Some(other)) => Err(self.fail(EntryProblem::TooMany { member: "command", other })),
            (None, Some(_)) => Ok(Kind::Http(HttpFlavour::Unsaid)),
            (Some(_), None) => Ok(Kind::Stdio),
            (None, None) => Err(self.fail(EntryProblem::Missing { member: "command or url" })),
        }
    }

    fn stdio(&self) -> Result<(EntryTransport, Vec<&'static str>), EntryError> {
        let command: Option<String> = self.read("command", "a string")?;
        let command = command.filter(|command| !command.trim().is_empty());
        let command = command.ok_or_else(|| self.fail(EntryProblem::Missing { member: "command" }))?;
        let entry = StdioEntry {
            command,
            args: self.read("args", "an array of strings")?.unwrap_or_default(),
            env: self.pairs("env", scalar, "a string, a number or a boolean")?,
            cwd: self.read("cwd", "a string")?,
        };
        Ok((EntryTransport::Stdio(entry), vec!["command", "args", "env", "cwd"]))
    }

    fn http(&self, flavour: HttpFlavour) -> Result<(EntryTransport, Vec<&'static str>), EntryError> {
        let found = self.one_of(URL)?.filter(|(_, url)| !url.trim().is_empty());
        let (url_member, url) = found.ok_or_else(|| self.fail(EntryProblem::Missing { member: "url" }))?;
        let headers = self.pairs("headers", |value| serde_json::from_str(value).ok(), "a string")?;
        let entry = HttpEntry { flavour, url_member, url, headers };
        let known = URL.into_iter().chain(["headers"]).collect();
        Ok((EntryTransport::Http(entry), known))
    }

    /// An object of texts.
    fn pairs(
        &self,
        member: &str,
        read: impl Fn(&str) -> Option<String>,
        expected: &'static str,
    ) -> Result<Vec<(String, String)>, EntryError> {
        let at = pointer(self.at, member);
        let Some(value) = self.value(member) else { return Ok(Vec::new()) };
        let members = Members::parse(value).ok().flatten();
        let members = members.ok_or_else(|| self.wrong(at.clone(), "an object"))?;
        let pairs = members.iter().map(|member| {
            let at = pointer(&at, &member.name);
            if !member.is_text {
                return Err(EntryError::new(self.name, at, EntryProblem::LoneSurrogate));
            }
            if members.repeats(&member.name) {
                return Err(EntryError::new(self.name, at, EntryProblem::Repeated));
            }
            let text = read(member.value()).ok_or_else(|| self.wrong(at, expected))?;
            Ok((member.name.clone(), text))
        });
        pairs.collect()
    }
}

/// The text of a string, a number or a boolean.
fn scalar(value: &str) -> Option<String> {
    match value {
        "true" | "false" => Some(value.to_owned()),
        _ if value.starts_with('"') => serde_json::from_str(value).ok(),
        // As it is written: a number that went through a float would come out another.
        _ => serde_json::from_str::<Number>(value).ok().map(|_| value.to_owned()),
    }
}
