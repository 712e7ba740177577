//! Two QUIC endpoints on loopback that exchange data, close when idle, and lose packets.

use super::{LONG, runtime};
use ::quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ::quinn::rustls::crypto::ring::default_provider;
use ::quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use ::quinn::rustls::{ClientConfig, RootCertStore, ServerConfig};
use ::quinn::udp::{RecvMeta, Transmit};
use ::quinn::{
    AsyncTimer, AsyncUdpSocket, ConnectionError, Endpoint, EndpointConfig, Runtime, TokioRuntime, TransportConfig,
    UdpPoller,
};
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use timer_adapters::quinn::TimedRuntime;
use timer_core::{Timer, time};

/// A runtime whose sockets drop one of ten datagrams that they should send.
#[derive(Debug)]
struct Lossy;

impl Runtime for Lossy {
    fn new_timer(&self, _: Instant) -> Pin<Box<dyn AsyncTimer>> {
        unreachable!("the timers come from elsewhere")
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let socket = TokioRuntime.wrap_udp_socket(socket)?;
        Ok(Arc::new(LossySocket { socket, sent: AtomicU64::new(0) }))
    }
}

#[derive(Debug)]
struct LossySocket {
    socket: Arc<dyn AsyncUdpSocket>,
    sent: AtomicU64,
}

impl AsyncUdpSocket for LossySocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit) -> io::Result<()> {
        // A fixed sequence that looks random, so that each run loses the same packets.
        // ORDERING: Relaxed, only counted.
        let nth = self.sent.fetch_add(1, Ordering::Relaxed);
        if (nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xff < 26 {
            Ok(())
        } else {
            self.socket.try_send(transmit)
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

struct Pair {
    server: Endpoint,
    client: Endpoint,
    address: SocketAddr,
}

/// A server and a client with timers of `timer` and the sockets of `runtime`.
fn endpoints<R: Runtime>(runtime: fn() -> R, timer: &Timer, idle: Duration) -> Pair {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(certified.cert);
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(default_provider());
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(idle.try_into().unwrap()));
    let transport = Arc::new(transport);

    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&::quinn::rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    let mut server = ::quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap()));
    server.transport_config(transport.clone());

    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&::quinn::rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ::quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).unwrap()));
    client.transport_config(transport);

    let endpoint = |server| {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let timed = Arc::new(TimedRuntime::new(runtime(), timer.clone()));
        Endpoint::new(EndpointConfig::default(), server, socket, timed).unwrap()
    };
    let server = endpoint(Some(server));
    let mut other = endpoint(None);
    other.set_default_client_config(client);
    Pair { address: server.local_addr().unwrap(), server, client: other }
}

/// Sends `size` bytes to the server, which returns their number. Returns both connections.
async fn upload(pair: &Pair, size: usize) -> [::quinn::Connection; 2] {
    let server = async {
        let connection = pair.server.accept().await.unwrap().await.unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        let bytes = receive.read_to_end(size).await.unwrap();
        send.write_all(&bytes.len().to_be_bytes()).await.unwrap();
        send.finish().unwrap();
        let _ = send.stopped().await;
        connection
    };
    let client = async {
        let connection = pair.client.connect(pair.address, "localhost").unwrap().await.unwrap();
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&vec![7; size]).await.unwrap();
        send.finish().unwrap();
        let reply = receive.read_to_end(8).await.unwrap();
        assert_eq!(reply, size.to_be_bytes());
        connection
    };
    time::timeout(LONG, futures::future::join(server, client)).await.expect("in time").into()
}

#[test]
fn endpoints_exchange_data_and_close_when_idle() {
    runtime().block_on(async {
        let timer = Timer::new();
        let idle = Duration::from_secs(2);
        let pair = endpoints(|| TokioRuntime, &timer, idle);
        let [_server, connection] = upload(&pair, 1 << 20).await;
        let begin = Instant::now();
        let closed = time::timeout(LONG, connection.closed()).await.expect("the connection never closed");
        assert!(matches!(closed, ConnectionError::TimedOut), "{closed:?}");
        assert!(begin.elapsed() >= idle / 2, "{:?}", begin.elapsed());
        assert!(timer.stats().scheduled > 0, "its timers were ours");
    });
}

#[test]
fn lost_packets_are_sent_again() {
    runtime().block_on(async {
        let timer = Timer::new();
        let pair = endpoints(|| Lossy, &timer, LONG);
        let [_server, connection] = upload(&pair, 256 << 10).await;
        assert!(connection.stats().path.lost_packets > 0, "nothing was lost");
    });
}
