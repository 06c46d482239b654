mod error;
mod read;
mod uri;

use std::time::Duration;

use jp_resource::Resource;

use crate::{
    AttachError, Context, Declared, Notice, Resolved, Source,
    keep::{KeptResource, assemble},
    parallel,
};

pub use self::{
    error::McpError,
    read::{McpContents, ReadMcp},
    uri::McpUri,
};

/// The prefix of jp's own keys in a resource's `_meta`. A server must not use it.
const OWN: &str = "computer.jp/";
/// The key for how long the resource is current, in milliseconds.
const TTL: &str = "computer.jp/ttlMs";
/// The key for fields of the contents that jp does not know.
const UNKNOWN: &str = "computer.jp/unknown";

/// Returns how long a resource of an MCP server is current according to the server, counted from
/// when it was read.
#[must_use]
pub fn mcp_ttl<C, T>(resource: &Resource<C, T>) -> Option<Duration> {
    resource
        .meta
        .as_ref()?
        .get(TTL)?
        .as_u64()
        .map(Duration::from_millis)
}

/// Resolves `mcp+SERVER+URI` with [`Context::mcp`].
///
/// Each content keeps the URI that the server gave it. Its name is that of the resource, or the
/// URI.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let kept = parallel::map(
        declared,
        context.workers,
        || (),
        |(), declared| context.unavailable.tolerate(read(declared, context)),
    )?;
    assemble(declared, kept, context)
}

fn read(declared: &Declared, context: &Context<'_>) -> Result<Vec<KeptResource>, AttachError> {
    let Source::Mcp(McpUri { server, uri }) = &declared.source else {
        return Ok(Vec::new());
    };
    let failure = |source| AttachError::Mcp {
        input: declared.input.clone(),
        server: server.clone(),
        source,
    };
    context.check_cancelled()?;
    let client = context.mcp.ok_or_else(|| failure(McpError::NoClient))?;
    let read = client.read(server, uri, &|| context.is_cancelled());
    // If the user interrupted, the request's own error says less.
    context.check_cancelled()?;
    let McpContents {
        contents,
        ttl,
        warnings,
    } = read.map_err(failure)?;
    if contents.is_empty() {
        return Err(failure(McpError::Empty));
    }
    let mut kept = Vec::with_capacity(contents.len());
    for mut resource in contents {
        replace_own_meta(&mut resource, ttl);
        kept.push(keep(declared, resource, context)?);
    }
    if let Some(first) = kept.first_mut() {
        for reason in warnings {
            let name = declared.input.clone();
            first.notices.push(Notice::PassedOver { name, reason });
        }
    }
    Ok(kept)
}

/// Replaces jp's own keys in `_meta`, which the server could have forged, with how long the
/// resource is current. [`UNKNOWN`] stays: the implementation of [`ReadMcp`] wrote it.
fn replace_own_meta(resource: &mut Resource, ttl: Option<Duration>) {
    let mut meta = resource.meta.take().unwrap_or_default();
    meta.retain(|key, _| key == UNKNOWN || !key.starts_with(OWN));
    if let Some(ttl) = ttl {
        meta.insert(
            TTL.to_owned(),
            u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).into(),
        );
    }
    resource.meta = (!meta.is_empty()).then_some(meta);
}

fn keep(
    declared: &Declared,
    mut resource: Resource,
    context: &Context<'_>,
) -> Result<KeptResource, AttachError> {
    context.check_length(&declared.input, resource.content.as_bytes().len())?;
    if resource.name.is_none() {
        resource.name = Some(resource.uri.clone());
    }
    context.keep(declared, resource)
}

#[cfg(test)]
mod tests {
    use std::{error::Error, sync::atomic::AtomicBool, time::SystemTime};

    use jp_resource::ResourceContent;
    use proptest::prelude::*;

    use super::*;
    use crate::{Notice, Place, Unavailable, parse_input, parse_stored, resolve, store::Nowhere};

    /// Two servers that know the same URI; all others refuse.
    struct Servers;

    impl ReadMcp for Servers {
        fn read(
            &self,
            server: &str,
            uri: &str,
            _: &dyn Fn() -> bool,
        ) -> Result<McpContents, McpError> {
            let text = |text: &str| ResourceContent::Text(text.to_owned());
            let contents = match (server, uri) {
                ("a" | "b", "note:x") => vec![Resource::new(uri, text(server))],
                ("a", "git+https://h/p?q#f%20+") => vec![
                    Resource::new("git+https://h/p?q#1", text("one")).with_name("One"),
                    Resource::new("file:///etc/../x", text("two")),
                ],
                ("a", "note:twice") => {
                    vec![
                        Resource::new(uri, text("one")),
                        Resource::new(uri, ResourceContent::Blob(vec![0, 1])),
                    ]
                }
                ("a", "note:current") => return Ok(current(uri)),
                ("a", "note:none") => Vec::new(),
                _ => return Err(McpError::NotFound("no note".to_owned())),
            };
            Ok(McpContents {
                contents,
                ..McpContents::default()
            })
        }
    }

    /// Returns contents that are current for 5 s, although the server forges another time.
    fn current(uri: &str) -> McpContents {
        let mut resource = Resource::new(uri, ResourceContent::Text("now".to_owned()));
        let meta = [(TTL, 9), ("computer.jp/x", 1), (UNKNOWN, 3), ("a.b/c", 2)]
            .map(|(key, value)| (key.to_owned(), value.into()));
        resource.meta = Some(meta.into_iter().collect());
        let warnings = vec!["one content was".to_owned()];
        McpContents {
            contents: vec![resource],
            ttl: Some(Duration::from_secs(5)),
            warnings,
        }
    }

    fn place() -> Place {
        Place {
            current_dir: "/w/none".into(),
            ..Place::new("/w")
        }
    }

    fn attach(
        inputs: &[&str],
        with: impl FnOnce(&mut Context<'_>),
    ) -> Result<Resolved, AttachError> {
        let place = place();
        let declared: Vec<_> = inputs
            .iter()
            .map(|input| parse_input(input, &place).unwrap())
            .collect();
        let mut context = Context {
            mcp: Some(&Servers),
            ..Context::new(&place, &Nowhere, SystemTime::UNIX_EPOCH)
        };
        with(&mut context);
        resolve(&declared, &context)
    }

    fn message(error: &AttachError) -> String {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            message += &format!(": {error}");
            source = error.source();
        }
        message
    }

    #[test]
    fn contents_keep_the_uris_of_their_server() {
        let inputs = [
            "mcp+a+git+https://h/p?q#f%20+",
            "mcp+b+note:x",
            "MCP+a+note:x",
        ];
        let resolved = attach(&inputs, |_| {}).unwrap();
        let told: Vec<_> = resolved
            .resources
            .iter()
            .map(|resource| (resource.uri.as_str(), resource.name.as_deref().unwrap()))
            .collect();
        let expected = [
            ("git+https://h/p?q#1", "One"),
            ("file:///etc/../x", "file:///etc/../x"),
            ("note:x", "note:x"),
            ("note:x", "note:x"),
        ];
        assert_eq!(told, expected);
        assert_ne!(resolved.resources[2].content, resolved.resources[3].content);
        let delivered: Vec<_> = resolved
            .delivered
            .iter()
            .map(|one| (one.declaration.as_str(), &one.resources[..]))
            .collect();
        let expected: [(_, &[usize]); 3] =
            [(inputs[0], &[0, 1]), (inputs[1], &[2]), (inputs[2], &[3])];
        assert_eq!(delivered, expected);
    }

    #[test]
    fn contents_that_share_a_uri_are_all_kept() {
        let resolved = attach(
            &["mcp+a+note:twice", "mcp+A+note:x", "mcp+a+note:x"],
            |context| {
                context.unavailable = Unavailable::Skip;
            },
        );
        let resolved = resolved.unwrap();
        assert_eq!(resolved.resources.len(), 3);
        assert_eq!(resolved.delivered[0].resources, [0, 1]);
    }

    #[test]
    fn meta_keeps_the_ttl_of_the_answer() {
        let resolved = attach(&["mcp+a+note:current", "mcp+b+note:x"], |_| {}).unwrap();
        assert_eq!(
            mcp_ttl(&resolved.resources[0]),
            Some(Duration::from_secs(5))
        );
        let keys: Vec<_> = resolved.resources[0]
            .meta
            .as_ref()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(keys, [UNKNOWN, "a.b/c", TTL]);
        assert_eq!(mcp_ttl(&resolved.resources[1]), None);
        assert_eq!(resolved.resources[1].meta, None);
        let said: Vec<_> = resolved.notices.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [r#""mcp+a+note:current" is attached in part: one content was"#]
        );
    }

    #[test]
    fn missing_content_is_an_error() {
        let error = attach(&["mcp+c+note:x"], |_| {}).unwrap_err();
        let refused =
            r#"attach "mcp+c+note:x" from the MCP server "c": there is no such resource: no note"#;
        assert_eq!(message(&error), refused);
        let error = attach(&["mcp+a+note:none"], |_| {}).unwrap_err();
        assert!(
            message(&error).ends_with("the server returned no content"),
            "{}",
            message(&error)
        );
        let error = attach(&["mcp+a+note:x"], |context| context.mcp = None).unwrap_err();
        assert!(message(&error).ends_with("no MCP servers are configured for this command"));
        let error = attach(&["mcp+a+note:x"], |context| context.limits.max_bytes = 0).unwrap_err();
        assert!(matches!(error, AttachError::TooLong { .. }));
        let cancelled = AtomicBool::new(true);
        let place = place();
        let context = Context {
            cancelled: Some(&cancelled),
            mcp: Some(&Servers),
            ..Context::new(&place, &Nowhere, SystemTime::UNIX_EPOCH)
        };
        let error = resolve(&[parse_input("mcp+a+note:x", &place).unwrap()], &context).unwrap_err();
        assert!(matches!(error, AttachError::Interrupted));

        let inputs = ["mcp+c+note:x", "mcp+b+note:x"];
        let resolved = attach(&inputs, |context| context.unavailable = Unavailable::Skip).unwrap();
        assert_eq!(resolved.resources.len(), 1);
        assert!(matches!(resolved.notices[..], [Notice::Skipped(_)]));
    }

    #[test]
    fn malformed_declaration_is_explained() {
        for (input, reason) in [
            ("mcp+", "`mcp+SERVER+URI` needs the name of a server"),
            ("mcp++x:y", "`mcp+SERVER+URI` needs the name of a server"),
            (
                "mcp+docs",
                r#"`mcp+SERVER+URI` needs a URI to read from the server "docs""#,
            ),
            (
                "mcp+docs+",
                r#"`mcp+SERVER+URI` needs a URI to read from the server "docs""#,
            ),
            (
                "mcp+docs+readme",
                r#""readme" is not a URI: it has no scheme, such as `file:`"#,
            ),
            (
                "mcp+docs+1x:y",
                r#""1x:y" is not a URI: it has no scheme, such as `file:`"#,
            ),
            (
                "mcp+docs+x:",
                r#""x:" is not a URI: it has no scheme, such as `file:`"#,
            ),
        ] {
            let expected = format!("attach {input:?}: {reason}");
            assert_eq!(
                parse_input(input, &place()).unwrap_err().to_string(),
                expected
            );
        }
    }

    #[test]
    fn uri_is_split_byte_for_byte() {
        for (input, server, uri) in [
            (
                "mcp+docs+file:///a b/%zz?x#y",
                "docs",
                "file:///a b/%zz?x#y",
            ),
            ("McP+Docs+git+https://h/p", "Docs", "git+https://h/p"),
            ("mcp+a b+note:x", "a b", "note:x"),
            ("mcp+https://h+urn:x:y", "https://h", "urn:x:y"),
            (
                "mcp+d+db://{table}/{id*}{?q}",
                "d",
                "db://{table}/{id*}{?q}",
            ),
            ("mcp+d+x:?exclude", "d", "x:?exclude"),
        ] {
            let declared = parse_input(input, &place()).unwrap();
            let expected = McpUri {
                server: server.into(),
                uri: uri.into(),
            };
            assert_eq!(declared.source, Source::Mcp(expected), "{input}");
            assert_eq!(declared.declaration.as_deref(), Some(input));
        }
    }

    proptest! {
        #[test]
        fn display_is_read_back(server in "[^+]{1,12}", scheme in "[a-zA-Z][a-zA-Z0-9+.-]{0,8}", rest in ".{1,20}") {
            let uri = McpUri { server, uri: format!("{scheme}:{rest}") };
            let text = uri.to_string();
            prop_assert_eq!(McpUri::parse(&text), Ok(uri.clone()));
            let declared = parse_input(&text, &place()).unwrap();
            prop_assert_eq!(declared.declaration.as_ref(), Some(&text));
            prop_assert_eq!(&declared.source, &Source::Mcp(uri));
            prop_assert_eq!(parse_stored(&text, &place()).unwrap().source, declared.source);
        }

        #[test]
        fn splitting_never_panics(rest: String) {
            let text = format!("mcp+{rest}");
            if let Ok(uri) = McpUri::parse(&text) {
                prop_assert_eq!(uri.to_string(), text);
            }
        }
    }
}
