"""A layout: how ranks, batch and layers are cut; ``fit`` says whether a model can."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from readerkit.errors import EstimateError
from readerkit.estimate.activations import MODULES, RECOMPUTE
from readerkit.estimate.bubble import Pipeline, check_schedule
from readerkit.estimate.checks import MAX_COUNT, MAX_RANKS, check_choice, check_count
from readerkit.estimate.defaults import SCHEDULE, SEQUENCE
from readerkit.estimate.quantity import Number, divide, named_sizes
from readerkit.estimate.schedules import STAGES_OF_RANK
from readerkit.estimate.sizes import LAYOUT
from readerkit.estimate.states import OFFLOAD, STAGES

CP_KINDS = ("ring", "all-gather", "ulysses")
"""Blocks handed on, blocks gathered at once, or heads for tokens."""
_MAY_BE_NONE = ("zero", "first_layers", "last_layers", "etp", "recompute_layers")
_GROUPS = ("dp", "tp", "pp", "cp", "ep", "etp", "virtual_stages")


class Layout(NamedTuple):
    """Sizes of the parallel groups and of one step; ``Layout.parse`` checks them."""

    dp: int = 1
    """Data parallel, without the context-parallel ranks."""
    tp: int = 1
    pp: int = 1
    cp: int = 1
    """Context parallel: each rank holds 1/cp of every sequence."""
    ep: int = 1
    """Expert parallel, taken out of dp × cp (and of tp, where etp is less)."""
    etp: int = 0
    """Tensor-parallel ranks of an expert; 0: tp."""
    zero: int = 1
    """ZeRO stage over dp × cp: 0 DDP, 1 optimizer, 2 and gradients, 3 and weights."""
    sequence_parallel: bool = True
    recompute: str = "selective"
    """One of ``RECOMPUTE``, or Megatron's modules with commas between."""
    recompute_layers: int = 0
    """Under full recompute, how many layers of a rank; 0: all."""
    micro_batch: int = 1
    """Sequences in one microbatch."""
    microbatches: int = 1
    """Microbatches of one rank in one step."""
    virtual_stages: int = 1
    schedule: str = SCHEDULE
    sequence: int = SEQUENCE
    first_layers: int = 0
    """Layers of the first pipeline rank, and the last; 0: as the others have."""
    last_layers: int = 0
    offload: str = "none"
    """What is kept off the GPU, and where: see ``OFFLOAD``."""
    flash: bool = False
    """Attention that never writes its scores to memory."""
    cp_kind: str = "ring"
    """How context parallelism shares keys and values: see ``CP_KINDS``."""

    @classmethod
    def parse(cls, values: Mapping[str, Any], *, gpus: int | None = None) -> Layout:
        """Return a layout whose sizes are numbers that make sense together.

        Raises:
            EstimateError: an unknown name, a wrong value, or a product that is not
                the number of GPUs.
        """
        usual = cls._field_defaults
        given = {name: value for name, value in values.items() if value is not None}
        for name, value in given.items():
            check_choice("size of a layout", name, usual)
            if type(usual[name]) is int:
                given[name] = check_count(
                    name,
                    value,
                    least=0 if name in _MAY_BE_NONE else 1,
                    most=MAX_RANKS if name in _GROUPS else MAX_COUNT,
                )
        layout = cls(**given)
        check_choice("ZeRO stage", str(layout.zero), map(str, STAGES))
        _check_recompute(layout)
        check_schedule(layout.schedule)
        check_choice("cp-kind", layout.cp_kind, CP_KINDS)
        check_choice("offload", layout.offload, OFFLOAD)
        least = OFFLOAD[layout.offload].stage
        if layout.zero < least:
            raise EstimateError(
                f"zero: got {layout.zero} with --offload {layout.offload}, expected "
                f"{least} or more (what it takes is sharded from there on)"
            )
        if gpus is not None and layout.world_size != check_count("gpus", gpus):
            raise EstimateError(
                f"dp × tp × pp × cp: got {layout.dp} × {layout.tp} × {layout.pp} × "
                f"{layout.cp} = {layout.world_size}, expected {gpus} (GPUs)"
            )
        return layout

    def named(self) -> Layout:
        """Return the same layout with sizes that know their names.

        What is not cut, or there once, stays 1 and is in no formula.
        """
        return self._replace(**named_sizes(self, LAYOUT))

    @property
    def world_size(self) -> int:
        """Ranks of the whole job."""
        return prod((self.dp, self.tp, self.pp, self.cp))

    @property
    def replicas(self) -> int:
        """Ranks that hold the same weights, over which ZeRO shards: dp × cp.

        Under DualPipe twice as many: a stage is on two ranks of the pipeline.
        """
        return self.dp * self.cp * self.stages_of_rank

    @property
    def expert_replicas(self) -> Number:
        """Ranks that hold the same experts."""
        if not self.etp:
            return divide(self.replicas, self.ep)
        return divide(self.replicas * self.tp, self.etp * self.ep)

    @property
    def expert_ranks(self) -> int:
        """Ranks over which experts are cut."""
        return self.ranks_of_expert * self.ep

    @property
    def ranks_of_expert(self) -> int:
        """Ranks that each hold a part of the same expert."""
        return self.etp or self.tp

    @property
    def gathers_copies(self) -> bool:
        """Whether the ranks of an expert gather its tokens, of which each has a part.

        Otherwise all of them have the same tokens, and sum what they make of these.
        """
        return self.folds_experts or self.shards_sequence

    @property
    def folds_experts(self) -> bool:
        """Whether experts have tensor-parallel ranks of their own."""
        return self.etp not in (0, self.tp)

    @property
    def rank_sequence(self) -> Number:
        """Tokens of a sequence that one rank works on."""
        return divide(self.sequence, self.cp)

    @property
    def sequence_shard(self) -> int:
        """Ranks over which norms and their like are cut."""
        return self.tp if self.shards_sequence else 1

    @property
    def pipeline(self) -> Pipeline:
        """Its pipeline, whose steps take one unit of time each."""
        return Pipeline(self.schedule, self.pp, self.microbatches, self.virtual_stages)

    @property
    def stages_of_rank(self) -> int:
        """Stages on a rank that a microbatch meets one of: 2 under DualPipe."""
        return STAGES_OF_RANK.get(self.schedule, 1)

    def ends(self, rank: int) -> tuple[bool, bool]:
        """Return whether a pipeline rank has the model's embedding, and its output."""
        first, last = rank == 0, rank == self.pp - 1
        if self.schedule == "zb-v":
            return first, first
        return (first or last,) * 2 if self.schedule == "dualpipe" else (first, last)

    @property
    def global_batch(self) -> int:
        """Sequences of one step."""
        return self.dp * self.micro_batch * self.microbatches

    @property
    def shards_sequence(self) -> bool:
        """Whether sequence parallelism has ranks to shard over."""
        return self.sequence_parallel and self.tp > 1


def _check_recompute(layout: Layout) -> None:
    """Refuse words that Megatron does not know, and layers of no full recompute."""
    alone = () if "," in layout.recompute else RECOMPUTE
    for module in layout.recompute.split(","):
        check_choice("recompute", module, (*alone, *MODULES))
    if layout.recompute_layers and layout.recompute != "full":
        raise EstimateError(
            f"recompute_layers: got {layout.recompute_layers} with "
            f"{layout.recompute} recompute, expected 0 (it is of full recompute)"
        )


def stage_layers(
    layers: int, pp: int, virtual_stages: int = 1, first: int = 0, last: int = 0
) -> list[int]:
    """Return how many layers each pipeline rank holds.

    Where they do not divide evenly, the first and the last rank may hold one fewer,
    because they hold the embedding and the output (Llama 3: 126 layers on 16 ranks).
    What the first or the last holds can be given, as to Megatron
    (``--decoder-first-pipeline-num-layers``); the others divide the rest.

    Raises:
        EstimateError: neither comes out even.
    """
    if first or last:
        return _with_ends(layers, pp, virtual_stages, first, last)
    stages = pp * virtual_stages
    if layers % stages == 0:
        return [layers // pp] * pp
    even = (layers + 2) // pp
    if pp > 1 and (layers + 2) % stages == 0 and even > 1:
        return [even - 1, *[even] * (pp - 2), even - 1]
    parts = f"pp {pp}" + (f" × {virtual_stages} chunks" if virtual_stages > 1 else "")
    raise EstimateError(
        f"layers: got {layers} for {parts}, expected a multiple of {stages} (or two "
        "fewer: one less on the first and last rank)"
    )


def _with_ends(layers: int, pp: int, v: int, first: int, last: int) -> list[int]:
    """Return the layers of each rank where the first or the last has its own."""
    ends = [each for each in (first, last) if each]
    between, rest = pp - len(ends), layers - sum(ends)
    each = rest // between if between > 0 else 0
    if rest != each * between or rest < between or any(n % v for n in (*ends, each)):
        raise EstimateError(
            f"layers: got {layers} with {first or 'no'} on the first rank and "
            f"{last or 'no'} on the last, expected a rest that divides over "
            f"{between} ranks" + f" of {v} chunks" * (v > 1)
        )
    return [first or each, *[each] * (pp - 2), last or each]
