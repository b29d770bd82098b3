//! Names for the tools of several servers that no two of them share.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use hmac_sha256::Hash as Sha256;
use mcp_model::Tool;

use super::event::Generation;
use super::lists::ServerList;
use crate::error::Error;

/// Between server and tool.
const SEPARATOR: &str = "__";

/// How many hexadecimal digits of the digest a name carries: 48 bits.
const DIGEST_DIGITS: usize = 12;

/// The least length that leaves room for something to read beside the digest.
const MIN_LENGTH: usize = 32;

/// The rule that gives each tool of several servers a unique name.
///
/// * `server__tool`, where both consist of ASCII letters, digits, `_` and `-`, the server has no `__` in it and no `_` at its
///   end, the tool no `_` at its beginning, and the whole is not too long. The first `__` is then the border between
///   them, so that no two such names are the same.
/// * `server___tool_0123456789ab` otherwise: each other character is replaced by `_`, both are cut, and the digits are the
///   beginning of the SHA-256 digest of both full names. Three `_` tell it from the first kind.
///
/// So a tool's name depends only on the names of its server and the tool: it stays the same whichever other servers there are,
/// in whatever order they answer, and no server can choose a tool name that takes the name of another server's tool. The
/// characters are those that model providers accept in function names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolNames {
    max_length: usize,
}

impl Default for ToolNames {
    fn default() -> Self {
        Self { max_length: 64 }
    }
}

impl ToolNames {
    /// The maximum length of a name, in characters. Default 64, which every model provider accepts; at least 32.
    #[must_use]
    pub fn max_length(mut self, characters: usize) -> Self {
        self.max_length = characters.max(MIN_LENGTH);
        self
    }

    /// The name of a tool.
    pub fn name(&self, server: &str, tool: &str) -> String {
        let plain = |text: &str| !text.is_empty() && text.chars().all(is_plain);
        let clear = plain(server)
            && plain(tool)
            && !server.contains(SEPARATOR)
            && !server.ends_with('_')
            && !tool.starts_with('_');
        if clear && server.len() + SEPARATOR.len() + tool.len() <= self.max_length {
            return format!("{server}{SEPARATOR}{tool}");
        }
        // Three `_` before the tool and one before the digest.
        let room = self.max_length - SEPARATOR.len() - 2 - DIGEST_DIGITS;
        let server_room = room / 2;
        let server_part = single(&readable(server, server_room));
        let tool_part = readable(tool, room - server_part.len());
        format!("{server_part}{SEPARATOR}_{tool_part}_{}", digest(server, tool))
    }

    /// Names the tools of these lists, which [`Host::list_tools`](super::Host::list_tools) returns.
    /// [`Host::watch_tools`](super::Host::watch_tools) gives a table that follows changes.
    ///
    /// There are only lists of servers that were connected. One that was not is nowhere in the table, also not among the
    /// [`failures`](ToolTable::failures): it was not asked, and [`Host::servers`](super::Host::servers) says why it was not
    /// connected. So for a server that is restarting a table made anew has no tools and none that are
    /// [departed](ToolTable::departed), while the one before still resolves their names: [`Host::call_tool`](super::Host::call_tool)
    /// then gives the error of a server that is not connected.
    pub fn table(&self, lists: Vec<ServerList<Tool>>) -> ToolTable {
        let mut table = ToolTable::default();
        for ServerList { server, generation, items } in lists {
            match items {
                Ok(tools) => table.add(&self.named(&server, generation, tools)),
                Err(error) => table.fail(server, error),
            }
        }
        table
    }

    /// The tools of one server with their names.
    pub(super) fn named(
        &self,
        server: &Arc<str>,
        generation: Generation,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Vec<Arc<NamedTool>> {
        let named = |tool: Tool| {
            let name = self.name(server, &tool.name).into();
            Arc::new(NamedTool { name, server: Arc::clone(server), generation, tool })
        };
        tools.into_iter().map(named).collect()
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// What can be shown of a name in so many characters.
fn readable(text: &str, room: usize) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(room).collect()
}

/// Without the separator in it or a half of it at its end.
fn single(text: &str) -> String {
    let mut single = String::new();
    for c in text.chars() {
        if c != '_' || !single.ends_with('_') {
            single.push(c);
        }
    }
    single.truncate(single.trim_end_matches('_').len());
    single
}

/// Of both names; the lengths keep `a`, `bc` and `ab`, `c` apart.
fn digest(server: &str, tool: &str) -> String {
    let mut hash = Sha256::new();
    for part in [server, tool] {
        hash.update(part.len().to_string());
        hash.update(":");
        hash.update(part);
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.chars().take(DIGEST_DIGITS).collect()
}

/// Tools by unique names.
#[derive(Clone, Debug, Default)]
pub struct ToolTable {
    tools: BTreeMap<Arc<str>, Arc<NamedTool>>,
    /// By the same names; those that `tools` has too do not count.
    departed: BTreeMap<Arc<str>, Arc<NamedTool>>,
    repeated: Vec<Arc<NamedTool>>,
    failures: Vec<(Arc<str>, Error)>,
    unfollowed: Vec<Arc<str>>,
}

/// A tool with its unique name. The description of the server is untrusted.
#[derive(Clone, Debug)]
pub struct NamedTool {
    name: Arc<str>,
    server: Arc<str>,
    generation: Generation,
    tool: Tool,
}

impl ToolTable {
    /// Adds the tools of one server. Of those that it lists under one name the first one stands.
    pub(super) fn add(&mut self, tools: &[Arc<NamedTool>]) {
        for named in tools {
            match self.tools.entry(Arc::clone(&named.name)) {
                Entry::Vacant(free) => {
                    free.insert(Arc::clone(named));
                }
                Entry::Occupied(_) => self.repeated.push(Arc::clone(named)),
            }
        }
    }

    /// Adds the tools that a server listed over an earlier connection.
    pub(super) fn depart(&mut self, tools: &[Arc<NamedTool>]) {
        for named in tools {
            self.departed.entry(Arc::clone(&named.name)).or_insert_with(|| Arc::clone(named));
        }
    }

    /// Notes that the list of a server could not be fetched.
    pub(super) fn fail(&mut self, server: Arc<str>, error: Error) {
        self.failures.push((server, error));
    }

    /// Notes that a server does not tell when its tools change.
    pub(super) fn unfollow(&mut self, server: Arc<str>) {
        self.unfollowed.push(server);
    }

    /// The tool of this name.
    pub fn resolve(&self, name: &str) -> Option<&NamedTool> {
        self.tools.get(name).map(AsRef::as_ref)
    }

    /// The tool of this name that a server listed last, if that server is not connected now, or is connected again and its list
    /// has not been read yet; a name that [resolves](Self::resolve) is not departed. It tells a tool that is only away from a name
    /// that nobody ever listed.
    ///
    /// Departed tools are not among those of [`iter`](Self::iter) and [`len`](Self::len), so that no model is shown them. A model
    /// that was shown one before may still call it: [`Host::call_tool`](super::Host::call_tool) gives the error of a server that
    /// is not connected, with [why and when it is tried again](Error::server_status). Once the server is connected again, the call
    /// is made: whether it still has the tool is for the server to say.
    ///
    /// Only in a table that follows changes ([`Host::watch_tools`](super::Host::watch_tools)), of the lists that this table has
    /// had. A server has none any more once its list has been read over a new connection, with the tool or without, once it is
    /// connected again and has no tools at all, once it is removed from the host, and once the host is closed. While its list
    /// cannot be read ([`failures`](Self::failures)) they remain.
    pub fn departed(&self, name: &str) -> Option<&NamedTool> {
        if self.tools.contains_key(name) {
            return None;
        }
        self.departed.get(name).map(AsRef::as_ref)
    }

    /// The tools in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &NamedTool> {
        self.tools.values().map(AsRef::as_ref)
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tools that are left out because their server listed another one of the same name before.
    pub fn repeated(&self) -> impl ExactSizeIterator<Item = &NamedTool> {
        self.repeated.iter().map(AsRef::as_ref)
    }

    /// The servers whose list could not be read. In a table that follows changes, such a server keeps the tools of its
    /// previous list, if there was one over this connection; those of an earlier one remain [departed](Self::departed). A server
    /// that is not connected is not among them ([`Host::servers`](super::Host::servers)).
    pub fn failures(&self) -> &[(Arc<str>, Error)] {
        &self.failures
    }

    /// In a table that follows changes ([`Host::watch_tools`](super::Host::watch_tools)), the servers that do not report
    /// changes of their tools, or no longer do. Their tools are those of the last reading.
    pub fn unfollowed(&self) -> &[Arc<str>] {
        &self.unfollowed
    }
}

impl NamedTool {
    /// The unique name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The connection over which it was listed.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The tool as its server describes it.
    pub fn tool(&self) -> &Tool {
        &self.tool
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clear_names_are_joined_and_others_carry_a_digest() {
        let names = ToolNames::default();
        for (server, tool, expected) in [
            ("files", "read", "files__read"),
            ("my-files", "read_all__now", "my-files__read_all__now"),
            ("a", "_b", "a___"),
            ("a_", "b", "a___b_"),
            ("a__b", "c", "a_b___c_"),
            ("a___b_____c", "d", "a_b_c___d_"),
            ("a b/c", "d.e", "a_b_c___d_e_"),
            ("ä", "", "____"),
            ("srv:child", "echo", "srv_child___echo_"),
        ] {
            let name = names.name(server, tool);
            if expected.ends_with('_') {
                assert!(name.starts_with(expected), "{name}");
                assert!(name.ends_with(&digest(server, tool)), "{name}");
            } else {
                assert_eq!(name, expected);
            }
        }
    }

    #[test]
    fn a_name_is_cut_only_where_it_is_too_long() {
        let (server, tool) = ("s".repeat(20), "t".repeat(42));
        assert_eq!(ToolNames::default().name(&server, &tool).len(), 64);
        for (max, whole) in [(65, true), (64, true), (63, false), (0, false)] {
            let name = ToolNames::default().max_length(max).name(&server, &tool);
            assert_eq!(name == format!("{server}__{tool}"), whole);
            assert!(name.len() <= max.max(MIN_LENGTH), "{name}");
        }
    }

    fn tool(name: &str) -> Tool {
        let schema = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap();
        Tool::new(name, schema).unwrap()
    }

    fn table(lists: &[(&str, &[&str])]) -> ToolTable {
        let list = |(server, tools): &(&str, &[&str])| ServerList {
            server: Arc::from(*server),
            generation: Generation(1),
            items: Ok(tools.iter().map(|name| tool(name)).collect()),
        };
        ToolNames::default().table(lists.iter().map(list).collect())
    }

    #[test]
    fn a_name_leads_back_to_its_tool() {
        let table = table(&[("a", &["x", "y"]), ("a:b", &["x"]), ("b", &["x", "x"])]);
        assert_eq!((table.len(), table.repeated().len(), table.is_empty()), (4, 1, false));
        for named in table.iter() {
            let found = table.resolve(named.name()).unwrap();
            assert_eq!((found.server(), &found.tool().name), (named.server(), &named.tool().name));
        }
        assert_eq!(table.resolve("b__x").map(NamedTool::server), Some("b"));
        assert!(table.resolve("b__y").is_none());
    }

    fn named(server: &str, generation: u64, tools: &[&str]) -> Vec<Arc<NamedTool>> {
        let tools = tools.iter().map(|name| tool(name));
        ToolNames::default().named(&Arc::from(server), Generation(generation), tools)
    }

    #[test]
    fn a_departed_tool_is_found_by_its_name_and_nowhere_else() {
        let mut table = ToolTable::default();
        table.add(&named("a", 1, &["x"]));
        table.depart(&named("b", 2, &["x", "x", "y"]));
        let names: Vec<&str> = table.iter().map(NamedTool::name).collect();
        assert_eq!((names, table.len(), table.repeated().len()), (vec!["a__x"], 1, 0));
        for name in ["b__x", "b__y"] {
            assert!(table.resolve(name).is_none());
            let departed = table.departed(name).unwrap();
            assert_eq!((departed.name(), departed.server(), departed.generation().get()), (name, "b", 2));
        }
        assert!(table.departed("a__x").is_none() && table.departed("b__z").is_none());

        let mut table = ToolTable::default();
        table.depart(&named("b", 2, &["x"]));
        assert!(table.is_empty());
    }

    #[test]
    fn a_tool_that_is_there_wins_over_a_departed_one_whichever_came_first() {
        let (here, departed) = (named("a", 7, &["x"]), named("a", 3, &["x", "y"]));
        for is_first in [true, false] {
            let mut table = ToolTable::default();
            if is_first {
                table.add(&here);
            }
            table.depart(&departed);
            if !is_first {
                table.add(&here);
            }
            assert_eq!(table.resolve("a__x").map(|tool| tool.generation().get()), Some(7));
            assert!(table.departed("a__x").is_none());
            assert_eq!(table.departed("a__y").map(|tool| tool.generation().get()), Some(3));
        }
    }

    #[test]
    fn a_list_that_failed_is_no_empty_list() {
        let failed = ServerList {
            server: Arc::from("s"),
            generation: Generation(1),
            items: Err(Error::ended(false, None)),
        };
        let table = ToolNames::default().table(vec![failed]);
        assert!(table.is_empty());
        assert_eq!(table.failures().len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        /// Names over a small alphabet, so that those which could be confused are common.
        #[test]
        fn no_two_tools_share_a_name(
            pairs in prop::collection::hash_set(("[a_.]{0,5}", "[a_.]{0,5}"), 1..60),
            max in 0_usize..70,
        ) {
            let names = ToolNames::default().max_length(max);
            let mut seen = HashMap::new();
            for (server, tool) in pairs {
                let name = names.name(&server, &tool);
                prop_assert!(name.len() <= max.max(MIN_LENGTH));
                prop_assert!(name.chars().all(is_plain));
                // The border shows of which kind a name is.
                let clear = name == format!("{server}{SEPARATOR}{tool}");
                let (_, after) = name.split_once(SEPARATOR).unwrap();
                prop_assert_eq!(after.starts_with('_'), !clear, "{}", &name);
                let before = seen.insert(name, (server.clone(), tool.clone()));
                prop_assert_eq!(before, None, "{} {}", server, tool);
            }
        }
    }
}
