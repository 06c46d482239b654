//! OpenAI's Responses API, without a memory on the server's side.
//!
//! [`encode`] writes a request, [`decoder`] reads the stream that answers it. Nothing is stored there
//! (`store: false`), so reasoning comes back encrypted and is sent again, verbatim and in place, to the
//! model that made it.

mod answer;
mod decode;
mod encode;
mod files;
mod marks;
mod models;
mod schema;

pub(crate) use answer::sends_back;
pub use decode::decoder;
pub use encode::encode;
pub(crate) use marks::cache_marks;

#[cfg(test)]
mod tests {
    use crate::{BaseUrl, Body, Client, Endpoint, Secret, StreamEvent};
    use testing::{Reply, Server, block_on};

    #[test]
    fn request_goes_to_responses_with_the_key() {
        let reply = Reply::stream(concat!(
            "data: {\"type\":\"response.created\"}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
        ));
        let server = Server::routed(vec![("/v1/responses", reply)]);
        let mut endpoint = Endpoint::new("openai", BaseUrl::parse(server.url()).unwrap(), "gpt-5");
        endpoint.api_key = Some(Secret::new("sk-1"));
        let client = Client::new(endpoint).unwrap();
        let body = Body::new(|out| Ok(out.write_all(b"{}")?)).unwrap().0;
        let first = block_on(async {
            let mut response = client.send(&body, &mut |_| {}).await?;
            response.next().await
        });
        assert_eq!(first.unwrap(), Some(StreamEvent::Text("Hi".to_owned())));
        assert!(
            server.received()[0]
                .head
                .contains("authorization: bearer sk-1")
        );
    }
}
