//! Following the changes of lists. A legacy server tells of them unasked; a modern one has to be listened to.

use std::sync::Arc;
use std::time::Duration;

use mcp_client::Client;
use mcp_client::model::{ServerFeature, SubscriptionFilter};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::options::Options;
use crate::output::Output;

/// How long the first step waits for the server to grant it. What changes before that is not told.
const GRANT_WAIT: Duration = Duration::from_secs(3);

/// Ends with the value.
pub(crate) struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens for what the server says it tells of. The changes come as events of the client.
pub(crate) async fn follow(client: &Client, options: &Options, output: &Arc<Output>) -> Option<Following> {
    let declared = &client.server().capabilities;
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = declared.declares(ServerFeature::ToolsListChanged).then_some(true);
    wanted.prompts_list_changed = declared.declares(ServerFeature::PromptsListChanged).then_some(true);
    wanted.resources_list_changed = declared.declares(ServerFeature::ResourcesListChanged).then_some(true);
    if wanted.is_empty() || !client.protocol_version().is_modern() {
        return None;
    }
    let (client, output) = (client.clone(), Arc::clone(output));
    let (standing, stands) = oneshot::channel();
    let task = tokio::spawn(async move {
        let mut subscription = match client.subscription(wanted).await {
            Ok(subscription) => subscription,
            Err(error) => return output.diagnostic("not_subscribed", &error.to_string()),
        };
        // Nobody waits any more if that took too long.
        let _ = standing.send(());
        loop {
            match subscription.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => return output.diagnostic("subscription_ended", &error.to_string()),
            }
        }
    });
    // An error: it will not stand, and that was said.
    let _ = tokio::time::timeout(GRANT_WAIT.min(options.timeout), stands).await;
    Some(Following(task))
}
