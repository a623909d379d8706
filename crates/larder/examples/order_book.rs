//! An order book on typed tables: `cargo run --release -p larder --features serde --example
//! order_book [ORDERS [TRADERS]]`.
//!
//! ```text
//!  traders ── transactions ──> book      {Place}          → Order     who waits, best first
//!                              accounts  {Trader}         → Account   money and shares
//!                              trades    {Number}         → Trade
//!  auditor <── snapshots ───── all three, of one instant
//! ```
//!
//! The keys of the book are in the order in which orders are served: the better price first, then
//! the older order. So the best offer is the first row of a range, and a match is a walk over that
//! range. A trader matches a new order with those that wait, and leaves the rest of it in the book,
//! in one transaction. The auditor takes snapshots meanwhile: money and shares are neither made nor
//! lost, the book is not crossed, and the trades are as many as their numbers say.

use larder::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[derive(OrderedKey, Clone, Copy, Debug, PartialEq)]
enum Side {
    Sell,
    Buy,
}

/// Where an order stands in the book: the lesser is served first.
#[derive(OrderedKey, Clone, Copy, Debug)]
struct Place {
    side: Side,
    /// The price of who sells; of who buys below zero, as the higher is better there.
    rank: i64,
    number: u64,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
struct Order {
    trader: String,
    price: i64,
    quantity: i64,
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default)]
struct Account {
    money: i64,
    shares: i64,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
struct Trade {
    buyer: String,
    seller: String,
    price: i64,
    quantity: i64,
}

/// The tables, or a transaction's views of them.
struct Market {
    book: Typed<Place, Order>,
    accounts: Typed<String, Account>,
    trades: Typed<u64, Trade>,
}

impl Market {
    fn new(larder: &Larder) -> Result<Self, Error> {
        Ok(Market {
            book: larder.typed("book")?,
            accounts: larder.typed("accounts")?,
            trades: larder.typed("trades")?,
        })
    }

    /// Matches an order with those that wait on the other side, and leaves what is left of it in
    /// the book. How many trades it made.
    fn place(&self, number: u64, side: Side, order: &Order) -> Result<usize, Error> {
        let (book, accounts, trades) = (&self.book, &self.accounts, &self.trades);
        let larder = book.table().larder();
        larder.transaction(&[book.table(), accounts.table(), trades.table()], |views| {
            let [book, accounts, trades] = views else {
                return Err(Error::NoTable);
            };
            let market = Market {
                book: self.book.on(book)?,
                accounts: self.accounts.on(accounts)?,
                trades: self.trades.on(trades)?,
            };
            market.settle(number, side, order.clone())
        })
    }

    fn settle(&self, number: u64, side: Side, mut order: Order) -> Result<usize, Error> {
        let other = match side {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        };
        // All of the other side that are good enough, best first.
        let first = Place::new(other, i64::MIN, 0);
        let limit = Place::new(other, Place::rank(other, order.price), u64::MAX);
        let mut made = 0;
        for waiting in self.book.range(first..=limit)? {
            if order.quantity == 0 {
                break;
            }
            let (place, mut waiting) = waiting?;
            let quantity = order.quantity.min(waiting.quantity);
            let (buyer, seller) = match side {
                Side::Buy => (&order.trader, &waiting.trader),
                Side::Sell => (&waiting.trader, &order.trader),
            };
            let trade = Trade {
                buyer: buyer.clone(),
                seller: seller.clone(),
                price: waiting.price,
                quantity,
            };
            self.book_trade(&trade)?;
            made += 1;
            order.quantity -= quantity;
            waiting.quantity -= quantity;
            match waiting.quantity {
                0 => drop(self.book.remove(&place)?),
                _ => self.book.put(&place, &waiting)?,
            }
        }
        if order.quantity > 0 {
            let place = Place::new(side, Place::rank(side, order.price), number);
            self.book.put(&place, &order)?;
        }
        Ok(made)
    }

    fn book_trade(&self, trade: &Trade) -> Result<(), Error> {
        let money = trade.price * trade.quantity;
        let deal = |trader: &str, money: i64, shares: i64| {
            self.accounts.compute(trader, |account| {
                let account = account.unwrap_or_default();
                Some(Account {
                    money: account.money + money,
                    shares: account.shares + shares,
                })
            })
        };
        deal(&trade.buyer, -money, trade.quantity)?;
        deal(&trade.seller, money, -trade.quantity)?;
        let last = self.trades.last()?.map_or(0, |(number, _)| number);
        self.trades.put(&(last + 1), trade)
    }

    /// Looks at all tables as of one instant. What is wrong, if anything is.
    fn audit(&self) -> Result<Option<String>, Error> {
        let tables = [
            self.book.table(),
            self.accounts.table(),
            self.trades.table(),
        ];
        let snapshots = self.book.table().larder().snapshot(&tables)?;
        let [book, accounts, trades] = &snapshots[..] else {
            return Err(Error::NoTable);
        };
        let (book, trades) = (self.book.on(book)?, self.trades.on(trades)?);
        let mut sum = Account::default();
        for row in self.accounts.on(accounts)?.iter() {
            let (_, account) = row?;
            sum.money += account.money;
            sum.shares += account.shares;
        }
        if (sum.money, sum.shares) != (0, 0) {
            return Ok(Some(format!("made or lost: {sum:?}")));
        }
        let last = trades.last()?.map_or(0, |(number, _)| number);
        if last != trades.len() as u64 {
            return Ok(Some(format!("trade {last} of {}", trades.len())));
        }
        let best = |side| {
            let all = Place::new(side, i64::MIN, 0)..=Place::new(side, i64::MAX, u64::MAX);
            book.range(all)?.next().transpose()
        };
        if let (Some((_, sell)), Some((_, buy))) = (best(Side::Sell)?, best(Side::Buy)?) {
            if sell.price <= buy.price {
                return Ok(Some(format!("{sell:?} and {buy:?} both wait")));
            }
        }
        Ok(None)
    }
}

impl Place {
    fn new(side: Side, rank: i64, number: u64) -> Self {
        Place { side, rank, number }
    }

    fn rank(side: Side, price: i64) -> i64 {
        match side {
            Side::Sell => price,
            Side::Buy => -price,
        }
    }
}

/// Places so many orders from so many threads, and audits meanwhile; the trades that were made.
/// Whatever is wrong is an error.
pub fn run(orders: u64, traders: u64) -> Result<u64, String> {
    let market = Market::new(&Larder::new()).map_err(|error| error.to_string())?;
    let stop = AtomicBool::new(false);
    let trade = |trader: u64| -> Result<u64, Error> {
        let (mut chance, mut made) = (trader + 1, 0);
        for number in (trader..orders).step_by(traders as usize) {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let random = (chance >> 33) as i64;
            let side = if random % 2 == 0 {
                Side::Sell
            } else {
                Side::Buy
            };
            let order = Order {
                trader: format!("trader {trader}"),
                price: 100 + random / 2 % 9,
                quantity: 1 + random / 32 % 10,
            };
            made += market.place(number, side, &order)? as u64;
        }
        Ok(made)
    };
    let audit = || -> Result<Option<String>, Error> {
        // Ordering: Relaxed; that the traders are done is all it says.
        while !stop.load(Ordering::Relaxed) {
            if let Some(wrong) = market.audit()? {
                return Ok(Some(wrong));
            }
        }
        market.audit()
    };
    thread::scope(|scope| {
        let auditor = scope.spawn(audit);
        let trade = &trade;
        let traders: Vec<_> = (0..traders)
            .map(|n| scope.spawn(move || trade(n)))
            .collect();
        let made: Vec<_> = traders.into_iter().map(|trader| trader.join()).collect();
        stop.store(true, Ordering::Relaxed);
        let wrong = auditor.join().map_err(|_| "the auditor panicked")?;
        if let Some(wrong) = wrong.map_err(|error| error.to_string())? {
            return Err(wrong);
        }
        let mut sum = 0;
        for made in made {
            let made = made.map_err(|_| "a trader panicked")?;
            sum += made.map_err(|error| error.to_string())?;
        }
        match market.trades.len() as u64 {
            trades if trades == sum => Ok(sum),
            trades => Err(format!("{trades} trades, of {sum} that were made")),
        }
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse());
    let (orders, traders) = match (arguments.next(), arguments.next()) {
        (None, _) => (100_000, 4),
        (Some(Ok(orders)), None) => (orders, 4),
        (Some(Ok(orders)), Some(Ok(traders @ 1..))) => (orders, traders),
        _ => {
            eprintln!("order_book [ORDERS [TRADERS]]: two numbers");
            std::process::exit(2);
        }
    };
    match run(orders, traders) {
        Ok(trades) => {
            println!("{orders} orders of {traders} traders: {trades} trades, all is well")
        }
        Err(wrong) => {
            eprintln!("wrong: {wrong}");
            std::process::exit(1);
        }
    }
}
