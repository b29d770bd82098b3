use super::*;

/// protocol:TK-02 (nested, `ttl`), protocol:TX-02 (flat, `ttlMs`).
#[test]
fn both_designs_announce_a_task() {
    let check = |json: &str, ttl_ms: Option<u64>, poll_interval_ms: Option<u64>| {
        let result: CreateTaskResult = serde_json::from_str(json).unwrap();
        assert_eq!(result.task.task_id, "t1", "{json}");
        assert_eq!(result.task.status, TaskStatus::Working, "{json}");
        assert_eq!((result.task.ttl_ms, result.task.poll_interval_ms), (ttl_ms, poll_interval_ms), "{json}");
    };
    check(
        r#"{"task":{"taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":60000,"pollInterval":5}}"#,
        Some(60_000),
        Some(5),
    );
    check(
        r#"{"resultType":"task","taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":null,
            "pollIntervalMs":5000}"#,
        None,
        Some(5000),
    );
    check(r#"{"taskId":"t1","status":"working","ttl":1,"ttlMs":2,"pollIntervalMs":-1}"#, Some(2), Some(0));
}

/// protocol:TX-03, protocol:TX-11
#[test]
fn the_state_of_a_task_carries_what_belongs_to_its_status() {
    let read = |rest: &str| {
        let json = format!(r#"{{"taskId":"t1","createdAt":"c","lastUpdatedAt":"u","ttlMs":1,{rest}}}"#);
        serde_json::from_str::<GetTaskResult>(&json).unwrap()
    };
    let state =
        read(r#""status":"completed","result":{"content":[],"structuredContent":1.50},"resultType":"task""#);
    assert_eq!(state.result.unwrap().get(), r#"{"content":[],"structuredContent":1.50}"#);
    assert_eq!(state.result_type, Some(ResultType::Task));
    let state = read(r#""status":"failed","error":{"code":-32603,"message":"m"}"#);
    assert!(state.task.status.is_terminal() && state.error.is_some() && state.result.is_none());
    let state = read(r#""status":"input_required","inputRequests":{"k":{"method":"roots/list"}}"#);
    assert!(!state.task.status.is_terminal());
    assert_eq!(state.input_requests.unwrap().len(), 1);
    // protocol:10.27
    let state = read(r#""status":"paused""#);
    assert_eq!(state.task.status, TaskStatus::Other("paused".into()));
    assert!(!state.task.status.is_terminal());
}

/// protocol:TX-05, protocol:TK-02
#[test]
fn a_cancellation_is_acknowledged_with_or_without_the_task() {
    let read = |json: &str| serde_json::from_str::<CancelTaskResult>(json).unwrap();
    assert!(read("{}").task.is_none());
    assert!(read(r#"{"resultType":"complete"}"#).task.is_none());
    assert!(read(r#"{"taskId":"t1","status":"cancelled","ttl":null}"#).task.is_some());
}

#[test]
fn what_is_no_task_is_refused() {
    for json in [r#"{"status":"working"}"#, r#"{"taskId":"t1"}"#, "{}", r#"{"taskId":1,"status":"working"}"#]
    {
        assert!(serde_json::from_str::<Task>(json).is_err(), "{json}");
        assert!(serde_json::from_str::<GetTaskResult>(json).is_err(), "{json}");
    }
    let nested = r#"{"task":{"taskId":"t1","status":"working"}}"#;
    assert!(serde_json::from_str::<Task>(nested).is_err());
}

#[test]
fn notifications_hold_the_task_flat() {
    let json = r#"{"taskId":"t1","status":"completed","createdAt":"c","lastUpdatedAt":"u","ttl":null,
        "result":null,"_meta":{"io.modelcontextprotocol/subscriptionId":"listen-1"}}"#;
    let status: TaskStatusNotificationParams = serde_json::from_str(json).unwrap();
    assert_eq!(status.task.status, TaskStatus::Completed);
    let full: TaskNotificationParams = serde_json::from_str(json).unwrap();
    assert_eq!(full.state.result.unwrap().get(), "null");
    let id = crate::subscription_id(full.state.meta.as_deref());
    assert_eq!(id, Some(crate::RequestId::from("listen-1")));
}

/// field:FR-112
#[test]
fn tasks_inside_tasks_cost_no_stack() {
    let depth = 100_000;
    let deep = format!("{}{}", r#"{"task":"#.repeat(depth), "}".repeat(depth).replacen('}', "{}}", 1));
    assert!(serde_json::from_str::<CreateTaskResult>(&deep).is_err());
    assert!(serde_json::from_str::<Task>(&deep).is_err());
}

/// Whoever knows the id of a task may be able to use it.
#[test]
fn the_id_of_a_task_is_not_shown() {
    let task = r#"{"taskId":"canary","status":"working","ttl":null}"#;
    let read = serde_json::from_str::<Task>(task).unwrap();
    let created = serde_json::from_str::<CreateTaskResult>(&format!(r#"{{"task":{task}}}"#)).unwrap();
    let got = serde_json::from_str::<GetTaskResult>(task).unwrap();
    let listed = serde_json::from_str::<ListTasksResult>(&format!(r#"{{"tasks":[{task}]}}"#)).unwrap();
    let mut filter = crate::SubscriptionFilter::new();
    filter.task_ids = Some(vec!["canary".to_owned()]);
    for shown in [
        format!("{read:?}"),
        format!("{created:?}"),
        format!("{got:?}"),
        format!("{listed:?}"),
        format!("{filter:?}"),
        format!("{:?}", serde_json::from_str::<CancelTaskResult>(task).unwrap()),
        format!("{:?}", serde_json::from_str::<TaskStatusNotificationParams>(task).unwrap()),
        format!("{:?}", RelatedTaskMetadata::new("canary")),
        format!("{:?}", GetTaskRequestParams::new("canary")),
        format!("{:?}", CancelTaskRequestParams::new("canary")),
        format!("{:?}", GetTaskPayloadRequestParams::new("canary")),
        format!("{:?}", UpdateTaskRequestParams::new("canary", BTreeMap::new())),
    ] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}
