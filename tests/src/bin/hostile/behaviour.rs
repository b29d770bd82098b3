//! One row of the matrix: when the server misbehaves, what it then does, and what the client must make of it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mcp_client::ErrorKind;

/// What of the client's meets the server's misbehaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The client's answer to a question.
    Answer,
    Cancelled,
    /// The call that the behaviour is aimed at.
    Call,
    Delete,
    Discover,
    Get,
    Initialize,
    Initialized,
    List,
    Listen,
    /// A GET that continues a cut stream.
    Resume,
    /// The call once more, with what the server asked for.
    Retry,
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
            Self::Cancelled => "cancelled",
            Self::Call => "call",
            Self::Delete => "delete",
            Self::Discover => "discover",
            Self::Get => "get",
            Self::Initialize => "initialize",
            Self::Initialized => "initialized",
            Self::List => "list",
            Self::Listen => "listen",
            Self::Resume => "resume",
            Self::Retry => "retry",
        })
    }
}

/// One thing a server does with the bytes of its side. Byte strings are templates; see `fill`.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Dies by SIGABRT.
    Abort,
    /// Writes this as it is.
    Bytes(Vec<u8>),
    /// Reads no further, and lives.
    Deaf,
    /// Writes this one byte at a time, with a pause after each.
    Drip(Vec<u8>, Duration),
    /// Ends its side in good order: the process exits with 0, the socket is closed.
    End,
    Exit(u8),
    /// Writes this again and again, up to so many bytes or until nobody takes it.
    Flood(Vec<u8>, usize),
    /// Keeps the connection and says no more on it.
    Hold,
    /// A whole HTTP response: status with reason, header lines, body, and how its end is known.
    Http(Head, Vec<u8>),
    /// Does the right thing.
    Proper,
    /// Answers the other call that is under way.
    Release,
    /// Resets the socket.
    Reset,
    /// Writes to standard error, again and again, so many bytes.
    Stderr(Vec<u8>, usize),
    /// Waits until the client has answered a question.
    UntilAnswered,
    /// Waits until the client has cancelled the call.
    UntilCancelled,
}

/// The head of a response.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: String,
    /// Header lines, each with its line end.
    pub(crate) fields: String,
    pub(crate) framing: Framing,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Chunked,
    Close,
    Length,
}

/// What the server does on a message, the first so many times that it comes.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) on: On,
    pub(crate) times: usize,
    pub(crate) acts: Vec<Act>,
}

/// How a stdio server is started.
#[derive(Clone, Debug, Default)]
pub(crate) enum Launch {
    #[default]
    Itself,
    /// A shell script; `$0` is this program and `$@` its arguments as the peer.
    Shell(&'static str),
    /// Some other program.
    Program(PathBuf),
    /// The peer in a working folder that is not there.
    NoFolder,
}

/// How something must end: in success, or with an error of one of these kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) ok: bool,
    pub(crate) kinds: Vec<ErrorKind>,
}

impl Outcome {
    pub(crate) const fn ok() -> Self {
        Self { ok: true, kinds: Vec::new() }
    }

    pub(crate) fn fails(kind: ErrorKind) -> Self {
        Self { ok: false, kinds: vec![kind] }
    }

    pub(crate) fn one_of(kinds: &[ErrorKind]) -> Self {
        Self { ok: false, kinds: kinds.to_vec() }
    }

    /// Or in success, where the server leaves that to chance.
    pub(crate) fn or_ok(mut self) -> Self {
        self.ok = true;
        self
    }

    pub(crate) fn is_timeout(&self) -> bool {
        self.kinds.contains(&ErrorKind::Timeout)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds.iter().map(|kind| kind.as_str());
        let all: Vec<&str> = self.ok.then_some("success").into_iter().chain(kinds).collect();
        f.write_str(&all.join(" or "))
    }
}

/// How each part of the visit must end.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub(crate) connect: Outcome,
    /// The call, or the list, that the behaviour is aimed at.
    pub(crate) aimed: Outcome,
    /// A call under way at the same time.
    pub(crate) other: Outcome,
    /// A call made afterwards.
    pub(crate) after: Outcome,
}

impl Expect {
    /// The fault is felt by what it is aimed at and by nothing else.
    pub(crate) fn confined(on: On, outcome: Outcome) -> Self {
        let all_well = Self::all_well();
        match on {
            On::Discover | On::Initialize | On::Initialized => Self { connect: outcome, ..all_well },
            _ => Self { aimed: outcome, ..all_well },
        }
    }

    /// The fault ends the connection: what comes later finds it closed.
    pub(crate) fn fatal(on: On, outcome: Outcome) -> Self {
        let closed = Outcome::fails(ErrorKind::Closed);
        Self { other: closed.clone(), after: closed, ..Self::confined(on, outcome) }
    }

    pub(crate) const fn all_well() -> Self {
        Self { connect: Outcome::ok(), aimed: Outcome::ok(), other: Outcome::ok(), after: Outcome::ok() }
    }
}

/// What a subscription that stands tells next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// A change of something.
    Change,
    /// That the server ended it.
    End,
    /// Nothing, for as long as is waited.
    Nothing,
    /// That it was lost and stands again.
    Restored,
}

/// What the server speaks, and what the client takes it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// `initialize`, which the client finds out.
    Legacy,
    /// The revision of 2026-07-28, and the client knows.
    Modern,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Behaviour {
    pub(crate) name: String,
    /// The table it stands in: the peer looks for it there alone.
    pub(crate) table: usize,
    pub(crate) transport: Transport,
    pub(crate) speaks: Speaks,
    /// What the visit aims at: `List` for the list of tools, `Listen` for a subscription, anything else for a call.
    pub(crate) aim: On,
    /// Where it aims at a subscription, and that comes to stand.
    pub(crate) told: Told,
    pub(crate) rules: Vec<Rule>,
    pub(crate) launch: Launch,
    pub(crate) expect: Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    Stdio,
}

impl Transport {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }
}

impl Behaviour {
    /// A server that does `acts` each time the message comes, and is right otherwise.
    pub(crate) fn new(transport: Transport, on: On, name: &str, acts: Vec<Act>, expect: Expect) -> Self {
        Self {
            name: format!("{}/{on}/{name}", transport.as_str()),
            table: 0,
            transport,
            speaks: Speaks::Legacy,
            aim: if matches!(on, On::List | On::Listen) { on } else { On::Call },
            told: Told::Nothing,
            rules: vec![Rule { on, times: usize::MAX, acts }],
            launch: Launch::Itself,
            expect,
        }
    }

    pub(crate) fn with_rule(mut self, on: On, times: usize, acts: Vec<Act>) -> Self {
        self.rules.push(Rule { on, times, acts });
        self
    }

    /// Only the first so many times.
    pub(crate) fn times(mut self, times: usize) -> Self {
        for rule in self.rules.iter_mut().take(1) {
            rule.times = times;
        }
        self
    }

    pub(crate) fn launched(mut self, launch: Launch) -> Self {
        self.launch = launch;
        self
    }

    /// The same of a modern server.
    pub(crate) fn modern(mut self) -> Self {
        self.name = format!("modern {}", self.name);
        self.speaks = Speaks::Modern;
        self
    }

    pub(crate) fn told(mut self, told: Told) -> Self {
        self.told = told;
        self
    }
}
