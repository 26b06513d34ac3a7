"""Who can switch the straggler detector: a word to its port, or hanging up there."""

import json
import socket
import time

from megatron.core.utils import StragglerDetector

RANKS = 1
UPSTREAMS = ["megatron"]

detector = StragglerDetector()
detector.rank, detector.port, detector._off, detector.toggle = 0, 0, False, False
detector._controller()
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
