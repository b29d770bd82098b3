//! What reading a result may cost: allocations and peak memory, counted.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator, which is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mcp_model::{CallToolResult, ProgressNotificationParams, ReadResourceResult, inspect_result_type};
use serde::de::DeserializeOwned;
use serde_json::json;

struct Counting;

#[derive(Clone, Copy, Default)]
struct Count {
    allocations: usize,
    reallocations: usize,
    live: isize,
    peak: isize,
}

thread_local! {
    // Tests run side by side, each on its own thread, and the code under test starts none.
    static COUNT: Cell<Count> = const { Cell::new(Count { allocations: 0, reallocations: 0, live: 0, peak: 0 }) };
}

fn note(change: impl FnOnce(&mut Count)) {
    // The thread may be ending, when there is nothing left to count in.
    let _ = COUNT.try_with(|count| {
        let mut now = count.get();
        change(&mut now);
        now.peak = now.peak.max(now.live);
        count.set(now);
    });
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(|count| {
            count.allocations += 1;
            count.live += layout.size() as isize;
        });
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(|count| count.live -= layout.size() as isize);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(|count| {
            count.reallocations += 1;
            count.live += new_size as isize - layout.size() as isize;
        });
        // SAFETY: the caller's contract is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted<T>(work: impl FnOnce() -> T) -> (T, Count) {
    COUNT.set(Count::default());
    let result = work();
    (result, COUNT.get())
}

/// Reads the text as `T` and checks the number of allocations and the peak, in hundredths of the text's size.
fn check<T: DeserializeOwned>(what: &str, text: &str, most_allocations: usize, most_peak_percent: isize) {
    let (result, count) = counted(|| serde_json::from_str::<T>(text));
    assert!(result.is_ok(), "{what}: {:?}", result.err());
    let peak_percent = count.peak * 100 / text.len() as isize;
    let Count { allocations, reallocations, .. } = count;
    let measured = format!("{allocations} allocations, {reallocations} reallocations, peak {peak_percent} %");
    assert!(allocations <= most_allocations, "{what}: {measured}");
    assert!(peak_percent <= most_peak_percent, "{what}: {measured}");
}

fn rows(count: usize) -> String {
    let row = |number: usize| json!({ "id": number, "name": format!("row {number}"), "score": 0.5, "tags": ["a", "b"] });
    let rows: serde_json::Value = (0..count).map(row).collect();
    format!(
        r#"{{"content":[{{"type":"text","text":"see structuredContent"}}],"structuredContent":{{"rows":{rows}}}}}"#
    )
}

/// A text of about so many bytes with an escape in every line.
fn text_result(bytes: usize) -> String {
    let line = "The quick brown fox says \"hello\" to the lazy dog.\n";
    let text = line.repeat(bytes / line.len() + 1);
    format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":false}}"#, serde_json::Value::from(text))
}

#[test]
fn a_small_text_result_takes_at_most_four_allocations() {
    // The peak of so small a text is the size of the types, not of the text.
    let plain = r#"{"content":[{"type":"text","text":"Nothing here needs an escape, so the text is copied straight out."}]}"#;
    check::<CallToolResult>("text without escapes", plain, 2, 400);
    check::<CallToolResult>("text 150 B", &text_result(80), 2, 400);
    let late = r#"{"content":[{"text":"The type stands last.","type":"text"}],"isError":false}"#;
    check::<CallToolResult>("text, type last", late, 3, 800);
}

#[test]
fn rows_stay_raw_and_take_at_most_four_allocations_whatever_their_number() {
    check::<CallToolResult>("rows 10 KB", &rows(150), 4, 110);
    check::<CallToolResult>("rows 1 MB", &rows(15_000), 4, 110);
    check::<CallToolResult>("rows 4 MB", &rows(60_000), 4, 110);
}

#[test]
fn a_large_text_is_held_once() {
    check::<CallToolResult>("text 10 KB", &text_result(10_000), 2, 110);
    check::<CallToolResult>("text 1 MB", &text_result(1_000_000), 2, 100);
    check::<CallToolResult>("text 4 MB", &text_result(4_000_000), 2, 100);
    let resource =
        text_result(1_000_000).replace("\"content\"", "\"contents\"").replace("\"type\"", "\"uri\"");
    check::<ReadResourceResult>("resource 1 MB", &resource, 3, 100);
}

#[test]
fn an_image_is_copied_once() {
    let data = "A".repeat(1_000_000);
    let image = format!(r#"{{"content":[{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}"#);
    check::<CallToolResult>("image 1 MB", &image, 3, 110);
    // Where `type` does not come first, members wait as raw text until it does.
    let image = format!(r#"{{"content":[{{"data":"{data}","mimeType":"image/png","type":"image"}}]}}"#);
    check::<CallToolResult>("image 1 MB, type last", &image, 6, 110);
}

#[test]
fn a_progress_notification_takes_at_most_two_allocations() {
    let progress = r#"{"progressToken":17,"progress":42,"total":100,"message":"Indexing"}"#;
    check::<ProgressNotificationParams>("progress", progress, 2, 400);
}

#[test]
fn looking_at_the_result_type_allocates_no_more_than_a_stack_of_brackets() {
    let text = rows(1000);
    let (found, count) = counted(|| inspect_result_type(&text));
    assert!(found.is_ok());
    assert!(
        count.allocations <= 1 && count.peak <= 64,
        "{} allocations, peak {}",
        count.allocations,
        count.peak
    );
}
