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

/// One sender: what it wants to say, its place in line, and how often it was woken.
struct Sender {
    message: Option<Bytes>,
    room: Option<Room>,
    woken: Arc<Count>,
}

impl Sender {
    fn new(bytes: usize) -> Self {
        Self { message: Some(Bytes::from(vec![b'x'; bytes])), room: None, woken: Arc::default() }
    }

    fn push(&mut self, outbox: &mut Outbox) -> Poll<Result<Ticket, Error>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        outbox.poll_push(&Context::from_waker(&waker), &mut self.room, &mut self.message)
    }

    fn ticket(&mut self, outbox: &mut Outbox) -> Ticket {
        match self.push(outbox) {
            Poll::Ready(Ok(ticket)) => ticket,
            other => panic!("{other:?}"),
        }
    }

    fn written(&self, outbox: &mut Outbox, ticket: Ticket) -> Poll<Result<(), Error>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        outbox.poll_written(&Context::from_waker(&waker), ticket)
    }

    fn times_woken(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }
}

fn hand_over(outbox: &mut Outbox, bytes: usize) {
    let mut woken = Vec::new();
    outbox.advance(bytes, &mut woken);
    woken.into_iter().for_each(Waker::wake);
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
            Sender::new(queued - 1).ticket(&mut outbox);
        }
        let pushed = Sender::new(next).push(&mut outbox);
        assert_eq!(pushed.is_ready(), expected, "{queued} + {next}");
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
fn those_who_wait_for_room_are_served_in_order() {
    let mut outbox = Outbox::new(100);
    let ticket = Sender::new(99).ticket(&mut outbox);
    let (mut first, mut second, mut small) = (Sender::new(90), Sender::new(50), Sender::new(1));
    assert!(first.push(&mut outbox).is_pending());
    assert!(second.push(&mut outbox).is_pending());
    hand_over(&mut outbox, 50);
    assert_eq!((first.times_woken(), second.times_woken()), (1, 0));
    assert!(first.push(&mut outbox).is_pending(), "91 bytes do not fit yet");
    assert!(small.push(&mut outbox).is_pending(), "it fits and must not overtake");
    assert!(second.push(&mut outbox).is_pending());
    hand_over(&mut outbox, 50);
    assert!(outbox.is_written(ticket));
    let (first, second) = (first.ticket(&mut outbox), second.push(&mut outbox));
    assert_eq!((first.start, first.end), (100, 191));
    assert!(second.is_pending());
}

#[test]
fn one_who_leaves_the_line_lets_the_next_go() {
    let mut outbox = Outbox::new(10);
    Sender::new(9).ticket(&mut outbox);
    let (mut first, mut second) = (Sender::new(9), Sender::new(4));
    assert!(first.push(&mut outbox).is_pending());
    assert!(second.push(&mut outbox).is_pending());
    hand_over(&mut outbox, 5);
    assert!(second.push(&mut outbox).is_pending());
    outbox.leave_line(first.room.unwrap());
    assert_eq!(second.times_woken(), 1);
    assert!(second.push(&mut outbox).is_ready());
}

#[test]
fn a_sender_is_woken_when_its_own_message_is_written() {
    let mut outbox = Outbox::new(1000);
    let (mut a, mut b) = (Sender::new(3), Sender::new(5));
    let (first, second) = (a.ticket(&mut outbox), b.ticket(&mut outbox));
    assert!(a.written(&mut outbox, first).is_pending());
    assert!(b.written(&mut outbox, second).is_pending());
    assert!(!outbox.has_left(first));
    hand_over(&mut outbox, 3);
    assert!(outbox.has_left(first) && !outbox.is_written(first), "its newline is part of it");
    assert_eq!(a.times_woken(), 0);
    hand_over(&mut outbox, 1);
    assert_eq!((a.times_woken(), b.times_woken()), (1, 0));
    assert!(a.written(&mut outbox, first).is_ready());
    assert!(!outbox.has_left(second));
    hand_over(&mut outbox, 6);
    assert_eq!(b.times_woken(), 1);
    assert_eq!(outbox.unwritten_bytes(), 0);
}

#[test]
fn closing_refuses_new_messages_and_keeps_the_queued() {
    let mut outbox = Outbox::new(10);
    let (mut queued, mut waiting) = (Sender::new(9), Sender::new(9));
    let ticket = queued.ticket(&mut outbox);
    assert!(waiting.push(&mut outbox).is_pending());
    outbox.begin_close(closed());
    assert_eq!(waiting.times_woken(), 1);
    assert!(matches!(waiting.push(&mut outbox), Poll::Ready(Err(_))));
    assert!(matches!(Sender::new(1).push(&mut outbox), Poll::Ready(Err(_))));
    assert!(queued.written(&mut outbox, ticket).is_pending());
    assert!(outbox.claim(Writer::Sender), "what is queued is still written");
}

#[test]
fn the_end_tells_each_message_whether_it_may_have_arrived() {
    let mut outbox = Outbox::new(1000);
    let (mut a, mut b, mut c) = (Sender::new(3), Sender::new(3), Sender::new(3));
    let tickets = [a.ticket(&mut outbox), b.ticket(&mut outbox), c.ticket(&mut outbox)];
    for (sender, ticket) in [&a, &b, &c].into_iter().zip(tickets) {
        assert!(sender.written(&mut outbox, ticket).is_pending());
    }
    hand_over(&mut outbox, 5);
    outbox.break_off();
    assert!(b.written(&mut outbox, tickets[1]).is_pending(), "why it broke is told with the end");
    let mut late = Sender::new(1);
    assert!(late.push(&mut outbox).is_pending());
    outbox.end(closed());
    let unknown = |sender: &Sender, outbox: &mut Outbox, ticket| match sender.written(outbox, ticket) {
        Poll::Ready(Err(error)) => error.outcome_unknown(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(a.written(&mut outbox, tickets[0]), Poll::Ready(Ok(()))));
    assert!(unknown(&b, &mut outbox, tickets[1]));
    assert!(!unknown(&c, &mut outbox, tickets[2]));
    assert_eq!(late.times_woken(), 1);
    assert!(matches!(late.push(&mut outbox), Poll::Ready(Err(_))));
}

#[test]
fn there_is_one_writer_and_only_where_there_is_something_to_write() {
    let mut outbox = Outbox::new(1000);
    assert!(!outbox.claim(Writer::Sender));
    Sender::new(1).ticket(&mut outbox);
    assert!(outbox.claim(Writer::Sender));
    assert!(!outbox.claim(Writer::Keeper));
    outbox.set_writer(Writer::Nobody);
    outbox.break_off();
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
        batch.messages.extend(messages.iter().cloned().map(Bytes::from));
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
            batch.advance(taken);
        }
        prop_assert_eq!(written, expected);
        prop_assert_eq!(batch.offset, 0);
    }
}
