use std::{
    collections::HashSet,
    convert::Infallible,
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    AttachError, Context, Declared, Delivered, Resolved, bear, clipboard, command, data, file,
    http, mcp, parallel, stdin,
};

/// Resolves declarations of one scheme, includes and excludes together; a single one for a refresh.
///
/// Returns the first error in declared order, without any result, unless
/// [`Unavailable::Skip`](crate::Unavailable::Skip) tolerates it.
type Handler = fn(&[Declared], &Context<'_>) -> Result<Resolved, AttachError>;

/// The handler of each scheme ([`Source::scheme`](crate::Source::scheme)). Their notices are in
/// this order.
const HANDLERS: [(&str, Handler); 8] = [
    ("file", file::resolve),
    ("http", http::resolve),
    ("cmd", command::resolve),
    ("data", data::resolve),
    ("stdin", stdin::resolve),
    ("clip", clipboard::resolve),
    ("mcp", mcp::resolve),
    ("bear", bear::resolve),
];

/// Resolves declarations and excludes, each with the handler of its scheme. All handlers run at
/// once.
///
/// All or nothing, unless [`Unavailable::Skip`](crate::Unavailable::Skip). The result is in
/// declared order.
///
/// # Errors
///
/// Excludes without anything to exclude from, and more bytes than the limits allow.
pub fn resolve(declared: &[Declared], context: &Context<'_>) -> Result<Resolved, AttachError> {
    let parts: Vec<Part> = HANDLERS
        .into_iter()
        .filter_map(|(scheme, handler)| Part::select(scheme, handler, declared))
        .collect();
    if let Some(progress) = context.progress {
        // Files count themselves, because a directory has to be walked first.
        let others = parts.iter().filter(|part| part.scheme != "file");
        progress.expect(others.map(|part| part.declared.len()).sum(), 0);
    }
    let results = resolve_parts(&parts, context);
    if results.iter().any(Result::is_err) {
        return Err(first_error(results));
    }
    let mut merge = Merge::default();
    for (part, resolved) in parts.iter().zip(results.into_iter().flatten()) {
        merge.add(part, resolved);
    }
    merge.finish(context)
}

/// Resolves every part with a thread of its own. Once one has failed, the others stop early.
fn resolve_parts(parts: &[Part], context: &Context<'_>) -> Vec<Result<Resolved, AttachError>> {
    let failed = AtomicBool::new(false);
    let context = Context {
        failed: Some(&failed),
        ..*context
    };
    let workers = NonZeroUsize::new(parts.len()).unwrap_or(NonZeroUsize::MIN);
    let Ok(results) = parallel::map(
        parts,
        workers,
        || (),
        |(), part| {
            let resolved = (part.handler)(&part.declared, &context);
            failed.fetch_or(resolved.is_err(), Ordering::Relaxed);
            Ok::<_, Infallible>(resolved)
        },
    );
    results
}

/// Returns the first error that is not the consequence of another one.
fn first_error(results: Vec<Result<Resolved, AttachError>>) -> AttachError {
    let mut errors = results.into_iter().filter_map(Result::err);
    let first = errors.next().expect("one part failed");
    match first {
        // A part that stopped because another one failed.
        AttachError::Interrupted => errors
            .find(|error| !matches!(error, AttachError::Interrupted))
            .unwrap_or(first),
        first => first,
    }
}

/// The declarations of one handler.
struct Part {
    scheme: &'static str,
    handler: Handler,
    declared: Vec<Declared>,
    /// The index of each among all declarations.
    indexes: Vec<usize>,
}

impl Part {
    /// Selects the declarations of `scheme`. A repeated declaration is resolved once.
    fn select(scheme: &'static str, handler: Handler, all: &[Declared]) -> Option<Self> {
        let mut seen = HashSet::new();
        let (indexes, declared): (Vec<_>, Vec<_>) = all
            .iter()
            .enumerate()
            .filter(|(_, one)| one.source.scheme() == scheme)
            .filter(|(_, one)| seen.insert(one.declaration.as_ref().unwrap_or(&one.input)))
            .map(|(index, one)| (index, one.clone()))
            .unzip();
        (!declared.is_empty()).then_some(Self {
            scheme,
            handler,
            declared,
            indexes,
        })
    }
}

/// Brings the results of the handlers into declared order.
#[derive(Default)]
struct Merge {
    parts: Vec<Resolved>,
    /// The deliveries with the index of their part. `declared` is an index among all declarations.
    delivered: Vec<(usize, Delivered)>,
}

impl Merge {
    fn add(&mut self, part: &Part, mut resolved: Resolved) {
        let place = self.parts.len();
        for delivered in resolved.delivered.drain(..) {
            let declared = part.indexes[delivered.declared];
            self.delivered.push((
                place,
                Delivered {
                    declared,
                    ..delivered
                },
            ));
        }
        self.parts.push(resolved);
    }

    fn finish(mut self, context: &Context<'_>) -> Result<Resolved, AttachError> {
        let mut merged = Resolved::default();
        for part in &mut self.parts {
            merged.notices.append(&mut part.notices);
            merged.totals.files += part.totals.files;
            merged.totals.bytes += part.totals.bytes;
            merged.totals.known += part.totals.known;
        }
        let limit = context.limits.max_total_bytes;
        if merged.totals.bytes > limit {
            return Err(AttachError::TooManyBytes {
                files: merged.totals.files,
                size: merged.totals.bytes,
                limit,
            });
        }
        // Each resource is taken out of its part by the first delivery that names it; `places`
        // tells the later ones where it is now.
        let mut resources: Vec<Vec<Option<_>>> = self
            .parts
            .into_iter()
            .map(|part| part.resources.into_iter().map(Some).collect())
            .collect();
        let mut places: Vec<Vec<Option<usize>>> = resources
            .iter()
            .map(|resources| vec![None; resources.len()])
            .collect();
        merged
            .resources
            .reserve_exact(resources.iter().map(Vec::len).sum());
        self.delivered
            .sort_by_key(|(_, delivered)| delivered.declared);
        for (part, mut delivered) in self.delivered {
            for index in &mut delivered.resources {
                let place = *places[part][*index].get_or_insert(merged.resources.len());
                merged.resources.extend(resources[part][*index].take());
                *index = place;
            }
            merged.delivered.push(delivered);
        }
        Ok(merged)
    }
}
