//! Each state of the standing stream against each input.

use super::*;

impl Loss for LossKind {
    fn kind(&self) -> LossKind {
        *self
    }
}

/// A connection whose stream is asked for now.
struct Walk {
    hearing: Hearing<LossKind>,
    start: Instant,
    now: Instant,
    /// What was told, in order.
    told: Vec<&'static str>,
}

impl Walk {
    fn new(max_attempts: u32) -> Self {
        let now = Instant::now();
        let mut hearing = Hearing::new(max_attempts);
        hearing.begin(now);
        Self { hearing, start: now, now, told: Vec::new() }
    }

    fn note(&mut self, said: Said<LossKind>) {
        self.told.extend(said.word.map(|word| match word {
            ClientEvent::SubscriptionInterrupted => "interrupted",
            ClientEvent::SubscriptionRestored => "restored",
            other => panic!("{other:?}"),
        }));
        self.told.extend(said.is_opened.then_some("opened"));
        self.told.extend(said.fallen.map(|fallen| match (fallen.error.is_some(), fallen.is_news) {
            (true, true) => "deaf: lost",
            (false, true) => "deaf: none any more",
            (false, false) => "deaf: none",
            (true, false) => panic!("a loss is news"),
        }));
    }

    fn opened(&mut self) -> &mut Self {
        let said = self.hearing.opened(self.hearing.session(), self.now);
        self.note(said);
        self
    }

    fn none(&mut self) -> &mut Self {
        let said = self.hearing.ended(self.hearing.session(), self.now, Ended::Absent);
        self.note(said);
        self
    }

    fn lost(&mut self, kind: LossKind) -> &mut Self {
        let said = self.hearing.ended(self.hearing.session(), self.now, Ended::Lost(kind));
        self.note(said);
        self
    }

    fn cut(&mut self) -> &mut Self {
        self.lost(LossKind::Passing)
    }

    fn sought(&mut self, sought: Sought<LossKind>) -> &mut Self {
        let said = self.hearing.sought(self.hearing.session(), self.now, sought);
        self.note(said);
        self
    }

    fn renewed(&mut self) -> &mut Self {
        self.told.push("renewed");
        let said = self.hearing.renewed(self.now);
        self.note(said);
        self
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    /// Waits as it says, and gives how many seconds that took and what is next.
    fn next(&mut self) -> (u64, Step) {
        let begun = self.now;
        loop {
            match self.hearing.next(self.now) {
                Step::Wait(until) => {
                    assert!(until > self.now, "it goes round and round");
                    self.now = until;
                }
                step => return (self.now.duration_since(begun).as_secs(), step),
            }
        }
    }

    #[track_caller]
    fn check(&mut self, told: &[&'static str], next: (u64, Step)) -> &mut Self {
        assert_eq!(std::mem::take(&mut self.told), told);
        assert_eq!(self.next(), next);
        self
    }
}

type Input = fn(&mut Walk) -> &mut Walk;

const INPUTS: [(&str, Input); 9] = [
    ("opened", Walk::opened),
    ("none", Walk::none),
    ("cut", Walk::cut),
    ("refused", |walk| walk.lost(LossKind::Lasting)),
    ("session lost", |walk| walk.lost(LossKind::Session)),
    ("found", |walk| walk.sought(Sought::Found)),
    ("no room", |walk| walk.sought(Sought::NoRoom)),
    ("not found", |walk| walk.sought(Sought::None(Some(LossKind::Passing)))),
    ("renewed", Walk::renewed),
];

/// What leads to each of the states.
const STATES: [(&str, Input); 10] = [
    ("opening at first", |walk| walk),
    ("standing", Walk::opened),
    ("opening in the next session", |walk| walk.opened().renewed()),
    ("about to open in the one after that", |walk| walk.opened().renewed().opened().renewed()),
    ("lost", |walk| walk.opened().cut()),
    ("lost with its session", |walk| walk.opened().lost(LossKind::Session)),
    ("lost in a session that was found", |walk| walk.opened().lost(LossKind::Session).sought(Sought::Found)),
    ("absent", Walk::none),
    ("absent where there was one", |walk| walk.opened().renewed().none()),
    ("given up", |walk| walk.opened().cut().cut().cut()),
];

/// A connection in each of them.
fn each() -> impl Iterator<Item = (&'static str, Walk)> {
    STATES.into_iter().map(|(state, lead)| {
        let mut walk = Walk::new(2);
        lead(&mut walk);
        walk.told.clear();
        (state, walk)
    })
}

/// Whatever happens in whatever state, and whatever after that: no interruption is told twice, none ends that was not told, and what is
/// told agrees with what is known.
#[test]
fn whoever_listens_is_told_of_each_loss_once_and_of_its_end_after_it() {
    for (first, (name, one)) in INPUTS.iter().enumerate() {
        for (second, (_, two)) in INPUTS.iter().enumerate() {
            for (third, (_, three)) in INPUTS.iter().enumerate() {
                for (state, mut walk) in each() {
                    // What was told until here: an interruption, as long as it lasts.
                    let mut is_told = walk.hearing.is_interrupted();
                    // Where it was given up that was told after an interruption, which ends when it stands again.
                    let mut may_end = is_told || state == "given up";
                    for input in [one, two, three] {
                        input(&mut walk);
                        let context = format!("{state}: {name} {first} {second} {third} {:?}", walk.told);
                        for word in std::mem::take(&mut walk.told) {
                            match word {
                                "interrupted" => {
                                    assert!(!is_told, "twice: {context}");
                                    (is_told, may_end) = (true, true);
                                }
                                "restored" => {
                                    assert!(std::mem::take(&mut may_end), "never told of: {context}");
                                    is_told = false;
                                }
                                "renewed" => (is_told, may_end) = (false, false),
                                "deaf: lost" | "deaf: none any more" | "deaf: none" => is_told = false,
                                "opened" => assert!(!walk.hearing.is_deaf()),
                                other => panic!("{other}"),
                            }
                        }
                        assert_eq!(walk.hearing.is_interrupted(), is_told, "{context}");
                        assert!(!(is_told && walk.hearing.is_deaf()), "{context}");
                        walk.next();
                    }
                }
            }
        }
    }
}

/// What the reader says of the stream of an earlier session comes too late: two threads may be at it.
#[test]
fn what_is_said_of_the_stream_of_an_earlier_session_changes_nothing() {
    for (state, mut walk) in each() {
        let old = walk.hearing.session();
        walk.renewed();
        walk.told.clear();
        let next = walk.hearing.next(walk.now);
        for said in [
            walk.hearing.opened(old, walk.now),
            walk.hearing.ended(old, walk.now, Ended::Absent),
            walk.hearing.ended(old, walk.now, Ended::Lost(LossKind::Session)),
            walk.hearing.sought(old, walk.now, Sought::None(None)),
            walk.hearing.sought(old, walk.now, Sought::None(Some(LossKind::Passing))),
            walk.hearing.repaired(old),
        ] {
            assert!(said.word.is_none() && !said.is_opened && said.fallen.is_none(), "{state}: {said:?}");
        }
        assert_eq!(walk.hearing.next(walk.now), next, "{state}");
    }
}

#[test]
fn a_new_session_is_asked_for_its_stream_from_every_state() {
    for (state, mut walk) in each() {
        walk.after(60).renewed();
        assert_eq!(walk.told, ["renewed"], "{state}");
        assert!(!walk.hearing.is_deaf() && !walk.hearing.is_interrupted(), "{state}");
        assert!(walk.hearing.unknown_until(walk.now).is_some(), "{state}");
        assert_eq!(walk.next(), (0, Step::Open), "{state}");
    }
}

#[test]
fn nothing_is_known_against_a_stream_until_it_is_answered_or_a_quarter_of_a_second_is_over() {
    let mut walk = Walk::new(12);
    let until = |walk: &Walk| walk.hearing.unknown_until(walk.now).map(|until| until - walk.start);
    for _ in 0..2 {
        assert!(!walk.hearing.is_deaf());
        let expected = walk.now - walk.start + STREAM_WAIT;
        assert_eq!(until(&walk), Some(expected));
        walk.now += STREAM_WAIT - Duration::from_millis(1);
        assert_eq!(until(&walk), Some(expected));
        walk.now += Duration::from_millis(1);
        assert_eq!(until(&walk), None);
        assert!(!walk.hearing.is_deaf());
        walk.opened();
        assert_eq!(until(&walk), None);
        walk.cut();
        assert_eq!(until(&walk), None);
        assert!(walk.hearing.is_interrupted());
        walk.renewed();
    }
    walk.none();
    assert!(walk.hearing.is_deaf() && until(&walk).is_none());
}

#[test]
fn a_connection_without_such_a_stream_hears_and_waits_for_nothing() {
    let (mut hearing, now) = (Hearing::<LossKind>::new(12), Instant::now());
    for _ in 0..2 {
        assert!(!hearing.is_deaf() && !hearing.is_interrupted() && hearing.unknown_until(now).is_none());
        assert_eq!(hearing.next(now), Step::Nothing);
        let said = hearing.renewed(now);
        assert!(said.word.is_none() && said.fallen.is_none());
    }
}

#[test]
fn a_server_without_streams_is_asked_once_in_each_session() {
    let mut walk = Walk::new(12);
    walk.check(&[], (0, Step::Open)).none().check(&["deaf: none"], (0, Step::Nothing));
    for _ in 0..100 {
        walk.renewed().check(&["renewed"], (0, Step::Open)).none().check(&["deaf: none"], (0, Step::Nothing));
    }
}

#[test]
fn a_lost_stream_is_opened_again_until_it_is_lost_too_often_in_a_row() {
    let mut walk = Walk::new(4);
    walk.opened().after(9).cut().check(&["opened", "interrupted"], (1, Step::Open));
    walk.cut().check(&[], (2, Step::Open)).opened().check(&["restored", "opened"], (0, Step::Nothing));
    walk.after(9).cut().check(&["interrupted"], (4, Step::Open)).cut().check(&[], (8, Step::Open));
    walk.cut().check(&["deaf: lost"], (0, Step::Rest));
    // A minute later it is tried once more, and once more.
    walk.cut().check(&[], (0, Step::Rest)).none().check(&[], (0, Step::Rest));
    walk.opened().check(&["restored", "opened"], (0, Step::Nothing));
    // It stood for as long as counts.
    walk.after(10).cut().check(&["interrupted"], (1, Step::Open));
}

#[test]
fn what_waiting_does_not_mend_is_given_up_at_once() {
    let lasting = LossKind::Lasting;
    Walk::new(12).lost(lasting).check(&["interrupted", "deaf: lost"], (0, Step::Rest));
    Walk::new(12).cut().lost(lasting).check(&["interrupted", "deaf: lost"], (0, Step::Rest));
}

#[test]
fn a_session_that_may_be_lost_is_asked_for_once() {
    let lost = LossKind::Session;
    let mut walk = Walk::new(12);
    walk.opened().after(1).lost(lost).check(&["opened", "interrupted"], (0, Step::Seek));
    // It knows the session, and has no stream for it.
    walk.sought(Sought::Found).check(&[], (0, Step::Open)).none().check(&["deaf: lost"], (0, Step::Rest));

    let mut walk = Walk::new(12);
    walk.opened().cut().check(&["opened", "interrupted"], (1, Step::Open)).none().check(&[], (2, Step::Seek));
    // Calls have all the room: that says nothing.
    walk.sought(Sought::NoRoom).check(&[], (0, Step::Open)).lost(lost).check(&[], (4, Step::Seek));
    walk.sought(Sought::None(None)).check(&["deaf: lost"], (0, Step::Rest));
}

/// One that waits for its time meets a server that is gone: who listens waits no longer than for one that was lost.
#[test]
fn a_stream_that_is_not_asked_for_yet_is_given_up_where_there_is_no_session_for_it() {
    let gone = || Sought::None(Some(LossKind::Passing));
    let mut walk = Walk::new(12);
    walk.opened().renewed().opened().renewed();
    walk.check(&["opened", "renewed", "opened", "renewed", "interrupted"], (1, Step::Open));
    walk.sought(gone()).check(&["deaf: lost"], (0, Step::Rest));
    let mut walk = Walk::new(12);
    walk.opened().renewed().check(&["opened", "renewed"], (0, Step::Open));
    walk.sought(gone()).check(&["interrupted", "deaf: lost"], (0, Step::Rest));
    walk.after(60)
        .renewed()
        .check(&["renewed"], (0, Step::Open))
        .opened()
        .check(&["opened"], (0, Step::Nothing));
}

/// A gap is one of a stream that stands.
#[test]
fn a_repair_is_told_where_the_stream_stands_and_nothing_else_was_told_of_it() {
    let mut walk = Walk::new(12);
    let told = |walk: &Walk| walk.hearing.repaired(walk.hearing.session()).word.is_some();
    assert!(!told(&walk));
    walk.opened();
    assert!(told(&walk));
    walk.cut();
    assert!(!told(&walk));
}

/// What stood until a renewal counts as what stood until it was lost.
#[test]
fn a_stream_that_stood_until_a_new_session_is_progress() {
    let mut walk = Walk::new(3);
    for _ in 0..20 {
        walk.cut().cut().opened().after(10).renewed();
        walk.check(&["interrupted", "restored", "opened", "renewed"], (0, Step::Open));
    }
    // What did not is none.
    walk.cut().cut().opened().after(9).renewed();
    walk.check(&["interrupted", "restored", "opened", "renewed", "interrupted"], (4, Step::Open));
    walk.cut().check(&["deaf: lost"], (0, Step::Rest));
}

/// Streams that come and go with their sessions: the first is asked for at once, the others when the schedule says, and nobody is left
/// to believe that they stand meanwhile.
#[test]
fn streams_that_do_not_outlast_their_sessions_are_asked_for_at_a_pace() {
    let mut walk = Walk::new(3);
    walk.opened().renewed().check(&["opened", "renewed"], (0, Step::Open));
    let paced = ["renewed", "interrupted", "renewed", "interrupted"];
    for (seconds, first) in [
        (1, &["opened"][..]),
        (2, &["restored", "opened"]),
        (4, &["restored", "opened"]),
        (30, &["restored", "opened"]),
    ] {
        // However many sessions come and go while it waits.
        walk.opened().renewed().renewed().check(&[first, &paced].concat(), (seconds, Step::Open));
    }
    // The one that was asked for at once is long ago.
    walk.opened().renewed().check(&["restored", "opened", "renewed"], (0, Step::Open));
}

/// A server that is there again is not left alone for the rest of a long wait.
#[test]
fn a_new_session_ends_the_wait_for_a_lost_stream_unless_that_was_a_moment_ago() {
    let mut walk = Walk::new(12);
    walk.opened().after(100);
    for _ in 0..5 {
        walk.cut().next();
    }
    walk.cut();
    walk.told.clear();
    assert!(matches!(walk.hearing.next(walk.now), Step::Wait(_)));
    walk.renewed().check(&["renewed"], (0, Step::Open));
    walk.cut().after(1).renewed().check(&["interrupted", "renewed", "interrupted"], (29, Step::Open));
    walk.opened().check(&["restored", "opened"], (0, Step::Nothing));
}
