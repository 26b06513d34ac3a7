"""What the import of DeepSpeed's stage 3 asks for that the pinned files lack."""

import json

UPSTREAMS = ["deepspeed"]

try:
    import deepspeed.runtime.zero.stage3 as stage3
except ImportError as error:
    asked, stage3 = str(error), None
print("imported =", json.dumps(stage3 is not None))
print("asked_for =", json.dumps(asked.split("'")[1::2]))
