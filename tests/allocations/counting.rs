//! An allocator that counts for each thread by itself: tests run side by side, and the code under test starts no thread.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator, which is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a piece of work took from the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) allocations: usize,
    pub(crate) reallocations: usize,
    /// Bytes still held at the end, less what was given back of earlier ones.
    pub(crate) kept: isize,
    /// The most bytes held at any moment.
    pub(crate) peak: isize,
}

impl Count {
    /// How often the allocator was asked for memory.
    pub(crate) fn calls(&self) -> usize {
        self.allocations + self.reallocations
    }
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { allocations: 0, reallocations: 0, kept: 0, peak: 0 }) };
}

/// Does the work and counts it.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, Count) {
    COUNT.set(Count::default());
    let result = work();
    (result, COUNT.get())
}

fn note(change: impl FnOnce(&mut Count)) {
    // The thread may be ending, when there is nothing left to count in.
    let _ = COUNT.try_with(|count| {
        let mut now = count.get();
        change(&mut now);
        now.peak = now.peak.max(now.kept);
        count.set(now);
    });
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(|count| {
            count.allocations += 1;
            count.kept += signed(layout.size());
        });
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(|count| {
            count.allocations += 1;
            count.kept += signed(layout.size());
        });
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(|count| count.kept -= signed(layout.size()));
        // SAFETY: the caller's contract is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(|count| {
            count.reallocations += 1;
            count.kept += signed(new_size) - signed(layout.size());
        });
        // SAFETY: the caller's contract is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[test]
fn the_counts_are_those_of_the_work() {
    let ((), count) = counted(|| {
        let mut buffer: Vec<u8> = Vec::with_capacity(100);
        buffer.resize(100, 1);
        buffer.reserve_exact(100);
        drop(buffer);
        drop(Box::new(7_u32));
    });
    assert_eq!(count, Count { allocations: 2, reallocations: 1, kept: 0, peak: 200 });
    let (kept, count) = counted(|| vec![0_u8; 50]);
    assert_eq!((kept.len(), count.kept, count.calls()), (50, 50, 1));
}
