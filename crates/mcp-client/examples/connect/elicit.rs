//! Answers to the questions of the server, as `--elicit` says.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use mcp_client::{ElicitAction, ElicitRequest, ElicitResult, ElicitationContext, ElicitationHandler};
use serde_json::{Map, Value, json};

use crate::options::Elicit;
use crate::output::Output;

/// Answers each question the same way and prints what was asked and answered.
pub(crate) struct Answers {
    pub(crate) how: Elicit,
    pub(crate) output: Arc<Output>,
}

impl ElicitationHandler for Answers {
    async fn elicit(&self, request: ElicitRequest, context: ElicitationContext) -> ElicitResult {
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
            self.output.event("diagnostic", json!({ "kind": "elicitation_cancelled", "message": message }));
        }
        self.output.event("elicitation", describe(&request, &answer));
        answer
    }
}

fn accept(request: &ElicitRequest, content: Map<String, Value>) -> ElicitResult {
    match request {
        ElicitRequest::Url(_) => ElicitResult::accept_url(),
        _ => ElicitResult::accept(content),
    }
}

fn describe(request: &ElicitRequest, answer: &ElicitResult) -> Value {
    let action = match answer.action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        _ => "cancel",
    };
    let mut line = json!({ "message": request.message(), "action": action, "content": answer.content });
    match request {
        ElicitRequest::Form(form) => {
            line["mode"] = json!("form");
            line["schema"] = serde_json::from_str(form.schema().raw().get()).unwrap_or(Value::Null);
        }
        ElicitRequest::Url(url) => {
            line["mode"] = json!("url");
            line["url"] = json!(url.url().given());
            line["host"] = json!(url.url().host());
        }
        _ => {}
    }
    line
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
            let mut content = Map::new();
            for field in form.schema().fields() {
                let default = field.default_value().map(|value| format!(" [{value}]")).unwrap_or_default();
                let need = if field.is_required() { "" } else { ", optional" };
                let prompt = shown(&format!("  {}{need}{default}: ", field.label()));
                loop {
                    let Some(given) = line(&prompt) else { return ElicitResult::cancel() };
                    // An empty line leaves the field out; its default is filled in later.
                    if given.is_empty() {
                        break;
                    }
                    let typed = [serde_json::from_str(&given).ok(), Some(Value::String(given))];
                    let Some(value) =
                        typed.into_iter().flatten().find(|value| field.violations(value).is_empty())
                    else {
                        eprintln!("    that does not fit");
                        continue;
                    };
                    content.insert(field.name().to_owned(), value);
                    break;
                }
            }
            match line("  Send this? [y]es, [n]o declines, anything else cancels: ").as_deref() {
                Some("y" | "yes") => ElicitResult::accept(content),
                Some("n" | "no") => ElicitResult::decline(),
                _ => ElicitResult::cancel(),
            }
        }
        _ => ElicitResult::cancel(),
    }
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
