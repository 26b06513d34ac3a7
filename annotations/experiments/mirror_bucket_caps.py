"""What an explicit cap does to the small first bucket: in torch's DDP, and the mini."""

import json

import torch
from torch.nn.parallel.distributed import _BucketCapacityConfig

from mini_impls.ddp import MIB, assign_buckets

UPSTREAMS = ["minis"]

params = [torch.nn.Parameter(torch.zeros(MIB // 4)) for _ in range(9)]  # 1 MiB each
buckets = assign_buckets(params, first_bucket_bytes=MIB, bucket_bytes=4 * MIB)
caps = _BucketCapacityConfig.create(4, None, use_python_reducer=False)
none = _BucketCapacityConfig.create(None, None, use_python_reducer=False)
uncapped = [none.first_bucket_bytes_cap / MIB, none.bucket_bytes_cap / MIB]
print("mini_params =", json.dumps([len(bucket) for bucket in buckets]))
print("mini_first_is_last_param =", json.dumps(buckets[0] == [params[-1]]))
print("torch_first_cap_mib =", caps.first_bucket_bytes_cap / MIB)
print("torch_default_mib =", json.dumps(uncapped))
