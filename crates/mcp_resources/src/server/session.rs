//! Serves one client.
#![expect(deprecated, reason = "clients until 2025-11-25 set the level of logs")]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CompletionInfo, CustomNotification, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetSkillRequestParams, GetSkillResult, GetTaskParams, GetTaskResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, ResourceTemplateReference, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsListenRequestParams, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{Peer, ServerHandler};
use serde_json::from_value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::broadcast::Receiver;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::budget::{Budget, MAX_PENDING_STREAMS, STREAM_URIS, uri_refusal};
use super::changes::{Subscriptions, forward, listen};
use super::{NoHandler, OnError, Server, wire};
use crate::call::{Interruption, catch_panic};
use crate::registry::Event;
use crate::{Partial, ReadError};

/// Serves one client. It is a handler of rmcp for any of its transports, made by [`Server::session`].
#[derive(Debug)]
pub struct Session<H = NoHandler> {
    server: Arc<Server<H>>,
    subscriptions: Subscriptions,
    /// The task that tells the client of changes, once it is connected. It ends with the session.
    forwarding: Mutex<JoinSet<()>>,
    /// The events for `forwarding`, subscribed to before the client could see anything.
    events: Mutex<Option<Receiver<Event>>>,
    /// The `subscriptions/listen` that are prepared and not started.
    listeners: Mutex<Vec<Listener>>,
    /// The end of the client's input, if its transport detects it.
    client_ended: watch::Sender<bool>,
    budget: Budget,
}

/// A `subscriptions/listen` about resources. It is prepared before it is acknowledged, so that the
/// client misses no change after that.
#[derive(Debug)]
struct Listener {
    uris: BTreeSet<String>,
    subscriptions: Subscriptions,
    events: Receiver<Event>,
}

impl<H: ServerHandler> Session<H> {
    pub(super) fn new(server: Arc<Server<H>>) -> Self {
        let events = Mutex::new(Some(server.registry.events()));
        let budget = Budget::default();
        let subscriptions = Subscriptions::new(server.registry.clone(), budget.clone());
        Self {
            server,
            subscriptions,
            forwarding: Mutex::default(),
            events,
            listeners: Mutex::default(),
            client_ended: watch::Sender::default(),
            budget,
        }
    }

    /// Returns the flag that the transport sets when the client will send no more.
    #[cfg(feature = "stdio")]
    pub(super) fn client_ended(&self) -> watch::Sender<bool> {
        self.client_ended.clone()
    }

    /// Returns the budget that the transport charges.
    #[cfg(feature = "stdio")]
    pub(super) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    fn handler(&self) -> &H {
        &self.server.handler
    }

    /// Answers a request once the budget has room for an answer. A panic is an error, and the metrics
    /// count the call.
    async fn answer<T, F: Future<Output = Result<T, ErrorData>>>(
        &self,
        method: &'static str,
        context: RequestContext<RoleServer>,
        work: impl FnOnce(RequestContext<RoleServer>) -> F,
    ) -> Result<T, ErrorData> {
        self.run(context, |context| async {
            // On the heap: futures of futures would not fit on the stack of a thread in a debug build.
            let work = Box::pin(catch_panic_as_error(async { work(context).await }));
            match &self.server.metrics {
                Some(metrics) => metrics.measure(method, work).await,
                None => work.await,
            }
        })
        .await
    }

    /// Runs what answers a request once the budget has room for an answer.
    async fn run<T, F: Future<Output = T>>(
        &self,
        mut context: RequestContext<RoleServer>,
        work: impl FnOnce(RequestContext<RoleServer>) -> F,
    ) -> T {
        let (charge, cancelled) = (context.extensions.remove(), context.ct.clone());
        self.budget
            .answer(charge, cancelled.cancelled(), work(context))
            .await
    }

    /// Starts to tell the client of changes, unless that has started.
    fn start_forwarding(&self, peer: Peer<RoleServer>) {
        if let Some(events) = lock(&self.events).take() {
            lock(&self.forwarding).spawn(forward(events, peer, self.subscriptions.clone()));
        }
    }

    /// Prepares a stream about those of these resources that exist.
    fn prepare_listener<'u>(&self, uris: impl Iterator<Item = &'u String>) -> Listener {
        let events = self.server.registry.events();
        let subscriptions = self.subscriptions.another();
        let uris = uris
            .take(STREAM_URIS.count)
            .filter(|uri| self.server.registry.contains(uri));
        let uris = uris.filter(|uri| subscriptions.add(uri)).cloned().collect();
        self.server.registry.settle_interests();
        Listener {
            uris,
            subscriptions,
            events,
        }
    }

    /// Takes the listener that was prepared for a stream. It is prepared again if it was dropped because
    /// too many were pending.
    fn take_listener<'u>(&self, accepted: impl Iterator<Item = &'u String>) -> Listener {
        let accepted: BTreeSet<&String> = accepted.collect();
        let mut listeners = lock(&self.listeners);
        let prepared = listeners
            .iter()
            .position(|listener| listener.uris.iter().eq(accepted.iter().copied()))
            .map(|place| listeners.remove(place));
        drop(listeners);
        prepared.unwrap_or_else(|| run_blocking(|| self.prepare_listener(accepted.into_iter())))
    }

    async fn read(&self, uri: &str, modern: bool) -> Result<ReadResourceResponse, ErrorData> {
        let reading = self
            .server
            .registry
            .read(uri)
            .await
            .map_err(|error| self.report(&error, uri))?;
        let contents = reading.contents.into_iter().map(wire::contents).collect();
        let mut result = ReadResourceResult::new(contents);
        if let (Some(ttl), true) = (reading.ttl, modern) {
            result.ttl_ms = Some(wire::milliseconds(ttl));
            result.cache_scope = Some(wire::cache_scope(reading.cache_scope));
        }
        Ok(result.into())
    }

    /// Tells the server's author of an error that is the server's, and returns it for the client.
    fn report(&self, error: &ReadError, uri: &str) -> ErrorData {
        match (error, &self.server.on_error) {
            (ReadError::NotFound | ReadError::BadParameters(_), _) | (_, None) => (),
            (_, Some(OnError(tell))) => tell(uri, error),
        }
        wire::read_error(error, uri)
    }

    async fn complete_variable(
        &self,
        reference: ResourceTemplateReference,
        request: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let others = request
            .context
            .and_then(|context| context.arguments)
            .unwrap_or_default();
        let partial = Partial {
            value: request.argument.value,
            others: others.into_iter().collect(),
        };
        let values = self
            .server
            .registry
            .complete(&reference.uri, &request.argument.name, partial)
            .await;
        let mut values = values.map_err(|error| wire::complete_error(&error))?;
        let total = values.len();
        values.truncate(CompletionInfo::MAX_VALUES);
        self.server.registry.truncate_values(&mut values);
        let mut completion = CompletionInfo::default();
        completion.has_more = Some(values.len() < total);
        completion.total = u32::try_from(total).ok();
        completion.values = values;
        Ok(CompleteResult::new(completion))
    }

    /// Completes an argument of a prompt, which is up to the handler.
    ///
    /// A handler that declares no completions refuses (rmcp since 3.11). If a template declares them, it
    /// offers nothing instead, because a method of a declared capability exists.
    async fn complete_argument(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completed = self.handler().complete(request, context).await;
        let is_declared = || self.handler().get_info().capabilities.completions.is_some();
        match self.server.registry.completes_variables() {
            true => empty_if_undeclared(completed, is_declared),
            false => completed,
        }
    }

    fn list_ttl_ms(&self, context: &RequestContext<RoleServer>) -> Option<u64> {
        self.server
            .list_ttl
            .filter(|_| is_modern(context))
            .map(wire::milliseconds)
    }
}

/// Returns what is wrong with the parameters of a request. rmcp hands a request whose parameters it can't
/// read on as a custom one, as if the method were unknown.
fn check_parameters(request: &CustomRequest, is_modern: bool) -> Option<ErrorData> {
    let params = request.params.clone().unwrap_or_default();
    let error = match request.method.as_str() {
        "resources/read" => from_value::<ReadResourceRequestParams>(params).err(),
        "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" if is_modern => None,
        "resources/subscribe" => from_value::<SubscribeRequestParams>(params).err(),
        "resources/unsubscribe" => from_value::<UnsubscribeRequestParams>(params).err(),
        "subscriptions/listen" => from_value::<SubscriptionsListenRequestParams>(params).err(),
        "completion/complete" => from_value::<CompleteRequestParams>(params).err(),
        "tools/call" => from_value::<CallToolRequestParams>(params).err(),
        "prompts/get" => from_value::<GetPromptRequestParams>(params).err(),
        "logging/setLevel" => from_value::<SetLevelRequestParams>(params).err(),
        _ => None,
    };
    error.map(|error| {
        let method = &request.method;
        let why = format!("the parameters of {method} can't be read: {error}");
        ErrorData::invalid_params(why, None)
    })
}

/// Replaces a handler's answer that there is no such method with an empty result, unless the handler
/// declares the method's capability.
fn empty_if_undeclared<T: Default>(
    answer: Result<T, ErrorData>,
    is_declared: impl FnOnce() -> bool,
) -> Result<T, ErrorData> {
    match answer {
        Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND && !is_declared() => {
            Ok(T::default())
        }
        answer => answer,
    }
}

/// Turns a panic into an error.
async fn catch_panic_as_error<T>(
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let panicked = "the request's handler panicked; the server's standard error says why";
    catch_panic(work)
        .await
        .unwrap_or_else(|_| Err(ErrorData::internal_error(panicked, None)))
}

/// Locks a mutex. A panic while it was locked left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what may block for a moment. Other clients go on if the runtime has threads for them.
fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Says that it is unknown whether a subscription began or ended.
fn subscription_error(interruption: Interruption) -> ErrorData {
    let why = match interruption {
        Interruption::Panic => {
            "the subscription handler panicked; the server's standard error says why"
        }
        Interruption::Timeout | Interruption::Busy => {
            "the resource watcher does not respond; try again later"
        }
    };
    ErrorData::internal_error(why, None)
}

/// Returns whether the client speaks a revision without `initialize`, which are those from 2026-07-28 on.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Returns whether a stream has anything to do with the registry.
fn is_about_resources(requested: &SubscriptionFilter) -> bool {
    requested.resources_list_changed == Some(true) || requested.resource_subscriptions.is_some()
}

fn place(request: Option<PaginatedRequestParams>) -> Result<Option<u64>, ErrorData> {
    request
        .and_then(|request| request.cursor)
        .map(|cursor| wire::place(&cursor))
        .transpose()
}

/// Runs until the client cancels the request. The error is for the metrics: a cancelled request gets no
/// answer.
async fn unless_cancelled<T>(
    context: RequestContext<RoleServer>,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        result = work => result,
        () = context.ct.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
    }
}

impl<H: ServerHandler> ServerHandler for Session<H> {
    fn get_info(&self) -> ServerConfig {
        self.server.config()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler().supported_protocol_versions()
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.start_forwarding(context.peer.clone());
        self.handler().on_initialized(context).await;
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.answer("resources/list", context, |context| async move {
            let page = self
                .server
                .registry
                .resources(place(request)?, self.server.page_size);
            let resources = page
                .entries
                .iter()
                .map(|resource| wire::resource(resource))
                .collect();
            let mut result = ListResourcesResult::with_all_items(resources);
            result.next_cursor = page.last.map(wire::cursor);
            result.ttl_ms = self.list_ttl_ms(&context);
            Ok(result)
        })
        .await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.answer("resources/templates/list", context, |context| async move {
            let page = self
                .server
                .registry
                .templates(place(request)?, self.server.page_size);
            let templates = page
                .entries
                .iter()
                .map(|template| wire::template(template))
                .collect();
            let mut result = ListResourceTemplatesResult::with_all_items(templates);
            result.next_cursor = page.last.map(wire::cursor);
            result.ttl_ms = self.list_ttl_ms(&context);
            Ok(result)
        })
        .await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let modern = is_modern(&context);
        let read = self.read(&request.uri, modern);
        self.answer("resources/read", context, |context| {
            unless_cancelled(context, read)
        })
        .await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.answer("completion/complete", context, |context| async move {
            match request.r#ref.clone() {
                Reference::Resource(reference) => {
                    unless_cancelled(context, self.complete_variable(reference, request)).await
                }
                _ => self.complete_argument(request, context).await,
            }
        })
        .await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("resources/subscribe", context, |context| async move {
            if !self.server.registry.contains(&request.uri) {
                return Err(wire::not_found(&request.uri));
            }
            self.start_forwarding(context.peer);
            let (subscriptions, registry) =
                (self.subscriptions.clone(), self.server.registry.clone());
            let add = move || {
                let is_added = subscriptions.add(&request.uri);
                registry.settle_interests();
                is_added
            };
            let added = self.server.registry.run_observed(add).await;
            match added.map_err(subscription_error)? {
                true => Ok(()),
                false => Err(ErrorData::invalid_params(uri_refusal(), None)),
            }
        })
        .await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("resources/unsubscribe", context, |_| async move {
            let subscriptions = self.subscriptions.clone();
            let removed = self
                .server
                .registry
                .run_observed(move || subscriptions.remove(&request.uri))
                .await;
            removed.map_err(subscription_error)
        })
        .await
    }

    /// Accepts what is about resources for the registry and leaves the rest to the handler.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        // A handler that panics has no part in the stream.
        let by_handler = catch_unwind(AssertUnwindSafe(|| {
            self.handler().accepted_subscription_filter(requested)
        }));
        let mut accepted = by_handler.unwrap_or_default().unwrap_or_default();
        let mut uris = None;
        if is_about_resources(requested) {
            let listener = run_blocking(|| {
                self.prepare_listener(requested.resource_subscriptions.iter().flatten())
            });
            uris = Some(listener.uris.iter().cloned().collect())
                .filter(|uris: &Vec<_>| !uris.is_empty());
            let mut listeners = lock(&self.listeners);
            // A stream that was cancelled before it started never takes its listener.
            if listeners.len() >= MAX_PENDING_STREAMS {
                listeners.remove(0);
            }
            listeners.push(listener);
        }
        accepted.resources_list_changed = requested.resources_list_changed;
        accepted.resource_subscriptions = uris;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut client_ended = self.client_ended.subscribe();
        if !is_about_resources(context.requested()) {
            return tokio::select! {
                result = catch_panic_as_error(self.handler().listen(context)) => result,
                _ = client_ended.wait_for(|ended| *ended) => Ok(()),
            };
        }
        let accepted = context.accepted();
        let is_of_handler = accepted.tools_list_changed == Some(true)
            || accepted.prompts_list_changed == Some(true);
        let Listener {
            events,
            subscriptions,
            ..
        } = self.take_listener(accepted.resource_subscriptions.iter().flatten());
        let sink = context.sink().clone();
        let of_handler = async {
            match is_of_handler {
                true => catch_panic_as_error(self.handler().listen(context)).await,
                false => {
                    context.cancelled().await;
                    Ok(())
                }
            }
        };
        tokio::select! {
            result = of_handler => result,
            () = listen(events, subscriptions, &sink) => Ok(()),
            _ = client_ended.wait_for(|ended| *ended) => Ok(()),
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("logging/setLevel", context, |context| {
            self.handler().set_level(request, context)
        })
        .await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.answer("prompts/get", context, |context| {
            self.handler().get_prompt(request, context)
        })
        .await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.answer("prompts/list", context, |context| async move {
            let listed = self.handler().list_prompts(request, context).await;
            empty_if_undeclared(listed, || {
                self.handler().get_info().capabilities.prompts.is_some()
            })
        })
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.answer("tools/call", context, |context| {
            self.handler().call_tool(request, context)
        })
        .await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Clients such as OpenAI Codex ask for tools whatever the capabilities say, and end on an error.
        self.answer("tools/list", context, |context| async move {
            let listed = self.handler().list_tools(request, context).await;
            empty_if_undeclared(listed, || {
                self.handler().get_info().capabilities.tools.is_some()
            })
        })
        .await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.handler().get_tool(name)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(error) = check_parameters(&request, is_modern(&context)) {
            return Err(error);
        }
        self.run(context, |context| {
            Box::pin(catch_panic_as_error(async {
                self.handler().on_custom_request(request, context).await
            }))
        })
        .await
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.handler().on_cancelled(notification, context).await;
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.handler().on_progress(notification, context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.handler().on_roots_list_changed(context).await;
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.handler()
            .on_custom_notification(notification, context)
            .await;
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.answer("tasks/get", context, |context| {
            self.handler().get_task(request, context)
        })
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("tasks/update", context, |context| {
            self.handler().update_task(request, context)
        })
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("tasks/cancel", context, |context| {
            self.handler().cancel_task(request, context)
        })
        .await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.answer("skills/list", context, |context| {
            self.handler().list_skills(request, context)
        })
        .await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.answer("skills/get", context, |context| {
            self.handler().get_skill(request, context)
        })
        .await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.answer("resources/directory/read", context, |context| {
            self.handler().read_resource_directory(request, context)
        })
        .await
    }
}
