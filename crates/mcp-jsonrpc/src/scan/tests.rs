use proptest::prelude::*;

use super::*;

/// What [`container`] says, the obvious way: byte by byte, with the open brackets on a stack.
fn naive(bytes: &[u8], start: usize, outer: usize, max_depth: usize) -> Result<Container, Fault> {
    let mut open: Vec<u8> = Vec::new();
    let mut fault = None;
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        // A backslash takes the next byte with it, in a string or not; outside it is no JSON anyway.
        let follows_backslash = std::mem::take(&mut escaped);
        if follows_backslash && (matches!(byte, b'"' | b'\\') || in_string) {
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                open.push(*byte);
                if open.len() + outer > max_depth {
                    fault.get_or_insert(Fault::new(DecodeErrorKind::TooDeep { limit: max_depth }, at));
                }
            }
            b'}' | b']' => {
                let opened = open.pop().unwrap();
                if (opened == b'{') != (*byte == b'}') {
                    fault.get_or_insert(Fault::new(DecodeErrorKind::MismatchedBracket, at));
                }
                if open.is_empty() {
                    return Ok(Container { end: at + 1, fault });
                }
            }
            _ => {}
        }
    }
    Err(Fault::new(DecodeErrorKind::UnexpectedEnd, bytes.len()))
}

fn check(text: &str) {
    for padding in 0..3 {
        let padded = format!("{}{text}", " ".repeat(padding));
        let bytes = padded.as_bytes();
        assert_eq!(container(bytes, padding, 0, 127), naive(bytes, padding, 0, 127), "{text:?}");
        assert_eq!(container(bytes, padding, 2, 4), naive(bytes, padding, 2, 4), "{text:?}");
    }
}

// seed:B34
#[test]
fn brackets_and_escapes_fall_on_every_place_of_a_block() {
    for shift in 0..140 {
        let fill = "x".repeat(shift);
        check(&format!(r#"{{"{fill}":"[\"]}}"}}"#));
        check(&format!(r#"["{fill}\\","]",[[]]] tail"#));
        check(&format!(r#"["{fill}\\\"]","\\\\"]"#));
        check(&format!(r#"["{}"]"#, "\\\\".repeat(shift)));
        check(&format!(r#"["{}\"]"]"#, "\\\\".repeat(shift)));
        check(&format!(r#"["{}"#, "\\".repeat(shift)));
        check(&format!(r#"["{fill}\n{}","]"]"#, "y".repeat(100)));
        check(&format!("[{}]{}", "[".repeat(shift), "]".repeat(shift)));
        check(&format!("{}{}", "[{".repeat(shift + 1), "}]".repeat(shift + 1)));
        check(&format!("[[{fill}}}]"));
        check(&format!("{{\"{fill}"));
        check(&format!("[{}\u{e9}\u{1f600}\"]\"]", "é".repeat(shift)));
    }
}

// seed:B34, field:FR-112
#[test]
fn depth_is_counted_to_the_bracket() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let fault = |depth, outer, max| container(nested(depth).as_bytes(), 0, outer, max).unwrap().fault;
    assert_eq!(fault(126, 0, 127), None);
    assert_eq!(fault(127, 0, 127), None);
    let too_deep = |at| Some(Fault::new(DecodeErrorKind::TooDeep { limit: 127 }, at));
    assert_eq!(fault(128, 0, 127), too_deep(127));
    assert_eq!(fault(126, 1, 127), None);
    assert_eq!(fault(127, 1, 127), too_deep(126));
    assert_eq!(fault(1_000_000, 1, 127), too_deep(126));
    assert_eq!(container(nested(1_000_000).as_bytes(), 0, 1, 127).unwrap().end, 2_000_000);
    assert_eq!(fault(1, 3, 2), Some(Fault::new(DecodeErrorKind::TooDeep { limit: 2 }, 0)));
}

#[test]
fn long_strings_are_left_at_their_end() {
    for len in [60, 64, 127, 128, 129, 1000, 100_000] {
        let fill = "y".repeat(len);
        check(&format!(r#"{{"a":"{fill}","b":[1]}}, "#));
        check(&format!(r#"{{"a":"{fill}\\","b":"{fill}\"","c":{{}}}}"#));
        check(&format!(r#"{{"a":"{fill}"#));
        check(&format!(r#"{{"a":"{fill}\"#));
    }
}

#[test]
fn strings_end_at_the_first_free_quote() {
    for (text, end) in [
        (r#""""#, Some(2)),
        (r#""abc", "d""#, Some(5)),
        (r#""a\"b""#, Some(6)),
        (r#""a\\""#, Some(5)),
        (r#""a\\\"""#, Some(7)),
        (r#""abc"#, None),
        (r#""abc\"#, None),
        (r#""abc\""#, None),
        (r#"""#, None),
    ] {
        assert_eq!(string(text.as_bytes(), 0).ok(), end, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn containers_end_where_the_naive_scanner_says(
        body in r#"([\[\]{}"\\xé,:]{0,40}|"[^"\\]{0,80}"|\\{0,70}){0,8}"#,
        start in 0_usize..70,
        outer in 0_usize..3,
        max_depth in 0_usize..6,
    ) {
        let text = format!("{}[{body}", " ".repeat(start));
        prop_assert_eq!(
            container(text.as_bytes(), start, outer, max_depth),
            naive(text.as_bytes(), start, outer, max_depth)
        );
    }
}
