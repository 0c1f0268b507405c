"""Reading server-sent events."""

from backendai_hub.client.sse import ServerSentEvent, read_events


async def read(text):
    async def lines():
        for line in text.encode().splitlines(keepends=True):
            yield line

    return [event async for event in read_events(lines())]


async def test_events_carry_id_kind_and_all_their_lines():
    events = await read("id: 7\nevent: session\ndata: one\ndata: two\n\n")

    assert events == [ServerSentEvent(id="7", event="session", text="one\ntwo")]


async def test_comments_are_no_events():
    assert await read(": keep-alive\n\n: again\n\n") == []


async def test_the_id_stays_until_another_comes():
    first, second = await read("id: 3\ndata: a\n\ndata: b\n\n")

    assert (first.id, second.id) == ("3", "3")


async def test_an_event_cut_off_by_the_end_is_dropped():
    assert await read("data: whole\n\ndata: ha") == [ServerSentEvent(text="whole")]


async def test_windows_line_ends_and_missing_spaces_are_read():
    assert await read("data:x\r\n\r\n") == [ServerSentEvent(text="x")]
