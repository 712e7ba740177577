//! Responses that the client does not read, or reads slowly.

use super::*;
use ::hyper::rt::{Read, ReadBufCursor, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

#[test]
fn a_client_that_reads_slowly_has_the_keep_alive_limit() {
    paused(async {
        // A further request waits for the client to read, so its header has no limit until then.
        for requests in [1, 2] {
            let (mut client, ended) = serve(&limits(), 1000, |_| async { full(vec![b'.'; 10_000]) });
            for _ in 0..requests {
                client.write_all(GET).await.unwrap();
                time::sleep(MILLI).await;
            }
            let mut chunk = [0; 1000];
            for _ in 0..10 * requests - 5 {
                time::sleep(KEEP_ALIVE - 3 * MILLI).await;
                client.read_exact(&mut chunk).await.unwrap();
            }
            yield_now().await;
            assert_ends(client, ended, Limit::KeepAlive, time::now(), KEEP_ALIVE).await;
        }
    });
}

#[test]
fn the_response_limit_ends_no_connection_whose_body_is_buffered() {
    paused(async {
        let limits = ConnectionLimits::new(Timer::current()).response(RESPONSE);
        let (mut client, ended) = serve(&limits, 1000, |_| async { full(vec![b'.'; 10_000]) });
        client.write_all(GET).await.unwrap();
        time::sleep(3600 * SECOND).await;
        assert!(!ended.is_finished());
        let mut reply = Vec::new();
        while !reply.ends_with(&[b'.'; 10_000]) {
            assert!(client.read_buf(&mut reply).await.unwrap() > 0, "the connection was closed");
        }
        drop(client);
        ended.await.unwrap().unwrap();
    });
}

/// A pipe that writes several buffers at once, as a socket does. hyper then does not copy bodies.
struct Vectored(TokioIo<DuplexStream>);

impl Read for Vectored {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Vectored {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

// hyper reads the second request when the body of the first one ends. It does not poll the service
// before the first response is written.
#[test]
fn a_late_request_behind_an_unread_response_has_one_request_limit() {
    paused(async {
        let (mut client, server) = duplex(1000);
        let service = service_fn(|request: Request<Incoming>| async {
            spawn(request.into_body().collect());
            Ok::<_, Infallible>(full(vec![b'.'; 10_000]))
        });
        let connection =
            limits().late_response(|| full("late")).serve(Vectored(TokioIo::new(server)), service, |io, service| {
                http1::Builder::new().serve_connection(io, service)
            });
        let ended = spawn(connection);
        client.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n.").await.unwrap();
        time::sleep(MILLI).await;
        client.write_all(b".").await.unwrap();
        client.write_all(GET).await.unwrap();
        let begin = time::now();
        time::sleep(REQUEST / 2).await;
        client.read_exact(&mut [0; 500]).await.unwrap();
        assert_ends(client, ended, Limit::Request, begin, REQUEST).await;
    });
}
