use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{
    AttachError, Context, Declared, Delivered, Resolved, bear::BearHandler,
    clipboard::ClipboardHandler, command::CommandHandler, data::DataHandler, file::FileHandler,
    handler::Handler, http::HttpHandler, mcp::McpHandler, stdin::StdinHandler,
};

/// One handler for each kind of thing that can be attached.
const HANDLERS: [&(dyn Handler + Sync); 8] = [
    &FileHandler,
    &HttpHandler,
    &CommandHandler,
    &DataHandler,
    &StdinHandler,
    &ClipboardHandler,
    &McpHandler,
    &BearHandler,
];

/// Resolves declarations and excludes, each with the handler of its scheme, all handlers at once.
///
/// All or nothing, unless [`Unavailable::Skip`](crate::Unavailable::Skip). The result is in declared
/// order. Refuses excludes without anything to exclude from, and more bytes in all than are allowed.
pub fn resolve(declared: &[Declared], context: &Context<'_>) -> Result<Resolved, AttachError> {
    let parts: Vec<Part> = HANDLERS
        .iter()
        .filter_map(|handler| Part::of(*handler, declared))
        .collect();
    if let Some(progress) = context.progress {
        // What a directory gives is not known before it is walked.
        let counted = parts
            .iter()
            .filter(|part| !part.handler.schemes().contains(&"file"));
        progress.expect(counted.map(|part| part.declared.len()).sum(), 0);
    }
    let results = match &parts[..] {
        [only] => vec![only.handler.resolve(&only.declared, context)],
        parts => all_at_once(parts, context),
    };
    if results.iter().any(Result::is_err) {
        return Err(first_error(results));
    }
    let mut merged = Merge::default();
    for (part, resolved) in parts.iter().zip(results.into_iter().flatten()) {
        merged.add(part, resolved);
    }
    merged.finish(context)
}

/// Resolves every part; once one has failed, the others end early.
fn all_at_once(parts: &[Part], context: &Context<'_>) -> Vec<Result<Resolved, AttachError>> {
    let failed = AtomicBool::new(false);
    let context = &Context {
        failed: Some(&failed),
        ..*context
    };
    let run = |part: &Part| {
        let resolved = part.handler.resolve(&part.declared, context);
        failed.fetch_or(resolved.is_err(), Ordering::Relaxed);
        resolved
    };
    let run = &run;
    thread::scope(|scope| {
        let start = |part| {
            thread::Builder::new()
                .spawn_scoped(scope, move || run(part))
                .map_err(|_| part)
        };
        let running: Vec<_> = parts.iter().map(start).collect();
        let finish = |running: Result<thread::ScopedJoinHandle<'_, _>, _>| match running {
            Ok(running) => running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system had no thread for it.
            Err(part) => run(part),
        };
        running.into_iter().map(finish).collect()
    })
}

/// Returns the first error that is not another one's consequence.
fn first_error(results: Vec<Result<Resolved, AttachError>>) -> AttachError {
    let mut errors = results.into_iter().filter_map(Result::err);
    let first = errors.next().expect("one part failed");
    match first {
        AttachError::Interrupted => errors
            .find(|error| !matches!(error, AttachError::Interrupted))
            .unwrap_or(first),
        first => first,
    }
}

/// What one handler resolves.
struct Part {
    handler: &'static (dyn Handler + Sync),
    declared: Vec<Declared>,
    /// Where each is among all.
    indexes: Vec<usize>,
}

impl Part {
    /// Takes what a handler resolves; what is declared twice, once.
    fn of(handler: &'static (dyn Handler + Sync), all: &[Declared]) -> Option<Self> {
        let mut part = Self {
            handler,
            declared: Vec::new(),
            indexes: Vec::new(),
        };
        let mut seen = HashSet::new();
        let its = |(_, one): &(usize, &Declared)| handler.schemes().contains(&one.source.scheme());
        for (index, one) in all.iter().enumerate().filter(its) {
            if seen.insert(one.declaration.as_ref().unwrap_or(&one.input)) {
                part.declared.push(one.clone());
                part.indexes.push(index);
            }
        }
        (!part.declared.is_empty()).then_some(part)
    }
}

/// Brings what handlers gave into declared order.
#[derive(Default)]
struct Merge {
    parts: Vec<Resolved>,
    /// Deliveries with the part they are of, their `declared` an index among all.
    delivered: Vec<(usize, Delivered)>,
}

impl Merge {
    fn add(&mut self, part: &Part, mut resolved: Resolved) {
        let place = self.parts.len();
        let delivered = std::mem::take(&mut resolved.delivered).into_iter();
        let among_all = |delivered: Delivered| Delivered {
            declared: part.indexes[delivered.declared],
            ..delivered
        };
        self.delivered
            .extend(delivered.map(|delivered| (place, among_all(delivered))));
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
        let (files, size, limit) = (
            merged.totals.files,
            merged.totals.bytes,
            context.limits.max_total_bytes,
        );
        if size > limit {
            return Err(AttachError::TooManyBytes { files, size, limit });
        }
        let resources = self.parts.into_iter().map(|part| part.resources);
        let mut resources: Vec<Vec<Option<_>>> = resources
            .map(|resources| resources.into_iter().map(Some).collect())
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
