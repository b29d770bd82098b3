//! The bodies for the host of `mcp-client`: configurations of servers.

use std::fmt::Display;

use mcp_client::host::{ConfigLimits, EntryProblem, EntryTransport, ServerEntry, ServersConfig};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object as they are written, in order.
struct Written<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Written<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Written<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Written(members))
    }
}

impl<'a> Written<'a> {
    fn parse(text: &'a str) -> Self {
        serde_json::from_str(text).expect("an object")
    }

    /// The names; one that is no text as it is written, without its quotes.
    fn names(&self) -> Vec<String> {
        let names = self.0.iter().map(|(name, _)| {
            let written = name.get();
            serde_json::from_str(written).unwrap_or_else(|_| written[1..written.len() - 1].to_owned())
        });
        names.collect()
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        let is_it = |written: &str| serde_json::from_str::<String>(written).is_ok_and(|known| known == name);
        self.0.iter().find(|(written, _)| is_it(written.get())).map(|(_, value)| value.get())
    }
}

fn is_safe_to_show(error: &impl Display) {
    let shown = error.to_string();
    // A tab stays what it is: it can forge no line.
    let can_forge = |c: char| c.is_control() && c != '\t';
    assert!(shown.chars().count() < 4096 && !shown.chars().any(can_forge), "{shown:?}");
}

/// What an entry's transport is read from, by name.
const READ: [&str; 13] = [
    "type",
    "transport",
    "transportType",
    "disabled",
    "enabled",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
];

/// Every value of an entry that variables may be in.
fn values(entry: &ServerEntry) -> Vec<&str> {
    match entry.transport() {
        EntryTransport::Http(http) => {
            let headers = http.headers().iter().map(|(_, value)| value.as_str());
            std::iter::once(http.url()).chain(headers).collect()
        }
        EntryTransport::Stdio(stdio) => std::iter::once(stdio.command())
            .chain(stdio.args().iter().map(String::as_str))
            .chain(stdio.env().iter().map(|(_, value)| value.as_str()))
            .chain(stdio.cwd())
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn expand(entry: &ServerEntry, limits: &ConfigLimits) {
    // Some are not set, some are empty, some are long, and some look like references.
    let lookup = |name: &str| match name.len() % 4 {
        0 => None,
        1 => Some("${A}".to_owned()),
        2 => Some(String::new()),
        _ => Some("v".repeat(24)),
    };
    let expanded = match entry.expand(lookup) {
        Ok(expanded) => expanded,
        Err(error) => {
            is_safe_to_show(&error);
            assert_eq!(error.name(), entry.name());
            let problem = error.problem();
            assert!(
                matches!(
                    problem,
                    EntryProblem::UnsetVariable { .. }
                        | EntryProblem::InvalidReference
                        | EntryProblem::TooLong { .. }
                ),
                "{problem:?}"
            );
            return;
        }
    };
    let values = values(&expanded);
    assert!(values.iter().all(|value| value.len() <= limits.max_value_bytes));
    assert!(values.iter().map(|value| value.len()).sum::<usize>() <= limits.max_entry_bytes);
    assert!(expanded.variables().expect("nothing is left to fill in").is_empty());
    if let Err(error) = expanded.endpoint() {
        is_safe_to_show(&error);
        assert!(!matches!(error.problem(), EntryProblem::Unexpanded));
    }
}

/// The text of a configuration: each server that it names is an entry or an error, each member of an entry is read or kept, and
/// what variables make of it is bounded.
pub fn servers_config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut limits = ConfigLimits::default();
    limits.max_bytes = 4096;
    limits.max_servers = 8;
    limits.max_value_bytes = 64;
    limits.max_entry_bytes = 160;
    let config = match ServersConfig::parse_within(text, &limits) {
        Ok(config) => config,
        Err(error) => return is_safe_to_show(&error),
    };
    let top = Written::parse(text.strip_prefix('\u{feff}').unwrap_or(text));
    let servers = Written::parse(top.value(config.shape().member()).expect("the servers"));
    let mut expected = servers.names();
    let entries = config.entries().iter().map(|entry| entry.name().to_owned());
    let mut found: Vec<String> =
        entries.chain(config.errors().iter().map(|error| error.name().to_owned())).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "a server is lost, or invented");
    assert!(found.len() <= limits.max_servers);
    assert_eq!(config.other().len() + 1, top.0.len(), "a member beside the servers is lost");
    for error in config.errors() {
        is_safe_to_show(error);
        assert!(error.pointer().starts_with('/'));
    }
    for entry in config.entries() {
        let written = Written::parse(servers.value(entry.name()).expect("the entry"));
        for name in written.names() {
            let is_kept = entry.other().iter().any(|(other, _)| *other == name);
            assert!(is_kept || READ.contains(&name.as_str()), "{name:?} is lost");
        }
        if let EntryTransport::Stdio(stdio) = entry.transport() {
            let variables = written
                .value("env")
                .filter(|env| *env != "null")
                .map_or(0, |env| Written::parse(env).0.len());
            assert_eq!(stdio.env().len(), variables, "a variable is lost");
        }
        if let Err(error) = entry.endpoint() {
            is_safe_to_show(&error);
        }
        expand(entry, &limits);
    }
}
