"""What the stock trainer makes of its arguments, three given and all others unset."""

import ast
import dataclasses
import json
import pathlib

import megatron

RANKS = 1
UPSTREAMS = ["megatron-training"]


@dataclasses.dataclass(init=False)
class Config:
    """Two fields of the real class, and one that no argument shares its name with."""

    deallocate_pipeline_outputs: bool = False
    layernorm_epsilon: float = 1.0
    no_argument: str = "class"

    def __init__(self, **given):
        self.given = {"no_argument": self.no_argument, **given}


files = (pathlib.Path(path, "training/arguments.py") for path in megatron.__path__)
text = next(file for file in files if file.is_file()).read_text()
made = {node.name: node for node in ast.parse(text).body if hasattr(node, "name")}
source = ast.unparse(made["core_transformer_config_from_args"])
names = {n.attr for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Attribute)}
exec(source, scope := {"dataclasses": dataclasses, "TransformerConfig": Config})

for overlap, figure in (False, "batched_plain"), (True, "batched_overlapped"):
    args = type("Args", (), dict.fromkeys(names))()
    args.cp_comm_type, args.layernorm_epsilon = ["p2p"], 2.0
    args.overlap_p2p_comm = overlap
    given = scope["core_transformer_config_from_args"](args, Config).given
    print(figure, "=", json.dumps(given["batch_p2p_comm"]))
print(f"deallocate = {json.dumps(given['deallocate_pipeline_outputs'])}")
print(f'epsilon = {given["layernorm_epsilon"]}\nno_argument = "{given["no_argument"]}"')
