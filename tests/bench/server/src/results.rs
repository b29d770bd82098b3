//! What the tools answer.

use std::io::Write;

use bytes::Bytes;

const LINE: &[u8; 72] = b"The quick brown fox jumps over the lazy dog; pack my box with five jugs.";

/// A text of so many characters.
pub(crate) fn text(characters: usize) -> Bytes {
    let mut out = br#"{"content":[{"type":"text","text":""#.to_vec();
    out.reserve(characters + characters / LINE.len() + 64);
    for index in 0..characters {
        match LINE.get(index % (LINE.len() + 1)) {
            Some(letter) => out.push(*letter),
            None => out.extend_from_slice(br"\n"),
        }
    }
    out.extend_from_slice(br#""}],"isError":false}"#);
    out.into()
}

/// Structured content of at least so many bytes.
pub(crate) fn structured(bytes: usize) -> Bytes {
    let mut out = br#"{"content":[{"type":"text","text":"see structuredContent"}],"isError":false,"structuredContent":{"items":["#.to_vec();
    out.reserve(bytes + 256);
    let start = out.len();
    for index in 0.. {
        if index > 0 {
            out.push(b',');
        }
        let (price, active) = (index * 3, index % 2 == 0);
        write_into(
            &mut out,
            format_args!(
                r#"{{"id":{index},"name":"item {index}","price":{price}.25,"active":{active},"tags":["red","green","blue"],"parent":null}}"#
            ),
        );
        if out.len() - start >= bytes {
            break;
        }
    }
    out.extend_from_slice(b"]}}");
    out.into()
}

/// A list of so many tools.
pub(crate) fn tools(count: usize) -> Bytes {
    let mut out = br#"{"tools":["#.to_vec();
    for index in 0..count.max(1) {
        if index > 0 {
            out.push(b',');
        }
        let name = if index == 0 { "echo".to_owned() } else { format!("tool_{index}") };
        write_into(
            &mut out,
            format_args!(
                r#"{{"name":"{name}","title":"Tool number {index}","description":"Echoes its text back. Use it to measure a client.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"what to say"}},"size":{{"type":"integer","minimum":0}},"count":{{"type":"integer","minimum":0}}}},"required":[]}},"annotations":{{"readOnlyHint":true,"idempotentHint":true}}}}"#
            ),
        );
    }
    out.extend_from_slice(b"]}");
    out.into()
}

fn write_into(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing into memory does not fail.
    let _ = out.write_fmt(text);
}
