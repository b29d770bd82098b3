//! When to connect again, and when no more.

use std::time::Duration;

use mcp_sse::{Reconnect, ReconnectConfig, ReconnectError};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn schedule() -> Reconnect {
    Reconnect::new(ReconnectConfig::default().with_max_attempts(u32::MAX))
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let config = ReconnectConfig::default();
    assert_eq!(config.initial_delay, ms(1000));
    assert_eq!(config.max_delay, ms(30_000));
    assert_eq!(config.max_retry, ms(300_000));
    assert_eq!((config.min_delay, config.max_quick), (ms(500), 10));
    assert_eq!(config.max_attempts, 5);
}

// protocol:H-33
#[test]
fn own_delays_grow_by_half_up_to_the_longest() {
    let mut schedule = schedule();
    let delays: Vec<_> = (0..12).map(|_| schedule.next_delay(0.0).expect("attempts are left")).collect();
    assert_eq!(delays[..4], [ms(1000), ms(1500), ms(2250), ms(3375)]);
    assert!(delays.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(delays.last(), Some(&ms(30_000)));
}

#[test]
fn jitter_shortens_own_delays_by_at_most_half() {
    for (jitter, delay) in [
        (0.0, 1000),
        (0.25, 750),
        (0.5, 500),
        (0.9, 500),
        (f64::INFINITY, 500),
        (-1.0, 1000),
        (f64::NAN, 1000),
    ] {
        assert_eq!(schedule().next_delay(jitter), Ok(ms(delay)), "{jitter}");
    }
    let mut endless = Reconnect::new(
        ReconnectConfig::new().with_initial_delay(Duration::MAX).with_max_delay(Duration::MAX),
    );
    for _ in 0..3 {
        assert!(endless.next_delay(0.3).is_ok_and(|delay| delay > ms(1_000_000)));
    }
}

// protocol:H-29, seed:E8, seed:S-08: never shortened, never lengthened, zero is zero.
#[test]
fn the_servers_retry_is_the_delay() {
    for millis in [0, 1, 700, 120_000, 299_999, 300_000] {
        let mut schedule = schedule();
        schedule.observe("", Some(ms(millis)));
        for jitter in [0.0, 0.5, f64::NAN] {
            assert_eq!(schedule.next_delay(jitter), Ok(ms(millis)));
        }
    }
}

#[test]
fn retry_below_at_and_above_its_limit() {
    let config = ReconnectConfig::new().with_max_retry(ms(700));
    for (millis, accepted) in [(699, true), (700, true), (701, false), (u64::MAX, false)] {
        let mut schedule = Reconnect::new(config);
        schedule.observe("", Some(ms(millis)));
        assert_eq!(schedule.next_delay(0.0).is_ok(), accepted, "{millis}");
    }
    let mut schedule = Reconnect::new(config);
    schedule.observe("", Some(ms(701)));
    let error = ReconnectError::RetryTooLong { retry: ms(701), max_retry: ms(700) };
    assert_eq!(schedule.next_delay(0.0), Err(error));
    assert_eq!(error.to_string(), "retry of 701ms exceeds the limit of 700ms");
    schedule.observe("", Some(ms(5)));
    assert_eq!(schedule.next_delay(0.0), Ok(ms(5)), "a later one replaces it");
}

#[test]
fn retry_stays_until_another_one_comes() {
    let mut schedule = schedule();
    schedule.observe("1", Some(ms(40)));
    schedule.observe("2", None);
    assert_eq!(schedule.next_delay(0.0), Ok(ms(40)));
}

// protocol:H-29, protocol:H-33, auth:LIM-09: what moves on each connection is progress, and still no reason to run.
#[test]
fn a_server_that_wants_no_delay_is_held_to_one_after_some_quick_reconnects() {
    let config = ReconnectConfig::new().with_max_quick(3).with_min_delay(ms(400)).with_max_attempts(1);
    let mut schedule = Reconnect::new(config);
    let mut next = |id: u64, retry: Option<u64>, lasted: bool| {
        if lasted {
            schedule.lasted();
        }
        schedule.observe(&id.to_string(), retry.map(ms));
        schedule.next_delay(0.0)
    };
    let delays: Vec<_> = (0..1000).map(|id| next(id, Some(0), false)).collect();
    assert_eq!(delays[..3], [Ok(ms(0)); 3]);
    assert!(delays[3..].iter().all(|delay| *delay == Ok(ms(400))));
    // Below, at and above what counts as quick.
    assert_eq!(next(1000, Some(399), false), Ok(ms(400)));
    assert_eq!(next(1001, Some(400), false), Ok(ms(400)));
    assert_eq!(next(1002, Some(0), false), Ok(ms(0)), "the one before was no quick one");
    assert_eq!(next(1003, Some(401), false), Ok(ms(401)));
    for id in 2000..2003 {
        assert_eq!(next(id, Some(1), false), Ok(ms(1)));
    }
    assert_eq!(next(2003, Some(1), false), Ok(ms(400)));
    assert_eq!(next(2003, Some(1), true), Ok(ms(1)), "a connection that lasted is no loop");
}

// protocol:H-33
#[test]
fn attempts_below_at_and_above_their_limit() {
    let mut schedule = Reconnect::new(ReconnectConfig::new().with_max_attempts(2));
    assert!(schedule.next_delay(0.0).is_ok());
    assert_eq!(schedule.attempts(), 1);
    assert!(schedule.next_delay(0.0).is_ok());
    assert_eq!(schedule.attempts(), 2);
    let error = ReconnectError::NoProgress { max_attempts: 2 };
    assert_eq!(schedule.next_delay(0.0), Err(error));
    assert_eq!(schedule.next_delay(0.0), Err(error), "until there is progress");
    assert_eq!(error.to_string(), "no progress in 2 reconnects");
    schedule.progress();
    assert!(schedule.next_delay(0.0).is_ok());
}

#[test]
fn no_attempts_means_none() {
    let mut schedule = Reconnect::new(ReconnectConfig::new().with_max_attempts(0));
    assert_eq!(schedule.next_delay(0.0), Err(ReconnectError::NoProgress { max_attempts: 0 }));
}

// protocol:H-33: a server that closes in a loop may go on as long as its ids move.
#[test]
fn a_moving_last_event_id_is_progress() {
    let mut schedule = Reconnect::new(ReconnectConfig::new().with_max_attempts(2));
    for id in 0..50 {
        schedule.observe(&id.to_string(), None);
        assert_eq!(schedule.next_delay(0.0), Ok(ms(1000)), "and the delay is the first again");
    }
    schedule.observe("49", None);
    assert_eq!(schedule.next_delay(0.0), Ok(ms(1500)), "the same id is none");
    schedule.observe("49", None);
    assert!(schedule.next_delay(0.0).is_err());
}
