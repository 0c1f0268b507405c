"""What operators have said comes with the schema's sixth step, and goes with it."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import (
    Connection,
    create_engine,
    func,
    insert,
    inspect,
    pool,
    select,
    text,
)

from backendai_hub.core.ids import make_id
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from backendai_hub.db.tables import ReservationRow, ResourceGroupRow, StopRow
from tests.factories import START

ADDED = {"stops", "reservations"}


def fill(connection: Connection) -> None:
    """Drain a node and reserve it, as the operations would."""
    group, times = (
        make_id(1, b"0123456789"),
        {"created_at": START, "modified_at": START},
    )
    connection.execute(
        insert(ResourceGroupRow).values(id=group, name="a", name_key="a", **times)
    )
    connection.execute(
        insert(StopRow).values(
            kind="node",
            target_id="n1",
            actor="root",
            by_owner=False,
            since=START,
            reason="fans",
        )
    )
    connection.execute(
        insert(ReservationRow).values(
            id=make_id(2, b"0123456789"),
            name="fans",
            name_key="fans",
            kind="maintenance",
            resource_group_id=group,
            begins_at=START,
            ends_at=START + timedelta(hours=1),
            nodes=[],
            domains=[],
            projects=[],
            users=[],
            amounts={},
            held={"nodes": ["n1"]},
            **times,
        )
    )


def test_what_operators_have_said_is_kept_going_up_and_dropped_going_down(db_url: str):
    upgrade(db_url)
    engine = create_engine(sync_url(db_url), poolclass=pool.NullPool)
    with engine.begin() as connection:
        fill(connection)
    upgrade(db_url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT reason FROM stops")) == "fans"
        assert connection.scalar(text("SELECT name FROM reservations")) == "fans"

    downgrade(db_url, "0005")
    with engine.connect() as connection:
        assert ADDED.isdisjoint(inspect(connection).get_table_names())
    upgrade(db_url)
    with engine.connect() as connection:
        for table in (StopRow, ReservationRow):
            assert connection.scalar(select(func.count()).select_from(table)) == 0
    engine.dispose()
