"""What goes between the service and a worker: frames, each a length and a struct.

A connection carries one :class:`Request`. The worker says any number of
:class:`~.ops.Progress` and then one :class:`Answer` or :class:`Refusal`. An upload's
chunk follows the :class:`Go` of the worker, as it is, through a pipe whose other end
came with the request. What is downloaded follows the first answer as
:data:`pieces <PIECE>`, each with its length, up to one of length zero; a second answer
or refusal says how it ended.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from backendai_hub.core.errors import HubError
from backendai_hub.storage.ops import AnyOperation, Operation, Progress

LENGTH: Final = struct.Struct(">I")
LARGEST_FRAME: Final = 64 << 20
PIECE: Final = 1 << 20
"""How much is read and sent at once."""
_SNDBUFFORCE: Final = 32


class Request(msgspec.Struct, frozen=True):
    """What is asked."""

    operation: AnyOperation


class Go(msgspec.Struct, frozen=True, tag="go"):
    """The stream may begin."""


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """It is done; ``value`` is what the operation's type of answer says, encoded."""

    value: msgspec.Raw


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """It was not done, and why."""

    code: str
    message: str
    fields: dict[str, Any] = {}


Reply = Progress | Go | Answer | Refusal

_encoder: Final = msgspec.msgpack.Encoder()
_requests: Final = msgspec.msgpack.Decoder(Request)
_replies: Final[msgspec.msgpack.Decoder[Reply]] = msgspec.msgpack.Decoder(Reply)


def widen(sock: socket.socket) -> None:
    """Have room for several pieces in a connection, so that nobody waits for each."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SNDBUFFORCE, 4 * PIECE)
    except OSError:  # only root may go beyond the system's limit
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * PIECE)


def frame(message: Request | Reply) -> bytes:
    """Write *message* down, with its length in front."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


def read_request(body: bytes) -> Operation[Any]:
    """Read what was asked."""
    return _requests.decode(body).operation


def read_reply(body: bytes) -> Reply:
    """Read what a worker said."""
    return _replies.decode(body)


def read_answer(operation: Operation[Any], answer: Answer) -> Any:
    """Return an answer's value, as *operation* promises it."""
    return msgspec.msgpack.decode(answer.value, type=operation.answer)


def answer_of(value: Any) -> Answer:
    """Write down what an operation says."""
    return Answer(msgspec.Raw(_encoder.encode(value)))


def refusal_of(error: HubError) -> Refusal:
    """Write a refusal down."""
    return Refusal(error.code, error.message, error.fields)


def error_of(refusal: Refusal) -> HubError:
    """Return the error that was written down, of its own class again."""
    cls = _classes().get(refusal.code, HubError)
    return cls(refusal.message, **refusal.fields)


def _classes() -> dict[str, type[HubError]]:
    return {cls.code: cls for cls in reversed(list(_descend(HubError)))}


def _descend(cls: type[HubError]) -> Iterator[type[HubError]]:
    for child in cls.__subclasses__():
        yield child
        yield from _descend(child)
