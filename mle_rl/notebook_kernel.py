"""One kernel that executes one notebook: progress, interruption, and no message that is lost.

`mle_rl.notebook_runner` says what to execute; this says how.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty
from typing import Protocol

from nbclient import NotebookClient

INTERRUPT_GRACE_S = 10.0
"""How long an interrupted cell may take to close its workers before its kernel is killed."""
_LOOK_AGAIN_S = 2.0


class Progress(Protocol):
    """Is told which cell runs and what it printed last; see `mle_rl.notebook_runner.Progress`."""

    title: str
    cell: int
    last_line: str

    def tick(self) -> None: ...


class KernelClient(NotebookClient):
    """A client that tells ``progress`` which cell runs and what it printed last."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, *args, progress: Progress, **kwargs):
        super().__init__(*args, **kwargs)
        self.progress = progress
        self.create_kernel_manager().transport_encryption = "auto"  # the kernel's ports are TCP

    async def async_execute(self, *args, **kwargs):
        self.loop = asyncio.get_running_loop()
        return await super().async_execute(*args, **kwargs)

    async def async_start_new_kernel_client(self):
        client = await super().async_start_new_kernel_client()
        look_again(client.shell_channel)
        return client

    async def async_execute_cell(self, cell, *args, **kwargs):
        if cell.cell_type == "code":
            self.progress.cell += 1
            self.progress.last_line = ""
        return await super().async_execute_cell(cell, *args, **kwargs)

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "stream":
            lines = msg["content"]["text"].replace("\r", "\n").split("\n")
            self.progress.last_line = next(
                (line.strip() for line in reversed(lines) if line.strip()), self.progress.last_line
            )
        return super().process_message(msg, cell, cell_index)


def look_again(channel) -> None:
    """Makes a waiting ``channel.get_msg`` look into its socket every other second.

    A widget's output area answers the kernel over the socket on which the reply to a cell is
    awaited. Sending takes the socket's wake-up with it (ZeroMQ's descriptor is edge-triggered), so
    a reply that came in the same instant lies there while its reader sleeps for ever.
    """
    wait_for = channel.get_msg

    async def get_msg(timeout: float | None = None) -> dict:
        while timeout is None or timeout > _LOOK_AGAIN_S:
            with contextlib.suppress(Empty):
                return await wait_for(_LOOK_AGAIN_S)
            timeout = None if timeout is None else timeout - _LOOK_AGAIN_S
        return await wait_for(timeout)

    channel.get_msg = get_msg


def drive(client: KernelClient, environment: Mapping[str, str], progress: Progress) -> None:
    """Execute in a thread, so that Ctrl-C comes here and the kernel can be closed in order."""
    with ThreadPoolExecutor(1) as thread:
        execution = thread.submit(lambda: asyncio.run(client.async_execute(env=dict(environment))))
        try:
            while not wait([execution], timeout=1).done:
                progress.tick()
        except KeyboardInterrupt:
            _stop(client, execution)
            raise KeyboardInterrupt(
                f"Interrupted in notebook {progress.title.split()[-1]}, cell {progress.cell}"
            ) from None
        execution.result()


def _stop(client: KernelClient, execution: Future) -> None:
    """Interrupt the running cell, which lets it close its workers; kill it when it does not."""
    if client.km is None:
        return
    for stop in (client.km.interrupt_kernel, lambda: client.km.shutdown_kernel(now=True)):
        try:
            asyncio.run_coroutine_threadsafe(stop(), client.loop)
            if wait([execution], timeout=INTERRUPT_GRACE_S).done:
                return
        except KeyboardInterrupt:  # asked a second time: kill now
            continue
