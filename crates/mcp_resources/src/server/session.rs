//! One client, served.
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

use super::backlog::{Asked, Backlog};
use super::changes::{MAX_SUBSCRIPTIONS, Subscriptions, forward, listen};
use super::{NoHandler, OnError, Server, wire};
use crate::call::{Interruption, catch_panic};
use crate::registry::Event;
use crate::{Partial, ReadError};

/// How many `subscriptions/listen` may be about to start.
const MAX_PENDING: usize = 1024;

/// What serves one client: a handler of rmcp, for any of its transports. Made by [`Server::session`].
#[derive(Debug)]
pub struct Session<H = NoHandler> {
    server: Arc<Server<H>>,
    subscriptions: Subscriptions,
    /// What tells the client of changes, once it is connected. It ends with the session.
    forwarding: Mutex<JoinSet<()>>,
    /// What happens since before the client could see anything, for `forwarding`.
    events: Mutex<Option<Receiver<Event>>>,
    /// What happens since before a `subscriptions/listen` was acknowledged, and what it is about, for each that is
    /// about to start.
    listeners: Mutex<Vec<Listener>>,
    /// Whether the client will say no more, where its transport tells.
    client_ended: watch::Sender<bool>,
    /// What the client has not got yet, where its transport tells.
    backlog: Backlog,
}

/// A `subscriptions/listen` about resources.
#[derive(Debug)]
struct Listener {
    uris: BTreeSet<String>,
    subscriptions: Subscriptions,
    events: Receiver<Event>,
}

impl<H: ServerHandler> Session<H> {
    pub(super) fn new(server: Arc<Server<H>>) -> Self {
        let events = Mutex::new(Some(server.registry.events()));
        let subscriptions = Subscriptions::new(server.registry.clone());
        Self {
            server,
            subscriptions,
            forwarding: Mutex::default(),
            events,
            listeners: Mutex::default(),
            client_ended: watch::Sender::default(),
            backlog: Backlog::default(),
        }
    }

    /// What the transport tells that the client will say no more.
    #[cfg(feature = "stdio")]
    pub(super) fn client_ended(&self) -> watch::Sender<bool> {
        self.client_ended.clone()
    }

    /// What the transport tells which answers the client has.
    #[cfg(feature = "stdio")]
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog.clone()
    }

    fn handler(&self) -> &H {
        &self.server.handler
    }

    /// Runs what answers a request, once there is room for an answer: a panic is an error, and the call counts.
    async fn answered<T, F: Future<Output = Result<T, ErrorData>>>(
        &self,
        method: &'static str,
        (asked, cancelled): (Asked, impl Future<Output = ()>),
        work: impl FnOnce() -> F,
    ) -> Result<T, ErrorData> {
        // On the heap: futures of futures would not fit on the stack of a thread that is not optimised.
        let work = Box::pin(unless_panicked(async { work().await }));
        match &self.server.metrics {
            Some(metrics) => {
                self.backlog
                    .answer(asked, cancelled, metrics.measure(method, work))
                    .await
            }
            None => self.backlog.answer(asked, cancelled, work).await,
        }
    }

    /// Tells the client of changes from now on, if that is not so already.
    fn start_forwarding(&self, peer: Peer<RoleServer>) {
        if let Some(events) = locked(&self.events).take() {
            locked(&self.forwarding).spawn(forward(events, peer, self.subscriptions.clone()));
        }
    }

    /// Prepares a stream about those of these resources that there are.
    fn listener<'u>(&self, uris: impl Iterator<Item = &'u String>) -> Listener {
        let events = self.server.registry.events();
        let subscriptions = self.subscriptions.another();
        let uris = uris
            .take(MAX_SUBSCRIPTIONS)
            .filter(|uri| self.server.registry.contains(uri));
        let uris = uris.filter(|uri| subscriptions.add(uri)).cloned().collect();
        self.server.registry.settle_interests();
        Listener {
            uris,
            subscriptions,
            events,
        }
    }

    /// Takes what was prepared for a stream.
    fn take_listener<'u>(&self, accepted: impl Iterator<Item = &'u String>) -> Listener {
        let accepted: BTreeSet<&String> = accepted.collect();
        let is_it = |listener: &Listener| listener.uris.iter().eq(accepted.iter().copied());
        let mut listeners = locked(&self.listeners);
        let prepared = listeners
            .iter()
            .position(is_it)
            .map(|place| listeners.remove(place));
        drop(listeners);
        prepared.unwrap_or_else(|| where_it_may_block(|| self.listener(accepted.into_iter())))
    }

    async fn read(&self, uri: &str, modern: bool) -> Result<ReadResourceResponse, ErrorData> {
        let reading = self
            .server
            .registry
            .read(uri)
            .await
            .map_err(|error| self.refused(&error, uri))?;
        let contents = reading.contents.into_iter().map(wire::contents).collect();
        let mut result = ReadResourceResult::new(contents);
        if let (Some(ttl), true) = (reading.ttl, modern) {
            result.ttl_ms = Some(wire::milliseconds(ttl));
            result.cache_scope = Some(wire::cache_scope(reading.cache_scope));
        }
        Ok(result.into())
    }

    fn refused(&self, error: &ReadError, uri: &str) -> ErrorData {
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
        values.truncate(self.server.registry.fitting(&values));
        let mut completion = CompletionInfo::default();
        completion.has_more = Some(values.len() < total);
        completion.total = u32::try_from(total).ok();
        completion.values = values;
        Ok(CompleteResult::new(completion))
    }

    /// Completes an argument of a prompt, which is the handler's.
    ///
    /// A handler that declares no completions refuses (rmcp since 3.11). Beside templates that do declare them it offers
    /// nothing instead: a method of a declared capability exists.
    async fn complete_argument(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completed = self.handler().complete(request, context).await;
        let is_declared = || self.handler().get_info().capabilities.completions.is_some();
        match self.server.registry.completes_variables() {
            true => unless_undeclared(completed, is_declared),
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

/// Says what is wrong with the parameters of a request that has a method of the client's era and comes as a custom one.
fn misread(request: &CustomRequest, is_modern: bool) -> Option<ErrorData> {
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
    let why = |error| {
        format!(
            "the parameters of {} can't be read: {error}",
            request.method
        )
    };
    error.map(|error| ErrorData::invalid_params(why(error), None))
}

/// Puts an empty result in the place of a handler's answer that there is no such method, unless the handler declares
/// the method's capability.
fn unless_undeclared<T: Default>(
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

/// Makes an error of a panic.
async fn unless_panicked<T>(
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let panicked = "what answers the request panicked; the server's standard error says why";
    catch_panic(work)
        .await
        .unwrap_or_else(|_| Err(ErrorData::internal_error(panicked, None)))
}

/// Locks; what panicked meanwhile left nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what may wait for a moment, without holding up other clients where there are threads for them.
fn where_it_may_block<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Says why it is not known whether a subscription begins, or ends.
fn not_subscribed(interruption: Interruption) -> ErrorData {
    let why = match interruption {
        Interruption::Panic => "what subscribes panicked; the server's standard error says why",
        Interruption::Timeout | Interruption::Busy => {
            "what watches the resources does not answer; try again later"
        }
    };
    ErrorData::internal_error(why, None)
}

/// Whether the client speaks a revision without `initialize`, from 2026-07-28.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether a stream has anything to do with the registry.
fn is_about_resources(requested: &SubscriptionFilter) -> bool {
    requested.resources_list_changed == Some(true) || requested.resource_subscriptions.is_some()
}

fn place(request: Option<PaginatedRequestParams>) -> Result<Option<u64>, ErrorData> {
    request
        .and_then(|request| request.cursor)
        .map(|cursor| wire::place(&cursor))
        .transpose()
}

/// Which request it is, what counts it, and when it is cancelled.
fn asked(context: &mut RequestContext<RoleServer>) -> (Asked, impl Future<Output = ()> + use<>) {
    let cancelled = context.ct.clone();
    let asked = Asked {
        id: context.id.clone(),
        counted: context.extensions.remove(),
    };
    (asked, async move { cancelled.cancelled().await })
}

/// Runs until the client cancels the request, which then gets no answer.
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.answered("resources/list", asked(&mut context), || async {
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.answered("resources/templates/list", asked(&mut context), || async {
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let modern = is_modern(&context);
        let read = self.read(&request.uri, modern);
        self.answered("resources/read", asked(&mut context), || {
            unless_cancelled(context, read)
        })
        .await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.answered("completion/complete", asked(&mut context), || async {
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answered("resources/subscribe", asked(&mut context), || async {
            if !self.server.registry.contains(&request.uri) {
                return Err(wire::not_found(&request.uri));
            }
            self.start_forwarding(context.peer);
            let (subscriptions, registry) = (self.subscriptions.clone(), self.server.registry.clone());
            let add = move || {
                let is_added = subscriptions.add(&request.uri);
                registry.settle_interests();
                is_added
            };
            let added = self.server.registry.run_observed(add).await;
            match added.map_err(not_subscribed)? {
                true => Ok(()),
                false => Err(ErrorData::invalid_params(
                    format!(
                        "a client may subscribe to {MAX_SUBSCRIPTIONS} resources, with URIs of 1 MiB in all, and of 16 MiB with all its streams; unsubscribe from some first"
                    ),
                    None,
                )),
            }
        })
        .await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answered("resources/unsubscribe", asked(&mut context), || async {
            let subscriptions = self.subscriptions.clone();
            let removed = self
                .server
                .registry
                .run_observed(move || subscriptions.remove(&request.uri))
                .await;
            removed.map_err(not_subscribed)
        })
        .await
    }

    /// What is about resources is the registry's, the rest the handler's, on one stream.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let of_handler = || self.handler().accepted_subscription_filter(requested);
        // One that panics has no part in it.
        let of_handler = catch_unwind(AssertUnwindSafe(of_handler)).unwrap_or_default();
        let mut accepted = of_handler.unwrap_or_default();
        let mut uris = None;
        if is_about_resources(requested) {
            let listener = where_it_may_block(|| {
                self.listener(requested.resource_subscriptions.iter().flatten())
            });
            uris = Some(listener.uris.iter().cloned().collect())
                .filter(|uris: &Vec<_>| !uris.is_empty());
            let mut listeners = locked(&self.listeners);
            // One that was cancelled before it started is taken by nobody.
            if listeners.len() >= MAX_PENDING {
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
                result = unless_panicked(self.handler().listen(context)) => result,
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
                true => unless_panicked(self.handler().listen(context)).await,
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answered("logging/setLevel", asked(&mut context), || {
            self.handler().set_level(request, context)
        })
        .await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.answered("prompts/get", asked(&mut context), || {
            self.handler().get_prompt(request, context)
        })
        .await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.answered("prompts/list", asked(&mut context), || async {
            let listed = self.handler().list_prompts(request, context).await;
            unless_undeclared(listed, || {
                self.handler().get_info().capabilities.prompts.is_some()
            })
        })
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.answered("tools/call", asked(&mut context), || {
            self.handler().call_tool(request, context)
        })
        .await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Clients such as OpenAI Codex ask for tools whatever the capabilities say, and end on an error.
        self.answered("tools/list", asked(&mut context), || async {
            let listed = self.handler().list_tools(request, context).await;
            unless_undeclared(listed, || {
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(error) = misread(&request, is_modern(&context)) {
            return Err(error);
        }
        let (asked, cancelled) = asked(&mut context);
        let work = async { self.handler().on_custom_request(request, context).await };
        let work = Box::pin(unless_panicked(work));
        self.backlog.answer(asked, cancelled, work).await
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.answered("tasks/get", asked(&mut context), || {
            self.handler().get_task(request, context)
        })
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answered("tasks/update", asked(&mut context), || {
            self.handler().update_task(request, context)
        })
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answered("tasks/cancel", asked(&mut context), || {
            self.handler().cancel_task(request, context)
        })
        .await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.answered("skills/list", asked(&mut context), || {
            self.handler().list_skills(request, context)
        })
        .await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.answered("skills/get", asked(&mut context), || {
            self.handler().get_skill(request, context)
        })
        .await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.answered("resources/directory/read", asked(&mut context), || {
            self.handler().read_resource_directory(request, context)
        })
        .await
    }
}
