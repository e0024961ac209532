// SPDX-License-Identifier: Apache-2.0
//! The plain chain in Rust, through a trait object and a generic, and a caught panic where panics
//! unwind. Built with panic=unwind and with panic=abort.
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn leaf(n: u64) -> u64 {
    let mut x = n;
    for i in 0..1_000_000u64 {
        x = black_box(x.wrapping_mul(3).wrapping_add(i));
    }
    x
}

trait Step {
    fn step(&self, n: u64) -> u64;
}

struct Middle;

impl Step for Middle {
    #[inline(never)]
    fn step(&self, n: u64) -> u64 {
        black_box(leaf(n)) + 1
    }
}

#[inline(never)]
fn outer<T: Step + ?Sized>(s: &T, n: u64) -> u64 {
    black_box(s.step(n)) + 2
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let start = Instant::now();
    let step: Box<dyn Step> = Box::new(Middle);
    let mut n = 0;
    // Wall time: a Rust program has no CPU clock without a crate.
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        n += black_box(outer(black_box(&*step), n));
    }
    std::process::exit(if n == 1 { 1 } else { 0 });
}
