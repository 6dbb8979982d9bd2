"""An xxl-job executor on pyxxl, for carillon's system tests.

Its handlers do what their names say, and tell each start, interrupt and end on stdout as one line of JSON; see ../README.md.
Most are coroutines, which pyxxl cancels. `thread_sleep` and `thread_stubborn` are plain functions, which it runs in a thread
and can only ask to stop.
"""

import asyncio
import functools
import json
import os
import sys
import threading
import time

from pyxxl import ExecutorConfig, PyxxlRunner
from pyxxl.ctx import g

SLOW_EXIT_WAITS_S = 60

HANDLERS = {}
STDOUT = threading.Lock()
# The server under pyxxl prints on stdout, where only the probe's lines are to be.
EVENTS, sys.stdout = sys.stdout, sys.stderr


class Failure(Exception):
    """A failure that a handler answers. pyxxl knows no other way than an exception."""


def tell(event, **fields):
    with STDOUT:
        line = {"event": event, **fields, "at": time.time_ns() // 1_000_000}
        EVENTS.write(json.dumps(line, ensure_ascii=False) + "\n")
        EVENTS.flush()


def about(handler):
    run = g.xxl_run_data
    return {
        "handler": handler,
        "log": run.logId,
        "param": run.executorParams or "",
        "index": run.broadcastIndex or 0,
        "total": run.broadcastTotal or 0,
    }


class Told:
    """Tells of a run before and after it."""

    def __init__(self, handler):
        self.fields = about(handler)

    def __enter__(self):
        tell("start", **self.fields)

    def __exit__(self, kind, error, trace):
        if kind is None:
            result = "succeeded"
        elif issubclass(kind, Failure):
            result = "failed"
        elif issubclass(kind, asyncio.CancelledError):
            result = "interrupted"
        else:
            result = "thrown"
        tell("end", **self.fields, result=result)


def handler(body):
    """Makes a handler of a coroutine or a function that takes the parameter."""
    name = body.__name__.removesuffix("_")
    if asyncio.iscoroutinefunction(body):

        @functools.wraps(body)
        async def told():
            with Told(name):
                return await body(g.xxl_run_data.executorParams or "")

    else:

        @functools.wraps(body)
        def told():
            with Told(name):
                return body(g.xxl_run_data.executorParams or "")

    HANDLERS[name] = told
    return body


async def pause(name, seconds):
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        tell("interrupt", **about(name))
        raise


@handler
async def echo(param):
    g.logger.info(param)
    return param


@handler
async def shard(_):
    run = g.xxl_run_data
    answer = f"{run.broadcastIndex}/{run.broadcastTotal}"
    g.logger.info(answer)
    return answer


@handler
async def sleep(param):
    await pause("sleep", int(param) / 1000)
    return "slept"


@handler
async def stubborn(param):
    until = time.monotonic() + int(param) / 1000
    while (left := until - time.monotonic()) > 0:
        try:
            await pause("stubborn", left)
        except asyncio.CancelledError:
            pass
    return "stubborn to the end"


@handler
async def fail(param):
    raise Failure(param or "asked to fail")


@handler
async def throw(param):
    raise RuntimeError(param or "asked to throw")


@handler
async def lines(param):
    count, _, wait_ms = param.partition(",")
    for line in range(1, int(count) + 1):
        g.logger.info("line %s of %s", line, count)
        if wait_ms:
            await pause("lines", int(wait_ms) / 1000)
    return f"{count} lines"


@handler
async def slow_exit(param):
    try:
        await pause("slow_exit", SLOW_EXIT_WAITS_S)
    except asyncio.CancelledError:
        await asyncio.sleep(int(param) / 1000)
        raise
    return "nobody asked"


@handler
def thread_sleep(param):
    if g.cancel_event.wait(int(param) / 1000):
        tell("interrupt", **about("thread_sleep"))
        raise Failure("interrupted")
    return "slept"


@handler
def thread_stubborn(param):
    until = time.monotonic() + int(param) / 1000
    if g.cancel_event.wait(int(param) / 1000):
        tell("interrupt", **about("thread_stubborn"))
        time.sleep(max(0, until - time.monotonic()))
    return "stubborn to the end"


def needed(name):
    value = os.environ.get(name, "")
    if not value:
        sys.exit(f"probe: {name} is missing")
    return value


def main():
    logs = needed("PROBE_LOGS")
    os.makedirs(logs, exist_ok=True)
    ip = os.environ.get("PROBE_IP", "127.0.0.1")
    port = int(needed("PROBE_PORT"))
    runner = PyxxlRunner(
        ExecutorConfig(
            xxl_admin_baseurl=needed("PROBE_ADMIN").rstrip("/") + "/api/",
            executor_app_name=needed("PROBE_APP"),
            access_token=os.environ.get("PROBE_TOKEN") or None,
            executor_url=f"http://{ip}:{port}",
            executor_listen_host=ip,
            executor_listen_port=port,
            executor_log_path=os.path.join(logs, "pyxxl.log"),
            log_local_dir=logs,
            graceful_close=os.environ.get("PROBE_GRACEFUL") == "1",
            # It would take any variable of the environment that is named like one of its settings.
            dotenv_try=False,
        )
    )
    for name, body in HANDLERS.items():
        runner.register(name=name)(body)
    tell("up")
    # It stops itself at SIGTERM.
    runner.run_executor()
    tell("stopped")


main()
