use std::sync::{Arc, Mutex};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
        ElicitResult, Implementation, ListRootsResult, LoggingMessageNotificationParam,
        ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Value, json};

use crate::items::{Asked, to};

/// Notifications that the server has sent by itself.
#[derive(Clone, Default)]
pub struct Notes {
    pub version: Option<ProtocolVersion>,
    pub progress: Arc<Mutex<Vec<Value>>>,
    pub logs: Arc<Mutex<Vec<Value>>>,
    pub lists: Arc<Mutex<u32>>,
    pub asked: Asked,
}

impl ClientHandler for Notes {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::new(
            to(json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}})),
            Implementation::new("rust-judge", "1.0.0"),
        );
        if let Some(version) = &self.version {
            config.protocol_version = version.clone();
        }
        config
    }

    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let seen = json!([note.progress, note.total, note.message]);
        self.progress.lock().expect("a lock").push(seen);
    }

    async fn on_logging_message(
        &self,
        note: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.logs
            .lock()
            .expect("a lock")
            .push(json!([note.level, note.data]));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        *self.lists.lock().expect("a lock") += 1;
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.elicit(request)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.asked.sample(request)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.asked.roots()
    }

    async fn on_resource_updated(
        &self,
        note: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.asked.note(&format!("updated {}", note.uri));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.asked.note("resources");
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.asked.note("prompts");
    }
}
