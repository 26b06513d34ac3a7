"""Who can switch the straggler detector: a word to its port, or hanging up there."""

import json
import logging
import socket
import struct
import threading
import time

from megatron.core.utils import StragglerDetector

RANKS = 1
UPSTREAMS = ["megatron"]

logging.disable(logging.CRITICAL)
detector = StragglerDetector()
detector.rank, detector.port, detector._off, detector.toggle = 0, 0, False, False
before = set(threading.enumerate())
detector._controller()
(listener,) = set(threading.enumerate()) - before
host, port = detector.sock.getsockname()
print("bound_to =", json.dumps(host))
for name, word in (("after_a_word", b"x"), ("after_hanging_up", b"")):
    detector.toggle = False
    with socket.create_connection(("127.0.0.1", port)) as anybody:
        anybody.sendall(word)
        anybody.shutdown(socket.SHUT_WR)
        for _ in range(500):
            if not detector.toggle:
                time.sleep(0.01)
    print(name, "=", json.dumps(detector.toggle))
time.sleep(0.1)  # it has answered, and accepts again
detector.toggle = False
anybody = socket.create_connection(("127.0.0.1", port))
anybody.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
anybody.close()  # by a reset
listener.join(5)
print("after_a_reset =", json.dumps([detector.toggle, listener.is_alive()]))
