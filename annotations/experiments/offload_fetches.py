"""On which stream activations come back, of two chunks, in the first step and later."""

from contextlib import contextmanager
from unittest.mock import MagicMock as Any

import torch
from megatron.core.pipeline_parallel import fine_grained_activation_offload as o

UPSTREAMS = ["megatron"]
at, back, made = ["compute"], [], o.ChunkOffloadHandler


@contextmanager
def stream(_):
    at.append("copies")
    yield
    at.pop()


torch.cuda.stream, torch.cuda.Event, torch.cuda.Stream = stream, Any, Any
torch.cuda.current_stream = torch.cuda.nvtx = torch.Tensor.record_stream = Any()
o.print_offload_summary_table, o.is_graph_capturing = Any(), Any(return_value=False)
made.offload = lambda _, tensor, **way: (tensor.clone(),)
made.reload = lambda _, state: (back.append(at[-1]), state[0])[1]
manager = o.PipelineOffloadManager.get_instance()
hooks = manager.on_save_for_backward, manager.on_get_saved_tensor
manager.inside_context = True
for step in ("first", "second"):
    for _ in range(2):
        manager.init_model_chunk_offload_handler(1, 0, 1)
        x = torch.ones(4, requires_grad=True)
        for kind in ("attn_norm", "moe_act") * 2:
            x = o.fine_grained_offloading_group_start(x, kind)
            with torch.autograd.graph.saved_tensors_hooks(*hooks):
                x = x.exp()
            x = o.fine_grained_offloading_group_commit(x, kind)
        x.sum().backward()
    manager.reset()
    print(step, "=", str(back).replace("'", '"'))
    back.clear()
