"""The wake-up that a sending widget takes from a waiting reader must not be the reader's end."""

import asyncio
import time
from queue import Empty

import pytest
import zmq
import zmq.asyncio
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.session import Session

from mle_rl.notebook_kernel import look_again

TIMEOUT_S = 15.0


@pytest.fixture
def ends():
    """A kernel's socket and the channel of its client."""
    with zmq.asyncio.Context() as context:
        kernel = zmq.Context.shadow(context.underlying).socket(zmq.ROUTER)
        port = kernel.bind_to_random_port("tcp://127.0.0.1")
        client = context.socket(zmq.DEALER)
        client.connect(f"tcp://127.0.0.1:{port}")
        session = Session(key=b"key")
        yield kernel, AsyncZMQSocketChannel(client, session), session
        kernel.close(linger=0)
        client.close(linger=0)


async def _lose_the_wake_up(kernel, channel, session, timeout_s: float):
    """A reply arrives, and before its reader gets its turn something is sent on its socket."""
    session.send(channel.socket, "hello")
    identity = kernel.recv_multipart()[0]
    reader = asyncio.create_task(channel.get_msg())
    await asyncio.sleep(0.05)
    session.send(kernel, "execute_reply", ident=identity)
    socket = zmq.Socket.shadow(channel.socket.underlying)
    while not socket.get(zmq.EVENTS) & zmq.POLLIN:  # the event loop stands still meanwhile
        time.sleep(0.01)
    session.send(channel.socket, "comm_msg")
    return await asyncio.wait_for(reader, timeout_s)


def test_a_reply_is_found_whose_wake_up_was_taken(ends):
    look_again(ends[1])
    message = asyncio.run(_lose_the_wake_up(*ends, TIMEOUT_S))
    assert message["header"]["msg_type"] == "execute_reply"


def test_without_looking_again_the_reader_sleeps_on(ends):
    with pytest.raises(TimeoutError):  # once this fails, `look_again` is needed no more
        asyncio.run(_lose_the_wake_up(*ends, 3.0))


def test_waiting_ends_when_it_was_told_to(ends):
    look_again(ends[1])
    with pytest.raises(Empty):
        asyncio.run(ends[1].get_msg(timeout=0.1))
    with pytest.raises(Empty):
        asyncio.run(ends[1].get_msg(timeout=2.1))
