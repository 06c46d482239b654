//! Handlers: closures that read resources.

use std::future::Future;
use std::sync::Arc;

use crate::call::Call;
use crate::{Contents, IntoContents, Parameters, ReadError};

/// A closure that reads a resource, or the resources of a template.
///
/// | | direct (`Input = ()`) | template (`Input = Parameters`) |
/// |---|---|---|
/// | sync | `\|\| …` | `\|parameters: Parameters\| …` |
/// | async | `\|\| async { … }` | `\|parameters: Parameters\| async move { … }` |
///
/// It returns a type that implements [`IntoContents`]: a text, bytes, a [`Content`](crate::Content), several
/// contents, or a `Result` of one of these.
///
/// A sync closure runs on a thread for blocking work. Up to 32 calls of it run at once, and up to 256 calls of
/// all the sync closures of a registry. An async closure runs on the server's threads and must not block.
///
/// `Kind` is [`Blocking`] or [`Async`]. The compiler infers it.
///
/// ```
/// use mcp_resources::{Parameters, ReadError, Registry, Resource, ResourceTemplate};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let registry = Registry::new();
/// registry.register_resource(Resource::new("clock://year", "Year", || "2026"))?;
/// registry.register_template(ResourceTemplate::new("sum://{a}/{b}", "Sum", |parameters: Parameters| async move {
///     let sum = parameters.parse::<i64>("a")?.checked_add(parameters.parse("b")?);
///     sum.map(|sum| sum.to_string()).ok_or(ReadError::bad_parameters("the sum is too large"))
/// }))?;
/// assert_eq!(registry.read("clock://year").await?.text(), Some("2026"));
/// assert_eq!(registry.read("sum://2/-3").await?.text(), Some("-1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "this can't read a resource",
    label = "has to be a closure: `|| …` of a resource, `|parameters: Parameters| …` of a template",
    note = "it returns a text, bytes, `Content`, several, or a `Result` of one with an error that becomes a `ReadError`"
)]
pub trait Handler<Input, Kind>: Send + Sync + 'static {
    /// Returns the closure in the form in which a registry keeps it.
    #[doc(hidden)]
    fn into_call(self) -> HandlerCall<Input>;
}

pub(crate) type HandlerCall<Input> = Call<Input, Result<Contents, ReadError>>;

/// Marks a [`Handler`] that may block.
#[derive(Debug)]
pub enum Blocking {}

/// Marks an async [`Handler`].
#[derive(Debug)]
pub enum Async {}

impl<F, C> Handler<(), Blocking> for F
where
    F: Fn() -> C + Send + Sync + 'static,
    C: IntoContents,
{
    fn into_call(self) -> HandlerCall<()> {
        Call::blocking(move |()| self().into_contents())
    }
}

impl<F, R, C> Handler<(), Async> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = C> + Send + 'static,
    C: IntoContents,
{
    fn into_call(self) -> HandlerCall<()> {
        Call::Async(Arc::new(move |()| {
            let read = self();
            Box::pin(async { read.await.into_contents() })
        }))
    }
}

impl<F, C> Handler<Parameters, Blocking> for F
where
    F: Fn(Parameters) -> C + Send + Sync + 'static,
    C: IntoContents,
{
    fn into_call(self) -> HandlerCall<Parameters> {
        Call::blocking(move |parameters| self(parameters).into_contents())
    }
}

impl<F, R, C> Handler<Parameters, Async> for F
where
    F: Fn(Parameters) -> R + Send + Sync + 'static,
    R: Future<Output = C> + Send + 'static,
    C: IntoContents,
{
    fn into_call(self) -> HandlerCall<Parameters> {
        Call::Async(Arc::new(move |parameters| {
            let read = self(parameters);
            Box::pin(async { read.await.into_contents() })
        }))
    }
}
