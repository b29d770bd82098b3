use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::task::Wake;

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Somebody who waits, and how often it was woken.
#[derive(Default)]
struct Waits(Arc<Count>, std::cell::Cell<Option<Waiter>>);

impl Waits {
    fn written(&self, outbox: &mut Outbox, ticket: Ticket) -> Poll<Result<(), Error>> {
        let mut released = Released::default();
        let mut waiter = self.1.get();
        let polled =
            outbox.poll_written(Waker::from(Arc::clone(&self.0)), ticket, &mut waiter, &mut released);
        self.1.set(waiter);
        released.let_go();
        polled
    }

    fn times_woken(&self) -> usize {
        self.0.0.load(Ordering::Relaxed)
    }
}

fn put(outbox: &mut Outbox, bytes: usize) -> Ticket {
    outbox.put(Bytes::from(vec![b'x'; bytes])).unwrap()
}

fn take_back(outbox: &mut Outbox, ticket: Ticket) -> bool {
    let mut released = Released::default();
    let taken = outbox.take_back(ticket, &mut released);
    released.let_go();
    taken
}

/// The writer hands over what is queued, up to this position.
fn hand_over(outbox: &mut Outbox, bytes: usize, handed: u64) {
    let mut batch = Batch::default();
    outbox.take_batch(&mut batch);
    let mut released = Released::default();
    outbox.advance(bytes, handed, &mut released);
    released.let_go();
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "closed")
}

#[test]
fn room_holds_below_at_and_above_the_limit() {
    let check = |queued: usize, next: usize, expected: bool| {
        let mut outbox = Outbox::new(100);
        if queued > 0 {
            // The newline counts.
            put(&mut outbox, queued - 1);
        }
        let ticket = put(&mut outbox, next);
        assert_eq!(outbox.is_queued(ticket), expected, "{queued} + {next}");
    };
    check(50, 48, true);
    check(50, 49, true);
    check(50, 50, false);
    check(100, 1, false);
    // A message above the limit goes alone: it could never be sent otherwise.
    check(0, 1000, true);
    check(2, 1000, false);
}

#[test]
fn those_who_stand_in_line_get_room_in_order_and_nobody_overtakes() {
    let mut outbox = Outbox::new(100);
    let full = put(&mut outbox, 99);
    let (first, second, small) = (put(&mut outbox, 90), put(&mut outbox, 50), put(&mut outbox, 1));
    hand_over(&mut outbox, 50, 50);
    assert!(!outbox.is_queued(first), "91 bytes do not fit yet");
    assert!(!outbox.is_queued(small), "it fits and must not overtake");
    hand_over(&mut outbox, 50, 100);
    assert!(outbox.is_written(full));
    assert!(outbox.is_queued(first) && !outbox.is_queued(second) && !outbox.is_queued(small));
    assert_eq!((first.start, first.end), (100, 191));
    hand_over(&mut outbox, 91, 191);
    assert!(outbox.is_queued(second) && outbox.is_queued(small));
}

#[test]
fn one_who_is_taken_back_lets_the_next_go_and_is_not_counted() {
    let mut outbox = Outbox::new(10);
    put(&mut outbox, 4);
    let (first, second) = (put(&mut outbox, 9), put(&mut outbox, 4));
    assert!(!outbox.is_queued(second));
    assert!(take_back(&mut outbox, first));
    assert!(outbox.is_queued(second));
    assert_eq!(outbox.unwritten_bytes(), 10);
    assert!(!take_back(&mut outbox, second), "it is in the queue");
    hand_over(&mut outbox, 10, second.end);
    assert!(outbox.is_written(second) && outbox.has_left(second));
    assert_eq!(outbox.unwritten_bytes(), 0);
}

#[test]
fn a_sender_is_woken_when_its_own_message_is_written() {
    let mut outbox = Outbox::new(1000);
    let (a, b) = (Waits::default(), Waits::default());
    let (first, second) = (put(&mut outbox, 3), put(&mut outbox, 5));
    assert!(a.written(&mut outbox, first).is_pending());
    assert!(b.written(&mut outbox, second).is_pending());
    assert!(!outbox.has_left(first));
    hand_over(&mut outbox, 3, 3);
    assert!(outbox.has_left(first) && !outbox.is_written(first), "its newline is part of it");
    assert_eq!(a.times_woken(), 0);
    hand_over(&mut outbox, 1, 4);
    assert_eq!((a.times_woken(), b.times_woken()), (1, 0));
    assert!(a.written(&mut outbox, first).is_ready());
    assert!(!outbox.has_left(second));
    hand_over(&mut outbox, 6, 10);
    assert_eq!(b.times_woken(), 1);
    assert_eq!(outbox.unwritten_bytes(), 0);
}

#[test]
fn closing_refuses_new_messages_and_the_line_and_keeps_the_queued() {
    let mut outbox = Outbox::new(10);
    let (queued, waiting) = (Waits::default(), Waits::default());
    let (first, second) = (put(&mut outbox, 9), put(&mut outbox, 9));
    assert!(queued.written(&mut outbox, first).is_pending());
    assert!(waiting.written(&mut outbox, second).is_pending());
    outbox.begin_close(closed()).let_go();
    assert_eq!((queued.times_woken(), waiting.times_woken()), (0, 1));
    assert!(matches!(waiting.written(&mut outbox, second), Poll::Ready(Err(_))));
    assert!(outbox.put(Bytes::from_static(b"x")).is_err());
    assert!(queued.written(&mut outbox, first).is_pending());
    assert!(outbox.claim(Writer::Sender), "what is queued is still written");
    hand_over(&mut outbox, 10, 10);
    assert!(!outbox.is_queued(second), "what stood in line never leaves");
}

#[test]
fn the_end_tells_each_message_whether_it_may_have_arrived() {
    let mut outbox = Outbox::new(1000);
    let waits = [Waits::default(), Waits::default(), Waits::default()];
    let tickets = [put(&mut outbox, 3), put(&mut outbox, 3), put(&mut outbox, 3)];
    for (waits, ticket) in waits.iter().zip(tickets) {
        assert!(waits.written(&mut outbox, ticket).is_pending());
    }
    hand_over(&mut outbox, 5, 5);
    outbox.break_off().let_go();
    assert!(waits[1].written(&mut outbox, tickets[1]).is_pending(), "why it broke is told with the end");
    let late = Waits::default();
    let last = put(&mut outbox, 1);
    assert!(late.written(&mut outbox, last).is_pending());
    outbox.end(closed()).let_go();
    let unknown = |waits: &Waits, outbox: &mut Outbox, ticket| match waits.written(outbox, ticket) {
        Poll::Ready(Err(error)) => error.outcome_unknown(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(waits[0].written(&mut outbox, tickets[0]), Poll::Ready(Ok(()))));
    assert!(unknown(&waits[1], &mut outbox, tickets[1]));
    assert!(!unknown(&waits[2], &mut outbox, tickets[2]));
    assert_eq!(late.times_woken(), 1);
    assert!(!unknown(&late, &mut outbox, last));
    assert!(take_back(&mut outbox, last), "it has not left and will not");
    assert!(outbox.put(Bytes::from_static(b"x")).is_err());
}

#[test]
fn there_is_one_writer_and_only_where_there_is_something_to_write() {
    let mut outbox = Outbox::new(1000);
    assert!(!outbox.claim(Writer::Sender));
    put(&mut outbox, 1);
    assert!(outbox.claim(Writer::Sender));
    assert!(!outbox.claim(Writer::Keeper));
    outbox.set_writer(Writer::Nobody);
    outbox.break_off().let_go();
    assert!(!outbox.claim(Writer::Sender), "nothing can be written any more");
}

proptest! {
    #[test]
    fn a_batch_is_written_whole_and_once_however_it_is_cut(
        messages in prop::collection::vec(prop::collection::vec(b'a'..=b'z', 1..20), 1..12),
        cuts in prop::collection::vec(1usize..40, 1..200),
        slots in 1usize..8,
    ) {
        let mut batch = Batch::default();
        let mut end = 0;
        for message in &messages {
            let start = end;
            end = start + message.len() as u64 + 1;
            batch.messages.push_back(Placed { message: Bytes::from(message.clone()), ticket: Ticket { start, end } });
        }
        let expected: Vec<u8> = messages.iter().flat_map(|message| message.iter().copied().chain([b'\n'])).collect();
        let mut written = Vec::new();
        for cut in cuts.iter().cycle() {
            if batch.is_empty() {
                break;
            }
            let mut slices = vec![IoSlice::new(&[]); slots];
            let filled = batch.fill(&mut slices);
            prop_assert!(filled > 0);
            let offered: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            let taken = (*cut).min(offered.len());
            written.extend_from_slice(&offered[..taken]);
            prop_assert_eq!(batch.advance(taken), written.len() as u64);
        }
        prop_assert_eq!(written, expected);
        prop_assert_eq!(batch.offset, 0);
    }
}

#[test]
fn all_who_wait_for_one_message_are_woken_and_one_that_gives_up_takes_nobody_along() {
    let mut outbox = Outbox::new(1000);
    let ticket = put(&mut outbox, 10);
    let waits = [Waits::default(), Waits::default(), Waits::default()];
    for one in waits.iter().chain(&waits) {
        assert!(one.written(&mut outbox, ticket).is_pending());
    }
    outbox.forget(ticket, waits[1].1.get().unwrap(), &mut Released::default());
    hand_over(&mut outbox, 11, 11);
    assert_eq!(waits.map(|one| one.times_woken()), [1, 0, 1]);
}

#[test]
fn what_stands_in_line_when_closing_begins_is_settled() {
    let mut outbox = Outbox::new(20);
    let (queued, in_line) = (put(&mut outbox, 10), put(&mut outbox, 15));
    assert!(!outbox.is_settled(queued) && !outbox.is_settled(in_line));
    outbox.begin_close(closed()).let_go();
    assert!(!outbox.is_settled(queued), "it is still written");
    assert!(outbox.is_settled(in_line), "it never leaves");
    hand_over(&mut outbox, 11, 11);
    assert!(outbox.is_settled(queued));
}

/// What nobody will write any more is let go, and no later writer finds it.
#[test]
fn an_outbox_that_ended_or_broke_holds_no_message() {
    for ends in [true, false] {
        let mut outbox = Outbox::new(10);
        put(&mut outbox, 8);
        put(&mut outbox, 8);
        let mut released =
            if ends { outbox.end(Error::new(ErrorKind::Closed, "over")) } else { outbox.break_off() };
        assert_eq!(released.messages.len(), 2, "one queued, one in line");
        released.wake();
        assert!(!outbox.take_batch(&mut Batch::default()));
    }
}

/// What an error says of the outcome: bytes that were handed over have left, those of a living stream may still.
#[test]
fn a_message_may_leave_until_the_stream_is_dead_and_has_left_from_its_first_byte() {
    for dies in [Outbox::break_off as fn(&mut Outbox) -> Released, |outbox| {
        outbox.end(Error::new(ErrorKind::Closed, "over"))
    }] {
        let mut outbox = Outbox::new(100);
        let (first, second) = (put(&mut outbox, 8), put(&mut outbox, 8));
        assert!(outbox.may_leave(first) && outbox.may_leave(second));
        hand_over(&mut outbox, 1, 1);
        dies(&mut outbox).wake();
        assert!(outbox.may_leave(first) && !outbox.may_leave(second));
    }
}
