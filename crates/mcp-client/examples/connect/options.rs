//! The command line of `connect`.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Map, Value};

pub(crate) const USAGE: &str = "\
usage: connect [options] stdio <command> [args...]
       connect [options] http <url>

  --list                list tools, resources and prompts, where the server has them
  --call NAME JSON      call a tool with these arguments; repeatable, in order
  --parallel            make all calls at once
  --timeout SECONDS     deadline of each step by itself (default 60)
  --header 'K: V'       send this header with each HTTP request; repeatable
  --env K=V             set this variable for the child process; repeatable
  --mode MODE           auto (default), legacy or modern
  --elicit HOW          answer questions of the server: ask, accept, decline, cancel, or the JSON of a form's content
  --json                one JSON object a line on standard output
  --help                print this

exit code: 0 when every step succeeded, 1 when one did not, 2 for a mistake on the command line
";

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) list: bool,
    pub(crate) calls: Vec<(String, Map<String, Value>)>,
    pub(crate) parallel: bool,
    pub(crate) timeout: Duration,
    pub(crate) mode: Mode,
    pub(crate) elicit: Option<Elicit>,
    pub(crate) json: bool,
    pub(crate) target: Target,
}

#[derive(Debug)]
pub(crate) enum Target {
    Stdio { command: OsString, args: Vec<OsString>, env: Vec<(String, String)> },
    Http { url: String, headers: Vec<(String, String)> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Auto,
    Legacy,
    Modern,
}

/// How questions of the server are answered.
#[derive(Clone, Debug)]
pub(crate) enum Elicit {
    Accept(Map<String, Value>),
    Ask,
    Cancel,
    Decline,
}

/// Why there is nothing to do.
#[derive(Debug)]
pub(crate) enum Usage {
    /// It was asked for.
    Help,
    /// What is wrong with the command line.
    Mistake(String),
}

impl<T: Into<String>> From<T> for Usage {
    fn from(mistake: T) -> Self {
        Self::Mistake(mistake.into())
    }
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, Usage> {
        let mut args = args.into_iter();
        let mut headers = Vec::new();
        let mut env = Vec::new();
        let mut options = Self {
            list: false,
            calls: Vec::new(),
            parallel: false,
            timeout: Duration::from_secs(60),
            mode: Mode::Auto,
            elicit: None,
            json: false,
            target: Target::Http { url: String::new(), headers: Vec::new() },
        };
        loop {
            let arg = text(args.next().ok_or("say `stdio <command>` or `http <url>`")?)?;
            let mut value =
                |what: &str| args.next().ok_or_else(|| format!("{arg} needs {what}")).and_then(text);
            match arg.as_str() {
                "--help" | "-h" => return Err(Usage::Help),
                "--list" => options.list = true,
                "--parallel" => options.parallel = true,
                "--json" => options.json = true,
                "--call" => {
                    let name = value("a tool name and JSON arguments")?;
                    let arguments = value("JSON arguments after the tool name")?;
                    options.calls.push((name, object(&arguments)?));
                }
                "--timeout" => options.timeout = seconds(&value("seconds")?)?,
                "--header" => headers.push(pair(&value("a header")?, ':')?),
                "--env" => env.push(pair(&value("K=V")?, '=')?),
                "--mode" => {
                    options.mode = match value("auto, legacy or modern")?.as_str() {
                        "auto" => Mode::Auto,
                        "legacy" => Mode::Legacy,
                        "modern" => Mode::Modern,
                        other => return Err(format!("unknown mode {other}").into()),
                    }
                }
                "--elicit" => {
                    let how = value("ask, accept, decline, cancel or JSON")?;
                    options.elicit = Some(match how.as_str() {
                        "accept" => Elicit::Accept(Map::new()),
                        "ask" => Elicit::Ask,
                        "cancel" => Elicit::Cancel,
                        "decline" => Elicit::Decline,
                        json => Elicit::Accept(object(json)?),
                    });
                }
                "stdio" if !headers.is_empty() => return Err("--header is for http".into()),
                "stdio" => {
                    let command = args.next().ok_or("stdio needs a command")?;
                    options.target = Target::Stdio { command, args: args.collect(), env };
                    return Ok(options);
                }
                "http" if !env.is_empty() => return Err("--env is for stdio".into()),
                "http" => {
                    let url = text(args.next().ok_or("http needs a URL")?)?;
                    if let Some(more) = args.next() {
                        return Err(format!("unexpected argument {}", more.display()).into());
                    }
                    options.target = Target::Http { url, headers };
                    return Ok(options);
                }
                other => return Err(format!("unknown option {other}").into()),
            }
        }
    }
}

fn text(arg: OsString) -> Result<String, String> {
    arg.into_string().map_err(|arg| format!("{} is not UTF-8", arg.display()))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("{text} is not a JSON object: {error}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if !timeout.is_zero() => Ok(timeout),
        _ => Err(format!("{text} is no usable number of seconds")),
    }
}

fn pair(text: &str, separator: char) -> Result<(String, String), String> {
    match text.split_once(separator) {
        Some((name, value)) if !name.trim().is_empty() => {
            // A header's value may have a space behind the colon; a variable's is taken as it is.
            let value = if separator == ':' { value.trim() } else { value };
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("`{}` expected in between", separator)),
    }
}
