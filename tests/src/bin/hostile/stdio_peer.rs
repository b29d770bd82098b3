//! The server as a child process: reads lines, and follows the rules of its behaviour.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;
use std::thread;

use crate::behaviour::{Act, Behaviour, On, Speaks};
use crate::met::Met;
use crate::server::{Asked, CHANGE, Calls, GRANT, holds, meet};

/// What becomes of the process after an act.
enum Next {
    Continue,
    Leave(ExitCode),
}

struct Peer {
    input: io::Lines<io::StdinLock<'static>>,
    out: io::StdoutLock<'static>,
    /// The call whose answer is held back.
    other: Option<Asked>,
    calls: Calls,
    speaks: Speaks,
    met: Met,
}

pub(crate) fn run(behaviour: Behaviour) -> ExitCode {
    let mut rules = behaviour.rules;
    let mut peer = Peer {
        input: io::stdin().lock().lines(),
        out: io::stdout().lock(),
        other: None,
        calls: Calls::default(),
        speaks: behaviour.speaks,
        met: Met::of_the_parent(),
    };
    // A client that is gone is no fault of ours.
    peer.serve(&mut rules).unwrap_or(ExitCode::SUCCESS)
}

impl Peer {
    fn serve(&mut self, rules: &mut [crate::behaviour::Rule]) -> io::Result<ExitCode> {
        let holds = holds(rules);
        while let Some(line) = self.input.next() {
            let asked = Asked::read(self.speaks, line?.as_bytes());
            if asked.on == Some(On::Call) {
                self.calls.aimed.clone_from(&asked.id);
            }
            if let Some((place, acts)) = meet(rules, asked.on) {
                self.met.note(place);
                for act in acts {
                    if let Next::Leave(code) = self.act(&asked, act)? {
                        return Ok(code);
                    }
                }
                self.release()?;
            } else if holds && asked.is_other {
                self.calls.other.clone_from(&asked.id);
                self.other = Some(asked);
            } else {
                self.proper(&asked)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn act(&mut self, asked: &Asked, act: Act) -> io::Result<Next> {
        let calls = self.calls.clone();
        match act {
            Act::Abort => std::process::abort(),
            Act::Bytes(bytes) => self.write(&asked.fill(&bytes, &calls))?,
            Act::Deaf => loop {
                thread::park();
            },
            Act::Drip(bytes, pause) => {
                for byte in asked.fill(&bytes, &calls) {
                    self.write(&[byte])?;
                    thread::sleep(pause);
                }
            }
            Act::End => return Ok(Next::Leave(ExitCode::SUCCESS)),
            Act::Exit(code) => return Ok(Next::Leave(ExitCode::from(code))),
            Act::Flood(piece, bytes) => repeat(&mut self.out, &asked.fill(&piece, &calls), bytes)?,
            Act::Stderr(piece, bytes) => repeat(&mut io::stderr().lock(), &piece, bytes)?,
            Act::Proper => self.proper(asked)?,
            Act::Release => self.release()?,
            Act::UntilCancelled => {
                for line in self.input.by_ref() {
                    if Asked::read(self.speaks, line?.as_bytes()).on == Some(On::Cancelled) {
                        break;
                    }
                }
            }
            // On one shared channel, saying nothing is all there is to holding.
            Act::Hold | Act::Http(..) | Act::Reset | Act::UntilAnswered => {}
        }
        Ok(Next::Continue)
    }

    fn proper(&mut self, asked: &Asked) -> io::Result<()> {
        if asked.on == Some(On::Listen) {
            let calls = self.calls.clone();
            return self.write(&asked.fill(format!("{GRANT}\n{CHANGE}\n").as_bytes(), &calls));
        }
        self.line(&asked.answer())
    }

    fn release(&mut self) -> io::Result<()> {
        let answer = self.other.take().map(|other| other.answer()).unwrap_or_default();
        self.line(&answer)
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() { Ok(()) } else { self.write(format!("{text}\n").as_bytes()) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }
}

fn repeat(out: &mut impl io::Write, piece: &[u8], bytes: usize) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 && !piece.is_empty() {
        out.write_all(piece)?;
        left = left.saturating_sub(piece.len());
    }
    out.flush()
}
