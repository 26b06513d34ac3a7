"""How often the trainer's loss function looks at a loss, by mode, and at a NaN."""

import ast
import logging
import pathlib
from types import SimpleNamespace as Space
from unittest.mock import Mock

import megatron
import torch
from megatron.core import rerun_state_machine as reruns

UPSTREAMS = ["megatron", "megatron-training"]
logging.disable()
torch.distributed.init_process_group("gloo")
torch.cuda.get_rng_state, torch.cuda.current_device = torch.get_rng_state, lambda: 0
files = (pathlib.Path(path).parent / "pretrain_gpt.py" for path in megatron.__path__)
text = next(file for file in files if file.is_file()).read_text()
made = next(n for n in ast.parse(text).body if getattr(n, "name", "") == "loss_func")
args = Space(check_for_nan_in_loss_and_grad=True, check_for_spiky_loss=False)
there = {"torch": torch, "get_args": lambda: args, "Optional": {0: 0}, "GPTModel": 0}
there |= {"get_rerun_state_machine": reruns.get_rerun_state_machine}
there["has_nvidia_modelopt"] = False
exec(ast.unparse(made), there)
torch.isnan, torch.isinf = looks = Mock(wraps=torch.isnan), Mock(wraps=torch.isinf)
for mode in ("validate_results", "disabled"):
    reruns.destroy_rerun_state_machine()
    reruns.initialize_rerun_state_machine(mode=reruns.RerunMode(mode))
    machine, counts = reruns.get_rerun_state_machine(), []
    for _ in range(3):
        before = sum(look.call_count for look in looks)
        while machine.should_run_forward_backward(None):
            [there["loss_func"](torch.ones(4), torch.ones(4)) for _ in range(8)]
        machine.should_checkpoint_and_exit()
        counts.append(sum(look.call_count for look in looks) - before)
    print(f"{mode} = {counts}")
try:
    there["loss_func"](torch.ones(4), torch.full((4,), torch.nan))
except RuntimeError as error:
    print(f'disabled_nan = "{type(error).__name__}"')
