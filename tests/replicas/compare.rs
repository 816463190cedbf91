//! The last guard needs no lock at all: a write asks that every row is still as it was read.

use serde_json::json;

use crate::support::{A, Answer, Attempt, B, Database, Room, World};

on_both_databases!(
    off_a_seat_is_sold_twice,
    on_the_second_write_is_refused,
    off_an_update_is_lost,
    on_no_update_is_lost,
    on_a_room_laid_out_anew_is_another_one,
    on_a_busy_room_laid_out_anew_is_another_one,
);

async fn off_a_seat_is_sold_twice(database: Database) {
    let world = World::shared(database).await;
    let room = unlocked(&world, false).await;
    assert_eq!(both_book(&room).await, ["booked", "booked"]);
    room.audit().await.sold_twice("A1", &["Ana", "Ben"]);
}

async fn on_the_second_write_is_refused(database: Database) {
    let world = World::shared(database).await;
    let room = unlocked(&world, true).await;
    assert_eq!(both_book(&room).await, ["booked", "row-changed"]);
    room.audit().await.is_clean_after(1);
}

async fn off_an_update_is_lost(database: Database) {
    let world = World::shared(database).await;
    let room = unlocked(&world, false).await;
    assert_eq!(both_transfer(&room).await, ["transferred", "transferred"]);
    room.audit().await.only_wrong("alice", "20.00", "-60.00");
}

async fn on_no_update_is_lost(database: Database) {
    let world = World::shared(database).await;
    let room = unlocked(&world, true).await;
    assert_eq!(both_transfer(&room).await, ["row-changed", "transferred"]);
    assert_eq!(room.balance("alice").await, "20.00");
    room.audit().await.is_clean_after(1);
}

/// Rows that are made anew are at no version that anybody has read before.
async fn on_a_room_laid_out_anew_is_another_one(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "compare": true, "fencing": "off"});
    let room = world.room_with("anew", switches).await;
    let gift = room.transfers("alice", "bob", "80.00").on(A);
    let gift = gift.pausing_at("before_write").at_gate("gift").starts();
    room.one_waits_at_gate("gift", A, "before_write").await;
    let rich = json!({"wallets": [{"name": "alice", "balance": "500.00"}, {"name": "bob", "balance": "0.00"}]});
    assert_eq!(room.is_made(rich).await.status, 200);
    room.opens("gift").await;
    gift.answer().await.is("row-changed");
    assert_eq!(room.balance("alice").await, "500.00");
    room.audit().await.is_clean_after(0);
}

/// Also where versions have run ahead of the epoch, at which those of a new room begin.
async fn on_a_busy_room_laid_out_anew_is_another_one(database: Database) {
    let world = World::own(database).start().await;
    let switches = json!({"locking": false, "compare": true, "fencing": "off"});
    let room = world.room_with("busy", switches).await;
    // The epoch of the next layout is one above the present one; versions get there, and beyond.
    for _ in 0..2 {
        let gift = room.transfers("alice", "bob", "1.00").await;
        gift.is("transferred");
    }
    for transfers in 0..3 {
        let gift = room.transfers("alice", "bob", "80.00").on(A);
        let gift = gift.pausing_at("before_write").at_gate("gift").starts();
        room.one_waits_at_gate("gift", A, "before_write").await;
        let rich = json!({"wallets": [{"name": "alice", "balance": "500.00"}, {"name": "bob", "balance": "0.00"}]});
        assert_eq!(room.is_made(rich).await.status, 200);
        for _ in 0..transfers {
            room.transfers("alice", "bob", "1.00")
                .await
                .is("transferred");
        }
        room.opens("gift").await;
        gift.answer().await.is("row-changed");
        room.audit().await.is_clean_after(transfers);
        let switches = json!({"locking": false, "compare": true, "fencing": "off"});
        room.switches(switches).await;
    }
}

async fn unlocked(world: &World, compare: bool) -> Room {
    let switches = json!({"locking": false, "compare": compare});
    world.room_with("compare", switches).await
}

async fn both_book(room: &Room) -> [String; 2] {
    let ana = room.books("Ana", "A1").on(A);
    let ben = room.books("Ben", "A1").on(B);
    both_past_their_read(room, ana, ben).await
}

async fn both_transfer(room: &Room) -> [String; 2] {
    let to_bob = room.transfers("alice", "bob", "80.00").on(A);
    let to_carol = room.transfers("alice", "carol", "80.00").on(B);
    both_past_their_read(room, to_bob, to_carol).await
}

/// What both got, in alphabetical order, when neither wrote before the other one had read.
async fn both_past_their_read(room: &Room, one: Attempt, other: Attempt) -> [String; 2] {
    let one = one.pausing_at("after_read").at_gate("both").starts();
    let other = other.pausing_at("after_read").at_gate("both").starts();
    room.both_wait_at_gate("both", "after_read").await;
    room.opens("both").await;
    let answers: [Answer; 2] = [one.answer().await, other.answer().await];
    let mut outcomes = answers.map(|answer| answer.outcome());
    outcomes.sort();
    outcomes
}
