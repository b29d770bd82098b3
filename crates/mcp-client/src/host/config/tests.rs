use proptest::prelude::*;

use super::template::{Fault, Piece, expand, pieces};
use super::*;
use crate::endpoint::Endpoint;

/// One server named `s` with this entry.
fn one(entry: &str) -> ServersConfig {
    ServersConfig::parse(&format!(r#"{{"mcpServers":{{"s":{entry}}}}}"#)).unwrap()
}

fn good(entry: &str) -> ServerEntry {
    let config = one(entry);
    assert!(config.errors().is_empty(), "{:?}", config.errors());
    config.entry("s").unwrap().clone()
}

fn stdio(entry: &ServerEntry) -> &StdioEntry {
    match entry.transport() {
        EntryTransport::Stdio(stdio) => stdio,
        other => panic!("{other:?}"),
    }
}

fn http(entry: &ServerEntry) -> &HttpEntry {
    match entry.transport() {
        EntryTransport::Http(http) => http,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_shapes_and_the_members_beside_them_are_read() {
    for (text, shape, names, other) in [
        (r#"{"mcpServers":{"a":{"command":"x"},"b":{"url":"http://h/"}}}"#, ConfigShape::McpServers, "ab", 0),
        (r#"{"servers":{"a":{"type":"stdio","command":"x"}},"inputs":[]}"#, ConfigShape::Servers, "a", 1),
        // `mcpServers` is the word for it; a `servers` beside it belongs to somebody else.
        (r#"{"servers":[1],"mcpServers":{"c":{"command":"x"}}}"#, ConfigShape::McpServers, "c", 1),
        ("\u{feff} {\n\"mcpServers\" : {} }\n", ConfigShape::McpServers, "", 0),
    ] {
        let config = ServersConfig::parse(text).unwrap();
        let read: String = config.entries().iter().map(ServerEntry::name).collect();
        assert_eq!((config.shape(), read.as_str(), config.other().len()), (shape, names, other), "{text}");
        assert!(config.errors().is_empty());
    }
}

#[test]
fn a_text_that_is_no_configuration_is_refused_as_a_whole() {
    use ConfigError::*;
    let pointer = |pointer: &str| pointer.to_owned();
    for (text, expected) in [
        ("", InvalidJson { line: 1, column: 0 }),
        ("{\"mcpServers\":\n{\"a\":}}", InvalidJson { line: 2, column: 6 }),
        ("{\"mcpServers\":{}} x", InvalidJson { line: 1, column: 19 }),
        ("// comment\n{}", InvalidJson { line: 1, column: 1 }),
        ("[]", NotAnObject { pointer: pointer("") }),
        ("\"x\"", NotAnObject { pointer: pointer("") }),
        ("{}", NoServers),
        (r#"{"mcpServers":[]}"#, NotAnObject { pointer: pointer("/mcpServers") }),
        (r#"{"servers":null}"#, NotAnObject { pointer: pointer("/servers") }),
        (r#"{"mcpServers":{},"mcpServers":{}}"#, Repeated { pointer: pointer("/mcpServers") }),
    ] {
        let error = ServersConfig::parse(text).unwrap_err();
        assert_eq!(error, expected, "{text}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn limits_hold_below_at_and_above() {
    let text = r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}"#;
    for (max_bytes, max_servers, error) in [
        (text.len() + 1, 3, None),
        (text.len(), 2, None),
        (text.len() - 1, 2, Some(ConfigError::TooLong { bytes: text.len(), limit: text.len() - 1 })),
        (text.len(), 1, Some(ConfigError::TooManyServers { servers: 2, limit: 1 })),
    ] {
        let limits = ConfigLimits { max_bytes, max_servers, ..ConfigLimits::default() };
        assert_eq!(ServersConfig::parse_within(text, &limits).err(), error);
    }
    let entry = good(r#"{"command":"${A}${A}"}"#);
    for (limit, fits) in [(7, true), (6, true), (5, false)] {
        let entry = ServerEntry { max_value_bytes: limit, ..entry.clone() };
        assert_eq!(entry.expand(|_| Some("abc".into())).is_ok(), fits);
    }
}

#[test]
fn a_program_is_read_member_by_member() {
    let entry = good(
        r#"{"command":"npx","args":["-y","a b"],"env":{"K":"v","N":8080,"F":1.50,"B":true},"cwd":"/srv","timeout":60}"#,
    );
    let program = stdio(&entry);
    assert_eq!(
        (program.command(), program.args(), program.cwd()),
        ("npx", &["-y".into(), "a b".into()][..], Some("/srv"))
    );
    let env: Vec<_> = program.env().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("K", "v"), ("N", "8080"), ("F", "1.50"), ("B", "true")]);
    assert_eq!((entry.other()[0].0.as_str(), entry.other()[0].1.as_str()), ("timeout", "60"));

    let server = entry.stdio_server().unwrap();
    assert_eq!(server.describe(), r#"npx -y "a b""#);
    assert_eq!(server.working_dir().unwrap(), std::path::Path::new("/srv"));
    assert!(matches!(entry.endpoint(), Ok(Endpoint::Stdio(_))));
    assert!(matches!(entry.http_server().unwrap_err().problem(), EntryProblem::Missing { member: "url" }));
}

/// seed:1.15: an explicit transport wins in whatever case; without one the members decide.
#[test]
fn the_transport_is_what_type_says_or_what_the_members_imply() {
    use HttpFlavour::{Sse, Streamable, Unsaid};
    for (entry, expected) in [
        (r#"{"type":"http","url":"http://h/"}"#, Some(Streamable)),
        (r#"{"type":"streamable-http","url":"http://h/"}"#, Some(Streamable)),
        (r#"{"type":"streamableHttp","url":"http://h/"}"#, Some(Streamable)),
        (r#"{"type":"SSE","url":"http://h/"}"#, Some(Sse)),
        (r#"{"transport":"sse","serverUrl":"http://h/"}"#, Some(Sse)),
        (r#"{"transportType":"STDIO","command":"x"}"#, None),
        (r#"{"type":"local","command":"x","url":"http://h/"}"#, None),
        (r#"{"type":"http","command":"x","url":"http://h/"}"#, Some(Streamable)),
        (r#"{"httpUrl":"http://h/"}"#, Some(Unsaid)),
        (r#"{"type":null,"url":"http://h/","serverUrl":"http://h/"}"#, Some(Unsaid)),
        (r#"{"command":"x","url":null}"#, None),
    ] {
        let entry = good(entry);
        match expected {
            Some(flavour) => assert_eq!(http(&entry).flavour(), flavour),
            None => assert_eq!(stdio(&entry).command(), "x"),
        }
    }
}

#[test]
fn what_is_wrong_with_an_entry_is_said_with_a_pointer_and_spoils_no_other() {
    for (entry, pointer, message) in [
        ("7", "", "must be an object"),
        ("null", "", "must be an object"),
        ("{}", "", "needs a command or url"),
        (r#"{"command":""}"#, "", "needs a command"),
        (r#"{"command":["npx"]}"#, "/command", "must be a string"),
        (r#"{"command":"\ud800"}"#, "/command", "must be a string"),
        (r#"{"command":"x","args":"-y pkg"}"#, "/args", "must be an array of strings"),
        (r#"{"command":"x","args":[1]}"#, "/args", "must be an array of strings"),
        (r#"{"command":"x","env":["A=B"]}"#, "/env", "must be an object"),
        (r#"{"command":"x","env":{"A":null}}"#, "/env/A", "must be a string, a number or a boolean"),
        (r#"{"command":"x","env":{"A/~":{}}}"#, "/env/A~1~0", "must be a string, a number or a boolean"),
        (r#"{"command":"x","env":{"A":"1","A":"2"}}"#, "/env/A", "comes more than once"),
        (
            r#"{"command":"x","env":{"\ud800":"1"}}"#,
            r"/env/\ud800",
            "has a name with half a surrogate pair, which is no text",
        ),
        (
            r#"{"url":"http://h/","headers":{"\udfff/":"1"}}"#,
            r"/headers/\udfff~1",
            "has a name with half a surrogate pair, which is no text",
        ),
        (r#"{"command":"x","cwd":1}"#, "/cwd", "must be a string"),
        (r#"{"command":"x","command":"y"}"#, "/command", "comes more than once"),
        (r#"{"command":"x","url":"http://h/"}"#, "", "has both command and url"),
        (r#"{"url":"http://a/","serverUrl":"http://b/"}"#, "", "has both url and serverUrl"),
        (r#"{"url":"http://a/","headers":{"K":1}}"#, "/headers/K", "must be a string"),
        (r#"{"type":"http","command":"x"}"#, "", "needs a url"),
        (r#"{"type":"stdio","url":"http://a/"}"#, "", "needs a command"),
        (
            r#"{"type":"ws\u001b[2J","url":"ws://a/"}"#,
            "/type",
            r#"names the unknown transport "ws\u{1b}[2J""#,
        ),
        (r#"{"transport":{"type":"http"},"url":"http://a/"}"#, "/transport", "must be a string"),
        (r#"{"command":"x","disabled":"true"}"#, "/disabled", "must be true or false"),
        (r#"{"command":"x","disabled":true,"enabled":true}"#, "", "has both disabled and enabled"),
    ] {
        let text =
            format!(r#"{{"mcpServers":{{"first":{{"command":"x"}},"s":{entry},"last":{{"command":"x"}}}}}}"#);
        let config = ServersConfig::parse(&text).unwrap();
        assert_eq!(config.entries().len(), 2, "{entry}");
        let [error] = config.errors() else { panic!("{entry}: {:?}", config.errors()) };
        assert_eq!(
            (error.name(), error.pointer()),
            ("s", format!("/mcpServers/s{pointer}").as_str()),
            "{entry}"
        );
        assert_eq!(error.to_string(), format!("server \"s\": /mcpServers/s{pointer} {message}"));
    }
}

/// A reader that takes the first and one that takes the last would run different programs.
#[test]
fn a_server_that_is_named_twice_is_none() {
    let config = ServersConfig::parse(
        r#"{"mcpServers":{"a":{"command":"good"},"b":{"command":"x"},"a":{"command":"evil"}}}"#,
    )
    .unwrap();
    assert_eq!(config.entries().len(), 1);
    assert_eq!(config.errors().len(), 2);
    assert!(matches!(config.errors()[0].problem(), EntryProblem::Repeated));
    assert!(config.entry("a").is_none() && config.entry("b").is_some());
}

/// Half a surrogate pair is JSON, so it spoils no other entry, and no text, so it names nothing. It is no repetition of another
/// half, nor of the text that its escape is.
#[test]
fn a_name_that_is_no_text_spoils_its_entry_only() {
    let config = ServersConfig::parse(
        r#"{"\udc00":1,"mcpServers":{"a":{"command":"x","\ud800":2},"\ud800":{"command":"x"},"b\ud800\ud800":{},
            "\\ud800":{"command":"x"},"\ud83d\ude00":{"command":"x"},"\ud800":{}}}"#,
    )
    .unwrap();
    let names: Vec<_> = config.entries().iter().map(ServerEntry::name).collect();
    assert_eq!(names, ["a", r"\ud800", "\u{1f600}"]);
    let errors: Vec<_> = config.errors().iter().map(|error| (error.name(), error.pointer())).collect();
    assert_eq!(
        errors,
        [
            (r"\ud800", r"/mcpServers/\ud800"),
            (r"b\ud800\ud800", r"/mcpServers/b\ud800\ud800"),
            (r"\ud800", r"/mcpServers/\ud800")
        ]
    );
    assert!(config.errors().iter().all(|error| matches!(error.problem(), EntryProblem::LoneSurrogate)));
    assert_eq!(
        (config.other()[0].0.as_str(), config.entries()[0].other()[0].0.as_str()),
        (r"\udc00", r"\ud800")
    );
    let broken = ServersConfig::parse(r#"{"mcpServers":{"\ud80":{}}}"#);
    assert!(matches!(broken, Err(ConfigError::InvalidJson { line: 1, .. })));
}

/// auth:SEC-15: what is shown of a name cannot steer a terminal.
#[test]
fn a_name_must_be_plain_and_short() {
    let long = "n".repeat(257);
    for (name, fine) in [
        ("a", true),
        ("srv:child", true),
        ("ä b", true),
        (&long[1..], true),
        ("", false),
        ("\\u001b[2J", false),
        (&long, false),
    ] {
        let config =
            ServersConfig::parse(&format!(r#"{{"servers":{{"{name}":{{"command":"x"}}}}}}"#)).unwrap();
        assert_eq!(config.entries().len(), usize::from(fine), "{name}");
        for error in config.errors() {
            assert!(!error.to_string().contains(char::is_control) && error.to_string().len() < 800);
        }
    }
}

#[test]
fn a_disabled_server_has_no_endpoint_until_it_is_put_into_use() {
    for entry in [r#"{"command":"x","disabled":true}"#, r#"{"command":"x","enabled":false}"#] {
        let entry = good(entry);
        assert!(entry.is_disabled());
        assert!(matches!(entry.endpoint().unwrap_err().problem(), EntryProblem::Disabled));
        assert!(entry.disabled(false).endpoint().is_ok());
    }
    for entry in [r#"{"command":"x","disabled":false}"#, r#"{"command":"x","enabled":true}"#] {
        assert!(!good(entry).is_disabled());
    }
}

#[test]
fn a_url_or_header_that_cannot_be_used_is_refused_with_a_pointer() {
    for (entry, pointer) in [
        (r#"{"url":"ftp://h/"}"#, "/url"),
        (r#"{"serverUrl":"http://user:secret@h/"}"#, "/serverUrl"),
        (r#"{"url":"http://h/","headers":{"X":"se\ncret"}}"#, "/headers/X"),
        (r#"{"url":"http://h/","headers":{"Mcp-Session-Id":"secret"}}"#, "/headers/Mcp-Session-Id"),
    ] {
        let error = good(entry).endpoint().unwrap_err();
        assert_eq!(error.pointer(), format!("/mcpServers/s{pointer}"));
        assert!(std::error::Error::source(&error).is_some());
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}

#[test]
fn variables_are_filled_in_from_the_lookup_and_nowhere_else() {
    let entry = good(
        r#"{"command":"${BIN:-npx}","args":["${HOME}/x","$HOME","${EMPTY:-d}"],"env":{"${K}":"${input:token}"},"cwd":"${workspaceFolder}"}"#,
    );
    let variables: Vec<_> = entry.variables().unwrap().into_iter().collect();
    assert_eq!(variables, ["BIN", "EMPTY", "HOME", "input:token", "workspaceFolder"]);
    assert!(matches!(entry.endpoint().unwrap_err().problem(), EntryProblem::Unexpanded));

    let lookup = |name: &str| match name {
        // What is filled in is not looked at again.
        "HOME" => Some("/var/${BIN}".to_owned()),
        "EMPTY" => Some(String::new()),
        "input:token" => Some("s3cret".to_owned()),
        "workspaceFolder" => Some("/w".to_owned()),
        _ => None,
    };
    let expanded = entry.expand(lookup).unwrap();
    let program = stdio(&expanded);
    assert_eq!(program.command(), "npx");
    assert_eq!(program.args(), ["/var/${BIN}/x", "$HOME", ""]);
    assert_eq!(program.env(), [("${K}".to_owned(), "s3cret".to_owned())]);
    assert_eq!(program.cwd(), Some("/w"));
    assert!(expanded.endpoint().is_ok() && expanded.variables().unwrap().is_empty());
    assert_eq!(stdio(&expanded.expand(|_| None).unwrap()).args(), program.args());

    let as_written = entry.as_written();
    assert_eq!(as_written.stdio_server().unwrap().program(), "${BIN:-npx}");
}

#[test]
fn a_variable_that_cannot_be_filled_in_is_said_with_a_pointer() {
    let check = |entry: &str, pointer: &str, message: &str| {
        let error = good(entry).expand(|_| None).unwrap_err();
        assert_eq!(error.pointer(), format!("/mcpServers/s{pointer}"));
        assert!(error.to_string().ends_with(message), "{error}");
    };
    let invalid = "has a ${ that is not closed, has no name or holds another one";
    check(r#"{"command":"x","args":["a","${T}"]}"#, "/args/1", "needs the variable T, which is not set");
    check(r#"{"command":"x","env":{"A":"${T}"}}"#, "/env/A", "needs the variable T, which is not set");
    check(r#"{"url":"${T}"}"#, "/url", "needs the variable T, which is not set");
    check(r#"{"url":"http://h/","headers":{"A":"${}"}}"#, "/headers/A", invalid);
    check(r#"{"command":"${A"}"#, "/command", invalid);
    check(r#"{"command":"${A:-${B}}"}"#, "/command", invalid);
    check(r#"{"command":"x","cwd":"${A B}"}"#, "/cwd", invalid);
    let emptied = good(r#"{"command":"${A:-}"}"#).expand(|_| None).unwrap();
    assert!(matches!(emptied.endpoint().unwrap_err().problem(), EntryProblem::Missing { member: "command" }));
}

#[test]
fn values_are_not_in_debug_nor_in_errors() {
    let text = r#"{"mcpServers":{
        "a":{"command":"x","args":["SECRET"],"env":{"K":"SECRET"},"oauth":{"clientSecret":"SECRET"}},
        "b":{"url":"http://h/?key=SECRET","headers":{"Authorization":"SECRET"}},
        "c":{"command":"x","env":{"K":["SECRET"]}}},
        "inputs":["SECRET"]}"#;
    let config = ServersConfig::parse(text).unwrap();
    assert_eq!((config.entries().len(), config.errors().len()), (2, 1));
    let shown = format!("{config:?} {config:#?} {}", config.errors()[0]);
    assert!(!shown.contains("SECRET"), "{shown}");
    for name in ["oauth", "Authorization", "inputs", "\"K\""] {
        assert!(shown.contains(name), "{shown}");
    }
    for entry in config.entries() {
        assert!(!format!("{:?}", entry.endpoint().unwrap()).contains("SECRET"));
    }
}

/// What a variable held is shown nowhere, whichever member it went into.
#[test]
fn expanded_values_are_not_in_debug() {
    for entry in [
        r#"{"command":"${BIN}","args":["${A}"],"env":{"K":"${E}"},"cwd":"/srv/${DIR}"}"#,
        r#"{"url":"https://${HOST}/${PATH}?key=${KEY}","headers":{"X":"${H}"}}"#,
    ] {
        let expanded = good(entry).expand(|_| Some("SECRET".to_owned())).unwrap();
        let (entry, transport) = (format!("{expanded:?}"), format!("{:#?}", expanded.transport()));
        assert!(!entry.contains("SECRET") && !transport.contains("SECRET"), "{entry} {transport}");
        assert!(!format!("{:?}", expanded.connector().unwrap()).contains("SECRET"));
    }
    let shown = format!("{:?}", good(r#"{"command":"x","args":["a","b"],"env":{"K":"v"}}"#).transport());
    assert_eq!(shown, r#"Stdio(StdioEntry { args: 2, env: ["K"], .. })"#);
}

#[test]
fn deep_nesting_is_read_without_recursion() {
    for entry in ["{}", "[]"].map(|pair| pair[..1].repeat(200_000)) {
        assert!(ServersConfig::parse(&format!(r#"{{"servers":{{"a":{entry}"#)).is_err());
    }
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let config = ServersConfig::parse(&format!(
        r#"{{"x":{deep},"servers":{{"a":{{"command":"x","y":{deep}}},"b":{deep},"c":{{"command":{deep}}}}}}}"#
    ));
    assert!(matches!(config, Err(ConfigError::TooLong { .. })));
    let limits = ConfigLimits { max_bytes: 4 << 20, ..ConfigLimits::default() };
    let config = ServersConfig::parse_within(
        &format!(r#"{{"x":{deep},"servers":{{"a":{{"command":"x","y":{deep}}},"b":{deep},"c":{{"command":{deep}}}}}}}"#),
        &limits,
    )
    .unwrap();
    assert_eq!((config.entries().len(), config.errors().len(), config.other().len()), (1, 2, 1));
    assert_eq!(config.entries()[0].other()[0].1.as_str(), deep);
}

/// A slow twin of the expansion: character by character.
fn naive(text: &str) -> Result<String, Fault> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    let mut unset = None;
    while at < chars.len() {
        if chars[at] != '$' || chars.get(at + 1) != Some(&'{') {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        let Some(end) = (at..chars.len()).find(|&end| chars[end] == '}') else { return Err(Fault::Invalid) };
        let inside: String = chars[at + 2..end].iter().collect();
        let name: String = inside.split(":-").next().unwrap().to_owned();
        if name.is_empty() || inside.contains("${") || name.contains(['$', '{', ' ']) {
            return Err(Fault::Invalid);
        }
        if name == "A" {
            out.push_str("${B}");
        } else if inside.len() > name.len() {
            out.push_str(&inside[name.len() + 2..]);
        } else {
            // Told only of a text that is whole.
            unset.get_or_insert(name);
        }
        at = end + 1;
    }
    unset.map_or(Ok(out), |name| Err(Fault::Unset(name)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn expansion_agrees_with_its_twin(text in r"(\$|\{|\}|:|-|A|B| |ä){0,14}") {
        let expanded = expand(&text, &mut |name| (name == "A").then(|| "${B}".to_owned()), 1 << 20);
        prop_assert_eq!(expanded, naive(&text));
    }

    #[test]
    fn pieces_are_the_text(text in r"(\$\{|\}|:-|A|B|é){0,14}") {
        if let Ok(pieces) = pieces(&text) {
            let joined: String = pieces.iter().map(|piece| match piece {
                Piece::Literal(literal) => (*literal).to_owned(),
                Piece::Reference { name, default: None } => format!("${{{name}}}"),
                Piece::Reference { name, default: Some(default) } => format!("${{{name}:-{default}}}"),
            }).collect();
            prop_assert_eq!(joined, text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"(\{|\}|\[|\]|:|,|"mcpServers"|"a"|"command"|"url"|"env"|null|1|true| ){0,24}"#) {
        if let Ok(config) = ServersConfig::parse(&text) {
            for entry in config.entries() {
                let _ = entry.expand(|_| None).and_then(|entry| entry.endpoint());
            }
        }
    }
}

/// Many small references to a long value must not fill the memory.
#[test]
fn an_entry_is_bounded_with_its_variables_filled_in() {
    let args = vec!["\"${A}\""; 10_000].join(",");
    let text = format!(r#"{{"mcpServers":{{"a":{{"command":"a","args":[{args}]}}}}}}"#);
    let config = ServersConfig::parse(&text).unwrap();
    let mut looked_up = 0;
    let expanded = config.entries()[0].expand(|_| {
        looked_up += 1;
        Some("x".repeat(100_000))
    });
    let limit = ConfigLimits::default().max_entry_bytes;
    assert!(
        matches!(expanded.unwrap_err().problem(), EntryProblem::TooLong { limit: found } if *found == limit)
    );
    assert!(looked_up < 50, "{looked_up}");
}
