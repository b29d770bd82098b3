//! Answers to the questions of the server, as `--elicit` says.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use mcp_client::{
    Choice, ClientEvent, Desk, ElicitAction, ElicitReply, ElicitRequest, ElicitResult, ElicitationContext,
    ElicitationEvent, ElicitationHandler, Events, Field, FieldKind, Form,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::options::Elicit;
use crate::output::Output;

/// Answers each question the same way and prints what was asked and answered.
pub(crate) struct Answers {
    pub(crate) how: Elicit,
    pub(crate) output: Arc<Output>,
}

impl ElicitationHandler for Answers {
    async fn elicit(&self, request: ElicitRequest, context: ElicitationContext) -> ElicitReply {
        let (wanted, why) = match &self.how {
            Elicit::Accept(content) => (accept(&request, content.clone()), None),
            Elicit::Cancel => (ElicitResult::cancel(), None),
            Elicit::Decline => (ElicitResult::decline(), None),
            Elicit::Ask if !std::io::stdin().is_terminal() => {
                (ElicitResult::cancel(), Some("standard input is no terminal to ask at".to_owned()))
            }
            Elicit::Ask => {
                let asked = request.clone();
                let server = context.server.clone();
                // Reading a terminal blocks.
                let answer = tokio::task::spawn_blocking(move || ask(&asked, &server)).await;
                (answer.unwrap_or_else(|_| ElicitResult::cancel()), None)
            }
        };
        let (answer, why) = match request.check(wanted) {
            Ok(answer) => (answer, why),
            Err(error) => (ElicitResult::cancel(), Some(error.to_string())),
        };
        if let Some(message) = why {
            self.output.diagnostic("elicitation_cancelled", &message);
        }
        self.output.print(&describe(&request, &answer));
        answer.into()
    }
}

/// Lets calls go on that wait until something was done at a URL, because this program opens none: at once, or when the
/// person at the terminal says so.
pub(crate) async fn continue_calls(mut events: Events, desk: Desk, how: Elicit) {
    while let Some(event) = events.next().await {
        let ClientEvent::Elicitation(ElicitationEvent::CallWaits { wait }) = event else { continue };
        let desk = desk.clone();
        match how {
            // A call that waits no longer needs no word.
            Elicit::Ask => drop(tokio::task::spawn_blocking(move || {
                match line("  Press Enter when you are done there: ") {
                    Some(_) => desk.continue_call(wait),
                    None => desk.give_up_call(wait),
                }
            })),
            _ => drop(desk.continue_call(wait)),
        }
    }
}

fn accept(request: &ElicitRequest, content: Map<String, Value>) -> ElicitResult {
    match request {
        ElicitRequest::Url(_) => ElicitResult::accept_url(),
        _ => ElicitResult::accept(content),
    }
}

/// The line of a question and its answer, the schema as the server wrote it.
#[derive(Serialize)]
struct Asked<'a> {
    event: &'static str,
    mode: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    action: &'static str,
    content: Option<&'a Map<String, Value>>,
}

fn describe<'a>(request: &'a ElicitRequest, answer: &'a ElicitResult) -> Asked<'a> {
    let (schema, url) = match request {
        ElicitRequest::Form(form) => (Some(form.schema().raw()), None),
        ElicitRequest::Url(url) => (None, Some(url.url())),
        _ => (None, None),
    };
    Asked {
        event: "elicitation",
        mode: if url.is_some() { "url" } else { "form" },
        message: request.message(),
        schema,
        url: url.map(|url| url.given()),
        host: url.map(|url| url.host()),
        action: match answer.action {
            ElicitAction::Accept => "accept",
            ElicitAction::Decline => "decline",
            _ => "cancel",
        },
        content: answer.content.as_ref(),
    }
}

/// Asks the person at the terminal, on standard error so that standard output stays machine readable.
fn ask(request: &ElicitRequest, server: &str) -> ElicitResult {
    let shown = |text: &str| mcp_client::transport::Untrusted::new(text, 4096).to_string();
    eprintln!("\n{} asks: {}", shown(server), shown(request.message()));
    match request {
        ElicitRequest::Url(url) => {
            eprintln!("  It wants you to open a page on {}", shown(url.url().host()));
            eprintln!("  The whole address: {}", shown(url.url().given()));
            match line("  Will you open it in your browser? [y]es, [n]o, anything else cancels: ").as_deref()
            {
                Some("y" | "yes") => ElicitResult::accept_url(),
                Some("n" | "no") => ElicitResult::decline(),
                _ => ElicitResult::cancel(),
            }
        }
        ElicitRequest::Form(form) => {
            let mut filled = Form::new(form);
            for field in form.schema().fields() {
                eprintln!("  {}", shown(&describe_field(field)));
                loop {
                    let Some(given) = line("  > ") else { return ElicitResult::cancel() };
                    // An empty line leaves the field as it is: at its default, or out.
                    if given.is_empty() && filled.errors(field.name()).is_empty() {
                        break;
                    }
                    // The name comes from the form itself.
                    let _ = filled.set_text(field.name(), &given);
                    let errors = filled.errors(field.name());
                    if errors.is_empty() {
                        break;
                    }
                    for error in errors {
                        eprintln!("    {}", shown(&error.message));
                    }
                }
            }
            match line("  Send this? [y]es, [n]o declines, anything else cancels: ").as_deref() {
                Some("y" | "yes") => filled.submit().unwrap_or_else(|_| ElicitResult::cancel()),
                Some("n" | "no") => ElicitResult::decline(),
                _ => ElicitResult::cancel(),
            }
        }
        _ => ElicitResult::cancel(),
    }
}

/// What a person needs to know to fill in a field.
fn describe_field(field: &Field) -> String {
    let mut text = field.label();
    if let Some(description) = field.description() {
        text.push_str(": ");
        text.push_str(description);
    }
    let choices = |choices: &[Choice]| choices.iter().map(Choice::label).collect::<Vec<_>>().join(", ");
    let kind = match field.kind() {
        FieldKind::Boolean(_) => "yes or no".to_owned(),
        FieldKind::Number(number) if number.is_integer() => "a whole number".to_owned(),
        FieldKind::Number(_) => "a number".to_owned(),
        FieldKind::Select(select) => format!("one of {}", choices(select.choices())),
        FieldKind::MultiSelect(select) => {
            format!("any of {}, with commas between", choices(select.choices()))
        }
        _ => "text".to_owned(),
    };
    let need = if field.is_required() { "required" } else { "optional" };
    let default = field.default_value().map(|value| format!(", {value} if left empty")).unwrap_or_default();
    format!("{text} ({kind}; {need}{default})")
}

fn line(prompt: &str) -> Option<String> {
    eprint!("{prompt}");
    std::io::stderr().flush().ok()?;
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(read) if read > 0 => Some(line.trim().to_owned()),
        _ => None,
    }
}
