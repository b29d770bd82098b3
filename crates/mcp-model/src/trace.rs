//! Trace context: the distributed trace that a request belongs to (W3C Trace Context and W3C Baggage; "OpenTelemetry" in the
//! specification's base protocol, since 2026-07-28).

use std::fmt;

use crate::meta;

/// The trace context of a request, sent in `_meta`. This crate creates no spans.
///
/// ```
/// use mcp_model::TraceContext;
///
/// let trace = TraceContext::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")?
///     .with_tracestate("vendor=t61rcWkgMzE")?;
/// assert_eq!(trace.members().count(), 2);
/// # Ok::<(), mcp_model::InvalidTraceContext>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
    baggage: Option<String>,
}

/// A value that does not conform to W3C Trace Context or W3C Baggage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidTraceContext {
    /// The `_meta` key: `traceparent`, `tracestate` or `baggage`.
    pub key: &'static str,
    /// What is wrong. It quotes nothing of the value.
    pub reason: &'static str,
}

/// Members of one tracestate, by its standard.
const MAX_STATE_MEMBERS: usize = 32;
/// Bytes of a tracestate that are passed on. The standard asks for 512 at least; a longer one is cut by whoever makes it.
const MAX_STATE_BYTES: usize = 8192;
/// Bytes of a baggage, and its members, that a platform must pass on by its standard.
const MAX_BAGGAGE_BYTES: usize = 8192;
const MAX_BAGGAGE_MEMBERS: usize = 64;

impl TraceContext {
    /// A trace context with this `traceparent`.
    ///
    /// # Errors
    /// If it is not a valid `traceparent`: version, trace id, parent id and flags in lowercase hexadecimal, the ids not all zero.
    pub fn new(traceparent: impl Into<String>) -> Result<Self, InvalidTraceContext> {
        let traceparent = traceparent.into();
        check_parent(&traceparent)
            .map_err(|reason| InvalidTraceContext { key: meta::TRACEPARENT, reason })?;
        Ok(Self { traceparent, tracestate: None, baggage: None })
    }

    /// Adds a `tracestate`: vendor-specific trace data.
    ///
    /// # Errors
    /// If it is not a valid `tracestate`: up to 32 members `key=value` of printable ASCII.
    pub fn with_tracestate(mut self, tracestate: impl Into<String>) -> Result<Self, InvalidTraceContext> {
        let tracestate = tracestate.into();
        check_state(&tracestate).map_err(|reason| InvalidTraceContext { key: meta::TRACESTATE, reason })?;
        self.tracestate = Some(tracestate);
        Ok(self)
    }

    /// Adds `baggage`: application data that is passed along the trace. The server can read it.
    ///
    /// # Errors
    /// If it is not valid `baggage`: up to 64 members `key=value`, each with or without properties, 8,192 bytes in all.
    pub fn with_baggage(mut self, baggage: impl Into<String>) -> Result<Self, InvalidTraceContext> {
        let baggage = baggage.into();
        check_baggage(&baggage).map_err(|reason| InvalidTraceContext { key: meta::BAGGAGE, reason })?;
        self.baggage = Some(baggage);
        Ok(self)
    }

    /// The keys and values for `_meta`.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.tracestate.as_deref().map(|value| (meta::TRACESTATE, value));
        let baggage = self.baggage.as_deref().map(|value| (meta::BAGGAGE, value));
        [(meta::TRACEPARENT, self.traceparent.as_str())].into_iter().chain(state).chain(baggage)
    }
}

/// Shows the `traceparent` only: baggage may be personal.
impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext")
            .field("traceparent", &self.traceparent)
            .field("tracestate_bytes", &self.tracestate.as_ref().map(String::len))
            .field("baggage_bytes", &self.baggage.as_ref().map(String::len))
            .finish()
    }
}

impl fmt::Display for InvalidTraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {}", self.key, self.reason)
    }
}

impl std::error::Error for InvalidTraceContext {}

fn check_parent(text: &str) -> Result<(), &'static str> {
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if text.len() > 256 {
        return Err("is too long");
    }
    let mut parts = text.split('-');
    let (Some(version), Some(trace), Some(parent), Some(flags)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("does not have four parts");
    };
    if !is_hex(version, 2) || version == "ff" {
        return Err("has no valid version");
    }
    // A later version may append parts, which are passed on unread.
    if version == "00" && parts.next().is_some() {
        return Err("has more than four parts");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has a character that is not printable ASCII");
    }
    let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
    if !is_hex(trace, 32) || is_zero(trace) {
        return Err("has no valid trace id");
    }
    if !is_hex(parent, 16) || is_zero(parent) {
        return Err("has no valid parent id");
    }
    if is_hex(flags, 2) { Ok(()) } else { Err("has no valid flags") }
}

fn check_state(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_STATE_BYTES {
        return Err("is longer than 8192 bytes");
    }
    let members: Vec<&str> = text.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
    if members.len() > MAX_STATE_MEMBERS {
        return Err("has more than 32 members");
    }
    let is_key = |key: &str| {
        (1..=256).contains(&key.len())
            && key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
            && key.bytes().all(|byte| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
            })
    };
    let is_value = |value: &str| {
        (1..=256).contains(&value.len())
            && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=' && byte != b',')
    };
    let legal = |member: &&str| {
        member.is_empty() || member.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value))
    };
    if members.iter().all(legal) { Ok(()) } else { Err("has a member that is not key=value") }
}

fn check_baggage(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_BAGGAGE_BYTES {
        return Err("is longer than 8192 bytes");
    }
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let is_value = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\'))
    };
    let trim = |text: &str| text.trim_matches([' ', '\t']).to_owned();
    let mut count = 0;
    for member in text.split(',') {
        count += 1;
        let mut parts = member.split(';');
        let pair = parts.next().unwrap_or_default();
        let legal =
            pair.split_once('=').is_some_and(|(key, value)| is_token(&trim(key)) && is_value(&trim(value)))
                && parts.all(|property| match property.split_once('=') {
                    Some((key, value)) => is_token(&trim(key)) && is_value(&trim(value)),
                    None => is_token(&trim(property)),
                });
        if !legal {
            return Err("has a member that is not key=value");
        }
    }
    if count > MAX_BAGGAGE_MEMBERS { Err("has more than 64 members") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn trace() -> TraceContext {
        TraceContext::new(PARENT).unwrap()
    }

    /// protocol:J-26
    #[test]
    fn a_traceparent_follows_the_standard() {
        let check = |text: &str, legal: bool| assert_eq!(TraceContext::new(text).is_ok(), legal, "{text}");
        check(PARENT, true);
        check(&PARENT.replacen("00-", "01-", 1), true);
        check(&format!("{}-more", PARENT.replacen("00-", "01-", 1)), true);
        for odd in [
            "",
            &PARENT.to_uppercase(),
            &PARENT.replacen("00-", "ff-", 1),
            &format!("{PARENT}-more"),
            &format!("{PARENT} "),
            &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PARENT.replace("4736", "473"),
            &PARENT.replace("-01", "-1"),
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-\u{1b}",
        ] {
            check(odd, false);
        }
        // Below, at and above the length that is looked at.
        let later = PARENT.replacen("00-", "01-", 1);
        for (bytes, legal) in [(255, true), (256, true), (257, false)] {
            check(&format!("{later}-{}", "x".repeat(bytes - later.len() - 1)), legal);
        }
    }

    /// protocol:J-26
    #[test]
    fn tracestate_and_baggage_follow_their_standards() {
        let state =
            |text: &str, legal: bool| assert_eq!(trace().with_tracestate(text).is_ok(), legal, "{text}");
        state("", true);
        state("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true);
        state("a@b=x , c=y z", true);
        state("a", false);
        state("A=b", false);
        state("a=b=c", false);
        state("a=\n", false);
        state("a=\u{e9}", false);
        state("1a=b", true);
        state("_a=b", false);
        state("a\u{e9}=b", false);
        state("=b", false);
        state(&format!("{}=b", "a".repeat(256)), true);
        state(&format!("{}=b", "a".repeat(257)), false);
        state(&format!("a={}", "b".repeat(256)), true);
        state(&format!("a={}", "b".repeat(257)), false);
        let long = vec![format!("a={}", "b".repeat(254)); 31].join(",");
        state(&format!("{long},{}", " ".repeat(8192 - long.len() - 1)), true);
        state(&format!("{long},{}", " ".repeat(8193 - long.len() - 1)), false);
        state(&vec!["a=b"; 32].join(","), true);
        state(&vec!["a=b"; 33].join(","), false);
        let baggage =
            |text: &str, legal: bool| assert_eq!(trace().with_baggage(text).is_ok(), legal, "{text}");
        baggage("userId=alice,serverNode=DF%2028,isProduction=false", true);
        baggage("key = value ; property ; p = x", true);
        baggage("a=", true);
        baggage("", false);
        baggage("a", false);
        baggage("a=b c", false);
        baggage("a=\"b\"", false);
        baggage("a b=c", false);
        baggage("a=b\r\n", false);
        baggage("a=b;p x=y", false);
        baggage("a=b;p=x y", false);
        baggage("a=b;p x", false);
        baggage(&vec!["a=b"; 64].join(","), true);
        baggage(&vec!["a=b"; 65].join(","), false);
        baggage(&format!("a={}", "b".repeat(8190)), true);
        baggage(&format!("a={}", "b".repeat(8191)), false);
    }

    #[test]
    fn members_are_what_goes_into_meta_and_baggage_is_not_shown() {
        let trace = trace().with_baggage("user=canary").unwrap().with_tracestate("v=1").unwrap();
        let members: Vec<_> = trace.members().collect();
        assert_eq!(members, [("traceparent", PARENT), ("tracestate", "v=1"), ("baggage", "user=canary")]);
        let shown = format!(
            "TraceContext {{ traceparent: {PARENT:?}, tracestate_bytes: Some(3), baggage_bytes: Some(11) }}"
        );
        assert_eq!(format!("{trace:?}"), shown);
        assert_eq!(
            TraceContext::new("x").unwrap_err().to_string(),
            "the traceparent does not have four parts"
        );
    }
}
