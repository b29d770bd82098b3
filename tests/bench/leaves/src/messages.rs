//! JSON-RPC messages as servers send them.

use std::fmt::Write;

/// A progress notification of 119 bytes.
pub(crate) fn progress(index: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{:5},"progress":{:5},"total":100000}}}}"#,
        index % 99_999,
        index % 77_777
    )
}

/// A tool result with one text of so many bytes without escapes.
pub(crate) fn mixed_text(bytes: usize, seed: usize) -> String {
    const WIDE: [char; 4] = ['é', '…', '漢', '😀'];
    let mut text = String::with_capacity(bytes + 8);
    let mut random = seed;
    while text.len() < bytes {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let letter = random >> 16;
        if text.len() % 100 < 2 {
            text.push(WIDE[letter % WIDE.len()]);
        } else {
            text.push((b'a' + (letter % 26) as u8) as char);
        }
    }
    text_result(&text)
}

/// A tool result of about 150 bytes.
pub(crate) fn short_text() -> String {
    text_result(r"The sum of 2 and 3 is 5.\nThat is all there is to say about it.")
}

/// A tool result with one text of so many bytes, every few words an escape.
pub(crate) fn escaped_text(bytes: usize) -> String {
    let sentence = r#"He said \"hello\" to C:\\dir\nand went on with the next line of the log.\t"#;
    text_result(&sentence.repeat(bytes / sentence.len() + 1))
}

fn text_result(text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":4242,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
}

/// A tool result with structured content of so many bytes: many small objects.
pub(crate) fn rows(bytes: usize) -> String {
    let mut rows = String::with_capacity(bytes + 128);
    for index in 0.. {
        let separator = if index == 0 { "" } else { "," };
        let score = index * 3;
        let _ = write!(
            rows,
            r#"{separator}{{"id":{index},"name":"row {index}","score":{score}.5,"active":true,"tags":["a","b{index}"]}}"#
        );
        if rows.len() >= bytes {
            break;
        }
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":4242,"result":{{"content":[{{"type":"text","text":"see structuredContent"}}],"structuredContent":{{"rows":[{rows}]}}}}}}"#
    )
}

/// A tool result with a base64 image of so many bytes.
pub(crate) fn image(bytes: usize) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let data: String = (0..bytes).map(|index| ALPHABET[(index * 7919 + index / 13) % 64] as char).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":4242,"result":{{"content":[{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
    )
}
