//! Payloads, the data that timeouts keep for their handlers.

use std::error::Error;
use std::fmt;

/// A payload that cannot be written or read.
#[derive(Debug)]
pub struct PayloadError(Box<dyn Error + Send + Sync>);

impl PayloadError {
    /// Wraps the error of a codec, or a message.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }

    /// Returns the error of the codec.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }

    /// Reports bytes of another format than the type can read.
    #[must_use]
    pub fn format(found: i16, expected: i16) -> Self {
        Self::new(format!("the payload has format {found}, and the handler reads format {expected}"))
    }
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for PayloadError {}

/// Data that a timeout keeps for its handler.
///
/// Each timeout stores the bytes of its payload and a number for their format. Implement this trait
/// to use a codec of your own, or wrap any type that serde knows in `Json` (feature `serde`).
///
/// # Examples
///
/// A payload that can still be read after a field was added:
///
/// ```
/// use timer_durable::{Payload, PayloadError};
///
/// struct Order {
///     number: u32,
///     customer: Option<u32>,
/// }
///
/// impl Payload for Order {
///     const FORMAT: i16 = 101;
///
///     fn encode(&self) -> Result<Vec<u8>, PayloadError> {
///         Ok([self.number.to_be_bytes(), self.customer.unwrap_or(0).to_be_bytes()].concat())
///     }
///
///     fn decode(bytes: Vec<u8>, format: i16) -> Result<Self, PayloadError> {
///         let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
///         match format {
///             100 => Ok(Self { number: number(0).ok_or_else(|| PayloadError::new("too short"))?, customer: None }),
///             101 => Ok(Self { number: number(0).ok_or_else(|| PayloadError::new("too short"))?, customer: number(4) }),
///             other => Err(PayloadError::format(other, Self::FORMAT)),
///         }
///     }
/// }
/// ```
pub trait Payload: Sized + Send + 'static {
    /// The number of the format that [`encode`](Self::encode) writes. Numbers below 100 belong to
    /// this crate.
    const FORMAT: i16;

    /// Writes the payload.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] if the value cannot be written. The timeout is not scheduled then.
    fn encode(&self) -> Result<Vec<u8>, PayloadError>;

    /// Reads a payload that was written in `format`.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] if the bytes cannot be read. The attempt fails then, and the bytes are
    /// kept.
    fn decode(bytes: Vec<u8>, format: i16) -> Result<Self, PayloadError>;
}

/// A value that can be scheduled as a payload of the type `P`, such as a `str` as a `String`.
pub trait AsPayload<P: Payload> {
    /// Writes the payload in the format of `P`.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] if the value cannot be written.
    fn encode_as(&self) -> Result<Vec<u8>, PayloadError>;
}

impl<P: Payload> AsPayload<P> for P {
    fn encode_as(&self) -> Result<Vec<u8>, PayloadError> {
        self.encode()
    }
}

impl AsPayload<String> for str {
    fn encode_as(&self) -> Result<Vec<u8>, PayloadError> {
        Ok(self.as_bytes().to_vec())
    }
}

impl AsPayload<Vec<u8>> for [u8] {
    fn encode_as(&self) -> Result<Vec<u8>, PayloadError> {
        Ok(self.to_vec())
    }
}

impl Payload for () {
    const FORMAT: i16 = 0;

    fn encode(&self) -> Result<Vec<u8>, PayloadError> {
        Ok(Vec::new())
    }

    /// Accepts any bytes, for handlers that need none.
    fn decode(_: Vec<u8>, _: i16) -> Result<Self, PayloadError> {
        Ok(())
    }
}

impl Payload for Vec<u8> {
    const FORMAT: i16 = 1;

    fn encode(&self) -> Result<Vec<u8>, PayloadError> {
        Ok(self.clone())
    }

    /// Accepts the bytes of any format.
    fn decode(bytes: Vec<u8>, _: i16) -> Result<Self, PayloadError> {
        Ok(bytes)
    }
}

impl Payload for String {
    const FORMAT: i16 = 2;

    fn encode(&self) -> Result<Vec<u8>, PayloadError> {
        Ok(self.clone().into_bytes())
    }

    /// Accepts any format whose bytes are UTF-8.
    fn decode(bytes: Vec<u8>, _: i16) -> Result<Self, PayloadError> {
        Self::from_utf8(bytes).map_err(PayloadError::new)
    }
}

/// A payload that is written as JSON.
///
/// # Examples
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Json, MemoryStore, Topic};
///
/// #[derive(Serialize, Deserialize)]
/// struct Order {
///     number: u32,
/// }
///
/// const CLOSE: Topic<Json<Order>> = Topic::new("order.close");
///
/// let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<Json<Order>>| {
///     println!("closing order {}", due.payload().0.number);
///     Ok(())
/// });
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
/// timer.new_timeout(CLOSE, Duration::from_secs(1800), &Json(Order { number: 17 })).wait()?;
/// assert_eq!(driver.advance(Duration::from_secs(1800)), 1);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

#[cfg(feature = "serde")]
impl<T> Payload for Json<T>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
{
    const FORMAT: i16 = 3;

    fn encode(&self) -> Result<Vec<u8>, PayloadError> {
        serde_json::to_vec(&self.0).map_err(PayloadError::new)
    }

    fn decode(bytes: Vec<u8>, format: i16) -> Result<Self, PayloadError> {
        if format != Self::FORMAT {
            return Err(PayloadError::format(format, Self::FORMAT));
        }
        serde_json::from_slice(&bytes).map(Self).map_err(PayloadError::new)
    }
}
