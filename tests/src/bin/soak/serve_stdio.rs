//! The server on standard input and output.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::Value;

use crate::replies::{Asked, Dice, list_changed};

pub(crate) fn run() -> ExitCode {
    match serve() {
        Ok(code) => code,
        // The client has gone.
        Err(_) => ExitCode::SUCCESS,
    }
}

fn serve() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut dice = Dice::new(u64::from(std::process::id()));
    // Who is told of changes, in the modern era.
    let mut listening: Option<Value> = None;
    let mut line = |text: &str| -> io::Result<()> {
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    };
    for (number, received) in (0..).zip(io::stdin().lock().split(b'\n')) {
        let Some(asked) = Asked::read(&received?) else { continue };
        listening = listening.filter(|id| !asked.cancels(id));
        if asked.is("subscriptions/listen") {
            listening.clone_from(&asked.id);
            line(&asked.granted())?;
            continue;
        }
        let Some(answer) = asked.answer(&mut dice) else { continue };
        if asked.is_tool_call() && dice.fault() {
            match dice.below(8) {
                0 => return Ok(ExitCode::from(3)),
                1 => {
                    // Half an answer, and no line end.
                    let half = answer.get(..answer.len() / 2).unwrap_or_default();
                    out.write_all(half.as_bytes())?;
                    return Ok(ExitCode::SUCCESS);
                }
                2 => {}
                3 => line(&asked.misdirected())?,
                4 => line(&asked.refusal())?,
                5 => line(&format!("DEBUG this is no message\n[1,2,3]\n\n{answer}"))?,
                6 => {
                    io::stderr().write_all(&[b'e'; 64 * 1024])?;
                    line(&answer)?;
                }
                _ => line(&format!("{answer}\n{answer}"))?,
            }
            continue;
        }
        if let Some(progress) = asked.progress(1) {
            line(&progress)?;
        }
        if let Some(aside) = asked.aside(&mut dice, number) {
            line(&aside)?;
        }
        if listening.is_some() && dice.below(50) == 0 {
            line(&list_changed(listening.as_ref()))?;
        }
        line(&answer)?;
    }
    Ok(ExitCode::SUCCESS)
}
