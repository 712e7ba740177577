//! The timeout layer in a tonic server, which a tonic client calls over a socket.

use super::runtime;
use ::tonic::body::Body;
use ::tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use ::tonic::server::{Grpc, NamedService, UnaryService};
use ::tonic::transport::{Channel, Server};
use ::tonic::{Code, Request, Response, Status};
use ::tower::{Service, ServiceBuilder};
use bytes::{Buf, BufMut, Bytes};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use timer_adapters::tower::{BoxError, TimeoutLayer};
use timer_core::Timer;
use tokio::net::TcpListener;

type Reply<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Messages that are plain bytes.
#[derive(Default)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Answers all calls but those that ask it to wait, as the code that tonic generates does.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Reply<Response<Bytes>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        Box::pin(async move {
            if request.get_ref() == "wait" {
                std::future::pending().await
            }
            Ok(Response::new(request.into_inner()))
        })
    }
}

impl Service<axum::http::Request<Body>> for Echo {
    type Response = axum::http::Response<Body>;
    type Error = Infallible;
    type Future = Reply<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: axum::http::Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(Grpc::new(Plain).unary(Echo, request).await) })
    }
}

async fn call(channel: &Channel, message: &'static str) -> Result<Bytes, Status> {
    let mut client = ::tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let request = Request::new(Bytes::from_static(message.as_bytes()));
    let path = "/test.Echo/Call".parse().unwrap();
    client.unary(request, path, Plain).await.map(Response::into_inner)
}

#[test]
fn a_call_to_tonic_ends_at_its_timeout() {
    runtime().block_on(async {
        let timer = Timer::new();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        // tonic resets the stream for an error that is not a `Status`.
        let layer = ServiceBuilder::new()
            .map_err(|error: BoxError| Status::deadline_exceeded(error.to_string()))
            .layer(TimeoutLayer::new(timer.clone(), Duration::from_millis(500)))
            .into_inner();
        let incoming = ::tonic::transport::server::TcpIncoming::from(listener);
        let server = Server::builder().layer(layer).add_service(Echo).serve_with_incoming(incoming);
        let server = tokio::spawn(server);

        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        assert_eq!(call(&channel, "hello").await.unwrap(), "hello");
        let status = call(&channel, "wait").await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "deadline has elapsed"));
        // The connection is still good.
        assert_eq!(call(&channel, "hello").await.unwrap(), "hello");
        assert_eq!(timer.pending_timeouts(), 0);
        server.abort();
    });
}
