//! A modern server as a child process: what it writes in place of an answer, and how it dies.

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, On, Outcome, Transport};
use crate::letters::{self, RIGHT};
use crate::modern::row;
use crate::stdio_bytes::{lines, outcome};

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in [On::List, On::Call] {
        for letter in letters::for_any().into_iter().chain(letters::results_for(on)) {
            let expect = Expect::confined(on, outcome(letter.shared));
            all.push(row(Transport::Stdio, on, &letter.name, vec![lines(&letter.messages)], expect));
        }
    }
    all.extend(deaths());
    all
}

fn deaths() -> Vec<Behaviour> {
    let mut all = Vec::new();
    let closed = Outcome::fails(ErrorKind::Closed);
    let half = || Act::Bytes(RIGHT.as_bytes().iter().take(20).copied().collect());
    for (how, acts) in [
        ("exit 0", vec![Act::Exit(0)]),
        ("exit 3", vec![Act::Exit(3)]),
        ("an abort", vec![Act::Abort]),
        ("half an answer and its end", vec![half(), Act::End]),
        ("last words", vec![Act::Stderr(b"no such database\n".to_vec(), 17), Act::Exit(1)]),
    ] {
        for on in [On::Discover, On::List, On::Listen, On::Call, On::Retry] {
            let name = format!("dies by {how}");
            if on == On::Retry {
                let asks = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"s"}}"#;
                let expect = Expect::fatal(On::Call, closed.clone());
                // The other call was answered when the question came.
                let expect = Expect { other: Outcome::ok(), ..expect };
                let behaviour = row(
                    Transport::Stdio,
                    On::Call,
                    &format!("{name} on the retry"),
                    vec![lines(&[asks.into()])],
                    expect,
                );
                all.push(behaviour.with_rule(On::Retry, usize::MAX, acts.clone()));
            } else {
                all.push(row(Transport::Stdio, on, &name, acts.clone(), Expect::fatal(on, closed.clone())));
            }
        }
    }
    all
}
