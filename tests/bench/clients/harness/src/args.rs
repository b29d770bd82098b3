//! The command line, the same for every client.

use crate::Op;

/// One case to measure.
#[derive(Clone, Debug)]
pub struct Args {
    /// The name that the report carries.
    pub client: String,
    /// HTTP instead of stdio.
    pub http: bool,
    /// The server program.
    pub server: String,
    /// `json` or `sse`; without meaning over stdio.
    pub reply: String,
    /// What is called.
    pub op: Op,
    /// How large the payload is.
    pub size: usize,
    /// Calls under way at the same time.
    pub in_flight: usize,
    /// How long the load lasts.
    pub seconds: f64,
    /// Makes exactly so many calls instead, without a warm-up.
    pub calls: Option<u64>,
    /// Switches on what a user of this client can switch on.
    pub tuned: bool,
}

impl Args {
    /// Reads the command line of a client; says what is wrong and ends the program where it is not understood.
    #[must_use]
    pub fn parse(client: &str) -> Self {
        Self::read(client, std::env::args().skip(1)).unwrap_or_else(|why| {
            eprintln!("{why}");
            std::process::exit(2);
        })
    }

    fn read(client: &str, words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            client: client.to_owned(),
            http: false,
            server: String::new(),
            reply: "json".to_owned(),
            op: Op::Blob,
            size: 100,
            in_flight: 1,
            seconds: 1.0,
            calls: None,
            tuned: false,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "--tuned" {
                args.tuned = true;
                args.client.push_str("+tuned");
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--transport" => args.http = value == "http",
                "--server" => args.server = value,
                "--reply" => args.reply = value,
                "--op" => args.op = op(&value)?,
                "--size" => args.size = number(&word, &value)?,
                "--in-flight" => args.in_flight = number(&word, &value)?,
                "--seconds" => args.seconds = number(&word, &value)?,
                "--calls" => args.calls = Some(number(&word, &value)?),
                _ => return Err(format!("{word:?} is not understood")),
            }
        }
        Ok(args)
    }

    /// How many tools the server lists.
    #[must_use]
    pub fn tools(&self) -> usize {
        if self.op == Op::List { self.size } else { 1 }
    }

    /// The arguments of the server where it is a child of the client and speaks over its pipes.
    #[must_use]
    pub fn stdio_arguments(&self) -> Vec<String> {
        vec!["stdio".to_owned(), "--tools".to_owned(), self.tools().to_string()]
    }
}

fn op(name: &str) -> Result<Op, String> {
    match name {
        "blob" => Ok(Op::Blob),
        "echo" => Ok(Op::Echo),
        "list" => Ok(Op::List),
        "struct" => Ok(Op::Struct),
        "struct-raw" => Ok(Op::StructRaw),
        _ => Err(format!("there is no operation {name:?}")),
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{word} needs a number, not {value:?}"))
}
