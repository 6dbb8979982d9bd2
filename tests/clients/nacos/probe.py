"""An instance of a service in Nacos, registered by nacos-sdk-python, for carillon's system tests.

It registers with heartbeats, as a service does, and leaves at SIGTERM; it tells both on stdout as one line of JSON. Settings:
NACOS_SERVERS (as the library takes them), NACOS_NAMESPACE, NACOS_USERNAME, NACOS_PASSWORD, NACOS_GROUP, NACOS_SERVICE,
NACOS_METADATA (JSON), NACOS_LOGS (a folder), PROBE_IP and PROBE_PORT (what it registers).
"""

import json
import os
import signal
import sys
import threading
import time

from nacos import NacosClient

BEATS_EVERY_S = 1


def tell(event):
    sys.stdout.write(json.dumps({"event": event, "at": time.time_ns() // 1_000_000}) + "\n")
    sys.stdout.flush()


def main():
    told_to_leave = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told_to_leave.set())
    settings = os.environ
    client = NacosClient(
        settings["NACOS_SERVERS"],
        namespace=settings.get("NACOS_NAMESPACE"),
        username=settings.get("NACOS_USERNAME"),
        password=settings.get("NACOS_PASSWORD"),
        logDir=settings["NACOS_LOGS"],
    )
    service, group = settings["NACOS_SERVICE"], settings.get("NACOS_GROUP", "DEFAULT_GROUP")
    ip, port = settings["PROBE_IP"], int(settings["PROBE_PORT"])
    metadata = json.loads(settings.get("NACOS_METADATA", "{}"))
    registered = client.add_naming_instance(
        service, ip, port, metadata=metadata, group_name=group, heartbeat_interval=BEATS_EVERY_S
    )
    if not registered:
        sys.exit("it was not registered")
    tell("registered")
    told_to_leave.wait()
    client.remove_naming_instance(service, ip, port, group_name=group)
    tell("left")


if __name__ == "__main__":
    main()
