//! The official Rust SDK as a judge:
//!
//!     peer client ERA COMMAND...|URL                its client against Segue's server
//!     peer record ERA COMMAND...|URL <STEPS         its client, told what to do
//!     peer server [--versions A,B] [--http PORT]    its server for Segue's client
#![allow(deprecated)] // for parts that only the handshake eras have

mod calls;
mod cells;
mod client;
mod items;
mod notes;
mod record;
mod server;
mod server_items;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("client") if args.len() > 2 => client::judge(&args[1], &args[2..]).await,
        Some("record") if args.len() > 2 => {
            if let Err(why) = record::record(&args[1], &args[2..]).await {
                eprintln!("peer: {why}");
                std::process::exit(1);
            }
        }
        Some("server") => server::serve(&args[1..]).await,
        _ => {
            eprintln!("usage: peer client|record ERA COMMAND...|URL");
            eprintln!("       peer server [--versions A,B] [--http PORT]");
            std::process::exit(2);
        }
    }
}
