//! A server that answers one question, in the place of one that is too old to be installed.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use timer_durable_postgres::ConnectError;

/// The type codes of `int4`, `text` and `bool`.
const COLUMNS: [i32; 4] = [23, 25, 16, 16];

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// Returns the answer to a statement without parameters, in the binary format.
fn answer(values: &[&[u8]; 4]) -> Vec<u8> {
    let count = 4_i16.to_be_bytes();
    let mut names = count.to_vec();
    let mut row = count.to_vec();
    for (kind, value) in COLUMNS.iter().zip(values) {
        let table = 0_i32;
        let column = 0_i16;
        let length = -1_i16;
        let modifier = -1_i32;
        let format = 1_i16;
        names.extend(b"c\0");
        names.extend([&table.to_be_bytes()[..], &column.to_be_bytes(), &kind.to_be_bytes()].concat());
        names.extend([&length.to_be_bytes()[..], &modifier.to_be_bytes(), &format.to_be_bytes()].concat());
        row.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
        row.extend(*value);
    }
    [
        message(b'1', b""),
        message(b'2', b""),
        message(b'T', &names),
        message(b'D', &row),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ]
    .concat()
}

fn read(stream: &mut TcpStream, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_length(stream: &mut TcpStream) -> io::Result<u32> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    Ok(u32::from_be_bytes(length) - 4)
}

fn serve(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    let startup = read_length(&mut stream)?;
    read(&mut stream, startup)?;
    stream.write_all(&message(b'R', &0_i32.to_be_bytes()))?;
    stream.write_all(&message(b'Z', b"I"))?;
    loop {
        let kind = read(&mut stream, 1)?[0];
        let length = read_length(&mut stream)?;
        read(&mut stream, length)?;
        // The end of a question.
        if kind == b'S' {
            stream.write_all(answer)?;
        }
    }
}

#[test]
fn an_old_server_is_refused_with_its_version() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("postgres://user@{}/shop", listener.local_addr().unwrap());
    let answer = answer(&[&130_018_i32.to_be_bytes(), b"13.18", &[0], &[1]]);
    let server = std::thread::spawn(move || serve(listener.accept()?.0, &answer));
    let error = crate::connected(&url).expect_err("version 13 is too old");
    assert!(matches!(&error, ConnectError::ServerVersion { found, .. } if found == "13.18"), "{error}");
    assert!(error.to_string().contains("has version 13.18; PostgreSQL 14 or newer is needed"), "{error}");
    assert!(server.join().unwrap().is_err(), "the client has gone");
}
