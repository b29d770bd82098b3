//! Tasks: calls whose result is fetched later.

mod handle;
mod start;

pub use handle::Task;
pub use start::TaskCall;

use mcp_model::{CancelTaskRequestParams, CancelTaskResult, ListTasksRequestParams, ListTasksResult};

use crate::client::Client;
use crate::requests::Call;

impl Client {
    /// `tasks/list`: one page of the tasks that the server keeps for this client, from `cursor` on (2025-11-25, where the
    /// server declares it; later revisions have no such list).
    pub fn list_tasks(&self, cursor: Option<&str>) -> Call<ListTasksResult> {
        self.request(cursor.map_or_else(ListTasksRequestParams::new, ListTasksRequestParams::after))
    }

    /// `tasks/cancel`: asks the server to cancel a task. It may be too late, and a server may decline; whoever waits for the
    /// task sees how it ends.
    pub fn cancel_task(&self, task_id: impl Into<String>) -> Call<CancelTaskResult> {
        self.request(CancelTaskRequestParams::new(task_id))
    }
}
