//! What is allocated and not given back, to tell what stays behind from what the allocator keeps for the next one who asks.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator, which is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Both only grow: a difference of the two, taken while others allocate, is off by what these hold for a moment.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// The bytes that are allocated now.
pub(crate) fn live_bytes() -> u64 {
    let given = GIVEN.load(Ordering::Relaxed);
    TAKEN.load(Ordering::Relaxed).saturating_sub(given)
}

fn add(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(&TAKEN, layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(&TAKEN, layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(&GIVEN, layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(&TAKEN, new_size);
        add(&GIVEN, layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_live() {
        // Other tests allocate at the same time, and far less than this.
        const BYTES: usize = 64 << 20;
        let before = live_bytes();
        let held: Vec<u8> = Vec::with_capacity(BYTES);
        let during = live_bytes();
        drop(held);
        let after = live_bytes();
        let margin = 1 << 20;
        assert!(during >= before + (BYTES as u64) - margin, "{before} {during}");
        assert!(after <= during - (BYTES as u64) + margin, "{during} {after}");
    }
}
