//! Google Gemini: `streamGenerateContent` of the Gemini API, `v1beta`.
//!
//! [`encode`] writes a request, [`decoder`] reads the stream that answers it. The model keeps its state in
//! `thoughtSignature`s, which come with parts of any kind and are sent back on the very part they came with,
//! to the model that made them. Thoughts are summaries for people: one without a signature is not sent back.
//!
//! The decoder leaves this in an event's metadata for the encoder: `thoughtSignature`; with it on a run of words or
//! reasoning `signedBytes`, the bytes of the run's end that the signed part holds if it is not the whole run, and `thought`
//! if the part is one; on a tool call `id`, if the API chose the call's id.

mod decode;
mod encode;
mod generation;

use jp_conversation::ChatResponse;
use serde_json::{Map, Value};

pub use decode::decoder;
pub use encode::encode;

const SIGNATURE: &str = "thoughtSignature";
const SIGNED_BYTES: &str = "signedBytes";
const THOUGHT: &str = "thought";
const ID: &str = "id";

/// Returns where requests for a model go, below the server's root.
pub(crate) fn path(model: &str) -> String {
    let name = model.strip_prefix("models/").unwrap_or(model);
    format!(
        "v1beta/models/{}:streamGenerateContent?alt=sse",
        crate::http::percent_encode(name)
    )
}

/// Returns whether a part of an answer that is reasoning goes back to the model `label`.
pub(crate) fn sends_back(response: &ChatResponse, label: &str) -> bool {
    own(&response.metadata, SIGNATURE, label).is_some()
}

/// Returns a text of the metadata that the model `label` left, and of no other's.
fn own<'a>(metadata: &'a Map<String, Value>, key: &str, label: &str) -> Option<&'a str> {
    let is_own = metadata.get("model").is_some_and(|model| model == label);
    metadata.get(key).filter(|_| is_own)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, Body, Client, Endpoint, Secret, StreamEvent};
    use testing::{Reply, Server, block_on};

    #[test]
    fn request_goes_to_the_model_with_the_key_in_its_header() {
        let answer =
            r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#;
        let server = Server::new(vec![Reply::stream(&format!("data: {answer}\n\n"))]);
        let base_url = BaseUrl::parse(&format!("{}/v1beta", server.url())).unwrap();
        let mut endpoint = Endpoint::new("google", base_url, "gemini-3-pro");
        endpoint.api_key = Some(Secret::new("key-1"));
        let client = Client::new(endpoint).unwrap();
        let (body, _) = Body::new(|out| Ok(out.write_all(b"{}")?)).unwrap();
        let first = block_on(async {
            client
                .send(&body, &mut |_| {})
                .await
                .unwrap()
                .next()
                .await
                .unwrap()
        });
        assert_eq!(first, Some(StreamEvent::Text("hi".to_owned())));

        let head = &server.received()[0].head;
        let target = "post /v1beta/models/gemini-3-pro:streamgeneratecontent?alt=sse http/1.1";
        assert_eq!(head.lines().next(), Some(target));
        assert!(
            head.contains("x-goog-api-key: key-1") && !head.contains("authorization"),
            "{head}"
        );
    }

    #[test]
    fn model_is_one_segment_of_the_path() {
        let path = |model| path(model).replace("v1beta/models/", "");
        assert_eq!(
            path("gemini-3-pro"),
            "gemini-3-pro:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            path("models/gemini-3-pro"),
            "gemini-3-pro:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            path("a/b?c ä"),
            "a%2Fb%3Fc%20%C3%A4:streamGenerateContent?alt=sse"
        );
    }
}
